package sqltype

import (
	"math"
	"strconv"
	"strings"

	"pgaccel/vector"
)

const OIDNumeric = 1700

// numericType has the range of the unscaled values.
var numericType = Type{
	Kind: vector.Numeric, Name: "numeric", OID: OIDNumeric, Category: 'N', Implicit: []vector.Kind{vector.Float4, vector.Float8},
	Binary: BinaryNumeric, Least: math.MinInt64, Greatest: math.MaxInt64,
	Samples: []string{"0", "0.00", "-0.0", "1", "-1.50", "10000", "0.0001", "0.00010000", "9999.9999", "100000000", "1e-37", "12345678.9",
		"99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "0.99999999999999999999999999999999999999", "1234567890123456789.0123456789012345678"},
	Left: []string{"NaN", "Infinity", "-Infinity", "1e39"},
	Parse: func(s string) (vector.Datum, bool) {
		d, ok := ParseNumeric(s)
		return numericDatum(d), ok
	},
	Receive: func(raw []byte) (vector.Datum, bool) {
		d, ok := numericFromBinary(raw)
		return numericDatum(d), ok
	},
}

// numericDatum holds d at its own scale: Num always, and I where it fits 64 bits.
func numericDatum(dec vector.Decimal) vector.Datum {
	d := vector.Datum{Type: vector.NumericType(dec.Scale), Num: dec}
	if v, ok := dec.Unscaled.Int64(); ok {
		d.I = v
	}
	return d
}

// ParseNumeric reads what numeric_in reads, without NaN, infinities, and the spellings
// that only newer servers know.
func ParseNumeric(s string) (d vector.Decimal, ok bool) {
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.Atoi(s[i+1:])
		if err != nil || e < -100 || e > 100 {
			return vector.Decimal{}, false
		}
		mantissa, exponent = s[:i], e
	}
	d, ok = vector.ParseDecimal(mantissa)
	if !ok || exponent == 0 {
		return d, ok
	}
	// 1.5e3 is 1500 with scale 0, 1.5e-1 is 0.15 with scale 2.
	scale := int(d.Scale) - exponent
	b := d.Unscaled.Big()
	if scale < 0 {
		b.Mul(b, vector.BigPow10(-scale))
		scale = 0
	}
	u, ok := vector.Int128FromBig(b)
	return vector.Decimal{Unscaled: u, Scale: int16(scale)}, ok
}

// NumericModifier takes numeric's modifier apart (make_numeric_typmod in
// src/backend/utils/adt/numeric.c): scale is an 11-bit two's complement since 15.
func NumericModifier(typmod int32) (precision, scale int) {
	m := int(typmod) - 4
	return m >> 16 & 0xffff, ((m & 0x7ff) ^ 1024) - 1024
}
