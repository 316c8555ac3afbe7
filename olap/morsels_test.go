package olap

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"pgaccel/colstore"
)

// TestMorsels: the morsels of a table have each row once, in order, and there are enough of them.
func TestMorsels(t *testing.T) {
	for _, rows := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 5000, 65536} {
		for _, segments := range []int{0, 1, 2, 3, 23, 200} {
			for _, workers := range []int{1, 2, 16} {
				for _, eager := range []bool{false, true} {
					tab := &colstore.Table{}
					for i := range segments {
						tab.Segments = append(tab.Segments, &colstore.Segment{Rows: rows})
						if i == segments-1 && i > 0 {
							tab.Segments[i].Rows = rows / 3
						}
					}
					name := fmt.Sprintf("%d segments of %d rows, %d workers, eager %v", segments, rows, workers, eager)
					ms := (&Options{Workers: workers, Eager: eager}).morsels(tab)
					at, seg := 0, 0
					for n := range ms.count(tab) {
						segment, part := ms.of(n)
						if segment != seg {
							if at != tab.Segments[seg].Rows || segment != seg+1 {
								t.Fatalf("%s: segment %d ends at row %d, then comes segment %d", name, seg, at, segment)
							}
							at, seg = 0, segment
						}
						from, to := ms.within(part, tab.Segments[segment].Rows)
						if from != at || to < from || from%tileRows != 0 && from != to {
							t.Fatalf("%s: part %d has rows %d to %d after %d", name, part, from, to, at)
						}
						at = to
					}
					if segments > 0 && at != tab.Segments[seg].Rows {
						t.Fatalf("%s: the last segment ends at row %d", name, at)
					}
					if rows == 65536 && workers > 1 && segments > 1 && ms.count(tab) < min(morselsPerWorker*workers, morselsMost*segments) {
						t.Errorf("%s: %d morsels", name, ms.count(tab))
					}
					if workers == 1 && ms.parts != 1 {
						t.Errorf("%s: %d parts for one worker", name, ms.parts)
					}
				}
			}
		}
	}
}

// TestUniteDistinct compares sets of workers that goroutines unite with the pairs, inserted one by one.
func TestUniteDistinct(t *testing.T) {
	defer func(n int) { parallelMerge = n }(parallelMerge)
	parallelMerge = 0
	kinds := map[string]bool{}
	for seed, bounds := range [][2]int64{{-3, 5}, {0, 1 << 20}, {-1 << 45, 1 << 45}, {math.MinInt64, math.MaxInt64}} {
		for _, n := range append([]int{20_000}, edgeLengths...) {
			r := rand.New(rand.NewPCG(uint64(seed), uint64(n)))
			a := &acc{kind: accDistinct, arg: &node{lo: bounds[0], hi: bounds[1]}}
			groups := 1 + r.IntN(40)
			x := &execution{ctx: t.Context(), opt: Options{Workers: 3, Eager: true}, memory: new(atomic.Int64), room: 1 << 40}
			want := map[pair]bool{}
			var list []*distinct
			for range 4 {
				e := newDistinct(a, extent{uint64(groups), uint64(n)})
				e.grow(groups)
				for range n {
					p := pair{uint32(r.IntN(groups)), bounds[0] + int64(r.Uint64N(min(uint64(bounds[1])-uint64(bounds[0]), 5000)))}
					e.addOne(p.g, p.x)
					want[p] = true
				}
				list = append(list, e)
			}
			kinds[fmt.Sprint(list[0].words > 0, list[0].set != nil, list[0].wide != nil)] = true
			if err := x.uniteDistinct(list); err != nil {
				t.Fatal(err)
			}
			got := map[pair]bool{}
			list[0].each(func(g uint32, x int64) { got[pair{g, x}] = true })
			if !maps.Equal(got, want) {
				t.Fatalf("%v, %d rows: %d pairs, want %d", bounds, n, len(got), len(want))
			}
			counts := make([]int64, groups)
			for p := range want {
				counts[p.g]++
			}
			for g, c := range list[0].numbers() {
				if c != counts[g] {
					t.Fatalf("%v, %d rows: %d values of group %d, want %d", bounds, n, c, g, counts[g])
				}
			}
			for _, d := range list[1:] {
				d.each(func(g uint32, x int64) { t.Fatalf("%v, %d rows: %d of group %d is left", bounds, n, x, g) })
			}
		}
	}
	if len(kinds) != 3 {
		t.Errorf("only the kinds %v were met", kinds)
	}
}

// TestMorselsBegin: rows of a bitmap begin where those of the morsels before end, each counted once.
func TestMorselsBegin(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 17))
	for _, rows := range append([]int{1025, 2047, 2049, 4100, 65536}, edgeLengths...) {
		tab := &colstore.Table{Segments: []*colstore.Segment{{Rows: rows}, {Rows: rows / 3}, {Rows: rows}}}
		b := &bitmapRows{p: &pipeline{tab: tab}, first: []int{0}}
		for _, seg := range tab.Segments {
			words := make([]uint64, (seg.Rows+63)/64)
			for i := range seg.Rows {
				words[i>>6] |= r.Uint64() & 1 << (i & 63)
			}
			b.words = append(b.words, words...)
			b.first = append(b.first, len(b.words))
		}
		for _, workers := range []int{1, 2, 16} {
			for _, eager := range []bool{false, true} {
				ms := (&Options{Workers: workers, Eager: eager}).morsels(tab)
				from := b.offsets(ms)
				n := 0
				for i := range ms.count(tab) {
					if from[i] != n {
						t.Fatalf("%d rows, %v: morsel %d begins at %d, want %d", rows, ms, i, from[i], n)
					}
					segment, part := ms.of(i)
					first, last := ms.within(part, tab.Segments[segment].Rows)
					for row := first; row < last; row++ {
						n += int(b.segment(segment)[row>>6] >> (row & 63) & 1)
					}
				}
				if from[len(from)-1] != n {
					t.Fatalf("%d rows, %v: %d in all, want %d", rows, ms, from[len(from)-1], n)
				}
			}
		}
	}
}
