package vector

import (
	"math"
	"math/bits"
)

// What most decimals need is computed in words of 64 bits: without memory, and ten times faster
// than by math/big, whose forms remain for the others.

// word128 is a magnitude, or a step on the way to one.
type word128 struct{ hi, lo uint64 }

// magnitude returns |a|.
func (a Int128) magnitude() word128 {
	if a.Hi < 0 {
		a = a.Neg() // the smallest value stays as it is and is right as unsigned
	}
	return word128{uint64(a.Hi), a.Lo}
}

// signed returns the number of that magnitude; ok is false where it has more than 127 bits.
func (w word128) signed(negative bool) (a Int128, ok bool) {
	a = Int128{Hi: int64(w.hi), Lo: w.lo}
	if negative {
		a = a.Neg()
	}
	return a, w.hi <= math.MaxInt64
}

// wordDigits is the exponent of the largest power of ten that 64 bits hold.
const wordDigits = 19

var wordPow10 = func() (p [wordDigits + 1]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return
}()

// times returns w*m; ok is false where that needs more than 128 bits.
func (w word128) times(m uint64) (r word128, ok bool) {
	carry, lo := bits.Mul64(w.lo, m)
	over, mid := bits.Mul64(w.hi, m)
	hi, c := bits.Add64(mid, carry, 0)
	return word128{hi, lo}, over == 0 && c == 0
}

// shifted returns w*10^n, n >= 0; ok is false where that needs more than 128 bits.
func (w word128) shifted(n int) (r word128, ok bool) {
	if n > 2*wordDigits {
		return w, w == word128{}
	}
	r, ok = w.times(wordPow10[min(n, wordDigits)])
	if n > wordDigits && ok {
		r, ok = r.times(wordPow10[n-wordDigits])
	}
	return r, ok
}

// dividedBy returns the quotient and the remainder.
func (w word128) dividedBy(d uint64) (q word128, rem uint64) {
	q.hi, rem = w.hi/d, w.hi%d
	q.lo, rem = bits.Div64(rem, w.lo, d)
	return q, rem
}

// digitsOf returns how many decimal digits n > 0 has.
func digitsOf(n uint64) int {
	d := bits.Len64(n) * 1233 >> 12 // log10(2), rounded
	if n >= wordPow10[d] {
		d++
	}
	return d
}

// firstDigit is firstDigit of the number whose magnitude is w.
func (w word128) firstDigit(scale int) (digit, weight int) {
	if w == (word128{}) {
		return 0, 0
	}
	n, dropped := w.lo, 0
	if w.hi != 0 {
		// What is left has at least 9 digits, of which 4 matter.
		for w.hi != 0 {
			w, _ = w.dividedBy(wordPow10[10])
			dropped += 10
		}
		n = w.lo
	}
	digits := digitsOf(n)
	exp := digits + dropped - 1 - scale
	weight = exp >> 2
	k := exp - 4*weight + 1 // digits in the first group
	if digits >= k {
		return int(n / wordPow10[digits-k]), weight
	}
	return int(n * wordPow10[k-digits]), weight
}

// quotientScaleOf is quotientScale.
func quotientScaleOf(num word128, numScale int, den word128, denScale int) int {
	f1, w1 := num.firstDigit(numScale)
	f2, w2 := den.firstDigit(denScale)
	q := w1 - w2
	if f1 <= f2 {
		q--
	}
	return min(max(16-4*q, numScale, denScale, 0), 1000)
}

// divWords is divBig where the dividend, raised to the scale of the quotient, has 256 bits and
// the divisor 128; known is false where they have not.
func divWords(a, b Decimal) (q Decimal, known bool) {
	num, den := a.Unscaled.magnitude(), b.Unscaled.magnitude()
	scale := quotientScaleOf(num, int(a.Scale), den, int(b.Scale))
	n, d, ok := num, den, false
	e := scale + int(b.Scale) - int(a.Scale)
	if e >= 0 {
		n, ok = num.shifted(e)
	} else if d, ok = den.shifted(-e); !ok {
		return q, false
	}
	var r, rem word128
	if ok && d.hi == 0 {
		r, rem.lo = n.dividedBy(d.lo)
	} else if r, rem, ok = num.wide(max(e, 0)).dividedBy(d); !ok {
		return q, false
	}
	if rest := d.minus(rem); !rem.less(rest) { // half away from zero
		var carry uint64
		r.lo, carry = bits.Add64(r.lo, 1, 0)
		if r.hi, carry = bits.Add64(r.hi, 0, carry); carry != 0 {
			return q, false
		}
	}
	u, ok := r.signed((a.Unscaled.Hi < 0) != (b.Unscaled.Hi < 0))
	return Decimal{Unscaled: u, Scale: int16(scale)}, ok
}

// rescaleWords is rescaleBig; known is false for numbers too large for it.
func (d Decimal) rescaleWords(scale int16) (r Decimal, ok, known bool) {
	w := d.Unscaled.magnitude()
	if e := int(scale) - int(d.Scale); e >= 0 {
		w, known = w.shifted(e)
	} else {
		if e < -wordDigits {
			return r, false, false
		}
		var rem uint64
		if w, rem = w.dividedBy(wordPow10[-e]); rem != 0 {
			return d, false, true
		}
		known = true
	}
	u, fits := w.signed(d.Unscaled.Hi < 0)
	return Decimal{Unscaled: u, Scale: scale}, true, known && fits
}
