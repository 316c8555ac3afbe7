package olap

import (
	"math"
	"slices"
	"sync/atomic"

	"pgaccel/bitmapidx"
	"pgaccel/colstore"
	"pgaccel/gpu/program"
	"pgaccel/plan"
)

// indexesAsked counts how often an index answered a step for a segment.
var indexesAsked atomic.Int64

// IndexesAsked returns how often a bitmap index answered a condition for a segment, of
// all executions of the process.
func IndexesAsked() int64 { return indexesAsked.Load() }

// IndexUse says which conditions bitmap indexes answer.
type IndexUse uint8

// The uses.
const (
	IndexAuto  IndexUse = iota // where that is estimated to be cheaper
	IndexForce                 // wherever there are some
	IndexOff
)

// indexed is what a worker has of bitmap indexes for the current segment.
type indexed struct {
	words []uint64 // counts' memory
	// maybe says for some steps which rows have to be looked at: in other tiles the step
	// has been answered.
	maybe []undecided
	spare []uint64
}

type undecided struct {
	step int
	rows []uint64
}

// noteUses tells the table which columns' values decide, so that they may be indexed,
// and whether indexes can be used: not where a condition that may fail must see all rows.
func (p *pipeline) noteUses() {
	p.indexable, p.narrowable = false, false
	if p.x.dicts[p.table] != nil || p.x.opt.Indexes == IndexOff {
		return // an intermediate relation has none
	}
	for i := range p.steps {
		s := &p.steps[i]
		if s.risky {
			p.indexable, p.narrowable = false, false
			return
		}
		if i >= 64 {
			continue
		}
		for _, c := range s.intervals() {
			p.tab.Use(c.n.col)
			p.narrowable = true
		}
		p.indexable = p.indexable || s.byValue()
	}
}

// interval is values of a column.
type interval struct {
	n      *node
	lo, hi int64
	set    []int64 // the values, ascending; nil: all from lo to hi
}

// has reports whether a value from least to most is among those of an interval, or may be.
func (r *interval) has(least, most int64) bool {
	if r.set != nil {
		at, _ := slices.BinarySearch(r.set, least)
		return at < len(r.set) && r.set[at] <= most
	}
	return r.lo <= most && least <= r.hi
}

// intervals are those of which a row has to be in one to pass the step; none where that cannot be said. Where there
// are several columns a device asks their indexes, the processor does not.
func (s *step) intervals() []interval {
	if s.byValue() {
		if s.kind == program.StepRange {
			return []interval{{n: s.n, lo: s.lo, hi: s.hi}}
		}
		return []interval{{n: s.n, lo: s.n.lo, hi: s.n.lo + int64(len(s.table)) - 1}}
	}
	if s.kind == program.StepFilter && s.n.set != nil && s.n.args[0].kind == nodeColumn {
		return []interval{{n: s.n.args[0], lo: s.n.set[0], hi: s.n.set[len(s.n.set)-1], set: s.n.set}}
	}
	if s.kind != program.StepFilter || s.n.kind != nodeOr {
		return nil
	}
	list := make([]interval, len(s.n.args))
	for i, n := range s.n.args {
		var ok bool
		if list[i], ok = intervalOf(n); !ok {
			return nil
		}
	}
	return list
}

// intervalOf returns the interval outside of which a condition is not true of a column; ok is false where it says
// nothing of one alone.
func intervalOf(n *node) (r interval, ok bool) {
	switch n.kind {
	case nodeCompare:
		column, k, op := n.args[0], n.args[1], n.op
		if column.kind == nodeConst {
			column, k, op = k, column, plan.Flipped[op]
		}
		if column.kind != nodeColumn || k.kind != nodeConst || k.nullable || column.dict != nil && op != plan.OpEq {
			return r, false
		}
		r = interval{n: column, lo: math.MinInt64, hi: math.MaxInt64}
		switch op {
		case plan.OpEq:
			r.lo, r.hi = k.k, k.k
		case plan.OpLt, plan.OpLe:
			r.hi = k.k
		case plan.OpGt, plan.OpGe:
			r.lo = k.k
		default:
			return r, false
		}
		return r, true
	case nodeTable:
		column, t := n.args[0], n.tab
		if column.kind != nodeColumn || n.risky || column.nullable && !t.OnNullNull && t.OnNull != 0 {
			return r, false
		}
		first, last := -1, -1
		for i, v := range t.Values {
			if v != 0 && (t.Nulls == nil || t.Nulls[i] == 0) {
				if last = i; first < 0 {
					first = i
				}
			}
		}
		if first < 0 {
			return interval{n: column, lo: 1, hi: 0}, true
		}
		return interval{n: column, lo: t.Lo + int64(first), hi: t.Lo + int64(last)}, true
	case nodeAnd:
		for i, a := range n.args {
			x, ok := intervalOf(a)
			if !ok {
				continue // it says more, of other columns
			}
			if i == 0 || r.n == nil {
				r = x
			} else if r.n == x.n {
				r.lo, r.hi = max(r.lo, x.lo), min(r.hi, x.hi)
			}
		}
		return r, r.n != nil
	}
	return r, false
}

// byValue reports whether the step's answer depends on the value of one column alone.
func (s *step) byValue() bool {
	switch s.kind {
	case program.StepRange:
		return s.n != nil && s.cost < 100 && (s.lo != math.MinInt64 || s.hi != math.MaxInt64)
	case program.StepBits:
		return s.n.kind == nodeColumn && !s.onNull && s.match == nil
	}
	return false
}

// useIndexes answers steps by the segment's bitmap indexes, where that is cheaper than
// to read the column. It returns the steps that are left and whether any row is.
func (w *worker) useIndexes(live uint64) (left uint64, some bool) {
	for i := range w.p.steps {
		s := &w.p.steps[i]
		if i >= 64 || live>>i&1 == 0 || !s.byValue() {
			continue
		}
		x := w.seg.Index(s.n.col)
		if x == nil {
			continue
		}
		if w.useIndex(i, s, x) {
			live &^= 1 << i
		}
		x.Release()
	}
	if w.counts == nil {
		return live, true
	}
	for _, b := range w.counts {
		if b != 0 {
			return live, true
		}
	}
	return live, false
}

// useIndex narrows counts by one step. True where nothing of the step is left; where
// some rows are undecided they are noted.
func (w *worker) useIndex(i int, s *step, x *colstore.Index) bool {
	n := (w.seg.Rows + 63) / 64
	result := w.index.room(n)
	var maybe []uint64
	switch s.kind {
	case program.StepRange:
		if w.p.x.opt.Indexes != IndexForce && !x.Cost(s.lo, s.hi).BeatsScan(w.seg.Rows) {
			return false
		}
		maybe = x.Range(result, s.lo, s.hi)
	default:
		values, cost, ok := s.passing(x)
		if !ok || w.p.x.opt.Indexes != IndexForce && !cost.BeatsScan(w.seg.Rows) {
			return false
		}
		maybe = x.In(result, values)
	}
	indexesAsked.Add(1)
	if len(w.index.words) < n {
		w.index.words = make([]uint64, n)
	}
	words := w.index.words[:n]
	decided := maybe == nil
	if !decided {
		w.index.maybe = append(w.index.maybe, undecided{i, maybe})
	}
	if w.counts == nil {
		copy(words, result)
	} else {
		for k, b := range result {
			words[k] = w.counts[k] & b // counts may be words already
		}
	}
	w.counts = words
	return decided
}

// tableValues bounds the values of a table step for which an index is asked.
const tableValues = 64

// passing returns the values of a segment that pass a table step, and what it costs to ask an
// index for them; ok is false where they are too many.
func (s *step) passing(x *colstore.Index) (values []int64, cost bitmapidx.Cost, ok bool) {
	lo, hi, some := x.Bounds()
	if !some {
		return nil, cost, true // all are null
	}
	for v := max(lo, s.n.lo); v <= min(hi, s.n.lo+int64(len(s.table))-1); v++ {
		if s.table[v-s.n.lo] == 0 {
			continue
		}
		if len(values) == tableValues {
			return nil, cost, false
		}
		values = append(values, v)
		c := x.Cost(v, v)
		cost.Words += c.Words
		cost.Candidates += c.Candidates
	}
	return values, cost, true
}

// room returns memory of n words for one result.
func (x *indexed) room(n int) []uint64 {
	if len(x.spare) < n {
		x.spare = make([]uint64, n)
	}
	return x.spare[:n]
}

// tileSteps returns the steps that are left for the current tile.
func (w *worker) tileSteps(live uint64) uint64 {
	for i := range w.index.maybe {
		u := &w.index.maybe[i]
		at := w.start >> 6
		var any uint64
		for _, b := range u.rows[at : at+(w.n+63)>>6] {
			any |= b
		}
		if any == 0 {
			live &^= 1 << u.step
		}
	}
	return live
}
