package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// With a data directory (Config.DataDir) a new stream goes on where the last
// checkpoint ends, in the same process or after a restart, instead of copying again.
// The slot is permanent then, and retains the log from the checkpoint on; so does the
// publication stay.
//
// A checkpoint holds the tables as a snapshot S sees them, and a position P so that
// every commit before P is one that S sees. A stream from P brings all that S does not
// see, and some that it sees: those are skipped by their transaction ids, as after a
// copy. What happened to definitions meanwhile is judged as for a table that was there
// all the time. The slot is told of P once the checkpoint is on disk, so that it never
// forgets what a checkpoint needs; where it has all the same, or the server or its history is
// another one (see marker.go), or somebody altered the publication, everything is copied
// as at first.

// savedState is what a checkpoint says beside the tables (colstore.Checkpoint.Extra).
type savedState struct {
	Timeline  int32
	Hash      hashKey
	Published map[uint32]string // publicationState of the saved tables' relations
	Marker    marker            // in the log, after all that the tables hold
}

const (
	checkpointEvery = time.Minute
	// slotTimeout is how long a slot may still be in use by the session of a process
	// that is gone.
	slotTimeout = 10 * time.Second
)

// openDisk opens the data directory, and takes over the name and the hash key of what
// it holds. The name is known where the checkpoint is lost, too: then the slot that
// waits for it is dropped (beginAnew).
func (r *Replicator) openDisk() (err error) {
	if r.cfg.DataDir == "" {
		return nil
	}
	if r.disk, err = colstore.OpenDisk(r.cfg.DataDir); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	last, name := r.disk.Last(), r.disk.Instance()
	ours := nameRegexp.MatchString(name)
	if last != nil && !ours {
		r.disk.Close()
		return fmt.Errorf("data directory: %s belongs to %q", r.cfg.DataDir, name)
	}
	if ours {
		r.name = name
	}
	if damage := r.disk.Damage(); damage != nil {
		slot := name
		if !ours {
			slot = "not known: if there is one it retains log, and is named below"
		}
		r.log.Error("the data directory is damaged: everything is copied", "directory", r.cfg.DataDir, "found", damage, "slot", slot)
	}
	if last == nil {
		return nil
	}
	var tables []*catalog.Table
	for i := range last.Tables {
		tables = append(tables, last.Tables[i].Meta)
	}
	r.choose(tables)
	var state savedState
	if json.Unmarshal(last.Extra, &state) == nil && len(last.Tables) > 0 {
		r.hashKey = state.Hash
	}
	return nil
}

// awaitDisk opens a data directory that was in use. An error is that of the end.
func (r *Replicator) awaitDisk() error {
	if r.cfg.DataDir == "" || r.disk != nil {
		return nil
	}
	r.log.Info("another pgaccel uses the data directory: everything is forwarded until it ends", "directory", r.cfg.DataDir)
	for {
		if err := sleep(r.ctx, backoffMin); err != nil {
			return err
		}
		err := r.openDisk()
		if err == nil {
			return nil
		}
		r.mu.Lock()
		r.lastErr = err
		r.mu.Unlock()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			r.log.Warn("the data directory cannot be used; everything is forwarded", "error", err)
			if err := sleep(r.ctx, r.cfg.backoffMax); err != nil {
				return err
			}
		}
	}
}

// resumable returns the checkpoint that the stream can go on from. Where it cannot, for a
// reason that it logs, nothing is left of the old one: nil.
func (e *epoch) resumable(ctx context.Context, at logOrigin) (*colstore.Checkpoint, *savedState, error) {
	if e.disk == nil {
		return nil, nil, nil
	}
	last, state := e.disk.Last(), &savedState{}
	reason, err := e.unusable(ctx, last, state, at)
	if err != nil || reason == "" {
		return last, state, err
	}
	if last != nil && len(last.Tables) > 0 {
		e.log.Warn("the saved columns are of no use: everything is copied", "reason", reason)
		e.reg.anew = "the saved columns are of no use: " + reason
	}
	return nil, nil, e.beginAnew(ctx, at)
}

// beginAnew removes the slot and the checkpoint, and notes the name of the slot that
// is about to be made: if that is all that we come to, the next start removes it.
func (e *epoch) beginAnew(ctx context.Context, at logOrigin) error {
	if err := e.dropSlot(ctx, e.control); err != nil {
		return err
	}
	return e.forgetSaved(at.systemID)
}

// forgetSaved removes the checkpoint, but for the name of the slot.
func (e *epoch) forgetSaved(systemID string) error {
	if err := e.disk.Forget(); err != nil {
		return err
	}
	return e.disk.Save(&colstore.Checkpoint{Instance: e.name, SystemID: systemID}, nil)
}

// dropSlot removes the slot where it is.
func (e *epoch) dropSlot(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "SELECT pg_catalog.pg_drop_replication_slot(s.slot_name) FROM pg_catalog.pg_replication_slots s WHERE s.slot_name = $1::text", e.name)
	if err != nil {
		return fmt.Errorf("dropping the replication slot: %w", err)
	}
	return nil
}

// unusable returns why the stream cannot go on from the checkpoint, "" where it can.
// It waits for the slot to be free.
func (e *epoch) unusable(ctx context.Context, last *colstore.Checkpoint, state *savedState, at logOrigin) (string, error) {
	switch {
	case last == nil:
		return "there are none", e.awaitSlot(ctx)
	case len(last.Tables) == 0:
		return "there are no tables", e.awaitSlot(ctx)
	}
	if err := e.awaitSlot(ctx); err != nil {
		return "", err
	}
	if err := json.Unmarshal(last.Extra, state); err != nil {
		return "they cannot be read: " + err.Error(), nil
	}
	var database, insert string
	var status, confirmed *string
	var kept bool // by a standby, before it was promoted
	err := e.control.QueryRow(ctx, `SELECT pg_catalog.current_database()::text, pg_catalog.pg_current_wal_insert_lsn()::text, s.wal_status, s.confirmed_flush_lsn::text,
		COALESCE((pg_catalog.to_jsonb(s) ->> 'synced')::bool, false)
		FROM (SELECT) o LEFT JOIN pg_catalog.pg_replication_slots s ON s.slot_name = $1::text AND s.slot_type = 'logical' AND s.database = pg_catalog.current_database()`,
		e.name).Scan(&database, &insert, &status, &confirmed, &kept)
	if err != nil {
		return "", err
	}
	now, err := catalog.ParseLSN(insert)
	if err != nil {
		return "", err
	}
	switch {
	case last.SystemID != at.systemID || last.Database != database:
		return "they are of another database", nil
	case state.Timeline != at.timeline && !kept:
		return "the server has been recovered or promoted since", nil
	case confirmed == nil:
		return "the replication slot is gone", nil
	case status != nil && *status == "lost":
		return "the replication slot was invalidated", nil
	case state.Marker.ID == "":
		return "they do not say which history of the server they are of: an older pgaccel saved them", nil
	case last.Position > now || state.Marker.End > now:
		return "the server's log has gone back", nil
	}
	held, err := catalog.ParseLSN(*confirmed)
	if err != nil {
		return "", err
	}
	if held > last.Position {
		return "the replication slot is further than they are", nil
	}
	published, err := e.publicationStateOf(ctx, slices.Collect(maps.Keys(state.Published)))
	if err != nil {
		return "", err
	}
	if published[0] != state.Published[0] || published[0] == "none" {
		return "somebody altered the publication " + e.name, nil
	}
	return "", nil
}

// dropFreeSlot drops the slot as soon as our own session does not use it any more.
func (e *epoch) dropFreeSlot(ctx context.Context, conn *pgx.Conn) error {
	for {
		err := e.dropSlot(ctx, conn)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "55006" { // object_in_use
			return err
		}
		if sleep(ctx, 20*time.Millisecond) != nil {
			return err
		}
	}
}

// awaitSlot waits until nobody uses the slot: the server may not have seen yet that the
// session of before is gone.
func (e *epoch) awaitSlot(ctx context.Context) error {
	for start, wait := time.Now(), 10*time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		var pid int
		err := e.control.QueryRow(ctx, "SELECT s.active_pid FROM pg_catalog.pg_replication_slots s WHERE s.slot_name = $1::text AND s.active_pid IS NOT NULL", e.name).Scan(&pid)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil && time.Since(start) > slotTimeout {
			err = fmt.Errorf("the replication slot %s is in use by process %d of the server", e.name, pid)
		}
		if err == nil {
			err = sleep(ctx, wait)
		}
		if err != nil {
			return err
		}
	}
}

// load reads the checkpoint's tables and makes them ready, to be brought up by the
// stream. A table that cannot be read, is lacking a column, or whose place in the publication
// is not what it was, leaves the publication, and joins again later.
func (e *epoch) load(ctx context.Context, c *colstore.Checkpoint, state *savedState) error {
	snapshot, err := colstore.ParseSnapshot(c.Snapshot)
	if err != nil {
		return err
	}
	e.reg.near.Store(snapshot.Xmax)
	start := time.Now()
	now, err := e.publicationStateOf(ctx, slices.Collect(maps.Keys(state.Published)))
	if err != nil {
		return err
	}
	domains, err := domainsOf(ctx, e.control)
	if err != nil {
		return err
	}
	extensions, err := extensionTypes(ctx, e.control)
	if err != nil {
		return err
	}
	rows := int64(0)
	for i := range c.Tables {
		meta := c.Tables[i].Meta
		if slices.ContainsFunc(parts(meta), func(oid uint32) bool { return now[oid] != state.Published[oid] || now[oid] == "" }) {
			continue
		}
		if c := lacking(meta, domains, extensions); c != "" {
			e.log.Info("a saved table lacks a column that is copied by now: it is copied anew", "table", meta.QualifiedName(), "column", c)
			continue
		}
		t, err := e.disk.LoadTable(e.cfg.Store, &c.Tables[i])
		if err != nil {
			e.log.Error("a saved table cannot be read: it is copied", "directory", e.cfg.DataDir, "table", meta.QualifiedName(), "error", err)
			continue
		}
		rows += t.Rows
		e.reg.keepIntervals(meta)
		e.reg.join([]*catalog.Table{meta}, false)
		e.reg.resume(meta.OID, newRelationWriter(e.cfg.Store.NewRelation(t), snapshot, e.hashKey))
	}
	if err := e.unpublishOthers(ctx); err != nil {
		return err
	}
	published, err := e.publicationState(ctx)
	if err != nil {
		return err
	}
	e.setPublished(published)
	e.log.Info("saved columns loaded", "tables", len(e.reg.oids()), "rows", rows, "saved", c.Saved, "took", time.Since(start).Round(time.Millisecond))
	return nil
}

// unpublishOthers takes relations that the registry does not know out of the
// publication: when they joined it is not known.
func (e *epoch) unpublishOthers(ctx context.Context) error {
	rows, err := e.control.Query(ctx, `SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)
		FROM pg_catalog.pg_publication_rel r JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid
		JOIN pg_catalog.pg_class c ON c.oid = r.prrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE p.pubname = $1::text AND c.oid <> ALL ($2::oid[])`, e.name, e.reg.oids())
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) == 0 {
		return err
	}
	_, err = e.control.Exec(ctx, "ALTER PUBLICATION "+catalog.QuoteIdentifier(e.name)+" DROP TABLE ONLY "+strings.Join(names, ", ONLY "))
	if isGone(err) {
		err = nil
	}
	return err
}

// resume makes a table ready that was loaded from disk.
func (r *registry) resume(oid uint32, w *relationWriter) {
	r.mu.Lock()
	defer r.notify()
	defer r.mu.Unlock()
	t := r.tables[oid]
	t.phase, t.attempt, t.begun, t.snapshot, t.readyAt = phaseReady, true, true, w.holds, time.Now()
	t.feed.resume(w, func() { r.store.Publish(w.to) })
}

// lacking returns a column of a saved table that was not copied for its type, which is one of ours by now:
// the server's definition says nothing of that. "" where there is none.
func lacking(meta *catalog.Table, domains map[uint32]domain, extensions map[uint32]string) string {
	for i := range meta.Columns {
		c := &meta.Columns[i]
		kind := sqltype.HeldKind(c.TypeOID)
		if d, ok := domains[c.TypeOID]; ok {
			kind = d.kind()
		}
		if c.Type.Kind == vector.Opaque && sqltype.OpaqueOfType(c.Type) == nil {
			return c.Name // it was opaque once
		}
		wide := c.Unsupported == "numeric without declared precision" || strings.HasSuffix(c.Unsupported, " exceeds 18 digits")
		if wide || strings.HasPrefix(c.Unsupported, typeReason) && (kind.Valid() || sqltype.OpaqueOf(c.TypeOID) != nil || extensions[c.TypeOID] != "") {
			return c.Name
		}
	}
	return ""
}

// commitLog remembers the commits that the stream has brought, as long as a snapshot
// may not see them.
type commitLog struct {
	mu      sync.Mutex
	commits []seenCommit
	prune   int    // at this length
	kept    int    // nothing is pruned while it is not 0
	added   uint64 // commits so far
}

type seenCommit struct{ xid, lsn uint64 }

const commitsMin = 1 << 14

// anyAge asks Store.Fresh for the newest snapshot that the stream has passed.
const anyAge time.Duration = 1 << 62

// add notes a commit record at lsn. What a snapshot sees that the stream has passed is
// forgotten now and then.
func (l *commitLog) add(xid, lsn uint64, store *colstore.Store) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.added++
	if l.kept == 0 && len(l.commits) >= max(l.prune, commitsMin) {
		if s, ok := store.Fresh(anyAge); ok {
			l.commits = slices.DeleteFunc(l.commits, func(c seenCommit) bool { return s.Sees(c.xid) })
		}
		l.prune = 2 * len(l.commits)
	}
	l.commits = append(l.commits, seenCommit{xid, lsn})
}

// changes returns how many commits have come.
func (l *commitLog) changes() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.added
}

// keep returns the same, and has nothing forgotten until release: a snapshot that is
// taken in between may not see what a newer one does.
func (l *commitLog) keep() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept++
	return l.added
}

func (l *commitLog) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept--
}

// first returns the position of the first commit that s does not see, or limit, up to
// which the stream has come, where there is none before it.
func (l *commitLog) first(s colstore.Snapshot, limit uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.commits {
		if c.lsn < limit && !s.Sees(c.xid) {
			limit = c.lsn
		}
	}
	return limit
}

// trySave saves the tables that are ready as the snapshot sees them. The stream has
// brought the marker, which was written after the snapshot was taken, and begins at
// position or after it. Where a table is not held as the snapshot sees it, whole is false,
// and nothing is saved unless anyway is set.
func (e *epoch) trySave(snapshot colstore.Snapshot, position uint64, m marker, anyway bool) (whole bool, err error) {
	store := e.cfg.Store
	// Not past the marker's begin, so that a stream from here brings it.
	position = e.commits.first(snapshot, position)
	state := savedState{Timeline: e.origin.timeline, Hash: e.hashKey, Published: map[uint32]string{}, Marker: m}
	var tables []*colstore.Table
	defer func() {
		for _, t := range tables {
			t.Release()
		}
	}()
	whole = true
	e.reg.mu.Lock()
	published := e.reg.published
	for _, t := range e.reg.tables {
		if t.phase != phaseReady {
			continue
		}
		v, err := store.View(t.meta.OID, snapshot)
		if err != nil {
			whole = whole && !errors.Is(err, colstore.ErrSnapshot)
			continue
		}
		tables = append(tables, v)
		for _, oid := range parts(v.Meta) {
			state.Published[oid] = published[oid]
		}
	}
	e.reg.mu.Unlock()
	if !whole && !anyway {
		return false, nil
	}
	state.Published[0] = published[0]
	extra, err := json.Marshal(state)
	if err != nil {
		return false, err
	}
	start := time.Now()
	err = e.disk.Save(&colstore.Checkpoint{Instance: e.name, SystemID: e.origin.systemID, Database: e.database, Snapshot: snapshot.String(),
		Position: position, Saved: start, Extra: extra}, tables)
	if err != nil {
		return false, err
	}
	e.stream.saved.Store(position)
	e.log.Debug("columns saved", "tables", len(tables), "took", time.Since(start).Round(time.Millisecond))
	return whole, nil
}
