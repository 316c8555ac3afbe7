package pushdown

import (
	"os"
	"testing"

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

// checkPlan verifies what package plan promises of a Query.
func checkPlan(t *testing.T, q *plan.Query) {
	t.Helper()
	check := func(e plan.Expr, groups bool) {
		plan.Walk(e, func(x plan.Expr) bool {
			typ := x.Type()
			if typ.Kind == vector.Invalid {
				t.Fatalf("invalid type in %T", x)
			}
			varying := typ.Kind == vector.Numeric && typ.Scale == vector.VaryingScale
			switch x := x.(type) {
			case plan.Column:
				m := &q.Tables[x.Table]
				if groups || m.Meta.Columns[x.Column].Unsupported != "" {
					t.Fatalf("column %s", m.Meta.Columns[x.Column].Name)
				}
				found := false
				for _, c := range m.Columns {
					found = found || c == x.Column
				}
				if !found {
					t.Fatalf("column %s is read and not mentioned", m.Meta.Columns[x.Column].Name)
				}
			case plan.Param:
				if p := q.Params[x.Index]; p.Kind != typ.Kind || p.Scale != typ.Scale {
					t.Fatalf("$%d has two types", x.Index+1)
				}
			case plan.Key:
				if !groups || q.Group[x.Index].Type().Kind != typ.Kind {
					t.Fatal("key")
				}
			case *plan.Grouping:
				if !groups || q.Sets == nil || len(x.Keys) > 31 || typ.Kind != vector.Int4 {
					t.Fatal("GROUPING")
				}
				for _, k := range x.Keys {
					if k >= len(q.Group) {
						t.Fatal("GROUPING of no key")
					}
				}
			case plan.Agg:
				if !groups || q.Aggs[x.Index].T.Kind != typ.Kind {
					t.Fatal("aggregate")
				}
			case *plan.Call:
				if !groups && varying {
					t.Fatal("varying scale over rows")
				}
				checkCall(t, x)
			}
			return true
		})
	}
	all := func(es []plan.Expr, groups bool) {
		for _, e := range es {
			check(e, groups)
		}
	}
	attached, many := uint64(1), 0
	for i, j := range q.Joins {
		if j.Table != i+1 || len(j.Key) == 0 || len(j.Key) != len(j.Outer) || !j.Many && !q.Tables[j.Table].Meta.UniqueOn(j.Key) {
			t.Fatal("join")
		}
		if j.Many {
			if many++; many > 1 || j.Kind != plan.Inner || len(j.On) > 0 {
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
	if len(q.Tables) != len(q.Joins)+1 {
		t.Fatal("tables without a join")
	}
	all(q.Filter, false)
	all(q.Group, false)
	for _, g := range q.Aggs {
		check(g.Arg, false)
		check(g.Filter, false)
		c, fixed := g.Fraction.(plan.Const)
		switch g.Func {
		case plan.PercentileCont, plan.PercentileDisc:
			if !fixed || c.Null || c.Datum.Type.Kind != vector.Float8 || !(c.Float64() >= 0 && c.Float64() <= 1) || g.Distinct {
				t.Fatal("percentile")
			}
			if g.Func == plan.PercentileCont && (g.Arg.Type().Kind != vector.Float8 || g.T.Kind != vector.Float8) {
				t.Fatal("percentile_cont")
			}
		case plan.CountStar, plan.Min, plan.Max, plan.BoolAnd, plan.BoolOr:
			if g.Distinct {
				t.Fatal("DISTINCT of what it does not change")
			}
			fallthrough
		default:
			if g.Fraction != nil || g.Desc {
				t.Fatal("a fraction")
			}
		}
	}
	if q.Sets != nil {
		all := uint64(0)
		for _, s := range q.Sets {
			all |= s
		}
		if n := len(q.Group); len(q.Sets) < 2 || len(q.Sets) > 4096 || n > 64 || all != 1<<n-1 {
			t.Fatal("grouping sets")
		}
	}
	all(q.Having, true)
	all(q.Output, q.Grouped)
	for _, o := range q.Order {
		check(o.Expr, q.Grouped)
	}
}

// checkCall verifies that operands agree as package plan says.
func checkCall(t *testing.T, c *plan.Call) {
	t.Helper()
	family := func(x vector.Type) vector.Type {
		switch {
		case x.Kind.IsInt():
			return vector.Type{Kind: vector.Int8}
		case x.Kind == vector.Text || x.Kind == vector.Varchar:
			return vector.Type{Kind: vector.Text}
		case x.Kind == vector.Numeric:
			return vector.Type{Kind: x.Kind, Scale: x.Scale}
		}
		return vector.Type{Kind: x.Kind}
	}
	switch c.Op {
	case plan.OpEq, plan.OpNe, plan.OpLt, plan.OpLe, plan.OpGt, plan.OpGe, plan.OpDistinct, plan.OpIn:
		for _, a := range c.Args[1:] {
			x, y := family(c.Args[0].Type()), family(a.Type())
			if x.Scale == vector.VaryingScale || y.Scale == vector.VaryingScale {
				x.Scale, y.Scale = 0, 0
			}
			if x != y {
				t.Fatalf("%s of %v and %v", opNames[c.Op], x, y)
			}
		}
	case plan.OpAnd, plan.OpOr, plan.OpNot:
		for _, a := range c.Args {
			if a.Type().Kind != vector.Bool {
				t.Fatalf("%s of %s", opNames[c.Op], a.Type().Kind)
			}
		}
	case plan.OpCase:
		if len(c.Args)%2 == 0 {
			t.Fatal("CASE without ELSE")
		}
		for i := 1; i < len(c.Args); i += 2 {
			if c.Args[i-1].Type().Kind != vector.Bool || c.Args[i].Type().Kind != c.T.Kind {
				t.Fatal("CASE")
			}
		}
	case plan.OpCoalesce:
		for _, a := range c.Args {
			if a.Type().Kind != c.T.Kind {
				t.Fatal("COALESCE")
			}
		}
	}
}
