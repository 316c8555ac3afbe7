package bitmapidx

// Profile is what an index of a column would be, found without making it: a
// segment's worth of the column tells enough about all of it.
type Profile struct {
	Rows  int // null ones included
	Nulls int
	Bins  int  // that have rows
	Exact bool // every bin holds one value
	Atoms int  // of all bins and the null bitmap
}

// Measure finds out what Build would make of the column, without its memory.
func Measure(values []int64, nulls []uint64, o Options) Profile {
	e := chooseEdges(values, nulls, o)
	p := Profile{Rows: len(values), Exact: true}
	bins := make([]binMeter, len(e.upper)+1)
	null := &bins[len(e.upper)]
	chunks := chunksOf(len(values))
	for i, v := range values {
		chunk := i / chunkBits
		if i>>6 < len(nulls) && nulls[i>>6]>>(i&63)&1 != 0 {
			p.Nulls++
			null.add(chunk)
			continue
		}
		b := &bins[e.find(v)]
		if b.atoms == 0 {
			b.value = v
			p.Bins++
		}
		p.Exact = p.Exact && b.value == v
		b.add(chunk)
	}
	for i := range bins {
		if b := &bins[i]; b.atoms > 0 {
			p.Atoms += b.atoms
			if b.next < chunks {
				p.Atoms++ // zeros to the end
			}
		}
	}
	return p
}

// binMeter counts the atoms that a binBuilder would write.
type binMeter struct {
	atoms     int
	next      int   // after the latest chunk with a row
	rows      int   // of that chunk
	afterOnes bool  // the chunk before that one is a fill of ones
	value     int64 // its first
}

func (b *binMeter) add(chunk int) {
	if b.next != chunk+1 {
		b.afterOnes = chunk == b.next && b.rows == chunkBits
		if chunk > b.next {
			b.atoms++ // a fill of the zeros between
		}
		b.atoms++
		b.next, b.rows = chunk+1, 0
	}
	if b.rows++; b.rows == chunkBits && b.afterOnes {
		b.atoms-- // it makes that fill longer
	}
}

// Bytes is the size of the index that Build would make.
func (p Profile) Bytes() int {
	bins := p.Bins
	if p.Nulls > 0 {
		bins++
	}
	// The directories' last words are rounded up: half a word each, on average.
	return 8 * (indexHeader + binWords*p.Bins + bins*blockHeader + p.Atoms + p.Atoms/(2*dirEvery) + (bins+1)/2)
}

// What an index must be to be worth its memory.
const (
	memoryShare = 2.0 // times as small as the packed column
	queryShare  = 2.0 // times as fast as a scan
)

// Worth reports whether the column should get an index: queries gain that use it,
// and it takes little memory beside the column, whose packed size is columnBytes.
// The query that counts is the worst: a range of half the bins that ends within two.
func (p Profile) Worth(columnBytes int) bool {
	if p.Rows == 0 || p.Bins == 0 && p.Nulls == 0 || memoryShare*float64(p.Bytes()) > float64(columnBytes) {
		return false
	}
	c := Cost{Words: p.Atoms/2 + chunksOf(p.Rows)}
	if !p.Exact {
		for range 2 {
			c.candidates((p.Rows-p.Nulls)/p.Bins, p.Atoms/p.Bins, p.Rows)
		}
	}
	return queryShare*c.Nanoseconds() < scanCost*float64(p.Rows)
}
