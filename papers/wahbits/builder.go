package wahbits

import "fmt"

// Builder makes a bitmap in one pass, rows in ascending order. The zero value is
// ready for use, and is again after Finish.
type Builder struct {
	atoms []uint64
	rows  int    // complete chunks and what is in chunk
	chunk uint64 // the rows%63 latest rows
}

// Len is the number of rows so far.
func (b *Builder) Len() int { return b.rows }

// AppendBit adds a row.
func (b *Builder) AppendBit(set bool) {
	if set {
		b.chunk |= 1 << (b.rows % chunkBits)
	}
	if b.rows++; b.rows%chunkBits == 0 {
		b.flush()
	}
}

// AppendRun adds n rows, all set or none.
func (b *Builder) AppendRun(set bool, n int) {
	if n < 0 || n > rowsMax-b.rows {
		panic(fmt.Sprintf("BUG: %d rows after %d", n, b.rows))
	}
	if used := b.rows % chunkBits; used != 0 {
		part := min(n, chunkBits-used)
		if set {
			b.chunk |= (1<<part - 1) << used
		}
		n -= part
		if b.rows += part; b.rows%chunkBits != 0 {
			return
		}
		b.flush()
	}
	if whole := n / chunkBits; whole > 0 {
		kind := zeroRun
		if set {
			kind = oneRun
		}
		b.atoms = appendFill(b.atoms, kind, uint64(whole))
	}
	b.rows += n
	if rest := n % chunkBits; rest > 0 && set {
		b.chunk = 1<<rest - 1
	}
}

// Add sets the given row, which is not before Len; the rows between are not set.
func (b *Builder) Add(row int) {
	b.AppendRun(false, row-b.rows)
	b.AppendBit(true)
}

// AppendDense adds n rows: bit i&63 of words[i>>6]. Words past the slice are 0, as
// of vector.Column's nulls.
func (b *Builder) AppendDense(words []uint64, n int) {
	if n < 0 || n > rowsMax-b.rows {
		panic(fmt.Sprintf("BUG: %d rows after %d", n, b.rows))
	}
	for i := 0; i < n; {
		if i&63 == 0 && i>>6 >= len(words) {
			b.AppendRun(false, n-i)
			return
		}
		used := b.rows % chunkBits
		take := min(n-i, chunkBits-used)
		b.chunk |= denseBits(words, i, take) << used
		i += take
		if b.rows += take; b.rows%chunkBits == 0 {
			b.flush()
		}
	}
}

// denseBits are n bits, 1 to 63, of words from bit i.
func denseBits(words []uint64, i, n int) uint64 {
	var w uint64
	if j := i >> 6; j < len(words) {
		w = words[j] >> (i & 63)
		if i&63 != 0 && j+1 < len(words) {
			w |= words[j+1] << (64 - i&63)
		}
	}
	return w & (1<<n - 1)
}

// flush writes the chunk, which is complete.
func (b *Builder) flush() {
	b.atoms = appendChunk(b.atoms, b.chunk)
	b.chunk = 0
}

// appendChunk appends a chunk's atom, or makes the fill before it longer.
func appendChunk(atoms []uint64, w uint64) []uint64 {
	if w-1 < allOnes-1 {
		return append(atoms, w)
	}
	return appendFill(atoms, zeroRun|w&fillOnes, 1)
}

// appendFill appends n chunks of one kind, zeroRun or oneRun.
func appendFill(atoms []uint64, kind, n uint64) []uint64 {
	if k := len(atoms); k > 0 && atoms[k-1]&oneRun == kind {
		atoms[k-1] += n
		return atoms
	}
	return append(atoms, kind|n)
}

// close writes the last chunk and returns the atoms.
func (b *Builder) close() []uint64 {
	if b.rows%chunkBits != 0 {
		b.flush()
	}
	return b.atoms
}

// Finish returns the bitmap of all rows so far, stored in memory that alloc gives,
// nil where alloc gives none, and makes the builder ready for another one.
func (b *Builder) Finish(alloc Alloc) *Bitmap {
	m := (&Bitmap{rows: b.rows, atoms: b.close()}).Store(alloc)
	*b = Builder{atoms: b.atoms[:0]}
	return m
}

// fromDense makes a bitmap of rows bits of words, as AppendDense reads them.
func fromDense(words []uint64, rows int) *Bitmap {
	var b Builder
	b.AppendDense(words, rows)
	return &Bitmap{rows: rows, atoms: b.close()}
}
