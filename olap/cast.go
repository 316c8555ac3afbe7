package olap

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// castable reports whether castScalar knows the conversion. doc.go lists them.
func castable(from, to vector.Type) bool {
	f, t := from.Kind, to.Kind
	switch {
	case t.IsText():
		// A length cuts or pads; only the type's own name is free of that.
		return f.IsCastToText() && (f.IsString() || t != vector.BPChar && f != vector.Invalid) && (to.Typmod < 0 || f == t && from.Typmod == to.Typmod)
	case f.IsText():
		return sqltype.ReadsText(t) || to.Varying()
	case t == vector.Numeric:
		return f.IsInt() || f == vector.Numeric
	case t.IsInt():
		return f.IsInt() || f == vector.Numeric || f.IsFloat() || f == vector.Bool && t == vector.Int4
	case t == vector.Float8:
		return f.IsInt() || f == vector.Numeric || f.IsFloat()
	case stamp(t):
		return stamp(f) || f == vector.Date
	case t == vector.Date:
		return stamp(f) || f == vector.Date
	}
	return f == t && f != vector.Invalid
}

func stamp(k vector.Kind) bool { return k == vector.Timestamp || k == vector.TimestampTZ }

// castScalar converts a value that is not null.
func castScalar(v vector.Value, from, to vector.Type) (vector.Value, error) {
	f, t := from.Kind, to.Kind
	switch {
	case t.IsText():
		switch {
		case f.IsInt():
			v.Str = strconv.FormatInt(v.I, 10)
		case f == vector.Bool:
			v.Str = strconv.FormatBool(v.I != 0)
		case f == vector.Numeric:
			v.Str = v.Num.String()
		case f == vector.BPChar && t != vector.BPChar:
			v.Str = strings.TrimRight(v.Str, " ")
		case f.IsString() && !f.HeldAsText():
			v.Str = string(sqltype.Of(f).AppendString(nil, v.Str))
		case !f.IsString():
			v.Str = string(sqltype.Of(f).AppendText(nil, v.I))
		}
		return vector.Value{Str: v.Str}, nil
	case f.IsText():
		return textTo(v.Str, t)
	case t == vector.Numeric:
		if f.IsInt() {
			v.Num = vector.Decimal{Unscaled: vector.Int128Of(v.I)}
		}
		return toNumeric(v.Num, to)
	case t.IsInt():
		switch {
		case f == vector.Numeric:
			d, _ := roundDecimal(v.Num, 0)
			n, ok := d.Unscaled.Int64()
			if !ok {
				return vector.NullValue, failed("integer out of range")
			}
			v.I = n
		case f.IsFloat():
			n, err := floatToInt(v.I, t)
			return vector.Value{I: n}, err
		}
		return ranged(v.I, t)
	case t == vector.Float8:
		if f.IsInt() {
			v.I = int64(math.Float64bits(float64(v.I)))
		} else if f == vector.Numeric {
			x := decimalToFloat(v.Num)
			if x == 0 && v.Num.Unscaled != (vector.Int128{}) {
				return vector.NullValue, failed("double precision out of range")
			}
			v.I = int64(math.Float64bits(x))
		}
		return vector.Value{I: v.I}, nil
	case t == vector.Date || t == vector.Timestamp || t == vector.TimestampTZ:
		n, err := castTime(v.I, f, t)
		return vector.Value{I: n}, err
	}
	return v, nil
}

// floatToInt rounds half to even (dtoi4 and its likes), as 64 bits of a float are held.
func floatToInt(bits int64, t vector.Kind) (int64, error) {
	x := math.RoundToEven(math.Float64frombits(uint64(bits)))
	// The bounds of 64 bits as floats: the upper one is the first that does not fit. NaN is within none.
	if !(x >= -1<<63 && x < 1<<63) {
		return 0, failed(t.String() + " out of range")
	}
	v, err := ranged(int64(x), t)
	return v.I, err
}

// textTo reads what every version of PostgreSQL does, under all settings. Later ones also read 0x1F and 1_000,
// which are an error before.
func textTo(s string, t vector.Kind) (vector.Value, error) {
	v, ok := sqltype.FromText(s, t)
	if !ok {
		return vector.NullValue, failed("text that is not read as " + t.String())
	}
	return v, nil
}

// castTime converts between dates and timestamps, all of them in UTC.
func castTime(v int64, f, t vector.Kind) (int64, error) {
	switch {
	case f == vector.Date && t != vector.Date:
		switch {
		case v == math.MinInt32:
			return math.MinInt64, nil
		case v == math.MaxInt32:
			return math.MaxInt64, nil
		}
		n, ok := plan.OpMul.Integer(v, sqltype.MicrosPerDay)
		if !ok {
			return 0, failed("date out of range for timestamp")
		}
		_, err := ranged(n, t)
		return n, err
	case f != vector.Date && t == vector.Date:
		switch v {
		case math.MinInt64:
			return math.MinInt32, nil
		case math.MaxInt64:
			return math.MaxInt32, nil
		}
		return sqltype.FloorDiv(v, sqltype.MicrosPerDay), nil
	case f != t && !infinite(t, v):
		// A typmod may have rounded a stored value past the last valid one.
		_, err := ranged(v, t)
		return v, err
	}
	return v, nil
}

func toNumeric(d vector.Decimal, to vector.Type) (vector.Value, error) {
	if to.Scale != vector.VaryingScale {
		var ok bool
		if d, ok = roundDecimal(d, to.Scale); !ok {
			return vector.NullValue, errNumeric
		}
	}
	if to.Typmod >= 4 {
		precision := int(to.Typmod-4) >> 16 & 0xffff
		if u := d.Unscaled.Big(); u.Abs(u).Cmp(vector.BigPow10(precision)) >= 0 {
			return vector.NullValue, failed("numeric field overflow")
		}
	}
	return vector.Value{Num: d}, nil
}

// roundDecimal is Rescale with lost digits rounded half away from zero.
func roundDecimal(d vector.Decimal, scale int16) (vector.Decimal, bool) {
	if r, ok := d.Rescale(scale); ok || scale > d.Scale {
		return r, ok
	}
	n := d.Unscaled.Big()
	sign := int64(n.Sign())
	den := vector.BigPow10(int(d.Scale - scale))
	rest := new(big.Int)
	n.QuoRem(n, den, rest)
	if rest.Abs(rest).Lsh(rest, 1).Cmp(den) >= 0 {
		n.Add(n, big.NewInt(sign))
	}
	u, ok := vector.Int128FromBig(n)
	return vector.Decimal{Unscaled: u, Scale: scale}, ok
}

// decimalToFloat rounds once, as Postgres' conversion through strtod does.
func decimalToFloat(d vector.Decimal) float64 {
	// Both operands exact: one correctly rounded division.
	if n, ok := d.Unscaled.Int64(); ok && -1<<53 <= n && n <= 1<<53 && 0 <= d.Scale && d.Scale <= 18 {
		return float64(n) / float64(vector.Pow10(int(d.Scale)))
	}
	f, err := strconv.ParseFloat(d.String(), 64)
	if err != nil {
		panic("BUG: a decimal that is no number")
	}
	return f
}
