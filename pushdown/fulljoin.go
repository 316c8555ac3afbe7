package pushdown

import "pgaccel/plan"

// fullJoin makes the relation of a full join: a left join, and the rows of the right side without a
// partner, with nulls for the left side. Derived tables, which both read, are computed once.
func (a *analyzer) fullJoin(x *plan.Join, l *leaf) plan.Source {
	left, right := a.once(x.Left), a.once(x.Right)
	of := plan.YieldsOf(left)
	alone := make([]plan.Expr, len(l.read))
	for i, e := range l.read {
		if alone[i] = e; of.Has(e) {
			alone[i] = nullOf(e)
		}
	}
	one := func(kind plan.JoinKind, from, to plan.Rel, exprs []plan.Expr) *plan.Star {
		j := &plan.Join{Kind: kind, Left: from, Right: to, On: x.On}
		a.places[j] = a.places[x]
		return a.star(withColumns(&plan.Project{Input: j, Exprs: exprs}))
	}
	return newSource("full join", []*plan.Star{one(plan.Left, left, right, l.read), one(plan.Anti, right, left, alone)})
}

// once returns an operator that several stars may read: a derived table that is computed for the first.
func (a *analyzer) once(r plan.Rel) plan.Rel {
	p, ok := r.(*plan.Project)
	if !ok || p.Number == 0 {
		return r
	}
	s := &plan.Shared{Number: p.Number, Name: "subquery", Plan: &plan.Project{Input: p.Input, Exprs: p.Exprs}}
	a.places[s] = a.places[p]
	return s
}
