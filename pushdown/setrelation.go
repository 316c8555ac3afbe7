package pushdown

import (
	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/vector"
)

// setRelation makes the relation of a set operation. UNION ALL is the rows of both sides one after
// the other; the others group those by all columns.
func (a *analyzer) setRelation(x *plan.SetOp) plan.Source {
	if x.Kind == plan.Union && x.All {
		return newSource("union", append(a.unionBlocks(x.Left), a.unionBlocks(x.Right)...))
	}
	n := len(x.Left.Exprs)
	if x.Kind == plan.Union {
		return newSource("union", []*plan.Star{a.distinctRows(newSource("union", append(a.distinctBlocks(x.Left), a.distinctBlocks(x.Right)...)), n, nil)})
	}
	// A column more says of which side a row is: a group is kept if it has rows of the left and
	// some, or none, of the right. With ALL that is said of the first of equal rows, the second, ...
	side := func(p *plan.Project, right bool) *plan.Star {
		return a.star(&plan.Project{Input: p.Input, Exprs: append(append([]plan.Expr{}, p.Exprs...), boolConst(right))})
	}
	both := newSource("sides", []*plan.Star{side(x.Left, false), side(x.Right, true)})
	if x.All {
		numberEqual(&both)
	}
	right := plan.Column{Column: n, T: boolType}
	some := func(index int) plan.Expr { return plan.Agg{Index: index, T: boolType} }
	having := []plan.Expr{a.not(some(0)), some(1)} // not all of the right, some of it
	if x.Kind == plan.Except {
		having = []plan.Expr{a.not(some(1))}
	}
	q := a.distinctRows(both, n, having)
	if x.All {
		c := n + 1
		q.Group = append(q.Group, plan.Column{Column: c, T: both.Meta.Columns[c].Type})
	}
	q.Aggs = []plan.AggregateCall{{Func: plan.BoolAnd, Arg: right, T: boolType}, {Func: plan.BoolOr, Arg: right, T: boolType}}
	return newSource("set", []*plan.Star{q})
}

// numberEqual adds a column to a relation that numbers the rows that have the same values: with it
// each row is there once, of each side as often as they are there.
func numberEqual(of *plan.Source) {
	n := len(of.Meta.Columns)
	w := plan.WindowColumn{To: n, Func: plan.RowNumber, Arg: -1, Filter: -1, Default: -1, Offset: -1}
	for c := range n {
		w.Partition = append(w.Partition, c)
	}
	of.Meta.Columns = append(of.Meta.Columns, catalog.Column{Name: "number", Type: vector.TypeOf(vector.Int8)})
	of.Relation.Windows = append(of.Relation.Windows, w)
}

// unionBlocks are the stars whose rows a side of a UNION ALL yields.
func (a *analyzer) unionBlocks(p *plan.Project) []*plan.Star {
	if u, ok := p.Input.(*plan.SetOp); ok && u.Kind == plan.Union && u.All && passesOn(p, u) {
		return append(a.unionBlocks(u.Left), a.unionBlocks(u.Right)...)
	}
	return []*plan.Star{a.star(withColumns(p))}
}

// distinctBlocks are those of a side of a UNION, which leaves each row once: whether a UNION below has done so
// makes no difference.
func (a *analyzer) distinctBlocks(p *plan.Project) []*plan.Star {
	if u, ok := p.Input.(*plan.SetOp); ok && u.Kind == plan.Union && passesOn(p, u) {
		return append(a.distinctBlocks(u.Left), a.distinctBlocks(u.Right)...)
	}
	return []*plan.Star{a.star(withColumns(p))}
}

// passesOn reports whether a query yields all outputs of the operator below it as they are.
func passesOn(p *plan.Project, u *plan.SetOp) bool {
	for i, e := range p.Exprs {
		if o, ok := e.(plan.Output); !ok || o.Of != u.Number || o.Index != i {
			return false
		}
	}
	return len(p.Exprs) == len(u.Left.Exprs)
}

// distinctRows groups a relation by its first n columns.
func (a *analyzer) distinctRows(of plan.Source, n int, having []plan.Expr) *plan.Star {
	q := &plan.Star{Tables: []plan.Source{of}, Grouped: true, Having: having}
	for i := range n {
		t := of.Meta.Columns[i].Type
		q.Group = append(q.Group, plan.Column{Column: i, T: t})
		q.Output = append(q.Output, plan.Key{Index: i, T: t})
	}
	return q
}
