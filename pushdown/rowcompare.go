package pushdown

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
)

// rowComparison analyses a comparison of two row constructors, as conditions on their columns (make_row_comparison_op in
// parse_expr.c). ok is false where x is none.
func (a *analyzer) rowComparison(symbol string, x *pg.A_Expr, s *scope) (e plan.Expr, ok bool) {
	l, r := x.Lexpr.GetRowExpr(), x.Rexpr.GetRowExpr()
	op, compares := comparisons[symbol]
	if l == nil || r == nil || !compares {
		return nil, false
	}
	return a.compareRows(op, a.row(l, s), a.row(r, s)), true
}

func (a *analyzer) row(r *pg.RowExpr, s *scope) []value {
	out := make([]value, len(r.Args))
	for i, n := range r.Args {
		out[i] = a.expr(n, s)
	}
	return out
}

// compareRows compares two rows. Of the first columns that are not equal their order decides; a null before these, or among
// them, makes it null, which the conditions do as well: x <= y AND (x < y OR the rest), of which the first part is one by which
// segments are left out.
func (a *analyzer) compareRows(op plan.Op, l, r []value) plan.Expr {
	if len(l) != len(r) || len(l) == 0 {
		fail(plan.ReasonShape, "comparison of rows of different lengths")
	}
	switch op {
	case plan.OpEq, plan.OpNe:
		args := make([]plan.Expr, len(l))
		for i := range l {
			args[i] = a.compare(op, l[i], r[i])
		}
		if len(args) == 1 {
			return args[0]
		}
		of := plan.OpAnd
		if op == plan.OpNe {
			of = plan.OpOr
		}
		return a.call(of, boolType, args...)
	}
	strict, weak := plan.OpLt, plan.OpLe
	if op == plan.OpGt || op == plan.OpGe {
		strict, weak = plan.OpGt, plan.OpGe
	}
	last := len(l) - 1
	e := a.compare(op, l[last], r[last])
	for i := last - 1; i >= 0; i-- {
		or := a.call(plan.OpOr, boolType, a.compare(strict, l[i], r[i]), e)
		e = a.call(plan.OpAnd, boolType, a.compare(weak, l[i], r[i]), or)
	}
	return e
}

// rowIn analyses IN and NOT IN of rows: one of them is equal.
func (a *analyzer) rowIn(symbol string, x *pg.RowExpr, list []*pg.Node, s *scope) plan.Expr {
	subject := a.row(x, s)
	args := make([]plan.Expr, len(list))
	for i, n := range list {
		member := n.GetRowExpr()
		if member == nil {
			fail(plan.ReasonShape, "IN of rows and other values")
		}
		args[i] = a.compareRows(comparisons[symbol], subject, a.row(member, s))
	}
	if len(args) == 1 {
		return args[0]
	}
	if symbol == "<>" {
		return a.call(plan.OpAnd, boolType, args...)
	}
	return a.call(plan.OpOr, boolType, args...)
}

// rowDistinct analyses IS DISTINCT FROM of two rows (make_row_distinct_op).
func (a *analyzer) rowDistinct(l, r *pg.RowExpr, s *scope) plan.Expr {
	x, y := a.row(l, s), a.row(r, s)
	if len(x) != len(y) || len(x) == 0 {
		fail(plan.ReasonShape, "comparison of rows of different lengths")
	}
	args := make([]plan.Expr, len(x))
	for i := range x {
		if k := max(x[i].kind(), y[i].kind()); x[i].null || y[i].null { // beside a NULL it is an operator all the same
			a.callsOperator("=", k, k)
		}
		args[i] = a.distinct(x[i], y[i])
	}
	if len(args) == 1 {
		return args[0]
	}
	return a.call(plan.OpOr, boolType, args...)
}
