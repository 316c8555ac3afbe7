package olap

import (
	"strings"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

func forward(r plan.Reason, detail string) error { return &plan.Forward{Reason: r, Detail: detail} }

func failed(detail string) error { return forward(plan.ReasonEvaluation, detail) }

var (
	errDivision = failed("division by zero")
	errNumeric  = failed("numeric beyond the bits that are held")
)

// env gives the leaves of an expression their values.
type env struct {
	leaf func(plan.Expr) (vector.Value, error)
	// dicts order text of collations other than C: those of the columns that it is of.
	dicts []*dict
	// orders tells how other such text is ordered; nil: nothing does. unranked is set where it has yet to
	// be asked (settle).
	orders   *textOrders
	unranked bool
	// args are the arguments of the calls that are being computed.
	args []vector.Value
}

func (v *env) eval(e plan.Expr) (vector.Value, error) {
	switch e := e.(type) {
	case plan.Const:
		return e.Datum.Value(), nil
	case *plan.Call:
		return v.call(e)
	}
	return v.leaf(e)
}

func (v *env) call(c *plan.Call) (vector.Value, error) {
	switch c.Op {
	case plan.OpAnd, plan.OpOr:
		stop := c.Op == plan.OpOr
		result := vector.BoolValue(!stop)
		for _, a := range c.Args {
			x, err := v.eval(a)
			if err != nil {
				return vector.NullValue, err
			}
			if x.Null {
				result = vector.NullValue
			} else if (x.I != 0) == stop {
				return x, nil
			}
		}
		return result, nil
	case plan.OpCase:
		last := len(c.Args) - 1
		for i := 0; i < last; i += 2 {
			x, err := v.eval(c.Args[i])
			if err != nil {
				return vector.NullValue, err
			}
			if !x.Null && x.I != 0 {
				return v.eval(c.Args[i+1])
			}
		}
		return v.eval(c.Args[last])
	case plan.OpFunc:
		return v.function(c)
	case plan.OpCoalesce:
		for _, a := range c.Args {
			if x, err := v.eval(a); err != nil || !x.Null {
				return x, err
			}
		}
		return vector.NullValue, nil
	}
	a, err := v.eval(c.Args[0])
	if err != nil {
		return vector.NullValue, err
	}
	switch c.Op {
	case plan.OpIsNull:
		return vector.BoolValue(a.Null), nil
	case plan.OpIsNotNull:
		return vector.BoolValue(!a.Null), nil
	case plan.OpIsTrue:
		return vector.BoolValue(!a.Null && a.I != 0), nil
	case plan.OpIsFalse:
		return vector.BoolValue(!a.Null && a.I == 0), nil
	case plan.OpIn:
		return v.in(c, a)
	case plan.OpSame:
		return v.same(c, a)
	case plan.OpNot, plan.OpNeg, plan.OpAbs, plan.OpCast:
		if a.Null {
			return a, nil
		}
		return unaryScalar(c, a)
	}
	b, err := v.eval(c.Args[1])
	if err != nil {
		return vector.NullValue, err
	}
	t := c.Args[0].Type()
	if c.Op == plan.OpDistinct {
		if a.Null || b.Null {
			return vector.BoolValue(a.Null != b.Null), nil
		}
		return vector.BoolValue(!equalScalars(t, a, b)), nil
	}
	if a.Null || b.Null {
		return vector.NullValue, nil
	}
	switch c.Op {
	case plan.OpEq:
		return vector.BoolValue(equalScalars(t, a, b)), nil
	case plan.OpNe:
		return vector.BoolValue(!equalScalars(t, a, b)), nil
	case plan.OpLt, plan.OpLe, plan.OpGt, plan.OpGe:
		r, err := v.compare(t, collation(c.Args), a, b)
		return vector.BoolValue(c.Op.Holds(r)), err
	case plan.OpLike:
		if c.Insensitive {
			ok, err := ilike(a.Str, b.Str, c.Func)
			return vector.BoolValue(ok), err
		}
		ok, err := like(a.Str, b.Str)
		return vector.BoolValue(ok), err
	}
	return binaryScalar(c, a, b)
}

// same computes OpSame.
func (v *env) same(c *plan.Call, a vector.Value) (vector.Value, error) {
	if a.Null {
		return a, nil
	}
	if v.orders == nil {
		return vector.NullValue, errUnranked
	}
	s, ok := v.orders.same(c.T.Collation, a.Str)
	if !ok {
		v.unranked = true
		return vector.NullValue, errUnranked
	}
	return vector.Value{Str: s}, nil
}

func (v *env) function(c *plan.Call) (vector.Value, error) {
	base := len(v.args)
	defer func() { v.args = v.args[:base] }()
	for _, a := range c.Args {
		x, err := v.eval(a)
		if err != nil {
			return vector.NullValue, err
		}
		v.args = append(v.args, x)
	}
	return callFunction(c.Func, v.args[base:])
}

// callFunction computes a function of one row.
func callFunction(f *sqlfn.Function, args []vector.Value) (vector.Value, error) {
	r, err := f.Apply(args)
	if err != nil {
		return vector.NullValue, asForward(err)
	}
	return r, nil
}

func (v *env) in(c *plan.Call, a vector.Value) (vector.Value, error) {
	if a.Null {
		return a, nil
	}
	result := vector.BoolValue(false)
	for _, m := range c.Args[1:] {
		b, err := v.eval(m)
		switch {
		case err != nil:
			return vector.NullValue, err
		case b.Null:
			result = vector.NullValue
		case equalScalars(c.Args[0].Type(), a, b):
			return vector.BoolValue(true), nil
		}
	}
	return result, nil
}

// collation returns the collation of the first argument that has one.
func collation(args []plan.Expr) vector.Collation {
	for _, a := range args {
		if t := a.Type(); t.Kind.IsString() && t.Collation != (vector.Collation{}) {
			return t.Collation
		}
	}
	return vector.Collation{}
}

// canonical returns the form of a string under which equal values of the kind are
// equal bytes: char(n) compares without its padding.
func canonical(k vector.Kind, s string) string {
	if k == vector.BPChar {
		return strings.TrimRight(s, " ")
	}
	return s
}

func equalScalars(t vector.Type, a, b vector.Value) bool {
	if t.Kind.IsString() {
		return canonical(t.Kind, a.Str) == canonical(t.Kind, b.Str)
	}
	return compareBits(t, a, b) == 0
}

func (v *env) compare(t vector.Type, c vector.Collation, a, b vector.Value) (int, error) {
	if !t.Kind.IsString() {
		return compareBits(t, a, b), nil
	}
	if c.C {
		return strings.Compare(canonical(t.Kind, a.Str), canonical(t.Kind, b.Str)), nil
	}
	for _, d := range v.dicts {
		if r, ok := d.compare(t.Kind, c, a.Str, b.Str); ok {
			return r, nil
		}
	}
	if v.orders != nil {
		if r, ok := v.orders.compare(c, canonical(t.Kind, a.Str), canonical(t.Kind, b.Str)); ok {
			return r, nil
		}
		v.unranked = true
	}
	return 0, errUnranked
}

func compareBits(t vector.Type, a, b vector.Value) int {
	if t.Kind == vector.Numeric {
		return compareDecimals(a.Num, b.Num)
	}
	x, y := a.I, b.I
	if t.Kind.IsFloat() {
		x, y = vector.FloatKey(x), vector.FloatKey(y)
	}
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func compareDecimals(a, b vector.Decimal) int {
	if a.Scale == b.Scale {
		return a.Unscaled.Cmp(b.Unscaled)
	}
	scale := max(a.Scale, b.Scale)
	if p, ok := a.Rescale(scale); ok {
		if q, ok := b.Rescale(scale); ok {
			return p.Unscaled.Cmp(q.Unscaled)
		}
	}
	return compareBig(a, b)
}

// compareBig is compareDecimals for numbers of any size.
func compareBig(a, b vector.Decimal) int {
	x, y := a.Unscaled.Big(), b.Unscaled.Big()
	if a.Scale < b.Scale {
		x.Mul(x, vector.BigPow10(int(b.Scale-a.Scale)))
	} else {
		y.Mul(y, vector.BigPow10(int(a.Scale-b.Scale)))
	}
	return x.Cmp(y)
}
