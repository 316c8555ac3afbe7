package wahbits

import (
	"fmt"
	"slices"
	"sync"
)

// An operation on two bit vectors is a polynomial over their bits, modulo 2:
//
//	x op y = x&fx ^ y&fy ^ x&y&fxy
//
// where the factors are all ones or zero. So one loop serves AND, OR, XOR and
// ANDNOT, and the factors stay in registers.
type op struct{ x, y, xy uint64 }

var (
	opAnd    = op{0, 0, allOnes}
	opOr     = op{allOnes, allOnes, allOnes}
	opXor    = op{allOnes, allOnes, 0}
	opAndNot = op{allOnes, 0, allOnes}
)

func (o op) apply(x, y uint64) uint64 { return x&o.x ^ y&o.y ^ x&y&o.xy }

// And returns the rows of both. The result's memory is that of dst, where dst is
// not nil and large enough; dst must be the result of an operation, not stored and
// not an operand, and is not to be used any more. This holds for all operations.
func And(dst, a, b *Bitmap) *Bitmap { return combine(dst, opAnd, a, b) }

// Or returns the rows of either.
func Or(dst, a, b *Bitmap) *Bitmap { return combine(dst, opOr, a, b) }

// Xor returns the rows of exactly one.
func Xor(dst, a, b *Bitmap) *Bitmap { return combine(dst, opXor, a, b) }

// AndNot returns the rows of a that are not in b.
func AndNot(dst, a, b *Bitmap) *Bitmap { return combine(dst, opAndNot, a, b) }

// not returns the rows that are not in a. Here dst may be a, where a is a result.
func not(dst, a *Bitmap) *Bitmap {
	out := room(dst, len(a.atoms)+1)[:0]
	for _, x := range a.atoms {
		if x&fillFlag != 0 {
			out = append(out, x^fillOnes)
		} else {
			out = append(out, x^allOnes)
		}
	}
	if pad := a.rows % chunkBits; pad != 0 {
		// The last chunk's rows alone are inverted: it becomes a chunk of its own.
		last := out[len(out)-1]
		out = out[:len(out)-1]
		if last&fillFlag != 0 {
			if n := last & runMask; n > 1 {
				out = append(out, last-1)
			}
			last = allOnes
		}
		out = appendChunk(out, last&(1<<pad-1))
	}
	return &Bitmap{rows: a.rows, atoms: out}
}

// room is memory for that many words.
func room(dst *Bitmap, words int) []uint64 {
	if dst != nil && dst.block == nil && cap(dst.atoms) >= words {
		return dst.atoms[:words]
	}
	return make([]uint64, words)
}

// combine chooses between the two ways. Where most chunks are inside of fills, runs
// are combined as runs. Where almost all are literals, as well: no fill interrupts
// the loop over them. In between the processor would mispredict at nearly every
// atom, and windows of plain words are faster.
func combine(dst *Bitmap, o op, a, b *Bitmap) *Bitmap {
	if a.rows != b.rows {
		panic(fmt.Sprintf("BUG: bitmaps of %d and %d rows", a.rows, b.rows))
	}
	chunks := chunksOf(a.rows)
	atoms := len(a.atoms) + len(b.atoms)
	// An atom of the result ends where an atom of an operand ends.
	bound := min(chunks, atoms)
	if dst == nil && o.y == 0 && bound > scratchMin {
		// Of AND and ANDNOT little may be left: it is copied from memory that is kept.
		kept := scratchPool.Get().(*[]uint64)
		defer scratchPool.Put(kept)
		*kept = slices.Grow((*kept)[:0], bound)[:bound]
		return &Bitmap{rows: a.rows, atoms: slices.Clone(combineInto(*kept, o, a, b, chunks))}
	}
	return &Bitmap{rows: a.rows, atoms: combineInto(room(dst, bound), o, a, b, chunks)}
}

// scratchMin is the size of a result from which on memory is kept for it.
const scratchMin = 64

var scratchPool = sync.Pool{New: func() any { return new([]uint64) }}

func combineInto(out []uint64, o op, a, b *Bitmap, chunks int) []uint64 {
	if 4*(len(a.atoms)+len(b.atoms)) < chunks || min(len(a.atoms), len(b.atoms)) > chunks-chunks/16 {
		return out[:combineRuns(out, o, a, b)]
	}
	if x, y, not := drivers(o, a, b); o.y == 0 && 8*len(x.atoms) < 7*chunks {
		return out[:combineDriven(out, x.atoms, y.atoms, not, chunks)]
	}
	return out[:combineWindows(out, o, a.atoms, b.atoms, chunks)]
}

// drivers says how AND and ANDNOT are done by combineDriven: x AND (y XOR not).
func drivers(o op, a, b *Bitmap) (x, y *Bitmap, not uint64) {
	if o.x != 0 {
		return a, b, allOnes
	}
	if len(a.atoms) > len(b.atoms) {
		a, b = b, a
	}
	return a, b, 0
}

// combineRuns writes x op y to out and returns how many atoms it has. While one
// operand is in a fill, the result is 0, 1, the other operand or its inverse for as
// long as the fill lasts; only literals that meet are combined word by word.
func combineRuns(out []uint64, o op, a, b *Bitmap) int {
	x, y := a.atoms, b.atoms
	var i, j, k int
	at := 0           // chunks that are done, where fills begin
	var xn, yn uint64 // chunks that are left of the fill at x[i-1], y[j-1]
	var xv, yv uint64 // and the word that each of them stands for
	for {
		if xn|yn == 0 {
			m := min(len(x)-i, len(y)-j)
			xs, ys := x[i:i+m], y[j:j+m]
			n := 0
			for ; n < len(xs) && n < len(ys); n++ {
				a, b := xs[n], ys[n]
				if (a|b)&fillFlag != 0 {
					break
				}
				r := o.apply(a, b)
				if r-1 < allOnes-1 {
					out[k] = r
					k++
				} else {
					k = putFill(out, k, zeroRun|r&fillOnes, 1)
				}
			}
			i, j, at = i+n, j+n, at+n
			if i == len(x) || j == len(y) {
				return k
			}
			// A fill of one operand at least.
			if a := x[i]; a&fillFlag != 0 {
				xn, xv, i = a&runMask, fillWord(a), i+1
			}
			if b := y[j]; b&fillFlag != 0 {
				yn, yv, j = b&runMask, fillWord(b), j+1
			}
		} else if xn == 0 {
			if i == len(x) {
				return k
			}
			if a := x[i]; a&fillFlag != 0 {
				xn, xv, i = a&runMask, fillWord(a), i+1
			}
		} else if yn == 0 {
			if j == len(y) {
				return k
			}
			if b := y[j]; b&fillFlag != 0 {
				yn, yv, j = b&runMask, fillWord(b), j+1
			}
		}
		// The longer fill decides about the other operand.
		if xn >= yn {
			c := xv & o.x
			f := (o.y ^ xv&o.xy) & allOnes
			j, k, yn, yv = consume(out, k, b, j, yn, yv, at, xn, f, c)
			at += int(xn)
			xn = 0
		} else {
			c := yv & o.y
			f := (o.x ^ yv&o.xy) & allOnes
			i, k, xn, xv = consume(out, k, a, i, xn, xv, at, yn, f, c)
			at += int(yn)
			yn = 0
		}
	}
}

// fillWord is the chunk that a fill repeats.
func fillWord(a uint64) uint64 { return -(a >> 62 & 1) & allOnes }

// putFill appends n chunks of one kind to the k atoms of out.
func putFill(out []uint64, k int, kind, n uint64) int {
	if k > 0 && out[k-1]&oneRun == kind {
		out[k-1] += n
		return k
	}
	out[k] = kind | n
	return k + 1
}

// consume takes n chunks of an operand, v: first those that are left of its fill
// before atom i (left chunks of word), then atoms from i, and appends v&f ^ c to out,
// where f and c are 0 or allOnes. The first of them is chunk at. It returns the operand's next atom, the atoms of
// out, and what is then left of the operand's fill.
func consume(out []uint64, k int, b *Bitmap, i int, left, word uint64, at int, n, f, c uint64) (int, int, uint64, uint64) {
	v := b.atoms
	if f == 0 {
		k = putFill(out, k, zeroRun|c&fillOnes, n)
		if left >= n {
			return i, k, left - n, word
		}
		n -= left
		if n > 2*dirEvery && b.dir != nil {
			end := at + int(left+n)
			if j, start := b.skip(i, end); j > i {
				i, n = j, uint64(end-start)
			}
		}
		for n > 0 {
			a := v[i]
			i++
			m := atomChunks(a)
			if m > n {
				return i, k, m - n, fillWord(a)
			}
			n -= m
		}
		return i, k, 0, 0
	}
	if left > 0 {
		m := min(left, n)
		k = putFill(out, k, zeroRun|(word^c)&fillOnes, m)
		if left -= m; left > 0 {
			return i, k, left, word
		}
		if n -= m; n == 0 {
			return i, k, 0, 0
		}
	}
	// The first atom may continue the fill before it. The next ones cannot: the
	// operand's neighbours differ, and inverting them keeps that.
	a := v[i]
	if a&fillFlag != 0 {
		m := min(a&runMask, n)
		k = putFill(out, k, a&oneRun^c&fillOnes, m)
		i++
		if n -= m; m < a&runMask {
			return i, k, a&runMask - m, fillWord(a)
		}
	}
	for n > 0 {
		a := v[i]
		i++
		m := atomChunks(a)
		if m > n {
			out[k] = a&oneRun ^ c&fillOnes | n
			return i, k + 1, m - n, fillWord(a)
		}
		// All of a literal is inverted, of a fill its value only.
		fill := uint64(int64(a) >> 63)
		out[k] = a ^ c&(^fill|fillOnes)
		k++
		n -= m
	}
	return i, k, 0, 0
}
