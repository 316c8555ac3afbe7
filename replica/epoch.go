package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/replica/pgoutput"
)

// epoch is the life of one slot: from its creation to the stream's end. Nothing
// that was copied in one is good in the next.
type epoch struct {
	cfg        *Config
	log        *slog.Logger
	ctx        context.Context
	connCfg    *pgx.ConnConfig
	copyConfig *pgconn.Config
	patterns   *atomic.Pointer[patterns] // the Replicator's
	matched    *patterns                 // those that manage has looked for relations of
	name       string                    // of the publication and the slot
	reg        *registry
	hashKey    hashKey

	server   string         // catalog.DatabaseSQL; "" until the first session has said it
	version  int            // server_version_num
	database string         // its name
	disk     *colstore.Disk // nil without a data directory
	commits  commitLog      // where there is a disk
	origin   *logOrigin     // of the last stream; the Replicator's
	stream   *stream
	barrier  *barrier
	control  *pgx.Conn // of open, then of manage
	watch    *watcher
	activity *activity
	ended    error           // why the stream ended
	closing  context.Context // ends when the Replicator is about to close
	saved    chan struct{}   // closed when no further checkpoint will be saved

	copiers *copySlots
	batches chan struct{} // holds a token for each snapshot held
	copying sync.WaitGroup

	poll      chan struct{}     // look at the catalog soon
	recheck   chan struct{}     // look at where the address leads to
	rechecks  rechecks          // when to, for clients
	lost      chan []uint32     // published relations without a usable replica identity
	copySoon  chan struct{}     // look for tables to copy
	published map[uint32]string // publicationState after our own last change
	refusals  map[uint32]refusal
	health    *health // the Replicator's
	named     nameSet // what was left on the server and has been said; the Replicator's
}

// refusal remembers why a table that matches is not in the publication.
type refusal struct {
	reason      string
	fingerprint catalog.Fingerprint
	retry       time.Time // where the server refused it, not our own reading of the catalog
}

const (
	// minVersion is the oldest server (server_version_num) that is supported: the
	// first with range scans by ctid and with streaming of large transactions.
	minVersion   = 140000
	batchesMax   = 2 // snapshots held at once: each keeps VACUUM back
	pollInterval = time.Second
	refusalRetry = time.Minute
)

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (e *epoch) kick() { signal(e.poll) }

// epoch runs one epoch and returns why it ended.
func (r *Replicator) epoch() error {
	g, ctx := errgroup.WithContext(r.ctx)
	_, memoryLimit := r.cfg.Store.Usage()
	e := &epoch{cfg: &r.cfg, log: r.log, ctx: ctx, connCfg: r.conn, patterns: &r.patterns, name: r.name, hashKey: r.hashKey,
		copiers: newCopySlots(r.cfg.Workers, memoryLimit), batches: make(chan struct{}, batchesMax),
		activity: newActivity(), closing: r.closing, saved: make(chan struct{}), origin: &r.origin, disk: r.disk, poll: make(chan struct{}, 1), recheck: make(chan struct{}, 1), lost: make(chan []uint32), copySoon: make(chan struct{}, 1), refusals: map[uint32]refusal{}, named: r.named, health: r.health}
	e.copyConfig = &r.conn.Copy().Config
	e.copyConfig.AfterConnect = e.onSameServer(e.copyConfig.AfterConnect)
	e.reg = newRegistry(r.cfg.Store, r.cfg.RecopyQuiet, func() { r.notify(); signal(e.copySoon) })
	e.reg.anew, e.reg.completed = r.anew, r.health.completed
	defer e.tidy()
	var batch []*table
	var h *holder
	err := safely(func() (err error) { batch, h, err = e.open(ctx, g); return err })
	if err != nil {
		// The errgroup's context must end; it does with an error of its own.
		g.Go(func() error { return err })
		err = g.Wait() // the first: what cancelled the others
		e.reg.reset("replication is not set up: " + err.Error())
		return err
	}
	store := r.cfg.Store
	store.Advance(e.stream.seen.Load())
	store.SetConnected(true)
	r.health.began()
	r.setCurrent(e)
	e.log.Info("replication stream is up", "tables", e.reg.size(), "to_copy", len(batch), "slot", e.name)
	g.Go(func() error { return safely(e.stream.run) })
	g.Go(func() error { return safely(func() error { return e.recheckServer(ctx) }) })
	g.Go(func() error { return safely(func() error { return e.barrier.run(ctx) }) })
	g.Go(func() error { return safely(func() error { return e.manage(ctx, batch, h) }) })
	if e.disk != nil {
		g.Go(func() error { return safely(func() error { return e.checkpoints(ctx) }) })
	}
	err = g.Wait()
	e.ended = err
	if errors.Is(err, errOtherHistory) {
		e.log.Error("the saved columns are of another history of the server: everything is copied", "error", err, "marker", pglogrepl.LSN(e.stream.expected.End).String())
	}
	// Waits fail from here on; then the copies, which no stream watches any more, go,
	// before a new stream's position could make them look fresh.
	store.SetConnected(false)
	r.setCurrent(nil)
	e.copying.Wait()
	if e.disk == nil {
		r.anew = nothingKept
	}
	e.reg.reset("the replication stream was interrupted")
	return err
}

// nothingKept says why a stream that was interrupted costs all copies: the server drops a
// temporary slot with its session, and a new one begins later in the log.
const nothingKept = "the replication stream was interrupted, and without --data-dir its slot is gone with it"

// safely runs f and makes an error of a panic: a bug here must cost speed, not the
// sessions that the process relays.
func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

func (r *Replicator) setCurrent(e *epoch) {
	r.mu.Lock()
	r.current = e
	r.mu.Unlock()
	r.notify()
}

// open sets up publication, slot, snapshot and stream, in this order, and returns
// the tables to be copied at the slot's snapshot.
func (e *epoch) open(ctx context.Context, g *errgroup.Group) (batch []*table, h *holder, err error) {
	if e.control, err = e.connect(ctx); err != nil {
		return nil, nil, err
	}
	if err = e.checkServer(ctx); err != nil {
		return nil, nil, err
	}
	repl, at, err := e.connectReplication(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			repl.Close(context.WithoutCancel(ctx)) // does nothing once it is taken over
		}
	}()
	if err = e.nameSession(ctx); err != nil {
		return nil, nil, err
	}
	if err = e.clearAbandoned(ctx); err != nil {
		return nil, nil, err
	}
	saved, state, err := e.resumable(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	if saved != nil {
		err = e.load(ctx, saved, state)
	} else {
		err = e.createPublication(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	if err = e.readAndFollow(ctx, saved != nil); err != nil {
		return nil, nil, err
	}
	// From here on: the slot retains log as soon as its creation has begun.
	e.watch = newWatcher(e)
	g.Go(func() error { return safely(func() error { return e.watch.run(ctx) }) })
	s := slot{conn: repl}
	if saved != nil {
		s.point, err = saved.Position, e.enableFailover(ctx, repl)
		if err != nil {
			return nil, nil, err
		}
	} else if s, err = e.openSlot(ctx, repl); err != nil {
		return nil, nil, err
	}
	e.beginAt(at, s.point)
	var held *holder
	if saved == nil {
		if held, err = e.hold(ctx, s.exported); err != nil {
			return nil, nil, err
		}
		defer func() {
			if err != nil {
				held.close()
			}
		}()
		if err = held.settle(ctx, e.control); err != nil {
			return nil, nil, err
		}
		e.reg.near.Store(held.snapshot.Xmax)
	}
	conn, err := takeOver(ctx, s.conn)
	if err != nil {
		return nil, nil, err
	}
	conn.gather, conn.hurried = true, func() bool { return e.cfg.Store.Waiting() > 0 }
	e.stream = &stream{conn: conn, answered: make(chan struct{}, 1), advanced: func(lsn uint64) { e.activity.move(); e.cfg.Store.Advance(lsn) }}
	e.stream.saves.Store(e.disk != nil)
	if saved != nil {
		e.stream.expected = state.Marker
	}
	applier := newApplier(e.reg, e.changeFailed, e.stream.advance)
	if e.disk != nil {
		applier.committed = func(xid, lsn uint64) { e.commits.add(xid, lsn, e.cfg.Store) }
		applier.marked = e.stream.marker
	}
	e.stream.assembler = pgoutput.NewAssembler(applier, 0)
	e.stream.seen.Store(s.point)
	e.stream.saved.Store(s.point)
	e.barrier = newBarrier(e.stream, e.cfg.Store.Waiting, e.connect, e.log)
	if err = e.stream.start(e.name, e.name, e.version); err != nil {
		return nil, nil, fmt.Errorf("starting the stream: %w", err)
	}
	if saved == nil {
		batch, _ = e.reg.begin(true)
		e.reg.hold(batch, held.snapshot)
	}
	return batch, held, nil
}

// givesUp reports whether the epoch ended because its slot must not be, or is not, kept.
func (e *epoch) givesUp() bool {
	var retained *retainedError
	return errors.As(e.ended, &retained) || errors.Is(e.ended, errSlotLost) || errors.Is(e.ended, errOtherHistory) || errors.Is(e.ended, errUnsendable)
}

// tidy leaves nothing of the epoch on the server, as far as it can be reached, but for
// what a data directory needs.
func (e *epoch) tidy() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if e.stream != nil {
		e.stream.conn.Close()
	}
	if e.control == nil {
		return
	}
	e.control.Close(ctx)
	conn, err := pgx.ConnectConfig(ctx, e.connCfg.Copy()) // whichever server there is now
	if err != nil {
		return // the next start drops the publication
	}
	defer conn.Close(ctx)
	if e.disk != nil {
		if last := e.disk.Last(); e.givesUp() || last == nil || len(last.Tables) == 0 {
			if err := errors.Join(e.disk.Forget(), e.dropFreeSlot(ctx, conn)); err != nil {
				e.log.Warn("the replication slot could not be dropped and retains log", "slot", e.name, "error", err)
			}
		}
		return
	}
	if err := dropPublication(ctx, conn, e.name); err != nil {
		e.log.Warn("the publication could not be dropped", "publication", e.name, "error", err)
	}
	// The server drops the temporary slot by itself when it sees that we are gone.
	for there := true; there && sleep(ctx, 5*time.Millisecond) == nil; {
		if conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_catalog.pg_replication_slots s WHERE s.slot_name = $1)", e.name).Scan(&there) != nil {
			return
		}
	}
}
