package oracle

import (
	"math"
	"math/big"
	"strings"
	"unicode/utf8"

	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

func (r *run) eval(e plan.Expr) (value, error) {
	switch e := e.(type) {
	case plan.Column:
		if row := r.current.tables[e.Table]; row != nil {
			return fromDatum(row[e.Column]), nil
		}
		return null, nil
	case plan.Output:
		if values := r.current.outputs[e.Of]; values != nil {
			return values[e.Index], nil
		}
		return null, nil
	case plan.Const:
		return fromDatum(e.Datum), nil
	case plan.Key:
		if g := r.current.groups[e.Of]; g != nil {
			return g.keys[e.Index], nil
		}
		return null, nil
	case plan.Agg:
		if g := r.current.groups[e.Of]; g != nil {
			return g.aggs[e.Index], nil
		}
		return null, nil
	case *plan.Grouping:
		g := r.current.groups[e.Of]
		if g == nil {
			return null, nil
		}
		n := int64(0)
		for _, k := range e.Keys {
			n <<= 1
			if !has(g.set, k) {
				n |= 1
			}
		}
		return value{i: n}, nil
	case *plan.Call:
		return r.call(e)
	}
	panic("BUG: an expression that is not bound")
}

// isTrue evaluates a condition; null counts as false.
func (r *run) isTrue(e plan.Expr) (bool, error) {
	v, err := r.eval(e)
	return !v.null && v.i != 0, err
}

func (r *run) call(c *plan.Call) (value, error) {
	switch c.Op {
	case plan.OpAnd, plan.OpOr:
		return r.logic(c)
	case plan.OpCase:
		for i := 0; i+1 < len(c.Args); i += 2 {
			hit, err := r.isTrue(c.Args[i])
			if err != nil {
				return null, err
			}
			if hit {
				return r.eval(c.Args[i+1])
			}
		}
		return r.eval(c.Args[len(c.Args)-1])
	case plan.OpCoalesce:
		for _, a := range c.Args {
			if v, err := r.eval(a); err != nil || !v.null {
				return v, err
			}
		}
		return null, nil
	case plan.OpIn:
		return r.in(c)
	case plan.OpFunc:
		return r.function(c)
	}
	var few [3]value // most calls have no more: no memory is taken for these
	args := few[:0]
	if len(c.Args) > len(few) {
		args = make([]value, 0, len(c.Args))
	}
	args = args[:len(c.Args)]
	anyNull := false
	for i, a := range c.Args {
		var err error
		if args[i], err = r.eval(a); err != nil {
			return null, err
		}
		anyNull = anyNull || args[i].null
	}
	a := args[0]
	switch c.Op {
	case plan.OpIsNull:
		return ofBool(a.null), nil
	case plan.OpIsNotNull:
		return ofBool(!a.null), nil
	case plan.OpIsTrue:
		return ofBool(!a.null && a.i != 0), nil
	case plan.OpIsFalse:
		return ofBool(!a.null && a.i == 0), nil
	case plan.OpDistinct:
		if anyNull {
			return ofBool(a.null != args[1].null), nil
		}
		return ofBool(!equal(c.Args[0].Type(), a, args[1])), nil
	}
	if anyNull {
		return null, nil
	}
	switch c.Op {
	case plan.OpNot:
		return ofBool(a.i == 0), nil
	case plan.OpEq:
		return ofBool(equal(c.Args[0].Type(), a, args[1])), nil
	case plan.OpNe:
		return ofBool(!equal(c.Args[0].Type(), a, args[1])), nil
	case plan.OpLt, plan.OpLe, plan.OpGt, plan.OpGe:
		sign, err := compare(c.Args[0].Type(), collationOf(c.Args), a, args[1], r.less)
		return ofBool(c.Op == plan.OpLt && sign < 0 || c.Op == plan.OpLe && sign <= 0 ||
			c.Op == plan.OpGt && sign > 0 || c.Op == plan.OpGe && sign >= 0), err
	case plan.OpLike:
		ok, err := like(a.s, args[1].s, c)
		return ofBool(ok), err
	case plan.OpSame:
		return null, forward(plan.ReasonCollation, "equal texts, which the server tells")
	case plan.OpCast:
		return cast(a, c.Args[0].Type(), c.T)
	}
	return arithmetic(c, args)
}

// function calls a function of package sqlfn by its row-wise form, which is compared with
// PostgreSQL there.
func (r *run) function(c *plan.Call) (value, error) {
	args := make([]vector.Value, len(c.Args))
	for i, a := range c.Args {
		v, err := r.eval(a)
		if err != nil {
			return null, err
		}
		if args[i] = (vector.Value{Null: v.null, I: v.i, Str: v.s}); v.num != nil {
			n, ok := vector.Int128FromBig(v.num)
			if !ok {
				return null, failed("numeric beyond 128 bits")
			}
			args[i].Num = vector.Decimal{Unscaled: n, Scale: v.scale}
		}
	}
	v, err := c.Func.Apply(args)
	if err != nil {
		return null, failed(err.Error())
	}
	return computed(v, c.T), nil
}

// computed is what a function has computed.
func computed(v vector.Value, t vector.Type) value {
	out := value{null: v.Null, i: v.I, s: v.Str}
	if t.Kind == vector.Numeric && !v.Null {
		out.num, out.scale = v.Num.Unscaled.Big(), v.Num.Scale
	}
	return out
}

// collationOf returns the collation of the first argument that has one.
func collationOf(args []plan.Expr) vector.Collation {
	for _, a := range args {
		if t := a.Type(); t.Kind.IsString() && t.Collation != (vector.Collation{}) {
			return t.Collation
		}
	}
	return vector.Collation{}
}

func (r *run) logic(c *plan.Call) (value, error) {
	short := c.Op == plan.OpOr
	result := ofBool(!short)
	for _, a := range c.Args {
		v, err := r.eval(a)
		if err != nil {
			return null, err
		}
		if v.null {
			result = null
		} else if (v.i != 0) == short {
			return ofBool(short), nil
		}
	}
	return result, nil
}

func (r *run) in(c *plan.Call) (value, error) {
	a, err := r.eval(c.Args[0])
	if err != nil || a.null {
		return null, err
	}
	result := ofBool(false)
	for _, m := range c.Args[1:] {
		b, err := r.eval(m)
		switch {
		case err != nil:
			return null, err
		case b.null:
			result = null
		case equal(c.Args[0].Type(), a, b):
			return ofBool(true), nil
		}
	}
	return result, nil
}

// like matches as Postgres' MatchText: % any run, _ one character, \ quotes. ILIKE is that of both in lower case.
func like(s, pattern string, c *plan.Call) (bool, error) {
	for _, x := range []*string{&s, &pattern} {
		switch {
		case !c.Insensitive:
		case c.Func != nil:
			v, err := c.Func.Apply([]vector.Value{{Str: *x}})
			if err != nil {
				return false, failed(err.Error())
			}
			*x = v.Str
		case strings.ContainsFunc(*x, func(r rune) bool { return r >= utf8.RuneSelf }):
			return false, forward(plan.ReasonCollation, "ILIKE outside of ASCII")
		default:
			*x = strings.ToLower(*x)
		}
	}
	return match([]rune(s), []rune(pattern))
}

func match(s, p []rune) (bool, error) {
	for len(p) > 0 {
		switch p[0] {
		case '%':
			for i := 0; i <= len(s); i++ {
				if ok, err := match(s[i:], p[1:]); ok || err != nil {
					return ok, err
				}
			}
			return false, nil
		case '_':
			if len(s) == 0 {
				return false, nil
			}
		case '\\':
			if len(s) == 0 {
				return false, nil
			}
			if len(p) == 1 {
				return false, failed("LIKE pattern ends with escape")
			}
			p = p[1:]
			fallthrough
		default:
			if len(s) == 0 || s[0] != p[0] {
				return false, nil
			}
		}
		s, p = s[1:], p[1:]
	}
	return len(s) == 0, nil
}

func bounded(n *big.Int, k vector.Kind) (value, error) {
	t := sqltype.Of(k)
	if !n.IsInt64() || n.Int64() < t.Least || n.Int64() > t.Greatest {
		return null, failed(k.String() + " out of range")
	}
	return value{i: n.Int64()}, nil
}

func infinite(k vector.Kind, i int64) bool { return sqltype.Of(k).IsInfinite(i) }

func arithmetic(c *plan.Call, args []value) (value, error) {
	a := args[0]
	b := a
	if len(args) > 1 {
		b = args[1]
	}
	switch k := c.T.Kind; {
	case k.IsFloat():
		return floats(c, a.float(), b.float())
	case k == vector.Numeric:
		return numerics(c, a, b)
	case k == vector.Date:
		if c.Args[0].Type().Kind.IsInt() {
			a, b = b, a
		}
		if infinite(k, a.i) {
			return a, nil
		}
		n := big.NewInt(b.i)
		if c.Op == plan.OpSub {
			n.Neg(n)
		}
		return bounded(n.Add(n, big.NewInt(a.i)), k)
	case c.Args[0].Type().Kind == vector.Date: // date - date
		if infinite(vector.Date, a.i) || infinite(vector.Date, b.i) {
			return null, failed("cannot subtract infinite dates")
		}
	case k == vector.Interval:
		if infinite(vector.Timestamp, a.i) || infinite(vector.Timestamp, b.i) {
			return null, failed("the difference of infinite timestamps")
		}
	case (k == vector.Timestamp || k == vector.TimestampTZ) && infinite(k, a.i):
		return a, nil
	}
	x, y, n := big.NewInt(a.i), big.NewInt(b.i), new(big.Int)
	switch c.Op {
	case plan.OpAdd:
		n.Add(x, y)
	case plan.OpSub:
		n.Sub(x, y)
	case plan.OpMul:
		n.Mul(x, y)
	case plan.OpDiv, plan.OpMod:
		if b.i == 0 {
			return null, failed("division by zero")
		}
		r := new(big.Int)
		n.QuoRem(x, y, r)
		if c.Op == plan.OpMod {
			n = r
		}
	case plan.OpNeg:
		n.Neg(x)
	case plan.OpAbs:
		n.Abs(x)
	default:
		panic("BUG: an operator that no case knows")
	}
	return bounded(n, c.T.Kind)
}

func numerics(c *plan.Call, a, b value) (value, error) {
	s := max(a.scale, b.scale)
	n := new(big.Int)
	switch c.Op {
	case plan.OpAdd:
		n.Add(a.rescale(s), b.rescale(s))
	case plan.OpSub:
		n.Sub(a.rescale(s), b.rescale(s))
	case plan.OpMul:
		n.Mul(a.num, b.num)
		s = a.scale + b.scale
	case plan.OpMod:
		if b.num.Sign() == 0 {
			return null, failed("division by zero")
		}
		n.Rem(a.rescale(s), b.rescale(s))
	case plan.OpNeg:
		n.Neg(a.num)
	case plan.OpAbs:
		n.Abs(a.num)
	case plan.OpDiv:
		x, okX := vector.Int128FromBig(a.num)
		y, okY := vector.Int128FromBig(b.num)
		q, ok := vector.Div(vector.Decimal{Unscaled: x, Scale: a.scale}, vector.Decimal{Unscaled: y, Scale: b.scale})
		if !okX || !okY || !ok {
			return null, failed("numeric division")
		}
		return value{num: q.Unscaled.Big(), scale: q.Scale}, nil
	default:
		panic("BUG: an operator that no case knows")
	}
	if _, ok := vector.Int128FromBig(n); !ok {
		return null, failed("numeric beyond 128 bits")
	}
	return value{num: n, scale: s}, nil
}

func floats(c *plan.Call, x, y float64) (value, error) {
	narrow := func(f float64) float64 {
		if c.T.Kind == vector.Float4 {
			return float64(float32(f))
		}
		return f
	}
	var f float64
	switch c.Op {
	case plan.OpAdd:
		f = narrow(x + y)
	case plan.OpSub:
		f = narrow(x - y)
	case plan.OpMul:
		f = narrow(x * y)
		if f == 0 && x != 0 && y != 0 {
			return null, failed("value out of range: underflow")
		}
	case plan.OpDiv:
		if y == 0 && !math.IsNaN(x) {
			return null, failed("division by zero")
		}
		f = narrow(x / y)
		if f == 0 && x != 0 && !math.IsInf(y, 0) {
			return null, failed("value out of range: underflow")
		}
	case plan.OpNeg:
		return ofFloat(-x), nil
	case plan.OpAbs:
		return ofFloat(math.Abs(x)), nil
	default:
		panic("BUG: an operator that no case knows")
	}
	if math.IsInf(f, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return null, failed("value out of range: overflow")
	}
	return ofFloat(f), nil
}
