package wahbits

import (
	"sync"
	"sync/atomic"
)

// Decompressed vectors are chunks as they are, one in a word, bit 63 zero: so all
// vectors of a query are aligned word by word. These are the references of the
// device's kernels. A loop that says "in parallel" runs there as one thread a step;
// here the outermost one is shared among goroutines.

// decompression is Algorithm 1 of the papers: it decompresses the columns of a
// query, each on its own.
func decompression(cols []*Bitmap, workers int) [][]uint64 {
	out := make([][]uint64, len(cols))
	parallel(workers, len(cols), func(c int) {
		out[c] = Decomp(cols[c].atoms, chunksOf(cols[c].rows))
	})
	return out
}

// Decomp is Algorithm 2 (journal version): it decompresses a vector, dsize words
// long, in steps that are parallel or scans.
//
// The papers give 0x3FFFFFFFFFFFFFFF as the word of a fill of ones, and "63 ones" in
// their words: 63 ones it is.
func Decomp(cdata []uint64, dsize int) []uint64 {
	data := make([]uint64, dsize)
	if dsize == 0 {
		return data
	}
	// Lines 2 to 8: how many words each atom stands for.
	points := make([]int, len(cdata))
	for i, a := range cdata { // in parallel
		if a&fillFlag == 0 {
			points[i] = 1
		} else {
			points[i] = int(a & runMask)
		}
	}
	exclusiveScan(points) // line 9: StartingPoints, in the place of DecompSizes
	// Lines 10 to 13: a one where an atom ends. The first atom's start is no end.
	index := make([]int, dsize)
	for _, p := range points { // in parallel
		if p > 0 {
			index[p-1] = 1
		}
	}
	exclusiveScan(index)      // line 14: WordIndex, in the place of EndPoints
	for i, w := range index { // lines 15 to 26, in parallel
		switch a := cdata[w]; {
		case a&fillFlag == 0:
			data[i] = a
		case a&fillOnes == 0:
			data[i] = 0
		default:
			data[i] = allOnes
		}
	}
	return data
}

// exclusiveScan replaces each element by the sum of those before it.
func exclusiveScan(v []int) {
	sum := 0
	for i, x := range v {
		v[i] = sum
		sum += x
	}
}

// FromChunks compresses a decompressed vector.
func FromChunks(words []uint64, rows int) *Bitmap {
	out := make([]uint64, len(words))
	k := compress(out, 0, words)
	return &Bitmap{rows: rows, atoms: out[:k]}
}

// parallel calls f(0) to f(n-1) from at most that many goroutines.
func parallel(workers, n int, f func(i int)) {
	if workers = min(workers, n); workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}
