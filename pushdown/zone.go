package pushdown

import (
	"fmt"
	"slices"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
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

// A date or a timestamp is compared with a moment (timestamptz) by what the session's zone makes of it.
// Where the one is a constant the server converts that, in the client's session: the zone, and when its clocks
// change, are the server's affair.

// compareMoments compares a date, a timestamp or a moment of rows with a constant one of another of these
// types. ok is false for other comparisons, and where the server need not be asked.
func (a *analyzer) compareMoments(op plan.Op, l, r plan.Expr) (e plan.Expr, ok bool) {
	if readsRows(r) {
		l, r, op = r, l, plan.Flipped[op]
	}
	if !readsRows(l) || readsRows(r) || op == 0 {
		return nil, false
	}
	of, by := l.Type().Kind, r.Type().Kind
	zoned := (of == vector.TimestampTZ) != (by == vector.TimestampTZ)
	if _, asked := r.(plan.ServerConst); !asked {
		if !zoned || !isMoment(of) || !isMoment(by) {
			return nil, false
		}
		if a.settled = true; !a.unsettled { // a plan for sessions in UTC needs no server
			return nil, false
		}
	}
	sql, ok := a.momentSQL(r)
	switch {
	case !ok || !isMoment(of):
	case of == vector.Date && by != vector.Date:
		return a.compareDay(op, l, sql, by)
	case of == vector.Timestamp && by == vector.TimestampTZ:
		return a.call(op, boolType, l, a.asked(localSQL(sql), l.Type())), true
	case of == vector.TimestampTZ && by != vector.TimestampTZ:
		return a.call(op, boolType, l, a.asked("("+sql+")::pg_catalog.timestamptz", vector.TypeOf(vector.TimestampTZ))), true
	}
	return nil, false
}

func isMoment(k vector.Kind) bool {
	return k == vector.Date || k == vector.Timestamp || k == vector.TimestampTZ
}

// momentSQL writes a constant of one of these types for the server.
func (a *analyzer) momentSQL(e plan.Expr) (sql string, ok bool) {
	k := e.Type().Kind
	switch x := e.(type) {
	case plan.ServerConst:
		return x.SQL, isMoment(k)
	case plan.Const:
		if x.Null || !isMoment(k) {
			return "", false
		}
		t := sqltype.Of(k)
		return quoteLiteral(string(t.AppendText(nil, x.I))) + "::pg_catalog." + t.Name, true
	case plan.Param:
		w := serverWriter{a: a, params: a.serverParams}
		if sql, ok = w.param(x.Index+1, sqltype.Of(k).Name); ok && isMoment(k) {
			a.takeParams(&w)
			return sql + "::pg_catalog." + sqltype.Of(k).Name, true
		}
	}
	return "", false
}

// compareDay brings the comparison of a date with a moment to one of dates, in every time zone: the cast of
// dates to moments is monotone, and its steps of a day lead at most one day beyond that of the moment, where
// a zone leaves a day out. ok is false for = and <>.
func (a *analyzer) compareDay(op plan.Op, l plan.Expr, moment string, kind vector.Kind) (e plan.Expr, ok bool) {
	day := func(shift string) string { return "(" + moment + ")::pg_catalog.date" + shift }
	when := func(shift, symbol string) string {
		return " WHEN (" + day(shift) + ")::pg_catalog." + typeName(kind) + " OPERATOR(pg_catalog." + symbol + ") " + moment + " THEN " + day(shift)
	}
	const next, last = " OPERATOR(pg_catalog.+) 1", " OPERATOR(pg_catalog.-) 1"
	sql := ""
	switch op {
	case plan.OpGe, plan.OpLt: // the first day that is not before
		sql = "CASE" + when(last, ">=") + when("", ">=") + " ELSE " + day(next) + " END"
	case plan.OpGt, plan.OpLe: // the last day that is not behind
		sql = "CASE" + when(next, "<=") + when("", "<=") + " ELSE " + day(last) + " END"
	default:
		return nil, false
	}
	return a.call(op, boolType, l, a.asked(sql, vector.TypeOf(vector.Date))), true
}

// localSQL is the timestamp that compares with every timestamp as a moment does: PostgreSQL converts the
// timestamp (timestamp_cmp_timestamptz_internal in timestamp.c), and what it makes of timestamps ascends but
// where clocks change. When they are put back, as long as they repeat what they have shown no timestamp is
// the moment: what DetermineTimeZoneOffset (datetime.c) makes of an ambiguous one is the later. After they
// have been put forward, as long as they have left out two timestamps are one moment: it takes those left out
// by the clock before. In these hours the result is null, for which the statement is forwarded. Clocks change
// at most once in 48 hours, as DetermineTimeZoneOffset supposes, and by at most a day.
func localSQL(moment string) string {
	const before = "(u OPERATOR(pg_catalog.-) '26:00'::pg_catalog.interval)"
	offset := func(u string) string { // of the zone from UTC, at a time in UTC
		return fmt.Sprintf("(pg_catalog.timezone('UTC', %s)::pg_catalog.timestamp OPERATOR(pg_catalog.-) %s)", u, u)
	}
	return `(SELECT CASE WHEN NOT pg_catalog.isfinite(m) THEN l` +
		` WHEN l::pg_catalog.timestamptz OPERATOR(pg_catalog.=) m AND (f OPERATOR(pg_catalog.<=) '0'::pg_catalog.interval OR ` +
		offset("(u OPERATOR(pg_catalog.-) f)") + ` OPERATOR(pg_catalog.=) ` + offset("u") + `) THEN l END` +
		` FROM (SELECT m, l, u, CASE WHEN pg_catalog.isfinite(m) THEN ` + offset("u") + ` OPERATOR(pg_catalog.-) ` + offset(before) + ` END AS f` +
		` FROM (SELECT m, m::pg_catalog.timestamp AS l, pg_catalog.timezone('UTC', m) AS u FROM (SELECT ` + moment + ` AS m) AS a) AS b) AS c)`
}
