package olap

import (
	"math"

	"pgaccel/plan"
	"pgaccel/vector"
)

func (c *compiler) cast(n *node, e *plan.Call) (*node, error) {
	a := n.args[0]
	f, t := a.t.Kind, e.T.Kind
	if !castable(e.Args[0].Type(), e.T) {
		return nil, forward(plan.ReasonType, "cast from "+f.String()+" to "+t.String())
	}
	retyped := func() (*node, error) { // the same bits
		b := *a
		b.t = e.T
		if b.dict != nil {
			d := *b.dict
			d.t = e.T
			b.dict = &d
		}
		return &b, nil
	}
	lo, hi, _ := kindRange(t)
	switch {
	case t.IsText() && f == vector.BPChar && t != vector.BPChar:
		return c.derive(a, e.T, func(s string) string { return canonical(vector.BPChar, s) }), nil
	case t.IsText() && f.IsText():
		return retyped()
	case t.IsText():
		return nil, forward(plan.ReasonFunction, "text of numbers only over groups")
	case f.IsFloat() && t == vector.Float8, f == vector.Bool && t.IsInt(), f == t && f != vector.Numeric,
		f.IsInt() && t.IsInt() && lo <= a.lo && a.hi <= hi,
		(f == vector.Timestamp || f == vector.TimestampTZ) && t != vector.Date && lo <= a.lo && a.hi <= hi:
		return retyped()
	case t == vector.Numeric && e.T.Typmod < 0 && e.T.Scale != vector.VaryingScale:
		scale := int16(0)
		if f == vector.Numeric {
			scale = a.t.Scale
		}
		if d := e.T.Scale - scale; d >= 0 && d <= 18 {
			return c.scaled(a, vector.Pow10(int(d)), e.T)
		}
	case f == vector.Date && (t == vector.Timestamp || t == vector.TimestampTZ) && a.lo != math.MinInt32 && a.hi != math.MaxInt32:
		return c.scaled(a, dayMicros, e.T)
	case t == vector.Date && f != vector.Date:
		n.kind = nodeMap
		n.f = func(v int64) (int64, error) { return castTime(v, f, t) }
		n.lo, _ = castTime(a.lo, f, t)
		n.hi, _ = castTime(a.hi, f, t)
		return c.add(n), nil
	}
	return c.scalarNode(n, e)
}

func (c *compiler) calendar(n *node, e *plan.Call) (*node, error) {
	a := n.args[0]
	k := a.t.Kind
	n.kind = nodeMap
	if k == vector.Timestamp || k == vector.TimestampTZ {
		n.unit = e.Field
		if e.Op == plan.OpExtract {
			n.unit = unitOf(e.Field)
		}
	}
	finite := !infinite(k, a.lo) && !infinite(k, a.hi)
	n.risky = n.risky || !finite
	if _, hi, ok := kindRange(k); ok && e.Op == plan.OpDateTrunc {
		n.risky = n.risky || a.hi > hi
	}
	if e.Op == plan.OpDateTrunc {
		if !truncates(e.Field) || k != vector.Timestamp && k != vector.TimestampTZ {
			return nil, forward(plan.ReasonFunction, "date_trunc "+e.Field)
		}
		n.f = func(v int64) (int64, error) { return dateTrunc(e.Field, k, v) }
	} else {
		scale, ok := extractScale(e.Field, k)
		if !ok || e.T.Kind == vector.Numeric && e.T.Scale != vector.VaryingScale && e.T.Scale != scale {
			return nil, forward(plan.ReasonFunction, "extract "+e.Field)
		}
		if e.T.Kind == vector.Float8 {
			return c.scalarNode(n, e)
		}
		n.f = func(v int64) (int64, error) { return extract(e.Field, k, v) }
		n.t = vector.NumericType(scale)
	}
	n.lo, n.hi = calendarBounds(e, k)
	if n.lo > n.hi { // monotone: the ends' images
		var err1, err2 error
		n.lo, err1 = n.f(a.lo)
		n.hi, err2 = n.f(a.hi)
		if err1 != nil || err2 != nil {
			n.lo, n.hi, n.risky = math.MinInt64, math.MaxInt64, true
		}
	}
	return c.add(n), nil
}

// typed is an expression of which only the type matters.
type typed struct{ t vector.Type }

// Type implements plan.Expr.
func (x typed) Type() vector.Type { return x.t }

// calendarBounds returns the bounds of periodic fields; lo > hi for monotone ones.
func calendarBounds(e *plan.Call, k vector.Kind) (lo, hi int64) {
	if e.Op == plan.OpDateTrunc {
		return 1, 0
	}
	switch e.Field {
	case "quarter":
		return 1, 4
	case "month":
		return 1, 12
	case "day":
		return 1, 31
	case "dow":
		return 0, 6
	case "isodow":
		return 1, 7
	case "doy":
		return 1, 366
	case "week":
		return 1, 53
	case "hour":
		return 0, 24 // time '24:00' is valid
	case "minute":
		return 0, 59
	case "second":
		return 0, minuteMicros - 1
	}
	return 1, 0
}
