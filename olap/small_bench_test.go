package olap

import (
	"context"
	"testing"

	"pgaccel/plan"
	"pgaccel/vector"
)

// BenchmarkSmall executes queries that have next to nothing to do: what remains is the
// cost of an execution.
func BenchmarkSmall(b *testing.B) {
	table := benchTable(b, 1e5, false, 1)
	in := (&world{tables: []*randomTable{table}}).input()
	none := []plan.Expr{call(plan.OpLt, vector.Bool, bigint(0, 0), integer(-1))}
	one := []plan.Expr{call(plan.OpEq, vector.Bool, bigint(0, 0), integer(77))}
	grouped := groupedBy(table, 0)
	for _, c := range []struct {
		name   string
		filter []plan.Expr
		q      plan.Star
	}{
		{"no row/rows", none, plan.Star{Tables: grouped.Tables, Output: []plan.Expr{bigint(0, 1)}}},
		{"no row/groups", none, *grouped},
		{"no row/one group", none, *groupedBy(table)},
		{"20 rows/groups", one, *grouped},
	} {
		c.q.Filter = c.filter
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Execute(context.Background(), &c.q, in, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
