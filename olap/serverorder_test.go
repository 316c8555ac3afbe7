package olap

import (
	"context"
	"fmt"
	"testing"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/vector"
)

// TestRankedViews compares the strings of a packed dictionary, which come as views of a buffer, with a text that only the
// server can rank: each has its own rank, and all are asked for at once.
func TestRankedViews(t *testing.T) {
	const n = 600 // packed
	text := textType(vector.Text, collR, -1)
	meta := &catalog.Table{OID: 1, Schema: "public", Name: "texts", Columns: []catalog.Column{{Name: "t", Type: text}}}
	var rows [][]vector.Datum
	for i := range n {
		rows = append(rows, []vector.Datum{{Type: text, Str: fmt.Sprintf("%04d", i)}})
	}
	table := &randomTable{meta, rows, load(t, newStore(t, 1024), meta, rows)}
	in := (&world{tables: []*randomTable{table}}).input()
	column := plan.Column{T: text}
	for _, c := range []struct {
		k    string
		want int64 // in an order that is backwards
	}{{"0099x", 500}, {"", n}, {"zzzz", 0}, {"0599x", 0}, {"0000x", n - 1}} {
		less := call(plan.OpLt, vector.Bool, column, plan.Const{Datum: vector.Datum{Type: text, Str: c.k}})
		other := call(plan.OpAnd, vector.Bool, call(plan.OpNe, vector.Bool, column, plan.Const{Datum: vector.Datum{Type: text, Str: "0000"}}), less)
		for form, cond := range []plan.Expr{less, call(plan.OpOr, vector.Bool, other, call(plan.OpAnd, vector.Bool, less, less))} {
			asked := 0
			q := &plan.Star{Tables: []plan.Source{{Meta: meta}}, Filter: []plan.Expr{cond}, Grouped: true, Aggs: []plan.AggregateCall{{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)}},
				Output: []plan.Expr{plan.Agg{T: vector.TypeOf(vector.Int8)}}}
			b, err := Execute(context.Background(), q, in, Options{Workers: 2, Eager: true, Rank: func(ctx context.Context, c vector.Collation, texts []string) ([]int32, error) {
				asked++
				return rankBackwards(ctx, c, texts)
			}})
			if err != nil {
				t.Fatal(err)
			}
			if got := b.Columns[0].Ints[0]; got != c.want || asked > 2 {
				t.Errorf("%q, form %d: %d rows, want %d; asked %d times", c.k, form, got, c.want, asked)
			}
		}
	}
}
