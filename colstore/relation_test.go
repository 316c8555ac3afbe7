package colstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgaccel/catalog"
)

// manual returns options under which nothing happens behind a test's back.
func manual(c *clock) Options {
	return Options{SegmentRows: 1024, now: c.now, manual: true}
}

func newClock() *clock { return &clock{at: time.Unix(1e9, 0)} }

// seen is a snapshot that sees everything below xmax but some.
func seen(xmax uint64, not ...uint64) Snapshot {
	s := Snapshot{Xmin: xmax, Xmax: xmax, Xip: not}
	if len(not) > 0 {
		s.Xmin = not[0]
	}
	return s
}

func viewRows(t testing.TB, s *Store, snap Snapshot) []string {
	t.Helper()
	table, err := s.View(7, snap)
	if err != nil {
		t.Fatalf("View(%v): %v", snap, err)
	}
	defer table.Release()
	return rowsOf(t, table)
}

// keyed makes a row of modelMeta with a key and a value.
func keyed(meta *catalog.Table, key, value int64) *Row {
	m := &model{meta: meta}
	r := &modelRow{values: make([]any, len(meta.Columns)), key: key}
	m.setKey(r)
	r.values[0], r.values[4] = value, fmt.Sprint("text ", value)
	return m.image(r, false)
}

func do(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestLongFork: a reader sees a commit and not the one before it.
func TestLongFork(t *testing.T) {
	s := New(manual(newClock()))
	defer s.Close()
	meta := modelMeta("int", 0)
	rel := newModel(1, meta).start(t, s, 0)
	do(t, rel.Insert(7, keyed(meta, 1, 10)), rel.Insert(7, keyed(meta, 2, 20)), rel.Commit(101, 1))
	do(t, rel.Update(7, nil, keyed(meta, 1, 11)), rel.Commit(103, 2))
	do(t, rel.Update(7, nil, keyed(meta, 2, 21)), rel.Insert(7, keyed(meta, 3, 30)), rel.Commit(102, 3))
	values := func(snap Snapshot) (out []string) {
		for _, r := range viewRows(t, s, snap) {
			out = append(out, strings.SplitN(r, "|", 2)[0])
		}
		return out
	}
	check := func(snap Snapshot, want ...string) {
		t.Helper()
		if got := values(snap); !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", snap, got, want)
		}
	}
	for range 2 {
		check(seen(101))
		check(seen(102), "10", "20")
		check(seen(103), "10", "21", "30")
		check(seen(104, 102), "11", "20")
		check(seen(104), "11", "21", "30")
	}
	if st := s.Statuses()[0]; st.Inserted != 3 || st.Updated != 2 || st.Deleted != 0 || st.Rows != 3 || st.Deltas != 3 || st.HistoryBytes == 0 {
		t.Errorf("%+v", st)
	}
	// What does not see what was folded in is refused, nothing else is.
	if !rel.fold(seen(104, 102), nil) {
		t.Error("nothing was folded")
	}
	check(seen(104, 102), "11", "20")
	check(seen(104), "11", "21", "30")
	for _, snap := range []Snapshot{seen(101), seen(102), seen(103)} {
		if _, err := s.View(7, snap); err != ErrSnapshot {
			t.Errorf("View(%v): %v", snap, err)
		}
	}
}

// TestFullDuplicates: of rows that are all the same one goes at a time, and quickly.
func TestFullDuplicates(t *testing.T) {
	const n = 200_000
	s := New(Options{manual: true})
	defer s.Close()
	meta := modelMeta("full", 0)
	rel := newModel(1, meta).start(t, s, 0)
	row := keyed(meta, 1, 1)
	for range n {
		do(t, rel.Insert(7, row))
	}
	do(t, rel.Commit(101, 1))
	for i := range n / 2 {
		do(t, rel.Delete(7, row))
		if i%1000 == 999 {
			do(t, rel.Commit(102+uint64(i), 2))
		}
	}
	if got, _ := s.Get(7); got.Rows != n/2 {
		t.Errorf("%d rows are left, want %d", got.Rows, n/2)
	} else {
		got.Release()
	}
	rel.fold(seen(1e9), nil)
	for rel.encodeFull() || rel.mergeSparse() {
	}
	for range n / 2 {
		do(t, rel.Delete(7, row))
	}
	do(t, rel.Commit(1e9, 3))
	if got := viewRows(t, s, seen(1e9+1)); len(got) != 0 {
		t.Errorf("%d rows are left, want none", len(got))
	}
	if err := rel.Delete(7, row); !errors.Is(err, errIdentity) {
		t.Errorf("one delete more: %v", err)
	}
}

// TestFullChoice: which of two equal rows a delete took depends on what its
// transaction saw, which the stream does not say; who cannot be served is refused.
func TestFullChoice(t *testing.T) {
	s := New(manual(newClock()))
	defer s.Close()
	meta := modelMeta("full", 0)
	rel := newModel(1, meta).start(t, s, 0)
	row := keyed(meta, 1, 1)
	do(t, rel.Insert(7, row), rel.Commit(101, 1))
	do(t, rel.Insert(7, row), rel.Commit(102, 2))
	do(t, rel.Delete(7, row), rel.Commit(103, 3)) // of 102's, in truth
	for _, c := range []struct {
		snap Snapshot
		want int // -1: refused
	}{{seen(104), 1}, {seen(103), 2}, {seen(104, 101), -1}, {seen(103, 101), 1}, {seen(102), 1}} {
		table, err := s.View(7, c.snap)
		switch {
		case c.want < 0:
			if err != ErrSnapshot {
				t.Errorf("%v: %v", c.snap, err)
			}
		case err != nil || table.Rows != int64(c.want):
			t.Errorf("%v: %v, %v; want %d rows", c.snap, table, err, c.want)
		}
		release(table)
	}
	// Where 103 is seen and 101 is not, 103 must wait to be folded in.
	rel.fold(seen(104, 101), nil)
	if _, n := s.History(); n != 2 {
		t.Errorf("%d commits are left, want those of 101 and 103", n)
	}
	if got := viewRows(t, s, seen(104)); len(got) != 1 {
		t.Errorf("%d rows, want 1", len(got))
	}
}

// TestRelationErrors: what cannot be right is told, by an error that callers know.
func TestRelationErrors(t *testing.T) {
	s := New(manual(newClock()))
	defer s.Close()
	meta := modelMeta("int", 0)
	start := func() *Relation { return newModel(1, meta).start(t, s, 3) }
	expect := func(what string, err, want error) {
		t.Helper()
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	rel := start()
	expect("no such row", rel.Delete(7, keyed(meta, 99, 0)), errIdentity)
	expect("deleted twice", errors.Join(rel.Delete(7, keyed(meta, 2, 0)), rel.Delete(7, keyed(meta, 2, 0))), errIdentity)
	expect("no key", rel.Delete(7, NewRow(meta)), errIdentity)
	expect("no such part", rel.Insert(8, keyed(meta, 99, 0)), nil)
	lacks := keyed(meta, 99, 0)
	lacks.State[3] = ColumnAbsent
	expect("a column is missing", rel.Insert(7, lacks), nil)
	lacks.State[3] = ColumnUnchanged
	expect("a new row keeps a value", rel.Insert(7, lacks), nil)
	s.MarkChanged(7)
	for what, err := range map[string]error{"Insert": rel.Insert(7, keyed(meta, 99, 0)), "Update": rel.Update(7, nil, keyed(meta, 1, 0)),
		"Delete": rel.Delete(7, keyed(meta, 1, 0)), "Truncate": rel.Truncate(7), "Commit": rel.Commit(101, 1)} {
		expect(what+" of a table that was given up", err, errDropped)
	}
	var st *StateError
	if _, err := s.View(7, seen(200)); !errors.As(err, &st) || st.State != StateChanged {
		t.Errorf("View: %v", err)
	}
	if d, release := rel.Dict(3); d != nil {
		t.Error("the dictionary of a table that was given up")
	} else {
		release()
	}
	if used, _ := s.Usage(); used != 0 {
		t.Errorf("%d bytes in use", used)
	}
	// One that was never published.
	m := newModel(1, meta)
	rel = m.start(t, New(manual(newClock())), 3)
	rel.Drop()
	rel.Drop()
	if used, _ := rel.store.Usage(); used != 0 {
		t.Errorf("%d bytes in use", used)
	}
	noKey := modelMeta("", 0)
	rel = newModel(1, noKey).start(t, s, 1)
	expect("no replica identity", rel.Delete(7, keyed(noKey, 1, 0)), errIdentity)
}

// TestRelationMemory: the limit is reached in the middle of a transaction; readers
// keep theirs, and all memory comes back.
func TestRelationMemory(t *testing.T) {
	for _, identity := range []string{"int", "full"} {
		for limit := int64(100_000); limit < 400_000; limit += 17_777 {
			o := manual(newClock())
			o.MemoryLimit = limit
			s := New(o)
			m := newModel(uint64(limit), modelMeta(identity, 0))
			rel := m.start(t, s, 100)
			want := m.at(seen(101))
			held, err := s.View(7, seen(101))
			do(t, err)
			for x := int64(0); err == nil; x++ {
				if x%300 == 0 {
					err = m.transaction(rel, 100)
					continue
				}
				err = rel.Insert(7, keyed(m.meta, 1e6+x, x))
				if used, _ := s.Usage(); used > limit {
					t.Fatalf("%d bytes of %d in use", used, limit)
				}
			}
			var memory *MemoryError
			if !errors.As(err, &memory) {
				t.Fatalf("limit %d: %v", limit, err)
			}
			s.SetState(m.meta, StateRefused, err.Error())
			if got := rowsOf(t, held); !slices.Equal(got, want) {
				t.Error("a held version changed")
			}
			held.Release()
			if used, _ := s.Usage(); used != 0 {
				t.Errorf("limit %d: %d bytes lost", limit, used)
			}
			s.Close()
		}
	}
}

// TestEncodeWithoutMemory: segments that cannot be encoded or merged stay as they are,
// and are tried again later.
func TestEncodeWithoutMemory(t *testing.T) {
	c := newClock()
	s := New(manual(c))
	defer s.Close()
	meta := modelMeta("int", 0)
	rel := newModel(1, meta).start(t, s, 0)
	for k := range int64(1024) {
		do(t, rel.Insert(7, keyed(meta, k, k)))
	}
	do(t, rel.Commit(101, 1))
	used, limit := s.Usage()
	s.arena.limit = used
	s.Observe(seen(102), 0, c.now())
	c.step(time.Second)
	s.behind.work()
	if rel.slots[0].columns != nil {
		t.Error("encoded without memory")
	}
	s.arena.limit = limit
	s.behind.work()
	if rel.slots[0].columns != nil {
		t.Error("tried again at once")
	}
	c.step(retryAfter)
	s.behind.work()
	if rel.slots[0].columns == nil {
		t.Error("not encoded")
	}
	if now, _ := s.Usage(); now >= used {
		t.Errorf("%d bytes encoded, %d before", now, used)
	}
	if got := viewRows(t, s, seen(200)); len(got) != 1024 {
		t.Errorf("%d rows", len(got))
	}
	// Now most rows go, and with them the segment.
	for k := range int64(1000) {
		do(t, rel.Delete(7, keyed(meta, k, k)))
	}
	do(t, rel.Commit(102, 1))
	s.Observe(seen(103), 0, c.now())
	c.step(time.Second)
	used, limit = s.Usage()
	s.arena.limit = used
	s.behind.work()
	s.arena.limit = limit
	c.step(retryAfter)
	s.behind.work()
	if st := s.Statuses()[0]; st.Segments != 1 || st.Rows != 24 || rel.slots[0] != nil {
		t.Errorf("not merged: %+v", st)
	}
	for k := range int64(24) {
		do(t, rel.Update(7, nil, keyed(meta, 1000+k, 5)))
	}
	do(t, rel.Commit(103, 1))
	if got := viewRows(t, s, seen(200)); len(got) != 24 || got[0][:2] != "5|" || got[23][:2] != "5|" {
		t.Errorf("%v", got)
	}
}

// TestObserve: when commits are folded in, and which snapshot a patient reader gets.
func TestObserve(t *testing.T) {
	c := newClock()
	o := manual(c)
	o.HistoryLimit = 1000
	s := New(o)
	defer s.Close()
	s.SetConnected(true)
	meta := modelMeta("int", 0)
	rel := newModel(1, meta).start(t, s, 0)
	if _, ok := s.Fresh(time.Hour); ok || s.WantsSnapshot() {
		t.Error("something observed before anything was")
	}
	do(t, rel.Insert(7, keyed(meta, 1, 1)), rel.Commit(101, 50))
	if !s.WantsSnapshot() {
		t.Error("a commit that nobody was seen to see, and no snapshot wanted")
	}
	s.Observe(seen(102), 60, c.now())
	if s.WantsSnapshot() {
		t.Error("a snapshot wanted that is there")
	}
	if _, ok := s.Fresh(time.Hour); ok {
		t.Error("a snapshot that the stream has not passed")
	}
	s.Advance(60)
	if snap, ok := s.Fresh(time.Minute); !ok || snap.Xmax != 102 {
		t.Errorf("Fresh: %v, %v", snap, ok)
	}
	commits := func(want int) {
		t.Helper()
		s.behind.work()
		if _, n := s.History(); n != want {
			t.Errorf("%d commits are not folded in, want %d", n, want)
		}
	}
	commits(1)
	c.step(249 * time.Millisecond)
	commits(1)
	c.step(time.Millisecond)
	unpin := s.Pin(seen(101))
	commits(1) // a reader goes on without it
	if st := s.Statuses()[0]; st.OldestPin != 0 {
		t.Errorf("%+v", st)
	}
	c.step(time.Minute)
	if st := s.Statuses()[0]; st.OldestPin != time.Minute {
		t.Errorf("%+v", st)
	}
	if _, ok := s.Fresh(time.Minute); ok {
		t.Error("a snapshot older than asked for")
	}
	unpin()
	commits(0)
	// Past the limit pins do not count.
	unpin = s.Pin(seen(102))
	for x := range uint64(20) {
		do(t, rel.Insert(7, keyed(meta, int64(x+5), 1)), rel.Commit(102+x, 70))
	}
	s.Observe(seen(200), 80, c.now())
	c.step(time.Second)
	commits(0)
	if _, err := s.View(7, seen(102)); err != ErrSnapshot {
		t.Errorf("a pinned snapshot past the limit: %v", err)
	}
	unpin()
	// Many observations are thinned out, the newest that was passed is kept.
	for i := range 20_000 {
		s.Observe(seen(uint64(200+i)), uint64(80+i), c.now())
		c.step(time.Millisecond * time.Duration(i%20))
	}
	if n := len(s.history.observed); n > observedMax {
		t.Errorf("%d observations", n)
	}
	s.Advance(10_080)
	if snap, ok := s.Fresh(time.Hour); !ok || snap.Xmax > 10_200 || snap.Xmax < 9_500 {
		t.Errorf("Fresh: %v, %v", snap, ok)
	}
	s.SetConnected(false)
	s.Restart("", 5)
	if _, ok := s.Fresh(time.Hour); ok {
		t.Error("an observation of another server's")
	}
}

// TestRedefine: what may change under a copy, and what may not.
func TestRedefine(t *testing.T) {
	s := New(manual(newClock()))
	defer s.Close()
	meta := modelMeta("int", 2)
	rel := newModel(1, meta).start(t, s, 3)
	do(t, rel.Update(100, nil, keyed(meta, 1, 5)), rel.Commit(101, 1))
	change := func(f func(m *catalog.Table)) bool {
		m := *modelMeta("int", 2)
		f(&m)
		return rel.Redefine(&m)
	}
	for what, f := range map[string]func(m *catalog.Table){
		"another table":      func(m *catalog.Table) { m.OID++ },
		"one column less":    func(m *catalog.Table) { m.Columns = m.Columns[:6] },
		"another type":       func(m *catalog.Table) { m.Columns[0].TypeOID = 23 },
		"not copied":         func(m *catalog.Table) { m.Columns[0].Unsupported = "why" },
		"another attnum":     func(m *catalog.Table) { m.Columns[0].AttNum = 20 },
		"a part more":        func(m *catalog.Table) { m.Parts = append(m.Parts, catalog.Part{OID: 110}) },
		"parts exchanged":    func(m *catalog.Table) { m.Parts[0].OID = 111 },
		"not partitioned":    func(m *catalog.Table) { m.Parts = nil },
		"an identity hashed": func(m *catalog.Table) { m.Identity = []int{6} },
	} {
		if change(f) {
			t.Errorf("%s was accepted", what)
		}
	}
	before, _ := s.Get(7)
	if !change(func(m *catalog.Table) { m.Name, m.Fingerprint, m.Identity = "renamed", "f", []int{5, 7} }) {
		t.Fatal("refused")
	}
	after, _ := s.Get(7)
	if before.Meta.Name != "t" || after.Meta.Name != "renamed" || rel.Meta() != after.Meta || s.Statuses()[0].Name != "public.renamed" {
		t.Errorf("%s became %s", before.Meta.Name, after.Meta.Name)
	}
	before.Release()
	after.Release()
	do(t, rel.Update(100, nil, keyed(meta, 1, 6)), rel.Commit(102, 1))
	if !change(func(m *catalog.Table) { m.Identity, m.IdentityFull = nil, true }) {
		t.Fatal("refused")
	}
	do(t, rel.Delete(100, keyed(meta, 1, 6)), rel.Commit(103, 1))
	if got := viewRows(t, s, seen(200)); len(got) != 5 {
		t.Errorf("%d rows", len(got))
	}
}

// TestGrowingRanks: new strings are ranked by bytes where that is the order, and by
// whoever knows it elsewhere.
func TestGrowingRanks(t *testing.T) {
	s := New(manual(newClock()))
	defer s.Close()
	meta := modelMeta("int", 0)
	rel := newModel(1, meta).start(t, s, 5)
	old, _ := s.Get(7)
	defer old.Release()
	r := rand.New(rand.NewPCG(5, 5))
	for x := range uint64(30) {
		for range 1 + r.IntN(40) {
			row := keyed(meta, int64(1000+x*100)+r.Int64N(100)*10000, 1)
			row.State[3], row.Text[3] = ColumnValue, []byte(strings.Repeat("ab", r.IntN(6))+string(rune('a'+r.IntN(20))))
			do(t, rel.Insert(7, row))
		}
		do(t, rel.Commit(101+x, x))
		table, _ := s.Get(7)
		d := table.Dicts[3]
		if x%3 == 0 {
			ranks := d.Ranks()
			for a := range ranks {
				for b := range ranks {
					if (ranks[a] < ranks[b]) != (d.At(int64(a)) < d.At(int64(b))) || ranks[a] < 0 {
						t.Fatalf("%q and %q have ranks %d and %d", d.At(int64(a)), d.At(int64(b)), ranks[a], ranks[b])
					}
				}
			}
		}
		if n := old.Dicts[3].Len(); len(old.Dicts[3].Ranks()) != n {
			t.Errorf("%d ranks of %d", len(old.Dicts[3].Ranks()), n)
		}
		table.Release()
	}
	do(t, rel.Insert(7, keyed(meta, 5, 77)), rel.Commit(150, 1))
	if got := rel.Unranked(); !slices.Equal(got, []int{4}) {
		t.Errorf("Unranked() = %v", got)
	}
	d, release := rel.Dict(4)
	defer release()
	rel.SetRanks(4, make([]int32, d.Len()))
	if got := rel.Unranked(); got != nil {
		t.Errorf("Unranked() = %v", got)
	}
	if len(old.Dicts[4].Ranks()) != old.Dicts[4].Len() || len(d.Ranks()) != d.Len() {
		t.Error("SetRanks had no effect on versions")
	}
	do(t, rel.Insert(7, keyed(meta, 6, 78)), rel.Commit(151, 1))
	if got := rel.Unranked(); !slices.Equal(got, []int{4}) {
		t.Errorf("Unranked() = %v", got)
	}
	if d, release := rel.Dict(0); d != nil {
		t.Error("the dictionary of a number")
	} else {
		release()
	}
}

// TestBehind: with the real clock, a writer, readers and the work behind them at once;
// afterwards no goroutine is left.
func TestBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	s := New(Options{SegmentRows: 1024, FoldLag: 2 * time.Millisecond})
	meta := modelMeta("int", 2)
	m := newModel(3, meta)
	rel := m.start(t, s, 1500)
	var wg sync.WaitGroup
	work := make(chan expectation)
	for range 2 {
		wg.Go(func() {
			for e := range work {
				e.check(t, s, 7)
			}
		})
	}
	for range 60 {
		do(t, m.transaction(rel, m.rand.IntN(200)))
		m.show(100)
		s.Observe(m.snapshot(), 0, time.Now())
		e := expectation{snap: m.snapshot(), rows: m.at(m.snapshot())}
		select {
		case work <- e:
		default:
		}
		unpin := s.Pin(e.snap)
		e.check(t, s, 7)
		unpin()
	}
	close(work)
	wg.Wait()
	for len(m.seen) < int(m.last)-99 {
		m.show(1000)
	}
	s.Observe(m.snapshot(), 0, time.Now())
	for commits := 1; commits > 0; _, commits = s.History() {
		time.Sleep(time.Millisecond) // the test's own limit ends it
	}
	if got := viewRows(t, s, m.snapshot()); !slices.Equal(got, m.at(m.snapshot())) {
		t.Error("wrong rows at the end")
	}
	s.Close()
	s.behind.wake() // too late
	for runtime.NumGoroutine() > before {
		time.Sleep(time.Millisecond)
	}
}
