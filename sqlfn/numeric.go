package sqlfn

import (
	"cmp"
	"math"
	"math/big"

	"pgaccel/vector"
)

// numeric are the functions of numbers (PostgreSQL's numeric.c, float.c). Most round: a numeric to any digit,
// before the decimal point or after it, a double precision to an integer.
var numeric = []Function{
	roundOf("round", 1707, awayFromZero, true),
	roundOf("round", 1708, awayFromZero, false),
	roundOf("trunc", 1709, towardZero, true),
	roundOf("trunc", 1710, towardZero, false),
	roundOf("ceil", 1711, upward, false),
	roundOf("ceiling", 2167, upward, false),
	roundOf("floor", 1712, downward, false),
	roundFloatOf("round", 1342, math.RoundToEven), // rint
	roundFloatOf("trunc", 1343, math.Trunc),
	roundFloatOf("ceil", 2308, math.Ceil),
	roundFloatOf("ceiling", 2320, math.Ceil),
	roundFloatOf("floor", 2309, math.Floor),
	{
		Name: "sign", OID: 1706, Result: vector.Numeric, Args: []Param{{Kind: vector.Numeric}}, Total: true, Digits: 1, Samples: [][]string{roundSamples},
		Type: func(Call) vector.Type { return vector.NumericType(0) },
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.Value{Num: vector.Decimal{Unscaled: vector.Int128Of(int64(args[0].Num.Unscaled.Sign()))}}, nil
		},
		Kernel: func(c Call, _ int) *Kernel {
			if c.Args[0].Type.Varying() {
				return nil
			}
			f := func(v int64) (int64, error) { return int64(cmp.Compare(v, 0)), nil }
			return &Kernel{First: math.MinInt64, Last: math.MaxInt64, Monotone: true, F: f}
		},
	},
	roundFloatOf("sign", 2310, func(v float64) float64 {
		switch {
		case v > 0:
			return 1
		case v < 0:
			return -1
		}
		return 0 // of -0 and of NaN, too
	}),
	{
		Name: "sqrt", OID: 1344, Result: vector.Float8, Args: []Param{{Kind: vector.Float8}}, Samples: [][]string{append([]string{"2", "3", "1e-323", "4", "1.7976931348623157e308"}, floatSamples...)},
		Eval: func(args []vector.Value) (vector.Value, error) {
			v := math.Float64frombits(uint64(args[0].I))
			if v < 0 {
				return vector.NullValue, failed("cannot take square root of a negative number")
			}
			return vector.Value{I: int64(math.Float64bits(math.Sqrt(v)))}, nil // rounded as IEEE 754 has it, as the server's
		},
	},
}

// rounding says which of its two neighbours a number becomes.
type rounding uint8

const (
	awayFromZero rounding = iota // the nearer one, of two equally near the one further from zero
	towardZero
	upward
	downward
)

var (
	roundSamples = []string{"0", "0.00", "1", "-1", "0.5", "-0.5", "1.5", "2.5", "-2.50", "0.05", "-0.0049", "99.995", "-99.995", "15", "-45", "50", "4999.9999", "99999.95",
		"9999999999999999.99", "-9999999999999999.99", "123456789012345678.9", "0.000000000000000000000000000000000004",
		"99999999999999999999999999999999999999", "-12345678901234567890.123456789012345678"}
	digitSamples = []string{"0", "1", "2", "-1", "-2", "3", "6", "18", "19", "30", "-5", "-17", "-19", "-38", "-39", "-40", "-2147483648"}
	floatSamples = []string{"0", "-0", "0.5", "-0.5", "1.5", "2.5", "-2.5", "0.49999999999999994", "4503599627370497.5", "1e300", "-1e-300", "Infinity", "-Infinity", "NaN"}
)

// maxDigits bounds the decimals of a result here: the server's own bound depends on its version.
const maxDigits = 1000

// roundOf rounds a numeric: to argument 2's number of digits after the decimal point, which may be
// negative, or to an integer.
func roundOf(name string, oid uint32, r rounding, digits bool) Function {
	f := Function{
		Name: name, OID: oid, Result: vector.Numeric, Args: []Param{{Kind: vector.Numeric}}, Rounds: true, Samples: [][]string{roundSamples},
		Type: func(c Call) vector.Type {
			if n, ok := digitsOf(c); ok && n <= vector.NumericMaxPrecision {
				return vector.NumericType(int16(max(n, 0)))
			}
			return vector.NumericType(vector.VaryingScale)
		},
		Eval: func(args []vector.Value) (vector.Value, error) {
			n := int64(0)
			if digits {
				n = args[1].I
			}
			d, ok := r.decimal(args[0].Num, n)
			if !ok {
				return vector.NullValue, failed("numeric beyond the bits that are held")
			}
			return vector.Value{Num: d}, nil
		},
		Kernel: func(c Call, i int) *Kernel {
			n, ok := digitsOf(c)
			if !ok || i != 0 || c.Args[0].Type.Varying() || c.T.Varying() {
				return nil
			}
			return r.kernel(int64(c.Args[0].Type.Scale), n)
		},
	}
	if !digits {
		f.Total = true
		return f
	}
	// The server fails for no number of digits. Here the result may have more bits than are held,
	// as results of arithmetic may.
	f.TotalFor = func(c Call) bool {
		n := c.Args[1].Const
		return n != nil && (n.Null || n.I >= -vector.NumericMaxPrecision && n.I <= vector.NumericMaxPrecision)
	}
	f.Args = append(f.Args, Param{Kind: vector.Int4, Usual: digitSamples[:7]})
	f.Samples = append(f.Samples, digitSamples)
	return f
}

// digitsOf returns the number of decimals that a call rounds to. ok is false where that is not known.
func digitsOf(c Call) (n int64, ok bool) {
	if len(c.Args) == 1 {
		return 0, true
	}
	if k := c.Args[1].Const; k != nil && !k.Null {
		return k.I, true
	}
	return 0, false
}

// decimal rounds d to n decimals. ok is false where the result is not held.
func (r rounding) decimal(d vector.Decimal, n int64) (out vector.Decimal, ok bool) {
	switch {
	case n > maxDigits:
		return d, false
	case n >= int64(d.Scale):
		return d.Rescale(int16(n))
	case n < -maxDigits:
		return vector.Decimal{}, true // no value has as many digits
	}
	unit, scale := int64(d.Scale)-n, int16(max(n, 0))
	if v, fits := d.Unscaled.Int64(); fits && unit <= vector.NumericMaxPrecision {
		q := r.quotient(v, vector.Pow10(int(unit)))
		if n >= 0 {
			return vector.Decimal{Unscaled: vector.Int128Of(q), Scale: scale}, true
		}
		return vector.Decimal{Unscaled: vector.Mul64(q, vector.Pow10(int(-n))), Scale: scale}, true
	}
	v := d.Unscaled.Big()
	den, rest := vector.BigPow10(int(unit)), new(big.Int)
	q, _ := new(big.Int).QuoRem(v, den, rest)
	q.Add(q, big.NewInt(r.step(v.Sign(), rest.Sign() != 0, rest.Lsh(rest.Abs(rest), 1).Cmp(den) >= 0)))
	if n < 0 {
		q.Mul(q, vector.BigPow10(int(-n)))
	}
	u, ok := vector.Int128FromBig(q)
	return vector.Decimal{Unscaled: u, Scale: scale}, ok
}

// quotient returns v / unit as an integer.
func (r rounding) quotient(v, unit int64) int64 {
	q, rest := v/unit, v%unit
	sign := 1
	if v < 0 {
		sign, rest = -1, -rest
	}
	return q + r.step(sign, rest != 0, rest >= unit-rest)
}

// step returns what is added to a quotient that was cut off: by its sign, whether there is a rest,
// and whether that is half of the divisor or more.
func (r rounding) step(sign int, rest, half bool) int64 {
	switch {
	case !rest:
		return 0
	case r == awayFromZero && half:
		return int64(sign)
	case r == upward && sign > 0:
		return 1
	case r == downward && sign < 0:
		return -1
	}
	return 0
}

// kernel rounds words of a scale to n decimals, nil where words do not suffice.
func (r rounding) kernel(scale, n int64) *Kernel {
	k := &Kernel{First: math.MinInt64, Last: math.MaxInt64, Monotone: true}
	switch {
	case n >= scale+vector.NumericMaxPrecision+1 || scale >= n+vector.NumericMaxPrecision+1:
		return nil
	case n >= scale:
		unit := vector.Pow10(int(n - scale))
		k.First, k.Last = math.MinInt64/unit, math.MaxInt64/unit
		k.F = func(v int64) (int64, error) {
			if v < math.MinInt64/unit || v > math.MaxInt64/unit {
				return 0, failed("numeric beyond the bits that are held")
			}
			return v * unit, nil
		}
	case n >= 0:
		unit := vector.Pow10(int(scale - n))
		k.F = func(v int64) (int64, error) { return r.quotient(v, unit), nil }
	default:
		unit, back := vector.Pow10(int(scale-n)), vector.Pow10(int(-n))
		k.F = func(v int64) (int64, error) {
			w, fits := vector.Mul64(r.quotient(v, unit), back).Int64()
			if !fits {
				return 0, failed("numeric beyond the bits that are held")
			}
			return w, nil
		}
	}
	return k
}

func roundFloatOf(name string, oid uint32, round func(float64) float64) Function {
	return Function{
		Name: name, OID: oid, Result: vector.Float8, Args: []Param{{Kind: vector.Float8}}, Total: true, Samples: [][]string{floatSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.Value{I: int64(math.Float64bits(round(math.Float64frombits(uint64(args[0].I)))))}, nil
		},
	}
}
