package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// readiness remembers whether the server was last found to take sessions, so that probes,
// however many come, cost it one a second.
type readiness struct {
	mu    sync.Mutex
	asked time.Time
	err   error
}

const readyFor = time.Second

// livez says that the process answers: what cannot be mended by a restart is not its matter.
func livez(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") }

// readyz says whether sessions can be served, forwarding included; with ?tables whether
// the tables are copied, too.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	err := s.servesSessions(r.Context())
	if err == nil && r.URL.Query().Has("tables") && s.replicator != nil && !s.replicator.Ready() {
		err = errors.New("copying")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "ready\n")
}

// servesSessions returns why no session would begin, nil where one would.
func (s *Server) servesSessions(ctx context.Context) error {
	switch {
	case s.draining.Load():
		return errors.New("draining")
	case s.replicator != nil && s.replicator.Connected():
		return nil
	}
	s.ready.mu.Lock()
	defer s.ready.mu.Unlock()
	if time.Since(s.ready.asked) > readyFor {
		s.ready.err = s.probe(context.WithoutCancel(ctx))
		s.ready.asked = time.Now()
	}
	return s.ready.err
}

// probe asks the server as pg_isready does: by the beginning of a session.
func (s *Server) probe(ctx context.Context) error {
	own, err := pgconn.ParseConfig(s.cfg.Upstream)
	if err != nil {
		return errors.New("--upstream cannot be read") // the error has the password
	}
	return s.upstream.TakesSessions(ctx, own.User, own.Database)
}
