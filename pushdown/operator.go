package pushdown

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// opSymbol returns the operator that a possibly qualified name means. Operators of
// other schemas than pg_catalog are not ours.
func (a *analyzer) opSymbol(name []*pg.Node) string {
	parts := nameList(name)
	switch {
	case len(parts) == 1:
		a.operator(parts[0])
	case len(parts) == 2 && parts[0] == "pg_catalog":
		a.qualified = true
	default:
		fail(plan.ReasonShadowed, "operator of another schema")
	}
	return parts[len(parts)-1]
}

var comparisons = map[string]plan.Op{"=": plan.OpEq, "<>": plan.OpNe, "<": plan.OpLt, "<=": plan.OpLe, ">": plan.OpGt, ">=": plan.OpGe}

var arithmetic = map[string]plan.Op{"+": plan.OpAdd, "-": plan.OpSub, "*": plan.OpMul, "/": plan.OpDiv, "%": plan.OpMod}

func (a *analyzer) aexpr(x *pg.A_Expr, s *scope) value {
	switch x.Kind {
	case pg.A_Expr_Kind_AEXPR_OP:
		return typed(a.operation(x, s))
	case pg.A_Expr_Kind_AEXPR_OP_ANY, pg.A_Expr_Kind_AEXPR_OP_ALL:
		return typed(a.arrayOperation(x, s))
	case pg.A_Expr_Kind_AEXPR_IN:
		symbol := a.opSymbol(x.Name)
		list := x.Rexpr.GetList()
		if list == nil {
			fail(plan.ReasonShape, "subquery in an expression")
		}
		if row := x.Lexpr.GetRowExpr(); row != nil {
			return typed(a.rowIn(symbol, row, list.Items, s))
		}
		subject := a.compared(x.Lexpr, s)
		members := make([]value, len(list.Items))
		for i, n := range list.Items {
			members[i] = a.compared(n, s)
		}
		in := a.in(symbol, subject, members)
		if symbol == "<>" {
			in = a.not(in)
		}
		return typed(in)
	case pg.A_Expr_Kind_AEXPR_LIKE, pg.A_Expr_Kind_AEXPR_ILIKE:
		return typed(a.like(a.opSymbol(x.Name), x, s))
	case pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN, pg.A_Expr_Kind_AEXPR_BETWEEN_SYM, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		return typed(a.between(x, s))
	case pg.A_Expr_Kind_AEXPR_DISTINCT, pg.A_Expr_Kind_AEXPR_NOT_DISTINCT:
		a.operator("=")
		var d plan.Expr
		if l, r := x.Lexpr.GetRowExpr(), x.Rexpr.GetRowExpr(); l != nil && r != nil {
			d = a.rowDistinct(l, r, s)
		} else {
			d = a.distinct(a.compared(x.Lexpr, s), a.compared(x.Rexpr, s))
		}
		if x.Kind == pg.A_Expr_Kind_AEXPR_NOT_DISTINCT {
			d = a.not(d)
		}
		return typed(d)
	case pg.A_Expr_Kind_AEXPR_NULLIF:
		return typed(a.nullIf(a.expr(x.Lexpr, s), a.expr(x.Rexpr, s)))
	case pg.A_Expr_Kind_AEXPR_SIMILAR:
		return typed(a.similar(a.opSymbol(x.Name), x, s))
	}
	fail(plan.ReasonShape, "an operator of this form")
	return value{}
}

func (a *analyzer) operation(x *pg.A_Expr, s *scope) plan.Expr {
	symbol := a.opSymbol(x.Name)
	if x.Lexpr == nil {
		return a.unary(symbol, a.expr(x.Rexpr, s))
	}
	if e, ok := a.rowComparison(symbol, x, s); ok {
		return e
	}
	if x.Rexpr == nil || x.Lexpr.GetRowExpr() != nil {
		fail(plan.ReasonShape, "an operator of this form")
	}
	switch symbol {
	case "~~", "!~~", "~~*", "!~~*":
		return a.like(symbol, x, s)
	case "#>", "#>>", "?|", "?&":
		return a.jsonbArray(symbol, x, s)
	}
	if e, ok := a.arrayOperator(symbol, x, s); ok {
		return e
	}
	if op, ok := arithmetic[symbol]; ok {
		if e, ok := a.plusInterval(op, x, s); ok {
			return e
		}
	}
	if op, ok := comparisons[symbol]; ok {
		if e, ok := a.compareName(op, x, s); ok {
			return e
		}
	}
	op, compares := comparisons[symbol]
	of := a.expr
	switch _, computes := arithmetic[symbol]; {
	case compares:
		of = a.compared
	case computes:
		of = func(n *pg.Node, s *scope) value { return a.spanOperand(x, n, s) }
	}
	l := of(x.Lexpr, s)
	if compares && x.Lexpr.GetColumnRef() != nil && l.kind().IsArray() {
		return a.arrayComparison(op, symbol, l, x.Rexpr, s)
	}
	r := of(x.Rexpr, s)
	if e, ok := a.jsonbOperation(symbol, l, r); ok {
		return e
	}
	if compares {
		return a.compare(op, l, r)
	}
	if op, ok := arithmetic[symbol]; ok {
		return a.arith(op, l, r)
	}
	if symbol == "||" {
		return a.concatenation(l, r)
	}
	if symbol == "^@" {
		return a.startsWith(l, r)
	}
	if tableOperators[symbol] {
		return a.bitOperator(symbol, l, r)
	}
	if regexpMatches[symbol] != 0 {
		var ofCitext bool
		if l, r, ofCitext = a.citextMatch(symbol, l, r); ofCitext {
			symbol = insensitiveSymbol(symbol)
		}
	}
	if oid, ok := regexpMatches[symbol]; ok {
		return a.regexpMatch(symbol, sqlfn.ByOID(oid), l, r)
	}
	fail(plan.ReasonFunction, "operator "+symbol)
	return nil
}

func (a *analyzer) unary(symbol string, v value) plan.Expr {
	k := v.kind()
	if isInterval(v) && symbol == "-" {
		a.calls(symbol, vector.Interval)
		return a.callOf(sqlfn.IntervalNegated, []value{a.opaqueInterval(v)})
	}
	if e, ok := a.tableOperator(symbol, v); ok && k.IsBits() && tableSigns[symbol] {
		return e
	}
	if !isNumber(k) {
		fail(plan.ReasonFunction, "operator "+symbol)
	}
	a.calls(symbol, k)
	switch symbol {
	case "+":
		return v.e
	case "-":
		return a.call(plan.OpNeg, plainType(v.e.Type()), v.e)
	case "@":
		return a.call(plan.OpAbs, plainType(v.e.Type()), v.e)
	}
	if e, ok := a.tableOperator(symbol, v); ok && tableSigns[symbol] {
		return e
	}
	fail(plan.ReasonFunction, "operator "+symbol)
	return nil
}

// plainType drops the modifiers of a column that results of operators do not have.
func plainType(t vector.Type) vector.Type {
	t.Typmod = -1
	return t
}

// arith analyses + - * / and %. The type of the result is that of the operator that
// PostgreSQL would choose, because it decides where the result overflows.
func (a *analyzer) arith(op plan.Op, l, r value) plan.Expr {
	if l.unknown() && r.unknown() {
		fail(plan.ReasonType, "arithmetic on constants without a type")
	}
	if e, ok := a.intervalArith(op, l, r); ok {
		return e
	}
	// An open operand takes the other's type if there is such an operator.
	known := l
	if l.unknown() {
		known = r
	}
	switch k := known.kind(); {
	case k == vector.Money && op == plan.OpMul:
		l, r = typed(a.resolve(l, vector.TypeOf(vector.Float8))), typed(a.resolve(r, vector.TypeOf(vector.Float8)))
	case k.IsInt(), k == vector.Numeric, k == vector.Money, k.IsFloat(), isMoment(k) && op == plan.OpSub:
		t := known.e.Type()
		l, r = typed(a.resolve(l, t)), typed(a.resolve(r, t))
	case l.unknown() || r.unknown():
		fail(plan.ReasonFunction, "arithmetic on "+k.String())
	}
	lk, rk := l.kind(), r.kind()
	a.calls(operatorSymbol[op], lk, rk)
	switch {
	case lk.IsInt() && rk.IsInt():
		return a.intArith(op, l.e, r.e)
	case (lk.IsInt() || lk == vector.Numeric) && (rk.IsInt() || rk == vector.Numeric):
		return a.numericArith(op, a.toNumeric(l.e), a.toNumeric(r.e))
	case lk == vector.Date && rk.IsInt() && (op == plan.OpAdd || op == plan.OpSub):
		return a.call(op, vector.TypeOf(vector.Date), l.e, r.e)
	case lk.IsInt() && rk == vector.Date && op == plan.OpAdd:
		return a.call(op, vector.TypeOf(vector.Date), r.e, l.e)
	case lk == vector.Date && rk == vector.Date && op == plan.OpSub:
		return a.call(op, vector.TypeOf(vector.Int4), l.e, r.e)
	case isMoment(lk) && isMoment(rk) && op == plan.OpSub:
		t := vector.TypeOf(max(lk, rk)) // date < timestamp < timestamptz
		return a.call(op, vector.TypeOf(vector.Interval), a.cast(l.e, t), a.cast(r.e, t))
	case isMoment(lk) && rk == vector.Interval && (op == plan.OpAdd || op == plan.OpSub):
		return a.addSpan(op, l.e, r.e, true)
	case lk == vector.Interval && isMoment(rk) && op == plan.OpAdd:
		return a.addSpan(op, r.e, l.e, true)
	case isNumber(lk) && isNumber(rk) && op != plan.OpMod:
		// At least one is floating: real only where both are.
		t := vector.TypeOf(vector.Float8)
		if lk == vector.Float4 && rk == vector.Float4 {
			t.Kind = vector.Float4
		}
		return a.call(op, t, a.cast(l.e, t), a.cast(r.e, t))
	}
	if e, ok := a.tableOperator(operatorSymbol[op], l, r); ok {
		return e
	}
	fail(plan.ReasonFunction, "arithmetic on "+lk.String()+" and "+rk.String())
	return nil
}

func isNumber(k vector.Kind) bool { return k.IsInt() || k.IsFloat() || k == vector.Numeric }

func (a *analyzer) intArith(op plan.Op, l, r plan.Expr) plan.Expr {
	t := vector.TypeOf(max(l.Type().Kind, r.Type().Kind)) // the kinds are in order of size
	x, xok := l.(plan.Const)
	y, yok := r.(plan.Const)
	if xok && yok && !x.Null && !y.Null && op != plan.OpDiv && op != plan.OpMod {
		p := vector.Int128Of(x.I)
		switch op {
		case plan.OpAdd:
			p = p.Add(vector.Int128Of(y.I))
		case plan.OpSub:
			p = p.Add(vector.Int128Of(y.I).Neg())
		default:
			p = vector.Mul64(x.I, y.I)
		}
		if n, ok := p.Int64(); ok && inRange(n, t.Kind) {
			return plan.Const{Datum: vector.Int(t.Kind, n)}
		}
	}
	return a.call(op, t, l, r)
}

// inRange reports whether n is a value of an integer kind.
func inRange(n int64, k vector.Kind) bool {
	t := sqltype.Of(k)
	return t.Least <= n && n <= t.Greatest
}

func (a *analyzer) numericArith(op plan.Op, l, r plan.Expr) plan.Expr {
	noNumericParam(l)
	noNumericParam(r)
	if op == plan.OpAdd || op == plan.OpSub { // the result has the larger scale
		l, r = a.inScale(l, r.Type().Scale), a.inScale(r, l.Type().Scale)
	}
	ls, rs := l.Type().Scale, r.Type().Scale
	varying := ls == vector.VaryingScale || rs == vector.VaryingScale
	scale := vector.VaryingScale
	switch op {
	case plan.OpAdd, plan.OpSub, plan.OpMod:
		if !varying {
			scale = max(ls, rs)
			l, r = a.toScale(l, scale), a.toScale(r, scale)
		}
	case plan.OpMul:
		if !varying {
			if scale = ls + rs; scale > vector.NumericMaxPrecision {
				fail(plan.ReasonType, "numeric product with too many decimals")
			}
		}
	}
	return a.call(op, vector.NumericType(scale), l, r)
}

// noNumericParam forwards results that would show the decimals of a parameter's
// value, which the plan does not know.
func noNumericParam(e plan.Expr) {
	if p, ok := e.(plan.Param); ok && p.T.Kind == vector.Numeric {
		fail(plan.ReasonParameter, "numeric result of a parameter")
	}
}

// in analyses x IN (members). As in transformAExprIn, two or more members without
// columns share one common type with x; others are compared one by one.
func (a *analyzer) in(symbol string, x value, members []value) plan.Expr {
	if isCitextValue(x) {
		return a.anyEqual(x, members)
	}
	var fixed []int
	for i, m := range members {
		if m.unknown() || !readsRows(m.e) {
			fixed = append(fixed, i)
		}
	}
	if len(fixed) > 1 {
		all := []value{x}
		for _, i := range fixed {
			all = append(all, members[i])
		}
		if k, ok := commonKind(all); ok {
			t := typeOfKind(k, all)
			if k == vector.Numeric && x.kind() == vector.Numeric {
				t.Scale = x.e.Type().Scale // of parameters; constants keep their own
			}
			for _, i := range fixed {
				m := members[i]
				if m.null {
					continue
				}
				a.callsCast(m, k)
				e := a.resolve(m, t)
				if k != vector.Numeric {
					e = a.cast(e, t)
				}
				members[i] = typed(e)
			}
			if x.unknown() {
				x = typed(a.resolve(x, t))
			}
			a.callsMember(symbol, x.kind(), k, len(fixed))
		}
	}
	a.negated = a.negated || symbol == "<>"
	return a.anyEqual(x, members)
}

// readsRows reports whether e depends on the row or group.
func readsRows(e plan.Expr) (reads bool) {
	plan.Walk(e, func(x plan.Expr) bool {
		switch x.(type) {
		case plan.Column, plan.Agg, plan.Key, plan.Output, *groupingCall, *plan.Grouping:
			reads = true
		}
		return !reads
	})
	return reads
}

// anyEqual is x = m1 OR x = m2 ..., with one OpIn for what is the same operand and
// a constant.
func (a *analyzer) anyEqual(x value, members []value) plan.Expr {
	var subject plan.Expr
	var list, others []plan.Expr
	seenNull, seenNever := false, false
	for _, m := range members {
		e := a.compare(plan.OpEq, x, m)
		if e == plan.Expr(nullBool) {
			if !seenNull {
				seenNull = true
				others = append(others, e)
			}
			continue
		}
		c, ok := e.(*plan.Call)
		if ok && c.Op == plan.OpEq && !readsRows(c.Args[1]) && isLeaf(c.Args[1]) && (subject == nil || a.intern.same(subject, c.Args[0])) {
			subject = c.Args[0]
			list = append(list, c.Args[1])
			continue
		}
		if ok && c.Op == plan.OpAnd { // can never be equal: once is enough
			if seenNever {
				continue
			}
			seenNever = true
		}
		others = append(others, e)
	}
	switch len(list) {
	case 0:
	case 1:
		others = append([]plan.Expr{a.call(plan.OpEq, boolType, subject, list[0])}, others...)
	default:
		others = append([]plan.Expr{a.call(plan.OpIn, boolType, append([]plan.Expr{subject}, list...)...)}, others...)
	}
	if len(others) == 1 {
		return others[0]
	}
	return a.call(plan.OpOr, boolType, others...)
}

func isLeaf(e plan.Expr) bool {
	switch e.(type) {
	case plan.Const, plan.Param, plan.ServerConst:
		return true
	}
	return false
}

// arrayOperation takes x = ANY (ARRAY[...]) and x <> ALL (ARRAY[...]), which may be cast.
func (a *analyzer) arrayOperation(x *pg.A_Expr, s *scope) plan.Expr {
	symbol := a.opSymbol(x.Name)
	isAny := x.Kind == pg.A_Expr_Kind_AEXPR_OP_ANY
	if in, ok := a.arrayValue(x, symbol, isAny, s); ok {
		return in
	}
	if in, ok := a.memberOf(x, symbol, isAny, s); ok {
		return in
	}
	array := x.Rexpr.GetAArrayExpr()
	if c := x.Rexpr.GetTypeCast(); c != nil && len(c.TypeName.GetArrayBounds()) == 1 {
		array = castElements(c)
	}
	if array == nil || len(array.Elements) == 0 || isAny && symbol != "=" || !isAny && symbol != "<>" {
		fail(plan.ReasonType, "ANY or ALL of an array")
	}
	subject := a.expr(x.Lexpr, s)
	if subject.unknown() {
		fail(plan.ReasonType, "ANY or ALL of an array")
	}
	members := make([]value, len(array.Elements))
	for i, n := range array.Elements {
		members[i] = a.expr(n, s)
	}
	// The array has one element type, whatever stands on the left.
	k, ok := commonKind(members)
	if !ok {
		fail(plan.ReasonType, "array of several types")
	}
	t := typeOfKind(k, members)
	for i, m := range members {
		if m.param > 0 {
			fail(plan.ReasonParameter, "parameter in an array")
		}
		a.callsCast(m, k)
		e := a.resolve(m, t)
		if k != vector.Numeric {
			e = a.cast(e, t)
		}
		members[i] = typed(e)
	}
	a.callsMember(symbol, subject.kind(), k, len(members))
	in := a.anyEqual(subject, members)
	if !isAny {
		in = a.not(in)
	}
	return in
}

// castElements is the array of a cast of ARRAY[...]: the cast is its elements', as in PostgreSQL
// (transformTypeCast in parse_expr.c). nil for another cast.
func castElements(c *pg.TypeCast) *pg.A_ArrayExpr {
	array := c.Arg.GetAArrayExpr()
	if array == nil {
		return nil
	}
	element := proto.Clone(c.TypeName).(*pg.TypeName)
	element.ArrayBounds = nil
	out := &pg.A_ArrayExpr{Location: array.Location}
	for _, n := range array.Elements {
		out.Elements = append(out.Elements, &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{Arg: n, TypeName: element, Location: c.Location}}})
	}
	return out
}

// like takes LIKE and ILIKE, which are operators of their own: with * for ILIKE, ! for NOT.
func (a *analyzer) like(symbol string, x *pg.A_Expr, s *scope) plan.Expr {
	if a.cat.OtherEncoding {
		fail(plan.ReasonCollation, "text in a database whose encoding is not UTF8")
	}
	text := vector.TypeOf(vector.Text)
	subject, pattern := a.expr(x.Lexpr, s), a.pattern(x.Rexpr, s)
	if k := subject.kind(); k == vector.Bytea && (pattern.kind() == k || pattern.unknown()) {
		return a.likeBytes(symbol, subject, pattern)
	}
	ofCitext := false
	if subject, pattern, ofCitext = a.citextMatch(symbol, subject, pattern); ofCitext {
		symbol = insensitiveSymbol(symbol)
	}
	arg, pat := a.resolve(subject, text), a.resolve(pattern, text)
	if k := arg.Type().Kind; !k.IsText() && k != vector.Name || !pat.Type().Kind.IsText() {
		fail(plan.ReasonType, "LIKE on values that are not text")
	}
	a.callsOperator(symbol, arg.Type().Kind, pat.Type().Kind)
	if arg.Type().Kind == vector.Name {
		arg = a.cast(arg, text)
	}
	if !isLeaf(pat) || pat.Type().Kind == vector.BPChar {
		fail(plan.ReasonFunction, "LIKE with a pattern that is not constant")
	}
	if c, ok := pat.(plan.Const); ok {
		if c.Null {
			return nullBool
		}
		if n := len(c.Str) - len(strings.TrimRight(c.Str, `\`)); n%2 == 1 {
			fail(plan.ReasonEvaluation, "LIKE pattern that ends with the escape character")
		}
	}
	like := a.call(plan.OpLike, boolType, arg, pat)
	if strings.HasSuffix(symbol, "*") {
		a.insensitive(like)
	}
	if strings.HasPrefix(symbol, "!") {
		return a.not(like)
	}
	return like
}

func (a *analyzer) between(x *pg.A_Expr, s *scope) plan.Expr {
	bounds := x.Rexpr.GetList()
	if bounds == nil || len(bounds.Items) != 2 {
		fail(plan.ReasonShape, "BETWEEN")
	}
	subject, lo, hi := a.compared(x.Lexpr, s), a.compared(bounds.Items[0], s), a.compared(bounds.Items[1], s)
	within := func(lo, hi value) plan.Expr {
		a.operator(">=")
		a.operator("<=")
		return a.call(plan.OpAnd, boolType, a.compare(plan.OpGe, subject, lo), a.compare(plan.OpLe, subject, hi))
	}
	outside := func(lo, hi value) plan.Expr {
		a.operator("<")
		a.operator(">")
		return a.call(plan.OpOr, boolType, a.compare(plan.OpLt, subject, lo), a.compare(plan.OpGt, subject, hi))
	}
	switch x.Kind {
	case pg.A_Expr_Kind_AEXPR_BETWEEN:
		return within(lo, hi)
	case pg.A_Expr_Kind_AEXPR_NOT_BETWEEN:
		return outside(lo, hi)
	case pg.A_Expr_Kind_AEXPR_BETWEEN_SYM:
		return a.call(plan.OpOr, boolType, within(lo, hi), within(hi, lo))
	}
	return a.call(plan.OpAnd, boolType, outside(lo, hi), outside(hi, lo))
}

// distinct is IS DISTINCT FROM; against a plain NULL it is a null test.
func (a *analyzer) distinct(l, r value) plan.Expr {
	if l.null {
		l, r = r, l
	}
	if r.null {
		if l.param > 0 {
			fail(plan.ReasonParameter, "type of a parameter tested for NULL")
		}
		return a.call(plan.OpIsNotNull, boolType, a.resolve(l, vector.TypeOf(vector.Text)))
	}
	if x, y, ok := a.keys(plan.OpEq, l, r); ok {
		return a.call(plan.OpDistinct, boolType, x, y)
	}
	l, r, t := a.operands(l, r)
	a.callsOperator("=", l.kind(), r.kind())
	if loose(t) || t.Kind == vector.BPChar && !samePadding(l.e, r.e) {
		t.Kind = vector.Text
	}
	x, y := a.aligned(l.e, r.e, t)
	return a.call(plan.OpDistinct, boolType, a.same(x, t), a.same(y, t))
}
