package tile

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLanesColumn compares what comes back of every width, and ranges, with the values.
func TestLanesColumn(t *testing.T) {
	for width := range 33 {
		for _, n := range lengths {
			values := make([]int64, n)
			for i := range values {
				values[i] = -5e9 + int64(rand.Uint64()&(1<<width-1))
			}
			c, err := EncodeLanes(values)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]int64, n)
			if c.Decode(got, 0); c.Len() != n || !slices.Equal(got, values) {
				t.Fatalf("%d bits: other values of %d come back", width, n)
			}
			for start := 0; start < n; start += vectorRows {
				part := values[start:min(start+vectorRows, n)]
				lo, hi := part[rand.IntN(len(part))], part[rand.IntN(len(part))]
				lo, hi = min(lo, hi)-int64(rand.IntN(2)), max(lo, hi)+int64(rand.IntN(2))
				mask := make([]uint64, (len(part)+63)/64)
				for i := range mask {
					mask[i] = rand.Uint64()
				}
				before := slices.Clone(mask)
				c.FilterRange(mask, start, len(part), lo, hi)
				for i, v := range part {
					want := before[i/64]>>(i%64)&1 == 1 && v >= lo && v <= hi
					if mask[i/64]>>(i%64)&1 == 1 != want {
						t.Fatalf("%d bits: value %d within [%d, %d] is %v", width, v, lo, hi, !want)
					}
				}
			}
		}
	}
	if _, err := EncodeLanes([]int64{0, 1 << 32}); err == nil {
		t.Error("33 bits became lanes")
	}
}
