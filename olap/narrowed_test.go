package olap

import (
	"testing"

	"pgaccel/plan"
	"pgaccel/vector"
)

// TestNarrowedKeys groups by columns of which a range of the scan's conditions leaves some values: keys, arguments and
// expressions over them have narrower bounds then.
func TestNarrowedKeys(t *testing.T) {
	worlds := 30
	if testing.Short() {
		worlds = 15
	}
	answered, asked := 0, 0
	for seed := range uint64(worlds) {
		w := newWorld(t, seed+9000)
		for n := range 10 {
			q := w.query()
			if !q.Grouped {
				continue
			}
			// Ranges over columns that the query groups by, or adds up: of the scanned table, or of a joined one.
			for range 1 + w.r.IntN(3) {
				c := w.keyColumn(q)
				if c.T.Kind.IsString() || c.T.Kind.IsFloat() || c.T.Kind == vector.Bool {
					continue
				}
				rows := w.tables[c.Table].rows
				if len(rows) == 0 {
					continue
				}
				d := rows[w.r.IntN(len(rows))][c.Column]
				if d.Null {
					continue
				}
				op := []plan.Op{plan.OpLt, plan.OpLe, plan.OpEq, plan.OpGe, plan.OpGt, plan.OpNe}[w.r.IntN(6)]
				q.Filter = append(q.Filter, call(op, vector.Bool, c, plan.Const{Datum: d}))
			}
			asked++
			problem, why := w.outcome(q, 1+n%3)
			if problem != "" {
				t.Fatalf("seed %d query %d: %s\n%s", seed, n, problem, queryText(q))
			}
			if why == "" {
				answered++
			}
		}
	}
	if answered < asked/2 {
		t.Errorf("only %d of %d queries were answered", answered, asked)
	}
}

// keyColumn returns a column that the query's keys or arguments read; any, where they read none.
func (w *world) keyColumn(q *plan.Star) plan.Column {
	var list []plan.Column
	note := func(e plan.Expr) {
		if e == nil {
			return
		}
		plan.Walk(e, func(x plan.Expr) bool {
			if c, ok := x.(plan.Column); ok && c.Table < len(w.tables) && q.Tables[c.Table].Relation == nil {
				list = append(list, c)
			}
			return true
		})
	}
	for _, e := range q.Group {
		note(e)
	}
	for _, a := range q.Aggs {
		note(a.Arg)
	}
	if len(list) == 0 {
		return w.column(0, colP1).(plan.Column)
	}
	return list[w.r.IntN(len(list))]
}
