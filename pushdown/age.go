package pushdown

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// The functions of age(timestamp, timestamp) and of timestamptz, and those of a field of an interval.
const (
	oidAge           = 2058
	oidAgeTZ         = 1199
	oidAgeToday      = 2059
	oidAgeTodayTZ    = 1386
	oidExtractOfSpan = 6204
	oidPartOfSpan    = 1172
)

// ageField is a field of age(a, b), which is no value here: it has months. ok is false for fields of anything else.
func (a *analyzer) ageField(name string, f *pg.FuncCall, s *scope) (e plan.Expr, ok bool) {
	if len(f.Args) != 2 {
		return nil, false
	}
	age := f.Args[1].GetFuncCall()
	if age == nil || len(age.Args) < 1 || len(age.Args) > 2 {
		return nil, false
	}
	if names := nameList(age.Funcname); len(names) == 0 || names[len(names)-1] != "age" {
		return nil, false
	}
	if a.functionName(age.Funcname) != "age" {
		return nil, false
	}
	field := a.expr(f.Args[0], s)
	var word plan.Expr
	if len(age.Args) == 1 {
		word = a.ageToday(a.expr(age.Args[0], s))
	} else {
		word = a.age(a.expr(age.Args[0], s), a.expr(age.Args[1], s))
	}
	if name == "extract" {
		a.addCalls([]uint32{oidExtractOfSpan})
		return a.callOf(sqlfn.AgeExtract, []value{field, typed(word)}), true
	}
	a.addCalls([]uint32{oidPartOfSpan})
	return a.callOf(sqlfn.AgePart, []value{field, typed(word)}), true
}

// age is age(l, r) in a word. Dates are moments at midnight in the session's time zone, whose fields there count: some
// days have no midnight. Moments themselves are ordered otherwise than their local times where clocks go back.
func (a *analyzer) age(l, r value) plan.Expr {
	timestamp, moment := vector.TypeOf(vector.Timestamp), vector.TypeOf(vector.TimestampTZ)
	if l.unknown() {
		l = typed(a.resolve(l, typeBeside(r)))
	}
	if r.unknown() {
		r = typed(a.resolve(r, typeBeside(l)))
	}
	lk, rk := l.kind(), r.kind()
	if !isMoment(lk) || !isMoment(rk) {
		fail(plan.ReasonFunction, "age() of other than dates and timestamps")
	}
	a.callsCast(l, vector.Timestamp)
	a.callsCast(r, vector.Timestamp)
	a.callsCast(l, vector.TimestampTZ)
	a.callsCast(r, vector.TimestampTZ)
	switch {
	case lk == vector.Timestamp && rk != vector.TimestampTZ || rk == vector.Timestamp && lk != vector.TimestampTZ:
		a.addCalls([]uint32{oidAge})
		return a.callOf(sqlfn.AgeOf, []value{typed(a.cast(l.e, timestamp)), typed(a.cast(r.e, timestamp))})
	case lk == vector.Date && rk == vector.Date:
	default:
		a.needsUTC = true
	}
	a.addCalls([]uint32{oidAgeTZ})
	local := func(e plan.Expr) value {
		if _, constant := e.(plan.Const); constant && a.unsettled && e.Type().Kind == vector.Date {
			if sql, ok := a.momentSQL(e); ok {
				return typed(a.asked("("+sql+")::pg_catalog.timestamptz::pg_catalog.timestamp", timestamp))
			}
		}
		return typed(a.cast(a.cast(e, moment), timestamp))
	}
	return a.callOf(sqlfn.AgeOf, []value{local(l.e), local(r.e)})
}

// ageToday is age(v), which is written in SQL: age(current_date, v).
func (a *analyzer) ageToday(v value) plan.Expr {
	oid := uint32(oidAgeToday)
	today := "CURRENT_DATE::pg_catalog.timestamp"
	switch v.kind() {
	case vector.Timestamp:
	case vector.Date: // that of timestamptz
		oid, today = oidAgeTodayTZ, "CURRENT_DATE::pg_catalog.timestamptz::pg_catalog.timestamp"
		a.addCalls([]uint32{oidAgeTZ})
		v = typed(a.cast(a.cast(v.e, vector.TypeOf(vector.TimestampTZ)), vector.TypeOf(vector.Timestamp)))
		a.calls("::", vector.Date, vector.TimestampTZ)
	default:
		fail(plan.ReasonFunction, "age() of other than dates and timestamps")
	}
	a.addCalls([]uint32{oid, oidAge})
	a.calls("::", vector.Date, vector.Timestamp)
	return a.callOf(sqlfn.AgeOf, []value{typed(a.asked(today, vector.TypeOf(vector.Timestamp))), v})
}

// typeBeside is the type that a literal takes beside v as an argument of age(): that of v where age() has it.
func typeBeside(v value) vector.Type {
	switch v.kind() {
	case vector.Timestamp, vector.TimestampTZ:
		return vector.TypeOf(v.kind())
	}
	return vector.TypeOf(vector.TimestampTZ)
}

// dateBin analyses date_bin() of a constant stride.
func (a *analyzer) dateBin(f *pg.FuncCall, s *scope) plan.Expr {
	if len(f.Args) != 3 {
		fail(plan.ReasonFunction, "date_bin()")
	}
	v, ok := intervalConst(f.Args[0])
	if c, literal := f.Args[0].GetAConst().GetVal().(*pg.A_Const_Sval); literal {
		v, ok = intervalOf(c.Sval.Sval)
	}
	if !ok {
		fail(plan.ReasonFunction, "date_bin() of a stride that is no constant of whole numbers")
	}
	source, origin := a.expr(f.Args[1], s), a.expr(f.Args[2], s)
	kinds := []vector.Kind{vector.Interval, source.kind(), origin.kind()}
	var fn *sqlfn.Function
	for _, oid := range builtins[builtinKey("date_bin", kinds)] {
		if g := sqlfn.ByOID(oid); g != nil && g.Name == "date_bin" {
			fn = g
		}
	}
	if fn == nil {
		fail(plan.ReasonFunction, builtinKey("date_bin", kinds))
	}
	a.calls("date_bin", kinds...)
	text := sqlfn.IntervalText(v.Months, v.Days, v.Micros)
	return a.callOf(fn, []value{{text: &text}, source, origin})
}
