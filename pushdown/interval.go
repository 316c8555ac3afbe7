package pushdown

import (
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// The fields of interval's type modifier (INTERVAL_MASK in utils/timestamp.h), as a unit of the
// number that is written.
var intervalFields = map[int32]string{1 << 2: "year", 1 << 1: "month", 1 << 3: "day", 1 << 10: "hour", 1 << 11: "minute", 1 << 12: "second"}

// units of an interval. PostgreSQL takes more names.
var intervalUnits = map[string]plan.Interval{
	"year": {Months: 12}, "mon": {Months: 1}, "month": {Months: 1}, "week": {Days: 7}, "day": {Days: 1},
	"hour": {Micros: 3600e6}, "minute": {Micros: 60e6}, "min": {Micros: 60e6}, "second": {Micros: 1e6}, "sec": {Micros: 1e6},
}

// maxIntervalNumber bounds the numbers of an interval.
const maxIntervalNumber = 1_000_000

// intervalConst reads a typed literal of interval: whole numbers with units. ok is false for
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
	words := strings.Fields(s.Sval.Sval)
	switch len(c.TypeName.Typmods) {
	case 0:
	case 1:
		mask, is := c.TypeName.Typmods[0].GetAConst().GetVal().(*pg.A_Const_Ival)
		if !is || len(words) != 1 || intervalFields[mask.Ival.GetIval()] == "" {
			return v, false
		}
		words = append(words, intervalFields[mask.Ival.GetIval()])
	default:
		return v, false
	}
	return intervalOf(words)
}

// intervalOf reads pairs of a number and a unit. A sign is taken with one pair only: with several
// IntervalStyle says which of them it belongs to.
func intervalOf(words []string) (v plan.Interval, ok bool) {
	if len(words) == 0 || len(words)%2 != 0 {
		return v, false
	}
	for i := 0; i < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i], 10, 64)
		unit := strings.ToLower(words[i+1])
		u, known := intervalUnits[unit]
		if !known {
			u, known = intervalUnits[strings.TrimSuffix(unit, "s")]
		}
		if err != nil || !known || n > maxIntervalNumber || n < -maxIntervalNumber || len(words) > 2 && strings.ContainsAny(words[i], "+-") {
			return v, false
		}
		v.Months += n * u.Months
		v.Days += n * u.Days
		v.Micros += n * u.Micros
	}
	return v, true
}

// The functions of +(date, interval) and so on (pg_operator.oprcode).
var intervalCalls = map[vector.Kind]map[plan.Op]uint32{
	vector.Date:        {plan.OpAdd: 2071, plan.OpSub: 2072},
	vector.Timestamp:   {plan.OpAdd: 2032, plan.OpSub: 2033},
	vector.TimestampTZ: {plan.OpAdd: 1189, plan.OpSub: 1190},
}

// Those of interval + moment, which are written in SQL and call the others.
var intervalFirst = map[vector.Kind]uint32{vector.Date: 2546, vector.Timestamp: 2548, vector.TimestampTZ: 2549}

// plusInterval is a date or a timestamp plus or minus a constant interval, which is a timestamp, or such a moment:
// date_pl_interval, timestamp_pl_interval and timestamptz_pl_interval. Of constants it is computed here. ok is false where there is no interval.
func (a *analyzer) plusInterval(op plan.Op, x *pg.A_Expr, s *scope) (e plan.Expr, ok bool) {
	moment, by := x.Lexpr, x.Rexpr
	v, found := intervalConst(by)
	if !found && op == plan.OpAdd {
		moment, by = by, moment
		v, found = intervalConst(by)
	}
	if !found || op != plan.OpAdd && op != plan.OpSub {
		return nil, false
	}
	m := a.expr(moment, s)
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
