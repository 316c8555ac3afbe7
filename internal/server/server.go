package server

import (
	"context"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"pgaccel/colstore"
	"pgaccel/engine"
	"pgaccel/internal/console"
	"pgaccel/internal/temp"
	"pgaccel/internal/trace"
	"pgaccel/proxy"
	"pgaccel/replica"
)

// Config is what `pgaccel serve` is told.
type Config struct {
	// Upstream is the postgres:// URL or libpq keywords of the real server; its user copies and streams. Clients that ask for none
	// of Databases go to that server; where it is empty they are refused. Accelerate and DataDir are of its database.
	Upstream   string
	Databases  []Database // that clients ask for by name
	ReusePort  bool       // another process may listen on the same addresses
	Listen     []string   // addresses for clients, host:port or the path of a Unix socket
	HTTP       string     // address for metrics, health and console; "" is off
	Pprof      bool       // and for profiles of the process
	Accelerate []string   // table patterns: public.*, sales, !public.secret; auto: by what statements need
	Device     string     // auto, cpu, cuda[:N[,M...]], emu
	// DeviceMemory is the most bytes of each device's memory to use; 0 is 85 % of
	// what is free. DeviceWorker is the program that has the device; "" looks for it.
	DeviceMemory int64
	DeviceWorker string
	Memory       int64 // bytes of column memory; 0 is 8 GiB, or half of the memory where that is less
	QueryMemory  int64 // bytes that executions and results not read yet hold; 0 is Memory, from 1 GiB to a quarter of the memory
	ReuseMemory  int64 // bytes of results that are kept for queries that ask the same again, beside QueryMemory; 0 is none
	// TempDir is where queries put what query memory does not hold: "" is DataDir/tmp, or the system's
	// folder where that is not memory itself, "off" nowhere. TempLimit bounds the bytes there; 0 is
	// a quarter of what is free.
	TempDir      string
	TempLimit    int64
	Workers      int    // goroutines of one query; 0 is one a core
	CopySessions int    // most sessions that copy at once; see replica.Config.Workers
	TLSCert      string // certificate and key files for clients; both or neither
	TLSKey       string
	// TLSRequire is "on", "off" or "": whether clients over TCP must use TLS. "" is on
	// where there is a certificate and the server leg has TLS.
	TLSRequire string
	WaitLimit  time.Duration // bound on waiting for the stream, then forward
	// MaxRetainedWAL is the most write-ahead log, in bytes, that the replication slot may
	// keep the server from removing; 0 is 4 GiB.
	MaxRetainedWAL int64
	DataDir        string // where the columns are kept over restarts; "" for nowhere
	// CheckpointInterval is how often they are saved there; 0 is a minute.
	CheckpointInterval time.Duration
	MaxClients         int
	SlowQueryLog       *time.Duration // how long a statement takes that is logged; nil logs none
	LogConnections     bool           // clients that come, go, or get no session
	Trials             bool           // PostgreSQL answers what it was found to answer faster
	Shadow             float64        // share, 0 to 1, of the queries that could be accelerated which are checked against Postgres
	Logger             *slog.Logger
	Progress           func(replica.Progress) // of the first copy; may be nil

	SegmentRows int           // rows of a segment, 0 is the store's own; tests make them small
	TrialFloor  time.Duration // tests: see engine.Options
	// ChooseInterval is the pause between looks at which tables statements need; tests: 0 is a minute.
	ChooseInterval time.Duration
	Eager          bool // tests: small tables take the paths of large ones, and are indexed
}

// Server is a running pgaccel.
type Server struct {
	cfg       Config
	log       *slog.Logger
	databases []*database // the default one first, where there is one
	memory    *colstore.Memory
	shared    *engine.Shared
	proxy     *proxy.Server
	tracer    *trace.Tracer // nil where the environment has no endpoint for spans
	device    *deviceSide   // nil with --device cpu
	http      *http.Server
	httpAddr  net.Addr
	console   *console.Console // nil without http
	observer  *observer
	temp      *temp.Space // nil where there is none
	ctx       context.Context
	cancel    context.CancelFunc
	done      chan error
	draining  atomic.Bool
	started   time.Time
}

// Start opens the listeners and begins to copy. It returns once clients can
// connect; until tables are copied their queries are forwarded.
func Start(ctx context.Context, cfg Config) (_ *Server, err error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if _, err := parseDevice(cfg.Device); err != nil {
		return nil, err
	}
	databases, err := cfg.databases()
	if err != nil {
		return nil, err
	}
	clients, err := clientSettings(&cfg)
	if err != nil {
		return nil, err
	}
	cfg.setMemory()
	s := &Server{cfg: cfg, databases: databases, log: cfg.Logger, observer: newObserver(), done: make(chan error, 2), started: time.Now(),
		memory: colstore.NewMemory(cfg.Memory), shared: engine.NewShared(cfg.Workers, cfg.QueryMemory, cfg.ReuseMemory)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.tracer, err = trace.FromEnvironment(ctx, Version(), cfg.Logger); err != nil {
		return nil, err
	}
	if s.device, err = startDevice(s.ctx, &s.cfg, s.memory); err != nil {
		return nil, err
	}
	if s.copies() {
		cfg.warnOfMemory(availableMemory())
		if s.temp, err = openTemp(&cfg); err != nil {
			return nil, err
		}
	}
	sessions := proxy.Config{Listen: cfg.Listen, ReusePort: cfg.ReusePort, Databases: map[string]*proxy.Database{}, TLS: clients.TLS, RequireTLS: clients.RequireTLS,
		Logger: cfg.Logger, MaxConnections: clients.MaxConnections, Observer: s.observer, Shadow: clients.Shadow, LogConnections: clients.LogConnections, SlowQueryLog: clients.SlowQueryLog, Tracer: s.tracer}
	for _, d := range databases {
		if err = s.startDatabase(d); err != nil {
			return nil, err
		}
		if d.name == "" {
			sessions.Default = d.sessions
		} else {
			sessions.Databases[d.name] = d.sessions
		}
	}
	web, err := s.listenHTTP()
	if err != nil {
		return nil, err
	}
	if s.proxy, err = proxy.Listen(s.ctx, sessions); err != nil {
		if web != nil {
			web.Close()
		}
		return nil, fmt.Errorf("--listen: %w", err)
	}
	if web != nil {
		s.serveHTTP(web)
	}
	go func() { s.done <- s.proxy.Serve(s.ctx) }()
	return s, nil
}

// copies reports whether tables of any database are copied.
func (s *Server) copies() bool { return slices.ContainsFunc(s.databases, (*database).copied) }

// Certificate returns the first certificate, DER, of a PEM file; nil without a file.
func Certificate(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert: %w", err)
	}
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return nil, fmt.Errorf("--tls-cert: no certificate in %s", file)
		}
		if block.Type == "CERTIFICATE" {
			return block.Bytes, nil
		}
	}
}

// Addr is the address of the first client listener.
func (s *Server) Addr() net.Addr { return s.proxy.Addr() }

// HTTPAddr is the address of the HTTP listener, nil without one.
func (s *Server) HTTPAddr() net.Addr { return s.httpAddr }

// WaitReady returns when every chosen table of every database is copied or refused.
func (s *Server) WaitReady(ctx context.Context) error {
	for _, d := range s.databases {
		if err := d.waitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Wait returns when the server ends: with ctx of Start, or by an error.
func (s *Server) Wait() error {
	err := <-s.done
	if s.ctx.Err() != nil {
		return nil
	}
	return err
}

// Close ends sessions, removes what was put on the server (publication, slot) and
// gives the memory back.
func (s *Server) Close() {
	if s.console != nil {
		s.console.Close() // its logins are clients
	}
	if s.proxy != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		s.proxy.Shutdown(ctx)
		cancel()
	}
	if s.http != nil {
		s.http.Close()
	}
	var closing sync.WaitGroup
	for _, d := range s.databases {
		closing.Go(d.close) // each may save its columns, and wait for its server
	}
	closing.Wait()
	s.closeTracer()
	s.device.close()
	s.cancel()
	for _, d := range s.databases {
		if d.store != nil {
			d.store.Close()
		}
	}
	s.memory.Close()
}

// tracerTimeout bounds the sending of the last spans.
const tracerTimeout = 2 * time.Second

func (s *Server) closeTracer() {
	ctx, cancel := context.WithTimeout(context.Background(), tracerTimeout)
	defer cancel()
	s.tracer.Close(ctx)
}

// version is what a package is built as: go build -ldflags '-X pgaccel/internal/server.version=1.2.3'.
var version string

// Version is the package's version, the module's, or the revision it was built from.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, st := range info.Settings {
		if st.Key == "vcs.revision" {
			return "devel-" + st.Value[:min(12, len(st.Value))]
		}
	}
	return "devel"
}

// registry has all metrics: those of databases, where there are several, with their names.
func (s *Server) registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	s.register(r)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}
