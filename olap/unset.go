package olap

import (
	"strings"
	"unsafe"

	"pgaccel/internal/invariant"
	"pgaccel/vector"
)

// unsetBytes is the size from which on arrays are not cleared before they are written.
const unsetBytes = 64 << 10

// unset returns n values that are anything: an array that several goroutines fill is not first cleared
// by one of them, whose time is all of theirs.
func unset[T uint8 | uint16 | uint32 | uint64 | int32 | int64 | vector.Decimal](n int) []T {
	var one T
	bytes := n * int(unsafe.Sizeof(one))
	if bytes < unsetBytes {
		return make([]T, n)
	}
	// make clears, and so does append. Of what the runtime allocates without, a builder's buffer can be had. So
	// large a one begins at a page.
	var b strings.Builder
	b.Grow(bytes)
	b.WriteByte(0)
	s := unsafe.Slice((*T)(unsafe.Pointer(unsafe.StringData(b.String()))), n)
	if invariant.Enabled {
		junk := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), bytes)
		for i := range junk {
			junk[i] = 0xA5
		}
	}
	return s
}
