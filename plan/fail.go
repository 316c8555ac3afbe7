package plan

import (
	"slices"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Facts are what is known where an expression is computed: by the conditions of the CASE around it,
// of which PostgreSQL computes an arm only once its condition is true. CASE WHEN x > 0 THEN y / x END
// does not fail.
type Facts struct {
	nonzero []Expr // they are not 0, or null
}

// When returns the facts where cond is true, or where it is false or null.
func (f Facts) When(cond Expr, holds bool) Facts {
	c, ok := cond.(*Call)
	if !ok {
		return f
	}
	switch {
	case c.Op == OpAnd && holds, c.Op == OpOr && !holds:
		for _, a := range c.Args {
			f = f.When(a, holds)
		}
		return f
	case c.Op == OpIsTrue:
		return f.When(c.Args[0], holds)
	case !c.Op.IsComparison() || len(c.Args) != 2:
		return f
	}
	op, x := c.Op, c.Args[0]
	k, ok := ValueKept(c.Args[1]).(Const)
	if !ok {
		op, x = Flipped[op], c.Args[1]
		if k, ok = ValueKept(c.Args[0]).(Const); !ok {
			return f
		}
	}
	if k.Null {
		return f
	}
	sign, some := signOf(k)
	if some && op.Holds(-sign) != holds { // 0 would make it otherwise
		f.nonzero = append(slices.Clip(f.nonzero), ValueKept(x))
	}
	return f
}

// signOf returns the sign of an integer or a numeric.
func signOf(k Const) (sign int, ok bool) {
	switch t := k.Type().Kind; {
	case t.IsInt():
		return vector.Int128Of(k.I).Sign(), true
	case t == vector.Numeric:
		return k.Decimal().Unscaled.Sign(), true
	}
	return 0, false
}

// ValueKept returns what casts that keep the number are of.
func ValueKept(e Expr) Expr {
	for {
		c, ok := e.(*Call)
		if !ok || c.Op != OpCast || !KeepsValue(c) {
			return e
		}
		e = c.Args[0]
	}
}

// KeepsValue reports whether a cast, which cannot fail, yields the same number.
func KeepsValue(c *Call) bool {
	from, to := c.Args[0].Type(), c.T
	switch {
	case to.Kind == vector.Numeric:
		return to.Typmod < 0 && (from.Kind.IsInt() || from.Kind == vector.Numeric && (to.Varying() || !from.Varying() && to.Scale >= from.Scale))
	case to.Kind == vector.Int8:
		return from.Kind.IsInt()
	case to.Kind == vector.Int4:
		return from.Kind == vector.Int4 || from.Kind == vector.Int2
	}
	return false
}

// nonZero reports whether a number is null, or not 0.
func (f Facts) nonZero(e Expr) bool {
	e = ValueKept(e)
	known := func(x Expr) bool {
		if same(x, e) {
			return true
		}
		c, ok := x.(*Call) // coalesce(e, 0) <> 0
		return ok && c.Op == OpCoalesce && same(ValueKept(c.Args[0]), e)
	}
	if slices.ContainsFunc(f.nonzero, known) {
		return true
	}
	switch x := e.(type) {
	case Const:
		sign, ok := signOf(x)
		return x.Null || ok && sign != 0
	case *Call:
		switch x.Op {
		case OpMul:
			return f.nonZero(x.Args[0]) && f.nonZero(x.Args[1])
		case OpNeg, OpAbs:
			return f.nonZero(x.Args[0])
		case OpCoalesce:
			return !slices.ContainsFunc(x.Args, func(a Expr) bool { return !f.nonZero(a) })
		case OpCase: // nullif(a, 0) is one
			all := true
			f.Arms(x, func(i int, f Facts) { all = all && (i < 0 || f.nonZero(x.Args[i])) })
			return all
		}
	}
	return false
}

// Arms calls g with the places of the results of a CASE, and the facts where each is computed; and,
// with -1-i, for the condition at i.
func (f Facts) Arms(c *Call, g func(i int, f Facts)) {
	last := len(c.Args) - 1
	for i := 0; i < last; i += 2 {
		g(-1-i, f)
		g(i+1, f.When(c.Args[i], true))
		f = f.When(c.Args[i], false)
	}
	g(last, f)
}

// Guarded reports whether a CASE has an arm that would fail for rows that do not take it.
func Guarded(c *Call) (guarded bool) {
	Facts{}.Arms(c, func(i int, _ Facts) { guarded = guarded || i >= 0 && Facts{}.MayFail(c.Args[i]) })
	return guarded
}

// MayFail reports whether computing an expression can be an error.
func (f Facts) MayFail(e Expr) (may bool) {
	Walk(e, func(x Expr) bool {
		c, ok := x.(*Call)
		switch {
		case may || !ok:
		case c.Op == OpCase:
			f.Arms(c, func(i int, f Facts) {
				if i < 0 {
					i = -1 - i
				}
				may = may || f.MayFail(c.Args[i])
			})
			return false
		default:
			may = f.Fails(c)
		}
		return !may
	})
	return may
}

// Fails reports whether a call can be an error, its arguments apart.
func (f Facts) Fails(c *Call) bool {
	exact := c.T.Kind == vector.Numeric // 131,072 digits are more than values here come to
	switch c.Op {
	case OpAdd, OpSub, OpMul, OpNeg, OpAbs:
		return !exact
	case OpDiv, OpMod:
		return !exact || !f.nonZero(c.Args[1])
	case OpCast:
		from, to := c.Args[0].Type(), c.T
		toFloat := to.Kind == vector.Float8 && (from.Kind.IsInt() || from.Kind == vector.Numeric || from.Kind.IsFloat())
		return !KeepsValue(c) && !toFloat && !(to.Kind.IsText() && to.Typmod < 0) && !literalMoment(c)
	case OpFunc:
		return c.Func.Fails(c.Site())
	}
	return false
}

// literalMoment reports whether a cast is of a constant timestamp, a literal without an offset, to the moment that it
// is in some time zone.
func literalMoment(c *Call) bool {
	k, ok := c.Args[0].(Const)
	return ok && c.T.Kind == vector.TimestampTZ && k.Datum.Type.Kind == vector.Timestamp && (k.Null || sqltype.InZones(k.I))
}

// same reports whether two expressions are the same.
func same(a, b Expr) bool {
	x, ok := a.(*Call)
	if !ok {
		return a == b
	}
	y, ok := b.(*Call)
	return ok && x.Op == y.Op && x.T == y.T && x.Func == y.Func && x.Insensitive == y.Insensitive &&
		slices.EqualFunc(x.Args, y.Args, same)
}
