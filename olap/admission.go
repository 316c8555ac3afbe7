package olap

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// admission bounds the executions that scan at a time: all that have begun keep hash
// tables, which push each other's out of the caches, and all end late where each could have
// ended after those before it. The others wait in the order in which they came, which is
// fair between sessions, as a session executes one statement at a time. The places are
// shared by executions of the same order of magnitude only, so that short ones do not wait
// for long ones to end.
//
// Work is an estimate. Who has computed for longer than its class is for takes a place of a
// larger one, and leaves its own to short ones. It does not wait for that: others of its
// goroutines, or a scan that it shares, would compute on meanwhile. Where no larger class
// has a place that nobody waits for it keeps its own, and looks again after each morsel. It
// may take a place of a class that is too large for it: those there have the time.
//
// Who waits has no slot, and who has a place waits for slots only. The place is given back
// when the result is there, so that a client that reads slowly, or a portal that is read
// in parts, holds none. A statement has one place, whatever it reads of intermediate
// relations and of its own groups: were it to wait for another, several could hold what all wait for.
type admission struct {
	classes [6]class
	waiting atomic.Int32
}

// class is the executions of one order of magnitude.
type class struct {
	most   time.Duration // work of one of them is less, of one in the last class too, or more
	larger *class        // nil: the last

	mu    sync.Mutex
	free  int
	queue []chan struct{} // closed when there is a place for who waits at it
}

// place is that of a statement's executions.
type place struct {
	class atomic.Pointer[class] // nil where it needs none, or waits for it
	since int64                 // turn.spent when it was had
}

// classRatio is by how much the work of one class is more than that of the one before it.
const classRatio = 16

func (a *admission) init(places int) {
	most := slice
	for i := range a.classes {
		most *= classRatio
		a.classes[i].most, a.classes[i].free = most, places
		if i > 0 {
			a.classes[i-1].larger = &a.classes[i]
		}
	}
}

// class returns that of an execution by its estimated work; nil where it needs no place,
// because it is over within a slice.
func (a *admission) class(work time.Duration) *class {
	if work < slice {
		return nil
	}
	c := &a.classes[0]
	for c.larger != nil && work >= c.most {
		c = c.larger
	}
	return c
}

// try takes a place that nobody waits for.
func (c *class) try() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.free == 0 {
		return false
	}
	c.free--
	return true
}

// wait waits for a place. Where the context ends first there is none.
func (c *class) wait(ctx context.Context) error {
	c.mu.Lock()
	if c.free > 0 {
		c.free--
		c.mu.Unlock()
		return nil
	}
	ready := make(chan struct{})
	c.queue = append(c.queue, ready)
	c.mu.Unlock()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	i := slices.Index(c.queue, ready)
	if i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
	}
	c.mu.Unlock()
	if i < 0 {
		c.leave()
	}
	return ctx.Err()
}

// leave gives a place to who has waited longest.
func (c *class) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		c.free++
		return
	}
	close(c.queue[0])
	c.queue = slices.Delete(c.queue, 0, 1)
}

// admit waits until the execution may scan, for which work is the estimate. What it did
// before, lookups, it keeps meanwhile. A statement that has a place already does not wait: it takes one of
// a class for this work, if that has one.
func (x *execution) admit(work time.Duration) (err error) {
	s := x.opt.Slots
	if s == nil {
		return nil
	}
	if x.opt.Eager {
		work = max(work, slice)
	}
	c := s.admission.class(work)
	if c == nil {
		return nil
	}
	if had := x.place.class.Load(); had != nil {
		if c != had && c.most > had.most && c.try() {
			x.move(had, c)
		}
		return nil
	}
	if !c.try() {
		s.admission.waiting.Add(1)
		s.end(x.turn)
		x.aside(func() {
			err = c.wait(x.ctx)
			s.admission.waiting.Add(-1)
			s.enter(x.turn) // no sooner: it would be far behind the others, and hold them up
		})
		if err != nil {
			return err
		}
	}
	x.place.since = x.turn.spent.Load()
	x.place.class.Store(c)
	return nil
}

// move gives a place back for one of another class, which has been taken, unless another goroutine has done so
// or the execution has ended.
func (x *execution) move(from, to *class) {
	if x.place.class.CompareAndSwap(from, to) {
		from.leave()
	} else {
		to.leave()
	}
}

// moveUp is called between morsels, by any goroutine that computes for the execution: one
// that has had more time than its class is for takes a place of a larger one, if there is one.
func (x *execution) moveUp() {
	if x.opt.Slots == nil {
		return
	}
	c := x.place.class.Load()
	if c == nil || c.larger == nil {
		return
	}
	had := time.Duration(x.turn.spent.Load() - x.place.since)
	if had < c.most {
		return
	}
	for to := c.larger; to != nil; to = to.larger {
		if had >= to.most && to.larger != nil || !to.try() {
			continue
		}
		x.move(c, to)
		return
	}
}

// leave gives the statement's place back.
func (x *execution) leave() {
	if c := x.place.class.Swap(nil); c != nil {
		c.leave()
	}
}

// Queued returns the number of executions that wait until others have ended.
func (s *Slots) Queued() int { return int(s.admission.waiting.Load()) }
