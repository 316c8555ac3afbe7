package wahbits

import "fmt"

// Strategy is a way to answer a range query: the union of bins.
type Strategy int

// The strategies, by the papers' names. The first two work on compressed vectors,
// the next four decompress them first and reduce the words, as a device does. Fused
// is ours: all bins go through a window of words at a time, see OrAll.
const (
	Iterative Strategy = iota
	ColumnReduction
	COA
	ROA
	Hybrid
	IdealHybrid
	Fused
	strategies
)

// Strategies are all of them.
func Strategies() []Strategy {
	var all []Strategy
	for s := range strategies {
		all = append(all, s)
	}
	return all
}

// String is the strategy's name.
func (s Strategy) String() string {
	names := [...]string{"iterative", "column-oriented reduction", "COA", "ROA", "hybrid", "ideal hybrid", "fused"}
	if uint(s) < uint(len(names)) {
		return names[s]
	}
	return fmt.Sprintf("Strategy(%d)", int(s))
}

// Union answers the range query on at most that many cores. The result is compressed,
// whatever the strategy. There is one bin at least.
func (s Strategy) Union(bins []*Bitmap, workers int) *Bitmap {
	rows := bins[0].rows
	switch s {
	case Iterative:
		return iterative(bins, workers)
	case ColumnReduction:
		return columnReduction(bins, workers)
	case Fused:
		return OrAll(nil, bins)
	}
	cols := decompression(bins, workers)
	switch s {
	case COA:
		return FromChunks(reduceCOA(cols, workers), rows)
	case ROA:
		return FromChunks(reduceROA(cols, workers), rows)
	case Hybrid:
		return FromChunks(reduceHybrid(cols, (len(cols)+2*blockColumns-1)/(2*blockColumns), blockRows, workers), rows)
	case IdealHybrid:
		return FromChunks(reduceIdealHybrid(cols, workers), rows)
	}
	panic(fmt.Sprintf("BUG: %v", s))
}

// iterative is the journal version's approach 1: R = A1, then R = R OR Aj. Each
// worker does so for a share of the bins, and the shares' results are combined in
// the same way.
func iterative(bins []*Bitmap, workers int) *Bitmap {
	workers = max(1, min(workers, len(bins)/2))
	shares := make([]*Bitmap, workers)
	parallel(workers, workers, func(w int) {
		shares[w] = inTurn(bins[w*len(bins)/workers : (w+1)*len(bins)/workers])
	})
	return inTurn(shares)
}

// inTurn writes each result over the one before the last.
func inTurn(bins []*Bitmap) *Bitmap {
	r := bins[0]
	var spare *Bitmap
	for i, b := range bins[1:] {
		next := Or(spare, r, b)
		if spare = nil; i > 0 {
			spare = r
		}
		r = next
	}
	return r
}

// columnReduction is approach 2: the pairs of a level are combined in parallel, level
// after level, until one is left.
func columnReduction(bins []*Bitmap, workers int) *Bitmap {
	level := append([]*Bitmap(nil), bins...)
	for m := len(level); m > 1; {
		s := (m + 1) / 2
		parallel(workers, m-s, func(c int) { level[c] = Or(nil, level[c], level[c+s]) })
		m = s
	}
	return level[0]
}

// The papers halve the number m of columns at each level, s = m/2, for m a power of
// two. Here s is rounded up, and a low-order column without a high-order partner
// goes to the next level as it is.

// columnPart is how many words of a pair of columns a goroutine takes at a time: a
// thread block has 1,024.
const columnPart = 1024

// reduceCOA is Algorithm 3, column-oriented access: level by level, whole columns are
// ORed into their low-order partners. The result is cols[0]; all columns are
// overwritten.
func reduceCOA(cols [][]uint64, workers int) []uint64 {
	n := len(cols[0])
	parts := (n + columnPart - 1) / columnPart
	for m := len(cols); m > 1; {
		s := (m + 1) / 2
		parallel(workers, (m-s)*parts, func(i int) {
			c, from := i/parts, i%parts*columnPart
			orWords(cols[c][from:min(from+columnPart, n)], cols[c+s][from:])
		})
		m = s
	}
	return cols[0]
}

func orWords(low, high []uint64) {
	high = high[:len(low)]
	for t, w := range high {
		low[t] |= w
	}
}

// reduceROA is Algorithm 4, row-oriented access: each row, that is one word of all
// columns, is reduced on its own, in shared memory. The result is cols[0], which is
// overwritten.
func reduceROA(cols [][]uint64, workers int) []uint64 {
	n := len(cols[0])
	parallel(workers, (n+columnPart-1)/columnPart, func(i int) {
		shared := make([]uint64, len(cols)) // of a thread block
		for t := i * columnPart; t < min((i+1)*columnPart, n); t++ {
			for c, col := range cols {
				shared[c] = col[t]
			}
			for m := len(cols); m > 1; {
				s := (m + 1) / 2
				for c := range m - s { // in parallel
					shared[c] |= shared[c+s]
				}
				m = s
			}
			cols[0][t] = shared[0]
		}
	})
	return cols[0]
}

// A thread block of the hybrid has k x j threads, 1,024 in all, and spans 2k columns
// and j rows.
const (
	blockColumns = 32                  // k
	blockRows    = 1024 / blockColumns // j
)

// reduceHybrid is Algorithm 5: tiles of the columns, p of them side by side, and of
// rows words are reduced in shared memory; a second round reduces the first columns
// of the tiles. The result is cols[0]; the first column of each tile is overwritten.
func reduceHybrid(cols [][]uint64, p, rows, workers int) []uint64 {
	n, m := len(cols[0]), len(cols)
	span := (m + p - 1) / p // columns of a tile
	firsts := make([][]uint64, 0, p)
	for c := 0; c < m; c += span {
		firsts = append(firsts, cols[c])
	}
	q := (n + rows - 1) / rows // tiles one below the other
	parallel(workers, q, func(rb int) {
		from, to := rb*rows, min((rb+1)*rows, n)
		for c := 0; c < m; c += span {
			reduceTile(cols[c:min(c+span, m)], from, to)
		}
	})
	if len(firsts) > 1 {
		parallel(workers, q, func(rb int) { reduceTile(firsts, rb*rows, min((rb+1)*rows, n)) })
	}
	return cols[0]
}

// reduceTile reduces words [from, to) of the columns into the first one, by way of a
// copy as of shared memory.
func reduceTile(cols [][]uint64, from, to int) {
	h := to - from
	shared := make([]uint64, len(cols)*h)
	for c, col := range cols {
		copy(shared[c*h:], col[from:to])
	}
	for m := len(cols); m > 1; {
		s := (m + 1) / 2
		for c := range m - s { // in parallel, as are the rows
			orWords(shared[c*h:(c+1)*h], shared[(c+s)*h:])
		}
		m = s
	}
	copy(cols[0][from:to], shared[:h])
}

// reduceIdealHybrid is Algorithm 6: a tile spans all columns, so that there is no
// second round; it is as high as 1,024 threads allow, each of which has two columns.
func reduceIdealHybrid(cols [][]uint64, workers int) []uint64 {
	return reduceHybrid(cols, 1, max(1, 1024/max(1, (len(cols)+1)/2)), workers)
}
