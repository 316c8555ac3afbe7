package pushdown

import (
	"strings"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// Operators and casts that are computed as the functions of package sqlfn that stand behind them in the server.

// tableOperators are such operators of two operands, and tableSigns of one, beside those of arithmetic.
var (
	tableOperators = map[string]bool{"&": true, "|": true, "#": true, "<<": true, ">>": true}
	tableSigns     = map[string]bool{"~": true}
)

// tableOperator calls the function of an operator; ok is false where there is none of the operands' types. Where the server's
// takes them the other way round, that is a function in SQL of it.
func (a *analyzer) tableOperator(symbol string, vals ...value) (e plan.Expr, ok bool) {
	kinds := make([]vector.Kind, len(vals))
	for i, v := range vals {
		kinds[i] = v.kind()
	}
	for _, oid := range builtins[builtinKey(symbol, kinds)] {
		f := sqlfn.ByOID(oid)
		if f == nil || len(f.Args) != len(vals) {
			continue
		}
		if symbol == "+" && f.Args[0].Kind != kinds[0] {
			vals = []value{vals[1], vals[0]}
		}
		a.calls(symbol, kinds...)
		return a.callOf(f, vals), true
	}
	return nil, false
}

// bitOperator analyses one of tableOperators. An open operand takes the other's type, but for a number of bits.
func (a *analyzer) bitOperator(symbol string, l, r value) plan.Expr {
	switch {
	case l.unknown() && r.unknown():
		fail(plan.ReasonType, "bits of constants without a type")
	case r.unknown() && (symbol == "<<" || symbol == ">>"):
		r = typed(a.resolve(r, vector.TypeOf(vector.Int4)))
	case r.unknown():
		r = typed(a.resolve(r, plainType(l.e.Type())))
	case l.unknown():
		fail(plan.ReasonType, "bits of a constant without a type")
	}
	e, ok := a.tableOperator(symbol, l, r)
	if !ok {
		fail(plan.ReasonFunction, "operator "+builtinKey(symbol, []vector.Kind{l.kind(), r.kind()}))
	}
	return e
}

// castFunction is the function of package sqlfn that a cast calls, nil where there is none.
func castFunction(from, to vector.Kind) *sqlfn.Function {
	for _, oid := range builtins[builtinKey("::", []vector.Kind{from, to})] {
		if f := sqlfn.ByOID(oid); f != nil && len(f.Args) == 1 && f.Args[0].Kind == from && f.Result == to {
			return f
		}
	}
	return nil
}

// OIDs of regexp_like().
const (
	oidRegexpLike      = 6263
	oidRegexpLikeFlags = 6264
)

// regexpLike is regexp_like(), the operator ~ as a function; the flags may say that the case of letters is not to count.
func (a *analyzer) regexpLike(vals []value) plan.Expr {
	symbol, oid := "~", uint32(oidRegexpLike)
	switch {
	case len(vals) == 3 && vals[2].text != nil && strings.Trim(*vals[2].text, "c") == "":
		oid = oidRegexpLikeFlags
	case len(vals) == 3 && vals[2].text != nil && strings.Trim(*vals[2].text, "i") == "":
		symbol, oid = "~*", oidRegexpLikeFlags
	case len(vals) != 2:
		fail(plan.ReasonFunction, "regexp_like() with other flags than i and c")
	}
	a.addCalls([]uint32{oid})
	return a.regexpMatch(symbol, sqlfn.ByOID(regexpMatches[symbol]), vals[0], vals[1])
}
