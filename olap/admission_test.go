package olap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgaccel/plan"
	"pgaccel/vector"
)

// queued returns the number of those who wait in a class.
func (c *class) queued() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}

// TestAdmissionInOrder: places are had in the order of arrival, and who is cancelled
// leaves the queue.
func TestAdmissionInOrder(t *testing.T) {
	c := &class{free: 1}
	if !c.try() || c.try() {
		t.Fatal("there is one place")
	}
	var order []int
	var wg sync.WaitGroup
	gone, cancel := context.WithCancel(context.Background())
	for i := range 4 {
		ctx := context.Background()
		if i == 1 {
			ctx = gone
		}
		wg.Go(func() {
			if err := c.wait(ctx); (err != nil) != (i == 1) {
				t.Errorf("%d: %v", i, err)
			} else if err == nil {
				order = append(order, i) // who has the place is alone
				c.leave()
			}
		})
		eventually(t, "it waits", func() bool { return c.queued() == i+1 })
	}
	cancel()
	eventually(t, "the cancelled one leaves", func() bool { return c.queued() == 3 })
	c.leave()
	wg.Wait()
	if want := []int{0, 2, 3}; !slices.Equal(order, want) || c.free != 1 {
		t.Errorf("served %v, want %v; %d places", order, want, c.free)
	}
}

// TestAdmissionOfTheCancelled: a place that is given to who is cancelled at that moment is
// not lost.
func TestAdmissionOfTheCancelled(t *testing.T) {
	for range 200 {
		c := &class{}
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() {
			if c.wait(ctx) == nil {
				c.leave()
			}
		})
		eventually(t, "it waits", func() bool { return c.queued() == 1 })
		wg.Go(c.leave)
		wg.Go(cancel)
		wg.Wait()
		if c.free != 1 || len(c.queue) != 0 {
			t.Fatalf("%d places, %d wait", c.free, len(c.queue))
		}
	}
}

// TestAdmissionClasses: executions wait for those of their order of magnitude only.
func TestAdmissionClasses(t *testing.T) {
	var a admission
	for work, want := range map[time.Duration]*class{
		0: nil, slice - 1: nil, slice: &a.classes[0], 16*slice - 1: &a.classes[0],
		16 * slice: &a.classes[1], 256*slice - 1: &a.classes[1], 256 * slice: &a.classes[2], time.Second: &a.classes[2], 10 * time.Second: &a.classes[3], time.Minute: &a.classes[3], time.Hour: &a.classes[5],
	} {
		if a.class(work) != want {
			t.Errorf("%v is in another class", work)
		}
	}
}

// TestAdmissionOfExecutions: an execution that waits for a place has no slot and no turn,
// lets short ones pass and can be cancelled; a result that is not read yet has no place.
func TestAdmissionOfExecutions(t *testing.T) {
	var rows [][]any
	for i := range int64(4000) {
		rows = append(rows, []any{i % 10, i})
	}
	table := ints(t, 1024, []string{"a", "b"}, rows)
	in := (&world{tables: []*randomTable{table}}).input()
	tables := []plan.Table{{Meta: table.meta}}
	grouped := &plan.Query{Tables: tables, Grouped: true, Group: []plan.Expr{bigint(0, 0)}, Output: []plan.Expr{plan.Key{Index: 0, T: bigint(0, 0).Type()}},
		Order: []plan.Order{{Expr: plan.Key{Index: 0, T: bigint(0, 0).Type()}}}}
	read := &plan.Query{Tables: tables, Output: []plan.Expr{bigint(0, 1)}}
	for _, q := range []*plan.Query{grouped, read} {
		alone, err := Execute(context.Background(), q, in, Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprint(alone.Columns)
		s := NewSlots(1)
		long, busy := Options{Slots: s, Share: NewSharer(), Eager: true}, &s.admission.classes[0]
		for busy.try() {
		}
		type outcome struct {
			b   *vector.Batch
			err error
		}
		begin := func(ctx context.Context) chan outcome {
			n, done := s.Queued(), make(chan outcome, 1)
			go func() {
				b, err := Execute(ctx, q, in, long)
				done <- outcome{b, err}
			}()
			eventually(t, "it waits for a place", func() bool { return s.Queued() == n+1 && s.idle.Load() })
			return done
		}
		first := begin(context.Background())
		ctx, cancel := context.WithCancel(context.Background())
		second := begin(ctx)
		if s.mu.Lock(); len(s.turns) != 0 {
			t.Error("who waits for a place is among those who want slots")
		}
		s.mu.Unlock()
		if b, err := Execute(context.Background(), q, in, Options{Slots: s}); err != nil || fmt.Sprint(b.Columns) != want {
			t.Errorf("a short one: %v", err)
		}
		cancel()
		if o := <-second; !errors.Is(o.err, context.Canceled) {
			t.Errorf("the cancelled one: %v", o.err)
		}
		busy.leave()
		o := <-first
		if o.err != nil || fmt.Sprint(o.b.Columns) != want {
			t.Errorf("another answer, %v", o.err)
		}
		busy.leave()
		eventually(t, "drivers end", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.free == 1 && len(s.turns) == 0 })
		s.unused(t, 1)
		o.b.Release()
	}
}
