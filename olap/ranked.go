package olap

import (
	"math"
	"slices"
	"sync"
)

// histogram counts each value of each group.
type histogram struct {
	selection
	lo     int64
	domain uint64
	counts []uint32 // by group*domain + value-lo
}

func (e *histogram) grow(n int) {
	e.counts = append(e.counts, make([]uint32, n*int(e.domain)-len(e.counts))...)
}

func (e *histogram) bytes() int64 { return int64(len(e.counts)) * 4 }

func (e *histogram) add(index []uint32, vals []int64) {
	counts := e.counts
	if index == nil {
		for _, x := range vals {
			counts[uint64(x)-uint64(e.lo)]++
		}
		return
	}
	vals = vals[:len(index)]
	for k, g := range index {
		counts[uint64(g)*e.domain+uint64(vals[k])-uint64(e.lo)]++
	}
}

// addOften adds a value of a group n times.
func (e *histogram) addOften(g uint32, x, n int64) {
	e.counts[uint64(g)*e.domain+uint64(x)-uint64(e.lo)] += uint32(n)
}

func (e *histogram) of(g uint32) []uint32 {
	return e.counts[uint64(g)*e.domain:][:e.domain]
}

func (e *histogram) mergeAll(from extra, of, to []uint32) {
	f, ok := from.(*histogram)
	if !ok {
		mergeUnlike(e, from.(ranked), of, to)
		return
	}
	eachPair(of, to, func(j, i uint32) {
		dst := e.of(i)
		for k, n := range f.of(j) {
			dst[k] += n
		}
	})
}

func (e *histogram) groupCount() int { return len(e.counts) / int(e.domain) }

func (e *histogram) each(f func(g uint32, x int64, n int64)) {
	for at, n := range e.counts {
		if n > 0 {
			f(uint32(uint64(at)/e.domain), int64(uint64(at)%e.domain+uint64(e.lo)), int64(n))
		}
	}
}

func (e *histogram) size(g uint32) (n int64) {
	for _, c := range e.of(g) {
		n += int64(c)
	}
	return n
}

func (e *histogram) values(groups []uint32, places [][]int64, each func(n int, f func(i int))) [][]uint64 {
	out := make([][]uint64, len(groups))
	each(len(groups), func(k int) {
		counts, before, v := e.of(groups[k]), int64(0), 0
		for _, at := range places[k] {
			for before+int64(counts[v]) <= at {
				before += int64(counts[v])
				v++
			}
			out[k] = append(out[k], uint64(v))
		}
	})
	return out
}

// lists keeps the values of each group.
type lists[T key] struct {
	selection
	lo    int64
	full  [][][]T // by group: blocks
	open  [][]T   // by group: the block that is being filled
	n     []int   // by group: values in it
	taken int64
}

func (e *lists[T]) grow(n int) {
	e.full = append(e.full, make([][][]T, n-len(e.full))...)
	e.open = append(e.open, make([][]T, n-len(e.open))...)
	e.n = append(e.n, make([]int, n-len(e.n))...)
}

func (e *lists[T]) bytes() int64 { return e.taken + int64(len(e.n))*56 }

// next begins a block of a group whose last one is full.
func (e *lists[T]) next(g uint32) []T {
	b := e.open[g]
	if b != nil {
		e.full[g] = append(e.full[g], b)
	}
	room := min(max(4*len(b), 64), blockValues)
	b = make([]T, room)
	e.taken += int64(room) * sizeOf[T]()
	e.open[g], e.n[g] = b, 0
	return b
}

func sizeOf[T key]() int64 {
	if ^T(0) == math.MaxUint32 {
		return 4
	}
	return 8
}

func (e *lists[T]) add(index []uint32, vals []int64) {
	lo := uint64(e.lo)
	if index == nil {
		for len(vals) > 0 {
			b := e.open[0]
			if e.n[0] == len(b) {
				b = e.next(0)
			}
			b = b[e.n[0]:]
			b = b[:min(len(b), len(vals))]
			for k := range b {
				b[k] = T(uint64(vals[k]) - lo)
			}
			e.n[0] += len(b)
			vals = vals[len(b):]
		}
		return
	}
	vals = vals[:len(index)]
	open, n := e.open, e.n
	for k, g := range index {
		b, at := open[g], n[g]
		if at == len(b) {
			b, at = e.next(g), 0
		}
		b[at] = T(uint64(vals[k]) - lo)
		n[g] = at + 1
	}
}

// of returns the blocks of a group.
func (e *lists[T]) of(g uint32) [][]T {
	return append(slices.Clone(e.full[g]), e.open[g][:e.n[g]])
}

func (e *lists[T]) mergeAll(from extra, of, to []uint32) {
	f, ok := from.(*lists[T])
	if !ok {
		mergeUnlike(e, from.(ranked), of, to)
		return
	}
	eachPair(of, to, func(j, i uint32) {
		if f.n[j] > 0 || len(f.full[j]) > 0 { // merged groups have full blocks only
			e.full[i] = append(e.full[i], f.of(j)...)
		}
	})
}

func (e *lists[T]) groupCount() int { return len(e.n) }

func (e *lists[T]) each(f func(g uint32, x int64, n int64)) {
	for g := range e.n {
		for _, b := range e.of(uint32(g)) {
			for _, v := range b {
				f(uint32(g), int64(uint64(v)+uint64(e.lo)), 1)
			}
		}
	}
}

func (e *lists[T]) size(g uint32) int64 {
	n := e.n[g]
	for _, b := range e.full[g] {
		n += len(b)
	}
	return int64(n)
}

// manyValues is the number of values from which on several workers share one group.
const manyValues = 1 << 18

// A goroutine takes small groups of at least batchValues values together; each costs as much as batchGroup values, beside its own.
const (
	batchValues = 1 << 13
	batchGroup  = 1 << 7
)

func (e *lists[T]) values(groups []uint32, places [][]int64, each func(n int, f func(i int))) [][]uint64 {
	return selectEach(groups, places, each, e.of, e.size)
}

func selectEach[T key](groups []uint32, places [][]int64, all func(n int, f func(i int)), of func(g uint32) [][]T, size func(g uint32) int64) [][]uint64 {
	out := make([][]uint64, len(groups))
	one := func(k int, each func(int, func(int))) {
		if len(places[k]) == 0 {
			return
		}
		for _, v := range selectRanks(of(groups[k]), places[k], each) {
			out[k] = append(out[k], uint64(v))
		}
	}
	var large []int  // groups, for each of which a goroutine has others help
	var small []int  // groups, of which one goroutine takes a batch of so many values
	ends := []int{0} // by batch: where it ends
	values := int64(0)
	for k, g := range groups {
		n := size(g)
		if n >= manyValues {
			large = append(large, k)
			continue
		}
		small = append(small, k)
		if values += n + batchGroup; values >= batchValues {
			ends, values = append(ends, len(small)), 0
		}
	}
	if values > 0 {
		ends = append(ends, len(small))
	}
	all(len(large)+len(ends)-1, func(i int) {
		if i < len(large) {
			one(large[i], all)
			return
		}
		i -= len(large)
		for _, k := range small[ends[i]:ends[i+1]] {
			one(k, oneByOne)
		}
	})
	return out
}

// sideBySide runs f for every number below n, on several goroutines.
func (x *execution) sideBySide(n int, f func(i int)) {
	_ = x.each(n, func(i int) error { f(i); return nil }) // none fails
}

// rowList keeps the values of many groups as they come.
type rowList[T key] struct {
	selection
	lo     int64
	blocks []rowBlock[T]
	groups int
	sort   sync.Once
	sorted []T     // values by group
	from   []int64 // by group, and the end
}

type rowBlock[T key] struct {
	groups []uint32
	vals   []T
}

func (e *rowList[T]) grow(n int) { e.groups = n }

func (e *rowList[T]) bytes() int64 {
	// Twice: they are sorted into one array.
	return int64(len(e.blocks)) * blockValues * (4 + 2*sizeOf[T]())
}

func (e *rowList[T]) push(g uint32, v T) {
	last := len(e.blocks) - 1
	if last < 0 || len(e.blocks[last].vals) == blockValues {
		e.blocks = append(e.blocks, rowBlock[T]{make([]uint32, 0, blockValues), make([]T, 0, blockValues)})
		last++
	}
	b := &e.blocks[last]
	b.groups, b.vals = append(b.groups, g), append(b.vals, v)
}

func (e *rowList[T]) add(index []uint32, vals []int64) {
	for k, x := range vals {
		g := uint32(0)
		if index != nil {
			g = index[k]
		}
		e.push(g, T(uint64(x)-uint64(e.lo)))
	}
}

func (e *rowList[T]) mergeAll(from extra, of, to []uint32) {
	f, ok := from.(*rowList[T])
	if !ok {
		mergeUnlike(e, from.(ranked), of, to)
		return
	}
	target := targets(f.groups, of, to)
	for _, b := range f.blocks {
		for k, j := range b.groups {
			if i := target[j]; i != noGroup {
				e.push(i, b.vals[k])
			}
		}
	}
}

// arrange sorts the values by group.
func (e *rowList[T]) arrange() {
	e.sort.Do(func() {
		e.from = make([]int64, e.groups+2)
		for _, b := range e.blocks {
			for _, g := range b.groups {
				e.from[g+2]++
			}
		}
		for g := 2; g < len(e.from); g++ {
			e.from[g] += e.from[g-1]
		}
		e.sorted = make([]T, e.from[len(e.from)-1])
		for _, b := range e.blocks {
			for k, g := range b.groups {
				e.sorted[e.from[g+1]] = b.vals[k]
				e.from[g+1]++
			}
		}
	})
}

func (e *rowList[T]) groupCount() int { return e.groups }

func (e *rowList[T]) each(f func(g uint32, x int64, n int64)) {
	for _, b := range e.blocks {
		for k, g := range b.groups {
			f(g, int64(uint64(b.vals[k])+uint64(e.lo)), 1)
		}
	}
}

func (e *rowList[T]) size(g uint32) int64 {
	e.arrange()
	return e.from[g+1] - e.from[g]
}

func (e *rowList[T]) values(groups []uint32, places [][]int64, each func(n int, f func(i int))) [][]uint64 {
	e.arrange()
	of := func(g uint32) [][]T { return [][]T{e.sorted[e.from[g]:e.from[g+1]]} }
	return selectEach(groups, places, each, of, e.size)
}
