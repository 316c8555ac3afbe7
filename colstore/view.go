package colstore

import (
	"math"
	"slices"
	"sync/atomic"
)

// layout is what readers share between two folds: the segments that are full or
// encoded, with folded deletes. It holds a reference to the memory of each.
type layout struct {
	refs     atomic.Int64
	segments []*Segment // by slot; nil for free and open ones
	live     []int      // rows of each
	mem      []*block
}

// newLayout makes the layout as of now. r.mu is held.
func (r *Relation) newLayout() *layout {
	l := &layout{segments: make([]*Segment, len(r.slots)), live: make([]int, len(r.slots)), mem: make([]*block, 0, len(r.slots))}
	l.refs.Store(1)
	for slot, seg := range r.slots {
		if seg == nil || seg.columns == nil && seg.rows < r.store.segmentRows {
			continue
		}
		s := seg.base()
		l.segments[slot], l.live[slot] = s, seg.rows-seg.deadCount
		s.mem.retain()
		l.mem = append(l.mem, s.mem)
	}
	return l
}

func (l *layout) release() {
	if l.refs.Add(-1) == 0 {
		for _, b := range l.mem {
			b.release()
		}
	}
}

// viewed is a Table, and what it was made of, so that the next one need not be made
// from the beginning.
type viewed struct {
	table    *Table
	layout   *layout // the table's
	snap     Snapshot
	seq      uint64 // of the relation's last commit
	log      []*commit
	sees     []bool // by position in log
	all      bool   // sees all of log
	segments []*Segment
	live     []int
}

// viewsMax: a long reader beside short ones, each with its own view.
const viewsMax = 2

// view describes the table of a fresh copy.
func (l *layout) view(t *Table) *viewed {
	return &viewed{table: t, layout: l, all: true, segments: l.segments, live: l.live}
}

// invalidate forgets what was made for readers. r.mu is held.
func (r *Relation) invalidate(g *garbage) {
	if r.layout != nil {
		g.layout = append(g.layout, r.layout)
		r.layout = nil
	}
	for i, v := range r.views {
		if v != nil {
			g.tables = append(g.tables, v.table)
			r.views[i] = nil
		}
	}
}

// Everything sees all transactions.
var Everything = Snapshot{Xmin: math.MaxUint64, Xmax: math.MaxUint64}

// view returns the table as snap sees it.
func (r *Relation) view(snap Snapshot) (*Table, error) {
	var garbage garbage
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, errDropped
	}
	if !r.reads(snap) {
		r.mu.Unlock()
		return nil, ErrSnapshot
	}
	for _, v := range r.views {
		if v != nil && v.seq == r.seq && (v.all && r.maxXid < snap.Xmin || len(r.log) == 0 || v.snap.equal(snap)) {
			v.table.Retain()
			r.mu.Unlock()
			return v.table, nil
		}
	}
	b := r.capture(snap)
	r.mu.Unlock()

	for i, h := range b.heads {
		b.sees[i] = h.xid < snap.Xmin || snap.Sees(h.xid)
		b.all = b.all && b.sees[i]
		if h.needy && b.sees[i] && !b.log[i].suffices(snap) {
			b.give()
			release(b.fromTable())
			return nil, ErrSnapshot
		}
	}
	if v := b.from; v != nil && v.seq == b.seq && slices.Equal(v.sees, b.sees) {
		b.give()
		return v.table, nil // with the reference that capture took
	}
	v := b.build()
	release(b.fromTable())
	r.mu.Lock()
	if b.layout == r.layout && !r.closed {
		v.table.Retain()
		if old := r.views[viewsMax-1]; old != nil {
			garbage.tables = append(garbage.tables, old.table)
		}
		copy(r.views[1:], r.views[:])
		r.views[0] = v
	}
	r.mu.Unlock()
	garbage.release()
	return v.table, nil
}

// same reports whether the version holds exactly what snap sees of the relation. It is exact where
// it says true: it is one of the views that are kept, of the segments that there are, and
// the commits that snap sees are those that it was made of. Otherwise nothing is known.
func (r *Relation) same(version uint64, snap Snapshot) bool {
	r.mu.Lock()
	if r.closed || !r.reads(snap) {
		r.mu.Unlock()
		return false
	}
	i := slices.IndexFunc(r.views[:], func(v *viewed) bool { return v != nil && v.table.ID == version })
	if i < 0 || r.views[i].layout != r.layout {
		r.mu.Unlock()
		return false
	}
	v, log, heads := r.views[i], r.log, r.heads
	known := v.seq == r.seq && (len(log) == 0 || v.all && r.maxXid < snap.Xmin)
	r.mu.Unlock()
	if known {
		return true
	}
	// While the layout is the same the log only grows.
	for i, h := range heads {
		sees := h.xid < snap.Xmin || snap.Sees(h.xid)
		if sees != (i < len(v.sees) && v.sees[i]) || sees && h.needy && !log[i].suffices(snap) {
			return false
		}
	}
	return true
}

// reads reports whether the relation holds what snap sees. r.mu is held.
func (r *Relation) reads(snap Snapshot) bool {
	if r.horizon.Xmax > snap.Xmin && !r.horizon.ContainedIn(snap) {
		return false
	}
	for _, xid := range r.required {
		if !snap.Sees(xid) {
			return false
		}
	}
	return true
}

// suffices reports whether a snapshot that sees the commit sees what it needs, too.
func (c *commit) suffices(s Snapshot) bool {
	return !slices.ContainsFunc(c.needs, func(xid uint64) bool { return !s.Sees(xid) })
}

func (a Snapshot) equal(b Snapshot) bool {
	return a.Xmin == b.Xmin && a.Xmax == b.Xmax && slices.Equal(a.Xip, b.Xip)
}

// builder makes a view outside of the lock, from what was captured under it.
type builder struct {
	relation *Relation
	viewed
	heads []head  // of log
	from  *viewed // an earlier one with the same layout, its table retained; may be nil
	open  []opened
	bytes int64
	own   []bool // by slot: Live is the builder's to write
}

// opened is an open segment as captured.
type opened struct {
	slot uint32
	part uint32
	mark *mark
	dead []uint64
	was  *Segment // the mark's image, if any
	live int
}

// capture takes references to what a view needs. r.mu is held.
func (r *Relation) capture(snap Snapshot) *builder {
	if r.layout == nil {
		r.layout = r.newLayout()
	}
	r.layout.refs.Add(1)
	b := &builder{relation: r, viewed: viewed{layout: r.layout, snap: snap, seq: r.seq, log: r.log, all: true}}
	b.heads, b.sees = r.heads, make([]bool, len(r.log))
	b.table = &Table{ID: NewID(), Meta: r.meta, Dicts: slices.Clone(r.versions), Snapshot: r.snapshot, usage: r.usage}
	for _, d := range r.versions {
		if d != nil {
			d.retain()
		}
	}
	b.open = make([]opened, len(r.open))
	for i, seg := range r.open {
		seg.mark.buf.mem.retain()
		b.open[i] = opened{seg.slot, seg.part.oid, seg.mark, seg.dead, seg.mark.image, seg.rows - seg.deadCount}
	}
	for _, v := range r.views {
		// The newest of this layout. Between two views of a layout the log only grows.
		if v != nil && v.layout == r.layout && (b.from == nil || v.seq > b.from.seq) {
			b.from = v
		}
	}
	if b.from != nil {
		b.from.table.Retain()
	}
	b.bytes = r.bytes()
	return b
}

// give returns what capture took, but for the reference to from.table.
func (b *builder) give() {
	b.layout.release()
	for _, d := range b.table.Dicts {
		if d != nil {
			d.release()
		}
	}
	for _, o := range b.open {
		o.mark.buf.mem.release()
	}
}

// build makes the view.
func (b *builder) build() *viewed {
	n := len(b.layout.segments)
	for _, o := range b.open {
		n = max(n, int(o.slot)+1)
	}
	from := b.from
	if from == nil {
		from = b.layout.view(nil)
	}
	b.segments, b.live, b.own = make([]*Segment, n), make([]int, n), make([]bool, n)
	copy(b.segments, from.segments)
	copy(b.live, from.live)
	for i := range b.open {
		b.extend(&b.open[i])
	}
	// Segments of commits that from.table sees and this one does not, or the other way
	// round, begin anew.
	again := make([]bool, n)
	some := false
	for i, sees := range from.sees {
		if sees == b.sees[i] {
			continue
		}
		some = true
		b.log[i].each(func(slot uint32) { again[slot] = true })
	}
	if some {
		for slot, do := range again {
			if do {
				b.reset(uint32(slot))
			}
		}
		for i := range from.sees {
			b.apply(i, again)
		}
	}
	for i := len(from.sees); i < len(b.log); i++ {
		b.apply(i, nil)
	}
	return b.finish()
}

func (b *builder) fromTable() *Table {
	if b.from == nil {
		return nil
	}
	return b.from.table
}

// each names the segments that a commit concerns.
func (c *commit) each(f func(slot uint32)) {
	for _, x := range c.inserts {
		f(x.slot)
	}
	for i := 0; i < len(c.deletes); i = c.skip(i) {
		f(c.deletes[i] >> 16)
	}
}

// skip returns where the deletes of the next segment begin.
func (c *commit) skip(i int) int {
	slot := c.deletes[i] >> 16
	if last := len(c.deletes) - 1; c.deletes[last]>>16 == slot {
		return last + 1
	}
	j, _ := slices.BinarySearch(c.deletes[i:], (slot+1)<<16)
	return i + j
}

// extend takes over an open segment, with the live rows that from.table had of it and
// those that came after it.
func (b *builder) extend(o *opened) {
	was := b.segments[o.slot]
	if was != nil && was.Rows == o.mark.rows {
		return
	}
	image := o.was
	if image == nil {
		image = o.mark.segment(o.slot, o.part)
		r := b.relation
		r.mu.Lock()
		o.mark.image = image
		r.mu.Unlock()
		o.was = image
	}
	if was == nil {
		b.fresh(o)
		return
	}
	seg := *image
	if was.Live != nil {
		seg.Live = allLive(seg.Rows)
		copy(seg.Live, was.Live)
		if was.Rows%64 != 0 {
			seg.Live[was.Rows/64] |= ^uint64(0) << (was.Rows % 64)
			if seg.Rows/64 == was.Rows/64 {
				seg.Live[was.Rows/64] &= 1<<(seg.Rows%64) - 1
			}
		}
		b.own[o.slot] = true
	}
	b.segments[o.slot] = &seg
	b.live[o.slot] += seg.Rows - was.Rows
}

// fresh sets an open segment to its folded state.
func (b *builder) fresh(o *opened) {
	seg := *o.was
	seg.Live = liveOf(o.dead, seg.Rows)
	b.segments[o.slot], b.live[o.slot] = &seg, o.live
	b.own[o.slot] = true
}

// reset sets a segment to its folded state.
func (b *builder) reset(slot uint32) {
	for i := range b.open {
		if o := &b.open[i]; o.slot == slot {
			if o.was == nil {
				o.was = o.mark.segment(o.slot, o.part)
			}
			b.fresh(o)
			return
		}
	}
	b.segments[slot], b.live[slot] = b.layout.segments[slot], b.layout.live[slot]
	b.own[slot] = false
}

// writable returns a segment's live bitmap, to be written.
func (b *builder) writable(slot uint32) []uint64 {
	seg := b.segments[slot]
	if !b.own[slot] {
		c := *seg
		if c.Live != nil {
			c.Live = slices.Clone(c.Live)
		}
		seg = &c
		b.segments[slot], b.own[slot] = seg, true
	}
	if seg.Live == nil {
		seg.Live = allLive(seg.Rows)
	}
	return seg.Live
}

// apply takes out the rows that a commit deleted, if it is seen, or inserted, if not:
// in some segments, or in all where some is nil.
func (b *builder) apply(i int, some []bool) {
	c := b.log[i]
	if !b.sees[i] {
		for _, x := range c.inserts {
			if some == nil || some[x.slot] {
				b.live[x.slot] -= clearRange(b.writable(x.slot), int(x.from), int(x.to))
			}
		}
		return
	}
	for k := 0; k < len(c.deletes); {
		end := c.skip(k)
		slot := c.deletes[k] >> 16
		if some == nil || some[slot] {
			live := b.writable(slot)
			n := 0
			for _, addr := range c.deletes[k:end] {
				w, bit := &live[addr&0xffff>>6], uint64(1)<<(addr&63)
				if *w&bit != 0 {
					n++
					*w &^= bit
				}
			}
			b.live[slot] -= n
		}
		k = end
	}
}

// finish makes the table.
func (b *builder) finish() *viewed {
	t := b.table
	t.Segments = make([]*Segment, 0, len(b.segments))
	for slot, seg := range b.segments {
		if b.own[slot] && b.live[slot] == seg.Rows {
			seg.Live = nil
		}
		if b.own[slot] {
			seg.LiveID = idOf(seg.Live)
		}
		if b.live[slot] == 0 {
			continue
		}
		t.Rows += int64(b.live[slot])
		t.Segments = append(t.Segments, seg)
	}
	t.bytes = b.bytes
	held := builder{viewed: viewed{layout: b.layout, table: &Table{Dicts: slices.Clone(t.Dicts)}}, open: b.open}
	t.free = held.give
	t.refs.Store(1)
	v := b.viewed
	v.log = nil
	return &v
}

// bytes returns the column memory of the relation. r.mu is held.
func (r *Relation) bytes() (n int64) {
	for _, seg := range r.slots {
		switch {
		case seg == nil:
		case seg.columns != nil:
			n += seg.mem.bytes.Load()
		case seg.mark != nil:
			n += seg.mark.buf.mem.bytes.Load()
		}
	}
	for _, d := range r.versions {
		if d != nil {
			n += d.size()
		}
	}
	return n
}
