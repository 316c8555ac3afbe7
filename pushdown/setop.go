package pushdown

import (
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/vector"
)

var setKinds = map[pg.SetOperation]plan.SetKind{pg.SetOperation_SETOP_UNION: plan.Union,
	pg.SetOperation_SETOP_INTERSECT: plan.Intersect, pg.SetOperation_SETOP_EXCEPT: plan.Except}

const setModifiers = "UNION ALL, INTERSECT or EXCEPT of types with several modifiers"

// setOperation analyses UNION, INTERSECT or EXCEPT with its ORDER BY and LIMIT.
func (a *analyzer) setOperation(sel *pg.SelectStmt, top bool) query {
	kind, ok := setKinds[sel.Op]
	if !ok {
		fail(plan.ReasonShape, "a set operation of this form")
	}
	var l, r query
	a.attempt(func() { l = a.query(sel.Larg, false) })
	a.attempt(func() { r = a.query(sel.Rarg, false) })
	a.stop()
	if len(l.outputs) != len(r.outputs) {
		fail(plan.ReasonShape, "a set operation of rows of two lengths")
	}
	op := &plan.SetOp{Number: a.nextOutput(), Kind: kind, All: sel.All, Left: &plan.Project{Input: l.rows}, Right: &plan.Project{Input: r.rows}}
	q := query{rows: op}
	for i, t := range l.targets {
		a.attempt(func() {
			vals := []value{l.open(i), r.open(i)}
			if k, _ := commonKind(vals); k == vector.BPChar && op.Kind != plan.Union && severalModifiers(vals, k) && !a.describedPlainly(op, typmodOf(vals[0], k)) {
				fail(plan.ReasonDescription, setModifiers)
			}
			out, typ := a.oneType("set operation", vals)
			// A numeric without a modifier on the left has none below, whatever the right one has.
			plain := out[0].Type().Kind == vector.Numeric && out[0].Type().Typmod == -1
			if out[0].Type().Typmod != out[1].Type().Typmod && !plain && !a.describedPlainly(op, out[0].Type().Typmod) {
				fail(plan.ReasonDescription, setModifiers)
			}
			if !op.All || op.Kind != plan.Union {
				a.callsEquality(typ.Kind)
			}
			op.Left.Exprs, op.Right.Exprs = append(op.Left.Exprs, out[0]), append(op.Right.Exprs, out[1])
			q.add(t.name, plan.Output{Of: op.Number, Index: i, T: typ})
		})
	}
	a.stop()
	a.at = a.text.Keyword(pg.Token_UNION, pg.Token_INTERSECT, pg.Token_EXCEPT)
	a.note(op, a.at, "")
	return a.ordered(q, sel, top)
}

// describedPlainly reports whether a column of a set operation, of several type modifiers, is surely
// described without one, as a prepared statement's is. A Query's has the left side's from version 18
// on (generate_nonunion_paths in prepunion.c), and that of the only arm of UNION ALL that is not known
// to be empty.
func (a *analyzer) describedPlainly(op *plan.SetOp, left int32) bool {
	if op.Kind != plan.Union {
		return left == -1 || a.cat.ServerVersion > 0 && a.cat.ServerVersion < 180000
	}
	return !op.All || a.surelyRows(op.Left.Input)+a.surelyRows(op.Right.Input) > 1
}

// surelyRows counts the arms of a UNION ALL that the server cannot know to be empty: conditions may
// contradict each other, or a constraint, and a partitioned table may have no partition.
func (a *analyzer) surelyRows(r plan.Rel) int {
	switch x := r.(type) {
	case *plan.SetOp:
		if x.Kind == plan.Union && x.All {
			return a.surelyRows(x.Left.Input) + a.surelyRows(x.Right.Input)
		}
	case *plan.Aggregate:
		if len(x.Keys) == 0 && len(x.Sets) == 0 {
			return 1
		}
		return min(a.surelyRows(x.Input), 1)
	case *plan.Values:
		return 1
	case *plan.Scan:
		if a.tables[x.Table].Meta.Parts == nil {
			return 1
		}
	}
	return 0
}

// open returns an output whose type is open while it is: a constant of a SELECT.
func (q *query) open(i int) value {
	t := q.targets[i]
	switch q.outputs[i].(type) {
	case nil:
		panic(t.col.refuse)
	case plan.Const:
		if t.col.e == nil && t.v.unknown() && t.v.param == 0 {
			return t.v
		}
	}
	return typed(q.outputs[i])
}

// add adds an output.
func (q *query) add(name string, e plan.Expr) {
	q.targets = append(q.targets, target{name: name, v: typed(e)})
	q.outputs = append(q.outputs, e)
}

// oneType casts the values of a column to their common type.
func (a *analyzer) oneType(what string, vals []value) ([]plan.Expr, vector.Type) {
	k, ok := commonKind(vals)
	if !ok {
		fail(plan.ReasonType, what+" of several types")
	}
	if k == vector.BPChar {
		for _, v := range vals {
			if v.unknown() || v.kind() != k || v.e.Type().Typmod != vals[0].e.Type().Typmod {
				fail(plan.ReasonType, what+" of char(n) of several lengths")
			}
		}
	}
	out, t := a.commonResults(vals)
	for _, e := range out { // the modifier stays where all have it
		if e.Type().Typmod != out[0].Type().Typmod {
			t.Typmod = -1
			break
		}
		t.Typmod = e.Type().Typmod
	}
	return out, t
}

// ordered adds the ORDER BY and LIMIT of what is no plain SELECT: by its columns.
func (a *analyzer) ordered(q query, sel *pg.SelectStmt, top bool) query {
	by := a.orderBy(sel.SortClause, &scope{}, q.targets, q.outputs)
	limit := a.limits(sel, top)
	q.sortAndCut(by, limit)
	a.noteOrder(q.rows, sel)
	return q
}

// values analyses VALUES.
func (a *analyzer) values(sel *pg.SelectStmt, top bool) query {
	outer := a.noAggs
	a.noAggs = "aggregate in VALUES"
	rows := make([][]value, len(sel.ValuesLists))
	a.noSubselects("VALUES", func() {
		for i, n := range sel.ValuesLists {
			for _, x := range n.GetList().GetItems() {
				a.attempt(func() { rows[i] = append(rows[i], a.expr(x, &scope{outer: a.outer})) })
			}
		}
	})
	a.stop()
	a.noAggs = outer
	v := &plan.Values{Number: a.nextOutput(), Rows: make([][]plan.Expr, len(rows))}
	q := query{rows: v}
	for c := range rows[0] {
		column := make([]value, len(rows))
		for i, row := range rows {
			if len(row) != len(rows[0]) {
				fail(plan.ReasonShape, "VALUES of rows of several lengths")
			}
			column[i] = row[c]
		}
		a.attempt(func() {
			out, typ := a.oneType("VALUES", column)
			for i, e := range out {
				v.Rows[i] = append(v.Rows[i], e)
			}
			q.add("column"+strconv.Itoa(c+1), plan.Output{Of: v.Number, Index: c, T: typ})
		})
	}
	a.stop()
	a.at = a.text.Keyword(pg.Token_VALUES)
	a.note(v, a.at, "")
	return a.ordered(q, sel, top)
}
