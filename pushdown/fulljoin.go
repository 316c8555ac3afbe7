package pushdown

import (
	"pgaccel/plan"
	"pgaccel/vector"
)

// fullJoin makes the relation of a full join: a left join, and the rows of the right side without a
// partner, with nulls for the left side. Both read the two sides, which are computed once.
func (a *analyzer) fullJoin(x *plan.Join, l *leaf) plan.Source {
	if !plannedFull(x) {
		fail(plan.ReasonShape, "FULL JOIN on no equality of its sides, which PostgreSQL refuses")
	}
	exprs := append(append([]plan.Expr{}, l.read...), x.On...)
	left, right := a.once(x.Left, exprs), a.once(x.Right, exprs)
	read, on := exprs[:len(l.read)], exprs[len(l.read):]
	of := plan.YieldsOf(left)
	alone := make([]plan.Expr, len(read))
	for i, e := range read {
		if alone[i] = e; of.Has(e) {
			alone[i] = nullOf(e)
		}
	}
	one := func(kind plan.JoinKind, from, to plan.Rel, exprs []plan.Expr) *plan.Star {
		j := &plan.Join{Kind: kind, Left: from, Right: to, On: on}
		a.places[j] = a.places[x]
		return a.star(withColumns(&plan.Project{Input: j, Exprs: exprs}))
	}
	return newSource("full join", []*plan.Star{one(plan.Left, left, right, read), one(plan.Anti, right, left, alone)})
}

// plannedFull reports whether the server can plan a full join: it hashes the rows by an equality of the sides, whatever
// else is asked, or merges them, where equalities and constants are all (select_mergejoin_clauses and
// hash_inner_and_outer in joinpath.c).
func plannedFull(x *plan.Join) bool {
	hashes, merges := false, true
	y := plan.YieldsOf(x.Right)
	for _, e := range x.On {
		if inner, outer := equated(e, &y); inner != nil && readsRows(outer) {
			hashes = hashes || hashed(inner.Type())
		} else if readsRows(e) {
			merges = false
		}
	}
	return hashes || merges
}

// hashed reports whether the server has hash functions for a type. It has an order for all that are compared here.
func hashed(t vector.Type) bool {
	switch t.Kind.Element() {
	case vector.Money, vector.Bit, vector.VarBit:
		return false
	}
	return true
}

// once returns an operator that several stars may read, and puts its outputs in exprs for what they read of r:
// rows that are computed for the first of them. A table is scanned by each.
func (a *analyzer) once(r plan.Rel, exprs []plan.Expr) plan.Rel {
	below := r
	if f, ok := r.(*plan.Filter); ok {
		below = f.Input
	}
	if _, table := below.(*plan.Scan); table {
		return r
	}
	p := &plan.Project{Input: r}
	derived, isDerived := r.(*plan.Project)
	if isDerived {
		p.Input = derived.Input
	}
	s := a.share(a.nextOutput(), "subquery", p)
	a.places[s] = a.places[r]
	y := plan.YieldsOf(r)
	at := map[int]plan.Expr{} // interned expression -> Output
	for i, e := range exprs {
		exprs[i] = plan.Rewrite(e, func(x plan.Expr) plan.Expr {
			if _, call := x.(*plan.Call); call || !y.Has(x) {
				return x
			}
			id := a.intern.id(x)
			if at[id] == nil {
				at[id] = plan.Output{Of: s.Number, Index: len(s.Plan.Exprs), T: x.Type()}
				if isDerived {
					x = derived.Exprs[x.(plan.Output).Index]
				}
				s.Plan.Exprs = append(s.Plan.Exprs, x)
			}
			return at[id]
		})
	}
	return s
}
