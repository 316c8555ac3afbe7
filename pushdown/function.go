package pushdown

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/vector"
)

// volatileFunctions give another result at each call or do something: a statement
// that names one is forwarded for that reason.
var volatileFunctions = map[string]bool{
	"random": true, "random_normal": true, "setseed": true, "nextval": true, "currval": true, "lastval": true,
	"setval": true, "clock_timestamp": true, "timeofday": true, "gen_random_uuid": true, "uuidv4": true, "uuidv7": true,
	"pg_sleep": true, "pg_sleep_for": true, "pg_sleep_until": true, "set_config": true, "txid_current": true,
	"pg_current_xact_id": true, "pg_notify": true, "pg_cancel_backend": true, "pg_terminate_backend": true,
	"pg_advisory_lock": true, "pg_try_advisory_lock": true, "pg_advisory_unlock": true, "pg_advisory_unlock_all": true,
	"pg_advisory_xact_lock": true, "pg_try_advisory_xact_lock": true, "pg_logical_emit_message": true,
	"lo_create": true, "lo_import": true, "lo_export": true, "lo_unlink": true, "dblink": true, "dblink_exec": true,
}

// functionName returns the built-in that a possibly qualified name means.
func (a *analyzer) functionName(nodes []*pg.Node) string {
	parts := nameList(nodes)
	switch {
	case len(parts) == 1:
		if a.cat.Shadowed[parts[0]] {
			fail(plan.ReasonShadowed, parts[0]+"()")
		}
		if i, found := slices.BinarySearch(a.functions, parts[0]); !found {
			a.functions = slices.Insert(a.functions, i, parts[0])
		}
		return parts[0]
	case len(parts) == 2 && parts[0] == "pg_catalog":
		return parts[1]
	}
	fail(plan.ReasonFunction, strings.Join(parts, ".")+"()")
	return ""
}

func (a *analyzer) funcCall(f *pg.FuncCall, s *scope) plan.Expr {
	name := a.functionName(f.Funcname)
	if volatileFunctions[name] {
		fail(plan.ReasonVolatile, name+"()")
	}
	switch {
	case f.Over != nil:
		fail(plan.ReasonShape, "window function")
	case f.FuncVariadic:
		fail(plan.ReasonFunction, "VARIADIC")
	case f.AggWithinGroup:
		return a.percentile(name, f, s)
	case len(f.AggOrder) > 0:
		fail(plan.ReasonShape, "ORDER BY inside an aggregate")
	}
	if fn, ok := aggregates[name]; ok {
		return a.aggregate(fn, name, f, s)
	}
	if f.AggFilter != nil || f.AggStar || f.AggDistinct {
		fail(plan.ReasonFunction, name+"()")
	}
	args := func(n int) []value {
		if len(f.Args) != n {
			fail(plan.ReasonFunction, name+"()")
		}
		out := make([]value, n)
		for i, x := range f.Args {
			out[i] = a.expr(x, s)
		}
		return out
	}
	switch name {
	case "abs":
		return a.abs(args(1)[0])
	case "mod":
		v := args(2)
		if !v[0].kind().IsInt() || !v[1].kind().IsInt() {
			fail(plan.ReasonFunction, "mod() of other than integers")
		}
		a.calls(name, v[0].kind(), v[1].kind())
		return a.intArith(plan.OpMod, v[0].e, v[1].e)
	case "extract", "date_part":
		v := args(2)
		return a.extract(name, a.field(v[0], name), v[1])
	case "date_trunc":
		v := args(2)
		return a.dateTrunc(a.field(v[0], name), v[1])
	case "to_date", "to_timestamp":
		if len(f.Args) == 2 {
			return a.toMoment(name, args(2))
		}
	}
	fail(plan.ReasonFunction, name+"()")
	return nil
}

func (a *analyzer) abs(v value) plan.Expr {
	if k := v.kind(); !isNumber(k) {
		fail(plan.ReasonFunction, "abs() of "+k.String())
	}
	a.calls("abs", v.kind())
	return a.call(plan.OpAbs, plainType(v.e.Type()), v.e)
}

// field reads the unit of extract, date_part and date_trunc.
func (a *analyzer) field(v value, function string) string {
	if v.text == nil {
		fail(plan.ReasonFunction, function+"() with a unit that is not constant")
	}
	return strings.ToLower(*v.text)
}

// dateFields and timeFields are the units of extract, by what they need of the
// argument, with the display scale of the numeric result
// (timestamp_part_common and extract_date in PostgreSQL's timestamp.c and date.c).
var dateFields = map[string]int16{"year": 0, "quarter": 0, "month": 0, "week": 0, "day": 0, "dow": 0, "isodow": 0, "doy": 0, "isoyear": 0}

var timeFields = map[string]int16{"hour": 0, "minute": 0, "second": 6, "epoch": 6}

func (a *analyzer) extract(function, field string, v value) plan.Expr {
	if v.unknown() {
		fail(plan.ReasonFunction, function+"() of a constant without a type")
	}
	scale, ok := dateFields[field]
	k := v.kind()
	if !ok {
		if scale, ok = timeFields[field]; !ok {
			fail(plan.ReasonFunction, function+"("+field+")")
		}
		if k == vector.Date && function == "extract" {
			if field != "epoch" {
				fail(plan.ReasonEvaluation, "extract("+field+") of a date")
			}
			scale = 0
		}
	}
	a.calls(function, k)
	arg := v.e
	switch k {
	case vector.TimestampTZ:
		a.needsUTC = true
	case vector.Timestamp:
	case vector.Date:
		if function == "date_part" {
			arg = a.cast(arg, vector.TypeOf(vector.Timestamp)) // as its SQL body says
		}
	default:
		fail(plan.ReasonFunction, function+"() of "+k.String())
	}
	t := vector.NumericType(scale)
	if function == "date_part" {
		t = vector.TypeOf(vector.Float8)
	}
	return a.sized(&plan.Call{Op: plan.OpExtract, Args: []plan.Expr{arg}, T: t, Field: field})
}

var truncFields = map[string]bool{"second": true, "minute": true, "hour": true, "day": true, "week": true,
	"month": true, "quarter": true, "year": true}

// dateTrunc analyses date_trunc. Of a date it is that of timestamptz, the preferred
// type of its category.
func (a *analyzer) dateTrunc(field string, v value) plan.Expr {
	if !truncFields[field] {
		fail(plan.ReasonFunction, "date_trunc("+field+")")
	}
	if v.unknown() {
		fail(plan.ReasonFunction, "date_trunc() of a constant without a type")
	}
	a.calls("date_trunc", v.kind())
	arg := v.e
	switch v.kind() {
	case vector.Timestamp:
	case vector.TimestampTZ:
		a.needsUTC = true
	case vector.Date:
		arg = a.cast(arg, vector.TypeOf(vector.TimestampTZ))
	default:
		fail(plan.ReasonFunction, "date_trunc() of "+v.kind().String())
	}
	return a.sized(&plan.Call{Op: plan.OpDateTrunc, Args: []plan.Expr{arg}, T: plainType(arg.Type()), Field: field})
}

// toMoment takes the two calls that Superset writes for constants.
func (a *analyzer) toMoment(name string, v []value) plan.Expr {
	if v[0].text == nil || v[1].text == nil {
		fail(plan.ReasonFunction, name+"()")
	}
	a.calls(name)
	text, layout := *v[0].text, *v[1].text
	m, ok := parseMoment(text)
	ok = ok && !m.Zoned
	switch {
	case name == "to_date" && layout == "YYYY-MM-DD" && len(text) == 10 && ok:
		return plan.Const{Datum: vector.Datum{Type: vector.TypeOf(vector.Date), I: m.in(vector.Date)}}
	case name == "to_timestamp" && ok && (layout == "YYYY-MM-DD" && len(text) == 10 ||
		layout == "YYYY-MM-DD HH24:MI:SS" && len(text) == 19 && text[10] == ' ' ||
		layout == "YYYY-MM-DD HH24:MI:SS.US" && len(text) == 26 && text[10] == ' '):
		a.needsUTC = true
		return plan.Const{Datum: vector.Datum{Type: vector.TypeOf(vector.TimestampTZ), I: m.in(vector.TimestampTZ)}}
	}
	fail(plan.ReasonFunction, name+"() in this form")
	return nil
}
