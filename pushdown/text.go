package pushdown

import (
	"slices"
	"strings"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// shown reports whether values of a kind are cast to text as PostgreSQL writes them: booleans are
// cast to true, and written as t.
func shown(k vector.Kind) bool {
	switch k {
	case vector.Numeric, vector.Date, vector.Time, vector.Timestamp, vector.TimestampTZ, vector.MACAddr, vector.UUID:
		return true
	}
	return k.IsInt()
}

// concatenation analyses ||. Beside text, PostgreSQL writes an operand of another type as text
// (textanycat, anytextcat).
func (a *analyzer) concatenation(l, r value) plan.Expr {
	key := builtinKey("||", []vector.Kind{l.kind(), r.kind()})
	if !slices.ContainsFunc(builtins[key], func(oid uint32) bool {
		return oid == sqlfn.OIDTextCat || oid == sqlfn.OIDTextAnyCat || oid == sqlfn.OIDAnyTextCat
	}) {
		fail(plan.ReasonFunction, key)
	}
	for _, v := range []value{l, r} {
		if k := v.kind(); !v.unknown() && !k.IsText() && !shown(k) {
			fail(plan.ReasonFunction, key)
		}
	}
	a.calls("||", l.kind(), r.kind())
	a.addCalls([]uint32{sqlfn.OIDTextCat})
	return a.callOf(sqlfn.ByOID(sqlfn.OIDTextCat), []value{l, r})
}

// concat analyses concat(), which takes arguments of all types, writes them as text, and skips nulls.
func (a *analyzer) concat(vals []value) plan.Expr {
	if len(vals) == 0 {
		fail(plan.ReasonFunction, "concat()")
	}
	for _, v := range vals {
		switch k := v.kind(); {
		case v.param > 0:
			fail(plan.ReasonParameter, "type of a parameter of concat()")
		case !v.unknown() && k != vector.Text && k != vector.Varchar && !shown(k):
			fail(plan.ReasonFunction, "concat() of "+k.String())
		}
	}
	a.addCalls([]uint32{sqlfn.OIDConcat})
	f, none := sqlfn.ByOID(sqlfn.OIDConcat), ""
	e := a.callOf(f, []value{{text: &none}, vals[0]})
	for _, v := range vals[1:] {
		e = a.callOf(f, []value{typed(e), v})
	}
	return e
}

// regexpMatches are the functions of the operators that match regular expressions, of texts: char(n) and name have others.
var regexpMatches = map[string]uint32{"~": sqlfn.OIDRegexpEq, "!~": sqlfn.OIDRegexpNe, "~*": sqlfn.OIDRegexpInCaseEq, "!~*": sqlfn.OIDRegexpInCaseNe}

// regexpMatch analyses such an operator, with a constant pattern.
func (a *analyzer) regexpMatch(symbol string, f *sqlfn.Function, l, r value) plan.Expr {
	t := vector.TypeOf(vector.Text)
	l, r = typed(a.resolve(l, t)), typed(a.resolve(r, t))
	if key := builtinKey(symbol, []vector.Kind{l.kind(), r.kind()}); !slices.Contains(builtins[key], f.OID) {
		fail(plan.ReasonFunction, "operator "+key)
	}
	a.callsOperator(symbol, l.kind(), r.kind())
	if !isLeaf(r.e) || r.kind() == vector.BPChar {
		fail(plan.ReasonFunction, symbol+" with a pattern that is not constant")
	}
	if c, ok := r.e.(plan.Const); ok && !c.Null && !sqlfn.TakesRegexp(c.Str, strings.HasSuffix(symbol, "*")) {
		fail(plan.ReasonFunction, symbol+" with a pattern of this form")
	}
	return a.callOf(f, []value{l, r})
}

// cased returns the form of a function of letters' cases for a collation.
func (a *analyzer) cased(f *sqlfn.Function, c vector.Collation) *sqlfn.Function {
	switch c.OID {
	case cCollation, posixCollation:
		return f.InASCII
	case 0, defaultCollation:
		if a.cat.ASCIICase {
			return f.InASCII
		}
	}
	if c.OID == 0 {
		var ok bool
		if c, ok = a.defaultCollation(); !ok {
			fail(plan.ReasonCollation, f.Name+"() in the database's collation")
		}
	}
	if c.Turkic {
		fail(plan.ReasonCollation, f.Name+"() in a language with a dotless i")
	}
	return f
}
