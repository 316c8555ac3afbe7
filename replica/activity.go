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
	watch poller        // watcher.run
	look  poller        // epoch.manage
}

// poller is a loop that polls the server, or waits for the stream's position to move.
type poller struct {
	waiting atomic.Bool
	wakeup  chan struct{}
}

const (
	// activeFor is how long a loop goes on polling after the last move.
	activeFor = 2 * time.Second
	// idleInterval is the time between polls where nothing moves.
	idleInterval = 5 * time.Second
)

func newActivity() *activity {
	return &activity{watch: poller{wakeup: make(chan struct{}, 1)}, look: poller{wakeup: make(chan struct{}, 1)}}
}

// move notes that the stream's position has moved. It is called for each commit.
func (a *activity) move() {
	a.moves.Add(1)
	a.watch.wake()
	a.look.wake()
}

func (p *poller) wake() {
	if p.waiting.Load() {
		signal(p.wakeup)
	}
}

// idleTimer is since when one poller has seen the stream's position stand still.
type idleTimer struct {
	moves uint64
	since time.Time
}

// idle reports whether nothing has moved for activeFor. Where it says true, the next move
// wakes p up.
func (t *idleTimer) idle(a *activity, p *poller) bool {
	if now := time.Now(); t.moved(a, now) || now.Sub(t.since) < activeFor {
		p.waiting.Store(false)
		return false
	}
	p.waiting.Store(true)
	if t.moved(a, time.Now()) { // just before it could be woken up
		p.waiting.Store(false)
		return false
	}
	return true
}

// moved notes whether there were moves since it was last asked.
func (t *idleTimer) moved(a *activity, now time.Time) bool {
	n := a.moves.Load()
	if n == t.moves && !t.since.IsZero() {
		return false
	}
	t.moves, t.since = n, now
	return true
}
