package pushdown

import (
	"math/big"
	"strings"
	"unicode/utf8"

	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// compare analyses a comparison of two values, one of which may be open.
func (a *analyzer) compare(op plan.Op, l, r value) plan.Expr {
	if l.null || r.null {
		// Comparisons are strict: null, whatever the other side is.
		if l.param > 0 || r.param > 0 {
			fail(plan.ReasonParameter, "type of a parameter")
		}
		if !l.unknown() || !r.unknown() {
			k := max(l.kind(), r.kind()) // the other's is Invalid, 0
			if v := l; valueHasEqualityKey(l) || valueHasEqualityKey(r) {
				if l.unknown() {
					v = r
				}
				a.callsEqualityOf(v.e)
				return nullBool
			}
			a.callsOperator(operatorSymbol[op], k, k)
		}
		return nullBool
	}
	if l.kind() == vector.JSONB || r.kind() == vector.JSONB {
		return a.compareJSONB(op, l, r)
	}
	if x, y, ok := a.keys(op, l, r); ok {
		return a.compareTyped(op, x, y, x.Type())
	}
	if !l.unknown() && !r.unknown() {
		if e, ok := a.compareMoments(op, l.e, r.e); ok {
			a.callsOperator(operatorSymbol[op], l.kind(), r.kind())
			return e
		}
	}
	l, r, t := a.operands(l, r)
	a.callsOperator(operatorSymbol[op], l.kind(), r.kind())
	return a.compareTyped(op, l.e, r.e, t)
}

// operands closes open operands as oper() does and returns the type in which the
// two are compared.
func (a *analyzer) operands(l, r value) (value, value, vector.Type) {
	text := vector.TypeOf(vector.Text)
	switch {
	case l.unknown() && r.unknown():
		if l.param > 0 || r.param > 0 {
			fail(plan.ReasonParameter, "type of a parameter")
		}
		l, r = typed(a.resolve(l, text)), typed(a.resolve(r, text))
	case l.unknown():
		l = typed(a.resolveBeside(l, r.e.Type()))
	case r.unknown():
		r = typed(a.resolveBeside(r, l.e.Type()))
	}
	l, r = typed(a.fixedScale(l.e)), typed(a.fixedScale(r.e))
	l, r = typed(a.scaledParam(l.e, r.e)), typed(a.scaledParam(r.e, l.e))
	return l, r, a.comparisonType(l.e.Type(), r.e.Type())
}

// scaledParam gives a parameter that was declared numeric the scale of what it is
// compared with; the value must then have no more decimals.
func (a *analyzer) scaledParam(e, other plan.Expr) plan.Expr {
	p, ok := e.(plan.Param)
	t := other.Type()
	if !ok || p.T.Kind != vector.Numeric || t.Kind != vector.Numeric && !t.Kind.IsInt() {
		return e
	}
	if t.Kind.IsInt() {
		t = vector.NumericType(0)
	}
	declared := &a.params[p.Index]
	if t.Scale != vector.VaryingScale && declared.Scale == vector.VaryingScale {
		declared.Scale = t.Scale
	}
	p.T.Scale = declared.Scale
	return p
}

// resolveBeside closes an open operand of a comparison with a value of type t.
func (a *analyzer) resolveBeside(v value, t vector.Type) plan.Expr {
	if (t.Kind == vector.Interval || sqltype.IsOpaqueInterval(t)) && v.param > 0 {
		return a.spanParam(v)
	}
	if t.Kind == vector.Interval && v.text != nil {
		if span, ok := spanOf(*v.text); ok {
			return span
		}
	}
	return a.resolve(v, openType(t))
}

// openType is the type that an open operand takes beside one of type t: varchar
// has no operators of its own, so that its constants are text.
func openType(t vector.Type) vector.Type {
	if t.Kind == vector.Varchar {
		return vector.TypeOf(vector.Text)
	}
	return t
}

// comparisonType is the type in which the operator that PostgreSQL chooses
// compares. For Numeric the scale is the larger one.
func (a *analyzer) comparisonType(l, r vector.Type) vector.Type {
	lk, rk := l.Kind, r.Kind
	isExact := func(k vector.Kind) bool { return k.IsInt() || k == vector.Numeric }
	switch {
	case lk.IsInt() && rk.IsInt():
		return vector.TypeOf(max(lk, rk))
	case isExact(lk) && isExact(rk):
		if l.Scale == vector.VaryingScale || r.Scale == vector.VaryingScale {
			return vector.NumericType(vector.VaryingScale)
		}
		return vector.NumericType(max(l.Scale, r.Scale))
	case lk == vector.Float4 && rk == vector.Float4:
		return vector.TypeOf(vector.Float4)
	case (lk.IsFloat() || isExact(lk)) && (rk.IsFloat() || isExact(rk)):
		return vector.TypeOf(vector.Float8)
	case lk == vector.OID && rk.IsInt(), lk.IsInt() && rk == vector.OID:
		return vector.TypeOf(vector.OID)
	case lk.IsText() && rk.IsText():
		return a.textComparison(l, r)
	case lk == vector.Name && (rk == vector.Text || rk == vector.Varchar), rk == vector.Name && (lk == vector.Text || lk == vector.Varchar):
		return a.textComparison(l, r)
	case sameEnum(l, r):
		return vector.EnumType(l.Collation.OID)
	case lk == vector.Enum && rk == vector.Enum:
		fail(plan.ReasonType, "comparison of two enum types")
	case lk != rk && lk.IsBits() && rk.IsBits():
		return vector.TypeOf(vector.VarBit)
	case lk == rk && lk.Ordered():
		return vector.TypeOf(lk)
	case isMoment(lk) && isMoment(rk):
		return vector.TypeOf(max(lk, rk)) // date < timestamp < timestamptz
	}
	fail(plan.ReasonType, "comparison of "+lk.String()+" with "+rk.String())
	return vector.Type{}
}

func (a *analyzer) textComparison(l, r vector.Type) vector.Type {
	lb, rb := l.Kind == vector.BPChar, r.Kind == vector.BPChar
	t := vector.TypeOf(vector.Text)
	switch {
	case lb && rb:
		t.Kind = vector.BPChar
	case lb && r.Kind == vector.Varchar, rb && l.Kind == vector.Varchar:
		// char(n) = varchar is char(n)'s operator: the blanks of the varchar would have to be ignored.
		fail(plan.ReasonType, "comparison of char with varchar")
	}
	t.Collation = mergeCollations(l.Collation, r.Collation)
	return t
}

// mergeCollations is the collation of an operation on two: constants have none, two
// different ones conflict.
func mergeCollations(a, b vector.Collation) vector.Collation {
	switch {
	case a.OID == 0:
		return b
	case b.OID == 0 || a.OID == b.OID:
		return a
	}
	fail(plan.ReasonCollation, "two collations in one expression")
	return a
}

// compareTyped builds a comparison in type t. A constant goes to the right, and
// where it is finer than the other operand (25.5 beside an integer, a timestamp
// beside a date) the constant is rounded instead of casting the column, so that the
// filter runs on the column as it is stored.
func (a *analyzer) compareTyped(op plan.Op, l, r plan.Expr, t vector.Type) plan.Expr {
	lc, lIsConst := l.(plan.Const)
	rc, rIsConst := r.(plan.Const)
	if lIsConst && lc.Null || rIsConst && rc.Null {
		return nullBool
	}
	if lIsConst && !rIsConst {
		l, r, rc, rIsConst, lIsConst = r, l, lc, true, false
		op = plan.Flipped[op]
	}
	if rIsConst && !lIsConst {
		lt := l.Type()
		switch {
		case t.Kind == vector.Numeric && t.Scale != vector.VaryingScale:
			return a.narrowNumeric(op, l, rc.Decimal())
		case lt.Kind == vector.Date && t.Kind != vector.Date:
			n := new(big.Int)
			rem := new(big.Int)
			n.DivMod(big.NewInt(rc.I), big.NewInt(microsPerDay), rem)
			return a.narrow(op, l, n, rem.Sign() == 0)
		}
	}
	if t.Kind == vector.BPChar && (loose(t) || op != plan.OpEq && op != plan.OpNe || !samePadding(l, r)) {
		t.Kind = vector.Text             // bpcharlt and its likes compare what is before the blanks, as those of text do
		a.calls("typmod", vector.BPChar) // of a parameter's value
	}
	x, y := a.aligned(l, r, t)
	if op != plan.OpEq && op != plan.OpNe && readsRows(x) && t.Collation.OID == 0 {
		x = a.collated(x)
	}
	if op == plan.OpEq || op == plan.OpNe {
		x, y = a.same(x, t), a.same(y, t)
	}
	return a.call(op, boolType, x, y)
}

// aligned casts two operands to the type in which they are compared. Integers stay
// as they are among themselves.
func (a *analyzer) aligned(l, r plan.Expr, t vector.Type) (plan.Expr, plan.Expr) {
	switch k := t.Kind; {
	case k.IsInt():
		return l, r
	case k == vector.Numeric:
		return a.toScale(a.toNumeric(l), t.Scale), a.toScale(a.toNumeric(r), t.Scale)
	case k == vector.BPChar:
		return padded(l, r), padded(r, l)
	case k == vector.Text:
		return a.unpadded(l), a.unpadded(r)
	}
	return a.cast(l, t), a.cast(r, t)
}

// samePadding reports whether columns hold two char(n) with as many blanks where they are equal.
func samePadding(l, r plan.Expr) bool {
	_, lIsConst := l.(plan.Const)
	_, rIsConst := r.(plan.Const)
	lm, rm := l.Type().Typmod, r.Type().Typmod
	return lm > 4 && (lm == rm || rIsConst) || rm > 4 && lIsConst || lIsConst && rIsConst
}

// padded gives a constant beside a char(n) column the column's own padding, because
// trailing blanks do not count in comparisons.
func padded(e, other plan.Expr) plan.Expr {
	width := int(other.Type().Typmod) - 4
	c, ok := e.(plan.Const)
	if !ok || c.Null || width <= 0 {
		return e
	}
	c.Str = strings.TrimRight(c.Str, " ")
	if n := utf8.RuneCountInString(c.Str); n < width {
		c.Str += strings.Repeat(" ", width-n)
	}
	return c
}

// unpadded makes text of char(n) and names; varchar and text compare as they are.
func (a *analyzer) unpadded(e plan.Expr) plan.Expr {
	if k := e.Type().Kind; k == vector.BPChar || k == vector.Name {
		return a.cast(e, vector.TypeOf(vector.Text))
	}
	return e
}

// narrowNumeric compares an integer or fixed-scale numeric with an exact constant.
func (a *analyzer) narrowNumeric(op plan.Op, l plan.Expr, d vector.Decimal) plan.Expr {
	scale := int16(0)
	if l.Type().Kind == vector.Numeric {
		scale = l.Type().Scale
	}
	n, exact := plan.FloorTo(d, scale)
	return a.narrow(op, l, n, exact)
}

// narrow compares l with a constant in l's own units: n where exact, else some value
// strictly between n and n+1.
func (a *analyzer) narrow(op plan.Op, l plan.Expr, n *big.Int, exact bool) plan.Expr {
	t := plainType(l.Type())
	op, bound, outcome, decided := plan.Narrow(op, t.Kind, n, exact)
	if decided {
		return a.decided(outcome, l)
	}
	c := vector.Datum{Type: t, I: bound}
	if t.Kind.IsInt() && !inRange(c.I, t.Kind) {
		c.Type = vector.TypeOf(vector.Int8)
	}
	return a.call(op, boolType, l, plan.Const{Datum: c})
}

// decided is a comparison whose outcome does not depend on l, except that null
// gives null.
func (a *analyzer) decided(outcome bool, l plan.Expr) plan.Expr {
	if a.neverNull(l) {
		return boolConst(outcome)
	}
	if outcome {
		return a.call(plan.OpOr, boolType, a.call(plan.OpIsNotNull, boolType, l), nullBool)
	}
	return a.call(plan.OpAnd, boolType, a.call(plan.OpIsNull, boolType, l), nullBool)
}
