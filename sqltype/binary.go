package sqltype

import (
	"encoding/binary"
	"fmt"
)

// Binary is a layout of binary forms, which several types may share. All integers are
// big-endian.
type Binary uint8

const (
	BinaryNone    Binary = iota // of types that are not read
	BinaryBool                  // 1 byte
	BinaryInt2                  // 2 bytes, signed
	BinaryInt4                  // 4 bytes, signed; date is one
	BinaryInt8                  // 8 bytes, signed; times and timestamps are, float8's bits, too
	BinaryFloat4                // 4 bytes: IEEE 754
	BinaryNumeric               // see NumericFromBinary
	BinaryText                  // the bytes
)

var binarySizes = [...]int{BinaryBool: 1, BinaryInt2: 2, BinaryInt4: 4, BinaryInt8: 8, BinaryFloat4: 4, BinaryText: 0}

// Size returns the length in bytes, 0 where it varies.
func (b Binary) Size() int { return binarySizes[b] }

// word reads a form of fixed size.
func (b Binary) word(raw []byte) int64 {
	switch b {
	case BinaryBool:
		return BoolFromBinary(raw)
	case BinaryInt2:
		return Int2FromBinary(raw)
	case BinaryInt4:
		return Int4FromBinary(raw)
	case BinaryInt8:
		return Int8FromBinary(raw)
	case BinaryFloat4:
		return Float4FromBinary(raw)
	}
	panic(fmt.Sprintf("BUG: binary layout %d has no fixed size", b))
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
