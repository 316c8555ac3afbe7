package pushdown

import (
	"strconv"
	"strings"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/vector"
)

// interval is a constant of type interval. There are no such columns or expressions: it is what is
// added to a constant date or timestamp, as in date '1998-12-01' - interval '90' day.
type interval struct {
	months, days int64
	micros       int64
}

// The fields of interval's type modifier (INTERVAL_MASK in utils/timestamp.h), as a unit of the
// number that is written.
var intervalFields = map[int32]string{1 << 2: "year", 1 << 1: "month", 1 << 3: "day", 1 << 10: "hour", 1 << 11: "minute", 1 << 12: "second"}

// units of an interval. PostgreSQL takes more names.
var intervalUnits = map[string]interval{
	"year": {months: 12}, "mon": {months: 1}, "month": {months: 1}, "week": {days: 7}, "day": {days: 1},
	"hour": {micros: 3600e6}, "minute": {micros: 60e6}, "min": {micros: 60e6}, "second": {micros: 1e6}, "sec": {micros: 1e6},
}

// maxIntervalNumber bounds the numbers of an interval.
const maxIntervalNumber = 1_000_000

// intervalConst reads a typed literal of interval: whole numbers with units. ok is false for
// anything else, which is left to typeCast to refuse.
func intervalConst(n *pg.Node) (v interval, ok bool) {
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
func intervalOf(words []string) (v interval, ok bool) {
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
		v.months += n * u.months
		v.days += n * u.days
		v.micros += n * u.micros
	}
	return v, true
}

// The functions of +(date, interval) and so on (pg_operator.oprcode).
var intervalCalls = map[vector.Kind]map[plan.Op]uint32{
	vector.Date:      {plan.OpAdd: 2071, plan.OpSub: 2072},
	vector.Timestamp: {plan.OpAdd: 2032, plan.OpSub: 2033},
}

// plusInterval computes a constant date or timestamp plus or minus an interval, which is a
// timestamp: date_pl_interval and timestamp_pl_interval. ok is false where there is no interval.
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
	if !constant || intervalCalls[m.kind()] == nil {
		fail(plan.ReasonFunction, "an interval added to what is no constant date or timestamp")
	}
	oid := intervalCalls[m.kind()][op]
	if moment == x.Rexpr { // interval + date is a function in SQL, which calls the other
		a.addCalls([]uint32{map[vector.Kind]uint32{vector.Date: 2546, vector.Timestamp: 2548}[m.kind()]})
	}
	a.addCalls([]uint32{oid})
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
		v = interval{-v.months, -v.days, -v.micros}
	}
	if micros, fits = v.addTo(micros, fits); !fits {
		fail(plan.ReasonFunction, "an interval beyond the years 1 to 9999")
	}
	return plan.Const{Datum: vector.Datum{Type: t, I: micros}}, true
}

// addTo adds an interval to a timestamp: first the months, cut to the last day of the month, then the
// days, then the time. ok is false beyond the years 1 to 9999.
func (v interval) addTo(micros int64, within bool) (sum int64, ok bool) {
	epoch := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	first := (time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix() - epoch.Unix()) * 1e6
	end := (time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).Unix() - epoch.Unix()) * 1e6
	if !within || micros < first || micros >= end {
		return 0, false
	}
	day := micros / microsPerDay
	rest := micros - day*microsPerDay
	if rest < 0 {
		day, rest = day-1, rest+microsPerDay
	}
	d := epoch.AddDate(0, 0, int(day))
	if v.months != 0 {
		month := int64(d.Year())*12 + int64(d.Month()) - 1 + v.months
		year := month / 12
		if year < 1 || year > 9999 {
			return 0, false
		}
		last := time.Date(int(year), time.Month(month%12)+2, 0, 0, 0, 0, 0, time.UTC).Day()
		d = time.Date(int(year), time.Month(month%12)+1, min(d.Day(), last), 0, 0, 0, 0, time.UTC)
	}
	d = d.AddDate(0, 0, int(v.days))
	sum = (d.Unix()-epoch.Unix())*1e6 + rest + v.micros
	return sum, sum >= first && sum < end
}
