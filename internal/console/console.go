package console

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

//go:embed assets
var assets embed.FS

// Path is where the console is.
const Path = "/console/"

// Config is what the console works with.
type Config struct {
	HTTP     net.Addr        // of the HTTP listener
	HTTPName string          // as that was asked for (--http)
	Clients  func() net.Addr // where pgaccel listens for clients
	// Databases are those that clients ask for by name; the first is logged in to where none is named.
	Databases []string
	Metrics   prometheus.Gatherer // pgaccel's own; sampled
	Version   string
	Log       *slog.Logger
}

// Console serves the pages.
type Console struct {
	cfg      Config
	names    map[string]bool // of hosts, beside addresses, that a browser may know it by
	loopback bool            // only this machine reaches the listener
	history  *history
	sessions *sessions
	logins   *limiter
	mux      *http.ServeMux
	stop     context.CancelFunc
}

// New begins to sample. Close ends it.
func New(cfg Config) *Console {
	c := &Console{cfg: cfg, names: map[string]bool{"localhost": true}, history: newHistory(), sessions: newSessions(), logins: newLimiter(), mux: http.NewServeMux()}
	if a, ok := cfg.HTTP.(*net.TCPAddr); ok {
		c.loopback = a.IP.IsLoopback()
	}
	if !c.loopback {
		if name, err := os.Hostname(); err == nil {
			c.names[strings.ToLower(name)] = true
		}
		if name, _, err := net.SplitHostPort(cfg.HTTPName); err == nil && name != "" {
			c.names[strings.ToLower(name)] = true
		}
	}
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	c.mux.Handle("GET "+Path, http.StripPrefix(Path, http.FileServerFS(files)))
	c.mux.HandleFunc("GET "+Path+"api/state", c.state)
	c.mux.HandleFunc("GET "+Path+"api/overview", c.overview)
	c.mux.HandleFunc("POST "+Path+"api/login", c.login)
	c.mux.HandleFunc("POST "+Path+"api/logout", c.logout)
	c.mux.HandleFunc("GET "+Path+"api/rows/{name}", c.rows)
	c.mux.HandleFunc("POST "+Path+"api/compare", c.compare)
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	go c.sample(ctx)
	go c.sessions.expire(ctx)
	return c
}

// Close ends sampling and all logins.
func (c *Console) Close() {
	c.stop()
	c.sessions.closeAll()
}

// policy has a page load, and send to, nothing but its own origin, be in no frame, and make no script of text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	if !c.knownHost(r.Host) {
		fail(w, http.StatusMisdirectedRequest, "The console is not known by the name "+r.Host+": use the machine's address, or the name that --http gives.")
		return
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		fail(w, http.StatusForbidden, "This comes from another site's page.")
		return
	}
	if r.Method == http.MethodPost {
		// A form of another site cannot send it, whatever the browser says of origins.
		if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/json" {
			fail(w, http.StatusUnsupportedMediaType, "JSON is wanted.")
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, bodyMax)
	}
	c.mux.ServeHTTP(w, r)
}

// bodyMax bounds the bytes of a request: a statement.
const bodyMax = 1 << 20

// knownHost refuses names that somebody else's DNS may point here (DNS rebinding).
func (c *Console) knownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if a, err := netip.ParseAddr(host); err == nil {
		return !c.loopback || a.IsLoopback()
	}
	return c.names[host]
}

// open reports whether who asks may see what /metrics shows without a login: on this machine, and not through a proxy,
// which may let others in.
func (c *Console) open(r *http.Request) bool {
	return c.loopback && r.Header.Get("X-Forwarded-For") == "" && r.Header.Get("Forwarded") == ""
}

// state says what a page needs to know first.
func (c *Console) state(w http.ResponseWriter, r *http.Request) {
	now := struct {
		Open     bool   `json:"open"`
		User     string `json:"user"`
		Database string `json:"database"`
		Version  string `json:"version"`
		// Several is whether a login may name a database, Databases which there are.
		Several   bool     `json:"several"`
		Databases []string `json:"databases"`
	}{Open: c.open(r), Several: len(c.cfg.Databases) > 1}
	s := c.session(r)
	if s != nil {
		now.User = s.user
	}
	if now.Open || now.User != "" {
		now.Version, now.Database, now.Databases = c.cfg.Version, c.cfg.Databases[0], c.cfg.Databases
	}
	if s != nil {
		now.Database = s.database
	}
	reply(w, now)
}

// overTLS reports whether a proxy in front says that the browser has TLS.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// overview has curves of the last minutes, and what is the case now.
func (c *Console) overview(w http.ResponseWriter, r *http.Request) {
	if !c.open(r) && c.session(r) == nil {
		fail(w, http.StatusUnauthorized, "Log in first.")
		return
	}
	window, ok := windows[r.URL.Query().Get("window")]
	if !ok {
		fail(w, http.StatusBadRequest, "No such window.")
		return
	}
	reply(w, c.history.curves(window))
}

// sample takes a sample at each interval.
func (c *Console) sample(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if families, err := c.cfg.Metrics.Gather(); err != nil {
			c.cfg.Log.Debug("console: metrics", "error", err)
		} else {
			c.history.add(time.Now(), families)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

func fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"error": message})
}
