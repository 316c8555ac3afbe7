package pushdown

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// citext is compared by lower() of the database's collation: = by the bytes of that, < and ORDER BY by the order of the column's
// collation (contrib/citext/citext.c), which is the database's here, too. LIKE and ~ are ILIKE and ~*. Everything else takes citext
// as text. That the operators are the extension's, and found by the session's search_path, is asked of the server in the client's
// session, for each execution (citextOperators). In REPEATABLE READ that would be what the transaction's snapshot sees, where the
// server goes by what is there now: null, too.

// isCitext reports whether t is the extension's type, under any collation.
func isCitext(t vector.Type) bool {
	of := sqltype.OpaqueOfType(t)
	return of != nil && of.OID == 0 && of.Name == "citext"
}

func isCitextValue(v value) bool { return v.kind() == vector.Opaque && isCitext(v.e.Type()) }

// citextComparisons and citextMatches are the functions of the operators (pg_proc.prosrc).
var (
	citextComparisons = []string{"= citext_eq", "<> citext_ne", "< citext_lt", "<= citext_le", "> citext_gt", ">= citext_ge"}
	citextMatches     = []string{"~~ texticlike", "!~~ texticnlike", "~~* texticlike", "!~~* texticnlike", "~ texticregexeq", "!~ texticregexne", "~* texticregexeq", "!~* texticregexne"}
)

// oneSnapshotEach says that each statement has a snapshot of its own.
const oneSnapshotEach = `pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.<>) 'repeatable read'`

// citextOperators has the server say whether operators of a citext are the extension's, in the session, whose role may call them.
// Of other functions of C no library's is named as citext's.
func (a *analyzer) citextOperators(t vector.Type, operators []string) {
	if !t.Collation.Deterministic {
		fail(plan.ReasonCollation, "citext under another collation than the database's")
	}
	if a.qualified {
		fail(plan.ReasonShadowed, "citext beside OPERATOR(pg_catalog. ...), by which it is text")
	}
	var symbols []string
	for _, o := range operators {
		symbol, _, _ := strings.Cut(o, " ")
		symbols = append(symbols, symbol)
	}
	a.asked(fmt.Sprintf(`(SELECT CASE WHEN pg_catalog.count(*) OPERATOR(pg_catalog.=) %d AND `+oneSnapshotEach+` THEN 1 END FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) o.oprcode`+
		` WHERE o.oprname OPERATOR(pg_catalog.=) ANY ('{"%s"}'::pg_catalog.name[]) AND o.oprleft OPERATOR(pg_catalog.=) %[3]d::pg_catalog.oid AND o.oprright OPERATOR(pg_catalog.=) %[3]d::pg_catalog.oid`+
		` AND pg_catalog.concat(o.oprname, ' ', p.prosrc) OPERATOR(pg_catalog.=) ANY ('{"%s"}'::pg_catalog.text[])`+
		` AND (p.prolang OPERATOR(pg_catalog.=) 12::pg_catalog.oid OR p.prolang OPERATOR(pg_catalog.=) 13::pg_catalog.oid AND p.probin OPERATOR(pg_catalog.=) '$libdir/citext'::pg_catalog.text)`+
		` AND pg_catalog.pg_operator_is_visible(o.oid) AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE')`+
		` AND EXISTS (SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid OPERATOR(pg_catalog.=) d.refobjid WHERE d.classid OPERATOR(pg_catalog.=) 1247::pg_catalog.oid`+
		` AND d.objid OPERATOR(pg_catalog.=) %[3]d::pg_catalog.oid AND d.refclassid OPERATOR(pg_catalog.=) 3079::pg_catalog.oid AND d.deptype OPERATOR(pg_catalog.=) 'e'::pg_catalog."char"`+
		` AND e.extname OPERATOR(pg_catalog.=) 'citext'::pg_catalog.name))`, len(operators), strings.Join(symbols, `","`), t.Collation.OID, strings.Join(operators, `","`)), vector.TypeOf(vector.Int4))
}

// citextText is a citext as text of the database's collation.
func (a *analyzer) citextText(e plan.Expr) plan.Expr {
	if a.cat.OtherEncoding {
		fail(plan.ReasonCollation, "text in a database whose encoding is not UTF8")
	}
	t := vector.TypeOf(vector.Text)
	var ok bool
	if t.Collation, ok = a.defaultCollation(); !ok || !e.Type().Collation.Deterministic {
		fail(plan.ReasonCollation, "citext under a collation that is not known")
	}
	if c, constant := e.(plan.Const); constant {
		return plan.Const{Datum: vector.Datum{Type: t, Str: c.Str, Null: c.Null}}
	}
	if p, ok := e.(plan.Param); ok {
		p.T = t
		return p
	}
	text := a.call(plan.OpFunc, t, e)
	text.Func = sqlfn.CitextText
	return text
}

// citextKey is what a citext is compared by.
func (a *analyzer) citextKey(e plan.Expr) plan.Expr {
	a.citextOperators(e.Type(), citextComparisons)
	text := a.citextText(e)
	lower := sqlfn.ByOID(sqlfn.OIDLower)
	if c, constant := text.(plan.Const); constant && !c.Null && !c.Datum.Type.Collation.Turkic && !strings.ContainsFunc(c.Str, func(r rune) bool { return r >= utf8.RuneSelf }) {
		c.Str = strings.ToLower(c.Str)
		return c
	}
	return a.callOf(lower, []value{typed(text)})
}

// asCitext makes an open value, beside a citext of type t, one of that.
func (a *analyzer) asCitext(v value, t vector.Type) value {
	if v.unknown() {
		return typed(a.resolve(v, t))
	}
	return v
}

// citextMatch is LIKE, or a match of a regular expression, of a citext, of which x is one; ok is false where it is none.
func (a *analyzer) citextMatch(symbol string, l, r value) (subject, pattern value, ok bool) {
	if !isCitextValue(l) && !isCitextValue(r) {
		return l, r, false
	}
	if !isCitextValue(l) || !r.unknown() || r.null {
		fail(plan.ReasonType, symbol+" of citext and other than a literal or a parameter")
	}
	a.citextOperators(l.e.Type(), citextMatches)
	return typed(a.citextText(l.e)), typed(a.citextText(a.resolve(r, l.e.Type()))), true
}

// citextAsText are functions of text that the extension has no other of the name of, for citext.
var citextAsText = []string{"lower", "upper", "length", "char_length", "character_length", "octet_length", "left", "right", "substr", "substring", "md5", "initcap"}

// asTexts makes text of the arguments of such a function that are citext.
func (a *analyzer) asTexts(name string, vals []value) []value {
	if !slices.Contains(citextAsText, name) || !slices.ContainsFunc(vals, isCitextValue) {
		return vals
	}
	vals = slices.Clone(vals)
	for i, v := range vals {
		if isCitextValue(v) {
			vals[i] = typed(a.citextText(v.e))
		}
	}
	return vals
}

// insensitiveSymbol is the operator of text that a citext's is: ILIKE, or a match without regard to case.
func insensitiveSymbol(symbol string) string { return strings.TrimSuffix(symbol, "*") + "*" }

// citextAggregate has the server say whether min() or max() of citext is the extension's, in the session, whose role may call it.
func (a *analyzer) citextAggregate(t vector.Type, f *sqlfn.Aggregate) {
	source := map[*sqlfn.Aggregate]string{plan.Min: "citext_smaller", plan.Max: "citext_larger"}[f]
	a.asked(fmt.Sprintf(`(SELECT 1 FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_aggregate g ON g.aggfnoid::pg_catalog.oid OPERATOR(pg_catalog.=) p.oid JOIN pg_catalog.pg_proc s ON s.oid OPERATOR(pg_catalog.=) g.aggtransfn::pg_catalog.oid`+
		` WHERE p.proname OPERATOR(pg_catalog.=) '%s'::pg_catalog.name AND p.proargtypes::pg_catalog.oid[] OPERATOR(pg_catalog.=) '[0:0]={%d}'::pg_catalog.oid[] AND s.prosrc OPERATOR(pg_catalog.=) '%s'::pg_catalog.text`+
		` AND s.prolang OPERATOR(pg_catalog.=) 13::pg_catalog.oid AND s.probin OPERATOR(pg_catalog.=) '$libdir/citext'::pg_catalog.text`+
		` AND `+oneSnapshotEach+` AND pg_catalog.pg_function_is_visible(p.oid) AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE') LIMIT 1)`, f, t.Collation.OID, source), vector.TypeOf(vector.Int4))
}
