package olap

import (
	"math"
	"math/rand/v2"
	"pgaccel/gpu/program"
	"slices"
	"testing"
	"time"
)

// against times a fast path and its plain version by turns, and reports the best of both
// in ns a value, and their ratio.
func against(b *testing.B, values int, fast, plain func()) {
	b.Helper()
	var f, p []time.Duration
	fast()
	plain()
	for b.Loop() {
		start := time.Now()
		fast()
		middle := time.Now()
		plain()
		f, p = append(f, middle.Sub(start)), append(p, time.Since(middle))
	}
	x, y := float64(slices.Min(f)), float64(slices.Min(p))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(x/float64(values), "ns/value")
	b.ReportMetric(y/float64(values), "plain-ns/value")
	b.ReportMetric(y/x, "times")
}

const benchRows = 1 << 20

// benchTiles cuts rows into tiles.
func benchTiles(index []uint32, vals []int64, f func(index []uint32, vals []int64)) {
	for from := 0; from < len(vals); from += tileRows {
		to := min(from+tileRows, len(vals))
		if index == nil {
			f(nil, vals[from:to])
		} else {
			f(index[from:to], vals[from:to])
		}
	}
}

func benchIndex(r *rand.Rand, groups int) []uint32 {
	if groups == 1 {
		return nil
	}
	index := make([]uint32, benchRows)
	for i := range index {
		index[i] = uint32(float64(groups) * math.Pow(r.Float64(), 3))
	}
	return index
}

func benchLatency(r *rand.Rand) []int64 {
	vals := make([]int64, benchRows)
	for i := range vals {
		vals[i] = int64(math.Float64bits(math.Round(1000*math.Exp(3+1.2*r.NormFloat64())) / 1000))
	}
	return vals
}

// BenchmarkFloatSum compares exact sums with sums of doubles as Postgres has them.
func BenchmarkFloatSum(b *testing.B) {
	for _, c := range []struct {
		name   string
		kind   accKind
		groups int
	}{{"sum/1", accFloatSum, 1}, {"sum/200", accFloatSum, 200}, {"moments/1", accFloatMoments, 1}, {"moments/200", accFloatMoments, 200}} {
		b.Run(c.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			index, vals := benchIndex(r, c.groups), benchLatency(r)
			a := newFloatAcc(c.kind, benchRows)
			var s *state
			sums := make([]float64, c.groups)
			squares := make([]float64, c.groups)
			against(b, benchRows, func() {
				s = newState(a, extent{}, c.groups)
				benchTiles(index, vals, s.extra.add)
			}, func() {
				clear(sums)
				clear(squares)
				benchTiles(index, vals, func(index []uint32, vals []int64) {
					for k, x := range vals {
						g, v := uint32(0), math.Float64frombits(uint64(x))
						if index != nil {
							g = index[k]
						}
						sums[g] += v
						if c.kind == accFloatMoments {
							squares[g] += v * v
						}
					}
				})
			})
			e := s.extra.(*floatMoments)
			for g := range c.groups {
				if got := e.sum(uint32(g)); math.Abs(got-sums[g]) > 1e-9*math.Abs(got) {
					b.Fatalf("group %d: %v, want about %v", g, got, sums[g])
				}
			}
		})
	}
}

// BenchmarkDistinct compares sets of pairs with a table of keys of two words.
func BenchmarkDistinct(b *testing.B) {
	for _, c := range []struct {
		name   string
		groups int
		domain int64
		x      extent
	}{
		{"bitmap/1", 1, 1 << 20, extent{1, 10 * benchRows}},
		{"bitmap/12", 12, 1 << 20, extent{12, 10 * benchRows}},
		{"words/1", 1, 1 << 40, extent{1, benchRows}},
		{"words/200", 200, 1 << 40, extent{200, benchRows}},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(2, 2))
			index := benchIndex(r, c.groups)
			if c.groups == 12 { // months: one after the other
				slices.Sort(index)
			}
			vals := make([]int64, benchRows)
			for i := range vals { // few values often, many seldom
				vals[i] = int64(math.Pow(r.Float64(), 4)*(1<<20)) * (c.domain >> 20)
			}
			a := &acc{kind: accDistinct, arg: &node{lo: 0, hi: c.domain - 1}}
			var e *distinct
			var t *wordTable
			against(b, benchRows, func() {
				s := newState(a, c.x, c.groups)
				e = s.extra.(*distinct)
				benchTiles(index, vals, e.add)
			}, func() {
				t = newWordTable(2, 0)
				for k, x := range vals {
					key := [2]uint64{0, uint64(x)}
					if index != nil {
						key[0] = uint64(index[k])
					}
					t.insert(key[:])
				}
			})
			n := int64(0)
			for _, c := range e.numbers() {
				n += c
			}
			if n != int64(t.n) {
				b.Fatalf("%d pairs, want %d", n, t.n)
			}
		})
	}
}

// BenchmarkSelect compares the selection of three percentiles with sorting.
func BenchmarkSelect(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 3))
	vals := benchLatency(r)
	a := &acc{kind: accRanked, arg: &node{lo: math.MinInt64, hi: math.MaxInt64}}
	places := [][]int64{{benchRows / 2, benchRows / 100 * 95, benchRows / 100 * 99}}
	var got [][]uint64
	sorted := make([]int64, len(vals))
	against(b, benchRows, func() {
		s := newState(a, extent{1, benchRows}, 1)
		benchTiles(nil, vals, s.extra.add)
		got = s.extra.(ranked).values([]uint32{0}, places, oneByOne)
	}, func() {
		copy(sorted, vals)
		slices.Sort(sorted)
	})
	for i, at := range places[0] {
		if v := int64(got[0][i]) + math.MinInt64; v != sorted[at] {
			b.Fatalf("place %d has %d, want %d", at, v, sorted[at])
		}
	}
}

// BenchmarkAdd compares the loops with their reference.
func BenchmarkAdd(b *testing.B) {
	for _, c := range []struct {
		name   string
		kind   accKind
		groups int
		nulls  bool
	}{
		{"sum/1", program.AccSum, 1, false}, {"sum128/1", program.AccSum128, 1, false}, {"min/1", program.AccMin, 1, false},
		{"sum/200", program.AccSum, 200, false}, {"sum128/200", program.AccSum128, 200, false}, {"max/200", program.AccMax, 200, false},
		{"sum/200/nulls", program.AccSum, 200, true}, {"count/200/nulls", program.AccCount, 200, true}, {"min/200/nulls", program.AccMin, 200, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(4, 4))
			index := benchIndex(r, c.groups)
			vals := make([]int64, benchRows)
			nulls := make([]uint8, benchRows)
			for i := range vals {
				vals[i] = int64(r.IntN(1e6))
				nulls[i] = uint8(b2i(r.IntN(20) == 0))
			}
			a := &acc{kind: c.kind, arg: &node{lo: 0, hi: 1e6}}
			var s, p *state
			against(b, benchRows, func() {
				s = newState(a, extent{}, c.groups)
				at := 0
				benchTiles(index, vals, func(index []uint32, vals []int64) {
					v := vec{v: vals}
					if c.nulls {
						v.nulls = nulls[at : at+len(vals)]
					}
					at += len(vals)
					s.add(a, index, v, len(vals))
				})
			}, func() {
				p = newState(a, extent{}, c.groups)
				for k, x := range vals {
					if c.nulls && nulls[k] != 0 {
						continue
					}
					g := uint32(0)
					if index != nil {
						g = index[k]
					}
					addOne(a, p, g, x)
				}
			})
			if !slices.Equal(s.V, p.V) || !slices.Equal(s.Hi, p.Hi) {
				b.Fatal("the loops differ from their reference")
			}
		})
	}
}
