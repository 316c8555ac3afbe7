package vector

import (
	"math/big"
	"strings"
)

// Decimal is an exact numeric: Unscaled * 10^-Scale. Scale is Postgres' display
// scale (dscale) and part of the value: 1.5 and 1.50 are equal but print apart.
type Decimal struct {
	Unscaled Int128
	Scale    int16
}

// AppendText appends the value as Postgres prints it, always with Scale digits
// after the point.
func (d Decimal) AppendText(dst []byte) []byte {
	var buf [MaxDigits]byte
	digits := d.Unscaled.Digits(&buf)
	if d.Unscaled.Sign() < 0 {
		dst = append(dst, '-')
	}
	scale := int(d.Scale)
	if whole := len(digits) - scale; whole > 0 {
		dst = append(dst, digits[:whole]...)
		digits = digits[whole:]
	} else {
		dst = append(dst, '0')
	}
	if scale > 0 {
		dst = append(dst, '.')
		for i := len(digits); i < scale; i++ {
			dst = append(dst, '0')
		}
		dst = append(dst, digits...)
	}
	return dst
}

// String returns the value as Postgres prints it.
func (d Decimal) String() string { return string(d.AppendText(nil)) }

// ParseDecimal reads digits with an optional sign and point, as in an SQL
// literal without exponent. ok is false for anything else, and for values of
// more than 38 digits.
func ParseDecimal(s string) (d Decimal, ok bool) {
	body := strings.TrimLeft(s, "+-")
	if len(s)-len(body) > 1 || body == "" || body == "." {
		return d, false
	}
	whole, frac, _ := strings.Cut(body, ".")
	digits := whole + frac
	for i := 0; i < len(digits); i++ {
		if digits[i] < '0' || digits[i] > '9' {
			return d, false
		}
	}
	if len(strings.TrimLeft(digits, "0")) > 38 || len(frac) > 1000 {
		return d, false
	}
	b, good := new(big.Int).SetString(digits, 10)
	if !good {
		return d, false
	}
	if s[0] == '-' {
		b.Neg(b)
	}
	u, good := Int128FromBig(b)
	return Decimal{Unscaled: u, Scale: int16(len(frac))}, good
}

var pow10 = func() (p [19]int64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return
}()

// Pow10 returns 10^n for 0 <= n <= 18.
func Pow10(n int) int64 { return pow10[n] }

// BigPow10 returns 10^n for any n >= 0.
func BigPow10(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// Rescale returns d with another scale, exactly. ok is false where digits would
// be lost or 128 bits overflow.
func (d Decimal) Rescale(scale int16) (Decimal, bool) {
	if scale == d.Scale {
		return d, true
	}
	if r, ok, known := d.rescaleWords(scale); known {
		return r, ok
	}
	return d.rescaleBig(scale)
}

func (d Decimal) rescaleBig(scale int16) (Decimal, bool) {
	b := d.Unscaled.Big()
	if scale > d.Scale {
		b.Mul(b, BigPow10(int(scale-d.Scale)))
	} else {
		var r big.Int
		b.QuoRem(b, BigPow10(int(d.Scale-scale)), &r)
		if r.Sign() != 0 {
			return d, false
		}
	}
	u, ok := Int128FromBig(b)
	return Decimal{Unscaled: u, Scale: scale}, ok
}

// Add returns the sum of two values, of the larger scale. ok is false where it has more than 127
// bits.
func (d Decimal) Add(o Decimal) (sum Decimal, ok bool) {
	scale := max(d.Scale, o.Scale)
	d, okD := d.Rescale(scale)
	o, okO := o.Rescale(scale)
	u := d.Unscaled.Add(o.Unscaled)
	overflows := (d.Unscaled.Hi < 0) == (o.Unscaled.Hi < 0) && (u.Hi < 0) != (d.Unscaled.Hi < 0)
	return Decimal{Unscaled: u, Scale: scale}, okD && okO && !overflows
}

// Div returns the quotient a/b as Postgres' numeric_div rounds it: the scale of
// select_div_scale (src/backend/utils/adt/numeric.c), half away from zero.
// ok is false for division by zero and for results of more than 127 bits.
func Div(a, b Decimal) (q Decimal, ok bool) {
	if b.Unscaled.Sign() == 0 {
		return q, false
	}
	if q, known := divWords(a, b); known {
		return q, true
	}
	return divBig(a, b)
}

// divBig is Div for numbers of any size, but a divisor of zero.
func divBig(a, b Decimal) (q Decimal, ok bool) {
	num, den := a.Unscaled.Big(), b.Unscaled.Big()
	scale := quotientScale(num, int(a.Scale), den, int(b.Scale))
	u, ok := Int128FromBig(roundedQuotient(num, int(a.Scale), den, int(b.Scale), scale))
	return Decimal{Unscaled: u, Scale: int16(scale)}, ok
}

// roundedQuotient returns num*10^-numScale / (den*10^-denScale) as an unscaled integer of
// the given scale, rounded half away from zero. den must not be 0.
func roundedQuotient(num *big.Int, numScale int, den *big.Int, denScale, scale int) *big.Int {
	n, d := new(big.Int).Abs(num), new(big.Int).Abs(den)
	if e := scale + denScale - numScale; e >= 0 {
		n.Mul(n, BigPow10(e))
	} else {
		d.Mul(d, BigPow10(-e))
	}
	n.Lsh(n, 1)
	n.Add(n, d)
	d.Lsh(d, 1)
	n.Quo(n, d)
	if num.Sign()*den.Sign() < 0 {
		n.Neg(n)
	}
	return n
}

// quotientScale is select_div_scale: at least NUMERIC_MIN_SIG_DIGITS (16) significant
// digits, and no fewer decimals than either operand shows. It works on base-10000
// digits: each operand's first non-zero digit and its weight.
func quotientScale(num *big.Int, numScale int, den *big.Int, denScale int) int {
	f1, w1 := firstDigit(num, numScale)
	f2, w2 := firstDigit(den, denScale)
	q := w1 - w2
	if f1 <= f2 {
		q--
	}
	return min(max(16-4*q, numScale, denScale, 0), 1000)
}

// firstDigit returns the most significant base-10000 digit of n * 10^-scale and its
// weight (the power of 10000 it stands for); both 0 for zero.
func firstDigit(n *big.Int, scale int) (digit, weight int) {
	s := new(big.Int).Abs(n).String()
	if s == "0" {
		return 0, 0
	}
	// The decimal exponent of the first digit of s, then of its base-10000 group.
	exp := len(s) - 1 - scale
	weight = exp / 4
	if exp < 0 && exp%4 != 0 {
		weight--
	}
	k := exp - 4*weight + 1 // digits of s in the first group
	for i := range k {
		digit *= 10
		if i < len(s) {
			digit += int(s[i] - '0')
		}
	}
	return digit, weight
}
