package replica

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

// errDefinition says that a table's definition is not the one it was to be copied
// under.
var errDefinition = errors.New("its definition changed")

// errOutdated ends a copy that the stream has overtaken.
var errOutdated = errors.New("it changed while it was copied")

// A table of fewer pages is copied by one session: starting more would cost more
// than they save.
const splitPages = 1024

// copyTable copies one table at h's snapshot and returns the version, with its
// snapshot and text ranks set. outdated is looked at while it runs.
func (e *epoch) copyTable(ctx context.Context, h *holder, meta *catalog.Table, outdated *atomic.Bool) (*colstore.Table, error) {
	// The definition as the snapshot sees it must be ours. Together with the check
	// after the copy this says that no change of it came in between: one that
	// rewrites the table shows its rows to no older snapshot.
	if err := h.definitionIs(ctx, meta); err != nil {
		return nil, err
	}
	loader := e.cfg.Store.NewLoader(meta)
	defer loader.Abort() // nothing after Finish
	var received atomic.Int64
	stop := e.reportProgress(meta, loader, &received)
	err := e.copyPieces(ctx, h, meta, loader, &received, outdated)
	if err != nil {
		stop(false)
		return nil, err
	}
	t, err := loader.Finish()
	if err != nil {
		stop(false)
		return nil, err
	}
	err = h.finish(ctx, t)
	stop(err == nil)
	if err != nil {
		t.Release()
		return nil, err
	}
	return t, nil
}

// leavesOf returns the relations that hold a table's rows: its leaf partitions, or
// itself.
func leavesOf(meta *catalog.Table) []catalog.Part {
	if meta.Parts != nil {
		return meta.Parts
	}
	return []catalog.Part{{OID: meta.OID, Schema: meta.Schema, Name: meta.Name, Fingerprint: meta.Fingerprint}}
}

// copyPieces copies leaves, and ranges of the pages of large ones, side by side.
func (e *epoch) copyPieces(ctx context.Context, h *holder, meta *catalog.Table, loader *colstore.Loader, received *atomic.Int64, outdated *atomic.Bool) error {
	cols := append(copied(meta), hashedIdentity(meta)...)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(e.cfg.Workers) // a writer's buffers are large
	for _, leaf := range leavesOf(meta) {
		pages, err := h.pages(ctx, leaf.OID)
		if err != nil {
			g.Go(func() error { return err })
			break
		}
		pieces := int64(1)
		if pages >= splitPages {
			pieces = int64(e.cfg.Workers)
		}
		for i := range pieces {
			sql := copySQL(meta, leaf, cols, pages*i/pieces, pages*(i+1)/pieces, i == pieces-1)
			g.Go(func() error {
				w := loader.NewPartWriter(leaf.OID)
				err := safely(func() error {
					d := newCopyDecoder(meta, cols, w)
					d.identity = w.Identity
					return e.copyPiece(ctx, h.name, sql, d, received, outdated)
				})
				return firstError(err, w.Close())
			})
		}
	}
	return g.Wait()
}

// copySQL is the COPY of the pages [from, to) of a leaf, to its end where last is
// set: rows may have been added since its size was asked, and the snapshot may see
// them.
func copySQL(meta *catalog.Table, leaf catalog.Part, cols []int, from, to int64, last bool) string {
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = quoteIdent(meta.Columns[c].Name)
	}
	list := strings.Join(names, ", ")
	table := quoteIdent(leaf.Schema) + "." + quoteIdent(leaf.Name)
	if from == 0 && last {
		return fmt.Sprintf("COPY %s (%s) TO STDOUT (FORMAT binary)", table, list)
	}
	where := fmt.Sprintf("ctid >= '(%d,0)'::pg_catalog.tid", from)
	if !last {
		where += fmt.Sprintf(" AND ctid < '(%d,0)'::pg_catalog.tid", to)
	}
	return fmt.Sprintf("COPY (SELECT %s FROM ONLY %s WHERE %s) TO STDOUT (FORMAT binary)", list, table, where)
}

// copyPiece runs one COPY in a session and a transaction of its own, so that its
// lock on the table is gone with it.
func (e *epoch) copyPiece(ctx context.Context, snapshot, sql string, d *copyDecoder, received *atomic.Int64, outdated *atomic.Bool) error {
	select {
	case e.copiers <- struct{}{}:
		defer func() { <-e.copiers }()
	case <-ctx.Done():
		return ctx.Err()
	}
	c, err := connectRaw(ctx, e.copyConfig)
	if err != nil {
		return err
	}
	defer c.Close()
	err = c.exec("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT " + quoteLiteral(snapshot))
	if err != nil {
		return err
	}
	var n, told int
	err = c.copyOut(sql, func(b []byte) error {
		if n += len(b); n-told >= rawBufferSize {
			received.Add(int64(n - told))
			told = n
			if outdated.Load() {
				return errOutdated
			}
		}
		return d.message(b)
	})
	received.Add(int64(n - told))
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err() // the context closed the connection
		}
		return err
	}
	if !d.ended {
		return fmt.Errorf("COPY data ends without its end marker")
	}
	return c.exec("COMMIT")
}

// reportProgress tells cfg.Progress about a copy, five times a second, until stop.
func (e *epoch) reportProgress(meta *catalog.Table, loader *colstore.Loader, received *atomic.Int64) (stop func(done bool)) {
	if e.cfg.Progress == nil {
		return func(bool) {}
	}
	tell := func(done bool) {
		e.cfg.Progress(Progress{Table: meta.QualifiedName(), Rows: loader.Rows(), EstimatedRows: meta.Rows, Bytes: received.Load(), Done: done})
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(200 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				tell(false)
			case <-end:
				return
			}
		}
	}()
	return func(done bool) {
		close(end)
		<-ended
		tell(done)
	}
}
