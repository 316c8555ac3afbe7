package olap

import (
	"math/rand/v2"
	"pgaccel/gpu/program"
	"slices"
	"testing"
)

func TestAddCountSum(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 24))
	for _, n := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, tileRows} {
		const groups = 7
		index, v := make([]uint32, n), vec{make([]int64, n), make([]uint8, n)}
		for i := range index {
			index[i], v.v[i], v.nulls[i] = r.Uint32N(groups), r.Int64N(2000)-1000, uint8(r.IntN(2))
		}
		count, sum := make([]int64, groups), make([]int64, groups)
		addCountSum(count, sum, index, v)
		var want [2]state
		want[0].Grow(program.AccCount, groups)
		want[1].Grow(program.AccSum, groups)
		addMasked(program.AccCount, &want[0], index, v)
		addMasked(program.AccSum, &want[1], index, v)
		if !slices.Equal(count, want[0].V) || !slices.Equal(sum, want[1].V) {
			t.Errorf("%d rows: %v, %v instead of %v, %v", n, count, sum, want[0].V, want[1].V)
		}
	}
}
