package pushdown

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// Documents of json and jsonb: their operators are functions of package sqlfn. They have no order here, and those of
// jsonb are equal only where = is written: equal documents may be written apart.

// jsonbOperators are those whose right side is one value.
var jsonbOperators = map[string]bool{"->": true, "->>": true, "@>": true, "<@": true, "?": true, "-": true, "||": true}

// jsonbOperation analyses one of jsonbOperators; ok is false where neither side is a document.
func (a *analyzer) jsonbOperation(symbol string, l, r value) (e plan.Expr, ok bool) {
	if !jsonbOperators[symbol] || !l.kind().IsDocument() && !r.kind().IsDocument() {
		return nil, false
	}
	key := builtinKey(symbol, []vector.Kind{l.kind(), r.kind()})
	for _, oid := range builtins[key] { // it may call a cast
		if f := sqlfn.ByOID(oid); f != nil && f.Args[0].Kind.IsDocument() {
			a.calls(symbol, l.kind(), r.kind())
			return a.callOf(f, []value{l, r}), true
		}
	}
	fail(plan.ReasonFunction, "operator "+key)
	return nil, false
}

// compareJSONB is = and <> of documents, by values of their numbers.
func (a *analyzer) compareJSONB(op plan.Op, l, r value) plan.Expr {
	oid := uint32(sqlfn.OIDJSONBEq)
	switch op {
	case plan.OpEq:
	case plan.OpNe:
		oid = sqlfn.OIDJSONBNe
	default:
		fail(plan.ReasonType, "order of jsonb")
	}
	t := vector.TypeOf(vector.JSONB)
	l, r = typed(a.resolve(l, t)), typed(a.resolve(r, t))
	if l.kind() != r.kind() {
		fail(plan.ReasonType, "comparison of "+l.kind().String()+" with "+r.kind().String())
	}
	if readsRows(l.e) && readsRows(r.e) { // which the server may join by
		fail(plan.ReasonType, "comparison of two values of jsonb")
	}
	a.callsOperator(operatorSymbol[op], l.kind(), r.kind())
	return a.callOf(sqlfn.ByOID(oid), []value{l, r})
}

// noOrder refuses what orders or groups values that have no order here.
func noOrder(k vector.Kind) {
	if !k.Ordered() {
		fail(plan.ReasonType, "order, groups or distinct values of "+k.String())
	}
}

// jsonbArray analyses the operators whose right side is an array, which must be constant: #>, #>>, ?| and ?&.
func (a *analyzer) jsonbArray(symbol string, x *pg.A_Expr, s *scope) plan.Expr {
	subject := a.expr(x.Lexpr, s)
	if k := subject.kind(); k != vector.JSONB && (k != vector.JSON || symbol[0] != '#') {
		fail(plan.ReasonFunction, "operator "+symbol+" of other than documents")
	}
	list, ok := textArray(x.Rexpr)
	if !ok || len(list) == 0 {
		fail(plan.ReasonFunction, symbol+" with an array that is not constant, empty or has nulls")
	}
	switch symbol {
	case "#>":
		return a.jsonbPath(subject, list, false)
	case "#>>":
		return a.jsonbPath(subject, list, true)
	}
	op, oid := plan.OpOr, uint32(sqlfn.OIDJSONBExistsAny)
	if symbol == "?&" {
		op, oid = plan.OpAnd, sqlfn.OIDJSONBExistsAll
	}
	a.addCalls([]uint32{oid})
	var tests []plan.Expr
	for _, v := range list {
		tests = append(tests, a.callOf(sqlfn.ByOID(sqlfn.OIDJSONBExists), []value{subject, v}))
	}
	if len(tests) == 1 {
		return tests[0]
	}
	return a.call(op, boolType, tests...)
}

// jsonbPath follows a path, of one function of the server's: step by step.
func (a *analyzer) jsonbPath(subject value, path []value, text bool) plan.Expr {
	part, oid := uint32(sqlfn.OIDJSONBExtractPath), uint32(sqlfn.OIDJSONBExtractPathText)
	if subject.kind() == vector.JSON {
		part, oid = sqlfn.OIDJSONExtractPath, sqlfn.OIDJSONExtractPathText
	}
	if !text {
		oid = part
	}
	a.addCalls([]uint32{oid})
	for _, step := range path[:len(path)-1] {
		subject = typed(a.callOf(sqlfn.ByOID(part), []value{subject, step}))
	}
	return a.callOf(sqlfn.ByOID(oid), []value{subject, path[len(path)-1]})
}

// jsonbExtract is jsonb_extract_path() and its likes, which take a document and any number of texts.
func (a *analyzer) jsonbExtract(name string, vals []value) plan.Expr {
	if len(vals) < 2 || vals[0].kind() != sqlfn.Named(name)[0].Args[0].Kind {
		fail(plan.ReasonFunction, name+"() of other than a document and texts")
	}
	for _, v := range vals[1:] {
		if k := v.kind(); !v.unknown() && k != vector.Text && k != vector.Varchar {
			fail(plan.ReasonFunction, name+"() of other than a document and texts")
		}
	}
	return a.jsonbPath(vals[0], vals[1:], strings.HasSuffix(name, "_text"))
}

// subscripts are those of a document: text or integers (jsonb_subscript_transform in jsonbsubs.c). They call no
// function that there is a right to.
func (a *analyzer) subscripts(x *pg.A_Indirection, s *scope) plan.Expr {
	v := a.expr(x.Arg, s)
	if v.kind().IsArray() {
		return a.arraySubscript(v, x.Indirection, s)
	}
	if v.kind() != vector.JSONB {
		fail(plan.ReasonShape, "subscript or field selection")
	}
	for _, n := range x.Indirection {
		at := n.GetAIndices()
		if at == nil || at.IsSlice || at.Uidx == nil {
			fail(plan.ReasonShape, "slice or field selection of jsonb")
		}
		step := a.expr(at.Uidx, s)
		switch k := step.kind(); {
		case step.null || step.param > 0:
			fail(plan.ReasonType, "subscript that is null or a parameter")
		case step.unknown(), k == vector.Text, k == vector.Varchar:
		case k == vector.Int4:
			step = typed(a.textOf(step.e))
		default:
			fail(plan.ReasonType, "subscript of type "+k.String())
		}
		v = typed(a.callOf(sqlfn.ByOID(sqlfn.OIDJSONBExtractPath), []value{v, step}))
	}
	return v.e
}

// textOf casts an integer to text.
func (a *analyzer) textOf(e plan.Expr) plan.Expr {
	t := vector.TypeOf(vector.Text)
	if c, ok := e.(plan.Const); ok {
		d := vector.Null(t)
		if !c.Null {
			d = vector.String(c.Decimal().String())
		}
		return plan.Const{Datum: d}
	}
	return a.cast(e, t)
}

// textArray returns the members of a constant array of text: a literal, or ARRAY of literals, cast or not. ok
// is false for another, and for one with nulls.
func textArray(n *pg.Node) (list []value, ok bool) {
	cast := n.GetTypeCast()
	if cast != nil {
		names := nameList(cast.TypeName.GetNames())
		if len(names) == 2 && names[0] == "pg_catalog" {
			names = names[1:]
		}
		if len(names) != 1 || names[0] != "text" || len(cast.TypeName.ArrayBounds) != 1 {
			return nil, false
		}
		n = cast.Arg
	}
	text := vector.TypeOf(vector.Text)
	if literal, is := n.GetAConst().GetVal().(*pg.A_Const_Sval); is {
		members, read := plan.ArrayMembers(literal.Sval.Sval, text)
		for _, d := range members {
			read = read && !d.Null
			list = append(list, typed(plan.Const{Datum: d}))
		}
		return list, read
	}
	if n.GetAArrayExpr() == nil {
		return nil, false
	}
	for _, m := range n.GetAArrayExpr().Elements {
		literal, is := m.GetAConst().GetVal().(*pg.A_Const_Sval)
		if !is {
			return nil, false
		}
		d := vector.String(literal.Sval.Sval)
		list = append(list, typed(plan.Const{Datum: d}))
	}
	return list, true
}
