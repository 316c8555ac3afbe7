package pushdown

import (
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/sqlfn"
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
	if setFunctions[name] {
		return a.setTarget(name, f, s)
	}
	switch {
	case f.Over != nil:
		return a.window(name, f, s)
	case f.FuncVariadic:
		fail(plan.ReasonFunction, "VARIADIC")
	case f.AggWithinGroup && slices.Contains(sqlfn.Mode.Names, name):
		return a.mode(name, f, s)
	case f.AggWithinGroup:
		return a.percentile(name, f, s)
	case slices.Contains(sqlfn.StringAgg.Names, name):
		return a.stringAgg(name, f, s)
	case slices.Contains(sqlfn.ArrayAgg.Names, name):
		return a.arrayAgg(name, f, s)
	case name == "jsonb_agg":
		return a.jsonbAgg(name, f, s)
	}
	if fn := sqlfn.AggregateNamed(name); fn != nil && !fn.OrderedSet() {
		return a.aggregate(fn, name, f, s)
	}
	if len(f.AggOrder) > 0 {
		fail(plan.ReasonShape, orderInside)
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
	case "date_bin":
		return a.dateBin(f, s)
	case "extract", "date_part":
		if e, ok := a.ageField(name, f, s); ok {
			return e
		}
	}
	switch name {
	case "date":
		return a.dateOf(args(1)[0])
	case "concat":
		return a.concat(args(len(f.Args)))
	case "concat_ws":
		return a.concatWS(args(len(f.Args)))
	case "format":
		return a.format(args(len(f.Args)))
	case "num_nulls", "num_nonnulls":
		return a.countNulls(name, args(len(f.Args)))
	case "cardinality", "array_length":
		return a.arraySize(name, args(len(f.Args)))
	case "array_lower", "array_upper", "array_ndims", "array_dims", "array_position", "array_positions", "array_remove", "array_to_string",
		"array_append", "array_prepend", "array_cat", "array_replace", "trim_array":
		return a.callArray(name, args(len(f.Args)))
	case "jsonb_extract_path", "jsonb_extract_path_text", "json_extract_path", "json_extract_path_text":
		return a.jsonbExtract(name, args(len(f.Args)))
	case "to_jsonb":
		return a.toJSONB(name, args(1)[0])
	case "jsonb_build_array", "jsonb_build_object":
		return a.buildJSONB(name, args(len(f.Args)))
	case "regexp_like":
		return a.regexpLike(args(len(f.Args)))
	case "abs":
		return a.abs(args(1)[0])
	case "mod":
		v := args(2)
		exact := func(k vector.Kind) bool { return k.IsInt() || k == vector.Numeric }
		if !exact(v[0].kind()) || !exact(v[1].kind()) {
			fail(plan.ReasonFunction, "mod() of other than integers and numerics")
		}
		a.calls(name, v[0].kind(), v[1].kind())
		if v[0].kind().IsInt() && v[1].kind().IsInt() {
			return a.intArith(plan.OpMod, v[0].e, v[1].e)
		}
		return a.numericArith(plan.OpMod, a.toNumeric(v[0].e), a.toNumeric(v[1].e))
	}
	if sqlfn.Named(name) == nil {
		fail(plan.ReasonFunction, name+"()")
	}
	return a.tableFunction(name, args(len(f.Args)))
}

// tableFunction analyses a call of a function of package sqlfn.
func (a *analyzer) tableFunction(name string, vals []value) plan.Expr {
	vals = a.asTexts(name, vals)
	kinds := make([]vector.Kind, len(vals))
	for i, v := range vals {
		kinds[i] = v.kind()
	}
	if e, ok := a.intervalPart(name, vals); ok {
		return e
	}
	key := builtinKey(name, kinds)
	var f *sqlfn.Function
	for _, oid := range builtins[key] {
		if g := sqlfn.ByOID(oid); g != nil && g.Name == name && len(g.Args) == len(vals) { // it may call others of its name
			f = g
		}
	}
	if f == nil {
		fail(plan.ReasonFunction, key)
	}
	a.calls(name, kinds...)
	return a.callOf(f, vals)
}

// callOf calls f, whose rights are noted.
func (a *analyzer) callOf(f *sqlfn.Function, vals []value) plan.Expr {
	name := f.Name
	for _, p := range f.Args {
		if a.cat.OtherEncoding && (p.Kind.IsText() && p.Constants == nil || f.OID == sqlfn.OIDChr) {
			fail(plan.ReasonCollation, "text in a database whose encoding is not UTF8")
		}
	}
	c := &plan.Call{Op: plan.OpFunc, Func: f, Args: make([]plan.Expr, len(vals))}
	constant := true
	for i, v := range vals {
		p := &f.Args[i]
		e := a.ofFunction(v, vector.TypeOf(p.Kind))
		k, isConst := e.(plan.Const)
		if p.Constants != nil {
			if !isConst || k.Null {
				fail(plan.ReasonFunction, name+"() with argument "+strconv.Itoa(i+1)+" that is not constant")
			} else if !p.Takes(k.Str) {
				fail(plan.ReasonFunction, name+"("+k.Str+")")
			}
		}
		constant = constant && isConst
		c.Args[i] = e
	}
	a.zoneOf(f, c, constant)
	if len(f.Args) == 1 && (f.Args[0].Kind == vector.Money) != (f.Result == vector.Money) {
		a.needsMonetary = a.needsMonetary || f != sqlfn.MoneyCents // how many decimals an amount has depends on lc_monetary
	}
	site := c.Site()
	var coll vector.Collation
	for _, e := range c.Args { // where two conflict, strpos() fails in the server
		if k := e.Type().Kind; k.IsArray() && k.Element().IsText() && f.Result.IsText() {
			coll = mergeCollations(coll, a.elementCollation(e.Type()))
		} else if !k.IsBytes() && !k.IsArray() && k != vector.Opaque { // which have none there
			coll = mergeCollations(coll, e.Type().Collation)
		}
	}
	if c.T = f.ResultType(site); c.T.Kind.IsText() {
		c.T.Collation = coll
	}
	if f.InASCII != nil {
		c.Func = a.cased(f, coll)
	}
	if constant {
		if folded, ok := fold(c.Func, site, c.T); ok {
			return folded
		}
	}
	return a.sized(c)
}

// ofFunction gives a function's argument the type that it takes. A numeric keeps its scale.
func (a *analyzer) ofFunction(v value, t vector.Type) plan.Expr {
	e := a.resolve(v, t)
	if t.Kind == vector.Opaque { // of which the function says more
		return e
	}
	if t.Kind != vector.Numeric {
		return a.cast(e, t)
	}
	noNumericParam(e)
	return a.toNumeric(e)
}

// fold computes a call whose arguments are constant. ok is false where that fails: an error
// is the server's to report.
func fold(f *sqlfn.Function, site sqlfn.Call, t vector.Type) (plan.Const, bool) {
	args := make([]vector.Value, len(site.Args))
	for i, a := range site.Args {
		args[i] = *a.Const
	}
	v, err := f.Apply(args)
	return plan.Const{Datum: v.Datum(t)}, err == nil
}

func (a *analyzer) abs(v value) plan.Expr {
	if k := v.kind(); !isNumber(k) {
		fail(plan.ReasonFunction, "abs() of "+k.String())
	}
	a.calls("abs", v.kind())
	return a.call(plan.OpAbs, plainType(v.e.Type()), v.e)
}

// OIDs of num_nulls() and num_nonnulls().
var oidsCountNulls = map[string]uint32{"num_nulls": 438, "num_nonnulls": 440}

// countNulls analyses functions that count which of their arguments are null, or are not.
func (a *analyzer) countNulls(name string, vals []value) plan.Expr {
	if len(vals) == 0 {
		fail(plan.ReasonFunction, name+"()")
	}
	op := plan.OpIsNull
	if name == "num_nonnulls" {
		op = plan.OpIsNotNull
	}
	a.addCalls([]uint32{oidsCountNulls[name]})
	integer := vector.TypeOf(vector.Int4)
	var sum plan.Expr
	for _, v := range vals {
		if v.param > 0 {
			fail(plan.ReasonParameter, "type of a parameter tested for NULL")
		}
		test := a.call(op, boolType, a.fixedScale(a.resolve(v, vector.TypeOf(vector.Text))))
		one := a.call(plan.OpCase, integer, test, plan.Const{Datum: vector.Int(vector.Int4, 1)}, plan.Const{Datum: vector.Int(vector.Int4, 0)})
		if sum == nil {
			sum = one
		} else {
			sum = a.call(plan.OpAdd, integer, sum, one)
		}
	}
	return sum
}

// The functions of casts to a date in pg_proc.
const (
	oidDateOfTimestamp = 2029
	oidDateOfTZ        = 1178
)

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
