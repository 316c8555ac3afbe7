package replica

import (
	"sync/atomic"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/vector"
)

// testRegistry is a registry of n tables, 1 to n, in phase ready at the snapshot
// 100:100:.
func testRegistry(t *testing.T, n int) (*registry, *colstore.Store) {
	t.Helper()
	store := colstore.New(colstore.Options{SegmentRows: 1024})
	t.Cleanup(store.Close)
	r := newRegistry(store, time.Second, func() {})
	for oid := range uint32(n) {
		meta := &catalog.Table{OID: oid + 1, Schema: "s", Name: "t", Columns: []catalog.Column{{Name: "a", Type: vector.TypeOf(vector.Int4)}}}
		r.join([]*catalog.Table{meta}, false)
	}
	batch, _ := r.begin(true)
	if len(batch) != n {
		t.Fatalf("%d of %d tables begin", len(batch), n)
	}
	r.hold(batch, colstore.Snapshot{Xmin: 100, Xmax: 100})
	for _, tab := range batch {
		if !r.publish(tab, emptyVersion(t, store, tab.meta), time.Millisecond) {
			t.Fatal("not published")
		}
	}
	return r, store
}

func emptyVersion(t *testing.T, store *colstore.Store, meta *catalog.Table) *colstore.Table {
	t.Helper()
	v, err := store.NewLoader(meta).Finish()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func state(s *colstore.Store, oid uint32) colstore.State {
	v, st := s.Get(oid)
	if v != nil {
		v.Release()
	}
	return st
}

func TestOnlyChangesThatTheSnapshotDoesNotSeeCount(t *testing.T) {
	r, store := testRegistry(t, 2)
	r.change(1, 99)
	if st := state(store, 1); st != colstore.StateReady {
		t.Errorf("a change that the copy holds made it %s", st)
	}
	r.change(1, 100)
	if st := state(store, 1); st != colstore.StateChanged {
		t.Errorf("a change after the copy left it %s", st)
	}
	if st := state(store, 2); st != colstore.StateReady {
		t.Errorf("another table's change made it %s", st)
	}
	r.change(3, 100) // unknown: nothing happens

	// A change may be in the stream before the server shows it: it was before this
	// snapshot was taken, which does not see it.
	tab := r.tables[1]
	tab.notBefore, tab.changedAt, tab.readyAt = time.Time{}, time.Time{}, time.Time{}
	r.change(1, 105)
	tab.changedAt = time.Time{}
	batch, _ := r.begin(false)
	if len(batch) != 1 {
		t.Fatalf("%d tables due", len(batch))
	}
	r.hold(batch, colstore.Snapshot{Xmin: 105, Xmax: 110, Xip: []uint64{105}})
	if r.publish(tab, emptyVersion(t, store, tab.meta), 0) {
		t.Error("a copy was published that lacks a change of before")
	}
	if st := state(store, 1); st != colstore.StateChanged {
		t.Errorf("state %s", st)
	}
	// The next snapshot sees it.
	tab.notBefore, tab.readyAt = time.Time{}, time.Time{}
	tab.changedAt = time.Time{}
	batch, _ = r.begin(false)
	r.hold(batch, colstore.Snapshot{Xmin: 111, Xmax: 111})
	if !r.publish(tab, emptyVersion(t, store, tab.meta), 0) {
		t.Error("not published")
	}
	// And a change during a copy ends it.
	r.prune(111)
	if len(tab.recent) != 0 {
		t.Errorf("recent changes kept: %v", tab.recent)
	}
}

func TestChangeDuringACopy(t *testing.T) {
	r, store := testRegistry(t, 1)
	tab := r.tables[1]
	r.change(1, 100)
	tab.changedAt, tab.readyAt = time.Time{}, time.Time{}
	batch, _ := r.begin(false)
	r.hold(batch, colstore.Snapshot{Xmin: 101, Xmax: 101})
	v := emptyVersion(t, store, tab.meta)
	r.change(1, 101)
	if r.publish(tab, v, 0) || state(store, 1) != colstore.StateChanged {
		t.Errorf("published an outdated copy: %s", state(store, 1))
	}
}

func TestABusyTableIsLeftAlone(t *testing.T) {
	r := newRegistry(nil, 2*time.Second, func() {})
	tab := &table{outdated: new(atomic.Bool)}
	now := time.Now()
	tab.readyAt, tab.took, tab.changedAt = now.Add(-time.Minute), time.Second, now
	if got := r.due(tab).Sub(now); got != 2*time.Second {
		t.Errorf("a quiet table is due after %v", got)
	}
	tab.readyAt, tab.took = now, 10*time.Second
	if got := r.due(tab).Sub(now); got != 90*time.Second {
		t.Errorf("a table whose copy takes 10 s is due after %v", got)
	}
	tab.took = 0
	want := []time.Duration{4, 8, 16, 32, 64, 128, 256, 300, 300}
	for i, w := range want {
		tab.readyAt = time.Now()
		tab.lapse()
		tab.changedAt = now
		if r.due(tab); tab.quiet != w*time.Second {
			t.Errorf("after %d changes: quiet %v, want %v", i+1, tab.quiet, w*time.Second)
		}
	}
	tab.readyAt = time.Now().Add(-time.Hour)
	if tab.lapse(); tab.quiet != 0 {
		t.Errorf("a copy that lasted an hour left quiet %v", tab.quiet)
	}
}

func TestWaitsDoNotHoldUpOthers(t *testing.T) {
	r, _ := testRegistry(t, 0)
	for oid := range uint32(5) {
		r.tables[oid] = &table{meta: &catalog.Table{OID: oid}, joins: oid >= 3, alone: oid == 2}
	}
	names := func(batch []*table) (oids []uint32) {
		for _, tab := range batch {
			oids = append(oids, tab.meta.OID)
		}
		return oids
	}
	first, _ := r.begin(false)
	second, _ := r.begin(false)
	third, _ := r.begin(false)
	if len(first) != 2 || first[0].joins || len(second) != 2 || !second[0].joins || len(third) != 0 {
		t.Errorf("batches %v, %v, %v", names(first), names(second), names(third))
	}
	for _, tab := range append(first, second...) {
		tab.phase = phaseReady
	}
	if last, _ := r.begin(false); len(last) != 1 || !last[0].alone {
		t.Errorf("last batch %v", names(last))
	}
}
