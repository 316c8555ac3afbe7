package olap

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"

	"pgaccel/colstore"
)

// Of an ORDER BY with LIMIT whose first key is a column, few segments are read where that
// column's zone maps lie apart, as those of times do: segments are scanned in the order of
// their best values, and once enough rows are there a bound on the key, which all workers
// share, excludes segments by their zone maps and tiles by a range on the encoded column.
// The bound lets pass what ties with it: rows that tie are told apart by the other keys.

// topScan is the bound of a scan that keeps the first rows by a column. Values are compared
// by their normalized keys: smaller comes first (collecting.first).
type topScan struct {
	col        int
	desc       bool
	nullsFirst bool
	rows       int64        // that are wanted
	bound      atomic.Int64 // no row that is worse is among them; math.MaxInt64 excludes none
	order      []int        // segments, the best first
}

// topScan returns the bound for a cut; nil where every row must be seen, lest an error be missed,
// or the key is no plain column.
func (p *pipeline) topScan(nodes []*node, at cut) *topScan {
	key := nodes[at.keys]
	if key.kind != nodeColumn || key.dict != nil && !key.dict.inOrder(key.t.Collation) || key.t.Kind.IsFloat() {
		return nil
	}
	if p.seesAll(nodes) {
		return nil
	}
	o := at.order[0]
	t := &topScan{col: key.col, desc: o.Desc, nullsFirst: o.NullsFirst, rows: at.rows}
	t.bound.Store(math.MaxInt64)
	t.order = make([]int, len(p.tab.Segments))
	for i := range t.order {
		t.order[i] = i
	}
	slices.SortStableFunc(t.order, func(a, b int) int {
		return cmp.Compare(t.best(p.tab.Segments[a]), t.best(p.tab.Segments[b]))
	})
	return t
}

// seesAll reports whether a scan must see every row, lest an error be missed: of what is collected, of a condition,
// or of a second partner.
func (p *pipeline) seesAll(nodes []*node) bool {
	return slices.ContainsFunc(nodes, func(n *node) bool { return n.risky }) ||
		slices.ContainsFunc(p.steps, func(s step) bool { return s.risky || s.n != nil && s.n.risky }) ||
		slices.ContainsFunc(p.probes, func(b *probe) bool { return b.single })
}

// tighten tells all workers of a bound that one has found.
func (t *topScan) tighten(bound int64) {
	for {
		now := t.bound.Load()
		if bound >= now || t.bound.CompareAndSwap(now, bound) {
			return
		}
	}
}

// best returns the normalized key of the best row that a segment may have.
func (t *topScan) best(seg *colstore.Segment) int64 {
	c := &seg.Columns[t.col]
	switch {
	case c.NullCount > 0 && t.nullsFirst:
		return math.MinInt64
	case c.Min > c.Max:
		return math.MaxInt64
	case t.desc:
		return ^c.Max
	}
	return c.Min
}

// worst returns that of the worst row.
func (t *topScan) worst(seg *colstore.Segment) int64 {
	c := &seg.Columns[t.col]
	switch {
	case c.NullCount > 0 && !t.nullsFirst:
		return math.MaxInt64
	case c.Min > c.Max:
		return math.MinInt64
	case t.desc:
		return ^c.Min
	}
	return c.Max
}

// misses reports whether no row of a segment is among the first.
func (t *topScan) misses(seg *colstore.Segment) bool { return t.best(seg) > t.bound.Load() }

// read is pipeline.read where enough rows exclude segments, as far as steps' estimates say when
// they are there.
func (t *topScan) read(p *pipeline) (segments, rows int) {
	passed, bound := 0.0, int64(math.MinInt64)
	for _, i := range t.order {
		seg := p.tab.Segments[i]
		skip, live := p.zone(seg)
		if skip || passed >= float64(t.rows) && t.best(seg) > bound {
			continue
		}
		segments++
		rows += seg.Rows
		if passed < float64(t.rows) {
			passed += expectOf(p.steps, seg, live)
			bound = max(bound, t.worst(seg))
		}
	}
	return segments, rows
}

// keepFirst leaves those rows of a tile, which it is about to filter, that the bound lets pass.
func (w *worker) keepFirst(t *topScan) {
	bound := t.bound.Load()
	c := &w.seg.Columns[t.col]
	if bound == math.MaxInt64 || c.NullCount > 0 && t.nullsFirst {
		return
	}
	lo, hi := int64(math.MinInt64), bound
	if t.desc {
		lo, hi = ^bound, math.MaxInt64
	}
	switch {
	case c.Min > hi || c.Max < lo:
		w.f.sel, w.f.full, w.pending = w.f.sel[:0], false, false
		return
	case lo <= c.Min && c.Max <= hi && c.NullCount == 0:
		return
	}
	words := w.bits[:(w.n+63)/64]
	w.load(words)
	c.Data.FilterRange(words, w.start, w.n, lo, hi)
	if c.NullCount > 0 {
		at := w.start >> 6
		for k := range words {
			words[k] &^= c.Nulls[at+k]
		}
	}
	w.store(words)
}
