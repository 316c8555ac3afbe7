package vector

import (
	"math/big"
	"math/bits"
)

// Int128 is a two's-complement 128-bit integer: the accumulator of exact sums.
// The zero value is 0.
type Int128 struct {
	Hi int64
	Lo uint64
}

// Int128Of widens v.
func Int128Of(v int64) Int128 { return Int128{Hi: v >> 63, Lo: uint64(v)} }

// Add returns a+b, wrapping at 128 bits; sums of fewer than 2^63 64-bit values
// cannot reach that.
func (a Int128) Add(b Int128) Int128 {
	lo, carry := bits.Add64(a.Lo, b.Lo, 0)
	hi, _ := bits.Add64(uint64(a.Hi), uint64(b.Hi), carry)
	return Int128{Hi: int64(hi), Lo: lo}
}

// Neg returns -a.
func (a Int128) Neg() Int128 {
	lo, borrow := bits.Sub64(0, a.Lo, 0)
	hi, _ := bits.Sub64(0, uint64(a.Hi), borrow)
	return Int128{Hi: int64(hi), Lo: lo}
}

// Mul64 returns the full product of two 64-bit integers.
func Mul64(a, b int64) Int128 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	h := int64(hi)
	if a < 0 {
		h -= b
	}
	if b < 0 {
		h -= a
	}
	return Int128{Hi: h, Lo: lo}
}

// Sign returns -1, 0 or 1.
func (a Int128) Sign() int {
	switch {
	case a.Hi < 0:
		return -1
	case a.Hi == 0 && a.Lo == 0:
		return 0
	}
	return 1
}

// Cmp compares a with b: -1, 0 or 1.
func (a Int128) Cmp(b Int128) int {
	switch {
	case a.Hi < b.Hi:
		return -1
	case a.Hi > b.Hi:
		return 1
	case a.Lo < b.Lo:
		return -1
	case a.Lo > b.Lo:
		return 1
	}
	return 0
}

// Int64 returns the value and whether it fits 64 bits.
func (a Int128) Int64() (int64, bool) {
	v := int64(a.Lo)
	return v, a.Hi == v>>63
}

// Big returns the value as a big.Int of its own.
func (a Int128) Big() *big.Int {
	b := new(big.Int).SetInt64(a.Hi)
	b.Lsh(b, 64)
	return b.Add(b, new(big.Int).SetUint64(a.Lo))
}

// Int128FromBig returns b and whether it fits 128 bits.
func Int128FromBig(b *big.Int) (Int128, bool) {
	if b.BitLen() > 127 {
		return Int128{}, false
	}
	m := new(big.Int).Abs(b)
	lo := new(big.Int).And(m, new(big.Int).SetUint64(^uint64(0))).Uint64()
	hi := new(big.Int).Rsh(m, 64).Int64()
	v := Int128{Hi: hi, Lo: lo}
	if b.Sign() < 0 {
		v = v.Neg()
	}
	return v, true
}

// MaxDigits bounds the decimal digits of an Int128.
const MaxDigits = 40

// Digits writes the decimal digits of |a| to the end of buf and returns them without
// leading zeros: none for zero.
func (a Int128) Digits(buf *[MaxDigits]byte) []byte {
	if a.Sign() < 0 {
		a = a.Neg() // the smallest value stays as it is and is right as unsigned
	}
	hi, lo := uint64(a.Hi), a.Lo
	i := MaxDigits
	const e18 = 1e18
	for hi != 0 {
		var rem uint64
		hi, rem = hi/e18, hi%e18
		lo, rem = bits.Div64(rem, lo, e18)
		for range 18 {
			i--
			buf[i] = byte('0' + rem%10)
			rem /= 10
		}
	}
	for lo > 0 {
		i--
		buf[i] = byte('0' + lo%10)
		lo /= 10
	}
	for i < MaxDigits && buf[i] == '0' {
		i++
	}
	return buf[i:]
}
