package replica

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/replica/pgoutput"
	"pgaccel/vector"
)

// testRegistry is a registry of n tables, 1 to n, each with one integer column, in
// phase ready at the snapshot 100:100:, and an applier to it, whose failures it notes.
func testRegistry(t *testing.T, n int) (*registry, *applier, *[]error) {
	t.Helper()
	store := colstore.New(colstore.Options{SegmentRows: 1024})
	t.Cleanup(store.Close)
	r := newRegistry(store, time.Second, func() {})
	r.near.Store(100)
	for oid := range uint32(n) {
		meta := &catalog.Table{OID: oid + 1, Schema: "s", Name: "t", IdentityFull: true,
			Columns: []catalog.Column{{Name: "a", AttNum: 1, TypeOID: 23, Type: vector.TypeOf(vector.Int4)}}}
		r.join([]*catalog.Table{meta}, false)
	}
	batch, _ := r.begin(true)
	if len(batch) != n {
		t.Fatalf("%d of %d tables begin", len(batch), n)
	}
	r.hold(batch, colstore.Snapshot{Xmin: 100, Xmax: 100})
	for _, tab := range batch {
		if err := r.publish(tab, emptyCopy(t, r, tab), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	var failures []error
	a := newApplier(r, func(tab *table, err error) {
		failures = append(failures, err)
		r.mu.Lock()
		defer r.mu.Unlock()
		if tab.phase == phaseCopying {
			tab.outdated.Store(true)
		} else {
			r.lapse(tab, colstore.StateChanged, err.Error())
		}
	}, store.Advance)
	return r, a, &failures
}

func emptyCopy(t *testing.T, r *registry, tab *table) *relationWriter {
	t.Helper()
	v, err := r.store.NewLoader(tab.meta).Finish()
	if err != nil {
		t.Fatal(err)
	}
	v.Snapshot = tab.snapshot
	return newRelationWriter(r.store.NewRelation(v), tab.snapshot, hashKey{})
}

// transact gives a transaction of inserts to an applier: a row for each relation.
func transact(t *testing.T, a *applier, xid uint32, relations ...uint32) {
	t.Helper()
	a.Begin(xid)
	for _, oid := range relations {
		insertRow(t, a, oid, xid)
	}
	a.Commit(xid, uint64(xid)*10, uint64(xid)*10+1)
}

func insertRow(t *testing.T, a *applier, oid, value uint32) {
	t.Helper()
	if a.relations[oid] == nil {
		a.Relation(&pgoutput.Relation{OID: oid, ReplicaIdentity: 'f', Columns: []pgoutput.Column{{Key: true, Name: "a", TypeOID: 23, Typmod: -1}}})
	}
	if err := a.Insert(oid, pgoutput.Tuple{{Kind: pgoutput.ValueBinary, Data: binary.BigEndian.AppendUint32(nil, value)}}); err != nil {
		t.Fatal(err)
	}
}

// rowsAt returns the values of table 1 that a snapshot sees, "none" without a view.
func rowsAt(t *testing.T, r *registry, s colstore.Snapshot) string {
	t.Helper()
	v, err := r.store.View(1, s)
	if err != nil {
		return "none"
	}
	defer v.Release()
	return strings.Join(contents(v), " ")
}

func TestTheSnapshotDecidesWhichChangesAreApplied(t *testing.T) {
	r, a, failures := testRegistry(t, 2)
	transact(t, a, 99, 1, 2) // the copies hold it
	transact(t, a, 101, 1)
	transact(t, a, 100, 1, 3) // 3 is none of ours
	if got := rowsAt(t, r, colstore.Snapshot{Xmin: 102, Xmax: 102}); got != "|101 |100" {
		t.Errorf("rows %s", got)
	}
	if got := rowsAt(t, r, colstore.Snapshot{Xmin: 100, Xmax: 102, Xip: []uint64{101}}); got != "|100" {
		t.Errorf("rows without 101: %s", got)
	}
	if r.store.Applied() != 1011 || len(*failures) != 0 {
		t.Errorf("applied %d, failures %v", r.store.Applied(), *failures)
	}
}

// TestACopyIsBroughtUpToDate: what comes while a table is copied is applied once, and
// only what the copy does not hold, also where the copy ends within a transaction.
func TestACopyIsBroughtUpToDate(t *testing.T) {
	r, a, failures := testRegistry(t, 1)
	tab := r.tables[1]
	again := func(s colstore.Snapshot, during func()) error {
		t.Helper()
		r.mu.Lock()
		if tab.phase == phaseReady {
			r.lapse(tab, colstore.StateChanged, "")
		}
		tab.notBefore, tab.readyAt = time.Time{}, time.Time{}
		r.mu.Unlock()
		batch, _ := r.begin(false)
		if len(batch) != 1 {
			t.Fatalf("%d tables due", len(batch))
		}
		r.hold(batch, s)
		w := emptyCopy(t, r, tab)
		during()
		err := catchUp(tab, w)
		if err == nil {
			err = r.publish(tab, w, 0)
		}
		if err != nil {
			w.to.Drop()
			r.again(tab, colstore.StateChanged, "")
		}
		return err
	}
	all := colstore.Snapshot{Xmin: 1000, Xmax: 1000}
	err := again(colstore.Snapshot{Xmin: 110, Xmax: 112, Xip: []uint64{110}}, func() {
		transact(t, a, 109, 1)
		transact(t, a, 111, 1)
		transact(t, a, 110, 1)
		transact(t, a, 112, 1, 1)
		a.Begin(113) // not yet at its end
		insertRow(t, a, 1, 113)
	})
	if err != nil {
		t.Fatal(err)
	}
	insertRow(t, a, 1, 114)
	if got := rowsAt(t, r, all); got != "|110 |112 |112" {
		t.Errorf("within a transaction: rows %s", got)
	}
	a.Commit(113, 0, 2000)
	transact(t, a, 120, 1)
	if got := rowsAt(t, r, all); got != "|110 |112 |112 |113 |114 |120" {
		t.Errorf("rows %s", got)
	}
	// The same, of a transaction that the snapshot sees.
	err = again(colstore.Snapshot{Xmin: 131, Xmax: 131}, func() {
		a.Begin(130)
		insertRow(t, a, 1, 130)
	})
	if err != nil {
		t.Fatal(err)
	}
	insertRow(t, a, 1, 130)
	a.Commit(130, 0, 3000)
	transact(t, a, 131, 1)
	if got := rowsAt(t, r, all); got != "|131" {
		t.Errorf("rows %s", got)
	}
	// A change that came before the queue began and that the snapshot does not see.
	r.lapse(tab, colstore.StateChanged, "")
	transact(t, a, 140, 1)
	if err := again(colstore.Snapshot{Xmin: 140, Xmax: 142, Xip: []uint64{140}}, func() {}); err != errOutdated {
		t.Errorf("a copy that lacks a change of before: %v", err)
	}
	// A transaction that could not be kept.
	if err := again(colstore.Snapshot{Xmin: 142, Xmax: 142}, func() {
		a.Begin(150)
		a.TooLarge(150, []uint32{1, 7})
		a.Commit(150, 0, 4000)
	}); err != errOutdated {
		t.Errorf("a copy beside a transaction that was not kept: %v", err)
	}
	if len(*failures) != 1 || (*failures)[0] != errTooLarge {
		t.Errorf("failures %v", *failures)
	}
	*failures = nil
	if err := again(colstore.Snapshot{Xmin: 160, Xmax: 160}, func() {}); err != nil {
		t.Fatal(err)
	}
	a.Begin(159)
	a.TooLarge(159, []uint32{1})
	a.Commit(159, 0, 4001)
	if rowsAt(t, r, all) != "" || len(*failures) != 0 {
		t.Errorf("a large transaction that the copy holds: rows %s, failures %v", rowsAt(t, r, all), *failures)
	}
	a.Begin(161)
	a.TooLarge(161, []uint32{1})
	if got := rowsAt(t, r, all); got != "none" {
		t.Errorf("after a large transaction: rows %s", got)
	}
	a.Commit(161, 0, 4002)
	r.prune(1000)
	if len(tab.recent) != 0 {
		t.Errorf("recent changes kept: %v", tab.recent)
	}
}

func TestQueueOverflowEndsACopy(t *testing.T) {
	f := &feed{}
	f.collect()
	row := pgoutput.Tuple{{Kind: pgoutput.ValueText, Data: make([]byte, 1<<20)}, {Kind: pgoutput.ValueNull}, {Kind: pgoutput.ValueUnchanged}}
	rel := &pgoutput.Relation{OID: 1}
	n := 0
	for n < 100 && f.change(5, opInsert, rel, nil, pgoutput.OldNone, row) == nil {
		n++
	}
	if n != queueLimit>>20-1 || f.queue != nil {
		t.Errorf("the queue took %d MB", n)
	}
	if err := f.change(5, opInsert, rel, nil, pgoutput.OldNone, row); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if err := f.start(nil, nil); err != errOutdated {
		t.Errorf("start: %v", err)
	}
}

// record writes down what a queue replays.
type record struct{ lines []string }

func (r *record) begin(xid uint64) error {
	r.lines = append(r.lines, fmt.Sprint("begin ", xid))
	return nil
}
func (r *record) commit(xid, lsn uint64) error {
	r.lines = append(r.lines, fmt.Sprint("commit ", xid, " ", lsn))
	return nil
}
func (r *record) truncate(part uint32) error {
	r.lines = append(r.lines, fmt.Sprint("truncate ", part))
	return nil
}
func (r *record) change(op byte, rel *pgoutput.Relation, old pgoutput.Tuple, kind pgoutput.OldKind, row pgoutput.Tuple) error {
	r.lines = append(r.lines, fmt.Sprintf("%c %d %q %d %q", op, rel.OID, old, kind, row))
	return nil
}

func TestQueueReplaysWhatItTook(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	tuple := func() (tup pgoutput.Tuple) {
		for range rng.Intn(4) {
			v := pgoutput.Value{Kind: []pgoutput.ValueKind{pgoutput.ValueNull, pgoutput.ValueUnchanged, pgoutput.ValueText, pgoutput.ValueBinary}[rng.Intn(4)]}
			if v.Kind == pgoutput.ValueText || v.Kind == pgoutput.ValueBinary {
				v.Data = make([]byte, []int{0, 1, 127, 128, 5000}[rng.Intn(5)])
				rng.Read(v.Data)
			}
			tup = append(tup, v)
		}
		return tup
	}
	q, want, got := &changeQueue{}, &record{}, &record{}
	rels := []*pgoutput.Relation{{OID: 1}, {OID: 2}, {OID: 1}}
	for range 2000 {
		switch x, y := rng.Uint64(), rng.Uint64()>>rng.Intn(64); rng.Intn(8) {
		case 0:
			q.begin(x)
			want.begin(x)
		case 1:
			q.commit(x, y)
			want.commit(x, y)
		case 2:
			q.truncate(uint32(x))
			want.truncate(uint32(x))
		default:
			rel, old, kind, row := rels[rng.Intn(3)], tuple(), pgoutput.OldKind(rng.Intn(3)), tuple()
			op := []byte{opInsert, opUpdate, opDelete}[rng.Intn(3)]
			if op == opInsert {
				old, kind = nil, pgoutput.OldNone
			} else if op == opDelete {
				row = nil
			}
			q.change(op, rel, old, kind, row)
			want.change(op, rel, old, kind, row)
		}
	}
	taken := q.take()
	if q.bytes != 0 || len(q.chunks) != 0 {
		t.Errorf("left in the queue: %d bytes", q.bytes)
	}
	if err := taken.replay(got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.lines, want.lines) {
		for i := range want.lines {
			if i >= len(got.lines) || got.lines[i] != want.lines[i] {
				t.Fatalf("record %d is not %s", i, want.lines[i])
			}
		}
	}
}

func TestATableThatFailsIsLeftAlone(t *testing.T) {
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := newRegistry(store, 2*time.Second, func() {})
	tab := &table{meta: &catalog.Table{OID: 1}, outdated: new(atomic.Bool)}
	now := time.Now()
	tab.readyAt, tab.took = now, 10*time.Second
	if got := r.due(tab).Sub(now); got != 90*time.Second {
		t.Errorf("a table whose copy takes 10 s is due after %v", got)
	}
	tab.took = 0
	want := []time.Duration{4, 8, 16, 30, 30, 30}
	for i, w := range want {
		tab.readyAt = time.Now()
		r.lapse(tab, colstore.StateChanged, "")
		if tab.quiet != w*time.Second || r.due(tab).Before(now.Add(w*time.Second)) {
			t.Errorf("after %d failures: a pause of %v, want %v", i+1, tab.quiet, w*time.Second)
		}
	}
	tab.readyAt = time.Now().Add(-time.Hour)
	if r.lapse(tab, colstore.StateChanged, ""); tab.quiet != 2*time.Second {
		t.Errorf("a copy that lasted an hour left a pause of %v", tab.quiet)
	}
}

func TestWaitsDoNotHoldUpOthers(t *testing.T) {
	r, _, _ := testRegistry(t, 0)
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
