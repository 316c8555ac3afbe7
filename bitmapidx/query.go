package bitmapidx

import (
	"math"
	"slices"
	"sort"
)

// Range returns the rows whose values are in [lo, hi]: those that are for sure, and
// those that may be, because the range ends within their bin: their values are to be
// compared. maybe is nil where there are none. Null rows are in neither.
func (x *Index) Range(lo, hi int64) (sure, maybe *Bitmap) {
	s := x.span(lo, hi)
	sure = x.union(s)
	switch {
	case s.low && s.high:
		maybe = Or(nil, x.bins[s.from-1].bitmap, x.bins[s.to].bitmap)
	case s.low:
		maybe = x.bins[s.from-1].bitmap
	case s.high:
		maybe = x.bins[s.to].bitmap
	}
	return sure, maybe
}

// span is what a range selects: bins [from, to) as a whole, and parts of the bins
// from-1 and to where low and high say so.
type span struct {
	from, to  int
	low, high bool
}

func (x *Index) span(lo, hi int64) span {
	if lo > hi {
		return span{}
	}
	s := span{
		from: sort.Search(len(x.bins), func(i int) bool { return x.bins[i].lo >= lo }),
		to:   sort.Search(len(x.bins), func(i int) bool { return x.bins[i].hi > hi }),
	}
	if s.from > s.to { // within one bin, or between two
		s.low = x.bins[s.to].lo <= hi && x.bins[s.to].hi >= lo
		s.to = s.from
		return s
	}
	s.low = s.from > 0 && x.bins[s.from-1].hi >= lo
	s.high = s.to < len(x.bins) && x.bins[s.to].lo <= hi
	return s
}

// union is the whole bins of a span, from the bins inside or outside of it,
// whichever are less work.
func (x *Index) union(s span) *Bitmap {
	if s.from == s.to {
		return Full(x.rows, false)
	}
	if s.to-s.from == 1 {
		return x.bins[s.from].bitmap
	}
	if inside, outside := x.atoms(s); inside <= outside {
		return OrAll(nil, x.bitmaps(s.from, s.to))
	}
	rest := append(x.bitmaps(0, s.from), x.bitmaps(s.to, len(x.bins))...)
	if x.nulls != nil {
		rest = append(rest, x.nulls)
	}
	if len(rest) == 0 {
		return Full(x.rows, true)
	}
	u := OrAll(nil, rest)
	return not(u, u)
}

func (x *Index) bitmaps(from, to int) []*Bitmap {
	out := make([]*Bitmap, 0, to-from+1)
	for i := from; i < to; i++ {
		out = append(out, x.bins[i].bitmap)
	}
	return out
}

// atoms counts the words of the bins inside of a span, and of all else.
func (x *Index) atoms(s span) (inside, outside int) {
	for i := range x.bins {
		n := len(x.bins[i].bitmap.atoms)
		if s.from <= i && i < s.to {
			inside += n
		} else {
			outside += n
		}
	}
	if x.nulls != nil {
		outside += len(x.nulls.atoms)
	}
	return inside, outside
}

// Count is how many rows have values in [lo, hi], from the header alone; where exact
// is false there are more in bins that the range ends in.
func (x *Index) Count(lo, hi int64) (n int, exact bool) {
	s := x.span(lo, hi)
	for i := s.from; i < s.to; i++ {
		n += x.bins[i].rows
	}
	return n, !s.low && !s.high
}

// In is Range for a list of values, in any order.
func (x *Index) In(values []int64) (sure, maybe *Bitmap) {
	var sures, maybes []*Bitmap
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	last := -1
	for _, v := range sorted {
		i := sort.Search(len(x.bins), func(i int) bool { return x.bins[i].hi >= v })
		if i == len(x.bins) || x.bins[i].lo > v || i == last {
			continue
		}
		last = i
		if b := &x.bins[i]; b.lo == b.hi {
			sures = append(sures, b.bitmap)
		} else {
			maybes = append(maybes, b.bitmap)
		}
	}
	sure = Full(x.rows, false)
	if len(sures) > 0 {
		sure = OrAll(nil, sures)
	}
	if len(maybes) > 0 {
		maybe = OrAll(nil, maybes)
	}
	return sure, maybe
}

// Nulls returns the rows that are null.
func (x *Index) Nulls() *Bitmap {
	if x.nulls == nil {
		return Full(x.rows, false)
	}
	return x.nulls
}

// NotNulls returns the rows that are not null.
func (x *Index) NotNulls() *Bitmap {
	if x.nulls == nil {
		return Full(x.rows, true)
	}
	return not(nil, x.nulls)
}

// NullCount is how many rows are null.
func (x *Index) NullCount() int { return x.null }

// Cost is what a range query does.
type Cost struct {
	Words      int // of compressed bitmaps that are read, and of the result, uncompressed
	Sure       int // rows that are found for sure
	Candidates int // rows whose values must be looked at
	Tiles      int // of 1,024 rows that have candidates, at most
}

// What the parts of a query cost on a core with a first-level cache of 32 KiB or
// more, in nanoseconds: see the benchmarks.
const (
	wordCost      = 1.0
	candidateCost = 2.0 // one by one
	scanCost      = 0.1 // of a value of the packed column, with AVX-512
	tileRows      = 1024
)

// Nanoseconds is an estimate. Candidates are looked at one by one, or with all else
// of their tiles where they are many.
func (c Cost) Nanoseconds() float64 {
	return wordCost*float64(c.Words) + min(candidateCost*float64(c.Candidates), tileRows*scanCost*float64(c.Tiles))
}

// candidates adds those of a bin.
func (c *Cost) candidates(rows, atoms, ofRows int) {
	c.Candidates += rows
	c.Tiles = min(c.Tiles+1+rows/tileRows+atoms, (ofRows+tileRows-1)/tileRows)
}

// BeatsScan reports whether the index is cheaper than filtering the packed column of
// that many rows.
func (c Cost) BeatsScan(rows int) bool { return c.Nanoseconds() < scanCost*float64(rows) }

// Cost estimates Range(lo, hi) without doing it.
func (x *Index) Cost(lo, hi int64) Cost {
	s := x.span(lo, hi)
	var c Cost
	c.Sure, _ = x.Count(lo, hi)
	add := func(b *bin) {
		c.candidates(b.rows, len(b.bitmap.atoms), x.rows)
		c.Words += len(b.bitmap.atoms)
	}
	if s.low {
		add(&x.bins[s.from-1])
	}
	if s.high {
		add(&x.bins[s.to])
	}
	if s.from < s.to {
		inside, outside := x.atoms(s)
		c.Words += min(inside, outside)
	}
	if s.to-s.from > 1 || s.low && s.high {
		c.Words += chunksOf(x.rows)
	}
	return c
}

// CountCost is that of counting the rows of [lo, hi]: nothing where Count is exact.
func (x *Index) CountCost(lo, hi int64) Cost {
	c := x.Cost(lo, hi)
	if c.Candidates == 0 {
		return Cost{Sure: c.Sure}
	}
	return c
}

// Bounds are the least and the greatest value; ok is false where all rows are null.
func (x *Index) Bounds() (lo, hi int64, ok bool) {
	if len(x.bins) == 0 {
		return math.MaxInt64, math.MinInt64, false
	}
	return x.bins[0].lo, x.bins[len(x.bins)-1].hi, true
}
