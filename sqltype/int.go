package sqltype

import (
	"strconv"

	"pgaccel/vector"
)

var (
	int2Type = intType(vector.Int2, BinaryInt2)
	int4Type = intType(vector.Int4, BinaryInt4)
	int8Type = intType(vector.Int8, BinaryInt8)
)

func intType(k vector.Kind, b Binary) Type {
	return word(k, b, func(s string) (int64, bool) { return ParseInt(s, 8*b.Size()) }, nil)
}

// ParseInt reads a decimal integer of the given width in bits.
func ParseInt(s string, width int) (v int64, ok bool) {
	v, err := strconv.ParseInt(s, 10, width)
	return v, err == nil
}

// AppendInt appends the text form.
func AppendInt(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }
