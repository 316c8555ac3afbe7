package olap

import (
	"fmt"
	"math"

	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// kindRange returns the finite values that a kind admits as a result; ok is false where
// the kind has no such range.
func kindRange(k vector.Kind) (lo, hi int64, ok bool) {
	if k == vector.Invalid {
		return 0, 0, false
	}
	t := sqltype.Of(k)
	return t.Least, t.Greatest, t.Ranged()
}

// ranged returns v as a value of kind k, or the error of being out of its range.
func ranged(v int64, k vector.Kind) (vector.Value, error) {
	if lo, hi, ok := kindRange(k); ok && (v < lo || v > hi) {
		return vector.NullValue, failed(k.String() + " out of range")
	}
	return vector.Value{I: v}, nil
}

func infinite(k vector.Kind, v int64) bool { return sqltype.Of(k).IsInfinite(v) }

func unaryScalar(c *plan.Call, a vector.Value) (vector.Value, error) {
	switch c.Op {
	case plan.OpNot:
		return vector.BoolValue(a.I == 0), nil
	case plan.OpCast:
		return castScalar(a, c.Args[0].Type(), c.T)
	case plan.OpAbs:
		switch k := c.T.Kind; {
		case k.IsFloat():
			return vector.Value{I: a.I & math.MaxInt64}, nil
		case k == vector.Numeric && a.Num.Unscaled.Sign() >= 0, k != vector.Numeric && a.I >= 0:
			return a, nil
		}
		return negated(a, c.T.Kind)
	case plan.OpNeg:
		return negated(a, c.T.Kind)
	}
	panic(fmt.Sprintf("BUG: operator %d has no form of one operand", c.Op))
}

func negated(a vector.Value, k vector.Kind) (vector.Value, error) {
	switch {
	case k.IsFloat():
		return vector.Value{I: a.I ^ math.MinInt64}, nil
	case k == vector.Numeric:
		return vector.Value{Num: vector.Decimal{Unscaled: a.Num.Unscaled.Neg(), Scale: a.Num.Scale}}, nil
	case a.I == math.MinInt64:
		return vector.NullValue, failed("bigint out of range")
	}
	return ranged(-a.I, k)
}

func binaryScalar(c *plan.Call, a, b vector.Value) (vector.Value, error) {
	switch k := c.T.Kind; {
	case k == vector.Numeric:
		return binaryNumeric(c.Op, a.Num, b.Num)
	case k.IsFloat():
		f, err := binaryFloat(c.Op, k, math.Float64frombits(uint64(a.I)), math.Float64frombits(uint64(b.I)))
		return vector.Value{I: int64(math.Float64bits(f))}, err
	case k == vector.Date:
		x, y := a.I, b.I
		if c.Args[0].Type().Kind != vector.Date {
			x, y = y, x
		}
		if infinite(vector.Date, x) {
			return vector.Value{I: x}, nil
		}
		if c.Op == plan.OpSub {
			y = -y
		}
		return ranged(x+y, k)
	case c.Args[0].Type().Kind == vector.Date:
		if infinite(vector.Date, a.I) || infinite(vector.Date, b.I) {
			return vector.NullValue, failed("cannot subtract infinite dates")
		}
	case k == vector.Interval:
		if infinite(vector.Timestamp, a.I) || infinite(vector.Timestamp, b.I) {
			return vector.NullValue, failed("the difference of infinite timestamps")
		}
	case stamp(k):
		if infinite(k, a.I) {
			return a, nil
		}
	}
	r, err := intOp(c.Op, a.I, b.I)
	if err != nil {
		return vector.NullValue, err
	}
	return ranged(r, c.T.Kind)
}

// intOp computes in 64 bits and fails where they do not suffice.
func intOp(op plan.Op, a, b int64) (int64, error) {
	if b == 0 && (op == plan.OpDiv || op == plan.OpMod) {
		return 0, errDivision
	}
	r, fits := op.Integer(a, b)
	if !fits {
		return 0, failed("bigint out of range")
	}
	return r, nil
}

func binaryNumeric(op plan.Op, a, b vector.Decimal) (vector.Value, error) {
	if op == plan.OpDiv {
		q, ok := vector.Div(a, b)
		if !ok {
			return vector.NullValue, failed("numeric division")
		}
		return vector.Value{Num: q}, nil
	}
	if op == plan.OpMul {
		scale := a.Scale + b.Scale
		x, okX := a.Unscaled.Int64()
		y, okY := b.Unscaled.Int64()
		if okX && okY {
			return vector.Value{Num: vector.Decimal{Unscaled: vector.Mul64(x, y), Scale: scale}}, nil
		}
		p := a.Unscaled.Big()
		u, ok := vector.Int128FromBig(p.Mul(p, b.Unscaled.Big()))
		if !ok {
			return vector.NullValue, errNumeric
		}
		return vector.Value{Num: vector.Decimal{Unscaled: u, Scale: scale}}, nil
	}
	if op == plan.OpSub {
		op, b.Unscaled = plan.OpAdd, b.Unscaled.Neg()
	}
	if op == plan.OpAdd {
		sum, ok := a.Add(b)
		if !ok {
			return vector.NullValue, errNumeric
		}
		return vector.Value{Num: sum}, nil
	}
	scale := max(a.Scale, b.Scale)
	a, okA := a.Rescale(scale)
	b, okB := b.Rescale(scale)
	if !okA || !okB {
		return vector.NullValue, errNumeric
	}
	if op != plan.OpMod {
		panic("BUG: no numeric operator")
	}
	if b.Unscaled.Sign() == 0 {
		return vector.NullValue, errDivision
	}
	n := a.Unscaled.Big()
	n.Rem(n, b.Unscaled.Big())
	u, ok := vector.Int128FromBig(n)
	if !ok {
		return vector.NullValue, errNumeric
	}
	return vector.Value{Num: vector.Decimal{Unscaled: u, Scale: scale}}, nil
}

// binaryFloat computes with the checks of Postgres' utils/float.h.
func binaryFloat(op plan.Op, k vector.Kind, a, b float64) (f float64, err error) {
	switch op {
	case plan.OpAdd:
		f = a + b
	case plan.OpSub:
		f = a - b
	case plan.OpMul:
		f = a * b
	case plan.OpDiv:
		if b == 0 && !math.IsNaN(a) {
			return 0, errDivision
		}
		f = a / b
	default:
		panic("BUG: no float operator")
	}
	if k == vector.Float4 {
		f = float64(float32(f))
	}
	if math.IsInf(f, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
		return 0, failed("value out of range: overflow")
	}
	if f == 0 && (op == plan.OpMul && a != 0 && b != 0 || op == plan.OpDiv && a != 0 && !math.IsInf(b, 0)) {
		return 0, failed("value out of range: underflow")
	}
	return f, nil
}
