package bitmapidx

import (
	"fmt"
	"math"
)

// The words of an index, as the package comment draws them.
const (
	indexMagic  = 0x3158444942475002
	indexHeader = 8
	binWords    = 4
)

// layOut writes what the builders have, without the empty ones, to memory of alloc.
func layOut(rows int, builders []binBuilder, alloc Alloc) *Index {
	size, bins := indexHeader, 0
	chunks := chunksOf(rows)
	null := &builders[len(builders)-1]
	for i := range builders {
		b := &builders[i]
		if b.rows == 0 {
			continue
		}
		b.moveTo(chunks) // to the end; the last chunk's padding is 0
		size += blockWords(len(b.atoms))
		if b != null {
			size += binWords
			bins++
		}
	}
	words := alloc.words(size)
	if words == nil {
		return nil
	}
	clear(words[:indexHeader])
	words[0], words[1], words[2], words[3], words[4] = indexMagic, uint64(rows), uint64(bins), uint64(null.rows), uint64(size)
	x := &Index{rows: rows, bins: make([]bin, 0, bins), null: null.rows, words: words}
	at := indexHeader + binWords*bins
	for i := range builders {
		b := &builders[i]
		if b.rows == 0 {
			continue
		}
		end := at + blockWords(len(b.atoms))
		m := storeAt(words[at:end:end], rows, b.atoms)
		if b == null {
			words[5] = uint64(at)
			x.nulls = m
		} else {
			entry := words[indexHeader+binWords*len(x.bins):]
			entry[0], entry[1], entry[2], entry[3] = uint64(b.lo), uint64(b.hi), uint64(b.rows), uint64(at)
			x.bins = append(x.bins, bin{b.lo, b.hi, b.rows, m})
		}
		at = end
	}
	return x
}

// Words are all of the index, as it is kept in memory and sent to a
// device. They must not be written.
func (x *Index) Words() []uint64 { return x.words }

// parse is the inverse of Words. It checks everything, that each row is in one bin
// or null included, and keeps words.
func parse(words []uint64) (*Index, error) {
	if len(words) < indexHeader {
		return nil, fmt.Errorf("index of %d words has no header", len(words))
	}
	h := words[:indexHeader]
	if h[0] != indexMagic {
		return nil, fmt.Errorf("index begins with %#x", h[0])
	}
	if h[1] > rowsMax || h[2] > binsMax || h[4] != uint64(len(words)) || h[3] > h[1] || h[6]|h[7] != 0 {
		return nil, fmt.Errorf("index of %d rows, %d bins, %d nulls, %d of %d words", h[1], h[2], h[3], h[4], len(words))
	}
	x := &Index{rows: int(h[1]), bins: make([]bin, h[2]), null: int(h[3]), words: words}
	at := indexHeader + binWords*len(x.bins)
	if at > len(words) {
		return nil, fmt.Errorf("index of %d words has no room for %d bins", len(words), len(x.bins))
	}
	// next parses the bitmap at a place that must be where the one before ended.
	next := func(place uint64, rows int) (*Bitmap, error) {
		if place != uint64(at) || rows == 0 {
			return nil, fmt.Errorf("index: a bitmap of %d rows at %d, not %d", rows, place, at)
		}
		m, n, err := ParseWords(words[at:])
		if err != nil {
			return nil, err
		}
		if m.rows != x.rows || m.Count() != rows {
			return nil, fmt.Errorf("index: a bitmap has %d of %d rows, not %d of %d", m.Count(), m.rows, rows, x.rows)
		}
		at += n
		return m, nil
	}
	all, sum := make([]*Bitmap, 0, len(x.bins)+1), 0
	before := int64(math.MinInt64)
	for i := range x.bins {
		e := words[indexHeader+binWords*i:]
		b := bin{lo: int64(e[0]), hi: int64(e[1]), rows: int(min(e[2], h[1]+1))}
		if b.lo > b.hi || i > 0 && b.lo <= before {
			return nil, fmt.Errorf("index: bin %d of %d to %d after %d", i, b.lo, b.hi, before)
		}
		var err error
		if b.bitmap, err = next(e[3], b.rows); err != nil {
			return nil, err
		}
		before = b.hi
		x.bins[i] = b
		all, sum = append(all, b.bitmap), sum+b.rows
	}
	if x.null > 0 {
		var err error
		if x.nulls, err = next(h[5], x.null); err != nil {
			return nil, err
		}
		all, sum = append(all, x.nulls), sum+x.null
	} else if h[5] != 0 {
		return nil, fmt.Errorf("index: a null bitmap at %d for no nulls", h[5])
	}
	if at != len(words) {
		return nil, fmt.Errorf("index ends at word %d of %d", at, len(words))
	}
	// As many rows in the bins as in the union of the bins: none is in two.
	if sum != x.rows || sum > 0 && OrAll(nil, all).Count() != sum {
		return nil, fmt.Errorf("index: bins do not part the %d rows", x.rows)
	}
	return x, nil
}
