package bitmapidx_test

import (
	"fmt"
	"slices"

	"pgaccel/bitmapidx"
)

func ExampleBuilder() {
	var b bitmapidx.Builder
	b.Add(3)
	b.AppendRun(false, 1_000_000)
	b.AppendRun(true, 2)
	m := b.Finish(nil)
	fmt.Println(m.Len(), "rows,", m.Count(), "set, in", len(m.Atoms()), "atoms")
	fmt.Println(slices.Collect(m.All()))
	// Output:
	// 1000006 rows, 3 set, in 3 atoms
	// [3 1000004 1000005]
}

func ExampleAnd() {
	var a, b bitmapidx.Builder
	a.AppendRun(true, 500)
	a.AppendRun(false, 500)
	b.AppendRun(false, 498)
	b.AppendRun(true, 502)
	both := bitmapidx.And(nil, a.Finish(nil), b.Finish(nil))
	fmt.Println(slices.Collect(both.All()))
	// Output: [498 499]
}

func ExampleIndex_Range() {
	values := []int64{5, 9, 5, 7, 0, 9}
	nulls := []uint64{1 << 4} // row 4
	x := bitmapidx.Build(values, nulls, bitmapidx.Options{}, nil)
	sure, maybe := x.Range(6, 9)
	fmt.Println(slices.Collect(sure.All()), maybe == nil || maybe.Empty(), x.NullCount())

	// With few bins values share one, and those at its ends are candidates only.
	x = bitmapidx.Build(values, nulls, bitmapidx.Options{EqualityBins: 1, RangeBins: 1}, nil)
	fmt.Println(x.Bins(), x.Exact())
	// Output:
	// [1 3 5] true 1
	// 1 false
}
