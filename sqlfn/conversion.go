package sqlfn

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// conversions are the functions of casts of numbers that more than truncate or widen (PostgreSQL's numeric.c and float.c).
var conversions = []Function{
	numericOfFloat(1743, vector.Float8, 15), // DBL_DIG
	numericOfFloat(1742, vector.Float4, 6),  // FLT_DIG
	realOf(236, vector.Int2, intSamples[vector.Int2], realOfInt),
	realOf(318, vector.Int4, append([]string{"16777217", "33554435"}, intSamples[vector.Int4]...), realOfInt),
	realOf(652, vector.Int8, append([]string{"16777217", "9007199791611905"}, intSamples[vector.Int8]...), realOfInt),
	realOf(1745, vector.Numeric, append([]string{"16777217", "0.1", "1.00000017881393432617187500"}, roundSamples...), func(v vector.Value) (float32, error) {
		f, err := strconv.ParseFloat(v.Num.String(), 32)
		return float32(f), err
	}),
	realOf(312, vector.Float8, append([]string{"0.1", "3.4028235677973366e38", "1e-46", "7e-46", "-1e39", "1.00000017881393432617187499"}, floatSamples...), func(v vector.Value) (float32, error) {
		return float32(math.Float64frombits(uint64(v.I))), nil
	}),
	{
		Name: "bool", OID: 2557, Result: vector.Bool, Args: []Param{{Kind: vector.Int4}}, Total: true, Samples: [][]string{intSamples[vector.Int4]},
		Eval: func(args []vector.Value) (vector.Value, error) { return vector.BoolValue(args[0].I != 0), nil },
	},
	{
		Name: "oid", OID: 1287, Result: vector.OID, Args: []Param{{Kind: vector.Int8}}, Partial: true, Samples: [][]string{{"0", "1", "4294967295", "4294967296", "-1"}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			if args[0].I < 0 || args[0].I > math.MaxUint32 {
				return vector.NullValue, failed("oid out of range")
			}
			return args[0], nil
		},
	},
	{
		Name: "int8", OID: 1288, Result: vector.Int8, Args: []Param{{Kind: vector.OID}}, Total: true, Samples: [][]string{sqltype.Of(vector.OID).Samples},
		Eval: func(args []vector.Value) (vector.Value, error) { return args[0], nil },
	},
}

// numericOfFloat has as many significant digits as the type always keeps, without zeros at their end.
func numericOfFloat(oid uint32, k vector.Kind, digits int) Function {
	samples := []string{"0", "-0", "-2.5", "0.1", "123456.789", "1234567", "99999.95", "999999.5", "1e15", "123456789012345678", "1e-7", "1.5e-10", "1e22", "0.30000000000000004", "2.675", "1e30", "-3e-38", "NaN", "Infinity"}
	return Function{Name: "numeric", OID: oid, Result: vector.Numeric, Args: []Param{{Kind: k}}, Samples: [][]string{samples},
		Type: func(Call) vector.Type { return vector.NumericType(vector.VaryingScale) },
		Eval: func(args []vector.Value) (vector.Value, error) {
			v := math.Float64frombits(uint64(args[0].I))
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return vector.NullValue, failed("numeric NaN or infinity")
			}
			mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', digits-1, 64), "e")
			whole, part, _ := strings.Cut(mantissa, ".")
			part = strings.TrimRight(part, "0")
			unscaled, _ := new(big.Int).SetString(whole+part, 10)
			e, _ := strconv.Atoi(exponent)
			scale := len(part) - e
			if scale < 0 && unscaled.Sign() != 0 {
				unscaled.Mul(unscaled, vector.BigPow10(-scale))
			}
			u, ok := vector.Int128FromBig(unscaled)
			if !ok {
				return vector.NullValue, failed("numeric beyond the bits that are held")
			}
			return vector.Value{Num: vector.Decimal{Unscaled: u, Scale: int16(max(scale, 0))}}, nil
		},
	}
}

func realOfInt(v vector.Value) (float32, error) { return float32(v.I), nil }

// realOf rounds to a real; what overflows or vanishes is an error.
func realOf(oid uint32, k vector.Kind, samples []string, round func(v vector.Value) (float32, error)) Function {
	return Function{Name: "float4", OID: oid, Result: vector.Float4, Args: []Param{{Kind: k}}, Total: k.IsInt(), Samples: [][]string{samples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			f, err := round(args[0])
			zero := args[0].I == 0
			infinite := false
			switch k {
			case vector.Float8:
				v := math.Float64frombits(uint64(args[0].I))
				zero, infinite = v == 0, math.IsInf(v, 0)
			case vector.Numeric:
				zero = args[0].Num.Unscaled.Sign() == 0
			}
			if err != nil || math.IsInf(float64(f), 0) && !infinite || f == 0 && !zero {
				return vector.NullValue, failed("real out of range")
			}
			return vector.Value{I: sqltype.WidenFloat4(math.Float32bits(f))}, nil
		},
	}
}
