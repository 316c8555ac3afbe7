package vector

import "math"

// Datum is one value outside of a column: a constant, a parameter, a bound.
// It is a plain value; copying it is cheap and it refers to no shared memory
// except the bytes of Str.
type Datum struct {
	Type Type
	Null bool
	// I holds every 64-bit representation of the package comment, float bits
	// included; it is unused for text and for Numeric with VaryingScale.
	I   int64
	Str string  // kinds held as strings
	Num Decimal // Numeric with VaryingScale, or whose unscaled value exceeds 64 bits
}

// Null returns the null of a type.
func Null(t Type) Datum { return Datum{Type: t, Null: true} }

// Int returns a Datum of a kind held as an integer.
func Int(k Kind, v int64) Datum { return Datum{Type: TypeOf(k), I: v} }

// Float returns a double precision Datum.
func Float(v float64) Datum { return Datum{Type: TypeOf(Float8), I: int64(math.Float64bits(v))} }

// String returns a text Datum.
func String(s string) Datum { return Datum{Type: TypeOf(Text), Str: s} }

// Float64 returns the value of a Float4 or Float8 Datum.
func (d Datum) Float64() float64 { return math.Float64frombits(uint64(d.I)) }

// Decimal returns an integer or a numeric, which is not null.
func (d Datum) Decimal() Decimal {
	switch {
	case d.Type.Kind != Numeric:
		return Decimal{Unscaled: Int128Of(d.I)}
	case d.Type.Scale == VaryingScale || d.Num != (Decimal{}):
		return d.Num
	}
	return Decimal{Unscaled: Int128Of(d.I), Scale: d.Type.Scale}
}
