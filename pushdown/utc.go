package pushdown

import (
	"strings"

	"pgaccel/plan"
	"pgaccel/vector"
)

// Moments of rows in UTC, whatever the session's zone is: x AT TIME ZONE 'UTC' has the same microseconds,
// of the other type (timestamptz_zone and timestamp_zone in timestamp.c).

// utcNames are the names of UTC, in lower case, whose rules are never others.
var utcNames = map[string]bool{"utc": true, "etc/utc": true, "gmt": true, "etc/gmt": true}

// The functions in pg_proc.
const (
	oidTimezoneOfTZ        = 1159 // timezone(text, timestamptz)
	oidTimezoneOfTimestamp = 2069 // timezone(text, timestamp)
	oidDateTruncZone       = 1284 // date_trunc(text, timestamptz, text)
	oidDateOfTimestamp     = 2029
	oidDateOfTZ            = 1178
)

// isUTC reports whether the argument is a constant that names UTC.
func (a *analyzer) isUTC(zone value) bool {
	if k := zone.kind(); k != vector.Invalid && k != vector.Text {
		return false
	}
	c, ok := a.resolve(zone, vector.TypeOf(vector.Text)).(plan.Const)
	if !ok || c.Null || !utcNames[strings.ToLower(c.Str)] {
		return false
	}
	a.namesUTC = true
	return true
}

// inUTC is timezone(zone, x), which AT TIME ZONE is, of a moment or a timestamp of rows.
func (a *analyzer) inUTC(name string, vals []value) plan.Expr {
	of := vals[1].kind()
	if of != vector.TimestampTZ && of != vector.Timestamp || !a.isUTC(vals[0]) || !readsRows(vals[1].e) {
		fail(plan.ReasonFunction, name+"() of another zone than UTC")
	}
	if of == vector.TimestampTZ {
		a.addCalls([]uint32{oidTimezoneOfTZ})
		return a.call(plan.OpCast, vector.TypeOf(vector.Timestamp), vals[1].e)
	}
	a.addCalls([]uint32{oidTimezoneOfTimestamp})
	return a.call(plan.OpCast, vector.TypeOf(vector.TimestampTZ), vals[1].e)
}

// truncInUTC is date_trunc(unit, x, zone).
func (a *analyzer) truncInUTC(vals []value) plan.Expr {
	if vals[1].kind() != vector.TimestampTZ || !a.isUTC(vals[2]) || !readsRows(vals[1].e) {
		fail(plan.ReasonFunction, "date_trunc() in another zone than UTC")
	}
	a.addCalls([]uint32{oidDateTruncZone})
	local := a.call(plan.OpCast, vector.TypeOf(vector.Timestamp), vals[1].e)
	trunc := a.tableFunction("date_trunc", []value{vals[0], typed(local)})
	return a.call(plan.OpCast, vector.TypeOf(vector.TimestampTZ), trunc)
}

// dateOf is date(x), the cast to a date.
func (a *analyzer) dateOf(v value) plan.Expr {
	switch v.kind() {
	case vector.Timestamp:
		a.addCalls([]uint32{oidDateOfTimestamp})
	case vector.TimestampTZ:
		a.addCalls([]uint32{oidDateOfTZ})
	default:
		fail(plan.ReasonFunction, "date() of other than timestamp and timestamptz")
	}
	return a.cast(v.e, vector.TypeOf(vector.Date))
}
