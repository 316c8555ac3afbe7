package pushdown

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/vector"
)

// nameValues are values of the session of type name, which has no columns here.
var nameValues = map[pg.SQLValueFunctionOp]string{
	pg.SQLValueFunctionOp_SVFOP_CURRENT_USER: "CURRENT_USER", pg.SQLValueFunctionOp_SVFOP_USER: "CURRENT_USER", pg.SQLValueFunctionOp_SVFOP_CURRENT_ROLE: "CURRENT_USER",
	pg.SQLValueFunctionOp_SVFOP_SESSION_USER: "SESSION_USER", pg.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG: "CURRENT_CATALOG",
}

// The functions of =(text, name) and so on (pg_operator.oprcode), by whether the name is on the left.
var nameCalls = map[plan.Op]map[bool]uint32{plan.OpEq: {false: 247, true: 240}, plan.OpNe: {false: 252, true: 245}}

// compareName compares text with a value of the session of type name, which the server computes: texteqname and
// its likes compare bytes. ok is false for other comparisons. name has the collation C, which conflicts with any
// but the default one: then PostgreSQL reports an error.
func (a *analyzer) compareName(op plan.Op, x *pg.A_Expr, s *scope) (e plan.Expr, ok bool) {
	name, other, left := x.Rexpr, x.Lexpr, false
	sql, is := nameValue(name)
	if !is {
		name, other, left = other, name, true
		sql, is = nameValue(name)
	}
	oid, known := nameCalls[op][left]
	if !is || !known {
		return nil, false
	}
	v := a.expr(other, s)
	if v.unknown() || !v.kind().IsText() || !readsRows(v.e) {
		return nil, false
	}
	if c := v.e.Type().Collation.OID; c != defaultCollation && c != cCollation {
		fail(plan.ReasonCollation, "a name beside text of another collation")
	}
	if v.kind() == vector.BPChar {
		a.callsCast(v, vector.Text)
	}
	a.addCalls([]uint32{oid})
	t := vector.TypeOf(vector.Text)
	return a.call(op, boolType, a.unpadded(v.e), a.asked(sql+"::pg_catalog.text", t)), true
}

func nameValue(n *pg.Node) (sql string, ok bool) {
	f := n.GetSqlvalueFunction()
	if f == nil {
		return "", false
	}
	sql, ok = nameValues[f.Op]
	return sql, ok
}
