package sqlfn

import (
	"math"
	"math/big"

	"pgaccel/vector"
)

// scales are functions of numerics and their decimals, and those of numbers that need no mathematical library, whose
// last digit depends on the machine (PostgreSQL's numeric.c and float.c).
var scales = []Function{
	{
		Name: "scale", OID: 3281, Result: vector.Int4, Args: []Param{{Kind: vector.Numeric}}, Total: true, Samples: [][]string{scaleSamples},
		Eval: func(args []vector.Value) (vector.Value, error) { return vector.Value{I: int64(args[0].Num.Scale)}, nil },
	},
	{
		Name: "min_scale", OID: 5042, Result: vector.Int4, Args: []Param{{Kind: vector.Numeric}}, Total: true, Samples: [][]string{scaleSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.Value{I: int64(trimmed(args[0].Num).Scale)}, nil
		},
	},
	{
		Name: "trim_scale", OID: 5043, Result: vector.Numeric, Args: []Param{{Kind: vector.Numeric}}, Total: true, Samples: [][]string{scaleSamples},
		Type: func(Call) vector.Type { return vector.NumericType(vector.VaryingScale) },
		Eval: func(args []vector.Value) (vector.Value, error) { return vector.Value{Num: trimmed(args[0].Num)}, nil },
	},
	{
		Name: "factorial", OID: 1376, Result: vector.Numeric, Args: []Param{{Kind: vector.Int8, Usual: []string{"5", "10", "20"}}}, Partial: true,
		Type:    func(Call) vector.Type { return vector.NumericType(0) },
		Samples: [][]string{{"5", "0", "1", "2", "10", "20", "21", "33", "34", "-1"}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			if n := args[0].I; n < 0 || n > 33 { // 34! has more than 128 bits
				return vector.NullValue, failed("factorial that is not held")
			}
			return integral(new(big.Int).MulRange(1, max(args[0].I, 1)))
		},
	},
	numericDivisorOf("gcd", 5048, gcd),
	numericDivisorOf("lcm", 5049, lcm),
	{
		Name: "degrees", OID: 1608, Result: vector.Float8, Args: []Param{{Kind: vector.Float8}}, Samples: [][]string{floatSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			return angle(args[0], func(v float64) float64 { return v / radiansPerDegree })
		},
	},
	{
		Name: "radians", OID: 1609, Result: vector.Float8, Args: []Param{{Kind: vector.Float8}}, Samples: [][]string{floatSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			return angle(args[0], func(v float64) float64 { return v * radiansPerDegree })
		},
	},
}

var scaleSamples = append([]string{"1.10", "-0.500", "100", "1000000000000000000.000000", "0.000"}, roundSamples...)

// radiansPerDegree is RADIANS_PER_DEGREE of float.c.
var radiansPerDegree float64 = 0.0174532925199432957692

// angle converts an angle; results that overflow or vanish are errors (float8_mul, float8_div).
func angle(x vector.Value, convert func(float64) float64) (vector.Value, error) {
	v := math.Float64frombits(uint64(x.I))
	r := convert(v)
	if math.IsInf(r, 0) && !math.IsInf(v, 0) || r == 0 && v != 0 {
		return vector.NullValue, failed("double precision out of range")
	}
	return vector.Value{I: int64(math.Float64bits(r))}, nil
}

// trimmed returns d without zeros at the end of its decimals.
func trimmed(d vector.Decimal) vector.Decimal {
	b, ten, rest := d.Unscaled.Big(), big.NewInt(10), new(big.Int)
	if b.Sign() == 0 {
		return vector.Decimal{}
	}
	for d.Scale > 0 {
		q, r := new(big.Int).QuoRem(b, ten, rest)
		if r.Sign() != 0 {
			break
		}
		b = q
		d.Scale--
	}
	d.Unscaled, _ = vector.Int128FromBig(b)
	return d
}

// numericDivisorOf is of two numerics, in units of the finer one's scale.
func numericDivisorOf(name string, oid uint32, of func(a, b *big.Int) *big.Int) Function {
	samples := append([]string{"12", "330", "4.5", "-0.10", "99999999999"}, roundSamples[:12]...)
	return Function{
		Name: name, OID: oid, Result: vector.Numeric, Args: []Param{{Kind: vector.Numeric}, {Kind: vector.Numeric, Usual: []string{"12", "2.5", "7"}}}, Samples: [][]string{samples, samples},
		Type: func(c Call) vector.Type {
			a, b := c.Args[0].Type, c.Args[1].Type
			if a.Varying() || b.Varying() {
				return vector.NumericType(vector.VaryingScale)
			}
			return vector.NumericType(max(a.Scale, b.Scale))
		},
		Eval: func(args []vector.Value) (vector.Value, error) {
			x, y := aligned(args[0].Num, args[1].Num)
			r, ok := vector.Int128FromBig(of(new(big.Int).Set(x), new(big.Int).Set(y)))
			if !ok {
				return vector.NullValue, failed("numeric beyond the bits that are held")
			}
			return vector.Value{Num: vector.Decimal{Unscaled: r, Scale: max(args[0].Num.Scale, args[1].Num.Scale)}}, nil
		},
	}
}
