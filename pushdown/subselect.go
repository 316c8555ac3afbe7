package pushdown

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/syntax"
)

// subselect is a sub-select in an expression: a join whose left side are the rows of the block.
type subselect struct {
	join   *plan.Join // without Left
	inside counters   // what was counted before it
	upTo   counters   // and behind it
	at     *pg.Node
	name   string
}

// counted returns what has been counted.
func (a *analyzer) counted() counters {
	c := a.counters
	c.tables = len(a.tables)
	return c
}

// has reports whether what a leaf of an expression reads was counted between c and to.
func (c counters) has(e plan.Expr, to counters) bool {
	in := func(x, from, to int) bool { return x >= from && x < to }
	switch x := e.(type) {
	case plan.Column:
		return in(x.Table, c.tables, to.tables)
	case plan.Key:
		return in(x.Of, c.aggregations, to.aggregations)
	case plan.Agg:
		return in(x.Of, c.aggregations, to.aggregations)
	case *plan.Grouping:
		return in(x.Of, c.aggregations, to.aggregations)
	case plan.Output:
		return in(x.Of-1, c.outputs, to.outputs)
	}
	return false
}

// outside reports whether a leaf of an expression is one of a query around the block.
func (a *analyzer) outside(e plan.Expr) bool { return counters{}.has(e, a.block.inside) }

// passes reports whether a leaf of an expression over groups is no matter of the groups: it is of a
// query around the block, of a sub-select, or a window's value.
func (a *analyzer) passes(e plan.Expr) bool {
	if a.outside(e) {
		return true
	}
	for _, s := range a.subselects {
		if s.inside.has(e, s.upTo) {
			return true
		}
	}
	o, ok := e.(plan.Output)
	return ok && slices.ContainsFunc(a.windows, func(w *plan.Window) bool { return w.Number == o.Of })
}

// checkOwn forwards aggregates that are, or may be, of a query around the block: that whose columns
// they read.
func (a *analyzer) checkOwn(g *plan.AggregateCall) {
	own, outside := false, false
	var look func(e plan.Expr)
	look = func(e plan.Expr) {
		plan.Walk(e, func(x plan.Expr) bool {
			switch x.(type) {
			case plan.Column, plan.Key, plan.Agg, plan.Output, *plan.Grouping:
			default:
				return true
			}
			for _, s := range a.subselects {
				if s.inside.has(x, s.upTo) { // what that reads of queries around it
					readsAny(&plan.Filter{Input: s.join.Right, Conds: s.join.On}, func(y plan.Expr) bool {
						if _, call := y.(*plan.Call); !call && !s.inside.has(y, s.upTo) {
							look(y)
						}
						return false
					})
					return true
				}
			}
			if a.outside(x) {
				outside = true
			} else {
				own = true
			}
			return true
		})
	}
	for _, e := range []plan.Expr{g.Arg, g.Filter} {
		look(e)
	}
	if !own && outside {
		fail(plan.ReasonShape, "an aggregate of a query around it")
	}
}

// keyLink is a sub-select in GROUP BY: the same one wherever else in its block it is written alike.
type keyLink struct {
	n *pg.Node
	v *value
}

// keyLinks are the sub-selects of a GROUP BY.
func keyLinks(group []*pg.Node) (links []*keyLink) {
	for _, n := range group {
		syntax.Walk(n, func(x *pg.Node) bool {
			if x.GetSubLink() != nil {
				links = append(links, &keyLink{n: x})
				return false
			}
			return true
		})
	}
	return links
}

// subLink analyses a sub-select in an expression.
func (a *analyzer) subLink(n *pg.Node, s *scope) value {
	for _, k := range a.keyLinks {
		if sameSyntax(k.n, n) {
			if k.v == nil {
				v := a.newSubLink(n, s)
				k.v = &v
			}
			return *k.v
		}
	}
	return a.newSubLink(n, s)
}

func (a *analyzer) newSubLink(n *pg.Node, s *scope) value {
	x := n.GetSubLink()
	switch x.SubLinkType {
	case pg.SubLinkType_EXISTS_SUBLINK:
		j := a.subselect(n, s, plan.Mark, "EXISTS (SELECT ...)", nil)
		return a.marked(j)
	case pg.SubLinkType_ANY_SUBLINK:
		return a.marked(a.subselect(n, s, plan.Mark, "IN (SELECT ...)", a.member(x, s, false)))
	case pg.SubLinkType_ALL_SUBLINK:
		a.negated = true
		return typed(a.not(a.marked(a.subselect(n, s, plan.Mark, "ALL (SELECT ...)", a.member(x, s, true))).e))
	case pg.SubLinkType_EXPR_SUBLINK:
		var out plan.Expr
		j := a.subselect(n, s, plan.Single, "a sub-select as a value", func(q *query) []plan.Expr {
			out = q.one()
			return nil
		})
		p := &plan.Project{Number: a.nextOutput(), Input: j.Right, Exprs: []plan.Expr{out}}
		j.Right, j.Lateral = p, a.correlated(p, a.subselects[len(a.subselects)-1].inside)
		if j.Lateral && a.correlatedUnread(p, a.subselects[len(a.subselects)-1].inside) {
			a.at = n
			fail(plan.ReasonShape, "a sub-select that is correlated in a left join alone of which nothing is read")
		}
		a.subselects[len(a.subselects)-1].upTo = a.counted()
		return typed(plan.Output{Of: p.Number, T: out.Type()})
	case pg.SubLinkType_ARRAY_SUBLINK:
		fail(plan.ReasonType, "array")
	}
	fail(plan.ReasonShape, "subquery in an expression")
	return value{}
}

// marked is what a Mark join says.
func (a *analyzer) marked(j *plan.Join) value {
	j.Number = a.nextOutput()
	a.subselects[len(a.subselects)-1].upTo = a.counted()
	return typed(plan.Output{Of: j.Number, T: boolType})
}

// condition analyses a conjunct of WHERE that is a sub-select: a join that yields rows of its left
// side. It returns false for anything else.
func (a *analyzer) condition(n *pg.Node, s *scope) bool {
	inner, exists, in := n, plan.Semi, plan.Semi
	if b := n.GetBoolExpr(); b != nil && b.Boolop == pg.BoolExprType_NOT_EXPR {
		inner, exists, in = b.Args[0], plan.Anti, plan.NotIn
		a.negated = a.negated || inner.GetSubLink() != nil
	}
	x := inner.GetSubLink()
	switch {
	case x == nil:
		return false
	case x.SubLinkType == pg.SubLinkType_EXISTS_SUBLINK:
		name := map[plan.JoinKind]string{plan.Semi: "EXISTS (SELECT ...)", plan.Anti: "NOT EXISTS (SELECT ...)"}
		a.subselect(inner, s, exists, name[exists], nil)
	case x.SubLinkType == pg.SubLinkType_ANY_SUBLINK:
		name := map[plan.JoinKind]string{plan.Semi: "IN (SELECT ...)", plan.NotIn: "NOT IN (SELECT ...)"}
		a.subselect(inner, s, in, name[in], a.member(x, s, false))
	default:
		return false
	}
	return true
}

// member makes the condition of x op ANY (SELECT ...), or negated that of ALL.
func (a *analyzer) member(x *pg.SubLink, s *scope, negated bool) func(q *query) []plan.Expr {
	symbol := "="
	if len(x.OperName) > 0 {
		symbol = a.opSymbol(x.OperName)
	} else {
		a.operator("=")
	}
	op, ok := comparisons[symbol]
	if !ok || x.Testexpr.GetRowExpr() != nil {
		fail(plan.ReasonShape, "a sub-select after an operator of this form")
	}
	subject := a.expr(x.Testexpr, s)
	return func(q *query) []plan.Expr {
		cond := a.compare(op, subject, typed(q.one()))
		if negated {
			cond = a.not(cond)
		}
		return []plan.Expr{cond}
	}
}

// one is the only output.
func (q *query) one() plan.Expr {
	if len(q.outputs) != 1 {
		fail(plan.ReasonShape, "a sub-select of several columns")
	}
	if q.outputs[0] == nil {
		panic(q.targets[0].col.refuse)
	}
	return q.outputs[0]
}

// subselect analyses a sub-select over the names of s and notes its join; on makes its conditions.
func (a *analyzer) subselect(n *pg.Node, s *scope, kind plan.JoinKind, name string, on func(*query) []plan.Expr) *plan.Join {
	sel := n.GetSubLink().Subselect.GetSelectStmt()
	if sel == nil {
		fail(plan.ReasonShape, "subquery in an expression")
	}
	outer, inside := a.outer, a.counted()
	a.outer = s
	q := a.query(sel, false)
	a.outer = outer
	j := &plan.Join{Kind: kind, Right: q.rows}
	if on != nil {
		j.On = on(&q)
	} else {
		a.checkExists(n, sel, &q)
	}
	j.Lateral = a.correlated(j.Right, inside)
	a.note(j, n, name)
	a.subselects = append(a.subselects, subselect{join: j, inside: inside, upTo: a.counted(), at: n, name: name})
	return j
}

// checkExists refuses EXISTS of what may fail where the server computes it, and what is found here does not depend on it.
func (a *analyzer) checkExists(n *pg.Node, sel *pg.SelectStmt, q *query) {
	switch {
	case plainAggregate(q.rows) && relFails(&plan.Project{Exprs: q.outputs, Input: q.rows}):
		a.at = n
		fail(plan.ReasonShape, "EXISTS of an aggregate over what may fail")
	case existsComputes(sel, q.rows) && (slices.ContainsFunc(q.outputs, mayFail) || leftOutFails(q.rows)):
		a.at = n
		fail(plan.ReasonShape, "EXISTS of outputs, or an order, that may fail")
	}
}

// plainAggregate reports whether a sub-select is an aggregate without keys: it has a row whatever it is over, but the
// server computes it.
func plainAggregate(r plan.Rel) bool {
	switch x := r.(type) {
	case *plan.Sort:
		return plainAggregate(x.Input)
	case *plan.Limit:
		return plainAggregate(x.Input)
	case *plan.Aggregate:
		return len(x.Keys) == 0
	}
	return false
}

// correlated reports whether an operator reads what was counted before it.
func (a *analyzer) correlated(r plan.Rel, inside counters) bool {
	return readsAny(r, func(e plan.Expr) bool { return counters{}.has(e, inside) })
}

// correlatedUnread reports whether an operator reads what was counted before it in the right sides of left
// joins alone, of which nothing is read. The server may leave these out (remove_useless_joins in
// analyzejoins.c), and computes the rest once, with the error of several rows for whatever row there is.
func (a *analyzer) correlatedUnread(r plan.Rel, inside counters) bool {
	var dropped plan.Yields
	var read []plan.Expr
	var walk func(r plan.Rel)
	walk = func(r plan.Rel) {
		if j, is := r.(*plan.Join); is && j.Kind == plan.Left && a.correlated(j.Right, inside) {
			plan.WalkRel(j.Right, func(r plan.Rel) bool {
				dropped.Add(plan.OwnYields(r))
				return true
			})
			walk(j.Left)
			return
		}
		plan.Exprs(r, func(e plan.Expr) { read = append(read, e) })
		for _, in := range r.Inputs() {
			walk(in)
		}
	}
	walk(r)
	return !slices.ContainsFunc(read, func(e plan.Expr) (kept bool) {
		plan.Walk(e, func(x plan.Expr) bool {
			kept = kept || dropped.Has(x) || counters{}.has(x, inside)
			return !kept
		})
		return kept
	})
}

// readsAny reports whether an operator, or one below it, reads a leaf of which is says so. What is
// shared reads nothing but what is below it.
func readsAny(r plan.Rel, is func(plan.Expr) bool) (reads bool) {
	plan.WalkRel(r, func(r plan.Rel) bool {
		plan.Exprs(r, func(e plan.Expr) {
			plan.Walk(e, func(x plan.Expr) bool {
				reads = reads || is(x)
				return !reads
			})
		})
		_, shared := r.(*plan.Shared)
		return !reads && !shared
	})
	return reads
}

// attach joins sub-selects to the rows that they are over.
func (a *analyzer) attach(rows plan.Rel, subs []subselect) plan.Rel {
	for _, s := range subs {
		s.join.Left = rows
		rows = s.join
	}
	return rows
}

// own analyses with f an expression over other rows than what surrounds it, and returns its
// sub-selects.
func (a *analyzer) own(f func()) (subs []subselect) {
	outer := a.subselects
	a.subselects = nil
	f()
	subs, a.subselects = a.subselects, outer
	return subs
}

// noSubselects analyses with f what may have no sub-select.
func (a *analyzer) noSubselects(where string, f func()) {
	if subs := a.own(f); len(subs) > 0 {
		a.at = subs[0].at
		fail(plan.ReasonShape, subs[0].name+" in "+where)
	}
}

// overRowsAndGroups divides the sub-selects of a block that groups: those that keys and aggregates
// read are over rows, the others over groups, whose conditions g makes expressions over groups.
func (a *analyzer) overRowsAndGroups(c *clauses, g *grouping, subs []subselect) (rows, groups []subselect) {
	read := map[plan.Expr]bool{}
	note := func(e plan.Expr) {
		plan.Walk(e, func(x plan.Expr) bool {
			if o, ok := x.(plan.Output); ok {
				read[o] = true
			}
			return true
		})
	}
	for _, e := range c.keys {
		note(e)
	}
	for _, s := range subs {
		for o := range read {
			if len(c.sets) > 0 && s.inside.has(o, s.upTo) {
				// It is null in the sets that lack it, and so are all that are written alike.
				a.at = s.at
				fail(plan.ReasonShape, "a sub-select in grouping sets")
			}
		}
	}
	for _, x := range a.aggs {
		note(x.Arg)
		note(x.Filter)
	}
	for _, s := range subs {
		over := true
		for o := range read {
			if s.inside.has(o, s.upTo) {
				over = false
			}
		}
		if !over {
			rows = append(rows, s)
			g.below = rows
			continue
		}
		// What it reads of the block are values of groups; of queries around the block is no matter.
		if s.join.Lateral {
			outer := a.at
			a.at = s.at
			s.join.Right = plan.MapRel(s.join.Right, g.over, a.copied)
			a.at = outer
		}
		for i, e := range s.join.On {
			s.join.On[i] = g.over(e)
		}
		groups = append(groups, s)
	}
	return rows, groups
}
