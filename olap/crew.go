package olap

import (
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"pgaccel/internal/processors"
)

// crew is the goroutines that do one piece of work together: the caller's and, while slots
// are idle, others.
type crew struct {
	x       *execution
	most    int
	work    func(m *member) error
	missing atomic.Bool  // fewer than most have been asked for
	running atomic.Int32 // others that have begun and not ended
	wg      sync.WaitGroup

	mu    sync.Mutex
	asked int // all that have begun or may, the caller's included
	seats int // of those that have not begun; each has a slot
	over  bool
	err   error
}

// member is one goroutine of a crew.
type member struct {
	crew *crew
	hold hold
}

// endsSoon is how long the caller looks whether the others have ended before it waits: each
// has a morsel at most to do, and who waits is woken late.
const endsSoon = 50 * time.Microsecond

// together calls work on the caller's goroutine and on up to n-1 others, which may begin
// later or not at all: work takes what there is to do, piece by piece, and calls pause in
// between; once it returns there is nothing left that nobody has begun. The error is one of
// those that were returned, and a panic comes up on the caller's goroutine.
func (x *execution) together(n int, work func(m *member) error) error {
	c := &crew{x: x, most: n, work: work, asked: 1}
	c.missing.Store(n > 1)
	c.recruit()
	c.run() // it is over then
	c.mu.Lock()
	left := c.seats
	c.seats = 0
	c.mu.Unlock()
	for ; left > 0 && x.opt.Slots != nil; left-- {
		x.opt.Slots.release()
	}
	for began := time.Now(); c.running.Load() > 0; {
		if time.Since(began) > endsSoon {
			x.aside(c.wg.Wait)
			break
		}
	}
	c.wg.Wait()
	if p, ok := c.err.(*panicked); ok {
		panic(p)
	}
	return c.err
}

// recruit asks for others while slots are idle.
func (c *crew) recruit() {
	if !c.missing.Load() {
		return
	}
	s := c.x.opt.Slots
	c.mu.Lock()
	n := 0
	for c.asked < c.most && !c.over && (s == nil || s.try()) {
		c.asked++
		n++
	}
	c.seats += n
	c.missing.Store(c.asked < c.most)
	c.mu.Unlock()
	processors.Start(n, c.help)
}

// help is what another goroutine does, unless it comes too late.
func (c *crew) help() {
	c.mu.Lock()
	if c.seats == 0 {
		c.mu.Unlock()
		return
	}
	c.seats--
	c.running.Add(1)
	c.wg.Add(1)
	c.mu.Unlock()
	defer c.wg.Done()
	defer c.running.Add(-1)
	if s := c.x.opt.Slots; s != nil {
		defer s.release()
	}
	c.run()
}

// run is one goroutine's part. Whoever ends first has found nothing left, or failed.
func (c *crew) run() {
	c.mu.Lock()
	over := c.over
	c.mu.Unlock()
	if over {
		return
	}
	m := &member{c, newHold(c.x.opt.Slots, c.x.turn)}
	err := m.guarded()
	m.hold.charge(1, 0)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if _, worse := err.(*panicked); err != nil && (worse || c.err == nil) {
		c.err = err
	}
}

func (m *member) guarded() (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *panicked:
			err = r
		default:
			err = &panicked{r, debug.Stack()}
		}
	}()
	return m.crew.work(m)
}

// pause is called between pieces of work.
func (m *member) pause() {
	m.hold.pause(m.crew.x.ctx, 1)
	m.crew.x.moveUp()
	m.crew.recruit()
}
