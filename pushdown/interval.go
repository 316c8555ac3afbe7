package pushdown

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// The fields of interval's type modifier (INTERVAL_MASK in utils/timestamp.h), as a unit of the
// number that is written.
var intervalFields = map[int32]string{1 << 2: "year", 1 << 1: "month", 1 << 3: "day", 1 << 10: "hour", 1 << 11: "minute", 1 << 12: "second"}

// intervalConst reads a typed literal of interval: whole numbers with units, and a time. ok is false for
// anything else, which is left to typeCast to refuse.
func intervalConst(n *pg.Node) (v plan.Interval, ok bool) {
	c := n.GetTypeCast()
	names := nameList(c.GetTypeName().GetNames())
	if len(names) == 2 && names[0] == "pg_catalog" {
		names = names[1:]
	}
	if len(names) != 1 || names[0] != "interval" || len(c.TypeName.ArrayBounds) > 0 {
		return v, false
	}
	s, literal := c.Arg.GetAConst().GetVal().(*pg.A_Const_Sval)
	if !literal {
		return v, false
	}
	text := s.Sval.Sval
	switch len(c.TypeName.Typmods) {
	case 0:
	case 1:
		mask, is := c.TypeName.Typmods[0].GetAConst().GetVal().(*pg.A_Const_Ival)
		if !is || len(strings.Fields(text)) != 1 || intervalFields[mask.Ival.GetIval()] == "" {
			return v, false
		}
		text += " " + intervalFields[mask.Ival.GetIval()]
	default:
		return v, false
	}
	return intervalOf(text)
}

// intervalOf reads an interval of fields with which sums and products stay within 64 bits.
func intervalOf(text string) (v plan.Interval, ok bool) {
	v.Months, v.Days, v.Micros, ok = sqltype.ParseInterval(text)
	within := func(v, most int64) bool { return -most <= v && v <= most }
	return v, ok && within(v.Months, 12e6) && within(v.Days, 7e6) && within(v.Micros, 3600e12)
}

// spanConst is an interval as comparisons see it, by which it may stand beside computed ones. As a value it would print
// otherwise than one that is equal.
func spanConst(v plan.Interval) (e plan.Expr, ok bool) {
	span, ok := sqltype.IntervalSpan(v.Months, v.Days, v.Micros)
	return plan.Const{Datum: vector.Int(vector.Interval, span)}, ok
}

func spanOf(text string) (e plan.Expr, ok bool) {
	v, ok := intervalOf(text)
	if !ok {
		return nil, false
	}
	return spanConst(v)
}

// spanParam is a parameter that is an interval of any fields, as comparisons see it. Its value is bound as one of the opaque type.
func (a *analyzer) spanParam(v value) plan.Expr {
	p := a.resolve(v, sqltype.OpaqueIntervalType).(plan.Param)
	p.T = vector.TypeOf(vector.Interval)
	return p
}

// compared analyses an operand of a comparison.
func (a *analyzer) compared(n *pg.Node, s *scope) value {
	if v, ok := intervalConst(n); ok {
		if e, ok := spanConst(v); ok {
			return typed(e)
		}
	}
	return a.expr(n, s)
}

// intervalCast is a cast to interval of a literal. ok is false for other casts.
func (a *analyzer) intervalCast(c *pg.TypeCast, k vector.Kind) (e plan.Expr, ok bool) {
	if k != vector.Interval {
		return nil, false
	}
	v, ok := intervalConst(&pg.Node{Node: &pg.Node_TypeCast{TypeCast: c}})
	if !ok {
		return nil, false
	}
	word, ok := sqltype.WholeInterval(v.Months, v.Days, v.Micros)
	if !ok {
		fail(plan.ReasonType, "an interval that is no time in days of 24 hours")
	}
	return plan.Const{Datum: vector.Int(vector.Interval, word)}, true
}

// The functions of +(date, interval) and so on (pg_operator.oprcode).
var intervalCalls = map[vector.Kind]map[plan.Op]uint32{
	vector.Date:        {plan.OpAdd: 2071, plan.OpSub: 2072},
	vector.Timestamp:   {plan.OpAdd: 2032, plan.OpSub: 2033},
	vector.TimestampTZ: {plan.OpAdd: 1189, plan.OpSub: 1190},
}

// Those of interval + moment, which are written in SQL and call the others.
var intervalFirst = map[vector.Kind]uint32{vector.Date: 2546, vector.Timestamp: 2548, vector.TimestampTZ: 2549}

// plusInterval is a date or a timestamp plus or minus a constant interval, or a product of one, which is a timestamp, or such a moment:
// date_pl_interval, timestamp_pl_interval and timestamptz_pl_interval. Of constants it is computed here. ok is false where there is no interval.
func (a *analyzer) plusInterval(op plan.Op, x *pg.A_Expr, s *scope) (e plan.Expr, ok bool) {
	if op != plan.OpAdd && op != plan.OpSub {
		return nil, false
	}
	if e, ok = a.plusProduct(op, x.Lexpr, x.Rexpr, s); ok {
		return e, true
	}
	moment, by := x.Lexpr, x.Rexpr
	v, found := intervalConst(by)
	if !found && op == plan.OpAdd {
		moment, by = by, moment
		v, found = intervalConst(by)
	}
	if !found {
		return nil, false
	}
	m := a.expr(moment, s)
	if isInterval(m) {
		return nil, false
	}
	c, constant := m.e.(plan.Const)
	if intervalCalls[m.kind()] == nil || !constant && !readsRows(m.e) || constant && m.kind() == vector.TimestampTZ {
		fail(plan.ReasonFunction, "an interval added to what is no date or timestamp")
	}
	oid := intervalCalls[m.kind()][op]
	if moment == x.Rexpr {
		a.addCalls([]uint32{intervalFirst[m.kind()]})
	}
	a.addCalls([]uint32{oid})
	if !constant {
		if op == plan.OpSub {
			v = plan.Interval{Months: -v.Months, Days: -v.Days, Micros: -v.Micros}
		}
		return a.addInterval(m.e, v), true
	}
	t := vector.TypeOf(vector.Timestamp)
	if c.Null {
		return plan.Const{Datum: vector.Null(t)}, true
	}
	micros, fits := c.I, true
	if m.kind() == vector.Date {
		if fits = c.I > -1e6 && c.I < 1e7; fits {
			micros *= microsPerDay
		}
	}
	if op == plan.OpSub {
		v = plan.Interval{Months: -v.Months, Days: -v.Days, Micros: -v.Micros}
	}
	if micros, fits = v.AddTo(micros, fits); !fits {
		fail(plan.ReasonFunction, "an interval beyond the years 1 to 9999")
	}
	return plan.Const{Datum: vector.Datum{Type: t, I: micros}}, true
}

// addInterval adds a constant interval to a date, a timestamp or a moment of rows.
func (a *analyzer) addInterval(e plan.Expr, v plan.Interval) plan.Expr {
	f := sqlfn.ByOID(sqlfn.OIDTimestampPlusInterval)
	switch e.Type().Kind {
	case vector.Date:
		e = a.cast(e, vector.TypeOf(vector.Timestamp))
	case vector.TimestampTZ:
		f = sqlfn.ByOID(sqlfn.OIDTimestampTZPlusInterval)
	}
	text := sqlfn.IntervalText(v.Months, v.Days, v.Micros)
	return a.callOf(f, []value{typed(e), {text: &text}})
}

// addSpan adds a computed interval to a date or a timestamp. days says that it may have days, which a
// moment has in its time zone.
func (a *analyzer) addSpan(op plan.Op, moment, by plan.Expr, days bool) plan.Expr {
	t := moment.Type()
	if t.Kind == vector.Date {
		t = vector.TypeOf(vector.Timestamp)
	}
	a.needsUTC = a.needsUTC || days && t.Kind == vector.TimestampTZ
	return a.call(op, plainType(t), a.cast(moment, t), by)
}

// plusProduct is a date or a timestamp plus or minus a constant interval without months times a number, as it is written to find
// bins of five minutes or the last Sunday. ok is false for anything else.
func (a *analyzer) plusProduct(op plan.Op, moment, by *pg.Node, s *scope) (e plan.Expr, ok bool) {
	product := by.GetAExpr()
	if !isProduct(product) && op == plan.OpAdd {
		moment, by = by, moment
		product = by.GetAExpr()
	}
	if !isProduct(product) || overNoRows(by) {
		return nil, false
	}
	v, found := intervalConst(product.Lexpr)
	times, first := product.Rexpr, true
	if !found {
		v, found = intervalConst(product.Rexpr)
		times, first = product.Lexpr, false
	}
	if !found || v.Months != 0 {
		return nil, false
	}
	a.opSymbol(product.Name)
	m, n := a.expr(moment, s), a.expr(times, s)
	if !isMoment(m.kind()) || !isNumber(n.kind()) {
		fail(plan.ReasonFunction, "an interval times what is no number, or added to what is no date or timestamp")
	}
	if first {
		a.calls("*", vector.Interval, n.kind())
	} else {
		a.calls("*", n.kind(), vector.Interval)
	}
	a.calls(operatorSymbol[op], m.kind(), vector.Interval)
	if op == plan.OpAdd {
		a.calls("+", vector.Interval, m.kind())
	}
	text := sqlfn.IntervalText(v.Months, v.Days, v.Micros)
	span := a.callOf(sqlfn.IntervalTimes, []value{{text: &text}, typed(a.cast(n.e, vector.TypeOf(vector.Float8)))})
	return a.addSpan(op, m.e, span, v.Days != 0), true
}

func isProduct(x *pg.A_Expr) bool {
	if x == nil || x.Kind != pg.A_Expr_Kind_AEXPR_OP || x.Lexpr == nil || x.Rexpr == nil {
		return false
	}
	names := nameList(x.Name)
	return len(names) > 0 && names[len(names)-1] == "*"
}
