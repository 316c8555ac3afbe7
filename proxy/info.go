package proxy

import (
	"encoding/binary"
	"net"
	"sync/atomic"
	"time"

	"pgaccel/engine"
	"pgaccel/wire"
)

// sessionInfo is what others may see of a session while it runs (pgaccel.sessions). What stands before now is set before
// the session is registered.
type sessionInfo struct {
	user, database string
	began          time.Time

	application                                 atomic.Pointer[string]
	now                                         atomic.Uint32 // pursuit
	since                                       atomic.Int64  // of now, in nanoseconds since 1970
	accelerated, partial, forwarded, heldResult atomic.Int64
}

// pursuit is what a session does.
type pursuit uint32

const (
	pursuitIdle pursuit = iota
	pursuitInBlock
	pursuitFailed
	pursuitRelayed // it is not looked at
	pursuitForwarded
	pursuitAccelerated
)

// state is what pg_stat_activity calls it; of a session that is not looked at nothing is known.
func (a pursuit) state() string {
	return [...]string{"idle", "idle in transaction", "idle in transaction (aborted)", "", "active", "active"}[a]
}

// route is who has the statement that runs.
func (a pursuit) route() string {
	return [...]string{"", "", "", "forwarded", "forwarded", "accelerated"}[a]
}

func newSessionInfo() *sessionInfo {
	i := &sessionInfo{began: time.Now()}
	i.since.Store(i.began.UnixNano())
	return i
}

// startup takes the settings of the startup packet.
func (i *sessionInfo) startup(list []wire.StartupParameter) {
	for _, p := range list {
		switch p.Name {
		case "user":
			i.user = p.Value
		case "database":
			i.database = p.Value
		case "application_name":
			i.application.Store(&p.Value)
		}
	}
	if i.database == "" {
		i.database = i.user
	}
}

// pursuit returns what the session does at this moment.
func (s *session) pursuit() pursuit {
	switch {
	case s.opaque:
		return pursuitRelayed
	case s.local != nil && !s.local.passedOn():
		return pursuitAccelerated
	case s.local != nil || s.asking != nil || s.queue.len() > 0:
		return pursuitForwarded
	case s.status == 'T':
		return pursuitInBlock
	case s.status == 'E':
		return pursuitFailed
	}
	return pursuitIdle
}

// show brings info up to date, and has the observer count what the server runs of the client's statements. It is called
// after each event.
func (s *session) show() {
	before := pursuit(s.info.now.Load())
	if before < pursuitForwarded {
		s.shown.begun = s.shown.sent
	}
	if n := s.queue.sent; n != s.shown.sent {
		if n > s.shown.sent { // else tracking was stopped
			s.info.forwarded.Add(int64(n - s.shown.sent))
			s.observer.Forwarded(int(n - s.shown.sent))
		}
		s.shown.sent = n
	}
	now := s.pursuit()
	if now == pursuitAccelerated {
		s.shown.local = true
	}
	if now == before {
		return
	}
	at := time.Now()
	if before == pursuitForwarded && now < pursuitRelayed && !s.shown.local {
		s.observer.Served(at.Sub(s.shown.active))
		s.watch.ended(s.shown.sent-s.shown.begun, at.Sub(s.shown.active))
	}
	if now >= pursuitForwarded && before < pursuitForwarded {
		s.shown.active, s.shown.local = at, now == pursuitAccelerated
	}
	if s.shown.local || s.info.heldResult.Load() > 0 {
		s.info.heldResult.Store(s.heldBytes())
	}
	s.info.now.Store(uint32(now))
	if now.state() != before.state() {
		s.info.since.Store(at.UnixNano())
	}
}

// heldBytes is what results take that the client has not read yet.
func (s *session) heldBytes() (n int64) {
	add := func(a *answer) {
		if a != nil && a.batch != nil {
			n += a.batch.Bytes
		}
	}
	for _, p := range s.cache.portals {
		add(p.answer)
	}
	for _, c := range s.cache.cursors {
		add(c.answer)
	}
	if x := s.local; x != nil && x.portal == nil && x.cursor == nil {
		add(x.answer)
	}
	return n
}

// SessionInfos returns the sessions of a database whose clients have been let in.
func (s *Server) SessionInfos(of *Database) []engine.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]engine.SessionInfo, 0, len(s.sessions))
	for key, t := range s.sessions {
		if t.database != of {
			continue
		}
		i := t.info
		now := pursuit(i.now.Load())
		r := engine.SessionInfo{User: i.user, Database: i.database, Port: -1, Started: i.began, State: now.state(), Since: time.Unix(0, i.since.Load()),
			Route: now.route(), Accelerated: i.accelerated.Load(), Partial: i.partial.Load(), Forwarded: i.forwarded.Load(), Held: i.heldResult.Load()}
		if len(key) >= 4 {
			r.PID = int32(binary.BigEndian.Uint32([]byte(key)))
		}
		if name := i.application.Load(); name != nil {
			r.Application = *name
		}
		if a, ok := t.client.(*net.TCPAddr); ok {
			r.Address, r.Port = a.IP.String(), a.Port
		}
		out = append(out, r)
	}
	return out
}
