package wahbits

import (
	"fmt"
	"iter"
	"math/bits"
)

// All yields the rows that are set, ascending.
func (b *Bitmap) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		row := 0
		for _, a := range b.atoms {
			switch {
			case a&fillFlag == 0:
				for w := a; w != 0; w &= w - 1 {
					if !yield(row + bits.TrailingZeros64(w)) {
						return
					}
				}
				row += chunkBits
			case a&fillOnes == 0:
				row += chunkBits * int(a&runMask)
			default:
				for end := row + chunkBits*int(a&runMask); row < end; row++ {
					if !yield(row) {
						return
					}
				}
			}
		}
	}
}

// Dense writes the bits of rows [start, start+n) to dst: row start+i is bit i&63 of
// dst[i>>6]. Bits past n in the last word become 0. It finds start by the directory;
// for tile after tile, a reader is cheaper.
func (b *Bitmap) Dense(dst []uint64, start, n int) {
	r := newReader(b)
	r.Dense(dst, start, n)
}

// AppendRows appends the numbers of the set rows of [start, start+n), less start.
func AppendRows[T uint16 | uint32 | int32 | int](dst []T, b *Bitmap, start, n int) []T {
	r := newReader(b)
	r.each(start, n, func(at int, w uint64) {
		for ; w != 0; w &= w - 1 {
			dst = append(dst, T(at+bits.TrailingZeros64(w)))
		}
	}, func(at, end int) {
		for ; at < end; at++ {
			dst = append(dst, T(at))
		}
	})
	return dst
}

// reader reads ranges of rows. It remembers where the latest one ended, so that
// ranges in ascending order cost one walk over the atoms. It is for one goroutine.
type reader struct {
	b     *Bitmap
	atom  int // begins at chunk or before
	chunk int // where atom begins
}

// newReader returns a reader of b.
func newReader(b *Bitmap) reader { return reader{b: b} }

// Dense is Bitmap.Dense.
func (r *reader) Dense(dst []uint64, start, n int) {
	dst = dst[:(n+63)/64]
	clear(dst)
	if !r.find(start, n) {
		return
	}
	// This is what each does, without its calls: a tile has 17 literals.
	i, at := r.atom, r.chunk*chunkBits-start
	for atoms := r.b.atoms; ; i++ {
		a := atoms[i]
		step := chunkBits
		if a&fillFlag != 0 {
			step *= int(a & runMask)
			if a&fillOnes != 0 {
				setBits(dst, max(at, 0), min(at+step, n))
			}
		} else if at < 0 {
			dst[0] |= a >> -at
		} else {
			j, shift := uint(at)>>6, uint(at)&63
			dst[j] |= a << shift
			if j++; j < uint(len(dst)) {
				dst[j] |= a >> 1 >> (63 - shift)
			}
		}
		if at += step; at >= n {
			r.atom, r.chunk = i, (start+at-step)/chunkBits
			break
		}
	}
	if n&63 != 0 {
		dst[n>>6] &= 1<<(n&63) - 1
	}
}

// setBits sets bits [from, to), from < to.
func setBits(w []uint64, from, to int) {
	i, j := from>>6, (to-1)>>6
	lo, hi := ^uint64(0)<<(from&63), ^uint64(0)>>(63-(to-1)&63)
	if i == j {
		w[i] |= lo & hi
		return
	}
	w[i] |= lo
	for i++; i < j; i++ {
		w[i] = ^uint64(0)
	}
	w[j] |= hi
}

// each calls literal for every literal of rows [start, start+n), with the place of
// its first row less start and its bits, those outside cut off, and ones for every
// range [at, end) of rows, less start, in a fill of ones.
func (r *reader) each(start, n int, literal func(at int, w uint64), ones func(at, end int)) {
	if !r.find(start, n) {
		return
	}
	atoms := r.b.atoms
	for i, at := r.atom, r.chunk*chunkBits-start; ; i++ {
		a := atoms[i]
		if a&fillFlag == 0 {
			w, p := a, at
			if at < 0 {
				w, p = w>>-at, 0
			}
			if at+chunkBits > n {
				w &= 1<<(n-p) - 1
			}
			literal(p, w)
		} else if a&fillOnes != 0 {
			ones(max(at, 0), min(at+chunkBits*int(a&runMask), n))
		}
		m := int(atomChunks(a))
		if at += chunkBits * m; at >= n {
			// The next range begins here or later, perhaps in this very atom.
			return
		}
		r.atom, r.chunk = i+1, r.chunk+m
	}
}

// find moves to the atom that has row start, and reports whether there are rows to
// read from there.
func (r *reader) find(start, n int) bool {
	if start < 0 || n < 0 || start > r.b.rows || n > r.b.rows-start {
		panic(fmt.Sprintf("BUG: rows %d to %d of a bitmap of %d", start, start+n, r.b.rows))
	}
	if n == 0 {
		return false
	}
	chunk := start / chunkBits
	atoms := r.b.atoms
	if chunk < r.chunk || chunk > r.chunk+2*dirEvery {
		if j, at := r.b.seek(chunk); chunk < r.chunk || at > r.chunk {
			r.atom, r.chunk = j, at
		}
	}
	for {
		m := int(atomChunks(atoms[r.atom]))
		if r.chunk+m > chunk {
			break
		}
		r.chunk += m
		r.atom++
	}
	return true
}
