package olap

import (
	"math"

	"pgaccel/colstore"
	"pgaccel/compress"
	"pgaccel/gpu/program"
	"pgaccel/internal/simd"
)

// zone looks at a segment's zone maps: whether no row can pass, and which steps
// are left, as a bit set.
func (p *pipeline) zone(seg *colstore.Segment) (skip bool, live uint64) {
	return p.zoneOf(p.steps, seg)
}

// zoneOf is zone of some of the steps.
func (p *pipeline) zoneOf(steps []step, seg *colstore.Segment) (skip bool, live uint64) {
	live = math.MaxUint64
	risky := false
	for i := range steps {
		s := &steps[i]
		risky = risky || s.risky
		if s.kind == program.StepProbe {
			if b := p.probes[s.probe]; b.key.kind == nodeColumn {
				z := &seg.Columns[b.key.col]
				skip = skip || b.lut.misses(z.Min, z.Max)
			}
			continue
		}
		if s.kind != program.StepRange || i >= 64 {
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
	skip = skip || p.top != nil && p.top.misses(seg)
	return skip && !risky, live
}

// filter reduces the tile's selection by the steps. Rows that do not count are gone
// before any step, so that none fails for them.
func (w *worker) filter(live uint64) {
	steps := w.p.steps[:w.p.fanned]
	if w.p.top != nil {
		w.keepFirst(w.p.top)
	}
	if len(steps) == 0 || !w.p.encoded(&steps[0]) {
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
	// Encoded columns are filtered whole as long as many rows are left.
	if i < len(steps) && w.p.encoded(&steps[i]) && (w.pending || len(w.f.sel)*wholeShare >= w.n) {
		i = w.filterEncoded(steps, i, live)
	}
	for ; i < len(steps) && len(w.f.sel) > 0; i++ {
		if i < 64 && live>>i&1 == 0 {
			continue
		}
		if steps[i].needs&w.owed != 0 {
			w.pay()
		}
		w.step(&steps[i])
	}
	if w.owed != 0 {
		w.pay()
	}
	w.filtered = w.p.strict != nil
	if w.fan != nil {
		w.fan.begin(w)
	}
}

// wholeShare: with fewer than 1/wholeShare of the rows left, the next step reads the
// values of those rows alone.
const wholeShare = 16

// encoded reports whether a step works on an encoded column and a bitmap: ranges, and
// where there are the instructions for it, sets of values.
func (p *pipeline) encoded(s *step) bool {
	switch s.kind {
	case program.StepRange:
		return true
	case program.StepBits:
		return s.set.Size > 0 && s.match == nil && simd.Active() != simd.Plain
	case program.StepProbe:
		b := p.probes[s.probe]
		return b.lut.set.Size > 0 && b.key.kind == nodeColumn && simd.Active() != simd.Plain
	}
	return false
}

// filterEncoded applies the steps from i on to encoded columns and returns the first
// step that is left to be done.
func (w *worker) filterEncoded(steps []step, i int, live uint64) int {
	words := w.bits[:(w.n+63)/64]
	used := false
	for ; i < len(steps) && w.p.encoded(&steps[i]); i++ {
		s := &steps[i]
		if i < 64 && live>>i&1 == 0 {
			continue
		}
		if s.kind == program.StepRange && s.n == nil {
			w.f.sel, w.f.full, w.pending = w.f.sel[:0], false, false
			return len(steps)
		}
		if !used {
			w.load(words)
		}
		used = true
		var col int
		switch s.kind {
		case program.StepRange:
			col = s.n.col
			if s.lo != math.MinInt64 || s.hi != math.MaxInt64 { // else only nulls do not pass
				w.seg.Columns[col].Data.FilterRange(words, w.start, w.n, s.lo, s.hi)
			}
		case program.StepBits:
			col = s.n.col
			w.setOf(i, col, s.set).Filter(words, w.start, w.n)
		default:
			b := w.p.probes[s.probe]
			col = b.key.col
			w.setOf(i, col, b.lut.set).Filter(words, w.start, w.n)
			if b.lut.kind != program.LookupBits {
				w.owed |= 1 << uint(s.probe)
			}
		}
		if c := &w.seg.Columns[col]; c.NullCount > 0 {
			at := w.start >> 6
			for k := range words {
				words[k] &^= c.Nulls[at+k]
			}
		}
		if simd.Count(words)*wholeShare < w.n {
			i++
			break
		}
	}
	if used {
		w.store(words)
	}
	w.settle() // zone maps have made every step needless
	return i
}

// setOf returns the filter of step i for a column of the current segment.
func (w *worker) setOf(i, col int, set compress.Set) *compress.SetFilter {
	if w.sets == nil {
		w.sets = make([]segmentSet, len(w.p.steps))
	}
	f := &w.sets[i]
	if f.segment != w.segment+1 {
		f.segment = w.segment + 1
		f.filter.Reset(w.seg.Columns[col].Data, set)
	}
	return &f.filter
}

// segmentSet is a filter by a set, made for a segment.
type segmentSet struct {
	filter  compress.SetFilter
	segment int // its position plus 1
}

// pay writes the entries of the rows that are left in lookups that have only filtered
// yet: all of these rows have one.
func (w *worker) pay() {
	owed := w.owed
	w.owed = 0
	if len(w.f.sel) == 0 {
		return
	}
	for i := range w.p.probes {
		if owed>>uint(i)&1 != 0 {
			b := w.p.probes[i]
			b.lut.enter(w.column(b.key).v, w.f.sel, w.entries[i], w.next)
		}
	}
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
	w.selected(simd.Positions(w.next[:64*len(words)], words))
}

// step applies one step to the selection.
func (w *worker) step(s *step) {
	sel := w.f.sel
	next := w.next
	n := 0
	switch s.kind {
	case program.StepRange:
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
	case program.StepBits:
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
	case program.StepFilter:
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
	case program.StepProbe:
		b := w.p.probes[s.probe]
		n = b.lut.run(w.eval(b.key), sel, w.entries[s.probe], next)
	}
	w.selected(n)
}
