package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// randomRuns returns the lengths of runs of up to 512 rows in all.
func randomRuns(r *rand.Rand) (lengths []int64, rows int) {
	most := []int{1, 2, 4, 20, 512}[r.IntN(5)]
	end := 1 + r.IntN(RunRows)
	if r.IntN(3) == 0 {
		end = RunRows
	}
	for rows < end {
		n := min(1+r.IntN(most), end-rows)
		lengths = append(lengths, int64(n))
		rows += n
	}
	return lengths, rows
}

func TestRuns(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(10, 10))
		for range 2000 {
			lengths, rows := randomRuns(r)
			values := randomValues(r, len(lengths)+8)
			var runs [9]uint64
			for i := range runs {
				runs[i] = r.Uint64() & r.Uint64()
			}
			var want []int64
			var in [8]uint64
			for i, n := range lengths {
				for range n {
					in[len(want)/64] |= runs[i/64] >> (i % 64) & 1 << (len(want) % 64)
					want = append(want, values[1+i])
				}
			}
			starts, mask := [8]uint64{r.Uint64()}, [8]uint64{r.Uint64()}
			RunStarts(&starts, lengths)
			dst, check := guarded[int64](t, rows)
			ExpandRuns(dst, values, &starts)
			check()
			if !slices.Equal(dst, want) {
				t.Fatalf("%d rows of %d runs are others", rows, len(lengths))
			}
			SpreadRuns(&mask, &runs, &starts)
			for i := range rows {
				if mask[i/64]>>(i%64)&1 != in[i/64]>>(i%64)&1 {
					t.Fatalf("row %d of %d runs", i, len(lengths))
				}
			}
		}
	})
}
