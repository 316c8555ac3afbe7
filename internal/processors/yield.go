package processors

import "time"

const (
	// turn is how long who computes for long keeps a core that others wait for: a tenth of what
	// they may notice.
	turn = 100 * time.Microsecond
	// turnPieces is how many pieces of work pass between two looks at the clock.
	turnPieces = 4
)

// Turn is what a goroutine that computes for long notes of its time on a core. Linux takes a
// core from who computes only with the clock's tick, each 4 ms with most kernels, if others do
// not have the right to it as they wake up (they have had as much as their share, as a session
// under load has): each step of a relayed statement, of the client, the event loop, the server's
// process, would wait for a tick. The zero value is ready.
type Turn struct {
	pieces uint
	since  time.Time
}

// Next is called between pieces of work, each of microseconds. Once the turn is over it lets
// others run that wait for the core, and costs next to nothing where nobody does.
func (t *Turn) Next() {
	if t.pieces++; t.pieces%turnPieces != 0 || time.Since(t.since) < turn {
		return
	}
	yield()
	t.since = time.Now()
}
