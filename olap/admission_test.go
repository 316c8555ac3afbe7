package olap

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgaccel/plan"
	"pgaccel/pushdown"
	"pgaccel/syntax"
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
	a.init(0)
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
	tables := []plan.Source{{Meta: table.meta}}
	grouped := &plan.Star{Tables: tables, Grouped: true, Group: []plan.Expr{bigint(0, 0)}, Output: []plan.Expr{plan.Key{Index: 0, T: bigint(0, 0).Type()}},
		Order: []plan.Order{{Expr: plan.Key{Index: 0, T: bigint(0, 0).Type()}}}}
	read := &plan.Star{Tables: tables, Output: []plan.Expr{bigint(0, 1)}}
	for _, q := range []*plan.Star{grouped, read} {
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

// TestAdmissionMovesUp: who has computed for longer than its class is for takes a place of a
// larger one that is free, or keeps its own.
func TestAdmissionMovesUp(t *testing.T) {
	s := NewSlots(1)
	classes := &s.admission.classes
	x := &execution{ctx: context.Background(), opt: Options{Slots: s}, turn: s.begin(false), place: new(place)}
	x.turn.spent.Store(int64(time.Hour)) // lookups, before it was admitted
	free := func() (free []int) {
		for i := range classes {
			free = append(free, classes[i].free)
		}
		return free
	}
	step := func(had time.Duration, want ...int) {
		t.Helper()
		x.turn.spent.Store(int64(time.Hour + had))
		if x.moveUp(); !slices.Equal(free(), want) {
			t.Errorf("after %v %v places are free, want %v", had, free(), want)
		}
	}
	if err := x.admit(slice); err != nil {
		t.Fatal(err)
	}
	step(0, 1, 2, 2, 2, 2, 2)
	step(16*slice-1, 1, 2, 2, 2, 2, 2)
	step(16*slice, 2, 1, 2, 2, 2, 2)
	step(256*slice-1, 2, 1, 2, 2, 2, 2)
	for i := 2; i < len(classes); i++ {
		classes[i].free = 0
	}
	step(256*slice, 2, 1, 0, 0, 0, 0)
	classes[4].leave() // too large for it
	step(256*slice, 2, 2, 0, 0, 0, 0)
	step(time.Hour, 2, 2, 0, 0, 0, 0)
	classes[5].leave()
	step(24*time.Hour, 2, 2, 0, 0, 1, 0)
	step(48*time.Hour, 2, 2, 0, 0, 1, 0)
	x.leave()
	x.leave()
	step(0, 2, 2, 0, 0, 1, 1)
}

// TestUnderestimatedMovesUp: an execution that takes longer than estimated gives its place
// back amid its scan, be it its own or a shared one, and all places come back.
func TestUnderestimatedMovesUp(t *testing.T) {
	var rows [][]any
	for i := range int64(8192) {
		rows = append(rows, []any{i % 10, i})
	}
	table := ints(t, 1024, []string{"a", "b"}, rows)
	in := (&world{tables: []*randomTable{table}}).input()
	q := &plan.Star{Tables: []plan.Source{{Meta: table.meta}}, Grouped: true, Group: []plan.Expr{bigint(0, 0)}, Output: []plan.Expr{plan.Key{Index: 0, T: bigint(0, 0).Type()}}}
	defer func() { morsel = nil }()
	for _, share := range []*Sharer{nil, NewSharer()} {
		for _, larger := range []bool{true, false} { // whether a larger class has a place
			s := NewSlots(1)
			classes := &s.admission.classes
			if !larger {
				for i := range classes[1:] {
					classes[1+i].free = 0
				}
			}
			var moved atomic.Int32
			morsel = func(int64) {
				classes[0].mu.Lock()
				defer classes[0].mu.Unlock()
				classes[0].most = 0 // it has been admitted, and takes longer
				if classes[0].free == 2 {
					moved.Add(1)
				}
			}
			b, err := Execute(context.Background(), q, in, Options{Slots: s, Share: share, Eager: true})
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
			if moved.Load() > 0 != larger {
				t.Errorf("shared %v, a place is free %v: moved at %d morsels", share != nil, larger, moved.Load())
			}
			eventually(t, "drivers end", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.free == 1 && len(s.turns) == 0 })
			if larger {
				s.unused(t, 1)
			}
		}
	}
}

// TestAdmissionOnce: a statement that has a place reads its groups, and relations, without another, so that several do
// not hold what all wait for.
func TestAdmissionOnce(t *testing.T) {
	w := newRelationWorld(t, rand.New(rand.NewPCG(7, 1)), 3000, 1024)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, sql := range []string{
		"select id, max(g) from fact group by id having max(k) < min(g) or max(k) is null", // groups are read as rows
		"select f.id, s.c from fact f join (select k, count(*) c from fact group by k) s on s.k = f.k where f.g = 1",
		"select count(*) from fact f where f.g = 2 and f.n > (select avg(n) from fact i where i.k = f.k)",
	} {
		st := pushdown.Plan(syntax.Parse(sql), nil, w.cat)
		if st.Forward != nil {
			t.Fatal(st.Forward)
		}
		s := NewSlots(1)
		var wg sync.WaitGroup
		for range 2 * placesPerSlot {
			wg.Go(func() {
				for range 20 {
					b, err := Execute(ctx, st.Star, w.input(st), Options{Slots: s, Eager: true})
					if err != nil {
						t.Errorf("%s: %v", sql, err)
						return
					}
					b.Release()
				}
			})
		}
		wg.Wait()
		for i := range s.admission.classes {
			if c := &s.admission.classes[i]; c.free != placesPerSlot {
				t.Errorf("%s: %d places of class %d are free", sql, c.free, i)
			}
		}
		s.unused(t, 1)
	}
}
