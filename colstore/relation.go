package colstore

import (
	"errors"
	"time"

	"pgaccel/catalog"
)

// Relation is a table as the stream changes it: the writer's side of what readers
// see as a Table. It begins as a copy and takes committed transactions, one after
// the other in the order of their commits, each labelled with its top-level
// transaction id. All methods but those said otherwise belong to one goroutine at a
// time, the stream's; readers are never blocked by them, nor they by readers.
//
// After an error of Insert, Update, Delete or Commit the relation holds half a
// transaction and is good for nothing: the caller gives it up (Store.SetState).
type Relation struct {
	store *Store
	base  *Table
}

// ErrIdentity is what Update and Delete fail with where the row that they name is
// not there, or cannot be named: the copy is wrong, or lacks a column of the
// replica identity. errors.Is finds it.
var ErrIdentity = errors.New("the changed row is not in the copy")

// ErrSnapshot is what View fails with where the store no longer, or not yet, holds
// what the snapshot sees.
var ErrSnapshot = errors.New("the snapshot's rows are not held")

// StateError is what View fails with where the table is not ready.
type StateError struct{ State State }

// Error implements error.
func (e *StateError) Error() string { return "the table is " + e.State.String() }

// ColumnState says what a Row holds of a column.
type ColumnState uint8

// The states of a column in a Row.
const (
	// ColumnAbsent: not sent, or not copied (catalog.Column.Unsupported).
	ColumnAbsent ColumnState = iota
	ColumnNull
	ColumnValue
	// ColumnUnchanged: a new row's value that lies out of line (TOAST) and is the old
	// row's (pgoutput 'u').
	ColumnUnchanged
)

// Row is one row image: new rows with all copied columns, old ones with those of
// the replica identity at least. The slices are as long as Meta.Columns; what they
// refer to is copied where it is kept.
type Row struct {
	State []ColumnState
	Int   []int64  // in vector's 64-bit representation, not for text
	Text  [][]byte // for text
	// Identity is a hash of those columns of the replica identity that are not copied
	// (a uuid), in the server's binary form; see catalog.Table.HashIdentity. Zero
	// where there is none.
	Identity [2]uint64
}

// NewRow returns a row for meta with all columns absent.
func NewRow(meta *catalog.Table) *Row {
	n := len(meta.Columns)
	return &Row{State: make([]ColumnState, n), Int: make([]int64, n), Text: make([][]byte, n)}
}

// NewRelation makes a relation of a finished copy, whose reference it takes over.
// It holds what base.Snapshot sees.
func (s *Store) NewRelation(base *Table) *Relation { return &Relation{store: s, base: base} }

// Meta returns the definition that the relation has now.
func (r *Relation) Meta() *catalog.Table { return r.base.Meta }

// Snapshot returns the snapshot that the copy was made at.
func (r *Relation) Snapshot() Snapshot { return r.base.Snapshot }

// Insert adds a row to a part (a leaf partition's OID; the table's own where it is
// not partitioned).
func (r *Relation) Insert(part uint32, row *Row) error { return ErrIdentity }

// Update replaces a row. old names it, and is nil where the replica identity has not
// changed: then row names it. Columns of row that are ColumnUnchanged keep the old
// row's values.
func (r *Relation) Update(part uint32, old, row *Row) error { return ErrIdentity }

// Delete removes the row that old names; where several rows are the same (REPLICA
// IDENTITY FULL), one of them.
func (r *Relation) Delete(part uint32, old *Row) error { return ErrIdentity }

// Truncate removes all rows of a part. Afterwards no snapshot that does not see the
// transaction can be read.
func (r *Relation) Truncate(part uint32) error { return ErrIdentity }

// Commit makes what was done since the last Commit visible to snapshots that see
// transaction xid (64 bits, see pg_current_xact_id). lsn is the end of its commit
// record.
func (r *Relation) Commit(xid, lsn uint64) error { return nil }

// Redefine gives the relation a new definition with the same copied columns and
// parts: a GRANT, a rename, VACUUM FULL, a TRUNCATE. False where they differ: then
// nothing has happened. It may be called by any goroutine.
func (r *Relation) Redefine(meta *catalog.Table) bool { return false }

// Drop gives up a relation that was never published.
func (r *Relation) Drop() { r.base.Release() }

// View returns the table as the snapshot sees it, retained, to be Released by the
// caller. The stream must have passed the position that belongs to the snapshot
// (Wait). It fails with *StateError or ErrSnapshot.
func (s *Store) View(oid uint32, snap Snapshot) (*Table, error) {
	t, st := s.Get(oid)
	if t == nil {
		return nil, &StateError{st}
	}
	if !t.Snapshot.ContainedIn(snap) {
		t.Release()
		return nil, ErrSnapshot
	}
	return t, nil
}

// Observe tells of a snapshot that was taken on the server not before at, and of an
// insert position read after it, normalised. Commits that an observed snapshot sees
// can be folded some time later, and a reader that allows staleness may use it
// (Fresh).
func (s *Store) Observe(snap Snapshot, lsn uint64, at time.Time) {}

// Fresh returns the newest observed snapshot whose position the stream has passed,
// provided that it is at most maxAge old.
func (s *Store) Fresh(maxAge time.Duration) (Snapshot, bool) { return Snapshot{}, false }

// WantsSnapshot reports whether there are commits to fold that no observed snapshot
// has released yet: somebody should take a snapshot and Observe it.
func (s *Store) WantsSnapshot() bool { return false }

// Pin keeps what snap needs, as far as it is still there, until release is called
// (once). Past the limit of history (Options.HistoryLimit) it is dropped all the same.
func (s *Store) Pin(snap Snapshot) (release func()) { return func() {} }
