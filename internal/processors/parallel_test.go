package processors

import (
	"slices"
	"sync/atomic"
	"testing"
)

// TestParallelFor: each number comes to one range.
func TestParallelFor(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 5000} {
		for _, grain := range []int{1, 64, 600} {
			times := make([]int32, n)
			var calls atomic.Int32
			ParallelFor(n, grain, func(from, to int) {
				calls.Add(1)
				for i := from; i < to; i++ {
					times[i]++
				}
			})
			if slices.ContainsFunc(times, func(n int32) bool { return n != 1 }) {
				t.Errorf("%d by %d: %d", n, grain, times)
			}
			if c := calls.Load(); c < 1 || c > 1 && int(c) > n/grain {
				t.Errorf("%d by %d: %d ranges", n, grain, c)
			}
		}
	}
}
