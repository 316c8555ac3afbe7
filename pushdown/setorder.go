package pushdown

import (
	"slices"

	"pgaccel/plan"
	"pgaccel/vector"
)

// checkSetOrder forwards ORDER BY a key of grouping sets that conditions on rows equate
// with a constant or with another key. Up to version 17 PostgreSQL's planner takes such a
// key for one that need not be sorted by, or sorts by the other, though either may be null
// in a set that lacks it. So it does with keys that are one text under several collations,
// and from version 18 on with the same column of a table that is joined to itself by its key,
// of which it scans one.
func (s *star) checkSetOrder() {
	a, q := s.analyzer, s.q
	if len(q.Sets) == 0 || len(q.Order) == 0 {
		return
	}
	eq := &equals{a: a, class: map[int]int{}, fixed: map[int]bool{}}
	for _, c := range slices.Concat(s.conds, s.sunk) {
		eq.condition(c)
	}
	for _, l := range s.lefts {
		for _, c := range l.on {
			eq.condition(c)
		}
	}
	keys := map[int]int{}  // of each class
	alike := map[int]int{} // keys of each expression, whatever their collation or place in FROM
	for _, e := range q.Group {
		alike[a.intern.id(a.anyPlace(anyCollation(e)))]++
		if c, ok := eq.of(e); ok {
			keys[c]++
		}
	}
	for _, o := range q.Order {
		over := plan.Rewrite(o.Expr, func(e plan.Expr) plan.Expr {
			if k, ok := e.(plan.Key); ok {
				return q.Group[k.Index]
			}
			return e
		})
		over = anyCollation(over)
		if alike[a.intern.id(a.anyPlace(over))] > 1 {
			fail(plan.ReasonShape, "ORDER BY a key of grouping sets that is one under another collation, or of the same table, too")
		}
		if c, ok := eq.of(over); ok && (eq.fixed[c] || keys[c] > 1) {
			fail(plan.ReasonShape, "ORDER BY a key of grouping sets that a condition fixes")
		}
	}
}

// checkSetCasts forwards expressions over a key of grouping sets that is a cast within one
// family of types (text to varchar, numeric to numeric(18,2), COLLATE). Up to version 17
// PostgreSQL's planner makes one cast of such a key and of another around it: what it then
// has is no key, and not null in the sets that lack the key.
func checkSetCasts(q *plan.Star) {
	if len(q.Sets) == 0 {
		return
	}
	relabels := func(e plan.Expr) bool {
		k, ok := e.(plan.Key)
		if !ok {
			return false
		}
		c, ok := q.Group[k.Index].(*plan.Call)
		if !ok || c.Op != plan.OpCast {
			return false
		}
		from, to := c.Args[0].Type().Kind, c.T.Kind
		return from == to || from.IsText() && to.IsText()
	}
	check := func(e plan.Expr) {
		plan.Walk(e, func(x plan.Expr) bool {
			if c, ok := x.(*plan.Call); ok && slices.ContainsFunc(c.Args, relabels) {
				fail(plan.ReasonShape, "an expression over a key of grouping sets that is a cast")
			}
			return true
		})
	}
	for _, list := range [][]plan.Expr{q.Having, q.Output} {
		for _, e := range list {
			check(e)
		}
	}
	for _, o := range q.Order {
		check(o.Expr)
	}
}

// anyCollation returns text without the collations that it is given.
func anyCollation(e plan.Expr) plan.Expr {
	for {
		c, ok := e.(*plan.Call)
		if !ok || c.Op != plan.OpCast || !c.T.Kind.IsText() || !c.Args[0].Type().Kind.IsText() {
			return e
		}
		e = c.Args[0]
	}
}

// anyPlace returns an expression over the first occurrence of each table.
func (a *analyzer) anyPlace(e plan.Expr) plan.Expr {
	return plan.Rewrite(e, func(x plan.Expr) plan.Expr {
		if c, ok := x.(plan.Column); ok && c.Table < len(a.tables) {
			c.Table = slices.IndexFunc(a.tables, func(t plan.Table) bool { return t.Meta.OID == a.tables[c.Table].Meta.OID })
			return c
		}
		return x
	})
}

// equals are expressions that the conjuncts of conditions equate, in classes.
type equals struct {
	a     *analyzer
	class map[int]int  // interned number -> class
	fixed map[int]bool // classes with a constant
}

func (q *equals) of(e plan.Expr) (class int, ok bool) {
	class, ok = q.class[q.a.intern.id(e)]
	return class, ok
}

// condition notes the equalities of a condition that is true.
func (q *equals) condition(cond plan.Expr) {
	for _, p := range q.a.equatedBy(cond) {
		q.equate(p[0], p[1])
	}
}

// equatedBy returns the conjuncts x = y that PostgreSQL may find in a condition once it has
// evaluated what is constant and turned NOT round (eval_const_expressions, canonicalize_qual).
func (a *analyzer) equatedBy(cond plan.Expr) (all [][2]plan.Expr) {
	c, ok := cond.(*plan.Call)
	if !ok {
		return nil
	}
	switch c.Op {
	case plan.OpEq, plan.OpNe: // (x = y) = true is x = y, (x <> y) = false as well
		if c.Op == plan.OpEq {
			all = append(all, [2]plan.Expr{c.Args[0], c.Args[1]})
		}
		for i, x := range c.Args {
			if x.Type().Kind == vector.Bool && !readsRows(c.Args[1-i]) {
				all = append(all, equalitiesWithin(x)...)
			}
		}
	case plan.OpAnd, plan.OpCase, plan.OpCoalesce: // of CASE and coalesce one may be left
		for _, x := range c.Args {
			all = append(all, a.equatedBy(x)...)
		}
	case plan.OpOr: // those of all that may be left
		some := false
		for _, x := range c.Args {
			switch {
			case !readsRows(x):
			case !some:
				all, some = a.equatedBy(x), true
			default:
				also := a.equatedBy(x)
				all = slices.DeleteFunc(all, func(p [2]plan.Expr) bool {
					return !slices.ContainsFunc(also, func(o [2]plan.Expr) bool { return a.samePair(p, o) })
				})
			}
		}
	case plan.OpNot:
		n, ok := c.Args[0].(*plan.Call)
		if !ok {
			return nil
		}
		switch n.Op {
		case plan.OpNot:
			return a.equatedBy(n.Args[0])
		case plan.OpNe:
			return [][2]plan.Expr{{n.Args[0], n.Args[1]}}
		case plan.OpEq: // of booleans, one of them constant
			return a.equatedBy(&plan.Call{Op: plan.OpNe, Args: n.Args, T: n.T})
		case plan.OpOr, plan.OpAnd:
			turned := &plan.Call{Op: plan.OpAnd, T: n.T}
			if n.Op == plan.OpAnd {
				turned.Op = plan.OpOr
			}
			for _, x := range n.Args {
				turned.Args = append(turned.Args, a.not(x))
			}
			return a.equatedBy(turned)
		}
	}
	return all
}

// equalitiesWithin returns the sides of every = and <> in an expression. To tell which of them hold
// would take both signs of each operand, at each level of a nest: twice the work a level.
func equalitiesWithin(e plan.Expr) (all [][2]plan.Expr) {
	plan.Walk(e, func(x plan.Expr) bool {
		if c, ok := x.(*plan.Call); ok && (c.Op == plan.OpEq || c.Op == plan.OpNe) {
			all = append(all, [2]plan.Expr{c.Args[0], c.Args[1]})
		}
		return true
	})
	return all
}

// samePair reports whether two equalities are one, whichever side stands first.
func (a *analyzer) samePair(p, o [2]plan.Expr) bool {
	id := a.intern.id
	return id(p[0]) == id(o[0]) && id(p[1]) == id(o[1]) || id(p[0]) == id(o[1]) && id(p[1]) == id(o[0])
}

func (q *equals) equate(x, y plan.Expr) {
	class := func(e plan.Expr) int {
		id := q.a.intern.id(e)
		if _, ok := q.class[id]; !ok {
			q.class[id] = id
		}
		c := q.class[id]
		q.fixed[c] = q.fixed[c] || !readsRows(e)
		return c
	}
	to, from := class(x), class(y)
	for id, c := range q.class {
		if c == from {
			q.class[id] = to
		}
	}
	q.fixed[to] = q.fixed[to] || q.fixed[from]
}
