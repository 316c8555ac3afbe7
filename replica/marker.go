package replica

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/catalog"
)

// A server that is put back from an older copy of its files has the identity, the
// timeline and, after as many writes, the positions of before: only the contents of
// the log tell its history from the one that the saved columns are of.
//
// So each checkpoint has a marker: a logical message with a random id, written to the
// log after the checkpoint's snapshot was taken. A log that has the marker has every
// commit that the snapshot sees. The checkpoint is saved when the stream has brought
// the marker, and the slot is never told of a position past the newest saved
// checkpoint's marker, so that a stream that goes on from there brings it again. Where
// the stream passes the marker's position without it, the history is another one, and
// everything is copied.
//
// So it is after a failover: a standby may have been promoted that lacks the last of the log. Where it has kept the
// slot, and its log has the marker, the stream goes on there, on another timeline.
//
// No query is answered before that: a query waits until the stream has reached a
// position that was read from this log, which was at the marker's end or past it
// already (unusable), and the stream's position does not get there before the marker
// has come.
type marker struct {
	ID  string // 128 random bits, hexadecimal; "" for none
	End uint64 // of its record
}

// markerPrefix is the prefix of our logical messages. Those of the barrier are empty.
const markerPrefix = "pgaccel"

// errOtherHistory ends a stream from a checkpoint of another history.
var errOtherHistory = errors.New("the server's log is not the one that the saved columns follow: it was restored from an older copy")

// errNoMarker ends the saving of checkpoints.
var errNoMarker = errors.New("markers cannot be written to the server's log")

// emitMarker writes a marker to the log.
func (e *epoch) emitMarker(ctx context.Context, conn *pgx.Conn) (m marker, err error) {
	var random [16]byte
	rand.Read(random[:])
	m.ID = hex.EncodeToString(random[:])
	e.stream.awaited.Store(&m.ID)
	flush := ""
	if e.version >= 170000 {
		flush = ", true" // before, the barrier does it
	}
	var text string
	err = conn.QueryRow(ctx, "SELECT pg_catalog.pg_logical_emit_message(false, $1::text, $2::text"+flush+")::text", markerPrefix, m.ID).Scan(&text)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42501" { // insufficient_privilege
		return m, fmt.Errorf("%w: %w", errNoMarker, err)
	} else if err != nil {
		return m, err
	}
	m.End, err = catalog.ParseLSN(text)
	return m, err
}

// mark writes a marker and waits until the stream has brought it.
func (e *epoch) mark(ctx context.Context, conn *pgx.Conn) (marker, error) {
	m, err := e.emitMarker(ctx, conn)
	if err != nil {
		return m, err
	}
	cat := e.cfg.Store.Catalog()
	if err := e.cfg.Store.Wait(ctx, catalog.NormalizeLSN(m.End, cat.WALSegmentSize, cat.WALBlockSize)); err != nil {
		return m, err
	}
	if id := e.stream.marked.Load(); id == nil || *id != m.ID {
		return m, fmt.Errorf("%w: the stream did not bring the last one", errNoMarker)
	}
	return m, nil
}

// saver saves checkpoints of one epoch. It belongs to one goroutine.
type saver struct {
	e    *epoch
	conn *pgx.Conn
	// Of the last checkpoint of this epoch:
	changes uint64 // commitLog.changes before its snapshot
	tables  string // readyTables
	marker  marker // zero where there is none
}

// markerStep is how many bytes the log may grow, where no table changes, before another
// checkpoint is saved to let the slot follow: an idle server's log stays as it is.
const markerStep = 16 << 20

// worthwhile reports whether a checkpoint would say, or release, more than the last.
func (s *saver) worthwhile(position uint64) bool {
	step := uint64(markerStep)
	if most := s.e.cfg.MaxRetainedWAL; most > 0 {
		step = min(step, uint64(most)/4)
	}
	return s.marker.ID == "" || position > s.marker.End+step || s.changes != s.e.commits.changes() || s.tables != s.e.reg.readyTables()
}

// saveRetries is how often a checkpoint is tried again because a table was not held as
// the snapshot sees it: one that was just copied, or that changes a lot.
const saveRetries = 3

// connect opens the session where there is none, or it has ended.
func (s *saver) connect(ctx context.Context) error {
	if s.conn != nil && !s.conn.IsClosed() {
		return nil
	}
	conn, err := s.e.connect(ctx)
	if err == nil {
		s.conn = conn
	}
	return err
}

// save saves a checkpoint if there is something new. An error is for the log: the last
// checkpoint stays.
func (s *saver) save(ctx context.Context) error {
	for try := 1; ; try++ {
		again, err := s.try(ctx, try == saveRetries)
		if err != nil || !again {
			return err
		}
	}
}

// try does once what save does. Again says that a table was not held as the snapshot
// sees it, and that nothing was saved, unless anyway is set.
func (s *saver) try(ctx context.Context, anyway bool) (again bool, err error) {
	e := s.e
	// Commits are counted before the snapshot is taken, and not forgotten until its
	// position is known.
	changes, tables := e.commits.keep(), e.reg.readyTables()
	defer e.commits.release()
	snapshot, position, err := e.observe(ctx, s.conn)
	if err != nil {
		return false, err
	}
	defer e.cfg.Store.Pin(snapshot)()
	if !s.worthwhile(position) {
		return false, nil
	}
	m, err := e.mark(ctx, s.conn)
	if err != nil {
		return false, err
	}
	whole, err := e.trySave(snapshot, position, m, anyway)
	if err != nil {
		return false, err
	}
	if !whole && !anyway {
		return true, nil
	}
	s.changes, s.tables, s.marker = changes, tables, m
	if !whole {
		s.marker = marker{} // the next one is worthwhile for the tables that this one lacks
	}
	return false, nil
}

// checkpoints saves now and then, and once more when the Replicator closes.
func (e *epoch) checkpoints(ctx context.Context) error {
	defer close(e.saved)
	s := &saver{e: e}
	if err := s.connect(ctx); err != nil {
		return err
	}
	defer func() { s.conn.Close(context.WithoutCancel(ctx)) }()
	// The first one as soon as everything is copied.
	closing := e.closing.Done()
	for i := time.Duration(0); i < 20 && !e.reg.settled() && e.closing.Err() == nil; i++ {
		if err := sleepUntil(ctx, e.cfg.CheckpointInterval/20, closing); err != nil {
			return err
		}
	}
	for renewed := false; ; {
		last := e.closing.Err() != nil
		limited, cancel := context.WithTimeout(ctx, e.cfg.CheckpointInterval+closeTimeout)
		stop := context.AfterFunc(e.closing, func() { time.AfterFunc(closeTimeout, cancel) })
		err := safely(func() error {
			if err := s.connect(limited); err != nil {
				return err
			}
			return s.save(limited)
		})
		stop()
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errNoMarker):
			return e.saveNoMore(err)
		case s.conn.IsClosed() && e.closing.Err() == nil:
			return fmt.Errorf("the session of checkpoints: %w", err)
		case s.conn.IsClosed() && !renewed:
			// The server had ended it, or it ended with a save that hung when Close came.
			renewed = true
			continue
		case err == nil:
			e.health.saved()
		default:
			e.health.failed(fmt.Errorf("the columns could not be saved: %w", err), true)
			e.log.Warn("the columns could not be saved; the last checkpoint stays, and the server keeps its log since then", "error", err)
		}
		if last {
			return nil
		}
		if err := sleepUntil(ctx, e.cfg.CheckpointInterval, closing); err != nil {
			return err
		}
	}
}

// closeTimeout is how long Close waits for the stream to bring what the last
// checkpoint needs.
const closeTimeout = 5 * time.Second

// sleepUntil is sleep, but returns early once done is closed.
func sleepUntil(ctx context.Context, d time.Duration, done <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// saveNoMore gives the checkpoint up where none can have a marker: a restart copies
// everything, and the slot need not wait for one.
func (e *epoch) saveNoMore(cause error) error {
	e.health.failed(fmt.Errorf("the columns cannot be saved: %w", cause), true)
	e.log.Error("the columns cannot be saved, and a restart copies everything: without markers in the log another history of the server would not be noticed",
		"error", cause, "remedy", "GRANT EXECUTE ON FUNCTION "+e.emitFunction()+" TO "+catalog.QuoteIdentifier(e.connCfg.User))
	if err := e.forgetSaved(e.origin.systemID); err != nil {
		return err
	}
	e.stream.saves.Store(false)
	return nil
}

func (e *epoch) emitFunction() string { return emitFunction(e.version) }

// emitFunction is what markers are written with.
func emitFunction(version int) string {
	if version >= 170000 {
		return "pg_catalog.pg_logical_emit_message(boolean, text, text, boolean)"
	}
	return "pg_catalog.pg_logical_emit_message(boolean, text, text)"
}

// readyTables changes where tables join or leave those that a checkpoint holds, or
// their definitions or places in the publication change.
func (r *registry) readyTables() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := []byte(r.published[0])
	for _, oid := range slices.Sorted(maps.Keys(r.tables)) {
		if t := r.tables[oid]; t.phase == phaseReady {
			b = fmt.Appendf(b, ";%d %d %s", oid, t.copies, t.meta.Fingerprint)
			for _, p := range t.meta.Parts {
				b = fmt.Appendf(b, ",%d %s", p.OID, p.Fingerprint)
			}
			for _, part := range parts(t.meta) {
				b = append(append(b, ' '), r.published[part]...)
			}
		}
	}
	return string(b)
}
