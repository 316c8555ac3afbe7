package replica

import (
	"sync/atomic"
	"time"
)

// activity tells the loops that poll the server whether anything happens there. All that
// they look for, changes of tables, of the catalog, of the publication, is in the log
// before it is visible, and the stream's position follows the log by itself: the server
// tells it whenever it has sent what is flushed. So where the position stands still there
// is nothing to find, and they wait, for idleInterval at most: that covers what becomes
// visible later than its record is sent (a commit that waits for a standby), and settings,
// which are not in the log.
type activity struct {
	moves atomic.Uint64 // positions that the stream has reached
	watch sleeper
	look  sleeper
}

// sleeper is a loop that waits for the next move.
type sleeper struct {
	asleep atomic.Bool
	bell   chan struct{}
}

const (
	// activeFor is how long a loop goes on polling after the last move.
	activeFor = 2 * time.Second
	// idleInterval is the time between polls where nothing moves.
	idleInterval = 5 * time.Second
)

func newActivity() *activity {
	return &activity{watch: sleeper{bell: make(chan struct{}, 1)}, look: sleeper{bell: make(chan struct{}, 1)}}
}

// move notes that the stream's position has moved. It is called for each commit.
func (a *activity) move() {
	a.moves.Add(1)
	a.watch.wake()
	a.look.wake()
}

func (s *sleeper) wake() {
	if s.asleep.Load() {
		signal(s.bell)
	}
}

// calm is since when one loop has seen no move.
type calm struct {
	moves uint64
	since time.Time
}

// quiet reports whether nothing has moved for activeFor. Where it says true, the next
// move rings s's bell.
func (c *calm) quiet(a *activity, s *sleeper) bool {
	if now := time.Now(); c.moved(a, now) || now.Sub(c.since) < activeFor {
		s.asleep.Store(false)
		return false
	}
	s.asleep.Store(true)
	if c.moved(a, time.Now()) { // just before the bell could be rung
		s.asleep.Store(false)
		return false
	}
	return true
}

// moved notes whether there were moves since it was last asked.
func (c *calm) moved(a *activity, now time.Time) bool {
	n := a.moves.Load()
	if n == c.moves && !c.since.IsZero() {
		return false
	}
	c.moves, c.since = n, now
	return true
}
