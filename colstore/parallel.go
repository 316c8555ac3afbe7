package colstore

import (
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"pgaccel/internal/processors"
)

// parallelMin is how many elements are worth a goroutine.
const parallelMin = 1 << 14

// inRanges calls f for ranges that together are [0, n), on all cores where n is large.
func inRanges(n int, f func(from, to int)) {
	processors.ParallelFor(n, parallelMin, f)
}

// sortParallel sorts as slices.SortFunc does, in place, on all cores where s is long: a
// quicksort whose halves are sorted side by side.
func sortParallel[T any](s []T, compare func(a, b T) int) {
	var wg sync.WaitGroup
	// So many halvings make enough pieces; twice as many where they are uneven.
	sortPart(s, compare, 2*(bits.Len(uint(runtime.GOMAXPROCS(0)-1))+2), &wg)
	wg.Wait()
}

func sortPart[T any](s []T, compare func(a, b T) int, depth int, wg *sync.WaitGroup) {
	for depth > 0 && len(s) > parallelMin && runtime.GOMAXPROCS(0) > 1 {
		depth--
		// The median of 15 splits well enough.
		var sample [15]T
		for i := range sample {
			sample[i] = s[(2*i+1)*len(s)/(2*len(sample))]
		}
		slices.SortFunc(sample[:], compare)
		i := partition(s, sample[len(sample)/2], compare)
		left, rest := s[:i], depth
		wg.Go(func() { sortPart(left, compare, rest, wg) })
		s = s[i:]
	}
	slices.SortFunc(s, compare)
}

// partition puts what is not above the pivot before what is not below it, and returns
// where the second part begins (Hoare). The pivot is an element.
func partition[T any](s []T, pivot T, compare func(a, b T) int) int {
	i, j := -1, len(s)
	for {
		for i++; compare(s[i], pivot) < 0; i++ {
		}
		for j--; compare(s[j], pivot) > 0; j-- {
		}
		if i >= j {
			return j + 1
		}
		s[i], s[j] = s[j], s[i]
	}
}

// commonPrefix returns how many bytes all of n strings begin with.
func commonPrefix(n int, at func(i int) []byte) int {
	if n == 0 {
		return 0
	}
	first := at(0)
	var mu sync.Mutex
	all := len(first)
	inRanges(n, func(from, to int) {
		own := len(first)
		for i := from; i < to && own > 0; i++ {
			s := at(i)
			own = min(own, len(s))
			for k := range own {
				if s[k] != first[k] {
					own = k
					break
				}
			}
		}
		mu.Lock()
		all = min(all, own)
		mu.Unlock()
	})
	return all
}
