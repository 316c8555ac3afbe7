package olap

import (
	"unsafe"

	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// frameIndex answers what an aggregate comes to over any neighbouring rows of a partition. Integers
// are subtracted, all else is in a segment tree.
type frameIndex struct {
	counts  []uint32        // values before each row
	sums    []vector.Int128 // likewise
	totals  *segmentTree[decimalSum]
	squares *segmentTree[moment]
	words   *segmentTree[int64]
	best    *segmentTree[int32]
}

// makeIndex makes the index of the partition.
func (a *windowAggregate) makeIndex() error {
	n := len(a.rows)
	size := int64(4)
	tree := a.p.Agg.State
	switch {
	case a.arg == nil || tree == sqlfn.AggregateCount:
		tree = sqlfn.AggregateCount
	case tree == sqlfn.AggregateSum && !a.arg.varying():
		size += int64(unsafe.Sizeof(vector.Int128{}))
	default:
		size += 2 * map[sqlfn.AggregateState]int64{sqlfn.AggregateSum: int64(unsafe.Sizeof(decimalSum{})), sqlfn.AggregateMoments: int64(unsafe.Sizeof(moment{})),
			sqlfn.AggregateFold: 8, sqlfn.AggregateLeast: 4, sqlfn.AggregateGreatest: 4}[tree]
	}
	// Those of earlier partitions are garbage.
	if need := size * int64(n+1); need > a.held {
		if err := a.w.x.take(need - a.held); err != nil {
			return err
		}
		a.held = need
	}
	x := &frameIndex{counts: make([]uint32, n+1)}
	for i, r := range a.rows {
		x.counts[i+1] = x.counts[i]
		if a.counts(r) {
			x.counts[i+1]++
		}
	}
	one := func(i int) (s windowState) {
		s = a.none()
		a.addRow(&s, a.rows[i])
		return s
	}
	switch {
	case tree == sqlfn.AggregateCount:
	case tree == sqlfn.AggregateSum && a.arg.varying():
		x.totals = newSegmentTree(n, decimalSum{}, decimalSum.plus, func(i int) decimalSum { return one(i).total })
	case tree == sqlfn.AggregateSum:
		x.sums = make([]vector.Int128, n+1)
		for i := range n {
			x.sums[i+1] = x.sums[i].Add(one(i).sum)
		}
	case tree == sqlfn.AggregateMoments:
		join := func(a, b moment) moment { a.merge(&b); return a }
		x.squares = newSegmentTree(n, moment{}, join, func(i int) moment { return one(i).squares })
	case tree == sqlfn.AggregateFold:
		x.words = newSegmentTree(n, a.p.Agg.Start, a.p.Agg.Fold, func(i int) int64 { return one(i).word })
	default:
		x.best = newSegmentTree(n, -1, a.better, func(i int) int32 { return one(i).best })
	}
	a.index = x
	return nil
}

// addTo adds rows to a state.
func (x *frameIndex) addTo(s *windowState, rows rowSpan) {
	s.n += int64(x.counts[rows.to] - x.counts[rows.from])
	switch {
	case x.sums != nil:
		s.sum = s.sum.Add(x.sums[rows.to].Add(x.sums[rows.from].Neg()))
	case x.totals != nil:
		s.total = s.total.plus(x.totals.over(rows.from, rows.to))
	case x.squares != nil:
		m := x.squares.over(rows.from, rows.to)
		s.squares.merge(&m)
	case x.words != nil:
		s.word = x.words.join(s.word, x.words.over(rows.from, rows.to))
	case x.best != nil:
		s.best = x.best.join(s.best, x.best.over(rows.from, rows.to))
	}
}
