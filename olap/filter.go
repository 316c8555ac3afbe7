package olap

import (
	"math"
	"math/bits"

	"pgaccel/colstore"
)

// zone looks at a segment's zone maps: whether no row can pass, and which steps
// are left, as a bit set.
func (p *pipeline) zone(seg *colstore.Segment) (skip bool, live uint64) {
	live = math.MaxUint64
	risky := false
	for i := range p.steps {
		s := &p.steps[i]
		risky = risky || s.risky
		if s.kind != stepRange || i >= 64 {
			continue
		}
		if s.n == nil {
			skip = true
			continue
		}
		z := &seg.Columns[s.n.col]
		switch {
		case z.Min > z.Max || s.lo > z.Max || s.hi < z.Min:
			skip = true
		case s.lo <= z.Min && z.Max <= s.hi && (z.NullCount == 0 || s.derived), s.cost > 100:
			live &^= 1 << i
		}
	}
	return skip && !risky, live
}

// filter reduces the tile's selection by the steps. Rows that do not count are gone
// before any step, so that none fails for them.
func (w *worker) filter(live uint64) {
	steps := w.p.steps
	if len(steps) == 0 || steps[0].kind != stepRange {
		w.settle()
	}
	risky := 0
	for risky < len(steps) && steps[risky].risky {
		risky++
	}
	if risky > 1 {
		for i := range risky {
			w.eval(steps[i].n) // each must see every row
		}
	}
	i := 0
	for ; i < risky; i++ {
		w.step(&steps[i])
	}
	// Ranges work on the encoded column as long as many rows are left.
	if i < len(steps) && steps[i].kind == stepRange {
		i = w.ranges(i, live)
	}
	for ; i < len(steps) && len(w.f.sel) > 0; i++ {
		if i < 64 && live>>i&1 == 0 {
			continue
		}
		w.step(&steps[i])
	}
}

// rangeShare: with fewer than 1/rangeShare of the rows left, the next range reads
// the values of those rows alone.
const rangeShare = 16

// ranges applies the ranges from step i on and returns the first step after them.
func (w *worker) ranges(i int, live uint64) int {
	words := w.bits[:(w.n+63)/64]
	used := false
	for ; i < len(w.p.steps) && w.p.steps[i].kind == stepRange; i++ {
		s := &w.p.steps[i]
		if i < 64 && live>>i&1 == 0 {
			continue
		}
		if s.n == nil {
			w.f.sel, w.f.full, w.pending = w.f.sel[:0], false, false
			return len(w.p.steps)
		}
		if !used {
			w.load(words)
		}
		used = true
		c := &w.seg.Columns[s.n.col]
		c.Data.FilterRange(words, w.start, w.n, s.lo, s.hi)
		if c.NullCount > 0 {
			at := w.start >> 6
			for k := range words {
				words[k] &^= c.Nulls[at+k]
			}
		}
		left := 0
		for _, b := range words {
			left += bits.OnesCount64(b)
		}
		if left*rangeShare < w.n {
			i++
			break
		}
	}
	if used {
		w.store(words)
	}
	w.settle() // zone maps have made every range needless
	return i
}

// load writes the selection as bits.
func (w *worker) load(words []uint64) {
	if w.pending {
		w.pending = false
		copy(words, w.live)
		return
	}
	if w.f.full {
		for k := range words {
			words[k] = math.MaxUint64
		}
		if r := uint(w.n) & 63; r != 0 {
			words[len(words)-1] = 1<<r - 1
		}
		return
	}
	clear(words)
	for _, s := range w.f.sel {
		words[s>>6] |= 1 << (s & 63)
	}
}

// store makes the set bits the selection.
func (w *worker) store(words []uint64) {
	k := 0
	next := w.next
	for i, b := range words {
		base := uint16(i * 64)
		for b != 0 {
			next[k&(tileRows-1)] = base + uint16(bits.TrailingZeros64(b))
			k++
			b &= b - 1
		}
	}
	w.selected(k)
}

// step applies one step to the selection.
func (w *worker) step(s *step) {
	sel := w.f.sel
	next := w.next
	n := 0
	switch s.kind {
	case stepRange:
		if s.n == nil {
			break
		}
		a := w.eval(s.n)
		lo, span := s.lo, uint64(s.hi)-uint64(s.lo)
		if s.lo > s.hi {
			break
		}
		for i, v := range a.v {
			next[n&(tileRows-1)] = sel[i]
			n += int(b2i(uint64(v)-uint64(lo) <= span && (a.nulls == nil || a.nulls[i] == 0)))
		}
	case stepTable:
		a := w.eval(s.n)
		lo := s.n.lo
		if a.nulls != nil {
			null := uint8(b2i(s.onNull))
			for i, v := range a.v {
				pass := s.table[v-lo]
				if a.nulls[i] != 0 {
					pass = null
				}
				next[n&(tileRows-1)] = sel[i]
				n += int(pass)
			}
			break
		}
		for i, v := range a.v {
			next[n&(tileRows-1)] = sel[i]
			n += int(s.table[v-lo])
		}
	case stepFilter:
		a := w.eval(s.n)
		if a.nulls != nil {
			for i, v := range a.v {
				next[n&(tileRows-1)] = sel[i]
				n += int(v &^ int64(a.nulls[i]))
			}
			break
		}
		for i, v := range a.v {
			next[n&(tileRows-1)] = sel[i]
			n += int(v)
		}
	case stepProbe:
		b := w.p.probes[s.probe]
		n = b.lut.run(w.keyOf(b), sel, w.entries[s.probe], next)
	}
	w.selected(n)
}

// keyOf returns the outer key: one column, or several as digits of one number.
func (w *worker) keyOf(b *probe) vec {
	if len(b.outer) == 1 {
		return w.eval(b.outer[0])
	}
	var key vec
	key.v = make([]int64, len(w.f.sel))
	for j, o := range b.outer {
		a := w.eval(o)
		for i, v := range a.v {
			key.v[i] += (v - o.lo) * b.strides[j]
		}
		if a.nulls != nil {
			if key.nulls == nil {
				key.nulls = make([]uint8, len(a.v))
			}
			for i, x := range a.nulls {
				key.nulls[i] |= x
			}
		}
	}
	return key
}
