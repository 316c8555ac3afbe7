package olap

import (
	"context"
	"fmt"
	"math"
	"testing"

	"pgaccel/plan"
	"pgaccel/vector"
)

// TestSumOverManyPartners adds up values that fit 64 bits but for the number of partners
// of their row.
func TestSumOverManyPartners(t *testing.T) {
	var partners [][]any
	for range 3000 {
		partners = append(partners, []any{int64(1), int64(5)})
	}
	x := int64(math.MaxInt64 / 1000)
	w := &world{tables: []*randomTable{ints(t, 1024, []string{"k", "x"}, [][]any{{int64(1), x}, {int64(2), int64(7)}}), ints(t, 1024, []string{"k", "y"}, partners)}}
	int8, numeric := vector.TypeOf(vector.Int8), vector.NumericType(0)
	q := &plan.Star{Tables: []plan.Source{{Meta: w.tables[0].meta}, {Meta: w.tables[1].meta, Table: 1}}, Grouped: true,
		Joins: []plan.StarJoin{{Table: 1, Kind: plan.Inner, Outer: []plan.Expr{bigint(0, 0)}, Key: []int{0}, Many: true}},
		Aggs: []plan.AggregateCall{{Func: plan.CountStar, T: int8}, {Func: plan.Sum, Arg: bigint(0, 1), T: numeric},
			{Func: plan.Sum, Arg: bigint(1, 1), T: numeric}, {Func: plan.Count, Arg: bigint(0, 1), T: int8, Distinct: true}},
		Output: []plan.Expr{plan.Agg{T: int8}, plan.Agg{Index: 1, T: numeric}, plan.Agg{Index: 2, T: numeric}, plan.Agg{Index: 3, T: int8}}}
	got, err := Execute(context.Background(), q, w.input(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	sum := vector.Decimal{Unscaled: vector.Mul64(x, 3000)}
	if want := fmt.Sprintf("3000 | %s | 15000 | 1 | ", sum); rowText(got, 0) != want {
		t.Errorf("%s, want %s", rowText(got, 0), want)
	}
}
