package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"pgaccel/upstream"
	"pgaccel/wire"
)

// Server accepts clients. Listen makes one.
type Server struct {
	cfg       Config
	settings  atomic.Pointer[Settings]
	log       *slog.Logger
	observer  Observer
	listeners []net.Listener

	ctx        context.Context // ends every session
	cancel     context.CancelFunc
	wg         sync.WaitGroup // handshakes and sessions, and goroutines
	goroutines *goroutinePool // for sessions' planning, executions and checks
	// accepting are the accept loops.
	accepting sync.WaitGroup

	mu       sync.Mutex
	open     int               // client connections
	shaking  int               // connections, up to the end of their handshake
	closing  bool              // no new sessions
	draining bool              // nothing more is accepted
	sessions map[string]target // by process id and cancel key, as in BackendKeyData
	all      map[closer]struct{}
	warned   bool          // of clients let in unasked
	drained  chan struct{} // closed once nobody is left; see checkDrained

	held      budget
	slow      statementLog
	executing atomic.Int32  // executions, checks and the like that are computed at this time
	checks    chan struct{} // as many as are computed at this time
	cancels   chan struct{} // as many as are delivered at this time, of terminate

	loopMu sync.Mutex
	loops  []*loop // started with the first sessions
	turn   int     // of the loops
}

// driver is a running session as cancel requests see it.
type driver interface {
	// cancelExecution stops an accelerated execution and reports whether there was
	// one; if not, the server is the one to ask.
	cancelExecution() bool
}

// target is where a cancel request goes.
type target struct {
	driver
	endpoint upstream.Endpoint
	database *Database
	info     *sessionInfo
	client   net.Addr
}

// closer is anything that ends with the server: a connection in its handshake or a
// session.
type closer interface{ close() }

// Listen opens the listeners. Clients are served once Serve runs. ctx ends the
// server and its sessions.
func Listen(ctx context.Context, cfg Config) (*Server, error) {
	s := &Server{cfg: cfg, log: cfg.Logger, observer: cfg.Observer, sessions: map[string]target{}, all: map[closer]struct{}{}, drained: make(chan struct{}),
		checks: make(chan struct{}, checksMax), cancels: make(chan struct{}, terminateCancels)}
	if s.held.limit = cfg.MessageMemory; s.held.limit <= 0 {
		s.held.limit = heldMessages
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.observer == nil {
		s.observer = noObserver{}
	}
	if cfg.Default == nil && len(cfg.Databases) == 0 {
		return nil, errors.New("no database")
	}
	s.slow.log, s.slow.wg, s.slow.tracer = s.log, &s.wg, cfg.Tracer
	if len(cfg.Listen) == 0 {
		return nil, errors.New("no address to listen on")
	}
	if err := s.Reload(Settings{TLS: cfg.TLS, RequireTLS: cfg.RequireTLS, MaxConnections: cfg.MaxConnections, Shadow: cfg.Shadow, LogConnections: cfg.LogConnections, SlowQueryLog: cfg.SlowQueryLog}); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.goroutines = newGoroutinePool(s.ctx, &s.wg)
	if err := s.listenAll(ctx); err != nil {
		s.closeListeners()
		s.cancel()
		return nil, err
	}
	return s, nil
}

func (s *Server) listenAll(ctx context.Context) error {
	for _, address := range s.cfg.Listen {
		l, err := Listener(ctx, address, s.cfg.ReusePort)
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, l)
	}
	return nil
}

// Addr is the first listener's address.
func (s *Server) Addr() net.Addr { return s.listeners[0].Addr() }

// Serve accepts clients until ctx, the context of Listen or Shutdown ends it. It
// returns nil after Shutdown or the end of a context.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	defer context.AfterFunc(s.ctx, s.terminate)()
	errs := make(chan error, len(s.listeners))
	for _, l := range s.listeners {
		s.accepting.Go(func() { errs <- s.accept(l) })
	}
	var first error
	for range s.listeners {
		if err := <-errs; err != nil && first == nil {
			first = err
			s.closeListeners()
		}
	}
	if first == nil {
		<-s.ctx.Done() // the sessions go on
	}
	if s.ctx.Err() != nil {
		s.wg.Wait()
		s.stopLoops()
		return nil
	}
	return first
}

func (s *Server) accept(l net.Listener) error {
	delay := time.Millisecond
	for {
		conn, err := l.Accept()
		if err == nil {
			delay = time.Millisecond
			s.wg.Add(1)
			s.mu.Lock()
			s.shaking++
			s.mu.Unlock()
			go s.serve(conn)
			continue
		}
		s.mu.Lock()
		closing := s.closing
		s.mu.Unlock()
		if closing || s.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return nil
		}
		// Out of descriptors, most likely: wait rather than end the service.
		s.log.Warn("accept failed", "error", err)
		select {
		case <-time.After(delay):
		case <-s.ctx.Done():
		}
		delay = min(2*delay, time.Second)
	}
}

// serve runs one connection up to its end. No panic in it ends the process.
func (s *Server) serve(conn net.Conn) {
	defer s.wg.Done()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.shaking--
		s.checkDrained()
	}()
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("session panicked", "panic", p, "stack", string(debug.Stack()))
			conn.Close()
		}
	}()
	s.handshake(conn)
}

const tooManyConnections = "53300"

// admit counts a client in, or says why not.
func (s *Server) admit() (code, message string) {
	most := s.settings.Load().MaxConnections
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing:
		return "57P03", "the database system is shutting down"
	case most > 0 && s.open >= most:
		return tooManyConnections, "sorry, too many clients already"
	}
	s.open++
	return "", ""
}

// Sessions is the number of clients that have been admitted.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.checkDrained()
}

// checkDrained is called with the lock held. Shutdown does not wait for those who have not
// said yet what they want.
func (s *Server) checkDrained() {
	if s.open == 0 && (s.closing || s.draining && s.shaking == 0) {
		select {
		case <-s.drained:
		default:
			close(s.drained)
		}
	}
}

// track makes c end with the server.
func (s *Server) track(c closer) {
	s.mu.Lock()
	s.all[c] = struct{}{}
	s.mu.Unlock()
	if s.ctx.Err() != nil {
		c.close()
	}
}

func (s *Server) untrack(c closer) {
	s.mu.Lock()
	delete(s.all, c)
	s.mu.Unlock()
}

// register makes cancel requests with the key find a session whose client has been
// let in.
func (s *Server) register(key string, d target, unasked bool) {
	s.mu.Lock()
	s.sessions[key] = d
	warn := unasked && !s.warned && !isLocal(d.client)
	s.warned = s.warned || warn
	s.mu.Unlock()
	if warn {
		s.log.Warn("the server lets a remote client in without asking for credentials: it sees pgaccel's address, "+
			"not the client's, so that trust or peer lines of pg_hba.conf for pgaccel hold for everybody who reaches pgaccel", "client", d.client)
	}
}

func isLocal(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return !ok || t.IP.IsLoopback()
}

func (s *Server) unregister(key string, d driver) {
	s.mu.Lock()
	if s.sessions[key].driver == d {
		delete(s.sessions, key)
	}
	s.mu.Unlock()
}

func (s *Server) closeListeners() {
	for _, l := range s.listeners {
		l.Close()
	}
}

func (s *Server) closeAll() {
	for _, c := range s.closers() {
		c.close()
	}
}

// closers are all that ends with the server.
func (s *Server) closers() []closer {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]closer, 0, len(s.all))
	for c := range s.all {
		list = append(list, c)
	}
	return list
}

// Shutdown stops accepting and waits for clients to leave. When ctx ends first, it
// terminates their sessions, so that Postgres rolls back what they have open, and
// returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	s.checkDrained()
	s.mu.Unlock()
	s.closeListeners()
	var err error
	select {
	case <-s.drained:
	case <-s.ctx.Done():
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.cancel()
	s.terminate()
	s.wg.Wait()
	s.stopLoops()
	return err
}

// fatal answers a client that gets no session.
func fatal(conn net.Conn, code, message string) {
	fatalError(conn, wire.ErrorFields{Severity: "FATAL", Code: code, Message: message})
}

func fatalError(conn net.Conn, fields wire.ErrorFields) {
	conn.SetWriteDeadline(time.Now().Add(time.Second))
	conn.Write(wire.AppendError(nil, fields))
}
