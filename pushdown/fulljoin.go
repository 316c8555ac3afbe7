package pushdown

import "pgaccel/plan"

// fullJoin makes the relation of a full join: a left join, and the rows of the right side without a
// partner, with nulls for the left side.
func (a *analyzer) fullJoin(x *plan.Join, l *leaf) plan.Source {
	left := plan.YieldsOf(x.Left)
	alone := make([]plan.Expr, len(l.read))
	for i, e := range l.read {
		if alone[i] = e; left.Has(e) {
			alone[i] = nullOf(e)
		}
	}
	one := func(kind plan.JoinKind, from, to plan.Rel, exprs []plan.Expr) *plan.Star {
		j := &plan.Join{Kind: kind, Left: from, Right: to, On: x.On}
		a.places[j] = a.places[x]
		return a.star(withColumns(&plan.Project{Input: j, Exprs: exprs}))
	}
	return newSource("full join", []*plan.Star{one(plan.Left, x.Left, x.Right, l.read), one(plan.Anti, x.Right, x.Left, alone)})
}
