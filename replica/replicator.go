package replica

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

// Config says what to copy from where.
type Config struct {
	Upstream   string   // pgx connection string; its role copies and streams
	Accelerate []string // table patterns: public.*, sales, !public.log; auto is what Choose says
	Store      *colstore.Store
	// OtherDatabases are those of the same server that other Replicators of the process copy: their slots are not looked at here.
	OtherDatabases []string
	// Workers is the most sessions that copy at once; 0 is one a core, 32 at most. There are
	// fewer where that would be more than a quarter of the connections that are free on the
	// server, or where their buffers would exceed a quarter of the store's memory limit.
	Workers     int
	RecopyQuiet time.Duration // the pause before a table that could not follow the stream is copied again; 0 is 2 s
	// MaxRetainedWAL is the most write-ahead log, in bytes, that the replication slot may
	// keep the server from removing; beyond it the slot is dropped and everything is
	// forwarded, for a while. 0 is 4 GiB, below 0 is no limit.
	MaxRetainedWAL int64
	// DataDir is a folder where the columns are kept over restarts; "" for none. The
	// replication slot is permanent then: it retains log while nobody is there.
	DataDir string
	// AwaitDataDir waits for a data directory that another process uses, which is about to
	// end; until then everything is forwarded. Otherwise that is an error.
	AwaitDataDir bool
	// CheckpointInterval is how often they are saved there; 0 is a minute.
	CheckpointInterval time.Duration
	// ApplicationName is what the sessions are called on the server; "" is pgaccel.
	ApplicationName string
	Logger          *slog.Logger
	Progress        func(Progress) // of copies, on any goroutine; may be nil

	backoffMax time.Duration // the longest pause between streams; 0 is the default
}

// Progress is how far the copy of a table is.
type Progress struct {
	Table               string // schema.name
	Rows, EstimatedRows int64
	Bytes               int64 // received
	Done                bool  // the last report of a copy that succeeded
}

// Replicator keeps the copies. It lives until Close, through failures of the
// server: while there is no stream, every query is forwarded.
type Replicator struct {
	cfg      Config
	patterns atomic.Pointer[patterns]
	conn     *pgx.ConnConfig
	name     string // of publication and slot
	hashKey  hashKey
	log      *slog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	// closing ends before ctx does: the columns are saved in between.
	closing context.Context
	close   context.CancelFunc
	done    chan struct{}
	origin  logOrigin      // of the last stream; run's
	disk    *colstore.Disk // run's; nil without a data directory
	named   nameSet        // run's
	anew    string         // run's: why the next stream copies everything though the last had it; "" where it need not

	mu      sync.Mutex
	current *epoch
	changed chan struct{} // closed and replaced when something that Ready depends on changes
	lastErr error

	lookout lookout
	health  *health
}

const (
	backoffMin = 200 * time.Millisecond
	backoffMax = 15 * time.Second
	// After the slot was dropped for the log that it retained, the next would soon
	// retain as much.
	retainedBackoffMin = 5 * time.Second
	retainedBackoffMax = 5 * time.Minute
)

// Start begins to copy. It fails only where the configuration cannot be right; a
// server that is down or not set up for replication is tried again and again. The end
// of ctx is not the end of the Replicator: Close has the columns saved first.
func Start(ctx context.Context, cfg Config) (*Replicator, error) {
	if cfg.Store == nil {
		panic("BUG: replica without a store")
	}
	p, err := parsePatterns(cfg.Accelerate)
	if err != nil {
		return nil, err
	}
	if cfg.Workers <= 0 {
		cfg.Workers = copySessions()
	}
	if cfg.RecopyQuiet <= 0 {
		cfg.RecopyQuiet = 2 * time.Second
	}
	if cfg.backoffMax <= 0 {
		cfg.backoffMax = backoffMax
	}
	if cfg.MaxRetainedWAL == 0 {
		cfg.MaxRetainedWAL = 4 << 30
	}
	if cfg.CheckpointInterval <= 0 {
		cfg.CheckpointInterval = checkpointEvery
	}
	if cfg.ApplicationName == "" {
		cfg.ApplicationName = "pgaccel"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	conn, err := connConfig(cfg.Upstream, cfg.ApplicationName)
	if err != nil {
		return nil, err
	}
	var id [6]byte
	rand.Read(id[:])
	r := &Replicator{cfg: cfg, conn: conn, name: publicationPrefix + hex.EncodeToString(id[:]), hashKey: newHashKey(), log: cfg.Logger, named: nameSet{},
		done: make(chan struct{}), changed: make(chan struct{}), lookout: lookout{free: make(chan struct{}, 1)}, health: newHealth()}
	r.patterns.Store(&p)
	if err := r.openDisk(); err != nil && !(cfg.AwaitDataDir && errors.Is(err, syscall.EWOULDBLOCK)) {
		return nil, err
	}
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.closing, r.close = context.WithCancel(r.ctx)
	go r.run()
	return r, nil
}

// connConfig returns the configuration of all our sessions: settings under which
// what we send means what we mean, and that let long copies live.
func connConfig(upstream, application string) (*pgx.ConnConfig, error) {
	c, err := pgx.ParseConfig(upstream)
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	for name, value := range map[string]string{
		"application_name": application, "client_encoding": "UTF8", "TimeZone": "UTC", "DateStyle": "ISO", "search_path": "",
		"standard_conforming_strings": "on", "default_transaction_isolation": "read committed", "default_transaction_read_only": "off",
		"statement_timeout": "0", "lock_timeout": "10s", "idle_in_transaction_session_timeout": "0",
		// Row-level security must fail a copy, not thin it out.
		"row_security": "off",
		// A COPY (SELECT) gains nothing from these.
		"max_parallel_workers_per_gather": "0", "jit": "off",
		// Our few writes may not wait for a standby.
		"synchronous_commit": "local",
	} {
		c.RuntimeParams[name] = value
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 10 * time.Second
	}
	c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		// Not every version has these; the others are set with the connection.
		var n int // of 15.18, 18beta1, 19devel
		fmt.Sscanf(conn.ParameterStatus("server_version"), "%d", &n)
		sql := ""
		switch {
		case n >= 17:
			sql = "SET idle_session_timeout = 0; SET transaction_timeout = 0"
		case n >= 14:
			sql = "SET idle_session_timeout = 0"
		default:
			return nil
		}
		_, err := conn.Exec(ctx, sql).ReadAll()
		return err
	}
	return c, nil
}

// run goes from one epoch to the next.
func (r *Replicator) run() {
	defer close(r.done)
	r.cfg.Store.OnWait(r.want)
	if err := r.awaitDisk(); err != nil {
		return
	}
	wait, most := backoffMin, r.cfg.backoffMax
	for r.ctx.Err() == nil {
		start := time.Now()
		err := r.epoch()
		if r.ctx.Err() != nil {
			break
		}
		var retained *retainedError
		switch {
		case errors.As(err, &retained):
			wait, most = max(wait, retainedBackoffMin), retainedBackoffMax
		case time.Since(start) > 10*wait: // it had worked
			wait, most = backoffMin, r.cfg.backoffMax
		}
		r.health.failed(err, false)
		r.mu.Lock()
		r.lastErr = err
		r.mu.Unlock()
		attributes := []any{"error", err, "retry_in", wait}
		if r.anew != "" {
			attributes = append(attributes, "then", "everything is copied again: "+r.anew)
		}
		r.log.Warn("replication ended; everything is forwarded", attributes...)
		r.notify()
		if sleep(r.ctx, wait) != nil {
			break
		}
		wait = min(2*wait, most)
	}
}

// want is the store's hook.
func (r *Replicator) want(target uint64) {
	r.mu.Lock()
	e := r.current
	r.mu.Unlock()
	if e != nil {
		e.barrier.want(target)
	}
}

// Recheck looks at the catalog soon: somebody saw a table that is not as it was
// copied.
func (r *Replicator) Recheck(oid uint32) {
	r.mu.Lock()
	e := r.current
	r.mu.Unlock()
	if e != nil {
		e.kick()
	}
}

// SetPatterns changes what is copied. Tables that no pattern matches any more are given up. Where auto is new among the patterns,
// it stands for what is copied.
func (r *Replicator) SetPatterns(texts []string) error {
	p, err := parsePatterns(texts)
	if err != nil {
		return err
	}
	r.mu.Lock()
	if was := r.patterns.Load(); p.auto && !was.auto {
		if cat := r.cfg.Store.Catalog(); cat != nil {
			p.chosen = namesOf(cat.Tables)
		}
	} else {
		p.chosen = was.chosen
	}
	r.patterns.Store(&p)
	r.mu.Unlock()
	r.Recheck(0)
	return nil
}

// Choose says which tables the word auto among the patterns stands for. Those that it does not stand for any more are given up.
// It stands for those of the last checkpoint at first, so that these go on.
func (r *Replicator) Choose(tables []*catalog.Table) {
	r.choose(tables)
	r.Recheck(0)
}

func (r *Replicator) choose(tables []*catalog.Table) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := *r.patterns.Load()
	p.chosen = namesOf(tables)
	r.patterns.Store(&p)
}

func namesOf(tables []*catalog.Table) map[string]bool {
	names := map[string]bool{}
	for _, t := range tables {
		names[t.Schema+"\x00"+t.Name] = true
	}
	return names
}

// ByAuto reports whether a table is copied because auto stands for it, and no other pattern matches it.
func (r *Replicator) ByAuto(t *catalog.Table) bool { return r.patterns.Load().byAuto(t.Schema, t.Name) }

// MemoryRaised says that the store's limit was raised: tables that did not fit are tried again.
func (r *Replicator) MemoryRaised() {
	r.mu.Lock()
	e := r.current
	r.mu.Unlock()
	if e != nil {
		e.reg.retryRefused()
		signal(e.copySoon)
	}
}

// Connected reports whether the stream is up.
func (r *Replicator) Connected() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current != nil
}

// Ready reports whether the stream is up and every chosen table is copied, or
// refused, or was overtaken by changes while it was copied.
func (r *Replicator) Ready() bool {
	r.mu.Lock()
	e := r.current
	r.mu.Unlock()
	return e != nil && e.reg.settled()
}

// RetainedWAL returns the bytes of write-ahead log that the replication slot keeps the
// server from removing, as of a second ago, or where nothing happens there some seconds
// ago; 0 while there is no stream.
func (r *Replicator) RetainedWAL() int64 {
	r.mu.Lock()
	e := r.current
	r.mu.Unlock()
	if e == nil {
		return 0
	}
	return e.watch.retained.Load()
}

// Err returns why there is no stream; nil while there is one or before the first.
func (r *Replicator) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current != nil {
		return nil
	}
	return r.lastErr
}

// WaitReady waits for Ready.
func (r *Replicator) WaitReady(ctx context.Context) error {
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		if r.Ready() {
			return nil
		}
		select {
		case <-changed:
		case <-r.done:
			return errors.New("replication is closed")
		case <-ctx.Done():
			if err := r.Err(); err != nil {
				return fmt.Errorf("%w (replication: %w)", ctx.Err(), err)
			}
			return ctx.Err()
		}
	}
}

func (r *Replicator) notify() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
}

// Close ends the sessions, and drops publication and slot where the server can be
// reached; with a data directory it saves the columns and leaves both. The store keeps
// no table that was copied.
func (r *Replicator) Close() {
	r.close()
	r.mu.Lock()
	e := r.current
	r.mu.Unlock()
	if e != nil && e.disk != nil {
		select {
		case <-e.saved:
		case <-e.ctx.Done():
		}
	}
	r.cancel()
	r.lookout.close()
	<-r.done
	if r.disk != nil {
		if last := r.disk.Last(); last != nil && len(last.Tables) > 0 {
			r.log.Info("columns are saved; the replication slot retains log until pgaccel comes back", "directory", r.cfg.DataDir, "tables", len(last.Tables),
				"give_up", "SELECT pg_drop_replication_slot("+catalog.QuoteLiteral(r.name)+"); DROP PUBLICATION "+catalog.QuoteIfNeeded(r.name))
		}
		r.disk.Close()
	}
}
