package bitmapidx

import (
	"math"
	"sort"
)

// Index says, for each row of a column of a segment, in which bin its value is; see
// the package comment. It is immutable and safe for any number of readers. Its words
// are where Alloc put them: bitmaps that its methods return may lie there too, and
// must not be used once that memory is given back.
type Index struct {
	rows  int
	bins  []bin // ascending
	nulls *Bitmap
	null  int // rows that are null
	words []uint64
}

type bin struct {
	lo, hi int64 // the least and the greatest value that is in the bin
	rows   int
	bitmap *Bitmap
}

// Options say how values are put into bins. The zero value is a good choice.
type Options struct {
	// EqualityBins is how many distinct values get a bin each; a column with more
	// gets range bins. 0 is 64.
	EqualityBins int
	// RangeBins is about how many range bins there are, each with about as many rows:
	// equi-depth. A value of more rows than that has a bin of its own, so there may be
	// up to twice as many, and one. 0 is 32.
	RangeBins int
}

// binsMax is how many bins an index has at most.
const binsMax = 4096

func (o Options) bins() (equality, ranges int) {
	equality, ranges = o.EqualityBins, o.RangeBins
	if equality == 0 {
		equality = 64
	}
	if ranges == 0 {
		ranges = 32
	}
	return min(equality, binsMax), min(max(ranges, 1), binsMax/2-1)
}

// Build makes the index of a column: its values, compared as integers, and which
// of its rows are null (bit i&63 of word i>>6; words past the end are 0). The values
// of null rows do not matter. It returns nil where alloc gives no memory.
func Build(values []int64, nulls []uint64, o Options, alloc Alloc) *Index {
	edges := chooseEdges(values, nulls, o)
	builders := make([]binBuilder, len(edges.upper)+1) // the last is for null
	for i := range builders {
		builders[i].lo, builders[i].hi = math.MaxInt64, math.MinInt64
	}
	isNull := &builders[len(edges.upper)]
	for start, chunk := 0, 0; start < len(values); start, chunk = start+chunkBits, chunk+1 {
		part := values[start:min(start+chunkBits, len(values))]
		null := denseBits(nulls, start, len(part))
		for i, v := range part {
			if null>>i&1 != 0 {
				isNull.add(chunk, i)
				continue
			}
			b := &builders[edges.find(v)]
			b.add(chunk, i)
			b.lo, b.hi = min(b.lo, v), max(b.hi, v)
		}
	}
	return layOut(len(values), builders, alloc)
}

// binBuilder is a Builder for rows that come chunk by chunk.
type binBuilder struct {
	atoms  []uint64
	chunk  int    // the chunk of word
	word   uint64 // its rows so far
	rows   int
	lo, hi int64
}

func (b *binBuilder) add(chunk, i int) {
	if chunk != b.chunk {
		b.moveTo(chunk)
	}
	b.word |= 1 << i
	b.rows++
}

// moveTo writes the chunks before the given one.
func (b *binBuilder) moveTo(chunk int) {
	b.atoms = appendChunk(b.atoms, b.word)
	if gap := chunk - b.chunk - 1; gap > 0 {
		b.atoms = appendFill(b.atoms, zeroRun, uint64(gap))
	}
	b.word, b.chunk = 0, chunk
}

// edges are the upper ends of bins, ascending, the last one MaxInt64.
type edges struct {
	upper []int64
	base  int64    // of table
	table []uint16 // bin of base+i; nil where the values lie too far apart
}

// find is the bin of a value of the column.
func (e *edges) find(v int64) int {
	if e.table != nil {
		return int(e.table[v-e.base])
	}
	i, n := 0, len(e.upper)
	for n > 1 {
		half := n / 2
		if e.upper[i+half-1] < v {
			i += half
		}
		n -= half
	}
	return i
}

// tableMax is the range of values up to which bins are looked up in a table.
const tableMax = 1 << 14

// sampleMax is how many values are looked at to choose the edges of range bins.
const sampleMax = 1 << 13

func chooseEdges(values []int64, nulls []uint64, o Options) edges {
	equality, ranges := o.bins()
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	distinct := make(map[int64]struct{})
	last, any := int64(0), false
	eachValue(values, nulls, func(v int64) {
		lo, hi = min(lo, v), max(hi, v)
		// Neighbours are often equal, and a full set is not looked at.
		if any && v == last || len(distinct) > equality {
			return
		}
		last, any = v, true
		distinct[v] = struct{}{}
	})
	if !any {
		return edges{}
	}
	var e edges
	if len(distinct) <= equality {
		for v := range distinct {
			e.upper = append(e.upper, v)
		}
		sort.Slice(e.upper, func(i, j int) bool { return e.upper[i] < e.upper[j] })
		e.upper[len(e.upper)-1] = math.MaxInt64
	} else {
		e.upper = equiDepth(sample(values, nulls), ranges)
	}
	if uint64(hi)-uint64(lo) < tableMax {
		e.base = lo
		table := make([]uint16, hi-lo+1)
		for i := range table {
			table[i] = uint16(e.find(lo + int64(i)))
		}
		e.table = table
	}
	return e
}

func eachValue(values []int64, nulls []uint64, f func(v int64)) {
	for i, v := range values {
		if i>>6 < len(nulls) && nulls[i>>6]>>(i&63)&1 != 0 {
			continue
		}
		f(v)
	}
}

// sample returns values from all over the column, sorted. Its step is odd, lest it
// keeps time with the data.
func sample(values []int64, nulls []uint64) []int64 {
	step := max(1, len(values)/sampleMax) | 1
	var s []int64
	at := 0
	eachValue(values, nulls, func(v int64) {
		if at%step == 0 {
			s = append(s, v)
		}
		at++
	})
	sort.Slice(s, func(i, j int) bool { return s[i] < s[j] })
	return s
}

// equiDepth returns the upper ends of about n bins with equal shares of the sorted
// sample. A value with half a share or more has a bin of its own, so that it is
// never a candidate only.
func equiDepth(sample []int64, n int) []int64 {
	var upper []int64
	put := func(v int64) {
		if len(upper) == 0 || upper[len(upper)-1] < v {
			upper = append(upper, v)
		}
	}
	depth := float64(len(sample)) / float64(n)
	inBin := 0
	for i := 0; i < len(sample); {
		v := sample[i]
		j := i + sort.Search(len(sample)-i, func(k int) bool { return sample[i+k] > v })
		same := j - i
		i = j
		if 2*float64(same) >= depth && same > 1 {
			if v > math.MinInt64 {
				put(v - 1)
			}
			put(v)
			inBin = 0
			continue
		}
		if inBin += same; float64(inBin) >= depth {
			put(v)
			inBin = 0
		}
	}
	put(math.MaxInt64)
	if len(upper) > 1 && inBin == 0 && upper[len(upper)-2] >= sample[len(sample)-1] {
		// Nothing is sampled above: what else there is joins the last bin.
		upper = upper[:len(upper)-1]
		upper[len(upper)-1] = math.MaxInt64
	}
	return upper
}

// Len is the number of rows.
func (x *Index) Len() int { return x.rows }

// Bins is the number of bins.
func (x *Index) Bins() int { return len(x.bins) }

// Bin returns the least and the greatest value in bin i, and its rows. The bitmap
// is the index's own.
func (x *Index) Bin(i int) (lo, hi int64, rows *Bitmap) {
	b := &x.bins[i]
	return b.lo, b.hi, b.bitmap
}

// Exact reports whether every bin holds one value: then no query has candidates.
func (x *Index) Exact() bool {
	for i := range x.bins {
		if x.bins[i].lo != x.bins[i].hi {
			return false
		}
	}
	return true
}

// Bytes is the size of all.
func (x *Index) Bytes() int { return 8 * len(x.words) }
