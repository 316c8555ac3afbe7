package colstore

import (
	"strings"
	"sync"
	"testing"

	"pgaccel/catalog"
	"pgaccel/internal/invariant"
)

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if s, _ := recover().(string); !strings.HasPrefix(s, "BUG: ") {
			t.Errorf("%s: recovered %q", what, s)
		}
	}()
	f()
}

func TestStates(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	calls := 0
	s.OnCatalog(func() { calls++; s.Statuses() }) // without locks held
	expect := func(what string, st State, version *Table) {
		t.Helper()
		got, state := s.Get(7)
		if s.State(7) != state {
			t.Errorf("%s: State says %v, Get %v", what, s.State(7), state)
		}
		if got != version || state != st {
			t.Errorf("%s: %v, %v; want %v, %v", what, got, state, version, st)
		}
		if got != nil {
			got.Release()
		}
	}
	rows := []row{{int64(1), 1.0, nil, "x", "y"}}
	expect("unknown", StateCopying, nil)
	s.MarkChanged(7)
	expect("unknown, changed", StateCopying, nil)
	s.SetState(meta(), StateCopying, "")
	s.MarkChanged(7)
	expect("copying", StateCopying, nil)

	first := load(t, s, rows, 1)
	s.Publish(s.NewRelation(first))
	expect("published", StateReady, first)
	if st := s.Statuses(); len(st) != 1 || st[0].Name != "public.t" || st[0].Rows != 1 || st[0].Bytes != first.Bytes() || st[0].Copied.IsZero() {
		t.Errorf("Statuses() = %+v", st)
	}
	held, _ := s.Get(7)
	second := load(t, s, append(rows, rows...), 1)
	s.Publish(s.NewRelation(second))
	expect("published again", StateReady, second)
	check(t, held, rows) // the reader's version lives on
	used, _ := s.Usage()
	held.Release()
	if now, _ := s.Usage(); now != used-first.Bytes() || now != second.Bytes() {
		t.Errorf("%d bytes in use, then %d after the last reader of %d", used, now, first.Bytes())
	}

	s.MarkChanged(7)
	expect("changed", StateChanged, nil)
	if now, _ := s.Usage(); now != 0 {
		t.Errorf("%d bytes held by a changed table", now)
	}
	s.Publish(s.NewRelation(load(t, s, rows, 1)))
	s.SetState(meta(), StateRefused, "no replica identity")
	expect("refused", StateRefused, nil)
	if st := s.Statuses(); st[0].Detail != "no replica identity" || st[0].Bytes != 0 {
		t.Errorf("Statuses() = %+v", st)
	}
	s.Publish(s.NewRelation(load(t, s, rows, 1)))
	s.Remove(7)
	s.Remove(7)
	expect("removed", StateCopying, nil)
	if s.Catalog() == nil {
		t.Error("no catalog")
	}
	c := &catalog.Catalog{}
	s.SetCatalog(c)
	if s.Catalog() != c {
		t.Error("SetCatalog had no effect")
	}
	if calls != 8 {
		t.Errorf("OnCatalog was called %d times, want 8", calls)
	}
	mustPanic(t, "SetState(StateReady)", func() { s.SetState(meta(), StateReady, "") })
}

// TestReleaseTwice: a wrong count is a bug that must not pass in silence.
func TestReleaseTwice(t *testing.T) {
	s := New(Options{SegmentRows: 1024})
	defer s.Close()
	table := load(t, s, make([]row, 1), 1)
	data := table.Segments[0].Columns[1]
	table.Retain()
	table.Release()
	table.Release()
	if invariant.Enabled && data.Nulls[0] != 0xdbdbdbdbdbdbdbdb {
		t.Errorf("released memory holds %x, not poison", data.Nulls[0])
	}
	mustPanic(t, "Release", table.Release)
	mustPanic(t, "Retain", table.Retain)
}

// TestReaders: readers, publishers and changes at once; nobody sees memory that
// was given back, and none is lost.
func TestReaders(t *testing.T) {
	s := New(Options{SegmentRows: 1024})
	defer s.Close()
	rows := make([]row, 1500)
	for i := range rows {
		rows[i] = row{int64(i), float64(i), nil, "x", "y"}
	}
	var wg sync.WaitGroup
	done := make(chan struct{})
	reads := make([]int, 3)
	for r := range reads {
		wg.Go(func() {
			for {
				if table, _ := s.Get(7); table != nil {
					check(t, table, rows)
					table.Release()
					reads[r]++
				}
				select {
				case <-done:
					if reads[r] > 0 {
						return
					}
				default:
				}
			}
		})
	}
	for i := range 40 {
		s.Publish(s.NewRelation(load(t, s, rows, 2)))
		if i%4 == 1 {
			s.MarkChanged(7)
		}
	}
	close(done)
	wg.Wait()
	s.Remove(7)
	if used, _ := s.Usage(); used != 0 {
		t.Errorf("%d bytes lost", used)
	}
}
