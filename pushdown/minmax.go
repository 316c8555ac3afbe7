package pushdown

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/vector"
)

// maxMinMax bounds the arguments of GREATEST and LEAST, whose form as a CASE repeats them.
const maxMinMax = 4

// minMax analyses GREATEST and LEAST. Nulls do not count, and among equal values the first is the
// result, with its own decimals (ExecEvalMinMax). PostgreSQL compares by the type's own order, whatever
// operators there are, and checks no right to the function that does (T_MinMaxExpr in execExpr.c).
func (a *analyzer) minMax(m *pg.MinMaxExpr, s *scope) plan.Expr {
	if len(m.Args) > maxMinMax {
		fail(plan.ReasonFunction, "GREATEST or LEAST of more than four values")
	}
	vals := make([]value, len(m.Args))
	for i, n := range m.Args {
		vals[i] = a.expr(n, s)
	}
	out, t := a.commonResults(vals)
	if loose(t) {
		fail(plan.ReasonCollation, "GREATEST or LEAST in a nondeterministic collation")
	}
	if t.Kind == vector.JSON {
		fail(plan.ReasonType, "GREATEST or LEAST of json") // which the server refuses
	}
	if t.Kind == vector.BPChar && t.Typmod < 0 {
		fail(plan.ReasonType, "GREATEST or LEAST of char(n) of several lengths")
	}
	var list []plan.Expr
	for _, e := range out {
		if c, ok := ownScale(e).(plan.Const); !ok || !c.Null {
			list = append(list, e)
		}
	}
	if len(list) < 2 {
		return a.call(plan.OpCoalesce, t, out...)
	}
	op := plan.OpGt
	if m.Op == pg.MinMaxOp_IS_LEAST {
		op = plan.OpLt
	}
	return a.extreme(op, list, t)
}

// extreme is the one of a list, of one type, before which none stands: CASE WHEN y > x OR x IS NULL THEN
// y ELSE x END of its halves. Both are computed for every row, as PostgreSQL does.
func (a *analyzer) extreme(op plan.Op, list []plan.Expr, common vector.Type) plan.Expr {
	if len(list) == 1 {
		return list[0]
	}
	half := len(list) / 2
	x, y := a.extreme(op, list[:half], common), a.extreme(op, list[half:], common)
	l, r, t := a.operands(typed(ownScale(y)), typed(ownScale(x)))
	later := a.compareTyped(op, l.e, r.e, t)
	if !a.neverNull(ownScale(x)) {
		later = a.call(plan.OpOr, boolType, later, a.call(plan.OpIsNull, boolType, r.e))
	}
	return a.call(plan.OpCase, common, later, y, x)
}
