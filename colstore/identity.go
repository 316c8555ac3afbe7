package colstore

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// find returns the place in the part's index of the row that row names.
func (r *Relation) find(p *part, row *Row) (hash uint64, c cursor, err error) {
	missing := func(what string) (uint64, cursor, error) {
		return 0, c, fmt.Errorf("%w: %s: %s", errIdentity, r.meta.QualifiedName(), what)
	}
	if len(r.key) == 0 {
		return missing("no replica identity")
	}
	if p.index == nil {
		if err := r.buildIndex(p, false); err != nil {
			return 0, c, err
		}
	}
	for i, col := range r.key {
		r.nulls[i], r.values[i] = false, 0
		if r.hidden > 0 && col >= r.hidden {
			r.values[i] = int64(row.Identity[col-r.hidden])
			continue
		}
		switch row.State[col] {
		case ColumnNull:
			r.nulls[i] = true
		case ColumnValue:
			if d := r.dicts[col]; d != nil {
				code, ok := d.code(row.Text[col])
				if !ok {
					return missing("a text that no row has")
				}
				r.values[i] = int64(code)
			} else {
				r.values[i] = row.Int[col]
			}
		default:
			return missing("column " + r.meta.Columns[col].Name + " of the identity is not known")
		}
	}
	hash = r.hash()
	c = p.index.find(hash)
	for p.index.next(&c) {
		if r.matches(*p.index.at(c)) {
			return hash, c, nil
		}
	}
	return missing("no such row")
}

// code returns the code of b, for a writer.
func (d *dictionary) code(b []byte) (code uint32, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.find(b, d.n)
}

// hash is that of the key in r.values and r.nulls.
func (r *Relation) hash() uint64 {
	hash := uint64(0)
	for i, v := range r.values {
		if r.nulls[i] {
			v = math.MinInt64 + 12345
		}
		hash = mix(hash, uint64(v))
	}
	return hash
}

// matches reports whether the row at an address has the key.
func (r *Relation) matches(addr uint32) bool {
	seg := r.slots[addr>>16]
	for i, col := range r.key {
		v, null := seg.value(&r.scratch, col, int(addr&0xffff))
		if null != r.nulls[i] || !null && v != r.values[i] {
			return false
		}
	}
	return true
}

// choose returns the address of the row at a place of the index, which it leaves
// unless keep is set.
//
// Under REPLICA IDENTITY FULL there may be several rows, all the same. Nobody can
// tell which of them was meant, nor whether the right one was taken, as long as every
// reader who sees the delete sees the row that it took: then the rows left are as many
// as there should be. So the oldest is taken, which is likely to be folded in; where it
// is not, readers must see who inserted it.
func (r *Relation) choose(p *part, hash uint64, c cursor, keep bool) uint32 {
	place := p.index.at(c)
	addr := *place
	if keep {
		return addr
	}
	if !r.full {
		p.index.remove(hash, c)
		return addr
	}
	newest := r.slots[addr>>16]
	addr = newest.next[*place&0xffff]
	seg := r.slots[addr>>16]
	if addr == *place {
		p.index.remove(hash, c)
	} else {
		newest.next[*place&0xffff] = seg.next[addr&0xffff]
	}
	r.mu.Lock()
	row := addr & 0xffff
	if k := len(seg.unfolded); k > 0 && int(row) < seg.rows {
		// Folded commits have left the list, so that an entry may begin too early: then a
		// reader is refused who need not be.
		i := sort.Search(k, func(i int) bool { return seg.unfolded[i].to > row })
		if i < k && !slices.Contains(r.pending.needs, seg.unfolded[i].xid) {
			r.pending.needs = append(r.pending.needs, seg.unfolded[i].xid)
		}
	}
	r.mu.Unlock()
	return addr
}

// enter puts a row, the part's last, into the index. Rows that are all the same have
// one entry, for the newest of them; they form a ring, each row's next one being the
// next younger and the newest one's the oldest.
func (r *Relation) enter(p *part, seg *segment, at int) error {
	if p.index.full() {
		return r.buildIndex(p, true)
	}
	for i, col := range r.key {
		r.values[i], r.nulls[i] = seg.value(&r.scratch, col, at)
	}
	return r.link(p, seg, at)
}

// link is enter of the key in r.values and r.nulls.
func (r *Relation) link(p *part, seg *segment, at int) error {
	hash, addr := r.hash(), seg.slot<<16|uint32(at)
	if !r.full {
		p.index.add(hash, addr)
		return nil
	}
	if seg.next == nil {
		seg.chain = newBlock(r.store.arena)
		rows := r.store.segmentRows
		if seg.columns != nil {
			rows = seg.n
		}
		mem, err := seg.chain.alloc(4 * rows)
		if err != nil {
			return err
		}
		seg.next = view[uint32](mem)
	}
	c := p.index.find(hash)
	for p.index.next(&c) {
		newest := *p.index.at(c)
		if r.matches(newest) {
			last := r.slots[newest>>16]
			seg.next[at] = last.next[newest&0xffff]
			last.next[newest&0xffff] = addr
			*p.index.at(c) = addr
			return nil
		}
	}
	seg.next[at] = addr
	p.index.add(hash, addr)
	return nil
}

// buildIndex makes the part's index of all rows that are not deleted. more says that
// it is to grow.
func (r *Relation) buildIndex(p *part, more bool) (err error) {
	var g garbage
	p.dropIndex(&g)
	g.release()
	rows := 0
	for _, seg := range p.segments {
		rows += seg.n - count(seg.gone)
	}
	if more {
		rows += rows / 3
	}
	if p.index, err = newIndex(r.store.arena, rows+bucketPlaces); err != nil {
		return err
	}
	values := make([][]int64, len(r.key))
	for i := range values {
		values[i] = make([]int64, r.store.segmentRows)
	}
	nulls := make([][]uint64, len(r.key))
	for _, seg := range p.segments {
		for i, col := range r.key {
			nulls[i] = seg.decode(col, values[i])
		}
		for row := range seg.n {
			if row>>6 < len(seg.gone) && has(seg.gone, row) {
				continue
			}
			for i := range r.key {
				r.values[i], r.nulls[i] = values[i][row], nulls[i] != nil && has(nulls[i], row)
			}
			if err := r.link(p, seg, row); err != nil {
				return err
			}
		}
	}
	return nil
}
