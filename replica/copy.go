package replica

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

// errDefinition says that a table's definition is not the one it was to be copied
// under.
var errDefinition = errors.New("its definition changed")

// errOutdated ends a copy that the stream has overtaken.
var errOutdated = errors.New("it changed while it was copied")

// copyTable copies one table at h's snapshot and returns the version, with its
// snapshot and text ranks set. outdated is looked at while it runs. started is called
// once its sessions have their places, unless it fails.
func (e *epoch) copyTable(ctx context.Context, h *holder, meta *catalog.Table, outdated *atomic.Bool, started func()) (*colstore.Table, error) {
	start := time.Now()
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
	sessions, err := e.copyRows(ctx, h, meta, loader, &received, outdated, started)
	rows := time.Since(start)
	if err != nil {
		stop(false)
		return nil, err
	}
	t, err := loader.Finish()
	if err != nil {
		stop(false)
		return nil, err
	}
	finish := time.Since(start) - rows
	err = h.finish(ctx, t)
	stop(err == nil)
	if err != nil {
		t.Release()
		return nil, err
	}
	e.log.Debug("rows copied", "table", meta.QualifiedName(), "sessions", sessions, "received_bytes", received.Load(), "rows_took", rows.Round(time.Millisecond),
		"dictionaries_took", finish.Round(time.Millisecond), "checks_took", (time.Since(start) - rows - finish).Round(time.Millisecond))
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

// copyRows copies the rows of all leaves, in ranges of pages, with several sessions side
// by side where they are many. It returns how many.
func (e *epoch) copyRows(ctx context.Context, h *holder, meta *catalog.Table, loader *colstore.Loader, received *atomic.Int64, outdated *atomic.Bool, started func()) (sessions int, err error) {
	leaves, err := h.pages(ctx, leavesOf(meta))
	if err != nil {
		return 0, err
	}
	queue := newPageQueue(leaves, h.most)
	cols := append(copied(meta), hashedIdentity(meta)...)
	refused := make(chan error, queue.sessions)
	g, ctx := errgroup.WithContext(ctx)
	for range queue.sessions {
		leave, err := e.copiers.acquire(ctx, h, loader.BufferBytes())
		if err != nil {
			g.Go(func() error { return err })
			break
		}
		if queue.empty() { // those before were faster
			leave()
			break
		}
		sessions++
		c := copySession{config: e.copyConfig, snapshot: h.name, meta: meta, cols: cols, loader: loader, queue: queue, received: received, outdated: outdated, key: e.hashKey}
		g.Go(func() error {
			defer leave()
			err := safely(func() error { return c.run(ctx) })
			if tooManyConnections(err) && c.conn == nil {
				refused <- err
				return nil // the others do what there is to do
			}
			return firstError(err, c.close())
		})
	}
	started()
	if err = g.Wait(); err == nil && !queue.empty() {
		err = <-refused // there are no others
	}
	return sessions - len(refused), err
}

// copySQL is the COPY of a range. Its end is open where it is the leaf's last: rows may
// have been added since its size was asked, and the snapshot may see them.
func copySQL(meta *catalog.Table, r pageRange, cols []int) string {
	list := columnList(meta, cols)
	table := catalog.QuoteIdentifier(r.leaf.Schema) + "." + catalog.QuoteIdentifier(r.leaf.Name)
	if r.from == 0 && r.last {
		return fmt.Sprintf("COPY %s (%s) TO STDOUT (FORMAT binary)", table, list)
	}
	where := fmt.Sprintf("ctid >= '(%d,0)'::pg_catalog.tid", r.from)
	if !r.last {
		where += fmt.Sprintf(" AND ctid < '(%d,0)'::pg_catalog.tid", r.to)
	}
	return fmt.Sprintf("COPY (SELECT %s FROM ONLY %s WHERE %s) TO STDOUT (FORMAT binary)", list, table, where)
}

// columnList names columns of a table.
func columnList(meta *catalog.Table, cols []int) string {
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = catalog.QuoteIdentifier(meta.Columns[c].Name)
	}
	return strings.Join(names, ", ")
}

// copySession is one of the sessions that copy a table: it takes range after range off
// the queue. The ranges of a leaf go to one writer.
type copySession struct {
	config   *pgconn.Config
	snapshot string // its name on the server
	meta     *catalog.Table
	cols     []int // of meta, in the order of the COPY
	loader   *colstore.Loader
	queue    *pageQueue
	received *atomic.Int64
	outdated *atomic.Bool
	key      hashKey

	conn   *rawConn
	part   uint32
	writer *colstore.Writer // of the part; nil before the first range
}

// run copies until the queue is empty. close is to be called in any case.
func (s *copySession) run(ctx context.Context) error {
	conn, err := connectRaw(ctx, s.config)
	if err != nil {
		return err
	}
	s.conn = conn
	defer conn.Close()
	for r, ok := s.queue.take(); ok; r, ok = s.queue.take() {
		if err := s.copyRange(r); err != nil {
			if ctx.Err() != nil {
				return ctx.Err() // the context closed the connection
			}
			return err
		}
	}
	return nil
}

// close ends the writer.
func (s *copySession) close() error {
	if s.writer == nil {
		return nil
	}
	return s.writer.Close()
}

// copyRange runs one COPY in a transaction of its own, so that its lock on the table is
// gone with it.
func (s *copySession) copyRange(r pageRange) error {
	if s.writer == nil || s.part != r.leaf.OID {
		if err := s.close(); err != nil {
			return err
		}
		s.writer, s.part = s.loader.NewPartWriter(r.leaf.OID), r.leaf.OID
	}
	d := newCopyDecoder(s.meta, s.cols, s.writer)
	d.identity, d.hash.key = s.writer.Identity, s.key
	err := s.conn.exec("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT " + catalog.QuoteLiteral(s.snapshot))
	if err != nil {
		return err
	}
	var n, told int
	err = s.conn.copyOut(copySQL(s.meta, r, s.cols), func(b []byte) error {
		if n += len(b); n-told >= rawBufferSize {
			s.received.Add(int64(n - told))
			told = n
			if s.outdated.Load() {
				return errOutdated
			}
		}
		return d.message(b)
	})
	s.received.Add(int64(n - told))
	if err != nil {
		return err
	}
	if !d.ended {
		return fmt.Errorf("COPY data ends without its end marker")
	}
	return s.conn.exec("COMMIT")
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
