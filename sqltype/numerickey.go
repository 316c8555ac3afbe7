package sqltype

import (
	"encoding/binary"
	"strings"

	"pgaccel/vector"
)

// Numerics of a column that 64 bits need not hold are held as strings, in a dictionary as text is. These
// keys sort as numeric_cmp does, NaN last; values that are equal are told apart by their display scale,
// which comes last. Each value, NaN and the infinities among them, has one key:
//
//	byte class | uint16 weight + 32768 | digits x uint16 digit + 1 | uint16 0 | uint16 dscale
//
// All is big-endian. Weight, digits and the 0 behind them are complemented in negative numbers. Zero has
// class and dscale alone, NaN and the infinities the class. The terms are those of numeric's binary form.
const (
	keyNegInfinity = iota
	keyNegative
	keyZero
	keyPositive
	keyInfinity
	keyNaN
)

// numericBase is that of numeric's digits (NBASE).
const numericBase = 10000

// NumericKeyFromBinary appends the key of a numeric in binary form. ok is false for what is none.
func NumericKeyFromBinary(dst, raw []byte) (key []byte, ok bool) {
	if len(raw) < 8 {
		return dst, false
	}
	n := int(binary.BigEndian.Uint16(raw))
	weight := int(int16(binary.BigEndian.Uint16(raw[2:])))
	sign := binary.BigEndian.Uint16(raw[4:])
	if len(raw) != 8+2*n {
		return dst, false
	}
	switch sign {
	case numericPos, numericNeg:
	case numericNaN:
		return append(dst, keyNaN), true
	case numericPInf:
		return append(dst, keyInfinity), true
	case numericNInf:
		return append(dst, keyNegInfinity), true
	default:
		return dst, false
	}
	return appendNumericKey(dst, sign == numericNeg, weight, raw[8:], raw[6:8])
}

// appendNumericKey appends the key of a finite number of any digits, two bytes each.
func appendNumericKey(dst []byte, negative bool, weight int, digits, scale []byte) (key []byte, ok bool) {
	for len(digits) > 0 && digits[0]|digits[1] == 0 {
		digits = digits[2:]
		weight--
	}
	for len(digits) > 0 && digits[len(digits)-2]|digits[len(digits)-1] == 0 {
		digits = digits[:len(digits)-2]
	}
	if len(digits) == 0 {
		return append(append(dst, keyZero), scale...), true
	}
	class, flip := byte(keyPositive), uint16(0)
	if negative {
		class, flip = keyNegative, 0xffff
	}
	dst = binary.BigEndian.AppendUint16(append(dst, class), uint16(weight+1<<15)^flip)
	for ; len(digits) > 0; digits = digits[2:] {
		d := binary.BigEndian.Uint16(digits)
		if d >= numericBase {
			return dst, false
		}
		dst = binary.BigEndian.AppendUint16(dst, (d+1)^flip)
	}
	return append(binary.BigEndian.AppendUint16(dst, flip), scale...), true
}

// NumericKeyFromText appends the key of a numeric in the form of numeric_out. ok is false for other text.
func NumericKeyFromText(dst []byte, s string) (key []byte, ok bool) {
	switch s {
	case "NaN":
		return append(dst, keyNaN), true
	case "Infinity":
		return append(dst, keyInfinity), true
	case "-Infinity":
		return append(dst, keyNegInfinity), true
	}
	body, negative := strings.CutPrefix(s, "-")
	whole, frac, point := strings.Cut(body, ".")
	if whole == "" || point && frac == "" || len(frac) > 1<<14 || len(whole) > 1<<17 {
		return dst, false
	}
	// Digits of four begin at the point, to both sides.
	padded := strings.Repeat("0", (4-len(whole)%4)%4) + whole + frac + strings.Repeat("0", (4-len(frac)%4)%4)
	digits := make([]byte, 0, len(padded)/2)
	for i := 0; i < len(padded); i += 4 {
		d := uint16(0)
		for _, c := range []byte(padded[i : i+4]) {
			if c < '0' || c > '9' {
				return dst, false
			}
			d = 10*d + uint16(c-'0')
		}
		digits = binary.BigEndian.AppendUint16(digits, d)
	}
	scale := binary.BigEndian.AppendUint16(nil, uint16(len(frac)))
	return appendNumericKey(dst, negative, (len(whole)+3)/4-1, digits, scale)
}

// NumericOfKey returns the decimal of a key. ok is false for NaN, infinities and what has more digits than
// a Decimal.
func NumericOfKey[K string | []byte](key K) (d vector.Decimal, ok bool) {
	const most = 20 // digits that may fit 127 bits
	flip := byte(0)
	switch {
	case len(key) == 3 && key[0] == keyZero:
		return vector.Decimal{Scale: int16(key[1])<<8 | int16(key[2])}, key[1] < 1<<7
	case len(key) < 9 || len(key) > 7+2*most:
		return d, false
	case key[0] == keyNegative:
		flip = 0xff
	case key[0] != keyPositive:
		return d, false
	}
	var raw [8 + 2*most]byte
	n := (len(key) - 7) / 2
	raw[1] = byte(n)
	raw[2], raw[3] = key[1]^flip^1<<7, key[2]^flip
	if flip != 0 {
		raw[4] = numericNeg >> 8
	}
	raw[6], raw[7] = key[len(key)-2], key[len(key)-1]
	for i := 8; i < 8+2*n; i += 2 {
		g := uint16(key[i-5]^flip)<<8 | uint16(key[i-4]^flip)
		binary.BigEndian.PutUint16(raw[i:], g-1)
	}
	return numericFromBinary(raw[:8+2*n])
}
