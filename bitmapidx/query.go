package bitmapidx

import (
	"iter"
	"math"
	"slices"
	"sort"
)

// Range sets, in dst, the rows whose values are in [lo, hi], and those that may be,
// because the range ends within their bin: their values are to be compared. maybe has
// these; it is nil where there are none. Null rows are in neither. dst has a bit for each
// row, bit i&63 of word i>>6, of any value before.
func (x *Index) Range(dst []uint64, lo, hi int64) (maybe []uint64) {
	s := x.span(lo, hi)
	x.union(dst, s)
	var ends []*bin
	if s.low {
		ends = append(ends, &x.bins[s.from-1])
	}
	if s.high {
		ends = append(ends, &x.bins[s.to])
	}
	return also(dst, ends)
}

// also sets the rows of bins, and returns them alone; nil where there are no bins.
func also(dst []uint64, bins []*bin) (alone []uint64) {
	if len(bins) == 0 {
		return nil
	}
	alone = make([]uint64, len(dst))
	for _, b := range bins {
		or(alone, b.atoms)
	}
	for i, w := range alone {
		dst[i] |= w
	}
	return alone
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

// union writes the rows of the whole bins of a span, from the bins inside or outside of
// it, whichever are less work.
func (x *Index) union(dst []uint64, s span) {
	clear(dst)
	all := func(bins []bin) {
		for i := range bins {
			or(dst, bins[i].atoms)
		}
	}
	if inside, outside := x.atomsOf(s); inside <= outside || s.to-s.from <= 1 {
		all(x.bins[s.from:s.to])
		return
	}
	all(x.bins[:s.from])
	all(x.bins[s.to:])
	or(dst, x.nulls)
	not(dst, x.rows)
}

// atomsOf counts those of the bins inside of a span, and of all else.
func (x *Index) atomsOf(s span) (inside, outside int) {
	for i := range x.bins[s.from:s.to] {
		inside += len(x.bins[s.from+i].atoms)
	}
	return inside, x.atoms - inside
}

// In is Range for a list of values, in any order.
func (x *Index) In(dst []uint64, values []int64) (maybe []uint64) {
	clear(dst)
	var some []*bin
	for i := range x.binsOf(values) {
		if b := &x.bins[i]; b.lo == b.hi {
			or(dst, b.atoms)
		} else {
			some = append(some, b)
		}
	}
	return also(dst, some)
}

// binsOf yields the bins that may have one of the values, ascending, each once.
func (x *Index) binsOf(values []int64) iter.Seq[int] {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return func(yield func(int) bool) {
		last := -1
		for _, v := range sorted {
			i := sort.Search(len(x.bins), func(i int) bool { return x.bins[i].hi >= v })
			if i == len(x.bins) || x.bins[i].lo > v || i == last {
				continue
			}
			if last = i; !yield(i) {
				return
			}
		}
	}
}

// Cost is what a range query does.
type Cost struct {
	Words      int // of atoms that are read, and of the result
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
func (c *Cost) candidates(rows, tiles, ofRows int) {
	c.Candidates += rows
	c.Tiles = min(c.Tiles+tiles, (ofRows+tileRows-1)/tileRows)
}

// BeatsScan reports whether the index is cheaper than filtering the packed column of
// that many rows.
func (c Cost) BeatsScan(rows int) bool { return c.Nanoseconds() < scanCost*float64(rows) }

// Cost estimates Range(lo, hi) without doing it.
func (x *Index) Cost(lo, hi int64) Cost {
	s := x.span(lo, hi)
	var c Cost
	add := func(b *bin) {
		c.candidates(b.rows, b.tiles, x.rows)
		c.Words += len(b.atoms)
	}
	if s.low {
		add(&x.bins[s.from-1])
	}
	if s.high {
		add(&x.bins[s.to])
	}
	if s.from < s.to {
		inside, outside := x.atomsOf(s)
		c.Words += min(inside, outside)
	}
	if s.to-s.from > 1 || s.low && s.high {
		c.Words += chunksOf(x.rows)
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

// Selection is what there is of some bins.
type Selection struct {
	Atoms, Rows int
	Tiles       int // of 1,024 rows that have some of these, at most
}

// Select counts what is read of bins that are chosen by the least and the greatest of their values.
func (x *Index) Select(chosen func(lo, hi int64) bool) (s Selection) {
	for i := range x.bins {
		if b := &x.bins[i]; chosen(b.lo, b.hi) {
			s.Atoms += len(b.atoms)
			s.Rows += b.rows
			s.Tiles += b.tiles
		}
	}
	return s
}
