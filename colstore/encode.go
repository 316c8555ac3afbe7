package colstore

import (
	"math/bits"
	"slices"
	"time"
)

// retryAfter is how long a table's segments are left as they are once memory did not
// suffice to encode them.
const retryAfter = 5 * time.Second

// encodeFull encodes one open segment that is full and all committed, and reports
// whether there was one. Addresses stay. One goroutine at a time encodes and merges.
func (r *Relation) encodeFull() bool {
	r.mu.Lock()
	i := slices.IndexFunc(r.slots, func(seg *segment) bool {
		return seg != nil && seg.columns == nil && seg.rows == r.store.segmentRows
	})
	if i < 0 || r.closed {
		r.mu.Unlock()
		return false
	}
	seg, m := r.slots[i], r.slots[i].mark
	m.buf.mem.retain()
	r.mu.Unlock()
	defer m.buf.mem.release()

	s := &Segment{Rows: m.rows, Columns: make([]Column, len(m.zones)), mem: newBlock(r.store.arena)}
	for i, z := range m.zones {
		if m.buf.values[i] == nil {
			continue
		}
		if err := s.encode(i, r.store.codec, i < len(r.floats) && r.floats[i], m.buf.values[i][:m.rows], m.buf.nulls[i][:m.rows/64], z, nil); err != nil {
			s.mem.release()
			r.retry = r.store.history.now().Add(retryAfter)
			return false
		}
	}
	var garbage garbage
	r.writing.Lock()
	r.mu.Lock()
	if !r.closed && r.slots[i] == seg { // not truncated meanwhile
		garbage.blocks = append(garbage.blocks, seg.buf.mem, seg.mark.buf.mem)
		seg.columns, seg.mem = s.Columns, s.mem
		seg.buf, seg.mark, seg.zones, seg.image = nil, nil, nil, nil
		r.invalidate(&garbage)
	} else {
		garbage.blocks = append(garbage.blocks, s.mem)
	}
	r.mu.Unlock()
	r.writing.Unlock()
	garbage.release()
	return true
}

// sparse chooses segments of one part to be put together without their dead rows,
// nil where that does not pay. Their rows fit into one segment. Their memory is retained.
func (r *Relation) sparse() (p *part, group []*segment, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	small := map[*part]int{}
	isSmall := func(seg *segment) bool { return seg.rows-seg.deadCount <= r.store.segmentRows/smallShare }
	ready := func(seg *segment) bool {
		return seg != nil && seg.columns != nil && len(seg.unfolded) == 0
	}
	for _, seg := range r.slots {
		if ready(seg) && isSmall(seg) {
			small[seg.part]++
		}
	}
	live := 0
	for _, seg := range r.slots {
		if !ready(seg) || p != nil && seg.part != p {
			continue
		}
		if 2*seg.deadCount < seg.rows && (small[seg.part] < smallShare || !isSmall(seg)) {
			continue
		}
		if n := seg.rows - seg.deadCount; live+n <= r.store.segmentRows {
			p, live = seg.part, live+n
			group = append(group, seg)
			seg.mem.retain() // a truncate may come
		}
	}
	return p, group, r.full
}

// smallShare: segments with less than this part of the rows that they could have are
// put together once there are as many of them.
const smallShare = 8

// mergeSparse rewrites some segments as one without the rows whose deletes are folded
// in, and reports whether it did. Rows move: the log, the transaction at hand and the
// index learn of it while the writer waits.
func (r *Relation) mergeSparse() bool {
	p, group, full := r.sparse()
	if group == nil {
		return false
	}
	mem := make([]*block, len(group))
	for i, seg := range group {
		mem[i] = seg.mem
	}
	defer func() {
		for _, b := range mem {
			b.release()
		}
	}()
	// Nobody else sets columns and dead, or takes segments away but for a truncate.
	moved := make([]*moved, len(group))
	n := 0
	for i, seg := range group {
		moved[i] = newMoved(seg, n)
		n += moved[i].count
	}
	merged := &segment{part: p, n: n, rows: n}
	var garbage garbage
	if n > 0 {
		s, err := r.rewrite(group, n)
		if err != nil {
			r.retry = r.store.history.now().Add(retryAfter)
			return false
		}
		merged.columns, merged.mem = s.Columns, s.mem
		if full {
			merged.chain = newBlock(r.store.arena)
			mem, err := merged.chain.alloc(4 * n)
			if err != nil {
				merged.mem.release()
				return false
			}
			merged.next = view[uint32](mem)
		}
	}

	r.writing.Lock()
	r.mu.Lock()
	ok := !r.closed && r.parts[p.oid] == p && (merged.next != nil) == (r.full && n > 0)
	for _, seg := range group {
		ok = ok && r.slots[seg.slot] == seg
	}
	if ok && n > 0 {
		ok = r.place(merged) == nil
	}
	if !ok {
		garbage.blocks = append(garbage.blocks, merged.mem, merged.chain)
	} else {
		r.move(p, group, moved, merged)
		for _, seg := range group {
			r.slots[seg.slot] = nil
			garbage.segment(seg)
		}
		r.invalidate(&garbage)
	}
	r.mu.Unlock()
	r.writing.Unlock()
	garbage.release()
	return ok
}

// rewrite encodes the rows of segments that are not dead, n in all.
func (r *Relation) rewrite(group []*segment, n int) (*Segment, error) {
	s := &Segment{Rows: n, Columns: make([]Column, len(r.copied)), mem: newBlock(r.store.arena)}
	all := make([]int64, r.store.segmentRows)
	values := make([]int64, 0, n)
	for i, copied := range r.copied {
		if !copied {
			continue
		}
		values = values[:0]
		nulls := make([]uint64, (n+63)/64)
		some := false
		for _, seg := range group {
			c := &seg.columns[i]
			c.Data.Decode(all[:seg.rows], 0)
			some = some || c.Nulls != nil
			for row := range seg.rows {
				if row>>6 < len(seg.dead) && has(seg.dead, row) {
					continue
				}
				if c.Nulls != nil && has(c.Nulls, row) {
					nulls[len(values)>>6] |= 1 << (uint(len(values)) & 63)
				}
				values = append(values, all[row])
			}
		}
		float := i < len(r.dicts) && r.floats[i]
		if err := s.encode(i, r.store.codec, float, values, nulls, zoneOf(values, nulls, some, float), nil); err != nil {
			s.mem.release()
			return nil, err
		}
	}
	return s, nil
}

// moved says where a segment's rows that are not dead go.
type moved struct {
	live  []uint64
	ranks []int // by word, the rows before it, from the first row on
	count int
}

func newMoved(seg *segment, first int) *moved {
	m := &moved{live: liveOf(seg.dead, seg.rows)}
	if m.live == nil {
		m.live = allLive(seg.rows)
	}
	m.ranks = make([]int, len(m.live))
	for i, w := range m.live {
		m.ranks[i] = first + m.count
		m.count += bits.OnesCount64(w)
	}
	return m
}

// row returns the new place of a row that is not dead.
func (m *moved) row(row uint32) uint32 {
	return uint32(m.ranks[row>>6] + bits.OnesCount64(m.live[row>>6]&(1<<(row&63)-1)))
}

// move tells of new addresses whoever keeps some. Both locks are held.
func (r *Relation) move(p *part, group []*segment, to []*moved, merged *segment) {
	by := make([]*moved, len(r.slots))
	for i, seg := range group {
		by[seg.slot] = to[i]
	}
	address := func(addr uint32) uint32 {
		m := by[addr>>16]
		if m == nil {
			return addr
		}
		return merged.slot<<16 | m.row(addr&0xffff)
	}
	concerns := func(addr uint32) bool { return by[addr>>16] != nil }

	log := slices.Clone(r.log)
	for i, c := range log {
		if slices.ContainsFunc(c.deletes, concerns) {
			d := *c
			d.deletes = make([]uint32, len(c.deletes))
			for k, addr := range c.deletes {
				d.deletes[k] = address(addr)
			}
			slices.Sort(d.deletes)
			log[i] = &d
		}
	}
	r.log = log
	for k, addr := range r.pending.deletes {
		r.pending.deletes[k] = address(addr)
	}
	for i, seg := range group {
		for row := range uint32(seg.rows) {
			if int(row>>6) < len(seg.gone) && has(seg.gone, int(row)) && has(to[i].live, int(row)) {
				if merged.gone == nil {
					merged.gone = make([]uint64, (merged.n+63)/64)
				}
				new := to[i].row(row)
				merged.gone[new>>6] |= 1 << (new & 63)
			}
		}
	}
	p.segments = slices.DeleteFunc(p.segments, func(seg *segment) bool { return slices.Contains(group, seg) })
	if merged.n > 0 {
		p.segments = append(p.segments, merged)
	}
	if p.index == nil {
		if merged.chain != nil { // made for an index that is no more
			merged.chain.release()
			merged.chain, merged.next = nil, nil
		}
		return
	}
	for i := range p.index.buckets {
		b := &p.index.buckets[i]
		for k, tag := range b.tag {
			if tag != 0 && concerns(b.addr[k]) {
				b.addr[k] = address(b.addr[k])
			}
		}
	}
	if !r.full {
		return
	}
	// Of rows that are gone the ring's addresses mean nothing.
	known := func(seg *segment, row int) bool { return row>>6 >= len(seg.gone) || !has(seg.gone, row) }
	for i, seg := range group {
		for row := range seg.rows {
			if known(seg, row) && seg.next != nil {
				merged.next[to[i].row(uint32(row))] = seg.next[row]
			}
		}
	}
	for _, seg := range p.segments {
		if seg.next == nil {
			continue
		}
		for row := range seg.n {
			if known(seg, row) {
				seg.next[row] = address(seg.next[row])
			}
		}
	}
}
