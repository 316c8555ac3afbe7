package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
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
	if err == nil && r.URL.Query().Has("tables") {
		err = s.copiedAll()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "ready\n")
}

// copiedAll returns which database's tables are being copied.
func (s *Server) copiedAll() error {
	for _, d := range s.databases {
		switch {
		case d.replicator == nil || d.replicator.Ready():
		case d.name == "":
			return errors.New("copying")
		default:
			return errors.New("copying " + d.name)
		}
	}
	return nil
}

// servesSessions returns why no session would begin, nil where one would: of several databases in any of them. Were one server's end
// to take all clients away, the others' would lose theirs.
func (s *Server) servesSessions(ctx context.Context) error {
	if s.draining.Load() {
		return errors.New("draining")
	}
	if slices.ContainsFunc(s.databases, func(d *database) bool { return d.replicator != nil && d.replicator.Connected() }) {
		return nil
	}
	all := make([]error, len(s.databases))
	var asking sync.WaitGroup
	for i, d := range s.databases {
		asking.Go(func() { all[i] = d.takesSessions(ctx) })
	}
	asking.Wait()
	if slices.Contains(all, nil) {
		return nil
	}
	return errors.Join(all...)
}

// takesSessions asks the server, as pg_isready does by the beginning of a session.
func (d *database) takesSessions(ctx context.Context) error {
	d.ready.mu.Lock()
	defer d.ready.mu.Unlock()
	if time.Since(d.ready.asked) > readyFor {
		d.ready.err = d.sessions.Upstream.TakesSessions(context.WithoutCancel(ctx), d.own.User, d.own.Database)
		d.ready.asked = time.Now()
	}
	return d.ready.err
}
