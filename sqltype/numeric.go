package sqltype

import (
	"strconv"
	"strings"

	"pgaccel/vector"
)

var numericType = Type{
	Binary: BinaryNumeric,
	Parse: func(s string) (vector.Datum, bool) {
		d, ok := ParseNumeric(s)
		return numericDatum(d), ok
	},
	Receive: func(raw []byte) (vector.Datum, bool) {
		d, ok := NumericFromBinary(raw)
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
