package oracle

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

const dayMicros = 86400e6

// cast converts a value that is not null.
func cast(v value, from, to vector.Type) (value, error) {
	f, t := from.Kind, to.Kind
	switch {
	case f.HeldAsText() && t.IsText():
		if f == vector.BPChar && t != vector.BPChar {
			v.s = strings.TrimRight(v.s, " ")
		}
		return v, nil
	case f.IsInt() && t.IsText():
		return value{s: strconv.FormatInt(v.i, 10)}, nil
	case f == vector.Bool && t.IsText():
		return value{s: strconv.FormatBool(v.i != 0)}, nil
	case f == vector.Numeric && t.IsText():
		n, _ := vector.Int128FromBig(v.num)
		return value{s: vector.Decimal{Unscaled: n, Scale: v.scale}.String()}, nil
	case f.IsString() && t.IsText():
		return value{s: string(sqltype.Of(f).AppendString(nil, v.s))}, nil
	case t.IsText() && f.IsCastToText():
		return value{s: string(sqltype.Of(f).AppendText(nil, v.i))}, nil
	case f.IsInt() && t.IsInt(), f == vector.Bool && t == vector.Int4:
		return bounded(big.NewInt(v.i), t)
	case f == vector.Numeric && t.IsInt():
		return bounded(v.rescale(0), t)
	case f.IsFloat() && t.IsInt():
		return roundedHalfEven(v.float(), t)
	case f.IsText() && t.IsInt():
		return parsedInteger(v.s, t)
	case f.IsText() && t == vector.Numeric:
		d, ok := sqltype.ParseNumeric(strings.Trim(v.s, sqltype.Space))
		if !ok {
			return null, failed("text that is no numeric")
		}
		return toNumeric(value{num: d.Unscaled.Big(), scale: d.Scale}, to)
	case f.IsText():
		w, ok := sqltype.Of(t).ParseWord(strings.Trim(v.s, sqltype.Space))
		if !ok {
			return null, failed("text that is no " + t.String())
		}
		return value{i: w}, nil
	case f.IsInt() && t == vector.Numeric:
		return toNumeric(value{num: big.NewInt(v.i)}, to)
	case f == vector.Numeric && t == vector.Numeric:
		return toNumeric(v, to)
	case f.IsInt() && t == vector.Float8:
		return ofFloat(float64(v.i)), nil
	case f == vector.Numeric && t == vector.Float8:
		x, _ := new(big.Float).SetPrec(400).SetInt(v.num).Float64()
		if v.scale > 0 {
			r := new(big.Rat).SetFrac(v.num, vector.BigPow10(int(v.scale)))
			x, _ = r.Float64()
		}
		if x == 0 && v.num.Sign() != 0 {
			return null, failed("double precision out of range")
		}
		return ofFloat(x), nil
	case f.IsFloat() && t == vector.Float8:
		return v, nil
	case f == t:
		return v, nil
	case f == vector.Date && (t == vector.Timestamp || t == vector.TimestampTZ):
		switch v.i {
		case math.MinInt32:
			return value{i: math.MinInt64}, nil
		case math.MaxInt32:
			return value{i: math.MaxInt64}, nil
		}
		return bounded(new(big.Int).Mul(big.NewInt(v.i), big.NewInt(dayMicros)), t)
	case (f == vector.Timestamp || f == vector.TimestampTZ) && (t == vector.Timestamp || t == vector.TimestampTZ):
		return v, nil
	case (f == vector.Timestamp || f == vector.TimestampTZ) && t == vector.Date:
		switch v.i {
		case math.MinInt64:
			return value{i: math.MinInt32}, nil
		case math.MaxInt64:
			return value{i: math.MaxInt32}, nil
		}
		return value{i: floorDiv(v.i, dayMicros)}, nil
	}
	return null, forward(plan.ReasonType, "cast from "+f.String()+" to "+t.String())
}

// roundedHalfEven is the integer nearest to x, the even one of two.
func roundedHalfEven(x float64, t vector.Kind) (value, error) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return null, failed(t.String() + " out of range")
	}
	exact := new(big.Rat).SetFloat64(x)
	two := big.NewInt(2)
	// floor(x + 1/2) is off only where it is odd and x + 1/2 an integer.
	half := exact.Add(exact, big.NewRat(1, 2))
	n, rest := new(big.Int).DivMod(half.Num(), half.Denom(), new(big.Int))
	if rest.Sign() == 0 && new(big.Int).Mod(n, two).Sign() != 0 {
		n.Sub(n, big.NewInt(1))
	}
	return bounded(n, t)
}

// integerText is what all versions of Postgres read as an integer.
var integerText = regexp.MustCompile("^[ \t\n\v\f\r]*([-+]?[0-9]+)[ \t\n\v\f\r]*$")

func parsedInteger(s string, t vector.Kind) (value, error) {
	m := integerText.FindStringSubmatch(s)
	if m == nil {
		return null, failed("text that is no integer")
	}
	n, _ := new(big.Int).SetString(m[1], 10)
	return bounded(n, t)
}

func toNumeric(v value, to vector.Type) (value, error) {
	r := v
	if to.Scale != vector.VaryingScale {
		r = value{num: v.rescale(to.Scale), scale: to.Scale}
	}
	if to.Typmod >= 4 {
		precision := int(to.Typmod-4) >> 16 & 0xffff
		if new(big.Int).Abs(r.num).Cmp(vector.BigPow10(precision)) >= 0 {
			return null, failed("numeric field overflow")
		}
	}
	if _, ok := vector.Int128FromBig(r.num); !ok {
		return null, failed("numeric beyond 128 bits")
	}
	return r, nil
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
