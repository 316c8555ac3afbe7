package sqlfn

import (
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// amounts are the functions of operators of money (src/backend/utils/adt/cash.c).
var amounts = []Function{
	amountOf("cash_pl", 894, func(a, b int64) (int64, bool) { c := a + b; return c, (c > a) == (b > 0) }),
	amountOf("cash_mi", 895, func(a, b int64) (int64, bool) { c := a - b; return c, (c < a) == (b > 0) }),
}

// amountOf is of two amounts. What leaves 64 bits wraps around, or is an error, by the server's version.
func amountOf(name string, oid uint32, f func(a, b int64) (c int64, ok bool)) Function {
	samples := sqltype.Of(vector.Money).Samples
	return Function{Name: name, OID: oid, Result: vector.Money, Args: []Param{{Kind: vector.Money}, {Kind: vector.Money}}, Samples: [][]string{samples, samples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			v, ok := f(args[0].I, args[1].I)
			if !ok {
				return vector.NullValue, failed("money out of range")
			}
			return vector.Value{I: v}, nil
		},
	}
}
