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
	var digits []byte
	neg := false
	if v, ok := d.Unscaled.Int64(); ok && v != -1<<63 {
		if neg = v < 0; neg {
			v = -v
		}
		var buf [20]byte
		i := len(buf)
		for v > 0 || i == len(buf) {
			i--
			buf[i] = byte('0' + v%10)
			v /= 10
		}
		digits = buf[i:]
	} else {
		s := d.Unscaled.Big().String()
		if neg = s[0] == '-'; neg {
			s = s[1:]
		}
		digits = []byte(s)
	}
	if neg {
		dst = append(dst, '-')
	}
	scale := int(d.Scale)
	if len(digits) <= scale {
		dst = append(dst, '0', '.')
		for i := len(digits); i < scale; i++ {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	dst = append(dst, digits[:len(digits)-scale]...)
	if scale > 0 {
		dst = append(dst, '.')
		dst = append(dst, digits[len(digits)-scale:]...)
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

// Div returns the quotient a/b as Postgres' numeric_div rounds it: the scale of
// select_div_scale (src/backend/utils/adt/numeric.c), half away from zero.
// ok is false for division by zero and for results of more than 127 bits.
func Div(a, b Decimal) (q Decimal, ok bool) {
	if b.Unscaled.Sign() == 0 {
		return q, false
	}
	scale := divScale(a, b)
	num, den := a.Unscaled.Big(), b.Unscaled.Big()
	// a/10^sa / (b/10^sb) * 10^scale = a * 10^(scale+sb-sa) / b
	if e := scale + int(b.Scale) - int(a.Scale); e >= 0 {
		num.Mul(num, BigPow10(e))
	} else {
		den.Mul(den, BigPow10(-e))
	}
	neg := num.Sign()*den.Sign() < 0
	num.Abs(num)
	den.Abs(den)
	num.Lsh(num, 1)
	num.Add(num, den)
	den.Lsh(den, 1)
	num.Quo(num, den)
	if neg {
		num.Neg(num)
	}
	u, ok := Int128FromBig(num)
	return Decimal{Unscaled: u, Scale: int16(scale)}, ok
}

// divScale is select_div_scale: at least NUMERIC_MIN_SIG_DIGITS (16) significant
// digits, and no fewer decimals than either operand shows. It works on base-10000
// digits: each operand's first non-zero digit and its weight.
func divScale(a, b Decimal) int {
	f1, w1 := firstDigit(a)
	f2, w2 := firstDigit(b)
	q := w1 - w2
	if f1 <= f2 {
		q--
	}
	return min(max(16-4*q, int(a.Scale), int(b.Scale), 0), 1000)
}

// firstDigit returns the most significant base-10000 digit of d and its weight
// (the power of 10000 it stands for); both 0 for zero.
func firstDigit(d Decimal) (digit, weight int) {
	s := new(big.Int).Abs(d.Unscaled.Big()).String()
	if s == "0" {
		return 0, 0
	}
	// The decimal exponent of the first digit of s, then of its base-10000 group.
	exp := len(s) - 1 - int(d.Scale)
	weight = exp / 4
	if exp < 0 && exp%4 != 0 {
		weight--
	}
	n := exp - 4*weight + 1 // digits of s in the first group
	for i := range n {
		digit *= 10
		if i < len(s) {
			digit += int(s[i] - '0')
		}
	}
	return digit, weight
}
