package engine

import (
	"fmt"
	"strings"
	"time"

	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// constantsOf asks the server for constants, and what type each has.
func constantsOf(q *plan.Deps) *Constants {
	if len(q.ServerConsts) == 0 {
		return nil
	}
	var columns []string
	for _, c := range q.ServerConsts {
		columns = append(columns, "pg_catalog.pg_typeof("+c.SQL+"), "+c.SQL)
	}
	unread := make([]bool, len(q.Params))
	for i, t := range q.Params {
		unread[i] = t.Kind == vector.Invalid
	}
	return &Constants{SQL: "SELECT " + strings.Join(columns, ", "), Params: q.ServerParams, Unread: unread}
}

// errUncertain forwards a statement with a constant for which the server has an error, which the
// statement may have or not: it depends on whether its value is needed.
var errUncertain = forward(plan.ReasonEvaluation, "the server has an error for a constant of the statement, or for what is left to it")

// uncertainFor is how long a statement is forwarded after such an error: each is in the server's log.
const uncertainFor = 10 * time.Second

// bind puts the values in: those of parameters, and those that the server has computed; and the server's rules.
func (d *decision) bind(params, constants []vector.Datum, rules plan.Rules) (*plan.Star, *plan.Forward) {
	if len(params) != len(d.deps.Params) {
		return nil, forward(plan.ReasonParameter, fmt.Sprintf("%d values for %d parameters", len(params), len(d.deps.Params)))
	}
	if len(constants) != len(d.deps.ServerConsts) {
		return nil, forward(plan.ReasonType, "constants that the server has computed cannot be read")
	}
	values, server := make([]vector.Datum, len(params)), make([]vector.Datum, len(constants))
	for i, v := range params {
		if d.deps.Params[i].Kind == vector.Invalid {
			continue // the server alone reads it
		}
		var f *plan.Forward
		if localMoment(v, d.deps.Params[i]) {
			var err error
			if v.I, err = rules.Zones.Moment(v.I); err != nil {
				return nil, forward(plan.ReasonParameter, fmt.Sprintf("$%d is a time that its zone's rules do not reach", i+1))
			}
			v.Type = d.deps.Params[i]
		}
		if values[i], f = d.converted(v, d.deps.Params[i], plan.ReasonParameter, fmt.Sprintf("$%d", i+1)); f != nil {
			return nil, f
		}
	}
	for i, v := range constants {
		want := d.deps.ServerConsts[i].T
		if d.deps.ServerConsts[i].Array {
			if list, ok := plan.ArrayMembers(v.Str, want); !ok || len(list) == 0 || v.Null || !v.Type.Kind.IsText() {
				return nil, forward(plan.ReasonParameter, "an array that is null, empty, of several dimensions or has members that are not read here")
			}
			server[i] = v
			continue
		}
		if v.Null && d.finish != nil && d.finish.Reads && i == len(constants)-1 {
			d.uncertain.Store(time.Now().UnixNano())
			return nil, errOthers
		}
		if v.Null { // with which PostgreSQL may fold more
			return nil, forward(plan.ReasonEvaluation, "a constant that the server has computed is null")
		}
		if want.Kind == vector.Numeric && !want.Varying() && v.Decimal().Scale != want.Scale {
			return nil, forward(plan.ReasonType, "a constant that the server has computed has other decimals than planned")
		}
		var f *plan.Forward
		if server[i], f = d.converted(v, want, plan.ReasonType, "a constant that the server has computed"); f != nil {
			return nil, f
		}
	}
	return d.query.Bind(values, server, rules), nil
}

// localMoment reports whether the value of a parameter of type timestamptz is a time of the session's zone.
func localMoment(v vector.Datum, want vector.Type) bool {
	return want.Kind == vector.TimestampTZ && v.Type.Kind == vector.Timestamp && !v.Null
}

// inSessionZone reports whether an execution with such values depends on the session's time zone.
func (d *decision) inSessionZone(params []vector.Datum) bool {
	if d.deps.SessionZone {
		return true
	}
	for i, v := range params {
		if i < len(d.deps.Params) && localMoment(v, d.deps.Params[i]) {
			return true
		}
	}
	return false
}

// toOpaqueInterval makes an interval one of the opaque type t. Other values stay as they are.
func toOpaqueInterval(v vector.Datum, t vector.Type) vector.Datum {
	if v.Type.Kind != vector.Interval {
		return v
	}
	if !v.Null {
		v.Str, _ = sqltype.OpaqueInterval(0, v.I/sqltype.MicrosPerDay, v.I%sqltype.MicrosPerDay)
		v.I = 0
	}
	v.Type = t
	return v
}

// converted returns a value in the type that the plan assumes. One of another type, or with more
// decimals than it can hold, is for Postgres.
func (d *decision) converted(v vector.Datum, want vector.Type, r plan.Reason, name string) (vector.Datum, *plan.Forward) {
	if v.Type.Kind == vector.Enum && want.Kind == vector.Opaque && v.Type.Collation.OID == want.Collation.OID {
		v.Type = want // citext (wire.DecodeParam)
	}
	if sqltype.IsOpaqueInterval(want) {
		if v = toOpaqueInterval(v, want); v.Type.Kind == want.Kind && !v.Null {
			if _, ok := sqltype.IntervalSpan(sqltype.IntervalFields(v.Str)); !ok {
				return v, forward(r, name+" is an interval of so many years")
			}
		}
	}
	have := v.Type.Kind
	if have != want.Kind && !(have.IsText() && want.Kind.IsText() && want.Kind != vector.BPChar && have != vector.BPChar) {
		return v, forward(r, fmt.Sprintf("%s is %s, planned %s", name, have, want.Kind))
	}
	if want.Kind == vector.Enum {
		// A label that the type does not have is the server's error.
		if e := d.catalog.Enum(want.Collation.OID); v.Type.Collation.OID != want.Collation.OID || e == nil || !v.Null && !e.Has(v.Str) {
			return v, forward(r, name+" is of another enum, or no label")
		}
	}
	if want.Kind == vector.Numeric && !v.Null && want.Scale != vector.VaryingScale {
		scaled, exact := v.Decimal().Rescale(want.Scale)
		n, fits := scaled.Unscaled.Int64()
		if !exact || !fits {
			return v, forward(r, name+" has too many digits")
		}
		v.I, v.Num = n, vector.Decimal{}
	}
	v.Type = want
	return v, nil
}
