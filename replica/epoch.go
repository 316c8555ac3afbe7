package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

// epoch is the life of one slot: from its creation to the stream's end. Nothing
// that was copied in one is good in the next.
type epoch struct {
	cfg        *Config
	log        *slog.Logger
	ctx        context.Context
	connCfg    *pgx.ConnConfig
	copyConfig *pgconn.Config
	patterns   patterns
	name       string // of the publication and the slot
	reg        *registry

	stream  *stream
	barrier *barrier
	control *pgx.Conn // of open, then of manage

	copiers chan struct{} // holds a token for each session that copies
	batches chan struct{} // and for each snapshot held
	copying sync.WaitGroup

	poll      chan struct{}     // look at the catalog soon
	copySoon  chan struct{}     // look for tables to copy
	published map[uint32]string // publicationState after our own last change
	refusals  map[uint32]refusal
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

func (e *epoch) connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.ConnectConfig(ctx, e.connCfg.Copy())
}

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
	e := &epoch{cfg: &r.cfg, log: r.log, ctx: ctx, connCfg: r.conn, copyConfig: &r.conn.Copy().Config, patterns: r.patterns, name: r.name,
		copiers: make(chan struct{}, r.cfg.Workers), batches: make(chan struct{}, batchesMax),
		poll: make(chan struct{}, 1), copySoon: make(chan struct{}, 1), refusals: map[uint32]refusal{}}
	e.reg = newRegistry(r.cfg.Store, r.cfg.RecopyQuiet, func() { r.notify(); signal(e.copySoon) })
	defer e.tidy()
	var batch []*table
	var h *holder
	err := safely(func() (err error) { batch, h, err = e.open(ctx); return err })
	if err != nil {
		// The errgroup's context must end; it does with an error of its own.
		g.Go(func() error { return err })
		g.Wait()
		e.reg.reset("replication is not set up: " + err.Error())
		return err
	}
	store := r.cfg.Store
	store.Advance(e.stream.seen.Load())
	store.SetConnected(true)
	r.setCurrent(e)
	e.log.Info("replication stream is up", "tables", len(batch), "slot", e.name)
	g.Go(func() error { return safely(e.stream.run) })
	g.Go(func() error { return safely(func() error { return e.barrier.run(ctx) }) })
	g.Go(func() error { return safely(func() error { return e.manage(ctx, batch, h) }) })
	err = g.Wait()
	// Waits fail from here on; then the copies, which no stream watches any more, go,
	// before a new stream's position could make them look fresh.
	store.SetConnected(false)
	r.setCurrent(nil)
	e.copying.Wait()
	e.reg.reset("the replication stream was interrupted")
	return err
}

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
func (e *epoch) open(ctx context.Context) (batch []*table, h *holder, err error) {
	if e.control, err = e.connect(ctx); err != nil {
		return nil, nil, err
	}
	var standby bool
	var version int
	var walLevel string
	err = e.control.QueryRow(ctx, "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('server_version_num')::int, pg_catalog.current_setting('wal_level')").Scan(&standby, &version, &walLevel)
	switch {
	case err != nil:
		return nil, nil, err
	case standby:
		return nil, nil, errors.New("the server is a standby: a snapshot there does not say which transactions it sees; connect to the primary")
	case walLevel != "logical":
		return nil, nil, fmt.Errorf("wal_level is %s, a replication slot needs logical (see pgaccel check)", walLevel)
	case version < minVersion:
		return nil, nil, fmt.Errorf("server version %d is too old: PostgreSQL 14 or later is needed", version/10000)
	}
	cfg := e.copyConfig.Copy()
	cfg.RuntimeParams["replication"] = "database"
	cfg.AfterConnect = nil
	repl, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("replication connection: %w", err)
	}
	defer func() {
		if err != nil {
			repl.Close(context.WithoutCancel(ctx)) // does nothing once it is taken over
		}
	}()
	if err = e.createPublication(ctx); err != nil {
		return nil, nil, err
	}
	cat, refused, err := readCatalog(ctx, e.control, e.patterns)
	if err != nil {
		return nil, nil, err
	}
	if err = e.follow(ctx, cat, refused, false); err != nil {
		return nil, nil, err
	}

	stop := e.logBlockers(ctx, "the replication slot waits for open transactions")
	slot, err := pglogrepl.CreateReplicationSlot(ctx, repl, e.name, "pgoutput",
		pglogrepl.CreateReplicationSlotOptions{Temporary: true, Mode: pglogrepl.LogicalReplication, SnapshotAction: "EXPORT_SNAPSHOT"})
	stop()
	if err != nil {
		return nil, nil, fmt.Errorf("creating the replication slot: %w", err)
	}
	point, err := pglogrepl.ParseLSN(slot.ConsistentPoint)
	if err != nil {
		return nil, nil, err
	}
	if applied := e.cfg.Store.Applied(); uint64(point) < applied {
		// After a failover that lost transactions, positions mean other things: those
		// that the store has passed would look seen.
		return nil, nil, fmt.Errorf("the server's log went back, from %X/%X to %s: restart pgaccel, or wait until it has caught up", applied>>32, uint32(applied), point)
	}
	held, err := e.hold(ctx, slot.SnapshotName)
	if err != nil {
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
	conn, err := takeOver(ctx, repl)
	if err != nil {
		return nil, nil, err
	}
	e.stream = &stream{conn: conn, answered: make(chan struct{}, 1),
		watcher: watcher{change: e.reg.change, advance: e.cfg.Store.Advance}}
	e.stream.seen.Store(uint64(point))
	e.barrier = newBarrier(e.stream, e.cfg.Store.Waiting, e.connect, e.log)
	if err = e.stream.start(e.name, e.name, version); err != nil {
		return nil, nil, fmt.Errorf("starting the stream: %w", err)
	}
	batch, _ = e.reg.begin(true)
	e.reg.hold(batch, held.snapshot)
	return batch, held, nil
}

// tidy leaves nothing of the epoch on the server, as far as it can be reached.
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
	conn, err := e.connect(ctx)
	if err != nil {
		return // the next start drops the publication
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "DROP PUBLICATION IF EXISTS "+quoteIdent(e.name)); err != nil {
		e.log.Warn("the publication could not be dropped", "publication", e.name, "error", err)
	}
	// The server drops the temporary slot by itself when it sees that we are gone.
	for there := true; there && sleep(ctx, 5*time.Millisecond) == nil; {
		if conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_catalog.pg_replication_slots s WHERE s.slot_name = $1)", e.name).Scan(&there) != nil {
			return
		}
	}
}

// manage copies tables when they are due, and follows the catalog.
func (e *epoch) manage(ctx context.Context, first []*table, h *holder) error {
	e.startBatch(first, h)
	if err := e.look(ctx); err != nil {
		return err
	}
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	polled, pause := time.Now(), pollInterval
	for {
		now := time.Now()
		wakeAt := polled.Add(pause)
		select { // a token: another batch may start
		case e.batches <- struct{}{}:
			batch, next := e.reg.begin(false)
			if <-e.batches; len(batch) > 0 {
				e.startBatch(batch, nil)
			} else if next.Before(wakeAt) {
				wakeAt = next
			}
		default:
		}
		timer.Reset(max(wakeAt.Sub(now), time.Millisecond))
		asked := false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.copySoon:
		case <-e.poll:
			asked = true
			// Many sessions may see the same change at once.
			if err := sleep(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		case <-timer.C:
		}
		if !asked && time.Since(polled) < pause {
			continue
		}
		start := time.Now()
		if err := e.look(ctx); err != nil {
			return err
		}
		polled = time.Now()
		pause = max(pollInterval, 20*polled.Sub(start)) // a large catalog is looked at less often
	}
}

func (e *epoch) startBatch(batch []*table, h *holder) {
	if len(batch) == 0 {
		if h != nil {
			h.close()
		}
		return
	}
	e.batches <- struct{}{}
	e.copying.Add(1)
	go func() {
		defer e.copying.Done()
		e.copyBatch(e.ctx, batch, h)
		<-e.batches
		signal(e.copySoon)
	}()
}

// look compares the catalog, the publication and the running transactions with
// what is known.
func (e *epoch) look(ctx context.Context) error {
	now, err := currentSnapshot(ctx, e.control)
	if err != nil {
		return err
	}
	e.reg.prune(min(now.Xmin, e.reg.oldest()))
	var syncNames string
	if err := e.control.QueryRow(ctx, "SELECT pg_catalog.current_setting('synchronous_standby_names')").Scan(&syncNames); err != nil {
		return err
	}
	e.stream.eager.Store(syncNames != "")
	if err := e.publicationIs(ctx); err != nil {
		return err
	}
	cat, refused, err := readCatalog(ctx, e.control, e.patterns)
	if err != nil {
		return err
	}
	return e.follow(ctx, cat, refused, true)
}

// follow brings registry, publication and store in line with the catalog. late
// says that the slot exists already.
func (e *epoch) follow(ctx context.Context, cat *catalog.Catalog, refused []Refusal, late bool) error {
	isNow := map[uint32]*catalog.Table{}
	for i, meta := range cat.Tables {
		cat.Tables[i] = e.reg.meta(meta)
		isNow[meta.OID] = cat.Tables[i]
	}
	notNow := map[uint32]Refusal{}
	for _, f := range refused {
		notNow[f.Table.OID] = f
	}
	// Tables that are gone, or must not be published any more: those first, because
	// their UPDATEs fail while they are.
	for _, oid := range e.reg.missing(isNow) {
		if err := e.dropTable(ctx, oid); err != nil {
			return err
		}
		if _, still := notNow[oid]; !still {
			e.cfg.Store.Remove(oid)
		}
	}
	for oid, f := range e.refusals {
		_, still := notNow[oid]
		if meta := isNow[oid]; !still && (meta == nil || meta.Fingerprint != f.fingerprint || !f.retry.IsZero() && time.Now().After(f.retry)) {
			delete(e.refusals, oid)
			if meta == nil {
				e.cfg.Store.Remove(oid)
			}
		}
	}
	for oid, f := range notNow {
		if e.refusals[oid].reason != f.Reason {
			detail := f.Reason
			if f.SQL != "" {
				detail += "; " + f.SQL
			}
			e.log.Warn("table refused", "table", f.Table.QualifiedName(), "reason", f.Reason, "remedy", f.SQL)
			e.cfg.Store.SetState(f.Table, colstore.StateRefused, detail)
			e.refusals[oid] = refusal{reason: f.Reason, fingerprint: f.Table.Fingerprint}
		}
	}
	var add []*catalog.Table
	for _, meta := range cat.Tables {
		if _, no := e.refusals[meta.OID]; !no && !e.reg.redefined(meta) {
			add = append(add, meta)
		}
	}
	if err := e.publish(ctx, add, late); err != nil {
		return err
	}
	if !sameCatalog(e.cfg.Store.Catalog(), cat) {
		e.cfg.Store.SetCatalog(cat)
	}
	e.reg.complete()
	return nil
}

// sameCatalog reports whether plans made with a hold with b, too. Sizes may differ.
func sameCatalog(a, b *catalog.Catalog) bool {
	if len(a.Tables) != len(b.Tables) || a.SystemID != b.SystemID || a.ServerVersion != b.ServerVersion || a.ModeSet != b.ModeSet || a.Newest != b.Newest || !maps.Equal(a.Shadowed, b.Shadowed) {
		return false
	}
	for i, x := range a.Tables {
		y := b.Tables[i]
		if x.OID != y.OID || x.Fingerprint != y.Fingerprint || x.Schema != y.Schema || x.Name != y.Name ||
			len(x.Columns) != len(y.Columns) || len(x.Indexes) != len(y.Indexes) ||
			x.Rows > 2*y.Rows+1000 || y.Rows > 2*x.Rows+1000 {
			return false
		}
		for j := range x.Columns {
			if x.Columns[j] != y.Columns[j] {
				return false
			}
		}
		for j := range x.Indexes {
			if x.Indexes[j].Name != y.Indexes[j].Name || x.Indexes[j].Unique != y.Indexes[j].Unique {
				return false
			}
		}
	}
	return true
}
