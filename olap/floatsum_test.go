package olap

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactFloats returns the rounded sum, and the rounded sum of squared differences from
// the mean, by arithmetic that is wide enough for any doubles.
func exactFloats(values []float64) (sum, deviations float64) {
	wide := func() *big.Float { return new(big.Float).SetPrec(5000) }
	s, q := wide(), wide()
	for _, v := range values {
		b := wide().SetFloat64(v)
		s.Add(s, b)
		q.Add(q, b.Mul(b, b))
	}
	sum, _ = s.Float64()
	if len(values) == 0 {
		return 0, 0
	}
	n := wide().SetInt64(int64(len(values)))
	q.Sub(q, s.Quo(wide().Mul(s, s), n))
	// One rounding to 53 bits, as the quotient of integers has.
	q.SetPrec(53)
	deviations, _ = q.Float64()
	return sum, deviations
}

// randomFloats makes values of one of several shapes.
func randomFloats(r *rand.Rand, n, shape int) []float64 {
	out := make([]float64, n)
	for i := range out {
		x := r.Float64() - 0.5
		switch shape {
		case 0:
			x = math.Round(1e6*math.Abs(x)) / 1e3
		case 1:
			x *= math.Exp(20 * r.NormFloat64())
		case 2: // anything finite whose squares do not overflow
			x = math.Float64frombits(r.Uint64())
			if math.IsNaN(x) || math.Abs(x) > 1e140 {
				x = 5e-324 * float64(r.IntN(100))
			}
		case 3: // cancellation
			if x = math.Ldexp(1+x, r.IntN(200)); i%2 == 1 {
				x = -out[i-1]
			}
			if r.IntN(50) == 0 {
				x = math.Ldexp(x, -150)
			}
		case 4:
			x = []float64{0, 0, 1e-300, -1e-300, math.Copysign(0, -1), 1e100}[r.IntN(6)]
		case 5:
			x = 0.1
		}
		out[i] = x
	}
	return out
}

func floatPairs(values []float64, g func(i int) uint32) []pair {
	out := make([]pair, len(values))
	for i, v := range values {
		out[i] = pair{g(i), int64(math.Float64bits(v))}
	}
	return out
}

func newFloatAcc(kind accKind, rows int64) *acc {
	return &acc{kind: kind, arg: &node{lo: math.MinInt64, hi: math.MaxInt64}, window: newFloatWindow(rows, kind == accFloatMoments)}
}

// checkFloats compares the states of two workers, merged, with exact sums.
func checkFloats(t *testing.T, r *rand.Rand, n, shape, groups int, rows int64) {
	t.Helper()
	for _, kind := range []accKind{accFloatSum, accFloatMoments} {
		a := newFloatAcc(kind, rows)
		values := randomFloats(r, n, shape)
		pairs := floatPairs(values, func(int) uint32 { return uint32(r.IntN(groups)) })
		cut := 0
		if n > 0 {
			cut = r.IntN(n)
		}
		x, y := newState(a, extent{}, groups), newState(a, extent{}, groups)
		feed(r, a, x, pairs[:cut], groups == 1 && r.IntN(2) == 0)
		feed(r, a, y, pairs[cut:], groups == 1)
		mapped := make([]uint32, groups)
		for g := range mapped {
			mapped[g] = uint32(g)
		}
		mergeSome(r, a, x, y, mapped)
		e := x.extra.(*floatMoments)
		for g := range groups {
			var of []float64
			minus := int64(0)
			for i, p := range pairs {
				if int(p.g) == g {
					of = append(of, values[i])
					minus += b2i(values[i] == 0 && math.Signbit(values[i]))
				}
			}
			sum, deviations := exactFloats(of)
			if got := e.sum(uint32(g)); got != sum {
				t.Fatalf("shape %d, %d of %d values: sum %v, want %v", shape, len(of), n, got, sum)
			}
			if e.minusOf(uint32(g)) != minus {
				t.Fatalf("%d negative zeros, want %d", e.minusOf(uint32(g)), minus)
			}
			if kind != accFloatMoments || len(of) == 0 {
				continue
			}
			if got := e.deviations(uint32(g), int64(len(of))); got != deviations {
				t.Fatalf("shape %d, %d of %d values: squared differences %v, want %v", shape, len(of), n, got, deviations)
			}
		}
	}
}

func TestFloatSums(t *testing.T) {
	for shape := range 6 {
		for _, n := range edgeLengths {
			for _, groups := range []int{1, 5} {
				r := rand.New(rand.NewPCG(uint64(shape), uint64(n)))
				checkFloats(t, r, n, shape, groups, []int64{int64(n) + 1, 1 << 40, 1 << 55}[r.IntN(3)])
			}
		}
	}
}

// TestFloatWindowEdges puts values at both ends of the window, and the largest sums that
// the number of rows allows.
func TestFloatWindowEdges(t *testing.T) {
	for _, rows := range []int64{1, 1000, 1 << 24, 1 << 33} {
		for _, kind := range []accKind{accFloatSum, accFloatMoments} {
			for _, sign := range []float64{1, -1} {
				a := newFloatAcc(kind, rows)
				base := a.window.choose(1023)
				edge := func(e int32) float64 { return sign * math.Ldexp(2-0x1p-52, int(e)-1023) }
				for e := base - 2; e <= base+a.window.width+2; e++ {
					s := newState(a, extent{}, 1)
					values := make([]float64, min(rows, 3000))
					for i := range values {
						values[i] = edge(e)
					}
					feed(rand.New(rand.NewPCG(1, 1)), a, s, floatPairs(values, func(int) uint32 { return 0 }), true)
					m := s.extra.(*floatMoments)
					sum, deviations := exactFloats(values)
					if got := m.sum(0); got != sum {
						t.Fatalf("exponent %d of a window from %d: %v, want %v", e, base, got, sum)
					}
					if kind == accFloatMoments && m.deviations(0, int64(len(values))) != deviations {
						t.Fatalf("exponent %d of a window from %d: squared differences, want %v", e, base, deviations)
					}
					if in := e >= base && e <= base+a.window.width; in != (m.wide == nil) {
						t.Fatalf("exponent %d of a window from %d of %d: superaccumulator %v", e, base, a.window.width, m.wide != nil)
					}
				}
				// The moment of as many of the largest values as there may be rows.
				s := newState(a, extent{}, 1)
				m := &s.extra.(*floatMoments).m[0]
				m.addFloat(math.Float64bits(edge(base+a.window.width)), base)
				if kind == accFloatMoments {
					m.addFloatSquare(math.Float64bits(edge(base+a.window.width)), base)
				}
				q := m.sumSquares()
				for n := int64(1); n < rows; n *= 2 {
					m.merge(m)
					q.Lsh(q, 1)
				}
				if got := m.sum(); (got.Sign() < 0) != (sign < 0) {
					t.Fatalf("%d rows: the sum overflows", rows)
				}
				if m.sumSquares().Cmp(q) != 0 {
					t.Fatalf("%d rows: the sum of squares overflows", rows)
				}
			}
		}
	}
}

// TestSuperSumCarries moves carries through all chunks.
func TestSuperSumCarries(t *testing.T) {
	s, o := newSuperMoment(true), newSuperMoment(true)
	want := new(big.Int)
	r := rand.New(rand.NewPCG(3, 3))
	for i := range 20000 {
		x := r.Uint64() &^ (1 << 62) // finite
		to := s
		if i%3 == 0 {
			to = o
		}
		to.add(x)
		v, _ := new(big.Float).SetPrec(4000).SetFloat64(math.Float64frombits(x)).SetMantExp(new(big.Float).SetPrec(4000).SetFloat64(math.Float64frombits(x)), 1074).Int(nil)
		want.Add(want, v)
		if i%1000 == 999 {
			to.sum.carry()
			to.squares.carry()
		}
	}
	s.merge(o)
	if s.sum.big().Cmp(want) != 0 {
		t.Error("the sum is wrong")
	}
}

func TestRoundFixed(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 100000 {
		v := momentOf(r)
		exp := r.IntN(2400) - 1300
		got, want := roundFixed(v.sum(), exp), roundBig(v.sum().Big(), exp)
		if got != want {
			t.Fatalf("%v * 2^%d: %v, want %v", v.sum().Big(), exp, got, want)
		}
	}
}

// momentOf draws a sum whose bits are often all alike, so that it lies between two
// doubles.
func momentOf(r *rand.Rand) *moment {
	m := &moment{s0: r.Uint64(), s1: r.Uint64()}
	switch n := uint(r.IntN(64)); r.IntN(4) {
	case 0:
		m.s0 = 1 << n
	case 1:
		m.s0, m.s1 = m.s0&^(1<<n-1), m.s1>>n
	case 2:
		m.s1 = uint64(int64(m.s1) >> n)
	}
	return m
}

func FuzzFloatSums(f *testing.F) {
	f.Add(uint64(1), uint16(200), uint8(0), uint8(1), int64(300))
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, shape, groups uint8, rows int64) {
		r := rand.New(rand.NewPCG(seed, 9))
		checkFloats(t, r, int(n)%3000, int(shape)%6, 1+int(groups)%9, max(rows, int64(n)+1))
	})
}

func TestIntMoments(t *testing.T) {
	for _, bounds := range [][2]int64{{-5, 9}, {-smallSquare, smallSquare}, {-smallSquare - 1, 0}, {math.MinInt64, math.MaxInt64}} {
		for _, groups := range []int{1, 4} {
			for _, n := range edgeLengths {
				r := rand.New(rand.NewPCG(uint64(n), 2))
				a := &acc{kind: accMoments, arg: &node{lo: bounds[0], hi: bounds[1]}}
				pairs := make([]pair, n)
				for i := range pairs {
					x := bounds[r.IntN(2)]
					if r.IntN(2) == 0 {
						x = int64(r.Uint64()) >> r.IntN(64)
						x = min(max(x, bounds[0]), bounds[1])
					}
					pairs[i] = pair{uint32(r.IntN(groups)), x}
				}
				s, o := newState(a, extent{}, groups), newState(a, extent{}, groups)
				feed(r, a, s, pairs[:n/2], groups == 1)
				feed(r, a, o, pairs[n/2:], false)
				mapped := make([]uint32, groups)
				for g := range mapped {
					mapped[g] = uint32(g)
				}
				mergeSome(r, a, s, o, mapped)
				for g := range groups {
					sum, squares := new(big.Int), new(big.Int)
					for _, p := range pairs {
						if int(p.g) == g {
							b := big.NewInt(p.x)
							sum.Add(sum, b)
							squares.Add(squares, b.Mul(b, b))
						}
					}
					m := &s.extra.(*intMoments).m[g]
					if m.sum().Big().Cmp(sum) != 0 || m.sumSquares().Cmp(squares) != 0 {
						t.Fatalf("%v, %d rows: %v, %v; want %v, %v", bounds, n, m.sum().Big(), m.sumSquares(), sum, squares)
					}
				}
			}
		}
	}
}
