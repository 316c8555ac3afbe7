package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

// copyBatch copies tables at one snapshot, the one that h holds or, where h is nil,
// a new one. A table that fails stops no other.
func (e *epoch) copyBatch(ctx context.Context, batch []*table, h *holder) {
	joins := slices.ContainsFunc(batch, func(t *table) bool { return t.joins })
	var err error
	if h == nil {
		if h, err = e.freshSnapshot(ctx, joins); err == nil {
			e.reg.hold(batch, h.snapshot)
		}
	}
	if err != nil {
		for _, t := range batch {
			e.gaveUp(t, err)
		}
		return
	}
	defer h.close()
	// Small tables first: many are ready soon. One after the other gets the sessions that
	// it can use; the last one, which is the largest, those of all that are done.
	slices.SortFunc(batch, func(a, b *table) int { return cmp.Compare(a.meta.Pages, b.meta.Pages) })
	var g errgroup.Group
	g.SetLimit(2 * e.cfg.Workers) // those that have no session any more are not done yet
	for _, t := range batch {
		started, start := context.WithCancel(ctx)
		g.Go(func() error {
			defer start()
			if err := safely(func() error { e.copyOne(ctx, h, t, start); return nil }); err != nil {
				e.gaveUp(t, err)
			}
			return nil
		})
		<-started.Done()
	}
	g.Wait()
}

// freshSnapshot takes a snapshot for tables that are in the stream. Where some have
// joined it later, it is taken once every transaction of before has ended.
func (e *epoch) freshSnapshot(ctx context.Context, joins bool) (*holder, error) {
	if joins {
		conn, err := e.connect(ctx)
		if err != nil {
			return nil, err
		}
		stop := e.logBlockers(ctx, "a new table waits for open transactions before its copy")
		err = drain(ctx, conn)
		stop()
		conn.Close(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
	}
	return e.hold(ctx, "")
}

// copyOne copies one table, brings the copy up to what the stream has brought
// meanwhile, and publishes it. started is called once its sessions have their places.
func (e *epoch) copyOne(ctx context.Context, h *holder, t *table, started func()) {
	e.reg.mu.Lock()
	meta := t.meta
	e.reg.mu.Unlock()
	start := time.Now()
	if t.outdated.Load() {
		e.gaveUp(t, errOutdated)
		return
	}
	version, err := e.copyTable(ctx, h, meta, t.outdated, started)
	if err != nil {
		e.gaveUp(t, err)
		return
	}
	rows, bytes := version.Rows, version.Bytes()
	w := newRelationWriter(e.cfg.Store.NewRelation(version), h.snapshot, e.hashKey)
	took := time.Since(start)
	if err = catchUp(t, w); err == nil {
		err = e.reg.publish(t, w, took)
	}
	if err != nil {
		w.to.Drop()
		e.gaveUp(t, err)
		return
	}
	e.log.Info("table copied", "table", meta.QualifiedName(), "rows", rows, "bytes", bytes, "took", took.Round(time.Millisecond))
}

// catchUpRounds bounds how often a copy runs after a stream that is as fast: the rest
// is done while the stream waits.
const catchUpRounds = 20

// catchUp applies what is queued until little is left. The queue fills again
// meanwhile, without limit to the sum.
func catchUp(t *table, w *relationWriter) error {
	for range catchUpRounds {
		if t.outdated.Load() {
			return errOutdated
		}
		q := t.feed.take()
		if err := q.replay(w); err != nil {
			return err
		}
		if q.bytes <= queueSmall {
			break
		}
	}
	return nil
}

// changeFailed takes in that a table could not take a change of the stream's. A copy
// under way is told to end, which is its own goroutine's to do.
func (e *epoch) changeFailed(t *table, err error) {
	e.reg.mu.Lock()
	copying := t.phase == phaseCopying
	if copying {
		e.log.Warn("a copy is overtaken", "table", t.meta.QualifiedName(), "error", err)
		t.outdated.Store(true)
	}
	e.reg.mu.Unlock()
	if !copying {
		e.gaveUp(t, err)
	}
}

// gaveUp decides what becomes of a table whose copy ended with err, or, where it was
// published, could not take a change.
func (e *epoch) gaveUp(t *table, err error) {
	r := e.reg
	defer r.notify()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tables[t.meta.OID] != t {
		return // dropped, or of an earlier stream
	}
	name := t.meta.QualifiedName()
	var memory *colstore.MemoryError
	var column *columnError
	wasReady := t.phase == phaseReady
	again := func(st colstore.State, detail string) {
		if wasReady {
			r.lapse(t, st, detail)
		} else {
			r.again(t, st, detail)
		}
	}
	if !wasReady && (t.phase != phaseCopying || e.ctx.Err() != nil) {
		return
	}
	switch {
	case errors.As(err, &memory) && wasReady:
		t.alone = true
		e.log.Warn("memory limit: the table is forwarded", "table", name, "error", err)
		again(colstore.StateChanged, "memory limit: "+memory.Error())
	case errors.As(err, &memory) && !t.alone:
		// Another copy beside it may have taken the memory.
		t.alone = true
		again(colstore.StateCopying, "waits for memory")
		t.notBefore = time.Now()
	case errors.As(err, &memory):
		e.log.Warn("table refused: memory limit", "table", name, "error", err)
		r.refuse(t, "memory limit: "+memory.Error())
		t.noMemory = true
	case errors.As(err, &column):
		c := t.meta.Columns[column.col]
		e.log.Warn("column left out", "table", name, "column", c.Name, "reason", column.reason)
		if r.badColumns[t.meta.OID] == nil {
			r.badColumns[t.meta.OID] = map[int16]string{}
		}
		r.badColumns[t.meta.OID][c.AttNum] = column.reason
		meta := withoutColumns(t.meta, r.badColumns[t.meta.OID])
		if len(copied(meta)) == 0 {
			r.refuse(t, "no column that can be copied: "+c.Name+": "+column.reason)
			return
		}
		t.meta = meta
		how := "without column "
		if meta.Columns[column.col].Unsupported == "" {
			how = "with only the text of column "
		}
		again(colstore.StateCopying, "copied again "+how+c.Name+": "+column.reason)
		// Queries planned before they knew this must be over when the copy appears.
		t.notBefore, t.attempt = time.Now().Add(time.Second), false
		e.kick()
	case errors.Is(err, errDefinition):
		again(colstore.StateChanged, err.Error())
		e.kick()
	case errors.Is(err, errOutdated):
		again(colstore.StateChanged, err.Error())
	case wasReady || errors.Is(err, errQueue) || errors.Is(err, errTooLarge):
		e.log.Warn("a change could not be applied: the table is copied again", "table", name, "error", err)
		again(colstore.StateChanged, err.Error())
	default:
		e.log.Warn("copy failed", "table", name, "error", err)
		detail, _, _ := strings.Cut(err.Error(), "\n")
		again(colstore.StateFailed, detail)
	}
}

// withoutColumns returns t with columns marked as not copied, or as opaque intervals.
func withoutColumns(t *catalog.Table, bad map[int16]string) *catalog.Table {
	if len(bad) == 0 {
		return t
	}
	c := *t
	c.Columns = slices.Clone(t.Columns)
	for i := range c.Columns {
		column := &c.Columns[i]
		reason, ok := bad[column.AttNum]
		if !ok || column.Unsupported != "" {
			continue
		}
		if opaque := opaqueInterval(column); !opaque || reason != reasonInterval {
			column.Unsupported = reason
		}
	}
	return &c
}

// logBlockers says, after two seconds and then every half minute, who is waited
// for: sessions and prepared transactions that hold a transaction id.
func (e *epoch) logBlockers(ctx context.Context, what string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait := 2 * time.Second; sleep(ctx, wait) == nil; wait = 30 * time.Second {
			e.log.Warn(what, "blockers", e.blockers(ctx))
		}
	}()
	return func() { cancel(); <-done }
}

func (e *epoch) blockers(ctx context.Context) []string {
	conn, err := e.connect(ctx)
	if err != nil {
		return nil
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, `SELECT * FROM (
		SELECT 'pid ' || a.pid || ' (' || coalesce(a.usename, '?') || ', ' || coalesce(nullif(a.application_name, ''), '?') || ', ' || coalesce(a.state, '?') || ', since ' || coalesce(a.xact_start::text, '?') || ')' AS who
		FROM pg_catalog.pg_stat_activity a WHERE a.backend_xid IS NOT NULL AND a.pid <> pg_catalog.pg_backend_pid()
		UNION ALL SELECT 'prepared transaction ' || quote_literal(p.gid) || ' (since ' || p.prepared || ')' FROM pg_catalog.pg_prepared_xacts p) b LIMIT 20`)
	if err != nil {
		return nil
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var s string
		if rows.Scan(&s) == nil {
			all = append(all, s)
		}
	}
	return append(all, fmt.Sprintf("(%d shown)", len(all)))
}
