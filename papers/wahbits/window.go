package wahbits

import "sync"

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

// zeros is how many chunks of zeros surely come next; they are in left then.
func (c *cursor) zeros() uint64 {
	if c.left == 0 && len(c.atoms) > 0 && c.atoms[0]&oneRun == zeroRun {
		c.left, c.word = c.atoms[0]&runMask, 0
		c.atoms = c.atoms[1:]
	}
	if c.word != 0 {
		return 0
	}
	return c.left
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
blocks:
	for p < uint64(len(buf)) && len(atoms)-i >= 8 {
		s := (*[8]uint64)(atoms[i:])
		// Dense vectors are long rows of literals.
		if (s[0]|s[1]|s[2]|s[3]|s[4]|s[5]|s[6]|s[7])&fillFlag == 0 && uint64(len(buf))-p >= 8 {
			d := (*[8]uint64)(buf[p:])
			d[0] |= s[0]
			d[1] |= s[1]
			d[2] |= s[2]
			d[3] |= s[3]
			d[4] |= s[4]
			d[5] |= s[5]
			d[6] |= s[6]
			d[7] |= s[7]
			i, p = i+8, p+8
			continue
		}
		for j, a := range s {
			if p >= uint64(len(buf)) {
				i += j
				break blocks
			}
			if a >= oneRun {
				setWords(buf[p:min(p+a&runMask, uint64(len(buf)))])
				p += a & runMask
				continue
			}
			fill := uint64(int64(a) >> 63)
			buf[p] |= a &^ fill
			p += (a-fillFlag-1)&fill + 1
		}
		i += 8
	}
	for p < uint64(len(buf)) {
		a := atoms[i]
		i++
		if a&fillFlag == 0 {
			buf[p] |= a
			p++
			continue
		}
		if a&fillOnes != 0 {
			setWords(buf[p:min(p+a&runMask, uint64(len(buf)))])
		}
		p += a & runMask
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
		r := w.x[:n]
		p, q := xs.words(r), ys.words(w.y[:n])
		for i := range r {
			r[i] = o.apply(p[i], q[i])
		}
		k = compress(out, k, r)
	}
	return k
}

// combineDriven writes x AND (y XOR not) for an x of few atoms: y goes through
// windows, but the result is written atom by atom of x.
func combineDriven(out []uint64, x, y []uint64, not uint64, chunks int) int {
	w := windowPool.Get().(*windows)
	defer windowPool.Put(w)
	ys := cursor{atoms: y}
	k, i := 0, 0
	var atom, prev uint64 // as in compress
	var left uint64       // of the fill before x[i]
	ones := false         // what that fill is of
	for chunks > 0 {
		n := uint64(min(chunks, windowChunks))
		chunks -= int(n)
		if left >= n && !ones {
			left -= n
			ys.pass(n)
			continue
		}
		buf := ys.words(w.y[:n])
		p := min(left, n)
		if left -= p; p > 0 && ones {
			k, atom, prev = compressFlipped(out, k, w.x[:p], buf, not)
		}
		for p < n {
			a := x[i]
			i++
			if a >= oneRun {
				m := min(a&runMask, n-p)
				k, atom, prev = compressFlipped(out, k, w.x[:m], buf[p:], not)
				left, ones = a&runMask-m, true
				p += m
				continue
			}
			fill := uint64(int64(a) >> 63)
			r := a & (buf[p] ^ not) &^ fill
			length := (a-fillFlag-1)&fill + 1
			hom := uint64(int64(homogeneous(r)) >> 63)
			kind := (zeroRun | r&fillOnes) & hom
			differ := kind ^ prev
			more := hom & 1 &^ (differ>>63 | differ>>62)
			fresh := r&^hom | kind | length&hom
			atom = fresh + (atom+length-fresh)&-more
			out[k-int(more)] = atom
			k += 1 - int(more)
			prev = kind
			p += length
		}
		if p > n {
			left, ones = p-n, false
		}
	}
	return k
}

// compressFlipped appends the first len(spare) chunks, inverted where not says so. It
// returns the latest atom and what compress calls prev, too.
func compressFlipped(out []uint64, k int, spare, words []uint64, not uint64) (int, uint64, uint64) {
	for i := range spare {
		spare[i] = words[i] ^ not
	}
	k = compress(out, k, spare)
	atom := out[k-1]
	return k, atom, atom & oneRun & uint64(int64(atom)>>63)
}

// words returns the next len(buf) chunks, in buf or, where they are literals, where
// they are. They must not be written.
func (c *cursor) words(buf []uint64) []uint64 {
	n := len(buf)
	if c.left == 0 && len(c.atoms) >= n && literals(c.atoms[:n]) {
		w := c.atoms[:n]
		c.atoms = c.atoms[n:]
		return w
	}
	clear(buf)
	c.or(buf)
	return buf
}

// literals reports whether all atoms are.
func literals(atoms []uint64) bool {
	for len(atoms) >= 8 {
		s := (*[8]uint64)(atoms)
		if (s[0]|s[1]|s[2]|s[3]|s[4]|s[5]|s[6]|s[7])&fillFlag != 0 {
			return false
		}
		atoms = atoms[8:]
	}
	for _, a := range atoms {
		if a&fillFlag != 0 {
			return false
		}
	}
	return true
}

// pass skips n chunks.
func (c *cursor) pass(n uint64) {
	m := min(c.left, n)
	c.left -= m
	for n -= m; n > 0; n -= m {
		a := c.atoms[0]
		c.atoms = c.atoms[1:]
		if m = atomChunks(a); m > n {
			c.left, c.word = m-n, fillWord(a)
			return
		}
	}
}

// compress appends the chunks to the k atoms of out, in which there is room for the
// result. Eight words at a time are looked at for a long fill of zeros, and for
// literals only; where both alternate there is no branch that depends on the chunks.
func compress(out []uint64, k int, words []uint64) int {
	var prev uint64 // of the latest atom: its flag and value if it is a fill, else 0
	var atom uint64
	if k > 0 {
		atom = out[k-1]
		prev = atom & oneRun & uint64(int64(atom)>>63)
	}
	for len(words) >= 8 {
		s := (*[8]uint64)(words)
		words = words[8:]
		if prev == zeroRun && s[0]|s[1]|s[2]|s[3]|s[4]|s[5]|s[6]|s[7] == 0 {
			atom += 8
			out[k-1] = atom
			continue
		}
		// Bit 63 of homogeneous(w) says whether w is no literal.
		if (homogeneous(s[0])|homogeneous(s[1])|homogeneous(s[2])|homogeneous(s[3])|
			homogeneous(s[4])|homogeneous(s[5])|homogeneous(s[6])|homogeneous(s[7]))&fillFlag == 0 && k+8 <= len(out) {
			*(*[8]uint64)(out[k:]) = *s
			k += 8
			atom, prev = s[7], 0
			continue
		}
		for _, w := range s {
			hom := uint64(int64(homogeneous(w)) >> 63) // all ones: a fill's chunk
			kind := (zeroRun | w&fillOnes) & hom
			differ := kind ^ prev
			more := hom & 1 &^ (differ>>63 | differ>>62) // 1: the latest fill becomes longer
			fresh := w&^hom | kind | hom&1
			atom = fresh + (atom+1-fresh)&-more
			out[k-int(more)] = atom
			k += 1 - int(more)
			prev = kind
		}
	}
	for _, w := range words {
		if homogeneous(w)&fillFlag == 0 {
			out[k] = w
			k++
		} else {
			k = putFill(out, k, zeroRun|w&fillOnes, 1)
		}
	}
	return k
}

// homogeneous has bit 63 set if a chunk is all zeros, where w-1 has it, or all ones,
// where w+1 has it.
func homogeneous(w uint64) uint64 { return (w - 1) | (w + 1) }
