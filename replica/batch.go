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
			e.copyFailed(t, err)
		}
		return
	}
	defer h.close()
	// Small tables first: many are ready soon.
	slices.SortFunc(batch, func(a, b *table) int { return cmp.Compare(a.meta.Pages, b.meta.Pages) })
	var g errgroup.Group
	g.SetLimit(e.cfg.Workers)
	for _, t := range batch {
		g.Go(func() error {
			if err := safely(func() error { e.copyOne(ctx, h, t); return nil }); err != nil {
				e.copyFailed(t, err)
			}
			return nil
		})
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

func (e *epoch) copyOne(ctx context.Context, h *holder, t *table) {
	e.reg.mu.Lock()
	meta := t.meta
	e.reg.mu.Unlock()
	start := time.Now()
	var version *colstore.Table
	err := errOutdated
	if !t.outdated.Load() {
		version, err = e.copyTable(ctx, h, meta, t.outdated)
	}
	took := time.Since(start)
	switch {
	case err != nil:
		e.copyFailed(t, err)
	case e.reg.publish(t, version, took):
		e.reg.mu.Lock()
		t.joins = false
		e.reg.mu.Unlock()
		e.log.Info("table copied", "table", meta.QualifiedName(), "rows", version.Rows, "bytes", version.Bytes(), "took", took.Round(time.Millisecond))
	}
}

// copyFailed decides what becomes of a table whose copy ended with err.
func (e *epoch) copyFailed(t *table, err error) {
	if e.ctx.Err() != nil {
		return
	}
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
	switch {
	case errors.As(err, &memory) && !t.alone:
		// Another copy beside it may have taken the memory.
		t.alone = true
		r.again(t, colstore.StateCopying, "waits for memory")
		t.notBefore = time.Now()
	case errors.As(err, &memory):
		e.log.Warn("table refused: memory limit", "table", name, "error", err)
		r.refuse(t, "memory limit: "+memory.Error())
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
		r.again(t, colstore.StateCopying, "copied again without column "+c.Name+": "+column.reason)
		// Queries planned before they knew this must be over when the copy appears.
		t.notBefore, t.attempt = time.Now().Add(time.Second), false
		e.kick()
	case errors.Is(err, errOutdated):
		r.again(t, colstore.StateChanged, errOutdated.Error())
	case errors.Is(err, errDefinition):
		r.again(t, colstore.StateChanged, errDefinition.Error())
		e.kick()
	default:
		e.log.Warn("copy failed", "table", name, "error", err)
		detail, _, _ := strings.Cut(err.Error(), "\n")
		r.again(t, colstore.StateFailed, detail)
	}
}

// withoutColumns returns t with columns marked as not copied.
func withoutColumns(t *catalog.Table, bad map[int16]string) *catalog.Table {
	if len(bad) == 0 {
		return t
	}
	c := *t
	c.Columns = slices.Clone(t.Columns)
	for i := range c.Columns {
		if reason, ok := bad[c.Columns[i].AttNum]; ok && c.Columns[i].Unsupported == "" {
			c.Columns[i].Unsupported = reason
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
