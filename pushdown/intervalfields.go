package pushdown

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Intervals of any fields are of the opaque type (sqltype.OpaqueIntervalType): those of columns that hold such, and what is computed of
// intervals, whose time may be of more than a day, or of another sign than the days. They are compared and ordered by
// sqlfn.IntervalKey (spelling.go).

// isInterval reports whether v is an interval of either type.
func isInterval(v value) bool {
	return v.kind() == vector.Interval || v.kind() == vector.Opaque && sqltype.IsOpaqueInterval(v.e.Type())
}

// serverKind is the kind that a value has in the server.
func serverKind(v value) vector.Kind {
	if isInterval(v) {
		return vector.Interval
	}
	return v.kind()
}

// opaqueInterval is an interval as one of the opaque type.
func (a *analyzer) opaqueInterval(v value) value {
	if v.kind() == vector.Interval {
		return typed(a.callOf(sqlfn.IntervalOf, []value{v}))
	}
	return v
}

// wholeConst makes a constant one of vector.Interval where it can be.
func wholeConst(e plan.Expr) plan.Expr {
	if c, ok := e.(plan.Const); ok && !c.Null && sqltype.IsOpaqueInterval(c.Datum.Type) {
		if v, whole := sqltype.WholeInterval(sqltype.IntervalFields(c.Str)); whole {
			return plan.Const{Datum: vector.Int(vector.Interval, v)}
		}
	}
	return e
}

// intervalKey is what an interval is compared by.
func (a *analyzer) intervalKey(v value) plan.Expr {
	if v.kind() == vector.Interval {
		return a.callOf(sqlfn.IntervalWordKey, []value{v})
	}
	return a.callOf(sqlfn.IntervalKey, []value{v})
}

// spanOperand analyses an operand n of x, which may be a constant interval of any fields: not beside constants, where the server
// computes x once.
func (a *analyzer) spanOperand(x *pg.A_Expr, n *pg.Node, s *scope) value {
	if v, ok := intervalConst(n); ok && !overNoRows(&pg.Node{Node: &pg.Node_AExpr{AExpr: x}}) {
		if _, whole := sqltype.WholeInterval(v.Months, v.Days, v.Micros); !whole {
			if raw, ok := sqltype.OpaqueInterval(v.Months, v.Days, v.Micros); ok {
				return typed(plan.Const{Datum: vector.Datum{Type: sqltype.OpaqueIntervalType, Str: raw}})
			}
		}
	}
	return a.expr(n, s)
}

// intervalArith is arithmetic with an interval; ok is false where there is none, or it is another thing. An open operand is an
// interval beside + and -, and a number beside * and / (func_select_candidate in parse_func.c).
func (a *analyzer) intervalArith(op plan.Op, l, r value) (e plan.Expr, ok bool) {
	if !isInterval(l) && !isInterval(r) {
		return nil, false
	}
	open := vector.TypeOf(vector.Interval)
	if op == plan.OpMul || op == plan.OpDiv {
		open = vector.TypeOf(vector.Float8)
	}
	l, r = typed(a.resolve(l, open)), typed(a.resolve(r, open))
	call := func(f *sqlfn.Function, args ...value) (plan.Expr, bool) {
		a.calls(operatorSymbol[op], serverKind(l), serverKind(r))
		return wholeConst(a.callOf(f, args)), true
	}
	number := func(v value) value {
		return typed(a.cast(v.e, vector.TypeOf(vector.Float8)))
	}
	switch {
	case isInterval(l) && isInterval(r) && op == plan.OpAdd:
		return call(sqlfn.IntervalPlus, a.opaqueInterval(l), a.opaqueInterval(r))
	case isInterval(l) && isInterval(r) && op == plan.OpSub:
		return call(sqlfn.IntervalMinus, a.opaqueInterval(l), a.opaqueInterval(r))
	case isInterval(l) && isNumber(r.kind()) && op == plan.OpMul:
		return call(sqlfn.IntervalTimesFloat, a.opaqueInterval(l), number(r))
	case isNumber(l.kind()) && isInterval(r) && op == plan.OpMul:
		return call(sqlfn.IntervalTimesFloat, a.opaqueInterval(r), number(l))
	case isInterval(l) && isNumber(r.kind()) && op == plan.OpDiv:
		return call(sqlfn.IntervalOverFloat, a.opaqueInterval(l), number(r))
	case l.kind() == vector.Opaque && isMoment(r.kind()) && op == plan.OpAdd:
		a.calls("+", r.kind(), vector.Interval)
		return call(a.momentPlus(r.kind()), a.timestampOf(r), l)
	case isMoment(l.kind()) && r.kind() == vector.Opaque && op == plan.OpAdd:
		return call(a.momentPlus(l.kind()), a.timestampOf(l), r)
	case isMoment(l.kind()) && r.kind() == vector.Opaque && op == plan.OpSub:
		return call(a.momentPlus(l.kind()), a.timestampOf(l), typed(a.callOf(sqlfn.IntervalNegated, []value{r})))
	}
	return nil, false
}

func (a *analyzer) momentPlus(k vector.Kind) *sqlfn.Function {
	if k == vector.TimestampTZ {
		return sqlfn.TimestampTZPlus
	}
	return sqlfn.TimestampPlus
}

// timestampOf makes a timestamp of a date.
func (a *analyzer) timestampOf(v value) value {
	if v.kind() == vector.Date {
		return typed(a.cast(v.e, vector.TypeOf(vector.Timestamp)))
	}
	return v
}

// asSpan makes an interval that is constant one that compares as it does (spanConst).
func asSpan(v value) value {
	if c, ok := v.e.(plan.Const); ok && !c.Null && sqltype.IsOpaqueInterval(c.Datum.Type) {
		months, days, micros := sqltype.IntervalFields(c.Str)
		if span, ok := sqltype.IntervalSpan(months, days, micros); ok {
			return typed(plan.Const{Datum: vector.Int(vector.Interval, span)})
		}
	}
	return v
}

// intervalPart is a field of an interval of any fields; ok is false for other calls.
func (a *analyzer) intervalPart(name string, vals []value) (e plan.Expr, ok bool) {
	if len(vals) != 2 || vals[1].kind() != vector.Opaque || !isInterval(vals[1]) {
		return nil, false
	}
	switch name {
	case "extract":
		a.calls(name, vals[0].kind(), vector.Interval)
		return a.callOf(sqlfn.IntervalExtract, vals), true
	case "date_part":
		a.calls(name, vals[0].kind(), vector.Interval)
		return a.callOf(sqlfn.IntervalPart, vals), true
	}
	return nil, false
}

// sumOfFields is a sum of money, or a sum or an average of intervals, over groups: of sums of the fields, each with that of their
// sizes. nil for other aggregates.
func (a *analyzer) sumOfFields(agg plan.AggregateCall) plan.Expr {
	if agg.Arg == nil || agg.Distinct || agg.Func != plan.Sum && agg.Func != plan.Avg {
		return nil
	}
	arg := typed(agg.Arg)
	int8Type := vector.TypeOf(vector.Int8)
	var sums []value
	add := func(f *sqlfn.Function) {
		field := typed(a.callOf(f, []value{arg}))
		size := sqlfn.SizeOfInt8
		if field.kind() == vector.Int4 {
			size = sqlfn.SizeOfInt4
		}
		for _, e := range []plan.Expr{field.e, a.callOf(size, []value{field})} {
			sums = append(sums, typed(a.addAggregate(plan.AggregateCall{Func: sqlfn.FieldSum, Arg: e, Filter: agg.Filter, T: int8Type})))
		}
	}
	switch {
	case arg.kind() == vector.Money && agg.Func == plan.Sum:
		add(sqlfn.MoneyCents)
		return a.callOf(sqlfn.MoneySum, sums)
	case !isInterval(arg):
		return nil
	case arg.kind() == vector.Interval:
		none := typed(plan.Const{Datum: vector.Int(vector.Int8, 0)})
		sums = append(sums, none, none)
		add(sqlfn.IntervalWordDays)
		add(sqlfn.IntervalWordMicros)
	default:
		add(sqlfn.IntervalMonths)
		add(sqlfn.IntervalDays)
		add(sqlfn.IntervalMicros)
	}
	if agg.Func == plan.Sum {
		return a.callOf(sqlfn.IntervalSum, sums)
	}
	counted := plan.AggregateCall{Func: plan.Count, Arg: agg.Arg, Filter: agg.Filter, T: int8Type}
	if a.neverNull(agg.Arg) {
		counted.Func, counted.Arg = plan.CountStar, nil
	}
	return a.callOf(sqlfn.IntervalMean, append(sums, typed(a.addAggregate(counted))))
}
