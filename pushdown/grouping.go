package pushdown

import (
	"fmt"
	"slices"
	"strings"

	"pgaccel/plan"
	"pgaccel/vector"
)

// key writes an expression so that two are equal exactly if their keys are.
func key(e plan.Expr) string {
	var b strings.Builder
	writeKey(&b, e)
	return b.String()
}

func writeKey(b *strings.Builder, e plan.Expr) {
	switch x := e.(type) {
	case nil:
		b.WriteByte('-')
	case plan.Column:
		fmt.Fprintf(b, "c%d.%d", x.Table, x.Column)
	case plan.Const:
		fmt.Fprintf(b, "k%d/%d/%t/%d/%q/%d,%d", x.Datum.Type.Kind, x.Datum.Type.Scale, x.Null, x.I, x.Str, x.Num.Unscaled.Hi, x.Num.Unscaled.Lo)
	case plan.Param:
		fmt.Fprintf(b, "p%d", x.Index)
	case plan.Key:
		fmt.Fprintf(b, "K%d", x.Index)
	case plan.Agg:
		fmt.Fprintf(b, "A%d", x.Index)
	case *plan.Call:
		fmt.Fprintf(b, "%d:%d/%d/%d/%s/%t(", x.Op, x.T.Kind, x.T.Scale, x.T.Collation.OID, x.Field, x.Insensitive)
		for _, a := range x.Args {
			writeKey(b, a)
			b.WriteByte(' ')
		}
		b.WriteByte(')')
	default:
		panic(fmt.Sprintf("BUG: expression %T", e))
	}
}

// same reports whether two expressions are equal.
func same(x, y plan.Expr) bool {
	return x == y || key(x) == key(y)
}

func aggKey(g plan.Aggregate) string {
	return fmt.Sprintf("%d|%s|%s", g.Func, key(g.Arg), key(g.Filter))
}

// grouping turns expressions over rows into expressions over groups.
type grouping struct {
	a     *analyzer
	exprs []plan.Expr
	index map[string]int
}

func newGrouping(a *analyzer, exprs []plan.Expr) *grouping {
	g := &grouping{a: a, index: map[string]int{}}
	for _, e := range exprs {
		g.add(e)
	}
	return g
}

func (g *grouping) add(e plan.Expr) plan.Expr {
	k := key(e)
	i, ok := g.index[k]
	if !ok {
		i = len(g.exprs)
		g.exprs = append(g.exprs, e)
		g.index[k] = i
	}
	return plan.Key{Index: i, T: e.Type()}
}

// over rewrites e: what equals a grouping expression becomes its Key.
func (g *grouping) over(e plan.Expr) plan.Expr {
	if i, ok := g.index[key(e)]; ok {
		return plan.Key{Index: i, T: e.Type()}
	}
	switch x := e.(type) {
	case plan.Column:
		if !g.dependent(x) {
			fail(plan.ReasonShape, "a column that is neither grouped nor aggregated")
		}
		return g.add(x)
	case *plan.Call:
		args := make([]plan.Expr, len(x.Args))
		for i, y := range x.Args {
			args[i] = g.over(y)
		}
		d := *x
		d.Args = args
		return g.a.sized(&d)
	}
	return e
}

// dependent reports whether a column is the same throughout each group because a
// unique key of its table is grouped. Grouping by it too then changes nothing.
// (PostgreSQL asks for the primary key; with another it reports an error first.)
func (g *grouping) dependent(c plan.Column) bool {
	var keys []int
	for _, e := range g.exprs {
		if k, ok := e.(plan.Column); ok && k.Table == c.Table {
			keys = append(keys, k.Column)
		}
	}
	return g.a.tables[c.Table].Meta.UniqueOn(keys)
}

// checkRows forwards what is only possible over groups: values with a display scale
// of their own.
func checkRows(e plan.Expr) {
	plan.Walk(e, func(x plan.Expr) bool {
		if t := x.Type(); t.Kind == vector.Numeric && t.Scale == vector.VaryingScale {
			if c, ok := x.(*plan.Call); ok && c.Op == plan.OpDiv {
				fail(plan.ReasonType, "division of numeric values")
			}
			fail(plan.ReasonType, "numeric values of several scales in one expression")
		}
		return true
	})
}

// dedupe drops repeated conjuncts and those that are constantly true.
func dedupe(conds []plan.Expr) []plan.Expr {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(conds), func(e plan.Expr) bool {
		k := key(e)
		c, isConst := e.(plan.Const)
		drop := seen[k] || isConst && !c.Null && c.I != 0
		seen[k] = true
		return drop
	})
}
