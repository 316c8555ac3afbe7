package wahbits

import (
	"fmt"
	"math/bits"
	"sort"
)

// The parts of an atom.
const (
	chunkBits        = 63           // bits of a literal: rows of a chunk
	fillFlag  uint64 = 1 << 63      // set in fills
	fillOnes  uint64 = 1 << 62      // in a fill: its bits are ones
	runMask   uint64 = fillOnes - 1 // in a fill: its chunks
	allOnes   uint64 = fillFlag - 1 // the literal bits of a chunk of ones
	zeroRun          = fillFlag     // a fill of no zeros yet: add the chunks
	oneRun           = fillFlag | fillOnes
	chunksMax        = 1<<32 - 1      // what a directory entry can say
	rowsMax          = chunksMax * 63 // rows of a bitmap
)

// The block of a stored bitmap.
const (
	blockHeader = 2
	dirEvery    = 32 // atoms between two entries of the directory
)

// Alloc returns memory of the given number of 64-bit words, zeroed or not, or nil
// where there is none left. nil as an Alloc is Go's heap.
type Alloc func(words int) []uint64

func (alloc Alloc) words(n int) []uint64 {
	if alloc == nil {
		return make([]uint64, n)
	}
	if w := alloc(n); w != nil {
		return w[:n:n]
	}
	return nil
}

// Bitmap is an immutable WAH-compressed bit vector, one bit a row; safe for any
// number of readers. A stored one (Builder.Finish, Bitmap.Store, ParseWords) lives
// where Alloc put it and must not be used once that memory is given back. The
// result of an operation lives on Go's heap.
type Bitmap struct {
	rows  int
	atoms []uint64
	dir   []uint64 // nil: not stored
	block []uint64 // nil: not stored
}

// chunksOf is how many chunks hold that many rows.
func chunksOf(rows int) int {
	return rows/chunkBits + int(uint(rows%chunkBits+chunkBits-1)/chunkBits)
}

// Len is the number of rows, set or not.
func (b *Bitmap) Len() int { return b.rows }

// Bytes is the size of the atoms and, of a stored bitmap, of header and directory.
func (b *Bitmap) Bytes() int {
	if b.block != nil {
		return 8 * len(b.block)
	}
	return 8 * len(b.atoms)
}

// Atoms are the compressed words. They must not be written.
func (b *Bitmap) Atoms() []uint64 { return b.atoms }

// Words is the block of a stored bitmap as the package comment draws it, nil of one
// that is not stored. It must not be written.
func (b *Bitmap) Words() []uint64 { return b.block }

// Equal reports whether both hold the same bits.
func (b *Bitmap) Equal(c *Bitmap) bool {
	if b.rows != c.rows || len(b.atoms) != len(c.atoms) {
		return false
	}
	for i, a := range b.atoms {
		if a != c.atoms[i] {
			return false
		}
	}
	return true
}

// Empty reports whether no bit is set.
func (b *Bitmap) Empty() bool {
	return len(b.atoms) == 0 || len(b.atoms) == 1 && b.atoms[0]&oneRun == zeroRun
}

// Count is the number of bits that are set.
func (b *Bitmap) Count() int {
	n := 0
	for _, a := range b.atoms {
		switch {
		case a&fillFlag == 0:
			n += bits.OnesCount64(a)
		case a&fillOnes != 0:
			n += chunkBits * int(a&runMask)
		}
	}
	return n
}

// Get reports whether the row's bit is set.
func (b *Bitmap) Get(row int) bool {
	if uint(row) >= uint(b.rows) {
		panic(fmt.Sprintf("BUG: row %d of a bitmap of %d", row, b.rows))
	}
	c := row / chunkBits
	i, start := b.seek(c)
	for {
		a := b.atoms[i]
		if a&fillFlag == 0 {
			if start == c {
				return a>>(row%chunkBits)&1 != 0
			}
			start++
		} else if start += int(a & runMask); start > c {
			return a&fillOnes != 0
		}
		i++
	}
}

// Full is a bitmap of that many rows, all of them set or none.
func Full(rows int, set bool) *Bitmap {
	var b Builder
	b.AppendRun(set, rows)
	return &Bitmap{rows: rows, atoms: b.close()}
}

// blockWords is the size of the block of that many atoms.
func blockWords(atoms int) int { return blockHeader + atoms + dirWords(atoms) }

func dirWords(atoms int) int { return (atoms + 2*dirEvery - 1) / (2 * dirEvery) }

// Store returns a copy with a directory, in memory that alloc gives; nil where
// alloc gives none.
func (b *Bitmap) Store(alloc Alloc) *Bitmap {
	block := alloc.words(blockWords(len(b.atoms)))
	if block == nil {
		return nil
	}
	return storeAt(block, b.rows, b.atoms)
}

// storeAt writes a bitmap's block.
func storeAt(block []uint64, rows int, atoms []uint64) *Bitmap {
	block[0], block[1] = uint64(rows), uint64(len(atoms))
	copy(block[blockHeader:], atoms)
	b := blockAt(block)
	clear(b.dir)
	chunk := uint64(0)
	for i, a := range atoms {
		if i%dirEvery == 0 {
			j := i / dirEvery
			b.dir[j>>1] |= chunk << (32 * (j & 1))
		}
		chunk += atomChunks(a)
	}
	return b
}

// blockAt is the bitmap whose block this is.
func blockAt(block []uint64) *Bitmap {
	end := blockHeader + int(block[1])
	return &Bitmap{rows: int(block[0]), atoms: block[blockHeader:end:end], dir: block[end:], block: block}
}

// atomChunks is how many chunks the atom stands for, without a branch.
func atomChunks(a uint64) uint64 {
	fill := uint64(int64(a) >> 63)
	return a&runMask&fill | 1&^fill
}

// dirStart is the first chunk of atom j*dirEvery.
func (b *Bitmap) dirStart(j int) int { return int(uint32(b.dir[j>>1] >> (32 * (j & 1)))) }

// seek returns an atom that begins at the chunk or before it, and where it begins:
// with a directory at most dirEvery-1 atoms before the chunk's own, else the first.
func (b *Bitmap) seek(chunk int) (atom, start int) {
	if b.dir == nil || chunk == 0 {
		return 0, 0
	}
	n := (len(b.atoms) + dirEvery - 1) / dirEvery
	j := sort.Search(n, func(j int) bool { return b.dirStart(j) > chunk }) - 1
	return j * dirEvery, b.dirStart(j)
}

// skip returns an atom after i, where the directory has one, that begins at the chunk
// or before it, and where it begins; i itself if there is none. The directory is
// searched in steps that double, since the chunk is often near.
func (b *Bitmap) skip(i, chunk int) (atom, start int) {
	n := (len(b.atoms) + dirEvery - 1) / dirEvery
	lo, step := i/dirEvery, 1 // entry lo is not past the chunk
	for lo+step < n && b.dirStart(lo+step) <= chunk {
		lo += step
		step *= 2
	}
	hi := min(lo+step, n) // entry hi is
	lo += sort.Search(hi-lo-1, func(j int) bool { return b.dirStart(lo+1+j) > chunk })
	if lo*dirEvery <= i {
		return i, 0
	}
	return lo * dirEvery, b.dirStart(lo)
}

// ParseWords is the inverse of Words: the bitmap whose block begins words, and how
// many words it has. It checks everything, and keeps words.
func ParseWords(words []uint64) (*Bitmap, int, error) {
	if len(words) < blockHeader {
		return nil, 0, fmt.Errorf("bitmap of %d words has no header", len(words))
	}
	rows, atoms := words[0], words[1]
	if rows > rowsMax || atoms > uint64(len(words)-blockHeader) || blockWords(int(atoms)) > len(words) {
		return nil, 0, fmt.Errorf("bitmap of %d rows and %d atoms in %d words", rows, atoms, len(words))
	}
	size := blockWords(int(atoms))
	b := blockAt(words[:size:size])
	if err := b.check(); err != nil {
		return nil, 0, err
	}
	return b, size, nil
}

// check looks at every atom and every entry of the directory.
func (b *Bitmap) check() error {
	if err := CheckAtoms(b.rows, b.atoms); err != nil {
		return fmt.Errorf("bitmap: %w", err)
	}
	chunk := uint64(0)
	for i, a := range b.atoms {
		if i%dirEvery == 0 && uint64(b.dirStart(i/dirEvery)) != chunk {
			return fmt.Errorf("bitmap: directory says that atom %d begins at chunk %d, not %d", i, b.dirStart(i/dirEvery), chunk)
		}
		chunk += atomChunks(a)
	}
	if entries := (len(b.atoms) + dirEvery - 1) / dirEvery; entries&1 != 0 && b.dir[entries>>1]>>32 != 0 {
		return fmt.Errorf("bitmap: more in the directory than its %d entries", entries)
	}
	return nil
}

// CheckAtoms says why atoms are not those of a bitmap of so many rows.
func CheckAtoms(rows int, atoms []uint64) error {
	chunks, chunk := uint64(chunksOf(rows)), uint64(0)
	before := uint64(0) // 0: no fill
	for i, a := range atoms {
		n := atomChunks(a)
		if n == 0 || n > chunks-chunk {
			return fmt.Errorf("atom %d of %d chunks at chunk %d of %d", i, n, chunk, chunks)
		}
		kind := a & oneRun
		if a&fillFlag == 0 {
			if kind = 0; a == 0 || a == allOnes {
				return fmt.Errorf("atom %d is a literal that should be a fill", i)
			}
		} else if kind == before {
			return fmt.Errorf("atoms %d and %d should be one fill", i-1, i)
		}
		before = kind
		chunk += n
	}
	if chunk != chunks {
		return fmt.Errorf("atoms of %d chunks for %d rows", chunk, rows)
	}
	if pad := rows % chunkBits; pad != 0 {
		last := atoms[len(atoms)-1]
		if last&fillFlag == 0 && last>>pad != 0 || last&oneRun == oneRun {
			return fmt.Errorf("bits past row %d", rows)
		}
	}
	return nil
}
