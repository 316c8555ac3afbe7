package bitmapidx

import (
	"math/bits"
	"sync"
)

// windowChunks is how many chunks are decoded at a time: three windows fit the
// first-level cache.
const windowChunks = 1024

// windows are those of one operation.
type windows struct{ x, y [windowChunks]uint64 }

var windowPool = sync.Pool{New: func() any { return new(windows) }}

// cursor reads atoms as words of 63 bits.
type cursor struct {
	atoms []uint64
	left  uint64 // chunks of the fill before atoms that are not read yet
	word  uint64 // what each of them is
}

// or ORs the next len(buf) chunks into buf; there must be as many. An atom costs the
// same instructions whether it is a literal or a fill of zeros, which adds nothing
// at its first chunk and skips the others: that which of both comes next cannot be
// predicted does not matter then. Fills of ones are told apart by a branch.
func (c *cursor) or(buf []uint64) {
	p := uint64(0)
	if c.left > 0 {
		p = min(c.left, uint64(len(buf)))
		if c.word != 0 {
			setWords(buf[:p])
		}
		if c.left -= p; c.left > 0 {
			return
		}
	}
	atoms := c.atoms
	i := 0
	for p < uint64(len(buf)) {
		a := atoms[i]
		i++
		if a >= oneRun {
			n := min(a&runMask, uint64(len(buf))-p)
			setWords(buf[p : p+n])
			p += a & runMask
			continue
		}
		fill := uint64(int64(a) >> 63)
		buf[p] |= a &^ fill
		p += a&runMask&fill | 1&^fill
	}
	if p > uint64(len(buf)) {
		c.left, c.word = p-uint64(len(buf)), fillWord(atoms[i-1])
	}
	c.atoms = atoms[i:]
}

func setWords(w []uint64) {
	for i := range w {
		w[i] = allOnes
	}
}

// combineWindows is combineRuns by way of plain words, chunks in all.
func combineWindows(out []uint64, o op, x, y []uint64, chunks int) int {
	w := windowPool.Get().(*windows)
	defer windowPool.Put(w)
	xs, ys := cursor{atoms: x}, cursor{atoms: y}
	k := 0
	for chunks > 0 {
		n := min(chunks, windowChunks)
		chunks -= n
		p, q := w.x[:n], w.y[:n]
		clear(p)
		clear(q)
		xs.or(p)
		ys.or(q)
		for i := range p {
			p[i] = o.apply(p[i], q[i])
		}
		k = compress(out, k, p)
	}
	return k
}

// compress appends the chunks to the k atoms of out, in which there is room for the
// result. It has no branch that depends on the chunks but for
// one: eight words at a time are looked at for long fills of zeros.
func compress(out []uint64, k int, words []uint64) int {
	var prev uint64 // of the latest atom: its flag and value if it is a fill, else 0
	var atom uint64
	if k > 0 {
		atom = out[k-1]
		prev = atom & oneRun & uint64(int64(atom)>>63)
	}
	for len(words) > 0 {
		if prev == zeroRun && len(words) >= 8 {
			s := words[:8]
			if s[0]|s[1]|s[2]|s[3]|s[4]|s[5]|s[6]|s[7] == 0 {
				atom += 8
				out[k-1] = atom
				words = words[8:]
				continue
			}
		}
		n := min(len(words), 8)
		for _, w := range words[:n] {
			_, lit := bits.Sub64(w-1, allOnes-1, 0) // 1: neither 0 nor allOnes
			hom := lit - 1                          // all ones: a fill's chunk
			kind := (zeroRun | w&fillOnes) & hom
			_, differ := bits.Sub64(0, kind^prev, 0)
			more := (differ - 1) & hom // all ones: the latest fill becomes longer
			atom = (atom+1)&more | (w&^hom|kind|hom&1)&^more
			k -= int(more & 1)
			out[k] = atom
			k++
			prev = kind
		}
		words = words[n:]
	}
	return k
}
