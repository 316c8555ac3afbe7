package wire

import (
	"encoding/binary"
	"math"
	"math/bits"

	"pgaccel/vector"
)

// Signs of numeric's binary form (NUMERIC_POS, ... in
// src/backend/utils/adt/numeric.c).
const (
	numericPos  = 0x0000
	numericNeg  = 0x4000
	numericNaN  = 0xC000
	numericPInf = 0xD000
	numericNInf = 0xF000
)

// maxDigits bounds the decimal digits of a 128-bit integer.
const maxDigits = 40

// decimalDigits writes the decimal digits of |v| to the end of buf and returns
// them without leading zeros: none for zero.
func decimalDigits(buf *[maxDigits]byte, v vector.Int128) []byte {
	if v.Sign() < 0 {
		v = v.Neg() // the smallest value stays as it is and is right as unsigned
	}
	hi, lo := uint64(v.Hi), v.Lo
	i := maxDigits
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
	for i < maxDigits && buf[i] == '0' {
		i++
	}
	return buf[i:]
}

// appendNumericBinary appends numeric's binary form: int16 ndigits, weight, sign,
// dscale, then base-10000 digits, without zero digits at either end; the first
// stands for 10000^weight. (numeric_send)
func appendNumericBinary(dst []byte, d vector.Decimal) []byte {
	var buf [maxDigits]byte
	digits := decimalDigits(&buf, d.Unscaled)
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

func float64frombits(v int64) float64 { return math.Float64frombits(uint64(v)) }

// appendFloat4Binary narrows a float4 held as the bits of a float64. NaNs keep
// their sign and payload, which a conversion on the CPU need not.
func appendFloat4Binary(dst []byte, v int64) []byte {
	u := uint64(v)
	f := math.Float64frombits(u)
	b := math.Float32bits(float32(f))
	if f != f {
		b = uint32(u>>63)<<31 | 0x7f800000 | uint32(u>>29)&0x7fffff
		if b&0x7fffff == 0 {
			b |= 0x400000
		}
	}
	return binary.BigEndian.AppendUint32(dst, b)
}

// float4Bits widens the bits of a float4 to vector's representation.
func float4Bits(b uint32) int64 {
	f := math.Float32frombits(b)
	if f != f {
		return int64(uint64(b>>31)<<63 | 0x7ff<<52 | uint64(b&0x7fffff)<<29)
	}
	return int64(math.Float64bits(float64(f)))
}
