package olap

import (
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"pgaccel/internal/simd"
	"pgaccel/vector"
)

// Sums of doubles are exact, and rounded once at the end: they depend neither on the
// order of the rows nor on the number of workers. Postgres rounds after each row, in
// the order in which it meets them: its sum differs from ours by what those roundings
// add up to.
//
// A double is m * 2^(e-1075) with 53 bits of m and e its biased exponent, 1 for the
// subnormal ones. Where e lies in a window of some dozen exponents, m is shifted by its
// distance from the window's base and added to the moment of its group, which is a
// fixed-point number then: no rounding, no branch. What lies outside goes to a
// superaccumulator (Neal, Fast exact summation using small and large superaccumulators,
// 2015, section 2: chunks of 32 bits with room for carries) that the group gets when it
// needs it first.
//
// Where there is one group only, the m of a tile are first added up by exponent (the bins
// of Neal's large superaccumulator, section 3), which needs no shifts.

// floatWindow is what the states of one accumulator share: which exponents its moments
// hold. The sums do not depend on it, only their speed.
type floatWindow struct {
	base  atomic.Int32 // biased exponent of the lowest bit; 0: not chosen
	width int32        // exponents base to base+width fit
	// squares are kept as well.
	squares bool
}

// newFloatWindow returns a window for at most rows values.
func newFloatWindow(rows int64, squares bool) *floatWindow {
	room := bits.Len64(uint64(rows))
	w := &floatWindow{squares: squares}
	if squares {
		w.width = int32(min((192-106-room)/2, 31))
	} else {
		w.width = int32(min(127-53-room, 63))
	}
	w.width = max(w.width, 0)
	return w
}

// choose fixes the window where none is: for values like those of biased exponents up to
// top, and some larger ones.
func (w *floatWindow) choose(top int32) int32 {
	base := min(max(top+min(8, w.width/4)-w.width, 1), 2046-w.width)
	if w.base.CompareAndSwap(0, base) {
		return base
	}
	return w.base.Load()
}

// What is no finite number, by group.
const (
	floatInf    = 1 << iota // +Infinity came
	floatNegInf             // -Infinity
	floatNaN                // the usual NaN
	floatOddNaN             // another NaN
)

// floatMoments are the power sums of doubles.
type floatMoments struct {
	m      []moment
	window *floatWindow
	wide   map[uint32]*superMoment
	odd    []uint8    // nil: only finite numbers came
	minus  []int64    // negative zeros; nil: none came
	bins   *floatBins // of group 0, empty between calls
	most   uint64     // the largest magnitude of a finite value: its bits, shifted left by one
}

func newFloatMoments(w *floatWindow) *floatMoments { return &floatMoments{window: w} }

func (e *floatMoments) grow(n int) {
	e.m = append(e.m, make([]moment, n-len(e.m))...)
	if e.odd != nil {
		e.odd = append(e.odd, make([]uint8, n-len(e.odd))...)
	}
	if e.minus != nil {
		e.minus = append(e.minus, make([]int64, n-len(e.minus))...)
	}
}

func (e *floatMoments) bytes() int64 {
	n := int64(len(e.m))*40 + int64(len(e.odd)+len(e.minus)*8) + int64(len(e.wide))*superBytes
	if e.bins != nil {
		n += int64(unsafe.Sizeof(*e.bins))
	}
	return n
}

func (e *floatMoments) add(index []uint32, vals []int64) {
	if index == nil {
		for len(vals) > 0 {
			n := min(len(vals), binRows)
			e.addBinned(vals[:n])
			vals = vals[n:]
		}
		return
	}
	least, most, minus := magnitudes(vals)
	// Biased exponents; low is 0 where there are only zeros, too.
	low, high := int32((least+1)>>53), int32(most>>53)
	base := e.base(high)
	switch {
	case minus || most > 0 && (low < base || base == 0 || high > base+e.window.width):
		for k, x := range vals {
			e.addOne(index[k], x, base)
		}
		return
	case e.window.squares:
		e.addSquares(index, vals, uint64(base))
	default:
		e.addSums(index, vals, uint64(base))
	}
	e.most = max(e.most, most)
}

// magnitudes returns the least and the largest magnitude as integers (the bits, shifted
// left by one, the least less one so that zeros do not count), and whether there may be
// negative zeros.
func magnitudes(vals []int64) (least, most uint64, minus bool) {
	if lo, hi := simd.Bounds(vals); lo > 0 {
		return uint64(lo)<<1 - 1, uint64(hi) << 1, false
	}
	least = math.MaxUint64
	for _, x := range vals {
		u := uint64(x) << 1
		least, most = min(least, u-1), max(most, u)
		minus = minus || x == math.MinInt64
	}
	return least, most, minus
}

// base returns the window's base, which it chooses for values of exponents up to high
// where nobody has; 0 where there is no telling yet.
func (e *floatMoments) base(high int32) int32 {
	base := e.window.base.Load()
	if base == 0 && high > 0 && high < 0x7ff {
		base = e.window.choose(high)
	}
	return base
}

const fraction = 1<<52 - 1

// addSums is moment.addFloat of values within the window.
func (e *floatMoments) addSums(index []uint32, vals []int64, base uint64) {
	m := e.m
	vals = vals[:len(index)]
	for k, g := range index {
		x := uint64(vals[k])
		exp := x >> 52 & 0x7ff
		v := x&fraction | (exp+0x7ff)>>11<<52
		shift := (exp - base) & 63
		sign := uint64(int64(x) >> 63)
		t := &m[g]
		var c uint64
		t.s0, c = bits.Add64(t.s0, v<<shift^sign, sign&1)
		t.s1, _ = bits.Add64(t.s1, v>>1>>(^shift&63)^sign, c)
	}
}

// addSquares is addSums and moment.addFloatSquare.
func (e *floatMoments) addSquares(index []uint32, vals []int64, base uint64) {
	m := e.m
	vals = vals[:len(index)]
	for k, g := range index {
		x := uint64(vals[k])
		exp := x >> 52 & 0x7ff
		v := x&fraction | (exp+0x7ff)>>11<<52
		shift := (exp - base) & 63
		sign := uint64(int64(x) >> 63)
		t := &m[g]
		var c uint64
		t.s0, c = bits.Add64(t.s0, v<<shift^sign, sign&1)
		t.s1, _ = bits.Add64(t.s1, v>>1>>(^shift&63)^sign, c)
		hi, lo := bits.Mul64(v, v)
		shift = shift * 2 & 63
		t.q0, c = bits.Add64(t.q0, lo<<shift, 0)
		t.q1, c = bits.Add64(t.q1, hi<<shift|lo>>1>>(^shift&63), c)
		t.q2, _ = bits.Add64(t.q2, hi>>1>>(^shift&63), c)
	}
}

// split returns the integer m of a double's bits, and its biased exponent less base.
func split(x uint64, base int32) (m uint64, shift uint) {
	exp := x >> 52 & 0x7ff
	// Subnormal numbers have no leading one; of those only zero is within a window.
	return x&fraction | (exp+0x7ff)>>11<<52, uint(exp) - uint(base)
}

// addFloat adds a zero or a double whose exponent is within the window.
func (m *moment) addFloat(x uint64, base int32) {
	v, shift := split(x, base)
	shift &= 63
	sign := uint64(int64(x) >> 63)
	lo := v << shift
	hi := v >> 1 >> (63 - shift)
	var c uint64
	m.s0, c = bits.Add64(m.s0, lo^sign, sign&1)
	m.s1, _ = bits.Add64(m.s1, hi^sign, c)
}

// addFloatSquare is addFloat of the square, in a window of at most 31 exponents.
func (m *moment) addFloatSquare(x uint64, base int32) {
	v, shift := split(x, base)
	shift = shift * 2 & 63
	hi, lo := bits.Mul64(v, v)
	var c uint64
	m.q0, c = bits.Add64(m.q0, lo<<shift, 0)
	m.q1, c = bits.Add64(m.q1, hi<<shift|lo>>1>>(63-shift), c)
	m.q2, _ = bits.Add64(m.q2, hi>>1>>(63-shift), c)
}

// addOne adds any double; base is the window's. It is the reference of add.
func (e *floatMoments) addOne(g uint32, x int64, base int32) {
	exp := int32(x >> 52 & 0x7ff)
	switch {
	case exp == 0x7ff:
		if e.odd == nil {
			e.odd = make([]uint8, len(e.m))
		}
		switch uint64(x) {
		case 0x7ff << 52:
			e.odd[g] |= floatInf
		case 0xfff << 52:
			e.odd[g] |= floatNegInf
		case vector.NaNBits:
			e.odd[g] |= floatNaN
		default:
			e.odd[g] |= floatOddNaN
		}
	case x == math.MinInt64:
		if e.minus == nil {
			e.minus = make([]int64, len(e.m))
		}
		e.minus[g]++
	case x == 0:
	case base != 0 && exp >= base && exp <= base+e.window.width:
		e.m[g].addFloat(uint64(x), base)
		if e.window.squares {
			e.m[g].addFloatSquare(uint64(x), base)
		}
		e.most = max(e.most, uint64(x)<<1)
	default:
		e.super(g).add(uint64(x))
		e.most = max(e.most, uint64(x)<<1)
	}
}

// super returns the superaccumulators of a group.
func (e *floatMoments) super(g uint32) *superMoment {
	s := e.wide[g]
	if s == nil {
		if e.wide == nil {
			e.wide = map[uint32]*superMoment{}
		}
		s = newSuperMoment(e.window.squares)
		e.wide[g] = s
	}
	return s
}

func (e *floatMoments) mergeAll(from extra, of, to []uint32) {
	f := from.(*floatMoments)
	e.most = max(e.most, f.most)
	if f.odd != nil && e.odd == nil {
		e.odd = make([]uint8, len(e.m))
	}
	if f.minus != nil && e.minus == nil {
		e.minus = make([]int64, len(e.m))
	}
	eachPair(of, to, func(j, i uint32) {
		e.m[i].merge(&f.m[j])
		if f.odd != nil {
			e.odd[i] |= f.odd[j]
		}
		if f.minus != nil {
			e.minus[i] += f.minus[j]
		}
		if s := f.wide[j]; s != nil {
			e.super(i).merge(s)
		}
	})
}
