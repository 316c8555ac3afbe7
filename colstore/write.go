package colstore

import (
	"fmt"
	"hash/maphash"
	"slices"

	"pgaccel/internal/invariant"
	"pgaccel/vector"
)

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
			return fmt.Errorf("%w: %s has the whole row as its identity", errIdentity, r.meta.QualifiedName())
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
		return nil, errDropped
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
		buf, err := newBuffers(r.store.arena, r.copied, min(2*seg.n, r.store.segmentRows), seg.buf, seg.n)
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
				code, err := d.add(row.Text[i], maphash.Bytes(hashSeed, row.Text[i]))
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
		v = vector.FloatKey(v)
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
	buf, err := newBuffers(r.store.arena, r.copied, min(tailRowsMin, r.store.segmentRows), nil, 0)
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
		return errDropped
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
