package proxy

import (
	"context"
	"time"

	"pgaccel/upstream"
	"pgaccel/wire"
)

// When the server ends, each client is told so as Postgres tells it (57P01), at the
// boundary of a message, and what its session has running on the server is cancelled: a
// backend that computes does not notice that its client has gone.

const (
	// terminateGrace is how long clients have to take the rest of a message, and the last
	// one. Then their connections are closed.
	terminateGrace = 2 * time.Second
	// terminateCancels bounds the cancel requests under way at one time.
	terminateCancels = 32
)

var terminatedError = wire.ErrorFields{Severity: "FATAL", Code: "57P01", Message: "terminating connection due to administrator command",
	File: "postgres.c", Routine: "ProcessInterrupts"}

// terminator is a session that can take its leave.
type terminator interface{ terminate() }

// terminate ends every connection.
func (s *Server) terminate() {
	s.closeListeners()
	for _, c := range s.closers() {
		if t, ok := c.(terminator); ok {
			t.terminate()
		} else {
			c.close() // nothing that is no session yet is answered, as by Postgres
		}
	}
	time.AfterFunc(terminateGrace, s.closeAll)
}

// cancelRunning sends a cancel request to the server for what a session has running
// there. It does not wait. The session's own count keeps the server from ending.
func (s *Server) cancelRunning(sess *session, at upstream.Endpoint) {
	if sess.terminating || sess.key == nil || !sess.running() {
		return
	}
	packet := wire.AppendStartup(nil, wire.CancelRequestCode, sess.key)
	s.wg.Go(func() {
		// From now on, for all of them together: a server that does not answer must not keep
		// this process.
		ctx, cancel := context.WithTimeout(context.Background(), terminateGrace)
		defer cancel()
		select {
		case s.cancels <- struct{}{}:
			defer func() { <-s.cancels }()
		case <-ctx.Done():
		}
		if err := sess.database.Upstream.Cancel(ctx, at, packet); err != nil {
			s.log.Warn("a statement may be running on, its cancel request was not delivered", "error", err)
		}
	})
}

// running reports whether the server may be at work for the session.
func (s *session) running() bool { return s.opaque || s.copyIn || s.queue.len() > 0 }

// terminate ends the session: the client gets the rest of the message that it has the
// beginning of, and the last word; nothing else passes any more.
func (s *session) terminate() {
	if s.terminating {
		return
	}
	s.abandon()
	if s.local != nil {
		s.local.letGo(&statementCache{}) // nobody reads the rest of its rows
	}
	s.local, s.implicit, s.execution = nil, implicitTransaction{}, nil
	s.terminating = true
	s.ends(endPgaccel)
	s.tellTerminated()
}

// tellTerminated sends the last message, FATAL 57P01, where a message can begin. Where that
// is not known, it is left out.
func (s *session) tellTerminated() {
	switch {
	case s.toldTerminated:
	case s.ending, s.opaque && s.started: // the server has said it; or where messages begin is not known
		s.toldTerminated = true
	case s.rest.server == 0 || s.rest.swallow:
		s.toldTerminated = true
		s.toClient.add(wire.AppendError(nil, terminatedError))
	}
}

// serverLeaving is server for a session that is terminating.
func (s *session) serverLeaving(b []byte) int {
	if !s.toldTerminated {
		n := min(s.rest.server, len(b))
		s.toClient.add(b[:n])
		s.rest.server -= n
		s.tellTerminated()
	}
	return len(b)
}
