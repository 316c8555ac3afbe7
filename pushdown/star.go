package pushdown

import (
	"slices"

	"pgaccel/plan"
)

// star makes of a tree, from the root down, the form that is executed: a star, and those that it
// reads for what one star has not.
type star struct {
	*analyzer
	q      *plan.Star
	scans  []int       // sources, in order of appearance: table references and relations
	conds  []plan.Expr // conjuncts of conditions on rows, and of inner joins
	sunk   []plan.Expr // those that were moved into leaves, with grouping sets
	lefts  []leftJoin
	exists []existence
	leaves []*leaf
	// keys are columns that hold a constant, by source: each row of it meets every other.
	keys map[int]int
	// stands are expressions that stand for the one value of an operator: Output.Of -> expression.
	stands map[int]plan.Expr
	number int         // of the aggregation
	sorted bool        // an order was met
	beside []plan.Rel  // the rows that stand before what is taken, which it may read
	over   []plan.Expr // conditions that rows have to pass later
}

// leftJoin is a left join to one source.
type leftJoin struct {
	table  int
	on     []plan.Expr
	single bool // several partners are an error
}

// star makes a star of a tree, or forwards.
func (a *analyzer) star(tree *plan.Project) *plan.Star {
	s := &star{analyzer: a, q: &plan.Star{Output: slices.Clone(tree.Exprs)}, stands: map[int]plan.Expr{}, number: -1}
	s.above(tree.Input, true)
	s.stop()
	s.resolve()
	s.conds = s.common(s.conds)
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
		if !top || x.Per != nil {
			s.rows(x)
			return
		}
		s.q.Limit, s.q.Offset = x.Count, x.Offset
		s.above(x.Input, false)
	case *plan.Sort:
		s.sort(x)
		s.above(x.Input, false)
	case *plan.Filter:
		s.below(x.Conds, func() { s.above(x.Input, false) })
		if s.q.Grouped {
			s.q.Having = append(s.q.Having, x.Conds...)
		} else {
			s.conds = append(s.conds, x.Conds...)
		}
	case *plan.Aggregate:
		s.q.Grouped, s.q.Group, s.q.Sets, s.q.Aggs = true, slices.Clone(x.Keys), x.Sets, slices.Clone(x.Aggs)
		s.number = x.Number
		s.rows(x.Input)
	case *plan.Join:
		if x.Kind == plan.Single && !s.reads(x.Right, x.Left) {
			s.scalar(x)
			s.above(x.Left, false)
			return
		}
		s.rows(x)
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
		s.refuse(x, "ORDER BY an expression in a subquery that is sorted again")
	}
}

// rows takes joins of tables, and of what else yields rows. Conditions of inner joins are as those
// of WHERE: where they are evaluated makes no difference to the result. A left join's stay with it.
func (s *star) rows(r plan.Rel) {
	switch x := r.(type) {
	case *plan.Scan:
		s.scans = append(s.scans, x.Table)
	case *plan.Filter:
		s.below(x.Conds, func() { s.rows(x.Input) })
		s.conds = append(s.conds, x.Conds...)
	case *plan.Values:
		if x.Number > 0 { // else one row without values, which is no matter beside others
			s.item(x)
		}
	case *plan.Join:
		s.join(x)
	default:
		s.item(x)
	}
}

// below takes with f the rows that have to pass conditions.
func (s *star) below(conds []plan.Expr, f func()) {
	n := len(s.over)
	s.over = append(s.over, conds...)
	f()
	s.over = s.over[:n]
}

// item takes an operator that is computed first, once for all rows beside it that it reads.
func (s *star) item(r plan.Rel) {
	if !s.readsOutside(r) {
		s.leaf(r)
		return
	}
	l, pairs := s.unnested(r, nil)
	if l == nil {
		s.refuse(r, "a LATERAL subquery of this form")
		return
	}
	on := s.equal(pairs)
	if l.empty != nil {
		s.lefts = append(s.lefts, leftJoin{table: l.table, on: on})
	} else {
		s.conds = append(s.conds, on...)
	}
}

// unnested takes what reads the rows of left, or those beside it, as one source. It returns nil where that
// cannot be, and else the values of these rows and columns of the source that are equal to them.
func (s *star) unnested(r, left plan.Rel) (l *leaf, pairs [][2]plan.Expr) {
	rows := left
	for _, b := range slices.Backward(s.beside) {
		if rows == nil {
			rows = b
		} else {
			rows = &plan.Join{Kind: plan.Inner, Left: b, Right: rows}
		}
	}
	if rows == nil {
		return nil, nil
	}
	if len(s.over) > 0 {
		rows = &plan.Filter{Input: rows, Conds: slices.Clone(s.over)}
	}
	u, x, ok := s.unnest(r, rows)
	if !ok || len(x.keys) == 0 {
		return nil, nil
	}
	l = s.leaf(computable(x.rows))
	l.yields = plan.YieldsOf(r) // though what stands for it is another operator's
	var key []int
	for _, p := range u.agreement(u.outer, &x) {
		c := l.column(s.analyzer, p[1])
		key = append(key, c.(plan.Column).Column)
		pairs = append(pairs, [2]plan.Expr{p[0], c})
	}
	if l.empty, l.marker, l.filled = x.empty, pairs[0][1], u.filled; x.one {
		l.unique = key
	}
	return l, pairs
}

// computable is an operator that can be a leaf of which expressions are read.
func computable(r plan.Rel) plan.Rel {
	switch r.(type) {
	case *plan.Project, *plan.Aggregate, *plan.Limit:
		return r
	}
	return &plan.Filter{Input: r}
}

func (s *star) equal(pairs [][2]plan.Expr) (on []plan.Expr) {
	for _, p := range pairs {
		on = append(on, s.call(plan.OpEq, boolType, p[0], p[1]))
	}
	return on
}

// join takes a join.
func (s *star) join(x *plan.Join) {
	switch x.Kind {
	case plan.Inner:
		s.rows(x.Left)
		s.beside = append(s.beside, x.Left)
		s.rows(x.Right)
		s.beside = s.beside[:len(s.beside)-1]
		s.conds = append(s.conds, x.On...)
	case plan.Left:
		s.rows(x.Left)
		s.left(x)
	case plan.Single:
		s.rows(x.Left)
		s.single(x)
	case plan.Semi, plan.Anti, plan.NotIn, plan.Mark:
		s.rows(x.Left)
		s.subselectJoin(x)
	default:
		s.leaf(x)
	}
}

// left takes a left join. Its right side becomes one source, which equalities name the rows of.
func (s *star) left(j *plan.Join) {
	on, right := slices.Clone(j.On), j.Right
	for {
		f, ok := right.(*plan.Filter)
		if !ok {
			break
		}
		on, right = append(on, f.Conds...), f.Input
	}
	y := plan.YieldsOf(right)
	var own, guards, rest []plan.Expr
	var pairs [][2]plan.Expr
	on = s.dedupe(s.common(on))
	for _, e := range on {
		inner, outer := equated(e, &y)
		switch {
		case !readsRows(e), readsOnly(e, &y):
			own = append(own, e)
		case !y.ReadBy(e) && !mayFail(e):
			guards = append(guards, e)
		case inner != nil:
			pairs = append(pairs, [2]plan.Expr{outer, inner})
		default:
			rest = append(rest, e)
		}
	}
	if len(rest) > 0 || s.readsOutside(right) {
		s.leftUnnested(j, right, on, guards)
		return
	}
	own = append(own, s.transferred(slices.Concat(s.conds, s.over), pairs, right)...)
	scan, isScan := right.(*plan.Scan)
	plain := isScan && len(pairs) > 0 && !slices.ContainsFunc(pairs, func(p [2]plan.Expr) bool { _, is := p[1].(plan.Column); return !is })
	if plain {
		s.scans = append(s.scans, scan.Table)
		s.lefts = append(s.lefts, leftJoin{table: scan.Table, on: append(s.equal(s.guarded(pairs, guards)), own...)})
		return
	}
	var l *leaf
	if o, is := right.(*plan.Project); is && slices.ContainsFunc(pairs, func(p [2]plan.Expr) bool { _, is := p[1].(plan.Output); return is }) {
		l = s.leaf(o)
	} else if len(own) > 0 {
		l, own = s.leaf(&plan.Filter{Input: right, Conds: own}), nil
	} else {
		l = s.leaf(computable(right))
	}
	for i := range pairs {
		pairs[i][1] = l.column(s.analyzer, pairs[i][1])
	}
	if len(pairs) == 0 {
		c := l.column(s.analyzer, one)
		if len(guards) == 0 {
			s.crossJoin(c.(plan.Column))
		} else {
			pairs = append(pairs, [2]plan.Expr{one, c})
		}
	}
	s.lefts = append(s.lefts, leftJoin{table: l.table, on: append(s.equal(s.guarded(pairs, guards)), own...)})
}

// leftUnnested takes a left join whose right side reads rows of the left in another way than by
// equalities, on being its conditions.
func (s *star) leftUnnested(j *plan.Join, right plan.Rel, on, guards []plan.Expr) {
	on = slices.DeleteFunc(slices.Clone(on), func(e plan.Expr) bool { return slices.Contains(guards, e) })
	if len(on) > 0 {
		right = &plan.Filter{Input: right, Conds: on}
	} else if len(guards) > 0 && oneRow(right) { // it has no row where they are false
		right, guards = &plan.Filter{Input: right, Conds: guards}, nil
	}
	l, pairs := s.unnested(right, j.Left)
	if l == nil {
		s.refuse(j, "an outer join of this form")
		return
	}
	s.lefts = append(s.lefts, leftJoin{table: l.table, on: s.equal(s.guarded(pairs, guards))})
}

// guarded makes the first of values that are looked up null where a condition on them is not true: then
// there is no partner.
func (s *star) guarded(pairs [][2]plan.Expr, guards []plan.Expr) [][2]plan.Expr {
	if len(guards) == 0 {
		return pairs
	}
	when := guards[0]
	if len(guards) > 1 {
		when = s.call(plan.OpAnd, boolType, guards...)
	}
	pairs = slices.Clone(pairs)
	o := pairs[0][0]
	pairs[0][0] = s.call(plan.OpCase, o.Type(), when, o, nullOf(o))
	return pairs
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
		if readsAggregate(h) {
			kept = append(kept, h)
			continue
		}
		if mayFail(h) && slices.ContainsFunc(s.leaves, overSortedRows) {
			// The server computes it for rows that joins below the window leave out.
			fail(plan.ReasonEvaluation, "a condition on groups that may fail, beside an aggregate over sorted rows")
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

// readsAggregate reports whether an expression reads an aggregate.
func readsAggregate(e plan.Expr) (reads bool) {
	plan.Walk(e, func(e plan.Expr) bool {
		_, is := e.(plan.Agg)
		reads = reads || is
		return !reads
	})
	return reads
}

// overSortedRows reports whether a leaf has the value of an aggregate over sorted rows.
func overSortedRows(l *leaf) bool {
	w, is := l.rel.(*plan.Window)
	return is && w.Func == plan.WindowAggregate && w.Agg.Func.OverSorted()
}

// finish checks the whole star, chooses the driving table and numbers the tables.
func (s *star) finish() {
	q := s.q
	s.sinkHaving()
	s.checkSetOrder()
	for _, e := range q.Group {
		s.callsEqualityOf(e)
	}
	checkSetCasts(q)
	root := -1
	used := map[int]bool{}
	if len(s.scans) > 0 {
		var joins []plan.StarJoin
		root, joins, used = s.joinTree()
		q = s.q // what was nested has changed it
		q.Joins = joins
	} else if q.Grouped {
		fail(plan.ReasonShape, "an aggregate without a table")
	}
	var rest []plan.Expr
	for i, c := range s.conds {
		if !used[i] {
			rest = append(rest, c)
		}
	}
	q.Filter = s.dedupe(append(rest, s.implied(rest)...))
	q.Having = s.dedupe(q.Having)
	s.checkExprs()
	s.renumber(root)
}

// checkExprs forwards what is read that the star does not have.
func (s *star) checkExprs() {
	q := s.q
	rows := func(es []plan.Expr) {
		for _, e := range es {
			s.checkReads(e, false)
		}
	}
	rows(q.Filter)
	rows(q.Group)
	for _, j := range q.Joins {
		rows(j.Outer)
		rows(j.On)
	}
	for _, g := range q.Aggs {
		for _, e := range []plan.Expr{g.Arg, g.Filter} {
			if e != nil {
				rows([]plan.Expr{e})
			}
		}
	}
	over := slices.Clone(q.Output)
	for _, o := range q.Order {
		over = append(over, o.Expr)
	}
	if !q.Grouped {
		rows(over)
		return
	}
	for _, e := range append(over, q.Having...) {
		s.checkReads(e, true)
	}
}

// checkReads forwards an expression that reads what is no source of the star, or of its groups.
func (s *star) checkReads(e plan.Expr, groups bool) {
	plan.Walk(e, func(x plan.Expr) bool {
		ok := true
		switch x := x.(type) {
		case plan.Column:
			ok = !groups && slices.Contains(s.scans, x.Table)
		case plan.Key:
			ok = groups && x.Of == s.number
		case plan.Agg:
			ok = groups && x.Of == s.number
		case *plan.Grouping:
			ok = groups && x.Of == s.number
		case plan.Output:
			ok = false
		case plan.Scalar:
			ok = x.Of < len(s.q.Scalars)
		}
		if !ok {
			fail(plan.ReasonShape, "a sub-select that reads the query around it in this way")
		}
		return true
	})
}
