package server

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"pgaccel/internal/console"
	"pgaccel/proxy"
)

// listenHTTP opens the listener of the HTTP side, nil where there is none.
func (s *Server) listenHTTP() (net.Listener, error) {
	if s.cfg.HTTP == "" {
		return nil, nil
	}
	l, err := proxy.Listener(s.ctx, s.cfg.HTTP, s.cfg.ReusePort)
	if err != nil {
		return nil, fmt.Errorf("--http: %w", err)
	}
	return l, nil
}

// serveHTTP serves /metrics, /livez (/healthz is the same), /readyz and the console.
func (s *Server) serveHTTP(l net.Listener) {
	s.httpAddr = l.Addr()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry(), promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /livez", livez)
	mux.HandleFunc("GET /healthz", livez)
	mux.HandleFunc("GET /readyz", s.readyz)
	s.console = s.newConsole()
	mux.Handle(console.Path, s.console)
	mux.Handle("GET /{$}", http.RedirectHandler(console.Path, http.StatusFound))
	if s.cfg.Pprof {
		profiles(mux)
	}
	s.http = newHTTPServer(mux, httpIdle)
	go s.http.Serve(l)
}

// newConsole makes the console over the clients' listener and the metrics, but for those of Go and the process.
func (s *Server) newConsole() *console.Console {
	metrics := prometheus.NewRegistry()
	s.register(metrics)
	var databases []string // as clients give them
	for _, d := range s.databases {
		databases = append(databases, cmp.Or(d.name, d.own.Database))
	}
	return console.New(console.Config{HTTP: s.httpAddr, HTTPName: s.cfg.HTTP, Clients: s.proxy.Addr, Databases: databases, Metrics: metrics, Version: Version(), Log: s.log})
}

// profiles serves Go's profiles of the process, as its tools ask for them.
func profiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound) // --upstream may be in it
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}

// httpIdle is how long a connection is kept between requests: longer than the interval
// at which most of those who scrape metrics do.
const httpIdle = 2 * time.Minute

// newHTTPServer bounds what one client can hold: time, connections at rest, headers.
func newHTTPServer(h http.Handler, idle time.Duration) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute,
		IdleTimeout: idle, MaxHeaderBytes: 16 << 10}
}
