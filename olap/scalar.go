package olap

import (
	"math"
	"math/bits"
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
		if d.Type.Scale == vector.VaryingScale || d.Num != (vector.Decimal{}) {
			return scalar{d: d.Num}
		}
		return scalar{d: vector.Decimal{Unscaled: vector.Int128Of(d.I), Scale: d.Type.Scale}}
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
	// order compares text of a collation other than C; nil where there is no way to.
	order func(a, b string) (int, error)
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
	if v.order == nil {
		return 0, forward(plan.ReasonCollation, "order of text")
	}
	return v.order(a.s, b.s)
}

func compareBits(t vector.Type, a, b scalar) int {
	if t.Kind == vector.Numeric {
		return compareDecimals(a.d, b.d)
	}
	x, y := a.i, b.i
	if t.Kind.IsFloat() {
		x, y = floatKey(x), floatKey(y)
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

// floatKey maps a double's bits to integers in Postgres' order of floats: NaN
// last and equal to itself, both zeros equal. It is compress.FloatKey's map.
func floatKey(b int64) int64 {
	switch {
	case b&math.MaxInt64 > 0x7ff<<52: // NaN of either sign
		return math.MaxInt64
	case b >= 0:
		return b
	}
	return -(b & math.MaxInt64)
}

// floatOfKey is the inverse of floatKey, with one NaN and the positive zero.
func floatOfKey(k int64) int64 {
	switch {
	case k == math.MaxInt64:
		return int64(math.Float64bits(math.NaN()))
	case k >= 0:
		return k
	}
	return -k | math.MinInt64
}

// kindRange returns the values that a kind admits as a result; ok is false where
// the kind is no integer, date or time stamp.
func kindRange(k vector.Kind) (lo, hi int64, ok bool) {
	switch k {
	case vector.Int2:
		return math.MinInt16, math.MaxInt16, true
	case vector.Int4:
		return math.MinInt32, math.MaxInt32, true
	case vector.Int8, vector.Numeric:
		return math.MinInt64, math.MaxInt64, true
	case vector.Date: // IS_VALID_DATE of Postgres' datatype/timestamp.h
		return -2451545, 2145031948, true
	case vector.Timestamp, vector.TimestampTZ:
		return -211813488000000000, 9223371331199999999, true
	}
	return 0, 0, false
}

// ranged returns v as a value of kind k, or the error of being out of its range.
func ranged(v int64, k vector.Kind) (scalar, error) {
	if lo, hi, ok := kindRange(k); ok && (v < lo || v > hi) {
		return nullScalar, failed(k.String() + " out of range")
	}
	return scalar{i: v}, nil
}

func infinite(k vector.Kind, v int64) bool {
	switch k {
	case vector.Date:
		return v == math.MinInt32 || v == math.MaxInt32
	case vector.Timestamp, vector.TimestampTZ:
		return v == math.MinInt64 || v == math.MaxInt64
	}
	return false
}

func unaryScalar(c *plan.Call, a scalar) (scalar, error) {
	switch c.Op {
	case plan.OpNot:
		return boolScalar(a.i == 0), nil
	case plan.OpCast:
		return castScalar(a, c.Args[0].Type(), c.T)
	case plan.OpExtract:
		return extractScalar(c, a)
	case plan.OpDateTrunc:
		v, err := dateTrunc(c.Field, c.Args[0].Type().Kind, a.i)
		return scalar{i: v}, err
	}
	if c.Op == plan.OpAbs {
		switch {
		case c.T.Kind.IsFloat():
			return scalar{i: a.i & math.MaxInt64}, nil
		case c.T.Kind == vector.Numeric && a.d.Unscaled.Sign() >= 0, c.T.Kind != vector.Numeric && a.i >= 0:
			return a, nil
		}
	}
	switch {
	case c.T.Kind.IsFloat():
		return scalar{i: a.i ^ math.MinInt64}, nil
	case c.T.Kind == vector.Numeric:
		return scalar{d: vector.Decimal{Unscaled: a.d.Unscaled.Neg(), Scale: a.d.Scale}}, nil
	case a.i == math.MinInt64:
		return nullScalar, failed("bigint out of range")
	}
	return ranged(-a.i, c.T.Kind)
}

func binaryScalar(c *plan.Call, a, b scalar) (scalar, error) {
	switch k := c.T.Kind; {
	case k == vector.Numeric:
		return binaryNumeric(c.Op, a.d, b.d)
	case k.IsFloat():
		f, err := binaryFloat(c.Op, k, math.Float64frombits(uint64(a.i)), math.Float64frombits(uint64(b.i)))
		return scalar{i: int64(math.Float64bits(f))}, err
	case k == vector.Date:
		x, y := a.i, b.i
		if c.Args[0].Type().Kind != vector.Date {
			x, y = y, x
		}
		if infinite(vector.Date, x) {
			return scalar{i: x}, nil
		}
		if c.Op == plan.OpSub {
			y = -y
		}
		return ranged(x+y, k)
	case c.Args[0].Type().Kind == vector.Date:
		if infinite(vector.Date, a.i) || infinite(vector.Date, b.i) {
			return nullScalar, failed("cannot subtract infinite dates")
		}
	}
	r, err := intOp(c.Op, a.i, b.i)
	if err != nil {
		return nullScalar, err
	}
	return ranged(r, c.T.Kind)
}

// intOp computes in 64 bits and fails where they do not suffice.
func intOp(op plan.Op, a, b int64) (r int64, err error) {
	fits := true
	switch op {
	case plan.OpAdd:
		r, fits = addChecked(a, b)
	case plan.OpSub:
		r, fits = subChecked(a, b)
	case plan.OpMul:
		r, fits = mulChecked(a, b)
	case plan.OpDiv:
		if b == 0 {
			return 0, errDivision
		}
		if fits = a != math.MinInt64 || b != -1; fits {
			r = a / b
		}
	case plan.OpMod:
		if b == 0 {
			return 0, errDivision
		}
		if b != -1 {
			r = a % b
		}
	default:
		panic("BUG: no integer operator")
	}
	if !fits {
		return 0, failed("bigint out of range")
	}
	return r, nil
}

func addChecked(a, b int64) (int64, bool) {
	r := a + b
	return r, (a^r)&(b^r) >= 0
}

func subChecked(a, b int64) (int64, bool) {
	r := a - b
	return r, (a^b)&(a^r) >= 0
}

func mulChecked(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	h := int64(hi)
	if a < 0 {
		h -= b
	}
	if b < 0 {
		h -= a
	}
	return int64(lo), h == int64(lo)>>63
}

func binaryNumeric(op plan.Op, a, b vector.Decimal) (scalar, error) {
	if op == plan.OpDiv {
		q, ok := vector.Div(a, b)
		if !ok {
			return nullScalar, failed("numeric division")
		}
		return scalar{d: q}, nil
	}
	if op == plan.OpMul {
		scale := a.Scale + b.Scale
		x, okX := a.Unscaled.Int64()
		y, okY := b.Unscaled.Int64()
		if okX && okY {
			return scalar{d: vector.Decimal{Unscaled: vector.Mul64(x, y), Scale: scale}}, nil
		}
		p := a.Unscaled.Big()
		u, ok := vector.Int128FromBig(p.Mul(p, b.Unscaled.Big()))
		if !ok {
			return nullScalar, errNumeric
		}
		return scalar{d: vector.Decimal{Unscaled: u, Scale: scale}}, nil
	}
	scale := max(a.Scale, b.Scale)
	a, okA := a.Rescale(scale)
	b, okB := b.Rescale(scale)
	if !okA || !okB {
		return nullScalar, errNumeric
	}
	n := a.Unscaled.Big()
	switch op {
	case plan.OpAdd:
		n.Add(n, b.Unscaled.Big())
	case plan.OpSub:
		n.Sub(n, b.Unscaled.Big())
	case plan.OpMod:
		if b.Unscaled.Sign() == 0 {
			return nullScalar, errDivision
		}
		n.Rem(n, b.Unscaled.Big())
	default:
		panic("BUG: no numeric operator")
	}
	u, ok := vector.Int128FromBig(n)
	if !ok {
		return nullScalar, errNumeric
	}
	return scalar{d: vector.Decimal{Unscaled: u, Scale: scale}}, nil
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
