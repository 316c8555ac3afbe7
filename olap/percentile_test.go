package olap

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawKeys makes n keys of one of several shapes.
func drawKeys[T key](r *rand.Rand, n, shape int) []T {
	out := make([]T, n)
	for i := range out {
		v := r.Uint64()
		switch shape {
		case 0:
			v >>= uint(r.IntN(64))
		case 1:
			v %= 10
		case 2: // two heaps far apart
			v = v%1000 + v>>63*(1<<62|1<<31)
		case 3:
			v = uint64(math.Float64bits(math.Exp(r.NormFloat64())))
			v = v>>20 | v<<44
		case 4:
			v = 1<<63 - 1
		case 5:
			v = ^uint64(0) - v%3
		}
		out[i] = T(v)
	}
	return out
}

func checkSelect[T key](t *testing.T, r *rand.Rand, n, shape int, each func(int, func(int))) {
	t.Helper()
	values := drawKeys[T](r, n, shape)
	var blocks [][]T
	for rest := values; len(rest) > 0; {
		k := min(1+r.IntN(n), len(rest))
		blocks = append(blocks, rest[:k])
		rest = rest[k:]
		if r.IntN(3) == 0 {
			blocks = append(blocks, nil)
		}
	}
	before := slices.Clone(values)
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	ranks := []int64{0, int64(n - 1)}
	for range r.IntN(6) {
		ranks = append(ranks, int64(r.IntN(n)))
	}
	slices.Sort(ranks)
	if r.IntN(2) == 0 {
		ranks = slices.Compact(ranks)
	}
	got := selectRanks(blocks, ranks, each)
	for i, rank := range ranks {
		if got[i] != sorted[rank] {
			t.Fatalf("%d values of shape %d: place %d has %d, want %d", n, shape, rank, got[i], sorted[rank])
		}
	}
	if !slices.Equal(values, before) {
		t.Fatal("the values have been moved")
	}
}

// workers runs functions side by side, as an execution with so many.
func workers(n int) func(int, func(int)) {
	return (&execution{ctx: context.Background(), opt: Options{Workers: n}}).sideBySide
}

func TestSelectRanks(t *testing.T) {
	sizes := append(slices.Clone(edgeLengths[1:]), selectSmall, selectSmall+1, 70000, 3*runValues)
	for shape := range 6 {
		for _, n := range sizes {
			r := rand.New(rand.NewPCG(uint64(shape), uint64(n)))
			checkSelect[uint32](t, r, n, shape, oneByOne)
			checkSelect[uint64](t, r, n, shape, workers(3))
		}
	}
}

func FuzzSelectRanks(f *testing.F) {
	f.Add(uint64(1), uint16(700), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, shape uint8) {
		r := rand.New(rand.NewPCG(seed, 1))
		checkSelect[uint32](t, r, 1+int(n), int(shape)%6, oneByOne)
		checkSelect[uint64](t, r, 1+int(n), int(shape)%6, workers(2))
	})
}

// TestRanked fills each kind of collection, merges them, also with those of another kind,
// and selects.
func TestRanked(t *testing.T) {
	kinds := map[string]bool{}
	for seed, bounds := range [][2]int64{{-1, 2}, {0, 60}, {-1 << 20, 1 << 20}, {-1 << 40, 1 << 50}, {math.MinInt64, math.MaxInt64}} {
		for _, groups := range []int{1, 3, listGroups + 1} {
			for _, n := range edgeLengths {
				r := rand.New(rand.NewPCG(uint64(seed), uint64(n)))
				a := &acc{kind: accRanked, arg: &node{lo: bounds[0], hi: bounds[1]}}
				some := extents(groups)
				from, to := newState(a, some[r.IntN(len(some))], groups), newState(a, some[r.IntN(len(some))], groups)
				want := make([][]int64, groups)
				mapped := make([]uint32, groups)
				for j := range mapped {
					mapped[j] = uint32(r.IntN(groups))
				}
				draw := func(to []uint32) (out []pair) {
					for range n {
						x := int64(r.Uint64()) >> r.IntN(64)
						p := pair{uint32(r.IntN(min(groups, 40))), min(max(x, bounds[0]), bounds[1])}
						out = append(out, p)
						g := p.g
						if to != nil {
							g = to[g]
						}
						want[g] = append(want[g], p.x)
					}
					return out
				}
				feed(r, a, from, draw(mapped), groups == 1 && r.IntN(2) == 0)
				feed(r, a, to, draw(nil), groups == 1)
				mergeSome(r, a, to, from, mapped)
				e := to.extra.(ranked)
				var numbers []uint32
				var places [][]int64
				for g, values := range want {
					if e.size(uint32(g)) != int64(len(values)) {
						t.Fatalf("%d values in group %d, want %d", e.size(uint32(g)), g, len(values))
					}
					slices.Sort(values)
					var p []int64
					if k := int64(len(values)); k > 0 {
						p = slices.Compact([]int64{0, k / 3, k / 2, k - 1})
					}
					numbers, places = append(numbers, uint32(g)), append(places, p)
				}
				got := e.values(numbers, places, workers(2))
				for k, g := range numbers {
					for i, at := range places[k] {
						if v := int64(got[k][i] + uint64(bounds[0])); v != want[g][at] {
							t.Fatalf("%T, %v, %d rows: group %d has %d at %d, want %d", e, bounds, n, g, v, at, want[g][at])
						}
					}
				}
				kinds[fmt.Sprintf("%T", e)] = true
			}
		}
	}
	if len(kinds) != 5 {
		t.Errorf("only the kinds %v were met", kinds)
	}
}
