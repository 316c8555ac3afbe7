package bitmapidx_test

import (
	"fmt"

	"pgaccel/bitmapidx"
)

func ExampleIndex_Range() {
	values := []int64{5, 9, 5, 7, 0, 9}
	nulls := []uint64{1 << 4} // row 4
	x := bitmapidx.Build(values, nulls, nil)
	rows := make([]uint64, 1)
	maybe := x.Range(rows, 6, 9)
	fmt.Printf("%06b %v\n", rows[0], maybe)
	// Output:
	// 101010 []
}
