package olap

import (
	"math"

	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// retyped is a node of the same bits as another type.
func retyped(a *node, t vector.Type) *node {
	b := *a
	b.t = t
	if b.dict != nil {
		d := *b.dict
		d.t = t
		b.dict = &d
	}
	return &b
}

func (c *compiler) cast(n *node, e *plan.Call) (*node, error) {
	a := n.args[0]
	f, t := a.t.Kind, e.T.Kind
	if !castable(e.Args[0].Type(), e.T) {
		return nil, forward(plan.ReasonType, "cast from "+f.String()+" to "+t.String())
	}
	lo, hi, _ := kindRange(t)
	switch {
	case a.t.Varying() && e.T.Varying() && e.T.Typmod < 0:
		return retyped(a, e.T), nil
	case a.t.Varying() || e.T.Varying():
		return c.treeCall(e, n.args)
	case t.IsText() && f == vector.BPChar && t != vector.BPChar:
		if a.dict.grows() {
			return c.treeCall(e, n.args)
		}
		return c.derive(a, e.T, func(s string) string { return canonical(vector.BPChar, s) }), nil
	case t.IsText() && f.HeldAsText():
		if a.dict.grows() && f != t && t == vector.BPChar {
			return nil, errPadding
		}
		return retyped(a, e.T), nil
	case t.IsText():
		if c.fewValues(a) {
			return c.tabulateOver(a, e.T, func(v vector.Value) (vector.Value, error) {
				if v.Null {
					return v, nil
				}
				return castScalar(v, a.t, e.T)
			})
		}
		return c.treeCall(e, n.args)
	case f.IsText():
		if a.dict.grows() {
			return c.treeCall(e, n.args)
		}
		return c.tabulateOver(a, e.T, func(v vector.Value) (vector.Value, error) {
			if v.Null {
				return v, nil
			}
			return castScalar(v, a.t, e.T)
		})
	case f.IsFloat() && t.IsInt():
		n.kind, n.risky, n.lo, n.hi = nodeMap, true, lo, hi
		n.f = func(v int64) (int64, error) { return floatToInt(v, t) }
		return c.add(n), nil
	case f.IsFloat() && t == vector.Float8, f == vector.Bool && t.IsInt(), f == t && f != vector.Numeric,
		f.IsInt() && t.IsInt() && lo <= a.lo && a.hi <= hi,
		(f == vector.Timestamp || f == vector.TimestampTZ) && t != vector.Date && lo <= a.lo && a.hi <= hi:
		return retyped(a, e.T), nil
	case t == vector.Numeric && e.T.Typmod < 0:
		scale := int16(0)
		if f == vector.Numeric {
			scale = a.t.Scale
		}
		if d := e.T.Scale - scale; d >= 0 && d <= 18 {
			return c.scaled(a, vector.Pow10(int(d)), e.T)
		}
	case f == vector.Date && (t == vector.Timestamp || t == vector.TimestampTZ) && a.lo != math.MinInt32 && a.hi != math.MaxInt32:
		return c.scaled(a, sqltype.MicrosPerDay, e.T)
	case t == vector.Date && f != vector.Date:
		n.kind = nodeMap
		n.f = func(v int64) (int64, error) { return castTime(v, f, t) }
		n.lo, _ = castTime(a.lo, f, t)
		n.hi, _ = castTime(a.hi, f, t)
		return c.add(n), nil
	}
	return c.scalarNode(n, e)
}

// typed is an expression of which only the type matters.
type typed struct{ t vector.Type }

// Type implements plan.Expr.
func (x typed) Type() vector.Type { return x.t }
