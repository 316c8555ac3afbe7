package bitmapidx

import "math/bits"

// Profile is what must be known about a column to say whether an index pays: a
// segment's worth of it tells enough about all of it. It refers to the column.
type Profile struct {
	Rows     int // null ones included
	Nulls    int
	Distinct int // values that are not null, at most distinctMax

	values []int64
	nulls  []uint64
	usual  shape // of the index that Build would make
}

// distinctMax is where a Profile stops to count.
const distinctMax = 4096

// Profiled looks at the values of a column as Build does. It keeps values and nulls.
func Profiled(values []int64, nulls []uint64) Profile {
	p := Profile{Rows: len(values), values: values, nulls: nulls}
	distinct := make(map[int64]struct{})
	var last int64
	p.Nulls = len(values)
	for _, r := range runs(values, nulls) {
		p.Nulls -= bits.OnesCount64(r.rows)
		if r.rows == 0 || len(distinct) > 0 && r.v == last || len(distinct) == distinctMax {
			continue
		}
		last = r.v
		distinct[r.v] = struct{}{}
	}
	p.Distinct = len(distinct)
	p.usual = p.shape(usual)
	return p
}

// shape is what an index would be.
type shape struct {
	bins  int  // that have rows
	exact bool // every bin holds one value
	atoms int  // of all bins and of the rows that are null
}

// shape finds out what Build would make of the column, without its memory.
func (p Profile) shape(o options) shape {
	e := chooseEdges(p.values, p.nulls, o)
	s := shape{exact: true}
	bins := make([]binMeter, len(e.upper)+1)
	null := &bins[len(e.upper)]
	chunks := chunksOf(p.Rows)
	for chunk, r := range runs(p.values, p.nulls) {
		if r.null != 0 {
			null.add(chunk, bits.OnesCount64(r.null))
		}
		if r.rows == 0 {
			continue
		}
		b := &bins[e.find(r.v)]
		if b.atoms == 0 {
			b.value = r.v
			s.bins++
		}
		s.exact = s.exact && b.value == r.v
		b.add(chunk, bits.OnesCount64(r.rows))
	}
	for i := range bins {
		if b := &bins[i]; b.atoms > 0 {
			s.atoms += b.atoms
			if b.next < chunks {
				s.atoms++ // zeros to the end
			}
		}
	}
	return s
}

// binMeter counts the atoms that a binBuilder would write.
type binMeter struct {
	atoms     int
	next      int   // after the latest chunk with a row
	rows      int   // of that chunk
	afterOnes bool  // the chunk before that one is a fill of ones
	value     int64 // its first
}

// add adds so many rows of a chunk.
func (b *binMeter) add(chunk, rows int) {
	if b.next != chunk+1 {
		b.afterOnes = chunk == b.next && b.rows == chunkBits
		if chunk > b.next {
			b.atoms++ // a fill of the zeros between
		}
		b.atoms++
		b.next, b.rows = chunk+1, 0
	}
	if b.rows += rows; b.rows == chunkBits && b.afterOnes {
		b.atoms-- // it makes that fill longer
	}
}

// Bytes is the size of the index that Build would make.
func (p Profile) Bytes() int { return 8 * (directoryWords(p.usual.bins) + p.usual.atoms) }

// What an index must be to be worth its memory.
const (
	memoryShare = 2.0 // times as small as the packed column
	queryShare  = 2.0 // times as fast as a scan
)

// Worth reports whether the column should get an index: queries gain that use it,
// and it takes little memory beside the column, whose packed size is columnBytes.
// The query that counts is the worst: a range of half the bins that ends within two.
func (p Profile) Worth(columnBytes int) bool {
	if p.Rows == 0 {
		return false
	}
	s := p.usual
	if memoryShare*float64(p.Bytes()) > float64(columnBytes) {
		return false
	}
	c := Cost{Words: s.atoms/2 + chunksOf(p.Rows)}
	if !s.exact {
		for range 2 {
			rows, atoms := (p.Rows-p.Nulls)/s.bins, s.atoms/s.bins
			c.candidates(rows, 1+rows/tileRows+atoms, p.Rows)
		}
	}
	return queryShare*c.Nanoseconds() < scanCost*float64(p.Rows)
}
