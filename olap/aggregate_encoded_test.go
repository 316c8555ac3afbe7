package olap

import (
	"context"
	"math/rand/v2"
	"testing"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// encodedQuery asks for what segments know of themselves. Plainly it does so behind a
// filter that every row passes, so that the rows are looked at.
func encodedQuery(t *randomTable, plainly bool) *plan.Star {
	q := &plan.Star{Tables: []plan.Source{{Meta: t.meta}}, Grouped: true}
	int8, numeric := vector.TypeOf(vector.Int8), vector.NumericType(0)
	add := func(f *sqlfn.Aggregate, arg plan.Expr, t vector.Type) {
		a := plan.AggregateCall{Func: f, Arg: arg, T: t}
		if plainly {
			a.Filter = call(plan.OpIsNotNull, vector.Bool, bigint(0, 0))
		}
		q.Output = append(q.Output, plan.Agg{Index: len(q.Aggs), T: t})
		q.Aggs = append(q.Aggs, a)
	}
	add(plan.CountStar, nil, int8)
	for c := range t.meta.Columns {
		add(plan.Count, bigint(0, c), int8)
		add(plan.Sum, bigint(0, c), numeric)
		add(plan.Min, bigint(0, c), int8)
		add(plan.Max, bigint(0, c), int8)
		add(plan.VarPop, bigint(0, c), vector.NumericType(vector.VaryingScale))
	}
	return q
}

// encodedTable has columns of several encodings: ids, few values with nulls, runs, wide
// values, nulls alone.
func encodedTable(t testing.TB, n, segment int) *randomTable {
	r := rand.New(rand.NewPCG(6, uint64(n)))
	var rows [][]any
	for i := range int64(n) {
		row := []any{i, r.Int64N(100) - 50, i / 1000, int64(r.Uint64()), nil}
		if r.IntN(7) == 0 {
			row[1] = nil
		}
		rows = append(rows, row)
	}
	return ints(t, segment, []string{"id", "few", "runs", "wide", "none"}, rows)
}

func TestEncodedAggregates(t *testing.T) {
	for _, n := range append([]int{5000}, edgeLengths...) {
		w := &world{tables: []*randomTable{encodedTable(t, n, 1024)}}
		for _, workers := range []int{1, 3} {
			fast, err := Execute(context.Background(), encodedQuery(w.tables[0], false), w.input(), Options{Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			plain, err := Execute(context.Background(), encodedQuery(w.tables[0], true), w.input(), Options{Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			if a, b := rowText(fast, 0), rowText(plain, 0); a != b {
				t.Errorf("%d rows: %s\nplainly %s", n, a, b)
			}
		}
	}
}

// BenchmarkEncoded compares sums, minima, maxima and counts of whole segments with those
// of their rows.
func BenchmarkEncoded(b *testing.B) {
	w := &world{tables: []*randomTable{encodedTable(b, benchRows, 1<<16)}}
	run := func(plainly bool) string {
		q := encodedQuery(w.tables[0], plainly)
		var aggs []plan.AggregateCall
		for _, a := range q.Aggs {
			if a.Func != plan.VarPop {
				aggs = append(aggs, a)
			}
		}
		q.Aggs, q.Output = aggs, nil
		for i, a := range aggs {
			q.Output = append(q.Output, plan.Agg{Index: i, T: a.T})
		}
		batch, err := Execute(context.Background(), q, w.input(), Options{Workers: 1})
		if err != nil {
			b.Fatal(err)
		}
		return rowText(batch, 0)
	}
	var fast, plain string
	against(b, benchRows, func() { fast = run(false) }, func() { plain = run(true) })
	if fast != plain {
		b.Fatalf("%s\nplainly %s", fast, plain)
	}
}
