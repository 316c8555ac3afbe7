package sqlfn

import (
	"math"
	"strings"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// amounts are the functions of operators and casts of money (src/backend/utils/adt/cash.c). What leaves 64 bits wraps around, or is
// an error, by the server's version: it is left to the server.
var amounts = []Function{
	amountOf("cash_pl", 894, vector.Money, vector.Money, addWords),
	amountOf("cash_mi", 895, vector.Money, vector.Money, func(a, b int64) (int64, bool) { c := a - b; return c, (c < a) == (b > 0) }),

	amountOf("cash_mul_int2", 866, vector.Money, vector.Int2, timesWords),
	amountOf("cash_mul_int4", 864, vector.Money, vector.Int4, timesWords),
	amountOf("cash_mul_int8", 3344, vector.Money, vector.Int8, timesWords),
	amountOf("int2_mul_cash", 863, vector.Int2, vector.Money, timesWords),
	amountOf("int4_mul_cash", 862, vector.Int4, vector.Money, timesWords),
	amountOf("int8_mul_cash", 3399, vector.Int8, vector.Money, timesWords),
	amountOf("cash_div_int2", 867, vector.Money, vector.Int2, overWords),
	amountOf("cash_div_int4", 865, vector.Money, vector.Int4, overWords),
	amountOf("cash_div_int8", 3345, vector.Money, vector.Int8, overWords),

	amountOf("cash_mul_flt4", 846, vector.Money, vector.Float4, func(a, b int64) (int64, bool) { return wholeOf(float64(a) * floatOf(b)) }),
	amountOf("cash_mul_flt8", 896, vector.Money, vector.Float8, func(a, b int64) (int64, bool) { return wholeOf(float64(a) * floatOf(b)) }),
	amountOf("flt4_mul_cash", 848, vector.Float4, vector.Money, func(a, b int64) (int64, bool) { return wholeOf(floatOf(a) * float64(b)) }),
	amountOf("flt8_mul_cash", 919, vector.Float8, vector.Money, func(a, b int64) (int64, bool) { return wholeOf(floatOf(a) * float64(b)) }),
	amountOf("cash_div_flt4", 847, vector.Money, vector.Float4, func(a, b int64) (int64, bool) { return wholeOf(float64(a) / floatOf(b)) }),
	amountOf("cash_div_flt8", 897, vector.Money, vector.Float8, func(a, b int64) (int64, bool) { return wholeOf(float64(a) / floatOf(b)) }),

	{Name: "cash_div_cash", OID: 3822, Result: vector.Float8, Args: []Param{{Kind: vector.Money}, {Kind: vector.Money}}, Samples: [][]string{moneySamples, moneySamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			if args[1].I == 0 {
				return vector.NullValue, failed("division by zero")
			}
			return vector.Value{I: int64(math.Float64bits(float64(args[0].I) / float64(args[1].I)))}, nil
		}},

	{Name: "money", OID: 3811, Result: vector.Money, Args: []Param{{Kind: vector.Int4}}, Samples: [][]string{intSamples[vector.Int4]}, Eval: moneyOfInt},
	{Name: "money", OID: 3812, Result: vector.Money, Args: []Param{{Kind: vector.Int8}}, Samples: [][]string{append([]string{"92233720368547758", "-92233720368547758", "92233720368547759", "12", "1000000"}, intSamples[vector.Int8]...)}, Eval: moneyOfInt},
	{Name: "money", OID: 3824, Result: vector.Money, Args: []Param{{Kind: vector.Numeric}},
		Samples: [][]string{{"0", "1", "-1", "0.005", "-0.005", "0.0049", "1.005", "-1234.565", "92233720368547758.07", "92233720368547758.08", "-92233720368547758.08", "1e30", "12.30"}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			d, ok := awayFromZero.decimal(args[0].Num, moneyDecimals)
			cents, fits := d.Unscaled.Int64()
			if !ok || !fits {
				return vector.NullValue, failed("money out of range")
			}
			return vector.Value{I: cents}, nil
		}},
	{Name: "numeric", OID: 3823, Result: vector.Numeric, Total: true, Digits: 17, Args: []Param{{Kind: vector.Money}}, Samples: [][]string{moneySamples},
		Type: func(Call) vector.Type { return vector.NumericType(moneyDecimals) },
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.Value{Num: vector.Decimal{Unscaled: vector.Int128Of(args[0].I), Scale: moneyDecimals}}, nil
		}},
}

// moneyDecimals are those of an amount under lc_monetary as sqltype.MoneyIn has it.
const moneyDecimals = 2

var moneySamples = sqltype.Of(vector.Money).Samples

var amountSamples = map[vector.Kind][]string{vector.Money: moneySamples, vector.Int2: append([]string{"2", "-7"}, intSamples[vector.Int2]...), vector.Int4: append([]string{"2", "-7"}, intSamples[vector.Int4]...),
	vector.Int8:   append([]string{"2", "-7", "100"}, intSamples[vector.Int8]...),
	vector.Float4: {"0", "1", "-1", "0.5", "0.1", "-2.7", "1e10", "NaN"}, vector.Float8: {"0", "1", "-1", "0.5", "0.005", "0.1", "-2.7", "1.0825", "1e10", "Infinity"}}

// amountOf is a function whose result is an amount.
func amountOf(name string, oid uint32, l, r vector.Kind, f func(a, b int64) (c int64, ok bool)) Function {
	return Function{Name: name, OID: oid, Result: vector.Money, Args: []Param{{Kind: l}, {Kind: r}}, Samples: [][]string{amountSamples[l], amountSamples[r]}, Partial: strings.Contains(name, "_mul_"),
		Eval: func(args []vector.Value) (vector.Value, error) {
			v, ok := f(args[0].I, args[1].I)
			if !ok {
				return vector.NullValue, failed("money out of range, or divided by zero")
			}
			return vector.Value{I: v}, nil
		},
	}
}

func addWords(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

func timesWords(a, b int64) (int64, bool) { return vector.Mul64(a, b).Int64() }

func overWords(a, b int64) (int64, bool) {
	if b == 0 || b == -1 && a == math.MinInt64 {
		return 0, false
	}
	return a / b, true
}

func floatOf(word int64) float64 { return math.Float64frombits(uint64(word)) }

// wholeOf rounds as rint() does. ok is false beyond 64 bits.
func wholeOf(f float64) (v int64, ok bool) {
	f = math.RoundToEven(f)
	return int64(f), f >= -1<<63 && f < 1<<63
}

func moneyOfInt(args []vector.Value) (vector.Value, error) {
	cents, ok := timesWords(args[0].I, 100)
	if !ok {
		return vector.NullValue, failed("bigint out of range")
	}
	return vector.Value{I: cents}, nil
}

// The functions of a sum of money, which are no entries of the table: its hundredths are summed, and their sizes (SizeOfInt8).
var (
	MoneyCents = &Function{Name: "cents", OID: oidMoneyCents, Result: vector.Int8, Total: true, Args: []Param{{Kind: vector.Money}},
		Eval: func(args []vector.Value) (vector.Value, error) { return vector.Value{I: args[0].I}, nil },
		Kernel: func(Call, int) *Kernel {
			return &Kernel{F: func(v int64) (int64, error) { return v, nil }, First: math.MinInt64, Last: math.MaxInt64, Monotone: true}
		}}
	MoneySum = &Function{Name: "sum", OID: oidMoneySum, Result: vector.Money, Total: true, Args: []Param{{Kind: vector.Int8}, {Kind: vector.Int8}},
		Eval: func(args []vector.Value) (vector.Value, error) { return vector.Value{I: args[0].I}, nil }}
)

// SizeOfInt4 and SizeOfInt8 are the sizes of fields, the sum of which (FieldSum) leaves 64 bits where that of the fields may leave
// theirs on the way, by the order of the rows: then the server says whether it does. Those of 32 bits count so many times as much.
var (
	SizeOfInt4 = sizeOf(oidSizeOfInt4, vector.Int4, 32)
	SizeOfInt8 = sizeOf(oidSizeOfInt8, vector.Int8, 0)
)

func sizeOf(oid uint32, k vector.Kind, shift uint) *Function {
	size := func(v int64) int64 {
		if v = max(v, -v); v < 0 || v > math.MaxInt64>>shift { // the least value, beside which any other may be too much
			return math.MaxInt64
		}
		return v << shift
	}
	return &Function{Name: "size", OID: oid, Result: vector.Int8, Total: true, Args: []Param{{Kind: k}},
		Eval: func(args []vector.Value) (vector.Value, error) { return vector.Value{I: size(args[0].I)}, nil },
		Kernel: func(Call, int) *Kernel {
			return &Kernel{F: func(v int64) (int64, error) { return size(v), nil }, First: math.MinInt64, Last: math.MaxInt64,
				Range: func(lo, hi int64) (int64, int64, error) {
					if lo <= 0 && hi >= 0 {
						return 0, max(size(lo), size(hi)), nil
					}
					return min(size(lo), size(hi)), max(size(lo), size(hi)), nil
				}}
		}}
}
