package sqltype

import (
	"fmt"

	"pgaccel/vector"
)

// Space are the characters that input functions of all types but text skip at both ends.
const Space = " \t\n\r\v\f"

// Type is one kind's forms outside. To print a value there are functions for each type:
// loops over rows choose theirs beforehand.
type Type struct {
	// Binary is the layout of the binary form.
	Binary Binary
	// Parse reads the text form, without blanks around it.
	Parse func(s string) (d vector.Datum, ok bool)
	// Receive reads the binary form as the type's receive function does: ok is false for
	// what that refuses.
	Receive func(b []byte) (d vector.Datum, ok bool)
}

var types = [...]Type{
	vector.Bool:        boolType,
	vector.Int2:        int2Type,
	vector.Int4:        int4Type,
	vector.Int8:        int8Type,
	vector.Numeric:     numericType,
	vector.Date:        dateType,
	vector.Time:        timeType,
	vector.Timestamp:   timestampType,
	vector.TimestampTZ: timestampTZType,
	vector.Float4:      float4Type,
	vector.Float8:      float8Type,
	vector.Text:        textType(vector.Text),
	vector.Varchar:     textType(vector.Varchar),
	vector.BPChar:      textType(vector.BPChar),
}

// Of returns the type of a kind, which must not be Invalid.
func Of(k vector.Kind) *Type {
	if int(k) >= len(types) || types[k].Binary == BinaryNone {
		panic(fmt.Sprintf("BUG: no type of kind %d (%s)", k, k))
	}
	return &types[k]
}

// word makes the Type of a kind that is held in 64 bits, whose binary form is valid
// where valid says so of these; nil where any is.
func word(k vector.Kind, b Binary, parse func(s string) (int64, bool), valid func(v int64) bool) Type {
	return Type{
		Binary: b,
		Parse: func(s string) (vector.Datum, bool) {
			v, ok := parse(s)
			return vector.Int(k, v), ok
		},
		Receive: func(raw []byte) (vector.Datum, bool) {
			if len(raw) != b.Size() {
				return vector.Datum{}, false
			}
			v := b.word(raw)
			return vector.Int(k, v), valid == nil || valid(v)
		},
	}
}
