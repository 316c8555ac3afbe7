package pushdown

import (
	"os"
	"slices"
	"testing"

	"pgaccel/catalog"
	"pgaccel/explain"
	"pgaccel/plan"
	"pgaccel/vector"
)

func readText(t testing.TB, name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkPlan verifies what package plan promises of a statement's tree, and of the star that is
// made of it.
func checkPlan(t *testing.T, st Statement) {
	t.Helper()
	if st.Tree != nil {
		if err := plan.Validate(st.Tree, st.Deps.Tables, st.Deps.Params); err != nil {
			t.Fatalf("%v\n%s", err, plan.Format(st.Tree, st.Deps.Tables))
		}
	}
	if st.Star == nil {
		return
	}
	for _, format := range []string{"text", "json"} { // whatever is planned can be explained
		o := explain.Options{Verbose: true, Costs: true, Format: format}
		(&explain.Statement{Plan: explain.Plan(st.Star, o)}).Rows(o)
	}
	st.Star.Walk(func(q *plan.Star) { checkStar(t, q, st.Deps.Tables) })
}

func checkStar(t *testing.T, q *plan.Star, tables []plan.Table) {
	t.Helper()
	check := func(e plan.Expr, groups bool) {
		plan.Walk(e, func(x plan.Expr) bool {
			typ := x.Type()
			switch x := x.(type) {
			case plan.Column:
				m := &q.Tables[x.Table]
				if groups || m.Relation == nil && !slices.Contains(tables[m.Table].Columns, x.Column) {
					t.Fatalf("column %s", m.Meta.Columns[x.Column].Name)
				}
			case plan.Scalar:
				if q.Scalars[x.Of].Output[x.Index].Type() != typ {
					t.Fatal("scalar")
				}
			case plan.Key:
				if !groups || q.Group[x.Index].Type().Kind != typ.Kind {
					t.Fatal("key")
				}
			case *plan.Grouping:
				if !groups || q.Sets == nil {
					t.Fatal("GROUPING")
				}
			case plan.Agg:
				if !groups || q.Aggs[x.Index].T.Kind != typ.Kind {
					t.Fatal("aggregate")
				}
			}
			return true
		})
	}
	all := func(es []plan.Expr, groups bool) {
		for _, e := range es {
			check(e, groups)
		}
	}
	for _, s := range q.Tables {
		if s.Relation == nil {
			continue
		}
		var columns []catalog.Column
		for i, c := range s.Relation.Meta.Columns {
			if !slices.ContainsFunc(s.Relation.Windows, func(w plan.WindowColumn) bool { return w.To == i }) {
				columns = append(columns, c)
			}
		}
		if s.Relation.Series != nil {
			continue
		}
		if p := s.Relation.ProjectSet; p != nil { // what its block has are its arguments
			kept := columns[p.Ordinality()+1:]
			columns = append(slices.Repeat([]catalog.Column{{Type: vector.TypeOf(vector.Bytea)}}, len(p.Calls)), kept...)
		}
		for _, b := range s.Relation.Blocks {
			for i, c := range columns {
				if len(b.Output) != len(columns) || b.Output[i].Type().Kind != c.Type.Kind {
					t.Fatal("columns of a relation")
				}
			}
		}
	}
	attached, many := uint64(1), 0
	for i, j := range q.Joins {
		if j.Table != i+1 || len(j.Key) == 0 || len(j.Key) != len(j.Outer) || !j.Many && !j.Exists && j.Kind != plan.Single && !q.Tables[j.Table].Meta.UniqueOn(j.Key) {
			t.Fatal("join")
		}
		if j.Many {
			if many++; many > 1 || j.Kind == plan.Inner && len(j.On) > 0 {
				t.Fatal("join on no unique key")
			}
		}
		for _, e := range j.Outer {
			if plan.Tables(e)&^attached != 0 {
				t.Fatal("join key over tables not attached yet")
			}
		}
		attached |= 1 << j.Table
		all(j.Outer, false)
		all(j.On, false)
	}
	if len(q.Tables) != len(q.Joins)+1 && len(q.Tables)+len(q.Joins) > 0 {
		t.Fatal("tables without a join")
	}
	all(q.Filter, false)
	all(q.Group, false)
	for _, g := range q.Aggs {
		check(g.Arg, false)
		check(g.Filter, false)
	}
	all(q.Having, true)
	all(q.Output, q.Grouped)
	for _, o := range q.Order {
		check(o.Expr, q.Grouped)
	}
}
