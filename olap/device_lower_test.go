package olap

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRuns compares where runs begin, as several goroutines find them, with the same a value at a time.
func TestRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	x := &execution{opt: Options{Workers: 3}}
	for _, n := range []int{1, 63, 64, 127, 128, 129, 511, 512, 513, 2*buildChunk - 1, 2 * buildChunk, 5*buildChunk + 3} {
		for _, most := range []int{1, 2, runsMost - 1, runsMost, runsMost + 1, 2 * runsMost, n} {
			values := make([]int64, n)
			begins := r.Perm(n)[:min(most, n)]
			if r.IntN(2) == 0 { // where pieces meet
				begins[0] = n / 2
			}
			slices.Sort(begins)
			for i := range values {
				if at, ok := slices.BinarySearch(begins, i); ok {
					values[i] = int64(at%2 + 1)
				} else if i > 0 {
					values[i] = values[i-1]
				}
			}
			var want []int
			for i := range values {
				if i == 0 || values[i] != values[i-1] {
					want = append(want, i)
				}
			}
			if len(want) > runsMost {
				want = nil
			}
			var found runStarts
			for range 2 {
				if got := found.of(values, x); !slices.Equal(got, want) || (got == nil) != (want == nil) {
					t.Fatalf("%d values: runs at %d, want %d", n, got, want)
				}
			}
		}
	}
}
