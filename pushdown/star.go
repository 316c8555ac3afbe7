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
	s.q.Deps = plan.Deps{Params: a.params, NeedsUTC: a.needsUTC, Functions: a.functions}
	s.above(tree.Input, true)
	s.finish()
	return s.q
}

// above takes what stands over the aggregation, or over the joins where there is none. top is
// true for the operator below the root.
func (s *star) above(r plan.Rel, top bool) {
	switch x := r.(type) {
	case *plan.Limit:
		if !top {
			fail(plan.ReasonShape, "subquery with LIMIT in FROM")
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
		s.q.Grouped, s.q.Group, s.q.Sets, s.q.Aggs = true, slices.Clone(x.Keys), x.Sets, slices.Clone(x.Aggs)
		s.rows(x.Input)
	default:
		s.rows(r)
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
		fail(plan.ReasonShape, "ORDER BY an expression in a subquery that is sorted again")
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
		s.rows(x.Left)
		if x.Kind == plan.Left {
			s.left(x)
			return
		}
		s.rows(x.Right)
		s.conds = append(s.conds, x.On...)
	default:
		fail(plan.ReasonShape, "subquery in FROM")
	}
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
	scan, ok := right.(*plan.Scan)
	if !ok {
		fail(plan.ReasonShape, "outer join to more than one table")
	}
	s.scans = append(s.scans, scan.Table)
	s.lefts = append(s.lefts, leftJoin{table: scan.Table, on: on})
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
	s.noteDerived(q)
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
