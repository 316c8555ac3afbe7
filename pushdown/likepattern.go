package pushdown

import (
	"maps"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// pattern is the pattern of a LIKE. One with ESCAPE, and one put together of literals and parameters, are left to
// the server.
func (a *analyzer) pattern(n *pg.Node, s *scope) value {
	f := n.GetFuncCall()
	escape := f != nil && strings.Join(nameList(f.Funcname), ".") == "pg_catalog.like_escape"
	if n.GetAExpr() == nil && !escape {
		return a.expr(n, s)
	}
	w := serverWriter{a: a, params: maps.Clone(a.serverParams)}
	sql, ok := w.pattern(n)
	switch {
	case ok:
		for _, symbol := range w.operators {
			a.operator(symbol)
		}
		a.takeParams(&w)
		return typed(a.asked(sql, vector.TypeOf(vector.Text)))
	case escape:
		fail(plan.ReasonFunction, "LIKE ... ESCAPE of other than literals and parameters")
	}
	return a.expr(n, s)
}

// similar analyses SIMILAR TO, which is a match of a regular expression. That is written by the server, of a pattern that is
// put together of literals and parameters: its rules differ by version.
func (a *analyzer) similar(symbol string, x *pg.A_Expr, s *scope) plan.Expr {
	w := serverWriter{a: a, params: maps.Clone(a.serverParams)}
	sql, ok := w.pattern(x.Rexpr)
	if !ok {
		fail(plan.ReasonFunction, "SIMILAR TO with a pattern that is not constant")
	}
	subject := a.expr(x.Lexpr, s)
	for _, symbol := range w.operators {
		a.operator(symbol)
	}
	a.takeParams(&w)
	pattern := typed(a.asked(sql, vector.TypeOf(vector.Text)))
	return a.regexpMatch(symbol, sqlfn.ByOID(regexpMatches[symbol]), subject, pattern)
}

// patternFunctions make patterns of patterns.
var patternFunctions = []string{"pg_catalog.like_escape", "pg_catalog.similar_to_escape"}

// pattern writes texts, || of them and patternFunctions. Literals and parameters without a type are text beside these
// operators (func_select_candidate in parse_func.c prefers strings).
func (w *serverWriter) pattern(n *pg.Node) (sql string, ok bool) {
	switch x := n.GetNode().(type) {
	case *pg.Node_AConst:
		if s, is := x.AConst.Val.(*pg.A_Const_Sval); is && !x.AConst.Isnull {
			return quoteLiteral(s.Sval.Sval) + "::pg_catalog.text", true
		}
	case *pg.Node_ParamRef:
		number := int(x.ParamRef.Number)
		if number >= 1 && number <= len(w.a.declared) {
			if k := w.a.params[number-1].Kind; w.a.declared[number-1] && k != vector.Text && k != vector.Varchar || !w.a.declared[number-1] && k != vector.Invalid {
				return "", false
			}
		}
		if sql, ok = w.param(number, sqltype.Of(vector.Text).Name); ok {
			return sql + "::pg_catalog.text", true
		}
	case *pg.Node_AExpr:
		if e := x.AExpr; e.Kind == pg.A_Expr_Kind_AEXPR_OP && e.Lexpr != nil && strings.Join(nameList(e.Name), ".") == "||" {
			l, isText := w.pattern(e.Lexpr)
			r, both := w.pattern(e.Rexpr)
			w.operators = append(w.operators, "||")
			return "(" + l + " OPERATOR(pg_catalog.||) " + r + ")", isText && both
		}
	case *pg.Node_FuncCall:
		name := strings.Join(nameList(x.FuncCall.Funcname), ".")
		if !slices.Contains(patternFunctions, name) {
			return "", false
		}
		args := make([]string, len(x.FuncCall.Args))
		for i, arg := range x.FuncCall.Args {
			if args[i], ok = w.pattern(arg); !ok {
				return "", false
			}
		}
		return name + "(" + strings.Join(args, ", ") + ")", true
	}
	return "", false
}

// likeBytes is LIKE of bytea with a constant pattern.
func (a *analyzer) likeBytes(symbol string, subject, pattern value) plan.Expr {
	oid, known := map[string]uint32{"~~": sqlfn.OIDByteaLike, "!~~": sqlfn.OIDByteaNotLike}[symbol]
	pat := a.resolve(pattern, vector.TypeOf(vector.Bytea))
	if _, constant := pat.(plan.Const); !known || !constant {
		fail(plan.ReasonFunction, "LIKE of bytea with a pattern that is not constant")
	}
	a.callsOperator(symbol, vector.Bytea, vector.Bytea)
	return a.callOf(sqlfn.ByOID(oid), []value{subject, typed(pat)})
}
