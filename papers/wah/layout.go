package wah

import (
	"fmt"

	"pgaccel/papers/wahbits"
)

// The parts of an atom, as wahbits draws it.
const (
	chunkBits        = 63
	fillFlag  uint64 = 1 << 63
	fillOnes  uint64 = 1 << 62
	runMask   uint64 = fillOnes - 1
	allOnes   uint64 = fillFlag - 1
)

// A place is what kernels/wah_fused.cuh draws: number of the first atom, and atoms,
// chunks of the first and chunks of the last atom in the tile, less one each.
const (
	placeFirst  = 30
	placeAtoms  = 20
	placeHead   = 10
	placeTail   = 0
	placeOfZero = uint64(0)              // a tile in a fill of zeros
	placeOfOne  = uint64(1) << placeHead // a tile in a fill of ones
)

// Limits of what a device takes.
const (
	minTile   = 64
	maxTile   = 1024         // what a place's fields can say
	maxAtoms  = 1<<34 - 1    // of all bins, likewise
	maxChunks = 1<<32 - 2048 // of a bin: StartingPoints have 32 bits
)

// layout is what lies in device memory for some bins.
type layout struct {
	rows   int
	chunks int
	tile   int      // chunks
	tiles  int      // of the result
	atoms  []uint64 // of all bins in turn, and one word more
	begins []uint64 // of each bin in atoms, one more than bins
	places []uint64 // one for each bin, tile after tile
}

// newLayout lays out bins of so many rows each. Atoms that are not what wahbits writes
// are an error: kernels trust them.
func newLayout(rows int, bins [][]uint64, tile int) (*layout, error) {
	if tile < minTile || tile > maxTile || tile&(tile-1) != 0 {
		return nil, fmt.Errorf("tile of %d chunks: powers of two from %d to %d are possible", tile, minTile, maxTile)
	}
	l := &layout{rows: rows, chunks: rows/chunkBits + (rows%chunkBits+chunkBits-1)/chunkBits, tile: tile}
	if rows < 0 || l.chunks > maxChunks {
		return nil, fmt.Errorf("%d rows: there may be %d at most", rows, maxChunks*chunkBits)
	}
	total := 0
	for i, atoms := range bins {
		if err := wahbits.CheckAtoms(rows, atoms); err != nil {
			return nil, fmt.Errorf("bin %d: %w", i, err)
		}
		total += len(atoms)
	}
	if total > maxAtoms {
		return nil, fmt.Errorf("%d atoms: there may be %d at most", total, maxAtoms)
	}
	l.tiles = (l.chunks + tile - 1) / tile
	l.atoms = make([]uint64, 0, total+1)
	l.places = make([]uint64, l.tiles*len(bins))
	for i, atoms := range bins {
		l.begins = append(l.begins, uint64(len(l.atoms)))
		l.place(atoms, l.places[min(i, len(l.places)):], len(bins))
		l.atoms = append(l.atoms, atoms...)
	}
	l.begins = append(l.begins, uint64(len(l.atoms)))
	// A tile whose only atom is a literal has the word after it as a second one.
	l.atoms = append(l.atoms, 0)
	return l, nil
}

func atomChunks(a uint64) uint64 {
	if a&fillFlag == 0 {
		return 1
	}
	return a & runMask
}

// place writes a bin's places, every stride-th of places. Its atoms will follow l.atoms.
func (l *layout) place(atoms, places []uint64, stride int) {
	i, at := 0, 0 // an atom and its first chunk
	for t := range l.tiles {
		start := t * l.tile
		end := min(start+l.tile, l.chunks)
		first, head := i, min(at+int(atomChunks(atoms[i])), end)-start
		for at+int(atomChunks(atoms[i])) < end {
			at += int(atomChunks(atoms[i]))
			i++
		}
		n, tail := i-first+1, start+l.tile-max(at, start)
		p := placeOfZero
		switch a := atoms[i]; {
		case n == 1 && a&fillFlag == 0: // the last chunk, alone in its tile
			n, tail = 2, l.tile-1
			fallthrough
		case n > 1:
			p = uint64(len(l.atoms)+first)<<placeFirst | uint64(n-1)<<placeAtoms | uint64(head-1)<<placeHead | uint64(tail-1)<<placeTail
		case a&fillOnes != 0:
			p = placeOfOne
		}
		places[t*stride] = p
		if at+int(atomChunks(atoms[i])) == end {
			at = end
			i++
		}
	}
}
