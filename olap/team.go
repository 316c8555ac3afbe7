package olap

import (
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"pgaccel/internal/processors"
)

// team is the goroutines that do one piece of work together: the caller's and, while slots
// are idle, others.
type team struct {
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

// member is one goroutine of a team.
type member struct {
	team *team
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
	t := &team{x: x, most: n, work: work, asked: 1}
	t.missing.Store(n > 1)
	t.extend()
	t.run() // it is over then
	t.mu.Lock()
	left := t.seats
	t.seats = 0
	t.mu.Unlock()
	for ; left > 0 && x.opt.Slots != nil; left-- {
		x.opt.Slots.release()
	}
	for began := time.Now(); t.running.Load() > 0; {
		if time.Since(began) > endsSoon {
			x.aside(t.wg.Wait)
			break
		}
	}
	t.wg.Wait()
	if p, ok := t.err.(*panicked); ok {
		panic(p)
	}
	return t.err
}

// extend asks for others while slots are idle.
func (t *team) extend() {
	if !t.missing.Load() {
		return
	}
	s := t.x.opt.Slots
	t.mu.Lock()
	n := 0
	for t.asked < t.most && !t.over && (s == nil || s.try()) {
		t.asked++
		n++
	}
	t.seats += n
	t.missing.Store(t.asked < t.most)
	t.mu.Unlock()
	processors.Start(n, t.help)
}

// help is what another goroutine does, unless it comes too late.
func (t *team) help() {
	t.mu.Lock()
	if t.seats == 0 {
		t.mu.Unlock()
		return
	}
	t.seats--
	t.running.Add(1)
	t.wg.Add(1)
	t.mu.Unlock()
	defer t.wg.Done()
	defer t.running.Add(-1)
	if s := t.x.opt.Slots; s != nil {
		defer s.release()
	}
	t.run()
}

// run is one goroutine's part. Whoever ends first has found nothing left, or failed.
func (t *team) run() {
	t.mu.Lock()
	over := t.over
	t.mu.Unlock()
	if over {
		return
	}
	m := &member{t, newHold(t.x.opt.Slots, t.x.turn)}
	err := m.guarded()
	m.hold.charge(1, 0)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if _, worse := err.(*panicked); err != nil && (worse || t.err == nil) {
		t.err = err
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
	return m.team.work(m)
}

// pause is called between pieces of work.
func (m *member) pause() {
	m.hold.pause(m.team.x.ctx, 1)
	m.team.x.moveUp()
	m.team.extend()
}
