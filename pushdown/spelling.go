package pushdown

import (
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Values of opaque types that have a key, by which they are compared: intervals of any fields, and citext. Equal ones may print apart. A
// group by such a value is one by its key, and shows the value where all of the group are spelled alike (sqlfn.Sole); else the
// statement is forwarded, once groups are there.

// hasEqualityKey reports whether values of the type are compared by a key.
func hasEqualityKey(t vector.Type) bool { return sqltype.IsOpaqueInterval(t) || isCitext(t) }

func valueHasEqualityKey(v value) bool { return !v.unknown() && hasEqualityKey(v.e.Type()) }

// keyOf is what a value of such a type is compared by; other values are as they are.
func (a *analyzer) keyOf(e plan.Expr) plan.Expr {
	switch t := e.Type(); {
	case sqltype.IsOpaqueInterval(t):
		return a.intervalKey(typed(e))
	case isCitext(t):
		return a.citextKey(e)
	}
	return e
}

// keys are those of two values that are compared, where one of them has a key. ok is false where none has, or they are of two types.
func (a *analyzer) keys(op plan.Op, l, r value) (x, y plan.Expr, ok bool) {
	if l.kind() != vector.Opaque && r.kind() != vector.Opaque {
		return nil, nil, false
	}
	switch {
	case isInterval(l) || isInterval(r):
		interval := vector.TypeOf(vector.Interval)
		l, r = asSpan(typed(a.resolveBeside(l, interval))), asSpan(typed(a.resolveBeside(r, interval)))
		if !isInterval(l) || !isInterval(r) {
			return nil, nil, false
		}
		a.callsOperator(operatorSymbol[op], vector.Interval, vector.Interval)
		if l.kind() == vector.Interval && r.kind() == vector.Interval {
			return l.e, r.e, true
		}
		return a.intervalKey(l), a.intervalKey(r), true
	case isCitextValue(l) && (r.unknown() || isCitextValue(r)):
		r = a.asCitext(r, l.e.Type())
	case isCitextValue(r) && l.unknown():
		l = a.asCitext(l, r.e.Type())
	default:
		return nil, nil, false
	}
	if !sameOfMany(l.e.Type(), r.e.Type()) {
		return nil, nil, false
	}
	return a.citextKey(l.e), a.citextKey(r.e), true
}

// callsEqualityOf is callsEquality of an expression's values.
func (a *analyzer) callsEqualityOf(e plan.Expr) {
	switch t := e.Type(); {
	case sqltype.IsOpaqueInterval(t):
		a.callsEquality(vector.Interval)
	case isCitext(t):
		a.citextOperators(t, citextComparisons)
	default:
		a.callsEquality(t.Kind)
	}
}

// sole is the one spelling that all of a group have whose key is that of e.
func (a *analyzer) sole(e plan.Expr) plan.Expr {
	extreme := func(f *sqlfn.Aggregate) value {
		spelling := a.callOf(sqlfn.Spelling, []value{typed(e)})
		return typed(a.addAggregate(plan.AggregateCall{Func: f, Arg: spelling, T: spelling.Type()}))
	}
	return a.callOf(sqlfn.Sole(e.Type()), []value{extreme(sqlfn.LeastBytes), extreme(sqlfn.GreatestBytes)})
}

// soleExtreme is min() or max() of a value with a key: the value that is that, where all that are equal to it are spelled alike.
// nil for other aggregates.
func (a *analyzer) soleExtreme(agg plan.AggregateCall) plan.Expr {
	over := overBytes[agg.Func]
	if over == nil || !hasEqualityKey(agg.Arg.Type()) {
		return nil
	}
	t := agg.Arg.Type()
	key := a.keyOf(agg.Arg)
	if isCitext(t) {
		if !key.Type().Collation.C {
			fail(plan.ReasonCollation, "min() or max() of citext in another order than that of bytes")
		}
		a.citextAggregate(t, agg.Func)
		key = a.callOf(sqlfn.TextBytes, []value{typed(key)})
	}
	extreme := func(f *sqlfn.Function) value {
		arg := a.callOf(f, []value{typed(key), typed(agg.Arg)})
		return typed(a.addAggregate(plan.AggregateCall{Func: over, Arg: arg, Filter: agg.Filter, T: arg.Type()}))
	}
	return a.callOf(sqlfn.SoleExtreme(t), []value{extreme(sqlfn.FirstSpelling), extreme(sqlfn.LastSpelling)})
}
