package vector

import "math/bits"

// Quotients of averages and deviations, which have 16 decimals and more: the dividend, raised to the
// scale of the quotient, has more than 128 bits, and the divisor often more than 64.

// word256 is a magnitude of four words, the lowest first.
type word256 [4]uint64

// wide returns w*10^n, n >= 0, all bits set where that needs more than 256 bits.
func (w word128) wide(n int) word256 {
	r := word256{w.lo, w.hi}
	for n > 0 {
		by, carry := wordPow10[min(n, wordDigits)], uint64(0)
		for i := range r {
			hi, lo := bits.Mul64(r[i], by)
			var c uint64
			r[i], c = bits.Add64(lo, carry, 0)
			carry = hi + c
		}
		if carry != 0 {
			return word256{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
		}
		n -= wordDigits
	}
	return r
}

func (w word128) less(v word128) bool { return w.hi < v.hi || w.hi == v.hi && w.lo < v.lo }

func (w word128) minus(v word128) (r word128) {
	var borrow uint64
	r.lo, borrow = bits.Sub64(w.lo, v.lo, 0)
	r.hi, _ = bits.Sub64(w.hi, v.hi, borrow)
	return r
}

// dividedBy returns the quotient and the remainder; ok is false where the quotient has more than
// 128 bits. d is not 0.
func (w word256) dividedBy(d word128) (q, rem word128, ok bool) {
	if d.hi == 0 {
		if w[3] != 0 || w[2] >= d.lo {
			return q, rem, false
		}
		q.hi, rem.lo = bits.Div64(w[2], w[1], d.lo)
		q.lo, rem.lo = bits.Div64(rem.lo, w[0], d.lo)
		return q, rem, true
	}
	top := word128{w[3], w[2]}
	if !top.less(d) {
		return q, rem, false
	}
	// Knuth's algorithm D (The Art of Computer Programming, volume 2, 4.3.1), whose divisor begins
	// with a one.
	s := uint(bits.LeadingZeros64(d.hi))
	d = word128{d.hi<<s | d.lo>>1>>(63-s), d.lo << s}
	for i := 3; i > 0; i-- {
		w[i] = w[i]<<s | w[i-1]>>1>>(63-s)
	}
	w[0] <<= s
	q.hi, rem = quotientDigit(word128{w[3], w[2]}, w[1], d)
	q.lo, rem = quotientDigit(rem, w[0], d)
	rem = word128{rem.hi >> s, rem.lo>>s | rem.hi<<1<<(63-s)}
	return q, rem, true
}

// quotientDigit divides u*2^64 + low by d, of which the highest bit is set; u < d.
func quotientDigit(u word128, low uint64, d word128) (q uint64, rem word128) {
	var rest, over uint64 // what the highest words leave, and whether that has more than 64 bits
	if u.hi == d.hi {
		q = ^uint64(0)
		rest, over = bits.Add64(u.lo, d.hi, 0)
	} else {
		q, rest = bits.Div64(u.hi, u.lo, d.hi)
	}
	for over == 0 {
		hi, lo := bits.Mul64(q, d.lo)
		if !(word128{rest, low}).less(word128{hi, lo}) {
			break
		}
		q--
		rest, over = bits.Add64(rest, d.hi, 0)
	}
	hi, lo := bits.Mul64(q, d.lo)
	rem = word128{u.lo, low}.minus(word128{hi, lo})
	rem.hi -= q * d.hi
	return q, rem
}
