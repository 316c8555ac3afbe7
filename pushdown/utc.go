package pushdown

import (
	"slices"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// The functions in pg_proc.
const (
	oidDateOfTimestamp = 2029
	oidDateOfTZ        = 1178
)

// zoneOf notes the time zone that a call depends on. Of constants the result is that in UTC.
func (a *analyzer) zoneOf(f *sqlfn.Function, c *plan.Call, constant bool) {
	switch {
	case f.Zone == sqlfn.SessionZone && constant:
		a.needsUTC = true
	case f.Zone == sqlfn.SessionZone:
		a.sessionZone = true
	case f.Zone == sqlfn.NamedZone:
		name := f.ZoneName(c.Site())
		a.namesUTC = a.namesUTC || sqltype.NamesUTC(name)
		if !slices.Contains(a.zones, name) {
			a.zones = append(a.zones, name)
		}
	}
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
