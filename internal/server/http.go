package server

import (
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"pgaccel/colstore"
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

// serveHTTP serves /metrics, /livez (/healthz is the same), /readyz and the console at /.
func (s *Server) serveHTTP(l net.Listener) {
	s.httpAddr = l.Addr()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry(), promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /livez", livez)
	mux.HandleFunc("GET /healthz", livez)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.HandleFunc("GET /{$}", s.console)
	if s.cfg.Pprof {
		profiles(mux)
	}
	s.http = newHTTPServer(mux, httpIdle)
	go s.http.Serve(l)
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

var consolePage = template.Must(template.New("console").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>pgaccel</title>
<meta http-equiv="refresh" content="5">
<style>body{font:15px/1.5 system-ui,sans-serif;margin:2rem;max-width:70rem;color:#222}table{border-collapse:collapse;margin:1rem 0}
td,th{padding:.25rem .8rem;border-bottom:1px solid #ddd;text-align:left}td.n{text-align:right;font-variant-numeric:tabular-nums}</style></head>
<body><h1>pgaccel {{.Version}}</h1>
<p>{{.Accelerated}} queries accelerated, {{.Partial}} in part, {{.Forwarded}} forwarded. Column memory: {{.UsedMiB}} of {{.LimitMiB}} MiB. {{.Device}}.
<a href="/metrics">metrics</a></p>
<table><tr><th>table<th>state<th>rows<th>KiB<th></tr>
{{range .Tables}}<tr><td>{{.Name}}<td>{{.State}}<td class="n">{{.Rows}}<td class="n">{{.KiB}}<td>{{.Detail}}</tr>
{{else}}<tr><td colspan="5">No tables yet.</tr>{{end}}</table>
<table><tr><th>forwarded because of<th>executions</tr>
{{range .Reasons}}<tr><td>{{.Reason}}<td class="n">{{.N}}</tr>
{{else}}<tr><td colspan="2">Nothing forwarded yet.</tr>{{end}}</table>
<p>In SQL: <code>SELECT * FROM pgaccel.tables</code>, <code>pgaccel.columns</code>, <code>pgaccel.queries</code>, <code>pgaccel.devices</code>,
<code>pgaccel.status</code>, <code>pgaccel.sessions</code>.</p>
</body></html>`))

type consoleTable struct {
	colstore.Status
	KiB int64
}

type consoleReason struct {
	Reason string
	N      int64
}

// console shows what an operator asks first: what is copied, what is answered.
func (s *Server) console(w http.ResponseWriter, _ *http.Request) {
	used, limit := s.store.Usage()
	page := struct {
		Version                         string
		Accelerated, Partial, Forwarded int64
		UsedMiB, LimitMiB               int64
		Device                          string
		Tables                          []consoleTable
		Reasons                         []consoleReason
	}{Version: Version(), UsedMiB: used >> 20, LimitMiB: limit >> 20, Device: s.device.describe()}
	for _, st := range s.store.Statuses() {
		page.Tables = append(page.Tables, consoleTable{st, st.Bytes >> 10})
	}
	if s.engine != nil {
		for _, n := range s.engine.Counts() {
			if n.Route == "accelerated" {
				page.Accelerated += n.N
				continue
			}
			if n.Route == "partial" {
				page.Partial += n.N
			} else {
				page.Forwarded += n.N
			}
			page.Reasons = append(page.Reasons, consoleReason{string(n.Reason), n.N})
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := consolePage.Execute(w, page); err != nil {
		s.log.Debug("console page", "error", err)
	}
}
