package pushdown

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// overRows analyses what an aggregate is given: expressions over rows, in which a column
// that is NOT NULL is never null, grouping sets or not.
func (a *analyzer) overRows(f func()) {
	if a.noAggs != "" {
		fail(plan.ReasonShape, a.noAggs)
	}
	rows := a.rows
	a.noAggs, a.rows = "aggregate inside an aggregate", true
	f()
	a.noAggs, a.rows = "", rows
}

// aggregate analyses an aggregate call and returns a reference to it.
func (a *analyzer) aggregate(fn *sqlfn.Aggregate, name string, f *pg.FuncCall, s *scope) plan.Expr {
	var agg plan.AggregateCall
	var kinds []vector.Kind
	ofCitext := false
	a.overRows(func() {
		agg, kinds = a.aggregateCall(fn, name, f, s)
		ofCitext = agg.Arg != nil && isCitext(agg.Arg.Type())
		if len(f.AggOrder) > 0 {
			a.anyOrder(agg, f, s)
		}
		if agg.Distinct = f.AggDistinct && !agg.Func.Idempotent; agg.Distinct && agg.Func == plan.Count {
			agg.Arg = a.keyOf(agg.Arg)
			agg.Arg = a.same(agg.Arg, agg.Arg.Type())
		}
		if agg.Func == plan.Count && !agg.Distinct && a.neverNull(agg.Arg) {
			agg.Func, agg.Arg = plan.CountStar, nil
		}
	})
	ofBytes := a.ofBytes(&agg)
	sum := a.sumOfFields(agg)
	if sum == nil {
		sum = a.soleExtreme(agg)
	}
	if sum == nil {
		agg.T = aggregateType(agg.Func, name, agg.Arg)
	}
	if !ofBytes && (!ofCitext || sum == nil) {
		a.calls(name, kinds...)
	}
	if f.AggDistinct && kinds != nil && !ofCitext {
		a.callsEquality(kinds[0])
	}
	if sum != nil {
		return sum
	}
	if agg.Func == plan.Sum && !agg.Distinct {
		if e := a.sumOfScales(agg); e != nil {
			return e
		}
	}
	return a.addAggregate(agg)
}

// overBytes are min() and max() of bytea, and oidsOfBytes their OIDs.
var (
	overBytes   = map[*sqlfn.Aggregate]*sqlfn.Aggregate{plan.Min: sqlfn.LeastBytes, plan.Max: sqlfn.GreatestBytes}
	oidsOfBytes = map[*sqlfn.Aggregate]uint32{sqlfn.LeastBytes: 6396, sqlfn.GreatestBytes: 6395}
)

// ofBytes makes min() and max() of bytea those that servers have from 18 on.
func (a *analyzer) ofBytes(agg *plan.AggregateCall) bool {
	f := overBytes[agg.Func]
	if f == nil || agg.Arg.Type().Kind != vector.Bytea || a.cat.ServerVersion < 180000 {
		return false
	}
	agg.Func = f
	a.addCalls([]uint32{oidsOfBytes[f]})
	return true
}

// aggregateCall analyses what an aggregate is given, over groups or a window, and returns the
// kinds of its arguments, too. The call has no type yet.
func (a *analyzer) aggregateCall(fn *sqlfn.Aggregate, name string, f *pg.FuncCall, s *scope) (agg plan.AggregateCall, kinds []vector.Kind) {
	agg.Func = fn
	switch {
	case f.AggStar:
		agg.Func = plan.CountStar
	case len(f.Args) != 1:
		fail(plan.ReasonFunction, name+"() with several arguments")
	default:
		agg.Arg = a.argument(fn, name, f.Args[0], s)
		kinds = []vector.Kind{serverKind(typed(agg.Arg))}
	}
	if f.AggFilter != nil {
		agg.Filter = a.boolean(f.AggFilter, s)
	}
	return agg, kinds
}

const orderInside = "ORDER BY inside an aggregate"

// anyOrder analyses the ORDER BY of an aggregate whose value is the same in any order, for the rights that it
// needs. Floats' sums are not, nor is the least of values that are equal and look different.
func (a *analyzer) anyOrder(agg plan.AggregateCall, f *pg.FuncCall, s *scope) {
	var w plan.Window
	subs := len(a.subselects)
	a.windowKeys(&w, &pg.WindowDef{OrderClause: f.AggOrder}, s)
	if len(a.subselects) > subs || slices.ContainsFunc(w.Order, func(o plan.Order) bool { return mayFail(o.Expr) }) {
		fail(plan.ReasonShape, orderInside)
	}
	if agg.Func == plan.Count {
		return
	}
	switch k := agg.Arg.Type().Kind; k {
	case vector.Bool, vector.Date, vector.Timestamp, vector.TimestampTZ, vector.Numeric:
	default:
		if !k.IsInt() {
			fail(plan.ReasonShape, orderInside)
		}
	}
}

// argument analyses the one argument of an aggregate.
func (a *analyzer) argument(fn *sqlfn.Aggregate, name string, n *pg.Node, s *scope) plan.Expr {
	v := a.expr(n, s)
	if v.param > 0 {
		fail(plan.ReasonParameter, "type of a parameter")
	}
	if v.unknown() && fn != plan.Count {
		fail(plan.ReasonType, name+"() of a constant without a type")
	}
	arg := a.resolve(v, vector.TypeOf(vector.Text))
	switch fn.State {
	case sqlfn.AggregateCount:
		arg = a.fixedScale(arg)
	case sqlfn.AggregateLeast, sqlfn.AggregateGreatest, sqlfn.AggregateSorted:
		if v.kind() == vector.Name && fn.State != sqlfn.AggregateSorted { // they are text's
			a.callsCast(v, vector.Text)
			arg = a.cast(arg, vector.TypeOf(vector.Text))
		}
		arg = a.collated(arg)
	}
	return arg
}

// aggKey identifies an aggregate by its function, interned operands and modifiers.
type aggKey struct {
	fn                    *sqlfn.Aggregate
	arg, filter, fraction int
	distinct, desc        bool
}

func (a *analyzer) addAggregate(agg plan.AggregateCall) plan.Expr {
	a.checkOwn(&agg)
	k := aggKey{agg.Func, a.intern.id(agg.Arg), a.intern.id(agg.Filter), a.intern.id(agg.Fraction), agg.Distinct, agg.Desc}
	i, ok := a.aggIndex[k]
	if !ok {
		i = len(a.aggs)
		a.aggs = append(a.aggs, agg)
		a.aggIndex[k] = i
	}
	return plan.Agg{Of: a.aggregation(), Index: i, T: a.aggs[i].T}
}

// aggregateType is the result type of an aggregate.
func aggregateType(fn *sqlfn.Aggregate, name string, arg plan.Expr) vector.Type {
	if fn.Star {
		return fn.Result(vector.Type{})
	}
	t := fn.Result(arg.Type())
	if t.Kind == vector.Invalid {
		fail(plan.ReasonType, name+"() of "+arg.Type().Kind.String())
	}
	return t
}

// sumOfScales takes sum(CASE WHEN c THEN x ELSE 0 END), the pivot that BI tools
// write, and sum(coalesce(x, 0)) where x has decimals and the constant has none. The
// sum then shows x's decimals only if some row contributed an x: it is planned as
//
//	CASE WHEN count(x) FILTER (c) > 0 THEN sum(x) FILTER (c)
//	     WHEN count(*) FILTER (c IS NOT TRUE) > 0 THEN 0 ELSE NULL END
//
// Adding the zeros changes nothing. It returns nil where the argument is no such thing.
func (a *analyzer) sumOfScales(agg plan.AggregateCall) plan.Expr {
	c, ok := agg.Arg.(*plan.Call)
	if !ok || !c.T.Varying() {
		return nil
	}
	isZero := func(e plan.Expr) (plan.Const, bool) {
		z, ok := e.(plan.Const)
		return z, ok && !z.Null && z.I == 0 && z.Num == (vector.Decimal{})
	}
	var x plan.Expr
	var zero plan.Const
	filter, zeros := agg.Filter, agg.Filter
	and := func(f, cond plan.Expr) plan.Expr {
		if f == nil {
			return cond
		}
		return a.call(plan.OpAnd, boolType, f, cond)
	}
	switch {
	case c.Op == plan.OpCoalesce && len(c.Args) == 2:
		x = ownScale(c.Args[0])
		zero, ok = isZero(ownScale(c.Args[1]))
	case c.Op == plan.OpCase && len(c.Args) == 3:
		x = ownScale(c.Args[1])
		zero, ok = isZero(ownScale(c.Args[2]))
		filter = and(agg.Filter, c.Args[0])
		zeros = and(agg.Filter, a.not(a.call(plan.OpIsTrue, boolType, c.Args[0])))
	default:
		return nil
	}
	if !ok || x.Type().Scale == vector.VaryingScale || zero.Datum.Type.Scale > x.Type().Scale {
		return nil
	}
	int8Type := vector.TypeOf(vector.Int8)
	none := plan.Const{Datum: vector.Int(vector.Int8, 0)}
	counted := plan.AggregateCall{Func: plan.Count, Arg: x, Filter: filter, T: int8Type}
	if a.neverNull(x) {
		counted.Func, counted.Arg = plan.CountStar, nil
	}
	some := a.call(plan.OpGt, boolType, a.addAggregate(counted), none)
	sum := a.addAggregate(plan.AggregateCall{Func: plan.Sum, Arg: x, Filter: filter, T: plainType(x.Type())})
	rows := a.addAggregate(plan.AggregateCall{Func: plan.CountStar, Filter: zeros, T: int8Type})
	t := vector.NumericType(vector.VaryingScale)
	return a.call(plan.OpCase, t, some, a.call(plan.OpCast, t, sum), a.call(plan.OpGt, boolType, rows, none),
		a.call(plan.OpCast, t, zero), plan.Const{Datum: vector.Null(t)})
}
