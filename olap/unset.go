package olap

import (
	"unsafe"

	"pgaccel/internal/bulk"
	"pgaccel/vector"
)

// unsetBytes is the size from which on arrays are not cleared before they are written.
const unsetBytes = 64 << 10

// unset returns n values that are anything, for several goroutines to fill.
func unset[T uint8 | uint16 | uint32 | uint64 | int32 | int64 | vector.Decimal](n int) []T {
	var one T
	bytes := n * int(unsafe.Sizeof(one))
	if bytes < unsetBytes {
		return make([]T, n)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(bulk.Unset(bytes)))), n)
}
