package compress

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// checkAggregates compares sums with math/big and everything with the references.
func checkAggregates(t *testing.T, c Column, values []int64, start, rows int, r *rand.Rand) {
	t.Helper()
	selected := make([]uint64, (rows+63)/64)
	for i := range selected {
		switch r.IntN(4) {
		case 0:
			selected[i] = r.Uint64()
		case 1:
			selected[i] = r.Uint64() & r.Uint64() & r.Uint64() & r.Uint64() & r.Uint64()
		case 2:
			selected[i] = ^uint64(0)
		}
	}
	all, some := new(big.Int), new(big.Int)
	for i, v := range values[start : start+rows] {
		all.Add(all, big.NewInt(v))
		if selected[i/64]>>(i%64)&1 == 1 {
			some.Add(some, big.NewInt(v))
		}
	}
	toBig := func(hi int64, lo uint64) *big.Int {
		b := new(big.Int).Lsh(big.NewInt(hi), 64)
		return b.Add(b, new(big.Int).SetUint64(lo))
	}
	for _, a := range []Aggregator{AggregatorOf(c), decoded{c}} {
		if got := toBig(a.Sum(start, rows)); got.Cmp(all) != 0 {
			t.Errorf("%v (%T): Sum(%d, %d) = %v, want %v", c.Codec(), a, start, rows, got, all)
		}
		if got := toBig(a.SumSelected(selected, start, rows)); got.Cmp(some) != 0 {
			t.Errorf("%v (%T): SumSelected(%d, %d) = %v, want %v", c.Codec(), a, start, rows, got, some)
		}
		part := values[start : start+rows]
		if lo, hi := a.MinMax(start, rows); lo != slices.Min(part) || hi != slices.Max(part) {
			t.Errorf("%v (%T): MinMax(%d, %d) = %d, %d", c.Codec(), a, start, rows, lo, hi)
		}
	}
	if start > 0 || rows > 64 || r.IntN(8) > 0 { // the reference of a delta reads all before it
		return
	}
	if got := toBig(sumReference(c, start, rows)); got.Cmp(all) != 0 {
		t.Errorf("%v: the reference sums up to %v, want %v", c.Codec(), got, all)
	}
	if got := toBig(sumSelectedReference(c, selected, start, rows)); got.Cmp(some) != 0 {
		t.Errorf("%v: the reference sums the selected up to %v, want %v", c.Codec(), got, some)
	}
	lo, hi := minMaxReference(c, start, rows)
	if l, h := AggregatorOf(c).MinMax(start, rows); l != lo || h != hi {
		t.Errorf("%v: MinMax %d, %d; by the reference %d, %d", c.Codec(), l, h, lo, hi)
	}
}

// sumReference and the two after it are the references: a row at a time.
func sumReference(c Column, start, n int) (hi int64, lo uint64) {
	var sum sum128
	for i := start; i < start+n; i++ {
		sum.addValue(decodeReference(Words(c), i))
	}
	return sum.hi, sum.lo
}

func sumSelectedReference(c Column, selected []uint64, start, n int) (hi int64, lo uint64) {
	var sum sum128
	for i := range n {
		if selected[i/64]>>(i%64)&1 == 1 {
			sum.addValue(decodeReference(Words(c), start+i))
		}
	}
	return sum.hi, sum.lo
}

func minMaxReference(c Column, start, n int) (lo, hi int64) {
	lo, hi = math.MaxInt64, math.MinInt64
	for i := start; i < start+n; i++ {
		v := decodeReference(Words(c), i)
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi
}
