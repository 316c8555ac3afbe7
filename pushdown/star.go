package pushdown

import (
	"slices"

	"pgaccel/plan"
)

// star makes of a tree, from the root down, the one form that is executed.
type star struct {
	*analyzer
	q      *plan.Star
	scans  []int       // table references, in order of appearance
	conds  []plan.Expr // conjuncts of conditions on rows, and of inner joins
	lefts  []leftJoin
	sorted bool // an order was met
}

// leftJoin is a left join to one table.
type leftJoin struct {
	table int
	on    []plan.Expr
}

// star makes a star of a tree, or forwards.
func (a *analyzer) star(tree *plan.Project) *plan.Star {
	s := &star{analyzer: a, q: &plan.Star{Output: slices.Clone(tree.Exprs), Constants: a.constants}}
	s.above(tree.Input, true)
	s.stop()
	if len(s.scans) != len(s.tables) { // rights on all of them are checked by q.Tables
		panic("BUG: a table reference that the tree lacks")
	}
	s.finish()
	return s.q
}

// refuse notes that an operator is not executed. Who calls it goes on below the operator.
func (s *star) refuse(r plan.Rel, detail string) {
	p := s.places[r]
	if p.name != "" {
		detail = p.name
	}
	s.at = p.at
	s.noteRefusal(&plan.Forward{Reason: plan.ReasonShape, Detail: detail})
	s.at = nil
}

// above takes what stands over the aggregation, or over the joins where there is none. top is
// true for the operator below the root.
func (s *star) above(r plan.Rel, top bool) {
	switch x := r.(type) {
	case *plan.Limit:
		if !top {
			s.refuse(x, "subquery with LIMIT in FROM")
		}
		s.q.Limit, s.q.Offset = x.Count, x.Offset
		s.above(x.Input, false)
	case *plan.Sort:
		s.sort(x)
		s.above(x.Input, false)
	case *plan.Filter:
		s.above(x.Input, false)
		if s.q.Grouped {
			s.q.Having = append(s.q.Having, x.Conds...)
		} else {
			s.conds = append(s.conds, x.Conds...)
		}
	case *plan.Aggregate:
		if inner := groupsBelow(x); inner != nil {
			s.refuse(x, "aggregate over a grouped subquery")
			s.rows(inner.Input)
			return
		}
		s.q.Grouped, s.q.Group, s.q.Sets, s.q.Aggs = true, slices.Clone(x.Keys), x.Sets, slices.Clone(x.Aggs)
		s.rows(x.Input)
	case *plan.Join:
		if x.Kind > plan.Left { // a sub-select over groups, or over rows
			s.refuse(x, "a join of this kind")
			s.above(x.Left, false)
			s.below(x.Right)
			return
		}
		s.rows(x)
	case *plan.Window:
		s.refuse(x, notExecuted(x))
		s.above(x.Input, false)
	default:
		s.rows(r)
	}
}

// groupsBelow returns the aggregation whose groups an aggregation groups, nil for none.
func groupsBelow(a *plan.Aggregate) *plan.Aggregate {
	for r := a.Input; ; {
		if inner, ok := r.(*plan.Aggregate); ok {
			return inner
		}
		in := r.Inputs()
		if len(in) != 1 {
			return nil
		}
		r = in[0]
	}
}

// sort takes the topmost order. PostgreSQL sorts by those below it all the same: what fails
// there must not be missed.
func (s *star) sort(x *plan.Sort) {
	if !s.sorted {
		s.q.Order, s.sorted = slices.Clone(x.By), true
		return
	}
	if slices.ContainsFunc(x.By, func(o plan.Order) bool { _, computed := o.Expr.(*plan.Call); return computed }) {
		s.refuse(x, "ORDER BY an expression in a subquery that is sorted again")
	}
}

// rows takes joins of tables. Conditions of inner joins are as those of WHERE: where they are
// evaluated makes no difference to the result. A left join's stay with it.
func (s *star) rows(r plan.Rel) {
	switch x := r.(type) {
	case *plan.Scan:
		s.scans = append(s.scans, x.Table)
	case *plan.Filter:
		s.rows(x.Input)
		s.conds = append(s.conds, x.Conds...)
	case *plan.Join:
		if x.Kind > plan.Left {
			s.refuse(x, "a join of this kind")
			s.rows(x.Left)
			s.below(x.Right)
			return
		}
		s.rows(x.Left)
		if x.Kind == plan.Left {
			s.left(x)
			return
		}
		s.rows(x.Right)
		s.conds = append(s.conds, x.On...)
	default:
		s.refuse(r, notExecuted(r))
		for _, in := range r.Inputs() {
			s.below(in)
		}
	}
}

// below looks for more that no star has below an operator that is refused.
func (s *star) below(r plan.Rel) {
	switch r.(type) {
	case *plan.Project, *plan.Sort, *plan.Limit, *plan.Aggregate, *plan.Filter, *plan.Window:
		s.below(r.Inputs()[0])
	default:
		s.rows(r)
	}
}

// notExecuted says of an operator that no star has, where it stands.
func notExecuted(r plan.Rel) string {
	switch x := r.(type) {
	case *plan.Shared:
		return "a WITH query that is read more than once, or is MATERIALIZED"
	case *plan.SetOp:
		return setName(x)
	case *plan.Values:
		return "VALUES"
	case *plan.Window:
		return "window function"
	case *plan.Aggregate:
		return "grouped subquery in FROM"
	case *plan.Sort:
		return "subquery with ORDER BY in FROM"
	case *plan.Limit:
		return "subquery with LIMIT in FROM"
	}
	return "subquery in FROM"
}

// setName is a set operation as it is written.
func setName(x *plan.SetOp) string {
	name := map[plan.SetKind]string{plan.Union: "UNION", plan.Intersect: "INTERSECT", plan.Except: "EXCEPT"}[x.Kind]
	if x.All {
		name += " ALL"
	}
	return name
}

// left takes a left join to one table, filtered at most.
func (s *star) left(j *plan.Join) {
	on := slices.Clone(j.On)
	right := j.Right
	for {
		f, ok := right.(*plan.Filter)
		if !ok {
			break
		}
		on, right = append(on, f.Conds...), f.Input
	}
	switch x := right.(type) {
	case *plan.Scan:
		s.scans = append(s.scans, x.Table)
		s.lefts = append(s.lefts, leftJoin{table: x.Table, on: on})
	case *plan.Join:
		s.refuse(x, "outer join to more than one table")
		s.rows(x)
	case *plan.Project:
		s.refuse(x, "outer join to a subquery that computes")
		s.rows(x.Input)
	default:
		s.rows(x) // refuses
	}
}

// sinkHaving moves the conditions on groups that use no aggregate to those on rows, as
// PostgreSQL's planner does (subquery_planner in plan/planner.c): it evaluates them for
// rows that other conditions remove, too, and what fails there must not be missed. With
// grouping sets all of HAVING stays: the keys of a condition may be null in a group.
func (s *star) sinkHaving() {
	q := s.q
	if s.groupingZero && len(q.Having) > 0 {
		// Nor does it move those with GROUPING(), though that is 0 without grouping sets: they
		// remove groups whose aggregates have been computed, and may have failed.
		fail(plan.ReasonShape, "HAVING and GROUPING() without grouping sets")
	}
	if len(q.Group) == 0 || len(q.Sets) > 0 {
		return
	}
	kept := q.Having[:0:0]
	for _, h := range q.Having {
		aggregates := false
		plan.Walk(h, func(e plan.Expr) bool {
			_, is := e.(plan.Agg)
			aggregates = aggregates || is
			return !aggregates
		})
		if aggregates {
			kept = append(kept, h)
			continue
		}
		s.conds = append(s.conds, plan.Rewrite(h, func(e plan.Expr) plan.Expr {
			if k, ok := e.(plan.Key); ok {
				return q.Group[k.Index]
			}
			return e
		}))
	}
	q.Having = kept
}

// finish checks the whole star, chooses the driving table and numbers the tables.
func (s *star) finish() {
	q := s.q
	s.sinkHaving()
	s.checkSetOrder()
	for _, e := range q.Group {
		s.callsEquality(e.Type().Kind)
	}
	checkSetCasts(q)
	root, joins, used := s.joinTree()
	q.Joins = joins
	var rest []plan.Expr
	for i, c := range s.conds {
		if !used[i] {
			rest = append(rest, c)
		}
	}
	q.Filter = s.dedupe(rest)
	q.Having = s.dedupe(q.Having)
	check := func(es []plan.Expr) {
		for _, e := range es {
			checkRows(e)
		}
	}
	check(q.Filter)
	check(q.Group)
	for _, j := range q.Joins {
		check(j.Outer)
		check(j.On)
	}
	for _, g := range q.Aggs {
		if g.Arg != nil {
			checkRows(g.Arg)
		}
		if g.Filter != nil {
			checkRows(g.Filter)
		}
	}
	if !q.Grouped {
		check(q.Output)
		for _, o := range q.Order {
			checkRows(o.Expr)
		}
	}
	s.renumber(root)
}
