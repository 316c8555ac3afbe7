package proxy

import (
	"log/slog"
	"net"
	"time"

	"pgaccel/wire"
)

// The log of connections (Settings.LogConnections) has a line for each client that the server has let in, one for the end of
// each session, also of one whose login failed, and one for each client that gets no session, as PostgreSQL's log_connections
// and log_disconnections do. Nothing is in it of what the client asks.

// connectionLog writes the lines of one client; nil writes none.
type connectionLog struct {
	log    *slog.Logger
	client string
	tls    bool
}

// connectionLog returns the log for a client, nil where the settings that were in force when it connected want none.
func (s *Server) connectionLog(conn net.Conn, now *Settings, tls bool) *connectionLog {
	if !now.LogConnections {
		return nil
	}
	return &connectionLog{log: s.log, client: clientName(conn.RemoteAddr()), tls: tls}
}

// clientName is the address as PostgreSQL's log has it: clients of a Unix socket have none.
func clientName(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.String()
	}
	return "[local]"
}

// refused is for a client that gets no session.
func (l *connectionLog) refused(why Refusal) {
	if l != nil {
		l.log.Info("connection refused", "client", l.client, "tls", l.tls, "reason", string(why))
	}
}

// authorized is for a client that the server has let in.
func (l *connectionLog) authorized(s *session) {
	if l != nil {
		l.log.Info("connection authorized", l.of(s)...)
	}
}

// closed is for the end of a session.
func (l *connectionLog) closed(s *session) {
	if l == nil {
		return
	}
	reason := s.endReason
	if reason == "" {
		reason = endPgaccel
	}
	l.log.Info("disconnection", append(l.of(s), "duration", time.Since(s.info.began), "reason", reason)...)
}

// of says whose session it is. The process is the server's, as its own log names it.
func (l *connectionLog) of(s *session) []any {
	list := []any{"client", l.client, "tls", l.tls, "user", s.info.user, "database", s.info.database}
	if name := s.info.application.Load(); name != nil && *name != "" {
		list = append(list, "application_name", *name)
	}
	if pid := s.pid(); pid != 0 {
		list = append(list, "server_pid", pid)
	}
	return list
}

// Why sessions end. Where the server says why, it is FATAL with its SQLSTATE.
const (
	endTerminate = "client terminated"               // by a Terminate message
	endClient    = "client closed the connection"    // without one
	endServer    = "server closed the connection"    // without an error that was understood
	endPgaccel   = "pgaccel ended the session"       // it ends, or is drained
	endBroken    = "the session cannot be continued" // the log says more, at level error
)

// endError is the reason where the server ends the session by an ErrorResponse.
func endError(body []byte) string { return "FATAL " + string(wire.ErrorField(body, 'C')) }

// ends notes why the session ends; the first reason counts, what follows from it does not.
func (s *session) ends(reason string) {
	if s.endReason == "" {
		s.endReason = reason
	}
}
