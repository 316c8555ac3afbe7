package wahbits

import (
	"fmt"
	"math/bits"
)

// OrAll returns the rows that any of the bitmaps has; there is one at least. dst is
// as for And. Where the bitmaps have few atoms for their length, pairs are combined
// until one is left; else all of them go through a window of words at a time, which
// is compressed once.
func OrAll(dst *Bitmap, bins []*Bitmap) *Bitmap {
	if len(bins) == 0 {
		panic("BUG: union of no bitmaps")
	}
	rows, atoms := bins[0].rows, 0
	for _, b := range bins {
		if b.rows != rows {
			panic(fmt.Sprintf("BUG: bitmaps of %d and %d rows", rows, b.rows))
		}
		atoms += len(b.atoms)
	}
	switch len(bins) {
	case 1:
		out := room(dst, atoms)
		copy(out, bins[0].atoms)
		return &Bitmap{rows: rows, atoms: out}
	case 2:
		return Or(dst, bins[0], bins[1])
	}
	chunks := chunksOf(rows)
	if runsCost*atoms*bits.Len(uint(len(bins)-1)) < chunks+atoms {
		return orPairs(dst, bins)
	}
	return orWindows(dst, bins, chunks, atoms)
}

// runsCost is what an atom costs in combineRuns where fills are frequent, by what it
// costs in a window.
const runsCost = 4

// orPairs combines neighbours, then neighbours of these, and so on.
func orPairs(dst *Bitmap, bins []*Bitmap) *Bitmap {
	level := make([]*Bitmap, len(bins))
	copy(level, bins)
	for len(level) > 2 {
		n := 0
		for i := 0; i < len(level); i += 2 {
			if i+1 < len(level) {
				level[n] = Or(nil, level[i], level[i+1])
			} else {
				level[n] = level[i]
			}
			n++
		}
		level = level[:n]
	}
	return Or(dst, level[0], level[1])
}

func orWindows(dst *Bitmap, bins []*Bitmap, chunks, atoms int) *Bitmap {
	out := room(dst, min(chunks, atoms))
	w := windowPool.Get().(*windows)
	defer windowPool.Put(w)
	cursors := make([]cursor, len(bins))
	for i, b := range bins {
		cursors[i].atoms = b.atoms
	}
	k := 0
	for done := 0; done < chunks; {
		// What no bin has rows in is skipped, however long it is.
		skip := uint64(chunks - done)
		for i := range cursors {
			skip = min(skip, cursors[i].zeros())
		}
		if skip > 0 {
			for i := range cursors {
				cursors[i].left -= skip
			}
			k = putFill(out, k, zeroRun, skip)
			done += int(skip)
			continue
		}
		n := min(chunks-done, windowChunks)
		done += n
		buf := w.x[:n]
		clear(buf)
		for i := range cursors {
			if c := &cursors[i]; c.zeros() >= uint64(n) {
				c.left -= uint64(n)
			} else {
				c.or(buf)
			}
		}
		k = compress(out, k, buf)
	}
	return &Bitmap{rows: bins[0].rows, atoms: out[:k]}
}
