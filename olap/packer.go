package olap

import (
	"math/bits"
	"slices"
)

// packer packs the values of several nodes into words and back: each part is its
// distance from the node's lower bound, with a bit before it for null.
type packer struct {
	parts []part
	words int
	used  uint // bits of the last word
	// card is the product of the parts' cardinalities, 0 where 64 bits do not hold
	// it.
	card uint64
}

type part struct {
	lo       int64
	nullable bool
	card     uint64 // values and null; 0 for 2^64 or more
	word     int
	shift    uint
	nullAt   uint // bit of the null in word nullWord
	nullWord int
	bits     uint
	stride   uint64 // in the dense numbering
}

func newPacker() *packer { return &packer{card: 1} }

// add appends a part for the values of x, or where card is not 0, for the codes 0
// to card-1.
func (p *packer) add(x *node, card uint64) {
	var a part
	if card != 0 {
		a.card, a.bits = card, uint(bits.Len64(card-1))
	} else {
		a.lo, a.nullable = x.lo, x.nullable
		span := uint64(x.hi) - uint64(x.lo)
		a.bits = uint(bits.Len64(span))
		a.card = span + 1
		if a.nullable && a.card != 0 {
			a.card++
		}
	}
	a.word, a.shift = p.room(a.bits)
	if a.nullable {
		a.nullWord, a.nullAt = p.room(1)
	}
	a.stride = p.card
	hi, lo := bits.Mul64(p.card, a.card)
	if p.card = lo; hi != 0 {
		p.card = 0
	}
	p.parts = append(p.parts, a)
}

func (p *packer) room(n uint) (word int, shift uint) {
	if p.words == 0 || p.used+n > 64 {
		p.words++
		p.used = 0
	}
	word, shift = p.words-1, p.used
	p.used += n
	return word, shift
}

// digit returns the part's number in the dense numbering: null is 0.
func (a *part) digit(v vec, i int) uint64 {
	if !a.nullable {
		return uint64(v.v[i] - a.lo)
	}
	if v.nulls != nil && v.nulls[i] != 0 {
		return 0
	}
	return uint64(v.v[i]-a.lo) + 1
}

// undigit is the inverse of digit.
func (a *part) undigit(d uint64) (v int64, null bool) {
	if !a.nullable {
		return a.lo + int64(d), false
	}
	if d == 0 {
		return a.lo, true
	}
	return a.lo + int64(d-1), false
}

// pack adds the part's value of row i to the words of a key.
func (a *part) pack(key []uint64, v vec, i int) {
	if v.nulls != nil && v.nulls[i] != 0 && a.nullable {
		key[a.nullWord] |= 1 << a.nullAt
		return
	}
	key[a.word] |= (uint64(v.v[i]) - uint64(a.lo)) << a.shift
}

// unpack is the inverse of pack.
func (a *part) unpack(key []uint64) (v int64, null bool) {
	if a.nullable && key[a.nullWord]>>a.nullAt&1 != 0 {
		return a.lo, true
	}
	d := key[a.word] >> a.shift
	if a.bits < 64 {
		d &= 1<<a.bits - 1
	}
	return int64(d + uint64(a.lo)), false
}

// denseDistinct bounds the array that finds distinct rows.
const denseDistinct = 1 << 20

// distinctParted is the number of rows from which on several goroutines number them. Tests make it small.
var distinctParted = 1 << 13

// distinctOf is distinct of all n rows, or of those among them that rows names. Several goroutines number many: where
// they may have few values, those of a chunk for themselves, then what is distinct there together; else those of a
// partition by the values' hash.
func (p *packer) distinctOf(x *execution, cols []vec, rows []uint32, n int) (of, rep []uint32) {
	if rows == nil {
		rows = x.ascending(n)
	}
	switch {
	case !x.opt.enough(n, distinctParted) || x.opt.Workers == 1:
		return p.distinct(cols, rows)
	case p.card != 0 && p.card <= uint64(min(n, buildChunk)/8):
		return p.distinctByChunk(x, cols, rows)
	}
	return p.distinctByHash(x, cols, rows)
}

func (p *packer) distinctByChunk(x *execution, cols []vec, rows []uint32) (of, rep []uint32) {
	n := len(rows)
	of = unset[uint32](n)
	reps := make([][]uint32, chunksOf(n))
	x.chunksSideBySide(n, func(c, from, to int) {
		var chunk []uint32
		chunk, reps[c] = p.distinct(cols, rows[from:to])
		copy(of[from:], chunk)
	})
	numbers, rep := p.distinct(cols, slices.Concat(reps...))
	first := make([]int, len(reps)+1) // by chunk: where its numbers begin
	for c := range reps {
		first[c+1] = first[c] + len(reps[c])
	}
	x.chunksSideBySide(n, func(c, from, to int) {
		numbers := numbers[first[c]:]
		for i := from; i < to; i++ {
			of[i] = numbers[of[i]]
		}
	})
	return of, rep
}

func (p *packer) distinctByHash(x *execution, cols []vec, rows []uint32) (of, rep []uint32) {
	n := len(rows)
	parts := min(1<<bits.Len(uint(4*x.opt.Workers-1)), 64)
	part := unset[uint8](n)                  // by row
	at := make([][]int, max(chunksOf(n), 1)) // by chunk and partition: rows, then where they go
	x.chunksSideBySide(n, func(c, from, to int) {
		key, counts := make([]uint64, p.words), make([]int, parts)
		for j := from; j < to; j++ {
			clear(key)
			for i := range p.parts {
				p.parts[i].pack(key, cols[i], int(rows[j]))
			}
			part[j] = uint8(hashOf(key) >> 32 & uint64(parts-1)) // the tables use the lower half
			counts[part[j]]++
		}
		at[c] = counts
	})
	start := placesOf(at, parts)
	order := unset[uint32](n) // places in rows, by partition
	x.chunksSideBySide(n, func(c, from, to int) {
		at := at[c]
		for j := from; j < to; j++ {
			order[at[part[j]]] = uint32(j)
			at[part[j]]++
		}
	})
	of = unset[uint32](n)
	reps := make([][]uint32, parts)
	x.sideBySide(parts, func(q int) {
		places := order[start[q]:start[q+1]]
		keep := make([]uint32, len(places))
		for k, j := range places {
			keep[k] = rows[j]
		}
		var numbers []uint32
		numbers, reps[q] = p.distinct(cols, keep)
		for k, j := range places {
			of[j] = numbers[k]
		}
	})
	first := make([]uint32, parts+1) // by partition: where its numbers begin
	for q := range reps {
		first[q+1] = first[q] + uint32(len(reps[q]))
	}
	x.chunksSideBySide(n, func(_, from, to int) {
		for j := from; j < to; j++ {
			of[j] += first[part[j]]
		}
	})
	return of, slices.Concat(reps...)
}

// distinct numbers the distinct rows among keep: the number of each, and one row
// for each number.
func (p *packer) distinct(cols []vec, keep []uint32) (of, rep []uint32) {
	of = make([]uint32, len(keep))
	if p.card != 0 && p.card <= min(denseDistinct, uint64(16*len(keep)+1<<12)) {
		seen := make([]uint32, p.card)
		for j, r := range keep {
			d := uint64(0)
			for i := range p.parts {
				d += p.parts[i].digit(cols[i], int(r)) * p.parts[i].stride
			}
			if seen[d] == 0 {
				rep = append(rep, r)
				seen[d] = uint32(len(rep))
			}
			of[j] = seen[d] - 1
		}
		return of, rep
	}
	t := newWordTable(p.words, 0)
	key := make([]uint64, p.words)
	for j, r := range keep {
		clear(key)
		for i := range p.parts {
			p.parts[i].pack(key, cols[i], int(r))
		}
		n, fresh := t.insert(key)
		if fresh {
			rep = append(rep, r)
		}
		of[j] = n
	}
	return of, rep
}
