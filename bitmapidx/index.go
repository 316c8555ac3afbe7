package bitmapidx

import (
	"iter"
	"math"
	"math/bits"
	"sort"

	"pgaccel/internal/processors"
)

// Index says, for each row of a column of a segment, in which bin its value is; see
// the package comment. It is immutable and safe for any number of readers. Its atoms
// are where Alloc put them: it must not be used once that memory is given back.
type Index struct {
	rows  int
	bins  []bin    // ascending
	nulls []uint64 // atoms of the rows that are null; nil where none is
	atoms int      // of all bins, and of nulls
	words []uint64 // as the package comment draws them
}

type bin struct {
	lo, hi int64 // the least and the greatest value that is in the bin
	rows   int
	tiles  int // that have some of these
	atoms  []uint64
}

// Alloc returns memory of the given number of 64-bit words, zeroed or not, or nil
// where there is none left. nil as an Alloc is Go's heap.
type Alloc func(words int) []uint64

// options say how values are put into bins: tests have others.
type options struct {
	// equality is how many distinct values get a bin each; a column with more gets range
	// bins.
	equality int
	// ranges is about how many range bins there are, each with about as many rows:
	// equi-depth. A value of more rows than that has a bin of its own, so there may be up
	// to twice as many, and one.
	ranges int
}

// EqualityBins is the most values that get a bin each.
const EqualityBins = 64

var usual = options{EqualityBins, 32}

// Build makes the index of a column: its values, compared as integers, and which
// of its rows are null (bit i&63 of word i>>6; words past the end are 0). The values
// of null rows do not matter. It returns nil where alloc gives no memory.
func Build(values []int64, nulls []uint64, alloc Alloc) *Index {
	return build(values, nulls, usual, alloc)
}

func build(values []int64, nulls []uint64, o options, alloc Alloc) *Index {
	edges := chooseEdges(values, nulls, o)
	builders := make([]binBuilder, len(edges.upper)+1) // the last is for null
	for i := range builders {
		builders[i].lo, builders[i].hi = math.MaxInt64, math.MinInt64
	}
	null := &builders[len(edges.upper)]
	for chunk, r := range runs(values, nulls) {
		if r.null != 0 {
			null.add(chunk, r.null)
		}
		if r.rows != 0 {
			b := &builders[edges.find(r.v)]
			b.add(chunk, r.rows)
			b.lo, b.hi = min(b.lo, r.v), max(b.hi, r.v)
		}
	}
	return layOut(len(values), builders, alloc)
}

// run is rows of a chunk with the same value, one after the other, as bits: those that are null apart.
type run struct {
	v          int64
	rows, null uint64
}

// runs yields the runs of a column, with their chunks. Values often come in runs, so that most of what
// is done with a value is done once for many rows.
func runs(values []int64, nulls []uint64) iter.Seq2[int, run] {
	return func(yield func(chunk int, r run) bool) {
		var core processors.Turn
		for start, chunk := 0, 0; start < len(values); start, chunk = start+chunkBits, chunk+1 {
			part := values[start:min(start+chunkBits, len(values))]
			absent := bitsFrom(nulls, start)
			for i := 0; i < len(part); {
				v, first := part[i], i
				for i++; i < len(part) && part[i] == v; i++ {
				}
				rows := ^uint64(0) >> (64 - (i - first)) << first
				if !yield(chunk, run{v, rows &^ absent, rows & absent}) {
					return
				}
			}
			core.Next()
		}
	}
}

// bitsFrom are 64 bits of words from bit i on; words past the end are 0.
func bitsFrom(words []uint64, i int) (w uint64) {
	if j := i >> 6; j < len(words) {
		w = words[j] >> (i & 63)
		if j+1 < len(words) {
			w |= words[j+1] << 1 << (63 - i&63)
		}
	}
	return w
}

// layOut moves the atoms of the builders that have rows to memory of alloc.
func layOut(rows int, builders []binBuilder, alloc Alloc) *Index {
	x, total, bins := &Index{rows: rows}, 0, 0
	for i := range builders {
		if b := &builders[i]; b.rows > 0 {
			b.moveTo(chunksOf(rows)) // to the end; the last chunk's padding is 0
			total += len(b.atoms)
			if i < len(builders)-1 {
				bins++
			}
		}
	}
	if alloc == nil {
		alloc = func(words int) []uint64 { return make([]uint64, words) }
	}
	words := alloc(directoryWords(bins) + total)
	if words == nil {
		return nil
	}
	x.words = words
	words[0] = uint64(bins)
	los, his, ends, words := words[1:1+bins], words[1+bins:1+2*bins], words[1+2*bins:2+3*bins], words[2+3*bins:]
	for i := range builders {
		b := &builders[i]
		if b.rows == 0 {
			continue
		}
		n := copy(words[x.atoms:], b.atoms)
		atoms := words[x.atoms : x.atoms+n : x.atoms+n]
		x.atoms += n
		if i == len(builders)-1 {
			x.nulls = atoms
			continue
		}
		k := len(x.bins)
		los[k], his[k], ends[k] = uint64(b.lo), uint64(b.hi), uint64(x.atoms)
		x.bins = append(x.bins, bin{b.lo, b.hi, b.rows, b.tiles, atoms})
	}
	ends[bins] = uint64(x.atoms)
	return x
}

// directoryWords is how many words come before the atoms of so many bins.
func directoryWords(bins int) int { return 2 + 3*bins }

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

func chooseEdges(values []int64, nulls []uint64, o options) edges {
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	distinct := make(map[int64]struct{})
	last, any := int64(0), false
	for _, r := range runs(values, nulls) {
		if r.rows == 0 {
			continue
		}
		lo, hi = min(lo, r.v), max(hi, r.v)
		// Neighbours are often equal, and a full set is not looked at.
		if any && r.v == last || len(distinct) > o.equality {
			continue
		}
		last, any = r.v, true
		distinct[r.v] = struct{}{}
	}
	if !any {
		return edges{}
	}
	var e edges
	if len(distinct) <= o.equality {
		for v := range distinct {
			e.upper = append(e.upper, v)
		}
		sort.Slice(e.upper, func(i, j int) bool { return e.upper[i] < e.upper[j] })
		e.upper[len(e.upper)-1] = math.MaxInt64
	} else {
		e.upper = equiDepth(sample(values, nulls), o.ranges)
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

// sample returns values from all over the column, sorted. Its step is odd, lest it
// keeps time with the data.
func sample(values []int64, nulls []uint64) []int64 {
	step := max(1, len(values)/sampleMax) | 1
	var s []int64
	next := 0
	for _, r := range runs(values, nulls) {
		n := bits.OnesCount64(r.rows)
		for ; next < n; next += step {
			s = append(s, r.v)
		}
		next -= n
	}
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

// Bins is the number of bins.
func (x *Index) Bins() int { return len(x.bins) }

// Bin returns the least and the greatest value in bin i.
func (x *Index) Bin(i int) (lo, hi int64) { return x.bins[i].lo, x.bins[i].hi }

// Bytes is the size of Words.
func (x *Index) Bytes() int { return 8 * len(x.words) }

// Words are the index as the package comment draws it. They are not to be changed.
func (x *Index) Words() []uint64 { return x.words }
