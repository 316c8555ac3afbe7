package olap

import (
	"math/big"
	"math/bits"

	"pgaccel/internal/processors"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// extra is what an accumulator keeps of its groups where a word or two do not do:
// power sums, sets, lists.
type extra interface {
	// grow makes room for n groups; it is called with ascending n.
	grow(n int)
	// add adds values that are not null: vals[k] to group index[k], or all of them to
	// group 0 where index is nil.
	add(index []uint32, vals []int64)
	// mergeAll is state.mergeAll. It may keep parts of from, which it does not change.
	mergeAll(from extra, of, to []uint32)
	bytes() int64
}

// moment holds the power sums of one group: the sum of the values, in 128 bits of
// two's complement (s0 low), and that of their squares, in 192 bits without a sign.
//
// The squares of 2^63 values of 64 bits need 189 bits: integers never overflow it.
// For doubles see floatWindow.
type moment struct {
	s0, s1, q0, q1, q2 uint64
}

// merge adds the power sums of another group.
func (m *moment) merge(o *moment) {
	var c uint64
	m.s0, c = bits.Add64(m.s0, o.s0, 0)
	m.s1, _ = bits.Add64(m.s1, o.s1, c)
	m.q0, c = bits.Add64(m.q0, o.q0, 0)
	m.q1, c = bits.Add64(m.q1, o.q1, c)
	m.q2, _ = bits.Add64(m.q2, o.q2, c)
}

// addInt adds one value. It is the reference of intMoments' loops.
func (m *moment) addInt(x int64) {
	var c uint64
	m.s0, c = bits.Add64(m.s0, uint64(x), 0)
	m.s1, _ = bits.Add64(m.s1, uint64(x>>63), c)
	a := uint64(x)
	if x < 0 {
		a = -a
	}
	hi, lo := bits.Mul64(a, a)
	m.q0, c = bits.Add64(m.q0, lo, 0)
	m.q1, c = bits.Add64(m.q1, hi, c)
	m.q2 += c
}

// sum returns the sum of the values.
func (m *moment) sum() vector.Int128 { return vector.Int128{Hi: int64(m.s1), Lo: m.s0} }

// sumSquares returns the sum of the values' squares.
func (m *moment) sumSquares() *big.Int {
	b := new(big.Int).SetUint64(m.q2)
	b.Lsh(b, 64).Add(b, new(big.Int).SetUint64(m.q1))
	return b.Lsh(b, 64).Add(b, new(big.Int).SetUint64(m.q0))
}

// variance computes an aggregate of the variance family of n values (vector.Variance).
func (m *moment) variance(n int64, scale int16, f *sqlfn.Aggregate) (d vector.Decimal, null, ok bool) {
	if sum, fits := m.sum().Int64(); fits && m.q1|m.q2 == 0 {
		if d, null, ok = vector.VarianceWords(n, sum, m.q0, scale, f.Sample, f.Root); ok {
			return d, null, true
		}
	}
	return vector.Variance(n, m.sum().Big(), m.sumSquares(), scale, f.Sample, f.Root)
}

// intMoments are the power sums of integers, or of the unscaled integers of numerics.
type intMoments struct {
	m []moment
	// small: a square fits 64 bits, their sum 128.
	small bool
}

// smallSquare is the largest integer whose square fits 64 bits.
const smallSquare = 1<<32 - 1

func newIntMoments(a *acc) *intMoments {
	return &intMoments{small: magnitude(a.arg.lo, a.arg.hi) <= smallSquare}
}

func (e *intMoments) grow(n int) { e.m = append(e.m, make([]moment, n-len(e.m))...) }

func (e *intMoments) bytes() int64 { return int64(len(e.m)) * 40 }

func (e *intMoments) add(index []uint32, vals []int64) {
	switch {
	case index == nil && e.small:
		t := e.m[0]
		var c uint64
		for _, x := range vals {
			t.s0, c = bits.Add64(t.s0, uint64(x), 0)
			t.s1, _ = bits.Add64(t.s1, uint64(x>>63), c)
			t.q0, c = bits.Add64(t.q0, uint64(x*x), 0)
			t.q1 += c
		}
		e.m[0] = t
	case index == nil:
		t := e.m[0]
		for _, x := range vals {
			t.addInt(x)
		}
		e.m[0] = t
	case e.small:
		vals = vals[:len(index)]
		var c uint64
		for k, g := range index {
			m, x := &e.m[g], vals[k]
			m.s0, c = bits.Add64(m.s0, uint64(x), 0)
			m.s1, _ = bits.Add64(m.s1, uint64(x>>63), c)
			m.q0, c = bits.Add64(m.q0, uint64(x*x), 0)
			m.q1 += c
		}
	default:
		vals = vals[:len(index)]
		for k, g := range index {
			e.m[g].addInt(vals[k])
		}
	}
}

func (e *intMoments) mergeAll(from extra, of, to []uint32) {
	f := from.(*intMoments)
	eachPair(of, to, func(j, i uint32) { e.m[i].merge(&f.m[j]) })
}

// turnGroups is how many groups are merged between two looks at the clock.
const turnGroups = 256

// eachPair calls f with of[k], or k where of is nil, and to[k]. It lets others have the core as
// workers do between tiles (processors.Turn).
func eachPair(of, to []uint32, f func(j, i uint32)) {
	var core processors.Turn
	for k, i := range to {
		j := uint32(k)
		if of != nil {
			j = of[k]
		}
		f(j, i)
		if k%turnGroups == turnGroups-1 {
			core.Next()
		}
	}
}
