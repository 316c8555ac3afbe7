package olap

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgaccel/vector"
)

// TestDecimalOrder compares the order of decimals, which doubles decide mostly, with that of
// math/big.
func TestDecimalOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(67, 13))
	var list []vector.Decimal
	for _, u := range []vector.Int128{{}, {Lo: 1}, {Lo: 1 << 53}, {Lo: 1<<53 + 1}, {Lo: math.MaxUint64}, {Hi: 1}, {Hi: math.MaxInt64, Lo: math.MaxUint64}, {Hi: math.MaxInt64, Lo: math.MaxUint64 - 1},
		{Hi: math.MinInt64}, {Hi: math.MinInt64, Lo: 1}} {
		for _, scale := range []int16{0, 1, 16, 20, 38, approximateScale, approximateScale + 1, 400} {
			list = append(list, vector.Decimal{Unscaled: u, Scale: scale}, vector.Decimal{Unscaled: u.Neg(), Scale: scale})
		}
	}
	for range 400 { // equal ones of several scales, and their neighbours
		n, scale := int64(r.Uint64())>>(8+r.IntN(56)), int16(r.IntN(20))
		for d := int64(-1); d <= 1; d++ {
			list = append(list, vector.Decimal{Unscaled: vector.Mul64(n, 1_000_000_000_000_000_000).Add(vector.Int128Of(d)), Scale: scale + 18})
		}
		list = append(list, vector.Decimal{Unscaled: vector.Int128Of(n), Scale: scale}, vector.Decimal{Unscaled: vector.Mul64(n, 10), Scale: scale + 1})
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for _, n := range []int{0, 1, 2, 63, 64, 65, len(list)} {
		d := decimalDict(list[:n], vector.NumericType(vector.VaryingScale))
		order := d.decimalOrder()
		seen := slices.Clone(order)
		slices.Sort(seen)
		for i := range order {
			if seen[i] != int32(i) {
				t.Fatalf("%d decimals: code %d is missing", n, i)
			}
			if i > 0 && compareBig(list[order[i-1]], list[order[i]]) > 0 {
				t.Fatalf("%v before %v", list[order[i-1]], list[order[i]])
			}
		}
	}
}
