package oracle

import (
	"bytes"
	"math"
	"math/big"
	"strings"

	"pgaccel/plan"
	"pgaccel/vector"
)

// value is one value during evaluation: a null, an exact numeric (num, scale), a
// string, or 64 bits as package vector holds them.
type value struct {
	null  bool
	i     int64
	s     string
	num   *big.Int
	scale int16
}

var null = value{null: true}

func forward(r plan.Reason, detail string) error { return &plan.Forward{Reason: r, Detail: detail} }

func failed(detail string) error { return forward(plan.ReasonEvaluation, detail) }

func fromDatum(d vector.Datum) value {
	switch {
	case d.Null:
		return null
	case d.Type.Kind.IsString():
		return value{s: d.Str}
	case d.Type.Kind == vector.Numeric:
		if d.Type.Scale == vector.VaryingScale || d.Num != (vector.Decimal{}) {
			return value{num: d.Num.Unscaled.Big(), scale: d.Num.Scale}
		}
		return value{num: big.NewInt(d.I), scale: d.Type.Scale}
	}
	return value{i: d.I}
}

func toDatum(v value, t vector.Type) (vector.Datum, error) {
	d := vector.Datum{Type: t, Null: v.null}
	switch {
	case v.null:
	case t.Kind.IsString():
		d.Str = v.s
	case t.Kind == vector.Numeric:
		u, ok := vector.Int128FromBig(v.num)
		if !ok {
			return d, failed("numeric beyond 128 bits")
		}
		if t.Scale != vector.VaryingScale && t.Scale != v.scale {
			panic("BUG: numeric of another scale than its type's")
		}
		d.Num = vector.Decimal{Unscaled: u, Scale: v.scale}
		if n, ok := u.Int64(); ok && t.Scale != vector.VaryingScale {
			d.I = n
		}
	default:
		d.I = v.i
	}
	return d, nil
}

func (v value) float() float64 { return math.Float64frombits(uint64(v.i)) }

func ofFloat(f float64) value { return value{i: int64(math.Float64bits(f))} }

func ofBool(b bool) value {
	if b {
		return value{i: 1}
	}
	return value{i: 0}
}

// rescale returns num at another scale, rounded half away from zero.
func (v value) rescale(scale int16) *big.Int {
	if scale >= v.scale {
		return new(big.Int).Mul(v.num, vector.BigPow10(int(scale-v.scale)))
	}
	den := vector.BigPow10(int(v.scale - scale))
	q, r := new(big.Int).QuoRem(v.num, den, new(big.Int))
	if r.Abs(r).Lsh(r, 1).Cmp(den) >= 0 {
		q.Add(q, big.NewInt(int64(v.num.Sign())))
	}
	return q
}

// Less compares two strings of a collation that is not C.
type Less func(c vector.Collation, a, b string) bool

// compare returns the order of two values of one kind, neither null.
func compare(t vector.Type, c vector.Collation, a, b value, less Less) (int, error) {
	switch {
	case t.Kind.IsString():
		x, y := a.s, b.s
		if t.Kind == vector.BPChar {
			x, y = strings.TrimRight(x, " "), strings.TrimRight(y, " ")
		}
		if x == y {
			return 0, nil
		}
		if c.C {
			return bytes.Compare([]byte(x), []byte(y)), nil
		}
		if less == nil {
			return 0, forward(plan.ReasonCollation, "order of a collation other than C")
		}
		if less(c, x, y) {
			return -1, nil
		}
		return 1, nil
	case t.Kind == vector.Numeric:
		s := max(a.scale, b.scale)
		return a.rescale(s).Cmp(b.rescale(s)), nil
	case t.Kind.IsFloat():
		x, y := a.float(), b.float()
		switch {
		case math.IsNaN(x) && math.IsNaN(y):
			return 0, nil
		case math.IsNaN(x):
			return 1, nil
		case math.IsNaN(y):
			return -1, nil
		case x < y:
			return -1, nil
		case x > y:
			return 1, nil
		}
		return 0, nil
	}
	switch {
	case a.i < b.i:
		return -1, nil
	case a.i > b.i:
		return 1, nil
	}
	return 0, nil
}

// exact returns a text that is the same for equal numerics; empty for other values.
func exact(v value) string {
	if v.num == nil {
		return ""
	}
	return new(big.Rat).SetFrac(v.num, vector.BigPow10(int(v.scale))).String()
}

func equal(t vector.Type, a, b value) bool {
	c, _ := compare(t, vector.Collation{C: true}, a, b, nil)
	return c == 0
}
