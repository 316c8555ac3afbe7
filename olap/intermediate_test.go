package olap

import (
	"math"
	"testing"

	"pgaccel/plan"
	"pgaccel/vector"
)

// TestNarrowedScalar compares columns, and casts of them, with what a scalar turned out to be, as
// they are written and by constants of the columns' own scale.
func TestNarrowedScalar(t *testing.T) {
	decimal := func(s string) vector.Decimal {
		d, ok := vector.ParseDecimal(s)
		if !ok {
			t.Fatal(s)
		}
		return d
	}
	int2, int4, int8 := vector.TypeOf(vector.Int2), vector.TypeOf(vector.Int4), vector.TypeOf(vector.Int8)
	cents, mills, varying := vector.NumericType(2), vector.NumericType(3), vector.NumericType(vector.VaryingScale)
	bounds := []plan.Const{{Datum: vector.Null(mills)}, {Datum: vector.Null(varying)}}
	for _, s := range []string{"0", "0.000", "-0.001", "1.23", "1.230", "1.229", "-1.231", "7.0000000001", "-6.9999999999", "32767.5", "2147483648", "-2147483648.01",
		"9223372036854775807.5", "92233720368547758.07", "92233720368547758.071", "-92233720368547758.08",
		"12345678901234567890123456789.5"} {
		d := decimal(s)
		for _, k := range []vector.Type{vector.NumericType(d.Scale), varying} {
			bounds = append(bounds, plan.Const{Datum: vector.Value{Num: d}.Datum(k)})
		}
	}
	values := func(t vector.Type) []vector.Value {
		list := []vector.Value{vector.NullValue}
		for _, w := range []int64{0, 1, -1, 6, 7, -7, 122, 123, 124, -123, -124, 32767, -32768, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64} {
			if t == int2 && w != int64(int16(w)) || t == int4 && w != int64(int32(w)) {
				continue
			}
			list = append(list, vector.WordValue(w, t))
		}
		return list
	}
	compared, changed := 0, 0
	for _, column := range []vector.Type{int2, int4, int8, cents} {
		leaf := plan.Column{T: column}
		to := func(e plan.Expr, k vector.Type) plan.Expr {
			return &plan.Call{Op: plan.OpCast, T: k, Args: []plan.Expr{e}}
		}
		sides := []plan.Expr{to(leaf, mills), to(leaf, varying), to(to(leaf, mills), varying)}
		if column.Kind == vector.Numeric {
			sides = append(sides, leaf)
		}
		for _, side := range sides {
			for _, k := range bounds {
				for op := range plan.Flipped {
					for _, args := range [][]plan.Expr{{side, k}, {k, side}} {
						c := &plan.Call{Op: op, T: vector.TypeOf(vector.Bool), Args: args}
						n := narrowed(c)
						if n != plan.Expr(c) {
							changed++
						}
						for _, v := range values(column) {
							e := env{leaf: func(plan.Expr) (vector.Value, error) { return v, nil }}
							want, err := e.eval(c)
							if err != nil {
								t.Fatal(err)
							}
							if got, err := e.eval(n); err != nil || got != want {
								t.Fatalf("%v of %v: %v by %v, not %v (%v)", c, v, got, n, want, err)
							}
							compared++
						}
					}
				}
			}
		}
	}
	if changed < compared/100 {
		t.Errorf("%d comparisons were narrowed, of %d outcomes", changed, compared)
	}
}
