package olap

import (
	"math"
	"math/bits"
)

// binRows is the number of values whose m, of 53 bits, can be added up in 63.
const binRows = 1 << 10

// floatBins are sums of the m of doubles by sign and exponent: the upper 12 bits.
type floatBins struct {
	sums    [4096]uint64
	squares [2048]struct{ lo, hi uint64 }
}

// addBinned adds at most binRows values to group 0.
func (e *floatMoments) addBinned(vals []int64) {
	if e.bins == nil {
		e.bins = &floatBins{}
	}
	b := e.bins
	least, most := uint64(math.MaxUint64), uint64(0) // as in add
	if e.window.squares {
		for _, x := range vals {
			u := uint64(x)
			w := u << 1
			least, most = min(least, w-1), max(most, w)
			m := u&fraction | 1<<52
			b.sums[u>>52] += m
			hi, lo := bits.Mul64(m, m)
			q := &b.squares[w>>53]
			var c uint64
			q.lo, c = bits.Add64(q.lo, lo, 0)
			q.hi, _ = bits.Add64(q.hi, hi, c)
		}
	} else {
		for _, x := range vals {
			u := uint64(x)
			w := u << 1
			least, most = min(least, w-1), max(most, w)
			b.sums[u>>52] += u&fraction | 1<<52
		}
	}
	low, high := int32((least+1)>>53), int32(most>>53)
	base := e.base(high)
	if most > 0 && low == 0 || high == 0x7ff {
		// Subnormal numbers have no leading one, which has been added; and there may be
		// what is no number. Begin again.
		*b = floatBins{}
		for _, x := range vals {
			e.addOne(0, x, base)
		}
		return
	}
	e.most = max(e.most, most)
	// Zeros were counted, in units of the leading one.
	if minus := b.sums[1<<11] >> 52; minus > 0 {
		if e.minus == nil {
			e.minus = make([]int64, len(e.m))
		}
		e.minus[0] += int64(minus)
	}
	b.sums[0], b.sums[1<<11] = 0, 0
	b.squares[0].lo, b.squares[0].hi = 0, 0
	for exp := low; exp <= high; exp++ {
		if b.sums[exp]|b.sums[exp|1<<11] != 0 {
			e.flush(exp, base)
		}
	}
}

// flush adds the bins of an exponent to group 0.
func (e *floatMoments) flush(exp, base int32) {
	b, m := e.bins, &e.m[0]
	sum := int64(b.sums[exp]) - int64(b.sums[exp|1<<11])
	b.sums[exp], b.sums[exp|1<<11] = 0, 0
	q := b.squares[exp]
	b.squares[exp].lo, b.squares[exp].hi = 0, 0
	if exp < base || exp > base+e.window.width {
		s := e.super(0)
		sign := sum >> 63
		s.sum.add(0, uint64(sum^sign)-uint64(sign), uint(exp-1), sign)
		if e.window.squares {
			s.squares.add(q.hi, q.lo, 2*uint(exp-1), 0)
		}
		return
	}
	shift := uint(exp-base) & 63
	var c uint64
	m.s0, c = bits.Add64(m.s0, uint64(sum)<<shift, 0)
	m.s1, _ = bits.Add64(m.s1, uint64(sum>>1>>(63-shift)), c)
	if e.window.squares {
		shift = shift * 2 & 63
		m.q0, c = bits.Add64(m.q0, q.lo<<shift, 0)
		m.q1, c = bits.Add64(m.q1, q.hi<<shift|q.lo>>1>>(63-shift), c)
		m.q2, _ = bits.Add64(m.q2, q.hi>>1>>(63-shift), c)
	}
}
