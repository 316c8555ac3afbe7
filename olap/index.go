package olap

import "pgaccel/colstore"

// indexed is what a worker has of bitmap indexes for the current segment.
type indexed struct {
	words []uint64 // counts' memory
	// maybe says for some steps which rows have to be looked at: in other tiles the step
	// has been answered.
	maybe []undecided
	spare [][]uint64
}

type undecided struct {
	step int
	rows []uint64
}

// noteUses tells the table which columns' values decide, so that they may be indexed,
// and whether indexes can be used: not where a condition that may fail must see all rows.
func (p *pipeline) noteUses() {
	p.indexable = false
	for i := range p.steps {
		s := &p.steps[i]
		if s.risky {
			p.indexable = false
			return
		}
		if s.byValue() && i < 64 {
			p.tab.Use(s.n.col)
			p.indexable = true
		}
	}
}

// byValue reports whether the step's answer depends on the value of one column alone.
func (s *step) byValue() bool {
	switch s.kind {
	case stepRange:
		return s.n != nil && s.cost < 100
	case stepTable:
		return s.n.kind == nodeColumn && !s.onNull
	}
	return false
}

// scanCost estimates nanoseconds that a step takes for a row, and indexCost those for
// a word of an index and for a word of its result.
const (
	scanCost   = 0.15
	tableCost  = 0.8
	indexCost  = 1.5
	resultCost = 0.5
)

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
func (w *worker) useIndex(i int, s *step, x *colstore.Index) bool { return false }

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
