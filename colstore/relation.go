package colstore

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"pgaccel/catalog"
	"pgaccel/compress"
	"pgaccel/internal/invariant"
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
	hidden   int      // position of the two columns of Row.Identity, 0 where there are none

	// writing is held by whoever changes rows or moves them: the stream, for each call,
	// and the work behind it for moments. It is taken before mu.
	writing sync.Mutex
	closed  bool
	parts   map[uint32]*part
	dicts   []*dictionary
	key     []int  // columns of the identity; all that are copied for a full one
	keyOK   bool   // rows can be found by key
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

// ErrDropped is what changes fail with after the store has given up the relation.
var ErrDropped = errors.New("the table was given up")

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

// Insert adds a row to a part (a leaf partition's OID; the table's own where it is
// not partitioned).
func (r *Relation) Insert(part uint32, row *Row) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	p, err := r.part(part)
	if err != nil {
		return err
	}
	seg, at, err := r.append(p, row, nil, 0)
	if err != nil {
		return err
	}
	if p.index == nil {
		return nil
	}
	return r.enter(p, seg, at)
}

// Update replaces a row. old names it, and is nil where the replica identity has not
// changed: then row names it. Columns of row that are ColumnUnchanged keep the old
// row's values.
func (r *Relation) Update(part uint32, old, row *Row) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	p, err := r.part(part)
	if err != nil {
		return err
	}
	same := old == nil
	if same {
		if r.full {
			return fmt.Errorf("%w: %s has the whole row as its identity", ErrIdentity, r.meta.QualifiedName())
		}
		old = row
	}
	hash, c, err := r.find(p, old)
	if err != nil {
		return err
	}
	addr := r.choose(p, hash, c, same)
	was := r.slots[addr>>16]
	seg, at, err := r.append(p, row, was, int(addr&0xffff))
	if err != nil {
		return err
	}
	r.remove(was, addr)
	r.pending.updates++
	if same {
		*p.index.at(c) = seg.slot<<16 | uint32(at)
		return nil
	}
	return r.enter(p, seg, at)
}

// Delete removes the row that old names; where several rows are the same (REPLICA
// IDENTITY FULL), one of them.
func (r *Relation) Delete(part uint32, old *Row) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	p, err := r.part(part)
	if err != nil {
		return err
	}
	hash, c, err := r.find(p, old)
	if err != nil {
		return err
	}
	addr := r.choose(p, hash, c, false)
	r.remove(r.slots[addr>>16], addr)
	return nil
}

// Truncate removes all rows of a part. Afterwards no snapshot that does not see the
// transaction can be read.
func (r *Relation) Truncate(part uint32) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	p, err := r.part(part)
	if err != nil {
		return err
	}
	// The part goes on under a new record; the old one goes with the commit.
	r.parts[part] = newPart(part)
	r.cleared = append(r.cleared, p)
	c := &r.pending
	of := func(slot uint32) bool { return r.slots[slot].part == p }
	c.inserts = slices.DeleteFunc(c.inserts, func(x run) bool { return of(x.slot) })
	c.deletes = slices.DeleteFunc(c.deletes, func(addr uint32) bool { return of(addr >> 16) })
	r.touched = slices.DeleteFunc(r.touched, func(seg *segment) bool { return seg.part == p })
	return nil
}

func newPart(oid uint32) *part { return &part{oid: oid} }

func (r *Relation) part(oid uint32) (*part, error) {
	if r.closed {
		return nil, ErrDropped
	}
	p := r.parts[oid]
	if p == nil {
		return nil, fmt.Errorf("table %d is no part of %s", oid, r.meta.QualifiedName())
	}
	return p, nil
}

// append puts a row at the end of the part; columns that are unchanged are those of
// row at of was.
func (r *Relation) append(p *part, row *Row, was *segment, from int) (seg *segment, at int, err error) {
	seg = p.tail
	if seg == nil || seg.n == r.store.segmentRows {
		if seg, err = r.newTail(p); err != nil {
			return nil, 0, err
		}
	}
	if seg.n == seg.buf.room {
		buf, err := newBuffers(&r.store.arena, r.copied, min(2*seg.n, r.store.segmentRows), seg.buf, seg.n)
		if err != nil {
			return nil, 0, err
		}
		seg.buf.mem.release()
		seg.buf = buf
	}
	at = seg.n
	for i := range row.State {
		if !r.copied[i] {
			continue
		}
		var v int64
		null := false
		switch row.State[i] {
		case ColumnValue:
			if d := r.dicts[i]; d != nil {
				code, _, err := d.add(row.Text[i], maphash.Bytes(hashSeed, row.Text[i]))
				if err != nil {
					return nil, 0, err
				}
				v = int64(code)
			} else {
				v = row.Int[i]
			}
		case ColumnNull:
			null = true
		case ColumnUnchanged:
			if was != nil {
				v, null = was.value(&r.scratch, i, from)
				break
			}
			fallthrough
		default:
			return nil, 0, fmt.Errorf("a row of %s lacks column %s", r.meta.QualifiedName(), r.meta.Columns[i].Name)
		}
		seg.put(i, v, null, r.floats[i])
	}
	if r.hidden > 0 {
		seg.put(r.hidden, int64(row.Identity[0]), false, false)
		seg.put(r.hidden+1, int64(row.Identity[1]), false, false)
	}
	seg.n++
	r.note(seg, at)
	return seg, at, nil
}

// put sets a column of the row being appended.
func (seg *segment) put(i int, v int64, null, float bool) {
	values, z := seg.buf.values[i], &seg.zones[i]
	if null {
		if seg.n > 0 {
			values[seg.n] = values[seg.n-1]
		} else {
			values[0] = 0
		}
		seg.buf.nulls[i][seg.n>>6] |= 1 << (uint(seg.n) & 63)
		z.nulls++
		return
	}
	values[seg.n] = v
	if float {
		v = compress.FloatKey(v)
	}
	z.lo, z.hi = min(z.lo, v), max(z.hi, v)
}

// note adds row at of a tail to what the transaction inserted.
func (r *Relation) note(seg *segment, at int) {
	runs := r.pending.inserts
	if k := len(runs) - 1; k >= 0 && runs[k].slot == seg.slot && int(runs[k].to) == at {
		runs[k].to++
		return
	}
	r.pending.inserts = append(runs, run{seg.slot, uint32(at), uint32(at + 1)})
	if !seg.busy {
		seg.busy = true
		r.touched = append(r.touched, seg)
	}
}

// newTail begins a segment of a part.
func (r *Relation) newTail(p *part) (*segment, error) {
	buf, err := newBuffers(&r.store.arena, r.copied, min(tailRowsMin, r.store.segmentRows), nil, 0)
	if err != nil {
		return nil, err
	}
	seg := &segment{part: p, buf: buf, zones: make([]zone, len(r.copied))}
	for i := range seg.zones {
		seg.zones[i] = emptyZone
	}
	r.mu.Lock()
	err = r.place(seg)
	r.mu.Unlock()
	if err != nil {
		buf.mem.release()
		return nil, err
	}
	p.tail = seg
	p.segments = append(p.segments, seg)
	return seg, nil
}

// place gives a segment a slot. Both locks are held.
func (r *Relation) place(seg *segment) error {
	slot := slices.Index(r.slots, nil)
	if slot < 0 {
		if slot = len(r.slots); slot > 0xffff {
			return fmt.Errorf("%s has too many segments", r.meta.QualifiedName())
		}
		r.slots = append(r.slots, nil)
	}
	r.slots[slot] = seg
	seg.slot = uint32(slot)
	return nil
}

// remove notes that a row is deleted.
func (r *Relation) remove(seg *segment, addr uint32) {
	row := int(addr & 0xffff)
	if n := (max(seg.n, seg.rows) + 63) / 64; len(seg.gone) < n {
		grown := make([]uint64, max(n, min(2*n, r.store.segmentRows/64)))
		copy(grown, seg.gone)
		seg.gone = grown
	}
	invariant.Check(!has(seg.gone, row), "row %d of segment %d is deleted twice", row, seg.slot)
	seg.gone[row>>6] |= 1 << (uint(row) & 63)
	r.pending.deletes = append(r.pending.deletes, addr)
}

// Commit makes what was done since the last Commit visible to snapshots that see
// transaction xid (64 bits, see pg_current_xact_id). lsn is the end of its commit
// record.
func (r *Relation) Commit(xid, lsn uint64) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	if r.closed {
		return ErrDropped
	}
	if len(r.pending.inserts)+len(r.pending.deletes)+len(r.cleared) == 0 {
		return nil
	}
	c := new(commit)
	*c, r.pending = r.pending, commit{}
	c.xid, c.lsn = xid, lsn
	slices.Sort(c.deletes)
	c.updates = min(c.updates, len(c.deletes))
	c.bytes = int64(96 + 12*cap(c.inserts) + 4*cap(c.deletes) + 8*cap(c.needs))
	inserted := int64(0)
	for _, x := range c.inserts {
		inserted += int64(x.to - x.from)
	}
	marks := make([]*mark, len(r.touched))
	for i, seg := range r.touched {
		marks[i], seg.busy = seg.newMark(), false
	}
	// Nobody else adds strings, so that lengths can be compared without a lock.
	dicts := make([]*Dict, 0, 8)
	for i, d := range r.dicts {
		if d != nil && (d.n != r.versions[i].n) {
			dicts = append(dicts, d.version())
		}
	}

	var garbage garbage
	r.mu.Lock()
	for _, p := range r.cleared {
		r.clear(p, &garbage)
	}
	if len(r.cleared) > 0 {
		r.required = append(slices.Clip(r.required), xid)
		r.invalidate(&garbage)
	}
	for i, seg := range r.touched {
		r.publish(seg, marks[i], &garbage)
	}
	for _, x := range c.inserts {
		seg := r.slots[x.slot]
		seg.unfolded = append(seg.unfolded, inserter{x.to, xid, r.seq + 1})
	}
	for _, d := range dicts {
		i := slices.Index(r.dicts, d.source)
		d.retain()
		garbage.dicts = append(garbage.dicts, r.versions[i])
		r.versions[i] = d
	}
	r.seq++
	c.seq = r.seq
	r.log, r.heads = append(r.log, c), append(r.heads, c.head())
	r.maxXid = max(r.maxXid, xid)
	r.history += c.bytes
	r.counts.rows += inserted - int64(len(c.deletes))
	r.counts.inserted += inserted - int64(c.updates)
	r.counts.updated += int64(c.updates)
	r.counts.deleted += int64(len(c.deletes) - c.updates)
	r.mu.Unlock()
	garbage.release()
	clear(r.touched)
	r.touched = r.touched[:0]
	r.cleared = nil
	r.store.behind.wake()
	return nil
}

// publish shows readers a segment up to a mark. mu is held.
func (r *Relation) publish(seg *segment, m *mark, g *garbage) {
	if seg.mark == nil {
		r.open = append(r.open, seg)
		m.buf.mem.retain()
	} else if seg.mark.buf != m.buf {
		g.blocks = append(g.blocks, seg.mark.buf.mem)
		m.buf.mem.retain()
	}
	seg.mark, seg.rows = m, m.rows
	if seg.rows == r.store.segmentRows {
		r.open = slices.DeleteFunc(r.open, func(o *segment) bool { return o == seg })
		r.invalidate(g)
	}
}

// clear gives up the segments of a truncated part, and what the log has about them.
// Both locks are held.
func (r *Relation) clear(p *part, g *garbage) {
	for _, c := range r.log {
		for _, addr := range c.deletes {
			if r.slots[addr>>16].part == p {
				r.counts.rows++
			}
		}
	}
	for _, seg := range p.segments {
		r.counts.rows -= int64(seg.rows - seg.deadCount)
		g.segment(seg)
		r.slots[seg.slot] = nil
	}
	r.open = slices.DeleteFunc(r.open, func(seg *segment) bool { return seg.part == p })
	p.dropIndex(g)
	log := make([]*commit, 0, len(r.log)+1)
	for _, c := range r.log {
		log = append(log, c.without(func(slot uint32) bool { return r.slots[slot] == nil }))
	}
	r.log = log
}

// dropIndex forgets where rows are, until one is looked for.
func (p *part) dropIndex(g *garbage) {
	if p.index == nil {
		return
	}
	g.blocks = append(g.blocks, p.index.mem)
	p.index = nil
	for _, seg := range p.segments {
		g.blocks = append(g.blocks, seg.chain)
		seg.chain, seg.next = nil, nil
	}
}

// without returns the commit without what concerns some segments.
func (c *commit) without(slot func(uint32) bool) *commit {
	if !slices.ContainsFunc(c.inserts, func(x run) bool { return slot(x.slot) }) &&
		!slices.ContainsFunc(c.deletes, func(addr uint32) bool { return slot(addr >> 16) }) {
		return c
	}
	d := *c
	d.inserts = slices.DeleteFunc(slices.Clone(c.inserts), func(x run) bool { return slot(x.slot) })
	d.deletes = slices.DeleteFunc(slices.Clone(c.deletes), func(addr uint32) bool { return slot(addr >> 16) })
	return &d
}

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
				garbage.blocks = append(garbage.blocks, d.table, d.text)
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
