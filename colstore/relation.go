package colstore

import (
	"errors"
	"fmt"
	"slices"
	"sync"
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
	store    *Store
	snapshot Snapshot // of the copy
	copied   []bool   // by column, hidden ones included
	floats   []bool   // by column
	usage    *usage
	hidden   int // position of the two columns of Row.Identity, 0 where there are none

	// writing is held by whoever changes rows or moves them: the stream, for each call,
	// and the work behind it for moments. It is taken before mu.
	writing sync.Mutex
	closed  bool
	parts   map[uint32]*part
	dicts   []*dictionary
	key     []int  // columns of the identity; all that are copied for a full one
	full    bool   // REPLICA IDENTITY FULL
	pending commit // what the transaction at hand has done
	touched []*segment
	cleared []*part // truncated by it
	scratch scratch
	retry   time.Time // before it nothing is encoded or merged; of the work behind
	values  []int64   // of the key looked for
	nulls   []bool

	// mu guards what readers look at. Slots are changed under both locks.
	mu       sync.Mutex
	meta     *catalog.Table
	slots    []*segment // by number; nil for free ones
	open     []*segment // those with committed rows that are neither full nor encoded
	log      []*commit  // not folded, by seq; append only, replaced where folded
	heads    []head     // of log: what every reader looks at
	seq      uint64
	maxXid   uint64   // of the log
	horizon  Snapshot // what is folded in is seen by whoever sees this
	required []uint64 // truncates that the horizon does not see
	versions []*Dict  // of dicts, as of the last commit
	layout   *layout  // nil where it must be made anew
	views    [viewsMax]*viewed
	history  int64 // bytes of log
	counts   counts
}

// counts are of committed rows.
type counts struct{ rows, inserted, updated, deleted int64 }

// part is a leaf partition, or all of a table that has none.
type part struct {
	oid      uint32
	segments []*segment
	tail     *segment // being filled
	index    *index   // nil until a row is looked for
}

// commit is a committed transaction as far as it concerns the relation.
type commit struct {
	seq, xid, lsn uint64
	inserts       []run
	deletes       []uint32 // addresses, ascending
	// needs are transactions that a reader who sees this one must see, too: rows that
	// are all the same were deleted, and theirs were chosen.
	needs   []uint64
	updates int
	bytes   int64
}

// head is what decides whether a commit is seen.
type head struct {
	xid   uint64
	needy bool
}

func (c *commit) head() head { return head{c.xid, len(c.needs) > 0} }

// run is a run of rows of a segment.
type run struct{ slot, from, to uint32 }

// errIdentity is what Update and Delete fail with where the row that they name is
// not there, or cannot be named: the copy is wrong, or lacks a column of the
// replica identity. errors.Is finds it.
var errIdentity = errors.New("the changed row is not in the copy")

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
	// (an array), in the server's binary form; see catalog.Table.HashIdentity. Zero
	// where there is none.
	Identity [2]uint64
}

// NewRow returns a row for meta with all columns absent.
func NewRow(meta *catalog.Table) *Row {
	n := len(meta.Columns)
	return &Row{State: make([]ColumnState, n), Int: make([]int64, n), Text: make([][]byte, n)}
}

// errDropped is what changes fail with after the store has given up the relation.
var errDropped = errors.New("the table was given up")

// NewRelation makes a relation of a finished copy, whose reference it takes over.
// It holds what base.Snapshot sees.
func (s *Store) NewRelation(base *Table) *Relation {
	meta := base.Meta
	r := &Relation{store: s, snapshot: base.Snapshot, horizon: base.Snapshot, parts: map[uint32]*part{},
		dicts: make([]*dictionary, len(meta.Columns)), versions: make([]*Dict, len(meta.Columns))}
	for i := range meta.Columns {
		r.copied = append(r.copied, meta.Columns[i].Unsupported == "")
		r.floats = append(r.floats, meta.Columns[i].Type.Kind.IsFloat())
		if d := base.Dicts[i]; d != nil {
			d.retain() // for versions
			d.retain() // for the writer
			r.dicts[i], r.versions[i] = d.source, d
		}
	}
	if meta.HashIdentity() {
		r.hidden = len(meta.Columns)
		r.copied = append(r.copied, true, true)
	}
	r.parts[meta.OID] = &part{oid: meta.OID}
	if meta.Parts != nil {
		clear(r.parts)
		for _, p := range meta.Parts {
			r.parts[p.OID] = &part{oid: p.OID}
		}
	}
	for slot, seg := range base.Segments {
		p := r.parts[seg.part]
		if p == nil {
			panic(fmt.Sprintf("BUG: rows of part %d of %s", seg.part, meta.QualifiedName()))
		}
		seg.mem.retain()
		own := &segment{slot: uint32(slot), part: p, n: seg.Rows, rows: seg.Rows, columns: seg.Columns, mem: seg.mem, image: seg}
		if seg.Live != nil { // of a checkpoint
			own.dead = allLive(seg.Rows)
			for i, w := range seg.Live {
				own.dead[i] &^= w
			}
			own.gone, own.deadCount = slices.Clone(own.dead), count(own.dead)
		}
		p.segments = append(p.segments, own)
		r.slots = append(r.slots, own)
	}
	r.usage = newUsage(len(meta.Columns), s.behind.wake)
	base.usage = r.usage
	r.counts.rows = base.Rows
	r.define(meta)
	r.layout = r.newLayout()
	r.views[0] = r.layout.view(base)
	return r
}

// define takes over the definition. Both locks are held, or nobody knows r.
func (r *Relation) define(meta *catalog.Table) {
	r.meta = meta
	r.key, r.full = nil, meta.IdentityFull
	if r.full {
		for i, ok := range r.copied {
			if ok {
				r.key = append(r.key, i)
			}
		}
	} else {
		for _, c := range meta.Identity {
			if r.copied[c] {
				r.key = append(r.key, c)
			}
		}
		if r.hidden > 0 {
			r.key = append(r.key, r.hidden, r.hidden+1)
		}
	}
	r.values, r.nulls = make([]int64, len(r.key)), make([]bool, len(r.key))
}

// Meta returns the definition that the relation has now. Any goroutine may ask.
func (r *Relation) Meta() *catalog.Table {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.meta
}

// Snapshot returns the snapshot that the copy was made at.
func (r *Relation) Snapshot() Snapshot { return r.snapshot }

// Redefine gives the relation a new definition with the same copied columns and
// parts: a GRANT, a rename, VACUUM FULL, a TRUNCATE. False where they differ: then
// nothing has happened. It may be called by any goroutine.
func (r *Relation) Redefine(meta *catalog.Table) bool {
	var garbage garbage
	defer garbage.release()
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || !sameShape(r.meta, meta) {
		return false
	}
	if r.meta.IdentityFull != meta.IdentityFull || !slices.Equal(r.meta.Identity, meta.Identity) {
		for _, p := range r.parts {
			p.dropIndex(&garbage)
		}
		for _, p := range r.cleared {
			p.dropIndex(&garbage)
		}
	}
	r.define(meta)
	r.invalidate(&garbage)
	return true
}

// sameShape reports whether rows copied under one definition are rows of the other.
func sameShape(a, b *catalog.Table) bool {
	hashed := func(t *catalog.Table) (cols []int) {
		for _, c := range t.Identity {
			if t.Columns[c].Unsupported != "" {
				cols = append(cols, c)
			}
		}
		return cols
	}
	return a.OID == b.OID && slices.Equal(hashed(a), hashed(b)) &&
		slices.EqualFunc(a.Columns, b.Columns, func(x, y catalog.Column) bool {
			return x.AttNum == y.AttNum && x.TypeOID == y.TypeOID && x.Type == y.Type && x.Unsupported == y.Unsupported
		}) &&
		slices.EqualFunc(a.Parts, b.Parts, func(x, y catalog.Part) bool { return x.OID == y.OID }) &&
		(a.Parts == nil) == (b.Parts == nil)
}

// Drop gives up a relation that was never published.
func (r *Relation) Drop() { r.close() }

// Unranked returns the text columns whose order only the server knows and whose
// dictionary has strings without a rank: those that SetRanks should be called for. Any
// goroutine may ask.
func (r *Relation) Unranked() (cols []int) {
	r.mu.Lock()
	versions := slices.Clone(r.versions)
	r.mu.Unlock()
	for i, d := range versions {
		if d != nil && !d.source.ranking.memcmp && d.Ranks() == nil {
			cols = append(cols, i)
		}
	}
	return cols
}

// Dict returns the dictionary of a text column as of the last commit, valid until
// release is called; nil for other columns and once the relation was given up. Any
// goroutine may ask.
func (r *Relation) Dict(col int) (d *Dict, release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.versions[col] == nil {
		return nil, func() {}
	}
	d = r.versions[col]
	d.retain()
	return d, d.release
}

// SetRanks sets the ranks of the first codes of a text column, in the order of its
// collation. It takes over the slice. Versions with no more codes than that have ranks
// from now on, those that readers hold included. Any goroutine may call it.
func (r *Relation) SetRanks(col int, ranks []int32) {
	k := &r.dicts[col].ranking
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ranks == nil || len(ranks) > len(k.ranks) {
		k.ranks = ranks
	}
}

// describe fills in what is known of the relation's rows.
func (r *Relation) describe(st *Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	st.Name = r.meta.QualifiedName()
	st.Rows, st.Inserted, st.Updated, st.Deleted = r.counts.rows, r.counts.inserted, r.counts.updated, r.counts.deleted
	st.Bytes, st.Deltas, st.HistoryBytes = r.bytes(), len(r.log), r.history
	st.Segments = 0
	for _, seg := range r.slots {
		if seg != nil && seg.rows > 0 {
			st.Segments++
		}
	}
}

// close gives up the relation; readers keep what they have.
func (r *Relation) close() {
	if r == nil {
		return
	}
	var garbage garbage
	r.writing.Lock()
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		for _, seg := range r.slots {
			if seg != nil {
				garbage.segment(seg)
			}
		}
		for _, p := range r.parts {
			p.dropIndex(&garbage)
		}
		for _, p := range r.cleared {
			p.dropIndex(&garbage)
		}
		r.invalidate(&garbage)
		for i, d := range r.dicts {
			if d != nil {
				garbage.dicts = append(garbage.dicts, r.versions[i])
				// The dictionary's own table may be a later one than the version's.
				garbage.blocks = append(garbage.blocks, d.memory()...)
			}
		}
		r.slots, r.open, r.log, r.heads, r.parts, r.history = nil, nil, nil, nil, nil, 0
	}
	r.mu.Unlock()
	r.writing.Unlock()
	garbage.release()
}

// garbage is what is given back once the locks are let go: it takes a while.
type garbage struct {
	blocks []*block
	dicts  []*Dict
	layout []*layout
	tables []*Table
}

// segment gives up the writer's and the readers' hold of a segment.
func (g *garbage) segment(seg *segment) {
	if seg.buf != nil {
		g.blocks = append(g.blocks, seg.buf.mem)
	}
	if seg.mark != nil {
		g.blocks = append(g.blocks, seg.mark.buf.mem)
	}
	g.blocks = append(g.blocks, seg.mem, seg.chain)
	seg.chain, seg.next = nil, nil
}

func (g *garbage) release() {
	for _, t := range g.tables {
		t.Release()
	}
	for _, l := range g.layout {
		l.release()
	}
	for _, d := range g.dicts {
		d.release()
	}
	for _, b := range g.blocks {
		b.release()
	}
}
