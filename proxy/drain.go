package proxy

import (
	"context"
	"time"
)

// A server that is drained takes no more connections, and each session goes on until it
// is at rest: between two statements, outside of a transaction, and for a while, so that
// a client that is about to send the next one is not hit. It is told then, as in terminate.go.

// idleInterval is how often sessions are looked at. Two looks in a row that find one at
// rest, with no byte of the client's between them, end it: pools ask a connection that
// has been idle for so long whether it still works.
const idleInterval = 500 * time.Millisecond

// idleCloser is a session that can leave once it is at rest.
type idleCloser interface{ closeWhenIdle() }

// idleCheck is what one look at a session has found.
type idleCheck struct {
	found bool
	read  int64 // bytes from the client until then
}

// stillIdle reports whether the session has been at rest since the last look.
func (l *idleCheck) stillIdle(rests bool, read int64) bool {
	again := rests && l.found && l.read == read
	l.found, l.read = rests, read
	return again
}

// Drain closes the listeners and waits for sessions to end, each of which it ends at rest.
// Those that are left when ctx ends, whose error it returns then, go on until Shutdown or
// the end of the server's context.
func (s *Server) Drain(ctx context.Context) error {
	s.closeListeners()
	s.accepting.Wait() // what they have accepted is counted now
	s.mu.Lock()
	s.draining = true
	s.checkDrained()
	s.mu.Unlock()
	tick := time.NewTicker(idleInterval)
	defer tick.Stop()
	for {
		for _, c := range s.closers() {
			if r, ok := c.(idleCloser); ok {
				r.closeWhenIdle()
			}
		}
		select {
		case <-s.drained:
			return nil
		case <-s.ctx.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// isIdle reports whether the session is between two statements, outside of a transaction.
// Of one that is relayed without a look that is not known.
func (s *session) isIdle() bool {
	return s.started && !s.opaque && !s.terminating && !s.ending && !s.blocked() && !s.implicit.open() && !s.sending() &&
		s.queue.len() == 0 && s.status == 'I' && !s.inBatch && !s.skipping && !s.copyIn && !s.answered && s.rest.client == 0 && s.rest.server == 0
}
