package colstore

import (
	"context"
	"errors"
	"time"

	"pgaccel/catalog"
)

// Options are a store's settings.
type Options struct {
	// MemoryLimit is the most bytes of column memory (columns, null bitmaps,
	// dictionaries) of all tables together; 0 means 8 GiB.
	MemoryLimit int64
	// SegmentRows is the rows of a segment, a multiple of 1024; 0 means 65536.
	SegmentRows int
}

// State is what a table is good for.
type State uint8

// The states. Only a StateReady table answers queries.
const (
	StateCopying State = iota // the first copy, or a new one, is under way
	StateReady
	StateChanged // the stream brought a change that the copy does not hold
	StateRefused // cannot be held: memory, replica identity, ...
	StateFailed  // the copy failed; it will be tried again
)

var stateNames = [...]string{"copying", "ready", "changed", "refused", "failed"}

// String returns the state as pgaccel.tables shows it.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Status describes one table of the store to people.
type Status struct {
	OID         uint32
	Name        string // schema.name
	State       State
	Detail      string // why, in a sentence; empty where there is nothing to say
	Rows, Bytes int64
	Copied      time.Time // end of the last copy; zero before
}

// ErrStream is what Wait fails with while the replication stream is down.
var ErrStream = errors.New("the replication stream is not connected")

// Store holds the published version of each table. All methods are safe for any
// number of goroutines.
type Store struct{}

// New returns an empty store.
func New(o Options) *Store { panic("BUG: colstore.New is being written") }

// Close gives all memory back. No reader may be left.
func (s *Store) Close() {}

// Usage returns the column memory in use and its limit, in bytes.
func (s *Store) Usage() (used, limit int64) { return 0, 0 }

// NewLoader begins a new version of a table.
func (s *Store) NewLoader(meta *catalog.Table) *Loader { return nil }

// Publish makes t the version that Get returns, in StateReady, and releases the
// version before it. The store takes over the caller's reference.
func (s *Store) Publish(t *Table) {}

// SetState sets a table's state without a version; the version before is released.
func (s *Store) SetState(meta *catalog.Table, st State, detail string) {}

// MarkChanged notes that the stream brought a change of the table: Get returns no
// version until the next Publish.
func (s *Store) MarkChanged(oid uint32) {}

// Get returns the published version, retained, and the state. The table is nil
// unless the state is StateReady. An unknown table is StateCopying.
func (s *Store) Get(oid uint32) (*Table, State) { return nil, StateCopying }

// Statuses lists all tables by name.
func (s *Store) Statuses() []Status { return nil }

// Remove forgets a table.
func (s *Store) Remove(oid uint32) {}

// SetCatalog replaces the catalog.
func (s *Store) SetCatalog(c *catalog.Catalog) {}

// Catalog returns the last catalog set, an empty one before that; never nil.
func (s *Store) Catalog() *catalog.Catalog { return nil }

// OnCatalog registers f to be called after each SetCatalog, Publish, SetState and
// Remove.
func (s *Store) OnCatalog(f func()) {}

// Advance notes that the stream has been seen up to lsn; it never goes back.
func (s *Store) Advance(lsn uint64) {}

// Applied returns the position of the last Advance.
func (s *Store) Applied() uint64 { return 0 }

// SetConnected says whether the stream is up. While it is not, Wait fails.
func (s *Store) SetConnected(up bool) {}

// OnWait registers the hook that is called once for each Wait that is not
// satisfied at once, with its target, on the waiter's goroutine.
func (s *Store) OnWait(f func(target uint64)) {}

// Wait returns when everything before lsn has been seen; ErrStream while the
// stream is down, ctx.Err() where that ends first.
func (s *Store) Wait(ctx context.Context, lsn uint64) error { return ErrStream }
