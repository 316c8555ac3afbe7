package olap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgaccel/plan"
)

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// unused asserts that all n slots are free and nobody waits.
func (s *Slots) unused(t *testing.T, n int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free != n || len(s.queue) != 0 || s.waiting.Load() != 0 || len(s.turns) != 0 || s.idle.Load() != (n > 0) {
		t.Errorf("%d of %d slots are free, %d wait (%d), %d turns, idle %v", s.free, n, len(s.queue), s.waiting.Load(), len(s.turns), s.idle.Load())
	}
	for i := range s.admission.classes {
		c := &s.admission.classes[i]
		if c.free != placesPerSlot*n || len(c.queue) != 0 || s.Queued() != 0 {
			t.Errorf("class %d: %d of %d places are free, %d wait (%d)", i, c.free, placesPerSlot*n, len(c.queue), s.Queued())
		}
	}
}

// TestSlotsServeTheLeast: who has had least is served first, whenever it came, and who
// begins is not behind those that have computed for long.
func TestSlotsServeTheLeast(t *testing.T) {
	s := NewSlots(1)
	ctx := context.Background()
	long, longer := s.begin(false), s.begin(false)
	long.used.Store(5e9)
	longer.used.Store(6e9)
	young := s.begin(false)
	if used := young.used.Load(); used != 5e9 {
		t.Errorf("a turn begins at %d, the least of the others is 5e9", used)
	}
	young.used.Store(1e9)
	s.end(young)
	if s.enter(young); young.used.Load() != 5e9 {
		t.Errorf("a turn that comes back has %d, the least of the others is 5e9", young.used.Load())
	}
	young.used.Store(1e9)
	if err := s.acquire(ctx, longer); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var order []string
	var wg sync.WaitGroup
	wait := func(name string, u *turn) {
		n := s.Waiting()
		wg.Go(func() {
			if err := s.acquire(ctx, u); err != nil {
				t.Error(err)
			}
			mu.Lock()
			order = append(order, name)
			mu.Unlock()
			s.release()
		})
		eventually(t, "it waits", func() bool { return s.Waiting() > n })
	}
	wait("longer", longer)
	wait("long", long)
	wait("long again", long)
	wait("young", young)
	if s.try() {
		t.Error("a slot was taken before those who wait")
	}
	s.release()
	wg.Wait()
	if want := []string{"young", "long", "long again", "longer"}; !slices.Equal(order, want) {
		t.Errorf("served %v, want %v", order, want)
	}
	for _, u := range []*turn{long, longer, young} {
		s.end(u)
	}
	s.unused(t, 1)
}

// TestSlotsOfTheCancelled: who is cancelled while it waits does not wait on, and what it
// gives back is no slot more than there were.
func TestSlotsOfTheCancelled(t *testing.T) {
	s := NewSlots(1)
	a, b := s.begin(false), s.begin(false)
	if err := s.acquire(context.Background(), a); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.acquire(ctx, b) }()
	eventually(t, "it waits", func() bool { return s.Waiting() == 1 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.release()
	if s.try() {
		t.Error("there is a slot although the cancelled one has it")
	}
	s.release()
	if !s.try() {
		t.Error("there is no slot")
	}
	s.release()
	s.end(a)
	s.end(b)
	s.unused(t, 1)
}

// TestSlotsBoundWhoComputes: executions of many goroutines, shared scans and cancelled ones
// among them, give the answers that they give alone, and no more compute than there are
// slots.
func TestSlotsBoundWhoComputes(t *testing.T) {
	var rows [][]any
	for i := range int64(20_000) {
		rows = append(rows, []any{i, i % 10, i % 977})
	}
	table := ints(t, 1024, []string{"a", "b", "c"}, rows)
	in := (&world{tables: []*randomTable{table}}).input()
	tables := []plan.Source{{Meta: table.meta}}
	count := &plan.Star{Tables: tables, Grouped: true, Group: []plan.Expr{bigint(0, 2)}, Output: []plan.Expr{plan.Key{Index: 0, T: bigint(0, 2).Type()}},
		Order: []plan.Order{{Expr: plan.Key{Index: 0, T: bigint(0, 2).Type()}}}}
	all := &plan.Star{Tables: tables, Output: []plan.Expr{bigint(0, 0), bigint(0, 1)}}
	queries := []*plan.Star{count, all}
	var want []string
	for _, q := range queries {
		b, err := Execute(context.Background(), q, in, Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprint(b.Columns))
	}
	for _, n := range []int{1, 2, 3, 8} {
		s, share := NewSlots(n), NewSharer()
		var now, most atomic.Int64
		morsel = func(d int64) {
			k := now.Add(d)
			for m := most.Load(); k > m && !most.CompareAndSwap(m, k); m = most.Load() {
			}
		}
		var wg sync.WaitGroup
		for c := range 6 {
			wg.Go(func() {
				for i := range 12 {
					k := (c + i) % len(queries)
					o := Options{Workers: 4, Slots: s, Eager: true}
					if c%2 == 0 {
						o.Share = share
					}
					ctx, cancel := context.WithCancel(context.Background())
					if c == 5 {
						time.AfterFunc(time.Duration(i)*50*time.Microsecond, cancel)
					}
					b, err := Execute(ctx, queries[k], in, o)
					if err == nil && fmt.Sprint(b.Columns) != want[k] || err != nil && (c != 5 || !errors.Is(err, context.Canceled)) {
						t.Errorf("%d slots, query %d: another answer, %v", n, k, err)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		morsel = nil
		eventually(t, "drivers end", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.free == n && len(s.turns) == 0 })
		s.unused(t, n)
		// Who is cancelled does not wait for a slot, but computes nothing any more.
		if most.Load() > int64(n) {
			t.Errorf("%d computed at a time with %d slots", most.Load(), n)
		}
	}
}

// TestSlotsThatStayFree: one execution has all slots, several leave one of eight free, and who
// waits for that has it once the others have ended.
func TestSlotsThatStayFree(t *testing.T) {
	s := NewSlots(16)
	ctx := context.Background()
	a := s.begin(false)
	scan := s.begin(true) // of the same execution
	if err := s.acquire(ctx, a); err != nil {
		t.Fatal(err)
	}
	n := 1
	for s.try() {
		n++
	}
	if n != 16 {
		t.Errorf("an execution alone has %d slots", n)
	}
	b := s.begin(false)
	done := make(chan error)
	go func() { done <- s.acquire(ctx, b) }()
	eventually(t, "it waits", func() bool { return s.Waiting() == 1 })
	s.release()
	s.release()
	if s.Waiting() != 1 {
		t.Error("the other has a slot that should stay free")
	}
	s.release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s.try() {
		t.Error("a slot is taken that should stay free")
	}
	go func() { done <- s.acquire(ctx, a) }()
	eventually(t, "it waits", func() bool { return s.Waiting() == 1 })
	s.end(b)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !s.try() {
		t.Error("none to be had for an execution that is alone again")
	}
	for range 16 {
		s.release()
	}
	s.end(a)
	s.end(scan)
	s.unused(t, 16)
}
