package olap

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgaccel/plan"
	"pgaccel/vector"
)

// TestKeysThatFollow groups by a column and what is a constant apart from it, in every way: such keys are no
// part of groups' numbers, but where the sum may overflow, which is an error, or there are grouping sets.
func TestKeysThatFollow(t *testing.T) {
	withSmallGroups(t)
	r := rand.New(rand.NewPCG(9, 9))
	number := func(v int64) plan.Expr { return plan.Const{Datum: vector.Int(vector.Int8, v)} }
	x := bigint(0, 0)
	answered := 0
	for _, n := range edgeLengths {
		for _, far := range []int64{0, math.MaxInt64 - 2} {
			var rows [][]any
			for range n {
				if row := []any{far - r.Int64N(60), int64(r.IntN(3))}; r.IntN(8) == 0 {
					rows = append(rows, []any{nil, row[1]})
				} else {
					rows = append(rows, row)
				}
			}
			w := &world{tables: []*randomTable{ints(t, 1024, []string{"x", "y"}, rows)}}
			q := &plan.Star{Tables: []plan.Source{{Meta: w.tables[0].meta}}, Grouped: true, Aggs: []plan.AggregateCall{{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)}},
				Group: []plan.Expr{call(plan.OpSub, vector.Int8, x, number(1)), x, call(plan.OpAdd, vector.Int8, number(2), x), bigint(0, 1),
					call(plan.OpSub, vector.Int8, number(7), x), call(plan.OpAdd, vector.Int8, bigint(0, 1), number(-5)), call(plan.OpAdd, vector.Int8, x, number(far/1000))}}
			for i := range q.Group {
				q.Output = append(q.Output, plan.Key{Index: i, T: vector.TypeOf(vector.Int8)})
				q.Order = append(q.Order, plan.Order{Expr: q.Output[i], Desc: i == 0})
			}
			q.Output = append(q.Output, plan.Agg{Index: 0, T: vector.TypeOf(vector.Int8)})
			for _, sets := range [][]uint64{nil, {1, 1 | 2, 127, 0}} {
				q.Sets = sets
				want, wantErr := w.reference(q)
				for i, s := range strategies {
					got, err := Execute(t.Context(), q, w.input(), Options{Workers: 1 + i, grouping: s.how})
					problem, why := compareOutcomes(q, got, err, want, wantErr)
					if problem != "" {
						t.Fatalf("%d rows near %d, sets %v, %s: %s", n, far, sets, s.name, problem)
					}
					answered += int(b2i(why == ""))
				}
			}
		}
	}
	if answered < 6*len(edgeLengths) {
		t.Errorf("only %d were answered", answered)
	}
}

// TestKeysThatFollowAreNoParts looks at how wide groups' numbers are.
func TestKeysThatFollowAreNoParts(t *testing.T) {
	w := &world{tables: []*randomTable{ints(t, 1024, []string{"x"}, [][]any{{int64(0)}, {int64(1) << 40}})}}
	x := bigint(0, 0)
	q := &plan.Star{Tables: []plan.Source{{Meta: w.tables[0].meta}}, Grouped: true, Group: []plan.Expr{x}}
	for i := range 4 {
		q.Group = append(q.Group, call(plan.OpSub, vector.Int8, x, plan.Const{Datum: vector.Int(vector.Int8, int64(i))}))
	}
	q.Output = []plan.Expr{plan.Key{Index: 2, T: vector.TypeOf(vector.Int8)}}
	if text := Explain(q, w.input()); !strings.Contains(text, "hash of groups, 1 words") {
		t.Error(text)
	}
}
