package replica

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

// watcher asks the server, on a session of its own, for what must be known soon: a
// snapshot, where the store has commits to fold or readers that allow staleness; how
// much log the slot retains; whether a published table has lost its replica identity.
// Where nothing happens it asks seldom (activity). It lives from before the slot's creation on, which retains log already.
type watcher struct {
	e        *epoch
	retained atomic.Int64 // bytes of log
	warned   bool
	idleFor  idleTimer
	behind   bool                 // the stream is far behind the log: whether something happens is not known
	unsorted bool                 // there may be texts whose order is to be asked for
	orders   map[uint32]time.Time // tables whose texts are ordered: not again before
}

const (
	watchInterval    = 50 * time.Millisecond
	identityInterval = 200 * time.Millisecond
	slotInterval     = time.Second
	orderInterval    = 500 * time.Millisecond
	// behindMin is how many bytes the stream is behind the flushed log where it counts as
	// behind. The end of the log may be the first part of a record.
	behindMin = 64 << 10
	// watchShare keeps questions that take long, on a large catalog, to about a
	// twentieth of the time.
	watchShare = 20
)

func newWatcher(e *epoch) *watcher { return &watcher{e: e, orders: map[uint32]time.Time{}} }

// retainedError ends an epoch whose slot retains too much log.
type retainedError struct{ retained, limit int64 }

func (e *retainedError) Error() string {
	return fmt.Sprintf("the replication slot retains %d MB of write-ahead log, more than the %d MB that it may (max-retained-wal): it was dropped; a transaction that is open for long retains log, too",
		e.retained>>20, e.limit>>20)
}

// run watches until something is found that ends the epoch.
func (w *watcher) run(ctx context.Context) error {
	conn, err := w.e.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	timer := time.NewTimer(watchInterval)
	defer timer.Stop()
	tasks := []struct {
		every time.Duration
		due   time.Time
		do    func(context.Context, *pgx.Conn) error
	}{{every: watchInterval, do: w.observe}, {every: slotInterval, do: w.slot}, {every: identityInterval, do: w.identities}, {every: orderInterval, do: w.order}}
	for {
		for i := range tasks {
			t := &tasks[i]
			start := time.Now()
			if start.Before(t.due) {
				continue
			}
			if err := t.do(ctx, conn); err != nil {
				return err
			}
			end := time.Now()
			t.due = end.Add(max(t.every-watchInterval/2, watchShare*end.Sub(start)))
		}
		pause := watchInterval
		if w.idle() {
			pause = idleInterval
		}
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-w.e.activity.watch.wakeup:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// idle reports whether nothing is to be asked until the stream moves.
func (w *watcher) idle() bool {
	return w.idleFor.idle(w.e.activity, &w.e.activity.watch) && !w.behind && !w.unsorted && !w.e.cfg.Store.WantsSnapshot()
}

// observe tells the store of a snapshot where it wants one.
func (w *watcher) observe(ctx context.Context, conn *pgx.Conn) error {
	if !w.e.cfg.Store.WantsSnapshot() {
		return nil
	}
	_, _, err := w.e.observe(ctx, conn)
	return err
}

// observe takes a snapshot and tells the store of it. It returns it, and the position
// that the stream must pass before it can be read.
func (e *epoch) observe(ctx context.Context, conn *pgx.Conn) (snapshot colstore.Snapshot, position uint64, err error) {
	store := e.cfg.Store
	var text, insert string
	at := time.Now()
	// The snapshot is taken before the functions run: the position covers it.
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_current_snapshot()::text, pg_catalog.pg_current_wal_insert_lsn()::text").Scan(&text, &insert); err != nil {
		return snapshot, 0, err
	}
	snapshot, err = colstore.ParseSnapshot(text)
	if err != nil {
		return snapshot, 0, err
	}
	inserted, err := catalog.ParseLSN(insert)
	if err != nil {
		return snapshot, 0, err
	}
	cat := store.Catalog()
	position = catalog.NormalizeLSN(inserted, cat.WALSegmentSize, cat.WALBlockSize)
	store.Observe(snapshot, position, at)
	return snapshot, position, nil
}

// slot looks at how much log the slot keeps the server from removing. Nothing is worth
// a full disk there.
func (w *watcher) slot(ctx context.Context, conn *pgx.Conn) error {
	var retained int64
	var status, flushed string
	err := conn.QueryRow(ctx, `SELECT coalesce(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), s.restart_lsn), 0)::bigint, coalesce(s.wal_status, ''), pg_catalog.pg_current_wal_flush_lsn()::text
		FROM pg_catalog.pg_replication_slots s WHERE s.slot_name = $1`, w.e.name).Scan(&retained, &status, &flushed)
	if w.behind = err != nil; err == pgx.ErrNoRows { // not made yet; a slot that is lost ends the stream
		return nil
	}
	if err != nil {
		return err
	}
	end, err := catalog.ParseLSN(flushed)
	if err != nil {
		return err
	}
	w.e.health.looked(end, w.e.cfg.Store.Applied(), time.Now())
	w.behind = end > w.e.cfg.Store.Applied()+behindMin
	w.retained.Store(retained)
	limit := w.e.cfg.MaxRetainedWAL
	switch {
	case status == "lost":
		return errSlotLost
	case limit > 0 && retained > limit:
		return &retainedError{retained, limit}
	case (status == "unreserved" || limit > 0 && retained > limit/2) != w.warned:
		if w.warned = !w.warned; w.warned {
			w.e.log.Warn("the replication slot retains much write-ahead log", "bytes", retained, "limit", limit, "wal_status", status, "blockers", w.e.blockers(ctx))
		}
	}
	return nil
}

// identities looks for published tables whose UPDATEs fail, because they have lost
// their replica identity.
func (w *watcher) identities(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, `SELECT c.oid FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_rel r ON r.prpubid = p.oid
		JOIN pg_catalog.pg_class c ON c.oid = r.prrelid WHERE p.pubname = $1::text AND c.relreplident <> 'f' AND NOT `+identityIndexSQL, w.e.name)
	if err != nil {
		return err
	}
	lost, err := pgx.CollectRows(rows, pgx.RowTo[uint32])
	if err != nil || len(lost) == 0 {
		return err
	}
	select {
	case w.e.lost <- lost:
	case <-time.After(identityInterval): // it is looking at the catalog, or not yet there
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// order asks the server for the order of strings that came since it was last asked.
// Until it has answered, queries that need the order are forwarded.
func (w *watcher) order(ctx context.Context, conn *pgx.Conn) error {
	store := w.e.cfg.Store
	w.unsorted = false
	for _, st := range store.Statuses() {
		if st.State != colstore.StateReady {
			continue
		}
		if time.Now().Before(w.orders[st.OID]) {
			w.unsorted = true
			continue
		}
		v, _ := store.Get(st.OID)
		if v == nil {
			continue
		}
		start := time.Now()
		asked, err := rankTexts(ctx, conn, v)
		v.Release()
		if err != nil {
			return err
		}
		if asked {
			w.unsorted = true
			w.orders[st.OID] = time.Now().Add(max(orderInterval, watchShare*time.Since(start)))
		}
	}
	return nil
}
