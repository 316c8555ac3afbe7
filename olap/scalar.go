package olap

import (
	"strings"

	"pgaccel/plan"
	"pgaccel/vector"
)

// scalar is one value outside of a tile: in dictionaries' tables and over groups.
type scalar struct {
	null bool
	i    int64 // every kind but text and Numeric
	s    string
	d    vector.Decimal // Numeric, whatever its scale
}

var nullScalar = scalar{null: true}

func forward(r plan.Reason, detail string) error { return &plan.Forward{Reason: r, Detail: detail} }

func failed(detail string) error { return forward(plan.ReasonEvaluation, detail) }

var (
	errDivision = failed("division by zero")
	errNumeric  = failed("numeric beyond the bits that are held")
)

func scalarOf(d vector.Datum) scalar {
	switch {
	case d.Null:
		return nullScalar
	case d.Type.Kind.IsText():
		return scalar{s: d.Str}
	case d.Type.Kind == vector.Numeric:
		return scalar{d: d.Decimal()}
	}
	return scalar{i: d.I}
}

// scalarOfBits returns a value held in 64 bits; not for text.
func scalarOfBits(v int64, t vector.Type) scalar {
	if t.Kind == vector.Numeric {
		return scalar{d: vector.Decimal{Unscaled: vector.Int128Of(v), Scale: t.Scale}}
	}
	return scalar{i: v}
}

// bits returns the 64-bit form of a value that is not null nor text. ok is false
// for a Numeric that has none.
func (v scalar) bits(t vector.Type) (int64, bool) {
	if t.Kind == vector.Numeric {
		if t.Scale == vector.VaryingScale {
			return 0, false
		}
		d, ok := v.d.Rescale(t.Scale)
		i, fits := d.Unscaled.Int64()
		return i, ok && fits
	}
	return v.i, true
}

func boolScalar(b bool) scalar {
	if b {
		return scalar{i: 1}
	}
	return scalar{}
}

// env gives the leaves of an expression their values.
type env struct {
	leaf func(plan.Expr) (scalar, error)
	// dicts order text of collations other than C: those of the columns that it is of.
	dicts []*dict
}

func (v *env) eval(e plan.Expr) (scalar, error) {
	switch e := e.(type) {
	case plan.Const:
		return scalarOf(e.Datum), nil
	case *plan.Call:
		return v.call(e)
	}
	return v.leaf(e)
}

func (v *env) call(c *plan.Call) (scalar, error) {
	switch c.Op {
	case plan.OpAnd, plan.OpOr:
		stop := c.Op == plan.OpOr
		result := boolScalar(!stop)
		for _, a := range c.Args {
			x, err := v.eval(a)
			if err != nil {
				return nullScalar, err
			}
			if x.null {
				result = nullScalar
			} else if (x.i != 0) == stop {
				return x, nil
			}
		}
		return result, nil
	case plan.OpCase:
		last := len(c.Args) - 1
		for i := 0; i < last; i += 2 {
			x, err := v.eval(c.Args[i])
			if err != nil {
				return nullScalar, err
			}
			if !x.null && x.i != 0 {
				return v.eval(c.Args[i+1])
			}
		}
		return v.eval(c.Args[last])
	case plan.OpCoalesce:
		for _, a := range c.Args {
			if x, err := v.eval(a); err != nil || !x.null {
				return x, err
			}
		}
		return nullScalar, nil
	}
	a, err := v.eval(c.Args[0])
	if err != nil {
		return nullScalar, err
	}
	switch c.Op {
	case plan.OpIsNull:
		return boolScalar(a.null), nil
	case plan.OpIsNotNull:
		return boolScalar(!a.null), nil
	case plan.OpIsTrue:
		return boolScalar(!a.null && a.i != 0), nil
	case plan.OpIsFalse:
		return boolScalar(!a.null && a.i == 0), nil
	case plan.OpIn:
		return v.in(c, a)
	case plan.OpNot, plan.OpNeg, plan.OpAbs, plan.OpCast, plan.OpExtract, plan.OpDateTrunc:
		if a.null {
			return a, nil
		}
		return unaryScalar(c, a)
	}
	b, err := v.eval(c.Args[1])
	if err != nil {
		return nullScalar, err
	}
	t := c.Args[0].Type()
	if c.Op == plan.OpDistinct {
		if a.null || b.null {
			return boolScalar(a.null != b.null), nil
		}
		return boolScalar(!equalScalars(t, a, b)), nil
	}
	if a.null || b.null {
		return nullScalar, nil
	}
	switch c.Op {
	case plan.OpEq:
		return boolScalar(equalScalars(t, a, b)), nil
	case plan.OpNe:
		return boolScalar(!equalScalars(t, a, b)), nil
	case plan.OpLt, plan.OpLe, plan.OpGt, plan.OpGe:
		r, err := v.compare(t, collation(c.Args), a, b)
		return boolScalar(holds(c.Op, r)), err
	case plan.OpLike:
		ok, err := like(a.s, b.s, c.Insensitive)
		return boolScalar(ok), err
	}
	return binaryScalar(c, a, b)
}

func (v *env) in(c *plan.Call, a scalar) (scalar, error) {
	if a.null {
		return a, nil
	}
	result := boolScalar(false)
	for _, m := range c.Args[1:] {
		b, err := v.eval(m)
		switch {
		case err != nil:
			return nullScalar, err
		case b.null:
			result = nullScalar
		case equalScalars(c.Args[0].Type(), a, b):
			return boolScalar(true), nil
		}
	}
	return result, nil
}

// holds reports whether a comparison's result r (sign) makes op true.
func holds(op plan.Op, r int) bool {
	switch op {
	case plan.OpEq:
		return r == 0
	case plan.OpNe:
		return r != 0
	case plan.OpLt:
		return r < 0
	case plan.OpLe:
		return r <= 0
	case plan.OpGt:
		return r > 0
	}
	return r >= 0
}

// collation returns the collation of the first argument that has one.
func collation(args []plan.Expr) vector.Collation {
	for _, a := range args {
		if t := a.Type(); t.Kind.IsText() && t.Collation != (vector.Collation{}) {
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

func equalScalars(t vector.Type, a, b scalar) bool {
	if t.Kind.IsText() {
		return canonical(t.Kind, a.s) == canonical(t.Kind, b.s)
	}
	return compareBits(t, a, b) == 0
}

func (v *env) compare(t vector.Type, c vector.Collation, a, b scalar) (int, error) {
	if !t.Kind.IsText() {
		return compareBits(t, a, b), nil
	}
	if c.C {
		return strings.Compare(canonical(t.Kind, a.s), canonical(t.Kind, b.s)), nil
	}
	for _, d := range v.dicts {
		if r, ok := d.compare(t.Kind, c, a.s, b.s); ok {
			return r, nil
		}
	}
	return 0, forward(plan.ReasonCollation, "order of a string that the column does not hold")
}

func compareBits(t vector.Type, a, b scalar) int {
	if t.Kind == vector.Numeric {
		return compareDecimals(a.d, b.d)
	}
	x, y := a.i, b.i
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
	x, y := a.Unscaled.Big(), b.Unscaled.Big()
	if a.Scale < b.Scale {
		x.Mul(x, vector.BigPow10(int(b.Scale-a.Scale)))
	} else {
		y.Mul(y, vector.BigPow10(int(a.Scale-b.Scale)))
	}
	return x.Cmp(y)
}
