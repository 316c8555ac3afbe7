package pushdown

import (
	"slices"

	"pgaccel/plan"
)

// What PostgreSQL computes of conditions below the operator that they stand over.

// sink moves conditions on what a subquery in FROM yields into it, as PostgreSQL's planner does
// (subquery_push_qual in allpaths.c): it evaluates them for rows that the subquery's own conditions
// remove, too, and what fails there must not be missed. Not below a LIMIT. Where one that may fail cannot
// be moved here it stays, and is computed below as well.
func (s *star) sink(l *leaf) {
	if l.scalar >= 0 { // its one row is there whatever the condition says
		return
	}
	if s.optionalLeaf(l) {
		// Where the condition lets no nulls pass, the server makes the join an inner one first.
		for _, e := range s.conds {
			if l.yields.ReadBy(e) && readsOnly(e, &l.yields) && mayFail(e) {
				s.compute(l, e)
			}
		}
		return
	}
	below := l.rel
	p, derived := l.rel.(*plan.Project)
	if derived {
		below = p.Input
	}
	sinks, moved := true, []plan.Expr(nil)
	switch x := below.(type) {
	case *plan.Limit:
		if x.Per == nil {
			return
		}
		sinks, moved = false, x.Per // below it those on Per are moved
	case *plan.Shared, *plan.ProjectSet: // the server computes it over all rows that it has, and so is it here
		return
	case *plan.SetOp, *plan.Window, *plan.Values, *plan.Series, *plan.Join:
		sinks = false
	case *plan.Aggregate:
		sinks = len(x.Sets) == 0
	}
	var sunk []plan.Expr
	s.conds = slices.DeleteFunc(slices.Clone(s.conds), func(e plan.Expr) bool {
		e = s.stood(e)
		if !l.yields.ReadBy(e) || !readsOnly(e, &l.yields) {
			return false
		}
		if !sinks || readsScalar(e) { // a scalar is computed for this star alone
			if mayFail(e) && (moved == nil || s.readsOf(e, moved)) {
				s.compute(l, e)
			}
			return false
		}
		sunk = append(sunk, plan.Rewrite(e, func(x plan.Expr) plan.Expr { return l.fill(s.analyzer, x) }))
		return true
	})
	if len(s.q.Sets) > 0 {
		s.sunk = append(s.sunk, sunk...)
	}
	switch {
	case len(sunk) == 0:
	case derived:
		for i, e := range sunk {
			sunk[i] = plan.Rewrite(e, func(x plan.Expr) plan.Expr {
				if o, ok := x.(plan.Output); ok && o.Of == p.Number {
					return p.Exprs[o.Index]
				}
				return x
			})
		}
		l.rel = &plan.Project{Number: p.Number, Exprs: p.Exprs, Input: &plan.Filter{Input: p.Input, Conds: sunk}}
	default:
		l.rel = &plan.Filter{Input: l.rel, Conds: sunk}
	}
}

// atop reports whether computedBelow has computed a condition over the rows that a subquery shows, not further below.
func atop(from, to plan.Rel) bool {
	switch x := to.(type) {
	case *plan.Filter:
		return x.Input == from
	case *plan.Project:
		p, ok := from.(*plan.Project)
		return ok && atop(p.Input, x.Input)
	}
	return false
}

// alone reports whether nothing leaves rows of the one leaf out before a condition is computed over them.
func (s *star) alone(e plan.Expr) bool {
	return len(s.leaves) == 1 && len(s.scans) <= 1 && len(s.lefts) == 0 && len(s.exists) == 0 &&
		!slices.ContainsFunc(s.conds, func(c plan.Expr) bool { return !s.intern.same(s.stood(c), e) && !s.computes(c) })
}

// computes reports whether a condition is one of computing, which leaves no row out.
func (s *star) computes(e plan.Expr) bool {
	c, ok := e.(*plan.Call)
	if !ok || c.Op != plan.OpOr || len(c.Args) != 2 {
		return false
	}
	l, null := c.Args[0].(*plan.Call)
	r, notNull := c.Args[1].(*plan.Call)
	return null && notNull && l.Op == plan.OpIsNull && r.Op == plan.OpIsNotNull && s.intern.same(l.Args[0], r.Args[0])
}

// compute has a condition over a leaf computed for all rows for which the server may compute it, where
// that moves it below: it removes none there, but fails where it fails.
func (s *star) compute(l *leaf, e plan.Expr) {
	at := s.places[l.rel].at
	r, ok := plan.Rel(nil), false
	if e = s.stood(e); !readsScalar(e) && len(l.filled) == 0 && l.empty == nil {
		r, ok = s.computedBelow(l.rel, e)
	}
	if !ok {
		s.at = at
		fail(plan.ReasonShape, "a condition that may fail over a subquery of this form")
	}
	if atop(l.rel, r) && s.alone(e) {
		return // it is computed for all rows where it stands
	}
	s.copied(l.rel, r)
	l.rel = r
}

// computedBelow returns an operator that computes a condition over it as far below as the server may. It
// returns false for one whose columns are counted, over which there can be nothing else.
func (s *star) computedBelow(r plan.Rel, e plan.Expr) (to plan.Rel, ok bool) {
	below := func(r plan.Rel, e plan.Expr) plan.Rel {
		to, ok := s.computedBelow(r, e)
		if !ok {
			return s.computing(r, e)
		}
		s.copied(r, to)
		return to
	}
	outputs := func(of int, exprs []plan.Expr) plan.Expr {
		return plan.Rewrite(e, func(x plan.Expr) plan.Expr {
			if o, ok := x.(plan.Output); ok && o.Of == of {
				return exprs[o.Index]
			}
			return x
		})
	}
	only := func(r plan.Rel) bool {
		y := plan.YieldsOf(r)
		return readsOnly(e, &y)
	}
	switch x := r.(type) {
	case *plan.Project:
		if x.Number > 0 {
			return &plan.Project{Number: x.Number, Exprs: x.Exprs, Input: below(x.Input, outputs(x.Number, x.Exprs))}, true
		}
	case *plan.Filter:
		return &plan.Filter{Input: below(x.Input, e), Conds: x.Conds}, true
	case *plan.Sort:
		return &plan.Sort{Input: below(x.Input, e), By: x.By}, true
	case *plan.Limit:
		if x.Per != nil && s.readsOf(e, x.Per) {
			c := *x
			c.Input = below(x.Input, e)
			return &c, true
		}
	case *plan.Window:
		if only(x.Input) {
			c := *x
			c.Input = below(x.Input, e)
			return &c, true
		}
	case *plan.Join:
		if x.Kind == plan.Full { // which may become a left one, or an inner one
			c := *x
			switch {
			case only(x.Left):
				c.Left = below(x.Left, e)
				return &c, true
			case only(x.Right):
				c.Right = below(x.Right, e)
				return &c, true
			}
		}
	case *plan.SetOp:
		c := *x
		c.Left = &plan.Project{Input: below(x.Left.Input, outputs(x.Number, x.Left.Exprs)), Exprs: x.Left.Exprs}
		c.Right = &plan.Project{Input: below(x.Right.Input, outputs(x.Number, x.Right.Exprs)), Exprs: x.Right.Exprs}
		return &c, true
	case *plan.Shared, *plan.Values, *plan.Series, *plan.ProjectSet:
		return nil, false
	}
	return s.computing(r, e), true
}

// computing is rows for all of which an expression is computed.
func (s *star) computing(r plan.Rel, e plan.Expr) plan.Rel {
	either := s.call(plan.OpOr, boolType, s.call(plan.OpIsNull, boolType, e), s.call(plan.OpIsNotNull, boolType, e))
	return &plan.Filter{Input: r, Conds: []plan.Expr{either}}
}

// readsOf reports whether all rows that an expression reads are values of some others.
func (s *star) readsOf(e plan.Expr, of []plan.Expr) bool {
	if slices.ContainsFunc(of, func(o plan.Expr) bool { return s.intern.same(e, o) }) {
		return true
	}
	c, ok := e.(*plan.Call)
	return ok && !slices.ContainsFunc(c.Args, func(x plan.Expr) bool { return readsRows(x) && !s.readsOf(x, of) })
}

// stood returns an expression with what stands for sub-selects in it.
func (s *star) stood(e plan.Expr) plan.Expr {
	return plan.Rewrite(e, func(x plan.Expr) plan.Expr {
		if o, ok := x.(plan.Output); ok && s.stands[o.Of] != nil {
			return s.stood(s.stands[o.Of])
		}
		return x
	})
}
