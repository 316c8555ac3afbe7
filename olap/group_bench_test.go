package olap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/vector"
)

// groupBenchRows are the rows of the table that BenchmarkGroups groups.
const groupBenchRows = 1 << 21

// benchTable has two columns: a key with about so many distinct values, spread times
// apart, and an integer.
func benchTable(b *testing.B, groups int, zipf bool, spread int64) *randomTable {
	r := rand.New(rand.NewPCG(uint64(groups), uint64(spread)))
	next := func() uint64 { return r.Uint64N(uint64(groups)) }
	if zipf {
		next = rand.NewZipf(r, 1.1, 10, uint64(groups)-1).Uint64
	}
	names := r.Perm(groups) // the frequent keys are not neighbours
	meta := &catalog.Table{OID: 1, Schema: "public", Name: "bench", Columns: []catalog.Column{
		{Name: "key", Type: vector.TypeOf(vector.Int8)}, {Name: "x", Type: vector.TypeOf(vector.Int8)}}}
	l := newStore(b, 0).NewLoader(meta)
	w := l.NewWriter()
	for range groupBenchRows {
		w.Int(0, int64(names[next()])*spread)
		w.Int(1, int64(r.IntN(1000)))
		if err := w.EndRow(); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	table, err := l.Finish()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(table.Release)
	return &randomTable{meta: meta, table: table}
}

// BenchmarkGroups groups by every strategy, so that what the chooser (auto) takes can be
// compared with the others. All answers of a table are checked against each other.
func BenchmarkGroups(b *testing.B) {
	for _, zipf := range []bool{false, true} {
		for _, groups := range []int{10, 1e3, 1e5, 1e6} {
			for _, spread := range []int64{1, 1000003} {
				name := fmt.Sprintf("%s/%d/spread=%d", map[bool]string{false: "uniform", true: "zipf"}[zipf], groups, spread)
				b.Run(name, func(b *testing.B) {
					table := benchTable(b, groups, zipf, spread)
					var want []string
					for _, s := range strategies {
						b.Run(s.name, func(b *testing.B) { benchGroups(b, table, s.how, &want) })
					}
				})
			}
		}
	}
}

func benchGroups(b *testing.B, table *randomTable, how strategy, want *[]string) {
	t := vector.TypeOf(vector.Int8)
	q := &plan.Star{Tables: []plan.Source{{Meta: table.meta}}, Grouped: true, Group: []plan.Expr{bigint(0, 0)},
		Aggs:   []plan.AggregateCall{{Func: plan.CountStar, T: t}, {Func: plan.Sum, Arg: bigint(0, 1), T: vector.NumericType(0)}},
		Output: []plan.Expr{plan.Key{Index: 0, T: t}, plan.Agg{Index: 0, T: t}, plan.Agg{Index: 1, T: vector.NumericType(0)}}}
	q.Order = []plan.Order{{Expr: q.Output[2], Desc: true}, {Expr: q.Output[0]}}
	q.Limit = plan.Const{Datum: vector.Int(vector.Int8, 100)}
	in := (&world{tables: []*randomTable{table}}).input()
	var got *vector.Batch
	for b.Loop() {
		var err error
		if got, err = Execute(context.Background(), q, in, Options{grouping: how, MemoryLimit: 4 << 30}); err != nil {
			b.Fatal(err)
		}
	}
	var rows []string
	for i := range got.Rows {
		rows = append(rows, rowText(got, i))
	}
	if *want == nil {
		*want = rows
	} else if !slices.Equal(rows, *want) {
		b.Errorf("another answer than other strategies'")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/groupBenchRows, "ns/row")
}
