package vector

// Value is one value of a type that stands beside it: what row-wise functions take and
// return. Which field holds it is the type's business, as in a Datum.
type Value struct {
	Null bool
	I    int64 // every kind but strings and Numeric, as in columns
	Str  string
	Num  Decimal // Numeric, whatever its scale
}

// NullValue is the null of every type.
var NullValue = Value{Null: true}

// BoolValue returns a boolean.
func BoolValue(b bool) Value {
	if b {
		return Value{I: 1}
	}
	return Value{}
}

// Value returns the value of d by itself.
func (d Datum) Value() Value {
	switch {
	case d.Null:
		return NullValue
	case d.Type.Kind.IsString():
		return Value{Str: d.Str}
	case d.Type.Kind == Numeric:
		return Value{Num: d.Decimal()}
	}
	return Value{I: d.I}
}

// WordValue returns the value of type t that 64 bits hold; t is no string.
func WordValue(v int64, t Type) Value {
	if t.Kind == Numeric {
		return Value{Num: Decimal{Unscaled: Int128Of(v), Scale: t.Scale}}
	}
	return Value{I: v}
}

// Word returns the 64 bits that hold v of type t, which is neither null nor a string. ok is
// false for a Numeric that has none.
func (v Value) Word(t Type) (w int64, ok bool) {
	if t.Kind != Numeric {
		return v.I, true
	}
	if t.Scale == VaryingScale {
		return 0, false
	}
	d, ok := v.Num.Rescale(t.Scale)
	w, fits := d.Unscaled.Int64()
	return w, ok && fits
}

// Datum returns v as a value of type t.
func (v Value) Datum(t Type) Datum {
	d := Datum{Type: t, Null: v.Null, I: v.I, Str: v.Str}
	if t.Kind == Numeric && !v.Null {
		if w, ok := v.Word(t); ok {
			d.I = w
		} else {
			d.Num = v.Num
		}
	}
	return d
}
