package bitmapidx

import "math/bits"

// The parts of an atom.
const (
	chunkBits        = 63           // bits of a literal: rows of a chunk
	fillFlag  uint64 = 1 << 63      // set in fills
	fillOnes  uint64 = 1 << 62      // in a fill: its bits are ones
	runMask   uint64 = fillOnes - 1 // in a fill: its chunks
	allOnes   uint64 = fillFlag - 1 // the literal bits of a chunk of ones
	zeroRun          = fillFlag     // a fill of no zeros yet: add the chunks
)

// chunksOf is how many chunks hold that many rows.
func chunksOf(rows int) int { return (rows + chunkBits - 1) / chunkBits }

// binBuilder makes the atoms of a bin, of rows in ascending order.
type binBuilder struct {
	atoms  []uint64
	chunk  int    // the chunk of word
	word   uint64 // its rows so far
	rows   int
	tiles  int // that have rows
	next   int // after the last of them
	lo, hi int64
}

// add adds rows of a chunk, some.
func (b *binBuilder) add(chunk int, rows uint64) {
	if chunk != b.chunk {
		b.moveTo(chunk)
	}
	b.word |= rows
	b.rows += bits.OnesCount64(rows)
	first := (chunk*chunkBits + bits.TrailingZeros64(rows)) / tileRows
	end := (chunk*chunkBits+bits.Len64(rows)-1)/tileRows + 1
	b.tiles += end - max(first, b.next)
	b.next = end
}

// moveTo writes the chunks before the given one.
func (b *binBuilder) moveTo(chunk int) {
	if b.word-1 < allOnes-1 {
		b.atoms = append(b.atoms, b.word)
	} else {
		b.atoms = appendFill(b.atoms, zeroRun|b.word&fillOnes, 1)
	}
	if gap := chunk - b.chunk - 1; gap > 0 {
		b.atoms = appendFill(b.atoms, zeroRun, uint64(gap))
	}
	b.word, b.chunk = 0, chunk
}

// appendFill appends n chunks of one kind, zeros or ones, or makes the fill before them longer.
func appendFill(atoms []uint64, kind, n uint64) []uint64 {
	if k := len(atoms); k > 0 && atoms[k-1]&^runMask == kind {
		atoms[k-1] += n
		return atoms
	}
	return append(atoms, kind|n)
}

// or sets the bits of dst that atoms have.
func or(dst, atoms []uint64) {
	at := uint(0)
	for _, a := range atoms {
		if a&fillFlag != 0 {
			end := at + chunkBits*uint(a&runMask)
			if a&fillOnes != 0 {
				setBits(dst, at, end) // the last chunk is no fill of ones where it is padded
			}
			at = end
			continue
		}
		j, shift := at>>6, at&63
		dst[j] |= a << shift
		if j++; j < uint(len(dst)) {
			dst[j] |= a >> 1 >> (63 - shift)
		}
		at += chunkBits
	}
}

// setBits sets bits [from, to), from < to.
func setBits(w []uint64, from, to uint) {
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

// not inverts the bits of rows.
func not(dst []uint64, rows int) {
	for i := range dst {
		dst[i] = ^dst[i]
	}
	if rows&63 != 0 {
		dst[rows>>6] &= 1<<(rows&63) - 1
	}
}
