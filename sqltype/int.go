package sqltype

import (
	"math"
	"strconv"

	"pgaccel/vector"
)

const (
	OIDInt8 = 20
	OIDInt2 = 21
	OIDInt4 = 23
)

var (
	int2Type = intType(Type{Kind: vector.Int2, Name: "int2", OID: OIDInt2, Binary: BinaryInt2, Implicit: []vector.Kind{vector.Int4, vector.Int8, vector.Numeric, vector.Float4, vector.Float8, vector.OID},
		Least: math.MinInt16, Greatest: math.MaxInt16, Samples: []string{"0", "-1", "32767", "-32768"}})
	int4Type = intType(Type{Kind: vector.Int4, Name: "int4", OID: OIDInt4, Binary: BinaryInt4, Implicit: []vector.Kind{vector.Int8, vector.Numeric, vector.Float4, vector.Float8, vector.OID},
		Least: math.MinInt32, Greatest: math.MaxInt32, Samples: []string{"0", "-1", "2147483647", "-2147483648"}})
	int8Type = intType(Type{Kind: vector.Int8, Name: "int8", OID: OIDInt8, Binary: BinaryInt8, Implicit: []vector.Kind{vector.Numeric, vector.Float4, vector.Float8, vector.OID},
		Least: math.MinInt64, Greatest: math.MaxInt64, Samples: []string{"0", "-1", "9223372036854775807", "-9223372036854775808"}})
)

func intType(t Type) Type {
	t.Category, t.AppendText = 'N', AppendInt
	return word(t, func(s string) (int64, bool) { return parseInt(s, 8*layouts[t.Binary].size) })
}

// parseInt reads a decimal integer of the given width in bits.
func parseInt(s string, width int) (v int64, ok bool) {
	v, err := strconv.ParseInt(s, 10, width)
	return v, err == nil
}

// AppendInt appends the text form.
func AppendInt(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }
