package sqltype

import "encoding/binary"

// Binary is a layout of binary forms, which several types may share. All integers are
// big-endian.
type Binary uint8

const (
	BinaryNone       Binary = iota // of types that are not read
	BinaryBool                     // 1 byte
	BinaryInt2                     // 2 bytes, signed
	BinaryInt4                     // 4 bytes, signed; date is one
	BinaryInt8                     // 8 bytes, signed; times and timestamps are, float8's bits, too
	BinaryFloat4                   // 4 bytes: IEEE 754
	BinaryNumeric                  // see numericFromBinary
	BinaryText                     // the bytes
	BinaryBytes                    // the bytes of strings that are not text
	BinaryArray                    // see array.go
	BinaryJSONB                    // a version, 1 byte, and the text
	BinaryNumericKey               // BinaryNumeric, of columns that are held by keys; see numerickey.go
	BinaryKey                      // of one type alone, whose strings are keys: Receive and AppendStringBinary
	BinaryOther                    // of one type alone, which knows its size and functions
)

// layout is how 64 bits are read and written in a layout of fixed size.
type layout struct {
	size   int
	word   func(raw []byte) int64
	append func(dst []byte, v int64) []byte
}

var layouts = [...]layout{
	BinaryBool:   {1, BoolFromBinary, AppendBoolBinary},
	BinaryInt2:   {2, Int2FromBinary, AppendInt2Binary},
	BinaryInt4:   {4, Int4FromBinary, AppendInt4Binary},
	BinaryInt8:   {8, Int8FromBinary, AppendInt8Binary},
	BinaryFloat4: {4, Float4FromBinary, AppendFloat4Binary},
}

// The functions for layouts of fixed size read and append 64-bit values as package
// vector describes them. raw must have the layout's size.

// Int2FromBinary reads a smallint.
func Int2FromBinary(raw []byte) int64 { return int64(int16(binary.BigEndian.Uint16(raw))) }

// Int4FromBinary reads an integer or a date.
func Int4FromBinary(raw []byte) int64 { return int64(int32(binary.BigEndian.Uint32(raw))) }

// Int8FromBinary reads a bigint, a time, a timestamp or a double.
func Int8FromBinary(raw []byte) int64 { return int64(binary.BigEndian.Uint64(raw)) }

// AppendInt2Binary appends a smallint.
func AppendInt2Binary(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint16(dst, uint16(v))
}

// AppendInt4Binary appends an integer or a date.
func AppendInt4Binary(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(v))
}

// AppendInt8Binary appends a bigint, a time, a timestamp or a double.
func AppendInt8Binary(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(v))
}
