package olap

import (
	"pgaccel/internal/bulk"
	"pgaccel/vector"
)

// unset returns n values that are anything, for several goroutines to fill.
func unset[T uint8 | uint16 | uint32 | uint64 | int32 | int64 | vector.Decimal](n int) []T {
	return bulk.Unset[T](n)
}
