package colstore

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pgaccel/catalog"
	"pgaccel/compress"
)

// segmentRowsMax is what the 16 bits of an address hold; see the package comment.
const segmentRowsMax = 1 << 16

// Options are a store's settings.
type Options struct {
	// MemoryLimit is the most bytes of column memory (columns, null bitmaps,
	// dictionaries) of all tables together; 0 means 8 GiB.
	MemoryLimit int64
	// Memory is shared with other stores, and has a limit of its own; nil: the store has its own.
	Memory *Memory
	// SegmentRows is the rows of a segment, a multiple of 1024; 0 means 65536.
	SegmentRows int
	// Codec forces one codec wherever it can hold the values; the zero value lets
	// each segment choose. For tests.
	Codec compress.Codec
	// FoldLag is how old a snapshot must be before what it sees is folded in, so that
	// readers at somewhat older ones still find theirs; 0 means 250 ms.
	FoldLag time.Duration
	// IndexAll has every column that queries use indexed, worth it or not. For tests.
	IndexAll bool
	// PackedMin is how many strings a dictionary of a copy is packed from on; 0 means 512.
	// For tests.
	PackedMin int
	// HistoryLimit is the bytes of commits that are kept for pinned snapshots; 0 means
	// 256 MiB.
	HistoryLimit int64

	now    func() time.Time // the clock; for tests
	manual bool             // nothing is done in the background but by a test
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
	Detail      string    // why, in a sentence; empty where there is nothing to say
	Rows, Bytes int64     // now; as of its last moment and 0 once it is given up
	Copied      time.Time // end of the last copy; zero before

	Inserted, Updated, Deleted int64 // rows since the copy
	Segments                   int
	Deltas                     int           // commits that are not folded in
	HistoryBytes               int64         // what they take
	OldestPin                  time.Duration // age of the oldest pin, of any table
}

// Store holds the published version of each table. All methods are safe for any
// number of goroutines.
type Store struct {
	arena       *arena
	memory      *Memory // which has the arena
	owned       bool    // it is this store's alone
	segmentRows int
	packedMin   int
	codec       compress.Codec
	progress    progress
	history     history
	behind      behind
	indexer     indexer
	catalog     atomic.Pointer[catalog.Catalog]

	mu     sync.RWMutex
	tables map[uint32]*published
	hooks  []func() // of OnCatalog
}

// published is what the store knows of one table.
type published struct {
	status   Status
	relation *Relation // nil unless the state is StateReady
}

// New returns an empty store. The stream counts as not connected.
func New(o Options) *Store {
	if o.MemoryLimit == 0 {
		o.MemoryLimit = 8 << 30
	}
	if o.SegmentRows == 0 {
		o.SegmentRows = segmentRowsMax
	}
	if o.PackedMin == 0 {
		o.PackedMin = packedMin
	}
	if o.SegmentRows%1024 != 0 || o.SegmentRows < 0 || o.SegmentRows > segmentRowsMax || o.MemoryLimit < 0 {
		panic(fmt.Sprintf("BUG: store of %d bytes in segments of %d rows", o.MemoryLimit, o.SegmentRows))
	}
	s := &Store{segmentRows: o.SegmentRows, packedMin: o.PackedMin, codec: o.Codec, tables: map[uint32]*published{}}
	if o.Memory == nil {
		s.owned, o.Memory = true, NewMemory(o.MemoryLimit)
	}
	s.memory, s.arena = o.Memory, &o.Memory.arena
	s.arena.join(&s.indexer)
	s.indexer.always = o.IndexAll
	s.history.init(o)
	s.behind.init(s, o)
	s.catalog.Store(&catalog.Catalog{})
	return s
}

// Close gives all memory back: where it is shared to the other stores, else to the system. No
// reader and no loader may be left; waiters fail with ErrStream.
func (s *Store) Close() {
	s.SetConnected(false)
	s.behind.stop()
	s.mu.Lock()
	var all []*Relation
	for _, p := range s.tables {
		all = append(all, p.drop())
	}
	clear(s.tables)
	s.mu.Unlock()
	for _, r := range all {
		r.close()
	}
	s.arena.leave(&s.indexer)
	if s.owned {
		s.memory.Close()
	}
}

// Memory returns the memory that holds the tables.
func (s *Store) Memory() *Memory { return s.memory }

// Usage returns the column memory in use, by other stores too where it is shared, and its limit, in bytes.
func (s *Store) Usage() (used, limit int64) { return s.arena.usage() }

// drop gives up the relation and returns it, to be closed once s.mu is let go:
// giving memory back takes a while, and readers must not wait for it.
func (p *published) drop() *Relation {
	r := p.relation
	if r != nil {
		r.describe(&p.status)
	}
	st := &p.status
	p.relation, st.Bytes, st.Segments, st.Deltas, st.HistoryBytes = nil, 0, 0, 0, 0
	return r
}

func release(t *Table) {
	if t != nil {
		t.Release()
	}
}

// table returns the record of a table, a new one in StateCopying where there is
// none. s.mu is held.
func (s *Store) table(meta *catalog.Table) *published {
	p := s.tables[meta.OID]
	if p == nil {
		p = &published{}
		s.tables[meta.OID] = p
	}
	p.status.OID, p.status.Name = meta.OID, meta.QualifiedName()
	return p
}

// Publish makes r what View and Get return, in StateReady, and gives up the
// relation before it. The store takes r over. Changes noted by MarkChanged before
// are forgotten: a caller that saw one which r does not hold calls MarkChanged
// again, after Publish.
func (s *Store) Publish(r *Relation) {
	meta := r.Meta()
	s.mu.Lock()
	p := s.table(meta)
	old := p.drop()
	p.relation = r
	p.status.State, p.status.Detail, p.status.Copied = StateReady, "", time.Now()
	s.mu.Unlock()
	old.close()
	s.behind.wake()
	s.changed()
}

// SetState sets a table's state, which is any but StateReady, and gives up its
// version.
func (s *Store) SetState(meta *catalog.Table, st State, detail string) {
	if st == StateReady {
		panic("BUG: a table becomes ready by Publish only")
	}
	s.mu.Lock()
	p := s.table(meta)
	old := p.drop()
	p.status.State, p.status.Detail = st, detail
	s.mu.Unlock()
	old.close()
	s.changed()
}

// MarkChanged notes that the stream brought a change of the table. A ready table
// becomes StateChanged and its version is given up, until the next Publish; in
// other states, and for tables that the store does not know, nothing happens. It
// is cheap enough to be called for each change.
func (s *Store) MarkChanged(oid uint32) {
	s.mu.RLock()
	p := s.tables[oid]
	ready := p != nil && p.relation != nil
	s.mu.RUnlock()
	if !ready {
		return
	}
	var old *Relation
	s.mu.Lock()
	if p := s.tables[oid]; p != nil && p.relation != nil {
		old = p.drop()
		p.status.State, p.status.Detail = StateChanged, "changed after it was copied"
	}
	s.mu.Unlock()
	old.close()
}

// Get returns the published table with all that the stream has brought, retained,
// and the state. The table is nil unless the state is StateReady. An unknown table is
// StateCopying.
func (s *Store) Get(oid uint32) (*Table, State) {
	t, err := s.View(oid, Everything)
	if err != nil {
		return nil, s.State(oid)
	}
	return t, StateReady
}

// View returns the table as the snapshot sees it, retained, to be Released by the
// caller. The stream must have passed the position that belongs to the snapshot
// (Wait). It fails with *StateError or ErrSnapshot.
func (s *Store) View(oid uint32, snap Snapshot) (*Table, error) {
	var last *Relation
	for {
		s.mu.RLock()
		var r *Relation
		st := StateCopying
		if p := s.tables[oid]; p != nil {
			r, st = p.relation, p.status.State
		}
		s.mu.RUnlock()
		if r == nil {
			return nil, &StateError{st}
		}
		t, err := r.view(snap)
		if err != errDropped {
			return t, err
		}
		// It was given up just now.
		if r == last {
			return nil, &StateError{StateChanged}
		}
		last = r
	}
}

// Same reports whether v, which View or Get returned, holds the rows that View would return
// for the snapshot now, under the same definition. The stream must have passed the
// snapshot's position, as for View. False says nothing: the rows may be the same in another
// version.
func (s *Store) Same(v Version, snap Snapshot) bool {
	s.mu.RLock()
	var r *Relation
	if p := s.tables[v.OID]; p != nil {
		r = p.relation
	}
	s.mu.RUnlock()
	return r != nil && r.same(v.ID, snap)
}

// State returns what Get would, without retaining the version.
func (s *Store) State(oid uint32) State {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if p := s.tables[oid]; p != nil {
		return p.status.State
	}
	return StateCopying
}

// Rows returns the number of rows of a table that is ready.
func (s *Store) Rows(oid uint32) (n int64, ready bool) {
	s.mu.RLock()
	var r *Relation
	if p := s.tables[oid]; p != nil {
		r = p.relation
	}
	s.mu.RUnlock()
	if r == nil {
		return 0, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts.rows, !r.closed
}

// Detail returns why a table is in its state, in a sentence.
func (s *Store) Detail(oid uint32) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if p := s.tables[oid]; p != nil {
		return p.status.Detail
	}
	return ""
}

// Statuses lists all tables by name.
func (s *Store) Statuses() []Status {
	s.mu.RLock()
	defer s.mu.RUnlock()
	pin := s.history.oldestPin()
	all := make([]Status, 0, len(s.tables))
	for _, p := range s.tables {
		st := p.status
		if p.relation != nil {
			p.relation.describe(&st)
			st.OldestPin = pin
		}
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b Status) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return int(a.OID) - int(b.OID)
	})
	return all
}

// Remove forgets a table.
func (s *Store) Remove(oid uint32) {
	s.mu.Lock()
	var old *Relation
	p := s.tables[oid]
	if p != nil {
		old = p.drop()
		delete(s.tables, oid)
	}
	s.mu.Unlock()
	old.close()
	if p != nil {
		s.changed()
	}
}

// SetCatalog replaces the catalog.
func (s *Store) SetCatalog(c *catalog.Catalog) {
	s.catalog.Store(c)
	s.changed()
}

// Catalog returns the last catalog set, an empty one before that; never nil.
func (s *Store) Catalog() *catalog.Catalog { return s.catalog.Load() }

// OnCatalog registers f to be called after each SetCatalog, Publish, SetState and
// Remove, on the caller's goroutine, without locks held.
func (s *Store) OnCatalog(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = append(slices.Clip(s.hooks), f)
}

func (s *Store) changed() {
	s.mu.RLock()
	hooks := s.hooks
	s.mu.RUnlock()
	for _, f := range hooks {
		f()
	}
}
