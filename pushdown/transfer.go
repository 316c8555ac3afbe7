package pushdown

import (
	"slices"

	"pgaccel/plan"
)

// transfer adds to the conditions what they say of a subquery in FROM by way of the values that it is joined
// by: of x.a = y.a AND x.a = 5 that y.a = 5, as PostgreSQL's planner does (generate_base_implied_equalities in
// equivclass.c). The subquery computes fewer rows then.
func (s *star) transfer(l *leaf) {
	if _, shared := l.rel.(*plan.Shared); shared || l.scalar >= 0 || s.optionalLeaf(l) {
		return
	}
	var pairs [][2]plan.Expr
	for _, e := range s.conds {
		if inner, outer := equated(e, &l.yields); inner != nil {
			pairs = append(pairs, [2]plan.Expr{outer, inner})
		}
	}
	s.conds = append(slices.Clip(s.conds), s.transferred(s.conds, pairs, l.rel)...)
}

// transferred returns what conditions say of the right side of a join: where they are over values of the left
// side that the join equates with values of the right side, no row of the right side for which they are not
// true is a partner of a row that is left. For left joins PostgreSQL's planner does so with constants
// (reconsider_outer_join_clauses in equivclass.c), and with no more where what the right side computes may
// fail for rows that other conditions leave out. pairs are the values that are equal, left and right.
func (s *star) transferred(conds []plan.Expr, pairs [][2]plan.Expr, right plan.Rel) (own []plan.Expr) {
	to := map[int]plan.Expr{}
	for _, p := range pairs {
		if _, call := p[0].(*plan.Call); !call && readsRows(p[0]) && p[0].Type() == p[1].Type() && !p[0].Type().Varying() { // whose equal values print apart
			to[s.intern.id(p[0])] = p[1]
		}
	}
	same := func(e plan.Expr) func(plan.Expr) bool {
		return func(o plan.Expr) bool { return s.intern.same(o, e) }
	}
	for _, e := range conds {
		all, some := true, false
		over := plan.Rewrite(e, func(x plan.Expr) plan.Expr {
			if _, call := x.(*plan.Call); call || !readsRows(x) {
				return x
			}
			if with := to[s.intern.id(x)]; with != nil {
				some = true
				return with
			}
			all = false
			return x
		})
		if !all || !some || mayFail(over) || slices.ContainsFunc(own, same(over)) || slices.ContainsFunc(conds, same(over)) {
			continue
		}
		if equalsConstant(e) || !relFails(right) {
			own = append(own, over)
		}
	}
	return own
}

// equalsConstant reports whether a condition is an equality with a constant.
func equalsConstant(e plan.Expr) bool {
	c, ok := e.(*plan.Call)
	return ok && c.Op == plan.OpEq && (!readsRows(c.Args[0]) || !readsRows(c.Args[1]))
}
