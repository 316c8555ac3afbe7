package olap

import (
	"math"
	"math/big"
	"math/bits"

	"pgaccel/vector"
)

// superMoment holds the exact power sums of any finite doubles of one group.
type superMoment struct {
	sum     superSum
	squares superSum // nil chunks where they are not kept
}

const (
	// The sum counts in units of 2^-1074, the sum of squares in units of 2^-2148. Beyond
	// the largest value there is a chunk for the carries of 2^63 additions and more.
	sumChunks    = (2046+53)/32 + 4
	squareChunks = (2*2046+106)/32 + 4
	superBytes   = 8 * (sumChunks + squareChunks)
)

func newSuperMoment(squares bool) *superMoment {
	s := &superMoment{sum: superSum{chunks: make([]int64, sumChunks)}}
	if squares {
		s.squares.chunks = make([]int64, squareChunks)
	}
	return s
}

// add adds a finite double.
func (s *superMoment) add(x uint64) {
	m, at := split(x, 1)
	if x>>52&0x7ff == 0 {
		at = 0 // subnormal: as those of exponent 1
	}
	s.sum.add(0, m, at, int64(x)>>63)
	if s.squares.chunks != nil {
		hi, lo := bits.Mul64(m, m)
		s.squares.add(hi, lo, 2*at, 0)
	}
}

func (s *superMoment) merge(o *superMoment) {
	s.sum.merge(&o.sum)
	if s.squares.chunks != nil {
		s.squares.merge(&o.squares)
	}
}

// superSum is a superaccumulator: chunks[i] counts 2^(32*i). A chunk takes 2^30
// additions of up to 32 bits before carries must move on.
type superSum struct {
	chunks  []int64
	pending int // additions since the carries moved
}

// add adds (hi*2^64 + lo) * 2^at, hi < 2^43, negated where sign is -1 (else 0).
func (s *superSum) add(hi, lo uint64, at uint, sign int64) {
	i, r := at/32, at%32
	w := [3]uint64{lo << r, hi<<r | lo>>1>>(63-r), hi >> 1 >> (63 - r)}
	for k, v := range w {
		if v == 0 {
			continue
		}
		s.chunks[int(i)+2*k] += (int64(v&math.MaxUint32) ^ sign) - sign
		s.chunks[int(i)+2*k+1] += (int64(v>>32) ^ sign) - sign
	}
	if s.pending++; s.pending == 1<<29 {
		s.carry()
	}
}

// carry leaves 32 bits, without a sign, in all chunks but the last.
func (s *superSum) carry() {
	c := int64(0)
	last := len(s.chunks) - 1
	for i, v := range s.chunks[:last] {
		v += c
		s.chunks[i] = v & math.MaxUint32
		c = v >> 32
	}
	s.chunks[last] += c
	s.pending = 0
}

func (s *superSum) merge(o *superSum) {
	s.carry()
	for i, v := range o.chunks {
		s.chunks[i] += v
	}
	// o's chunks hold the additions that it has pending, and the bits left by a carry.
	if s.pending = o.pending + 2; s.pending >= 1<<29 {
		s.carry()
	}
}

// big returns the sum in the units of the lowest chunk.
func (s *superSum) big() *big.Int {
	b := new(big.Int)
	for i := len(s.chunks) - 1; i >= 0; i-- {
		b.Lsh(b, 32).Add(b, big.NewInt(s.chunks[i]))
	}
	return b
}

// roundBig returns b * 2^exp rounded to nearest, ties to even.
func roundBig(b *big.Int, exp int) float64 {
	f := new(big.Float).SetInt(b) // as many bits as b has
	f.SetMantExp(f, exp)
	r, _ := f.Float64()
	return r
}

// roundFixed is roundBig of 128 bits.
func roundFixed(v vector.Int128, exp int) float64 {
	if exp < -1000 || exp > 800 {
		return roundBig(v.Big(), exp) // it may be subnormal, or too large
	}
	hi, lo, sign := uint64(v.Hi), v.Lo, uint64(0)
	if v.Hi < 0 {
		m := v.Neg()
		hi, lo, sign = uint64(m.Hi), m.Lo, 1<<63
	}
	if hi != 0 {
		// The 64 leading bits, the last of which says whether anything is lost: that is
		// all that rounding to 53 needs.
		n := uint(bits.Len64(hi))
		lost := lo<<(64-n) != 0
		lo = hi<<(64-n) | lo>>n
		if lost {
			lo |= 1
		}
		exp += int(n)
	}
	f := math.Ldexp(float64(lo), exp)
	return math.Float64frombits(math.Float64bits(f) | sign)
}

func (e *floatMoments) oddOf(g uint32) uint8 {
	if e.odd == nil {
		return 0
	}
	return e.odd[g]
}

// minusOf returns the number of negative zeros of group g.
func (e *floatMoments) minusOf(g uint32) int64 {
	if e.minus == nil {
		return 0
	}
	return e.minus[g]
}

// total returns the sum of group g with what odd values make of it.
func (e *floatMoments) total(g uint32, odd uint8) float64 {
	switch odd {
	case 0:
		return e.sum(g)
	case floatInf:
		return math.Inf(1)
	case floatNegInf:
		return math.Inf(-1)
	}
	return math.NaN()
}

// sum returns the sum of the finite values of group g, +0 where it is zero.
func (e *floatMoments) sum(g uint32) float64 {
	m := &e.m[g]
	base := int(e.window.base.Load())
	if s := e.wide[g]; s != nil {
		return roundBig(e.exactSum(g, s), -1074)
	}
	return roundFixed(m.sum(), base-1075)
}

// exactSum returns the sum of group g in units of 2^-1074.
func (e *floatMoments) exactSum(g uint32, s *superMoment) *big.Int {
	b := e.m[g].sum().Big()
	if base := e.window.base.Load(); base > 1 {
		b.Lsh(b, uint(base-1))
	}
	return b.Add(b, s.sum.big())
}

// deviations returns the sum of the squared differences from the mean of the n values of
// group g, rounded once: what Postgres calls Sxx.
func (e *floatMoments) deviations(g uint32, n int64) float64 {
	var sum, squares *big.Int
	unit := -1074 // of sum; that of squares is twice that
	if s := e.wide[g]; s != nil {
		sum = e.exactSum(g, s)
		squares = e.m[g].sumSquares()
		if base := e.window.base.Load(); base > 1 {
			squares.Lsh(squares, 2*uint(base-1))
		}
		squares.Add(squares, s.squares.big())
	} else {
		sum, squares = e.m[g].sum().Big(), e.m[g].sumSquares()
		unit = int(e.window.base.Load()) - 1075
	}
	// (n * sum(x^2) - sum(x)^2) / n
	count := big.NewInt(n)
	squares.Mul(squares, count).Sub(squares, sum.Mul(sum, sum))
	if squares.Sign() <= 0 {
		return 0
	}
	q := new(big.Float).SetPrec(53).Quo(new(big.Float).SetInt(squares), new(big.Float).SetInt64(n))
	q.SetMantExp(q, 2*unit)
	f, _ := q.Float64()
	return f
}
