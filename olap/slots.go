package olap

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Slots bounds the goroutines that compute at a time, over all executions that have it, so
// that others of the process find a processor whenever they need one. An execution computes
// with one at least; it has more while nobody waits. Those who wait are served by the time
// that their executions have had, the least first, so that a short one passes long ones
// whatever their number. Who computes looks after each morsel whether others wait.
//
// Every goroutine of an execution that computes holds a slot, and gives it up while it waits
// for another goroutine, or for a device. It is safe for concurrent use.
type Slots struct {
	mu         sync.Mutex
	free       int // below 0 where some of a cancelled execution did not wait
	spare      int // stay free while there are several executions
	turns      map[*turn]struct{}
	executions int       // among turns
	queue      []*waiter // in the order of arrival
	waiting    atomic.Int32
	idle       atomic.Bool // one can be had, and nobody waits

	admission admission
}

// turn is an execution, or a shared scan, among those that want slots.
type turn struct {
	scan  bool         // a shared scan
	used  atomic.Int64 // nanoseconds of slots, from where the least of the others was when it began
	spent atomic.Int64 // an execution's nanoseconds of slots, and its part of those of shared scans
}

// waiter is a goroutine that waits for a slot.
type waiter struct {
	t     *turn
	ready chan struct{} // closed when it has one
}

// morsel, where tests set it, is told of each segment that is begun (1) and ended (-1).
var morsel func(int64)

// slice is how long a goroutine computes before it looks whether others wait.
const slice = 2 * time.Millisecond

// placesPerSlot is the executions of one order of magnitude that scan at a time, for each
// slot: while some wait for a scan, or merge, others compute.
const placesPerSlot = 2

// spareOne is the slots of which one stays free while there are several executions. Postgres'
// processes, event loops, gates and clients find a core then without waiting for a time slice of
// someone's, milliseconds; with 16 cores executions lose nothing by it, which have gates of
// their own.
const spareOne = 8

// NewSlots returns n slots.
func NewSlots(n int) *Slots {
	s := &Slots{free: n, spare: n / spareOne, turns: map[*turn]struct{}{}}
	s.admission.init(placesPerSlot * n)
	s.idle.Store(n > 0)
	return s
}

// available reports whether a slot can be had. The lock is held.
func (s *Slots) available() bool {
	if s.executions > 1 {
		return s.free > s.spare
	}
	return s.free > 0
}

// Waiting returns the number of goroutines that wait for a slot.
func (s *Slots) Waiting() int { return int(s.waiting.Load()) }

// begin returns an execution's or a shared scan's turn, which starts with the least of those
// that there are.
func (s *Slots) begin(scan bool) *turn {
	t := &turn{scan: scan}
	s.enter(t)
	return t
}

// enter has a turn be among the others, and not behind them.
func (s *Slots) enter(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	least, first := int64(0), true
	for o := range s.turns {
		if used := o.used.Load(); first || used < least {
			least, first = used, false
		}
	}
	t.used.Store(max(t.used.Load(), least))
	s.turns[t] = struct{}{}
	if !t.scan {
		s.executions++
	}
	s.noteIdle()
}

func (s *Slots) end(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.turns, t)
	if !t.scan {
		s.executions--
	}
	s.serve()
}

// acquire waits for a slot. On its return the caller has one, also where the context has
// ended, whose error it returns: who only cleans up need not wait.
func (s *Slots) acquire(ctx context.Context, t *turn) error {
	s.mu.Lock()
	if s.available() && len(s.queue) == 0 {
		s.take()
		s.mu.Unlock()
		return ctx.Err()
	}
	w := &waiter{t, make(chan struct{})}
	s.queue = append(s.queue, w)
	s.waiting.Add(1)
	s.idle.Store(false)
	s.mu.Unlock()
	select {
	case <-w.ready:
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, o := range s.queue {
			if o == w {
				s.remove(i)
				s.take()
				break
			}
		}
	}
	return ctx.Err()
}

// try takes a slot that nobody waits for.
func (s *Slots) try() bool {
	if !s.idle.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.available() || len(s.queue) > 0 {
		return false
	}
	s.take()
	return true
}

// release gives a slot to who has had least.
func (s *Slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	s.serve()
}

// serve, noteIdle, take and remove are called with the lock held. serve has those who wait have what
// is available.
func (s *Slots) serve() {
	for s.available() && len(s.queue) > 0 {
		least := 0
		for i, w := range s.queue {
			if w.t.used.Load() < s.queue[least].t.used.Load() {
				least = i
			}
		}
		w := s.queue[least]
		s.remove(least)
		s.take()
		close(w.ready)
	}
	s.noteIdle()
}

func (s *Slots) noteIdle() { s.idle.Store(s.available() && len(s.queue) == 0) }

func (s *Slots) take() {
	s.free--
	s.noteIdle()
}

func (s *Slots) remove(i int) {
	s.queue = append(s.queue[:i], s.queue[i+1:]...)
	s.waiting.Add(-1)
}

// hold is what a goroutine that has a slot notes.
type hold struct {
	slots *Slots // nil: there is no bound
	turn  *turn
	since time.Time
}

func newHold(s *Slots, t *turn) hold {
	h := hold{slots: s, turn: t}
	if s != nil {
		h.since = time.Now()
	}
	return h
}

// pause is called between morsels that served as many turns as shared says: others who wait
// compute first, if it is their turn.
func (h *hold) pause(ctx context.Context, shared int) {
	if h.slots == nil || h.charge(shared, slice) < slice || h.slots.waiting.Load() == 0 {
		return
	}
	h.slots.release()
	_ = h.slots.acquire(ctx, h.turn) // the next morsel looks at ctx
	h.since = time.Now()
}

// charge adds the time since the last charge to the turn, unless it is shorter than least.
func (h *hold) charge(shared int, least time.Duration) time.Duration {
	if h.slots == nil {
		return 0
	}
	now := time.Now()
	d := now.Sub(h.since)
	if d >= least {
		h.turn.used.Add(int64(d) / int64(max(shared, 1)))
		h.turn.spent.Add(int64(d))
		h.since = now
	}
	return d
}

// aside runs f, which waits and does not compute, without the caller's slot.
func (x *execution) aside(f func()) {
	if s := x.opt.Slots; s != nil {
		s.release()
		defer func() { _ = s.acquire(x.ctx, x.turn) }() // the next morsel looks at the context
	}
	f()
}
