package sqltype

import (
	"encoding/binary"
	"math"
	"math/bits"

	"pgaccel/vector"
)

// Signs of numeric's binary form (NUMERIC_POS, ... in src/backend/utils/adt/numeric.c):
//
//	int16 ndigits | int16 weight | uint16 sign | int16 dscale | ndigits x int16
//
// The value is the sum of digit[i] * 10000^(weight-i).
const (
	numericPos  = 0x0000
	numericNeg  = 0x4000
	numericNaN  = 0xC000
	numericPInf = 0xD000
	numericNInf = 0xF000
)

// AppendNumericBinary appends numeric's binary form: int16 ndigits, weight, sign,
// dscale, then base-10000 digits, without zero digits at either end; the first
// stands for 10000^weight. (numeric_send)
func AppendNumericBinary(dst []byte, d vector.Decimal) []byte {
	var buf [vector.MaxDigits]byte
	digits := d.Unscaled.Digits(&buf)
	scale := int(d.Scale)
	sign := uint16(numericPos)
	if d.Unscaled.Sign() < 0 {
		sign = numericNeg
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
		scale--
	}
	if len(digits) == 0 {
		return append(dst, 0, 0, 0, 0, 0, 0, byte(d.Scale>>8), byte(d.Scale))
	}
	// exp is the power of ten of the first digit; a group of four starts at
	// multiples of four.
	exp := len(digits) - 1 - scale
	weight := exp >> 2
	first := exp&3 + 1 // decimal digits in the first group
	groups := 1
	if len(digits) > first {
		groups += (len(digits) - first + 3) / 4
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(groups))
	dst = binary.BigEndian.AppendUint16(dst, uint16(weight))
	dst = binary.BigEndian.AppendUint16(dst, sign)
	dst = binary.BigEndian.AppendUint16(dst, uint16(d.Scale))
	at, width := 0, first
	for range groups {
		g := uint16(0)
		for range width {
			g *= 10
			if at < len(digits) {
				g += uint16(digits[at] - '0')
			}
			at++
		}
		dst = binary.BigEndian.AppendUint16(dst, g)
		width = 4
	}
	return dst
}

// numericFromBinary is the inverse of AppendNumericBinary. NaN, infinities, values beyond
// 38 digits and digits hidden by dscale (numeric_recv cuts them off) are not taken.
func numericFromBinary(raw []byte) (dec vector.Decimal, ok bool) {
	if len(raw) < 8 {
		return dec, false
	}
	n := int(binary.BigEndian.Uint16(raw))
	weight := int(int16(binary.BigEndian.Uint16(raw[2:])))
	sign := binary.BigEndian.Uint16(raw[4:])
	scale := int(binary.BigEndian.Uint16(raw[6:]))
	if len(raw) != 8+2*n || sign != numericPos && sign != numericNeg || scale > 1000 || n > 20 {
		return dec, false
	}
	var hi, lo uint64 // the unscaled value
	mulAdd := func(f, add uint64) bool {
		h1, l1 := bits.Mul64(lo, f)
		h2, l2 := bits.Mul64(hi, f)
		if h2 != 0 {
			return false
		}
		var carry uint64
		if lo, carry = bits.Add64(l1, add, 0); carry != 0 {
			h1++
		}
		if hi, carry = bits.Add64(h1, l2, 0); carry != 0 {
			return false
		}
		return hi>>63 == 0
	}
	// Digit i stands for 10^(4*(weight-i)), that is for 10^(4*(weight-i)+scale)
	// of the unscaled value.
	for i := range n {
		g := uint64(binary.BigEndian.Uint16(raw[8+2*i:]))
		if g > 9999 {
			return dec, false
		}
		exp := 4*(weight-i) + scale
		if exp < 0 {
			// The last group may reach beyond dscale with zeros.
			if exp <= -4 {
				if g != 0 {
					return dec, false
				}
				continue
			}
			p := uint64(vector.Pow10(-exp))
			if g%p != 0 || !mulAdd(uint64(vector.Pow10(4+exp)), g/p) {
				return dec, false
			}
			continue
		}
		if !mulAdd(10000, g) {
			return dec, false
		}
	}
	if n > 0 && hi|lo != 0 {
		for exp := 4*(weight-n+1) + scale; exp > 0; exp -= 18 {
			if !mulAdd(uint64(vector.Pow10(min(exp, 18))), 0) {
				return dec, false
			}
		}
	}
	u := vector.Int128{Hi: int64(hi), Lo: lo}
	if sign == numericNeg {
		u = u.Neg()
	}
	return vector.Decimal{Unscaled: u, Scale: int16(scale)}, true
}

// UnscaledFromBinary reads the binary form and returns the value times 10^scale. reason
// is empty where that is an integer of 64 bits, and else says why not.
func UnscaledFromBinary(b []byte, scale int) (v int64, reason string) {
	if len(b) < 8 {
		return 0, "a numeric value is cut off"
	}
	digits := int(binary.BigEndian.Uint16(b))
	weight := int(int16(binary.BigEndian.Uint16(b[2:])))
	sign := binary.BigEndian.Uint16(b[4:])
	switch sign {
	case numericPos, numericNeg:
	case numericNaN:
		return 0, "it holds NaN"
	case numericPInf, numericNInf:
		return 0, "it holds infinity"
	default:
		return 0, "a numeric value has a bad sign"
	}
	if len(b) != 8+2*digits {
		return 0, "a numeric value has a bad length"
	}
	const tooLarge = "it holds a value that exceeds 64 bits"
	var sum uint64
	power := 4*weight + scale // of ten, that the digit at hand stands for
	for i := 8; i < len(b); i, power = i+2, power-4 {
		d := uint64(binary.BigEndian.Uint16(b[i:]))
		switch {
		case d == 0:
		case power >= 0:
			if power > 18 {
				return 0, tooLarge
			}
			hi, lo := bits.Mul64(d, uint64(vector.Pow10(power)))
			if sum += lo; hi != 0 || sum < lo {
				return 0, tooLarge
			}
		default:
			if power <= -4 || d%uint64(vector.Pow10(-power)) != 0 {
				return 0, "it holds a value with more decimals than declared"
			}
			d /= uint64(vector.Pow10(-power))
			if sum += d; sum < d {
				return 0, tooLarge
			}
		}
	}
	if sign == numericNeg {
		if sum > 1<<63 {
			return 0, tooLarge
		}
		return -int64(sum), ""
	}
	if sum > math.MaxInt64 {
		return 0, tooLarge
	}
	return int64(sum), ""
}
