package pushdown

import (
	"slices"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// existence is a join that asks whether there is a partner.
type existence struct {
	table int
	kind  plan.JoinKind // Inner: of rows that have one; Left: of all, the key is null where there is none
	key   []int
	outer []plan.Expr
	on    []plan.Expr // over the table alone
}

// correlation is a sub-select's rows, and how they depend on those of the query around it.
type correlation struct {
	rows  plan.Rel    // which read nothing outside
	inner []plan.Expr // expressions over rows, equal one by one to
	outer []plan.Expr // expressions over the query around
	apart []plan.Expr // conditions that read nothing of the rows
	rest  []plan.Expr // conditions over both that are no such equalities
}

// correlate pulls the conditions on top of a sub-select that read the query around it out of it, and
// sorts them with those in on. ok is false where anything below reads the query around, or where
// sorting may fail; PostgreSQL does not sort for EXISTS (simplify_EXISTS_query).
func (s *star) correlate(rows plan.Rel, on []plan.Expr, exists bool) (c correlation, ok bool) {
	for {
		if o, sorted := rows.(*plan.Sort); sorted { // in whichever order
			if !exists && slices.ContainsFunc(o.By, func(by plan.Order) bool { return mayFail(by.Expr) }) {
				return c, false
			}
			rows = o.Input
			continue
		}
		f, filter := rows.(*plan.Filter)
		if !filter {
			break
		}
		on, rows = append(slices.Clone(on), f.Conds...), f.Input
	}
	y := plan.YieldsOf(rows)
	var own []plan.Expr
	for _, e := range s.common(on) {
		switch {
		case readsOnly(e, &y) && (y.ReadBy(e) || !readsRows(e)):
			own = append(own, e)
		case !y.ReadBy(e):
			c.apart = append(c.apart, e)
		default:
			if inner, outer := equated(e, &y); inner != nil {
				c.inner, c.outer = append(c.inner, inner), append(c.outer, outer)
			} else {
				c.rest = append(c.rest, e)
			}
		}
	}
	if c.rows = rows; len(own) > 0 {
		c.rows = &plan.Filter{Input: rows, Conds: own}
	}
	return c, !s.readsOutside(c.rows)
}

// equated returns the sides of an equality of an expression over y with one that reads nothing of
// it, in a form that a lookup can use; nil where it is none.
func equated(e plan.Expr, y *plan.Yields) (inner, outer plan.Expr) {
	c, ok := e.(*plan.Call)
	if ok && c.Op == plan.OpNot { // of <> ALL
		if n, is := c.Args[0].(*plan.Call); is && n.Op == plan.OpNe {
			c = &plan.Call{Op: plan.OpEq, Args: n.Args, T: n.T}
		}
	}
	if !ok || c.Op != plan.OpEq {
		return nil, nil
	}
	for side := range 2 {
		x, o := c.Args[side], c.Args[1-side]
		if y.ReadBy(x) && readsOnly(x, y) && !y.ReadBy(o) && lookupPossible(x.Type(), o.Type()) {
			return x, o
		}
	}
	return nil, nil
}

// readsOutside reports whether an operator reads what is not below it.
func (s *star) readsOutside(r plan.Rel) bool {
	var all plan.Yields
	plan.WalkRel(r, func(r plan.Rel) bool {
		all.Add(plan.OwnYields(r))
		return true
	})
	return readsAny(r, func(e plan.Expr) bool {
		switch e.(type) {
		case plan.Column, plan.Key, plan.Agg, *plan.Grouping, plan.Output:
			return !all.Has(e)
		}
		return false
	})
}

// subselectJoin takes a join of rows with a sub-select that says which of them are left, or says
// something of each.
func (s *star) subselectJoin(x *plan.Join) {
	// Of IN with a constant the server computes the sub-select as it stands (convert_ANY_sublink_to_join): the
	// condition would go below its groups, and leave out those that fail.
	y := plan.YieldsOf(x.Right)
	if slices.ContainsFunc(x.On, func(e plan.Expr) bool { return readsOnly(e, &y) }) && relFails(x.Right) {
		s.refuse(x, "a constant looked for in a sub-select that may fail")
		return
	}
	c, ok := s.correlate(x.Right, x.On, len(x.On) == 0)
	if len(x.On) > 0 && (x.Kind == plan.NotIn || x.Kind == plan.Mark) {
		// The one key must be that of IN itself, not one of the sub-select's own conditions beside
		// a constant that is looked for.
		own, _ := s.correlate(x.Right, nil, false)
		if !ok || len(own.inner) > 0 || !s.member(x, c) {
			s.memberUnnested(x)
		}
		return
	}
	if ok && x.Kind == plan.Semi && len(c.inner) > 0 && len(c.rest) == 0 {
		s.conds = append(s.conds, c.apart...)
		s.exist(c, plan.Inner)
		return
	}
	var found plan.Expr
	if ok {
		found, ok = s.found(c)
	}
	if !ok {
		found = s.foundUnnested(x, x.On...)
	}
	if found == nil {
		return
	}
	switch x.Kind {
	case plan.Semi:
		s.conds = conjuncts(s.conds, found)
	case plan.Anti:
		s.conds = append(s.conds, s.not(found))
	default:
		s.stands[x.Number] = found
	}
}

// foundUnnested is an expression over the rows around that is true where the sub-select has a row for
// which the conditions are true, and else false; nil where it is refused.
func (s *star) foundUnnested(x *plan.Join, on ...plan.Expr) plan.Expr {
	right := x.Right
	if len(on) > 0 {
		right = &plan.Filter{Input: right, Conds: on}
	}
	if !s.readsOutside(right) { // a constant is looked for, or none
		n := s.counts(right, nil)
		return s.call(plan.OpGt, boolType, n[0], int8Const(0))
	}
	l, pairs := s.unnested(right, x.Left)
	if l == nil {
		s.refuse(x, "a correlated sub-select")
		return nil
	}
	if l.empty != nil { // one row, whatever there is
		l.empty = nil
		s.lefts = append(s.lefts, leftJoin{table: l.table, on: s.equal(pairs)})
		return boolConst(true)
	}
	e := existence{table: l.table, kind: plan.Left}
	for _, p := range pairs {
		e.key, e.outer = append(e.key, p[1].(plan.Column).Column), append(e.outer, p[0])
	}
	s.exists = append(s.exists, e)
	return s.call(plan.OpIsNotNull, boolType, pairs[0][1])
}

// memberUnnested takes IN, or NOT IN, by whether the condition is true, or not false, with a row.
func (s *star) memberUnnested(x *plan.Join) {
	cond := x.On[0]
	if len(x.On) > 1 {
		cond = s.call(plan.OpAnd, boolType, x.On...)
	}
	possible := s.foundUnnested(x, s.call(plan.OpCoalesce, boolType, cond, boolConst(true)))
	if possible == nil {
		return
	}
	if x.Kind == plan.NotIn {
		s.conds = append(s.conds, s.not(possible))
		return
	}
	if found := s.foundUnnested(x, x.On...); found != nil {
		s.stands[x.Number] = s.call(plan.OpCase, boolType, found, boolConst(true), possible, nullBool, boolConst(false))
	}
}

// found is an expression over the rows around that is true where the sub-select has a row, and else
// false.
func (s *star) found(c correlation) (plan.Expr, bool) {
	var all []plan.Expr
	for _, e := range c.apart {
		all = append(all, s.call(plan.OpIsTrue, boolType, e))
	}
	switch {
	case len(c.inner) == 0 && len(c.rest) == 0 && oneRow(c.rows) && !relFails(c.rows):
		all = append(all, boolConst(true))
	case len(c.inner) == 0 && len(c.rest) == 0:
		n := s.counts(c.rows, nil)
		all = append(all, s.call(plan.OpGt, boolType, n[0], int8Const(0)))
	case len(c.rest) == 0:
		key := s.exist(c, plan.Left)
		all = append(all, s.call(plan.OpIsNotNull, boolType, key))
	case len(c.rest) == 1 && len(c.inner) > 0:
		e := s.extremes(c)
		if e == nil {
			return nil, false
		}
		all = append(all, s.call(plan.OpIsTrue, boolType, e))
	default:
		return nil, false
	}
	if len(all) == 1 {
		return all[0], true
	}
	return s.call(plan.OpAnd, boolType, all...), true
}

func int8Const(n int64) plan.Expr { return plan.Const{Datum: vector.Int(vector.Int8, n)} }

// exist joins rows by their keys, for whether there are any, and returns the first key.
func (s *star) exist(c correlation, kind plan.JoinKind) plan.Expr {
	x := existence{kind: kind, outer: c.outer}
	scan, conds := scanOf(c.rows)
	plain := !slices.ContainsFunc(c.inner, func(e plan.Expr) bool { _, is := e.(plan.Column); return !is })
	if scan != nil && plain {
		x.table, x.on = scan.Table, conds
		s.scans = append(s.scans, scan.Table)
		for _, e := range c.inner {
			x.key = append(x.key, e.(plan.Column).Column)
		}
		s.exists = append(s.exists, x)
		return c.inner[0]
	}
	p := &plan.Project{Number: s.nextOutput(), Input: c.rows, Exprs: c.inner}
	l := s.leaf(p)
	x.table = l.table
	for i := range c.inner {
		col := l.column(s.analyzer, plan.Output{Of: p.Number, Index: i, T: c.inner[i].Type()}).(plan.Column)
		x.key = append(x.key, col.Column)
	}
	s.exists = append(s.exists, x)
	return plan.Output{Of: p.Number, T: c.inner[0].Type()}
}

// scanOf returns the table that an operator reads, and the conditions on it; nil for anything else.
func scanOf(r plan.Rel) (scan *plan.Scan, conds []plan.Expr) {
	if f, ok := r.(*plan.Filter); ok {
		conds, r = f.Conds, f.Input
	}
	scan, _ = r.(*plan.Scan)
	return scan, conds
}

// extremes says by the least and the greatest value of a group whether one of its rows is less than,
// greater than or not equal to an expression: null or false where none is.
func (s *star) extremes(c correlation) plan.Expr {
	e, ok := c.rest[0].(*plan.Call)
	if !ok {
		return nil
	}
	y := plan.YieldsOf(c.rows)
	op, value, with := e.Op, e.Args[0], plan.Expr(nil)
	if len(e.Args) == 2 {
		with = e.Args[1]
		if !y.ReadBy(value) {
			op, value, with = plan.Flipped[op], with, value
		}
	}
	if !op.IsComparison() || op == plan.OpEq || with == nil || !readsOnly(value, &y) || y.ReadBy(with) ||
		plan.Min.Result(value.Type()).Kind != value.Type().Kind {
		return nil
	}
	s.aggregations++
	groups := &plan.Aggregate{Number: s.aggregations - 1, Input: c.rows, Keys: c.inner}
	for _, f := range []*sqlfn.Aggregate{plan.Min, plan.Max} {
		groups.Aggs = append(groups.Aggs, plan.AggregateCall{Func: f, Arg: value, T: value.Type()})
	}
	least, greatest := plan.Agg{Of: groups.Number, T: value.Type()}, plan.Agg{Of: groups.Number, Index: 1, T: value.Type()}
	ends, _ := s.byKeys(groups, c.outer, least, greatest)
	extreme := func(i int) plan.Expr { return s.call(op, boolType, ends[i], with) }
	switch op {
	case plan.OpLt, plan.OpLe:
		return extreme(0)
	case plan.OpGt, plan.OpGe:
		return extreme(1)
	}
	return s.call(plan.OpOr, boolType, extreme(0), extreme(1))
}

// byKeys joins groups to the rows around, by their keys, with nulls where there is none. It returns
// what stands for values over the groups, and for the first key.
func (s *star) byKeys(groups *plan.Aggregate, outer []plan.Expr, values ...plan.Expr) (out []plan.Expr, key plan.Expr) {
	p := &plan.Project{Number: s.nextOutput(), Input: groups}
	for i, e := range groups.Keys {
		p.Exprs = append(p.Exprs, plan.Key{Of: groups.Number, Index: i, T: e.Type()})
	}
	p.Exprs = append(p.Exprs, values...)
	l := s.leaf(p)
	var on []plan.Expr
	for i, e := range p.Exprs { // all of them are columns: the keys are unique together
		o := plan.Output{Of: p.Number, Index: i, T: e.Type()}
		l.column(s.analyzer, o)
		if i < len(outer) {
			on = append(on, s.call(plan.OpEq, boolType, outer[i], o))
		} else {
			out = append(out, o)
		}
	}
	s.lefts = append(s.lefts, leftJoin{table: l.table, on: on})
	return out, plan.Output{Of: p.Number, T: p.Exprs[0].Type()}
}

// counts computes how many rows there are and, with e, for how many of them e is not null.
func (s *star) counts(rows plan.Rel, e plan.Expr) []plan.Expr {
	t := vector.TypeOf(vector.Int8)
	s.aggregations++
	n := s.aggregations - 1
	groups := &plan.Aggregate{Number: n, Input: rows, Aggs: []plan.AggregateCall{{Func: plan.CountStar, T: t}}}
	if e != nil {
		groups.Aggs = append(groups.Aggs, plan.AggregateCall{Func: plan.Count, Arg: e, T: t})
	}
	p := &plan.Project{Input: groups}
	out := make([]plan.Expr, len(groups.Aggs))
	for i := range groups.Aggs {
		p.Exprs = append(p.Exprs, plan.Agg{Of: n, Index: i, T: t})
		out[i] = plan.Scalar{Of: len(s.q.Scalars), Index: i, T: t}
	}
	s.q.Scalars = append(s.q.Scalars, s.analyzer.star(p))
	return out
}

// member takes x IN (SELECT ...) as a value, or x NOT IN (SELECT ...) as a condition. x IN S is true
// where x is one of S; else false where S is empty, else null where x is null or one of S is, else
// false. It returns false where what is null depends on the rows that each row around sees.
func (s *star) member(x *plan.Join, c correlation) bool {
	if len(c.inner) != 1 || len(c.apart) > 0 || len(c.rest) > 0 {
		return false
	}
	n := s.counts(c.rows, c.inner[0])
	found := s.call(plan.OpIsNotNull, boolType, s.exist(c, plan.Left))
	empty := s.call(plan.OpEq, boolType, n[0], int8Const(0))
	if x.Kind == plan.NotIn {
		known := s.call(plan.OpAnd, boolType, s.call(plan.OpIsNotNull, boolType, c.outer[0]), s.call(plan.OpEq, boolType, n[0], n[1]), s.not(found))
		s.conds = append(s.conds, s.call(plan.OpOr, boolType, empty, known))
		return true
	}
	unknown := s.call(plan.OpOr, boolType, s.call(plan.OpIsNull, boolType, c.outer[0]), s.call(plan.OpNe, boolType, n[0], n[1]))
	s.stands[x.Number] = s.call(plan.OpCase, boolType, found, boolConst(true), empty, boolConst(false), unknown, nullBool, boolConst(false))
	return true
}

// scalar takes a sub-select as a value that does not depend on the rows around it.
func (s *star) scalar(x *plan.Join) {
	p := x.Right.(*plan.Project)
	s.stands[p.Number] = plan.Scalar{Of: len(s.q.Scalars), T: p.Exprs[0].Type()}
	s.q.Scalars = append(s.q.Scalars, s.analyzer.star(&plan.Project{Input: p.Input, Exprs: p.Exprs}))
}

// single takes a sub-select as a value.
func (s *star) single(x *plan.Join) {
	p := x.Right.(*plan.Project)
	if !s.reads(x.Right, x.Left) {
		s.scalar(x)
		return
	}
	if s.keyed(p) {
		return
	}
	l, pairs := s.unnested(p, x.Left)
	if l == nil {
		s.refuse(x, "a correlated sub-select")
		return
	}
	s.lefts = append(s.lefts, leftJoin{table: l.table, on: s.equal(pairs), single: l.unique == nil})
}

// keyed takes a value of the row of a table that a unique key names.
func (s *star) keyed(p *plan.Project) bool {
	c, ok := s.correlate(p.Input, nil, false)
	scan, conds := scanOf(c.rows)
	if !ok || scan == nil || len(c.apart) > 0 || len(c.rest) > 0 {
		return false
	}
	var columns []int
	for i, e := range c.inner {
		if col, is := e.(plan.Column); is {
			columns = append(columns, col.Column)
		}
		conds = append(slices.Clone(conds), s.call(plan.OpEq, boolType, c.outer[i], e))
	}
	y := plan.YieldsOf(c.rows)
	if !s.tables[scan.Table].Meta.UniqueOn(columns) || !readsOnly(p.Exprs[0], &y) {
		return false
	}
	s.scans = append(s.scans, scan.Table)
	s.lefts = append(s.lefts, leftJoin{table: scan.Table, on: conds})
	value := p.Exprs[0]
	if _, plain := value.(plan.Column); !plain {
		value = s.call(plan.OpCase, value.Type(), s.call(plan.OpIsNull, boolType, c.inner[0]), nullOf(value), value)
	}
	s.stands[p.Number] = value
	return true
}

func nullOf(e plan.Expr) plan.Expr { return plan.Const{Datum: vector.Null(e.Type())} }

// alwaysNull reports whether an expression is null because an operand of it is, and all others are
// constants: what is computed beside a null may still be an error.
func (s *star) alwaysNull(e plan.Expr) bool {
	switch x := e.(type) {
	case plan.Const:
		return x.Null
	case *plan.Call:
		switch x.Op {
		case plan.OpAdd, plan.OpSub, plan.OpMul, plan.OpDiv, plan.OpMod, plan.OpNeg, plan.OpAbs, plan.OpCast:
			for _, y := range x.Args {
				if _, constant := y.(plan.Const); !constant && !s.alwaysNull(y) {
					return false
				}
			}
			return slices.ContainsFunc(x.Args, s.alwaysNull)
		}
	}
	return false
}
