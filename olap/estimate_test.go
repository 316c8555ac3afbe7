package olap

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/vector"
)

// clusteredTable has a column of which so many neighbours are equal, in multiples of 32.
func clusteredTable(t testing.TB, rows, neighbours int) *randomTable {
	meta := &catalog.Table{OID: 1, Schema: "public", Name: "clustered", Columns: []catalog.Column{{Name: "key", Type: vector.TypeOf(vector.Int8)}}}
	l := newStore(t, 0).NewLoader(meta)
	w := l.NewWriter()
	for i := range rows {
		w.Int(0, int64(i/neighbours)*32)
		if err := w.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	table, err := l.Finish()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Release)
	return &randomTable{meta: meta, table: table}
}

// The rows of a group are neighbours: that a sample has all of them says nothing of how many
// groups there are.
func TestEstimateOfClusteredKeys(t *testing.T) {
	const rows = 1 << 20
	for neighbours, partitioned := range map[int]bool{1: true, 4: true, 1024: false} {
		table := clusteredTable(t, rows, neighbours)
		in := (&world{tables: []*randomTable{table}}).input()
		text := Explain(groupedBy(table, 0), in)
		if got := strings.Contains(text, "partitioned"); got != partitioned {
			t.Errorf("%d rows a group:\n%s", neighbours, text)
		}
	}
}

// BenchmarkClustered groups by keys whose rows are neighbours.
func BenchmarkClustered(b *testing.B) {
	const rows = 1 << 21
	for _, neighbours := range []int{1, 4, 64} {
		table := clusteredTable(b, rows, neighbours)
		for _, s := range strategies {
			b.Run(fmt.Sprintf("%d/%s", neighbours, s.name), func(b *testing.B) {
				q := groupedBy(table, 0)
				q.Order = []plan.Order{{Expr: q.Output[0]}}
				q.Limit = plan.Const{Datum: vector.Int(vector.Int8, 100)}
				benchQuery(b, q, (&world{tables: []*randomTable{table}}).input(), Options{grouping: s.how, MemoryLimit: 4 << 30})
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
			})
		}
	}
}

func benchQuery(b *testing.B, q *plan.Star, in Input, opt Options) {
	for b.Loop() {
		if _, err := Execute(context.Background(), q, in, opt); err != nil {
			b.Fatal(err)
		}
	}
}
