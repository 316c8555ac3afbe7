package compress_test

import (
	"fmt"

	"pgaccel/compress"
)

// heap gives memory of Go's heap, 8-byte aligned as encoded columns must be.
func heap(words int) []uint32 { return make([]uint32, words) }

func ExampleEncode() {
	values := make([]int64, 1000)
	for i := range values {
		values[i] = 20240101 + int64(i%90)
	}
	c := compress.Encode(values, heap)
	fmt.Println(c.Codec(), c.Len(), "rows in", c.Bytes(), "bytes")
	decoded := make([]int64, 3)
	c.Decode(decoded, 128) // rows 128 to 130
	fmt.Println(decoded)
	// Output:
	// for 1000 rows in 1028 bytes
	// [20240139 20240140 20240141]
}

func ExampleColumn_filterRange() {
	c := compress.Encode([]int64{12, 40, 7, 25, 31}, heap)
	mask := []uint64{1<<5 - 1} // all five rows
	c.FilterRange(mask, 0, c.Len(), 10, 30)
	fmt.Printf("%05b\n", mask[0])
	// Output: 01001
}

func ExampleParseBytes() {
	c := compress.EncodeAs(compress.CodecFOR, []int64{100, 101, 103}, heap)
	stored := compress.Bytes(c)
	read, err := compress.ParseBytes(stored)
	if err != nil {
		fmt.Println(err)
		return
	}
	least, most := compress.Widths(read)
	fmt.Println(read.Codec(), read.Len(), least, most)

	stored[12] = 99 // damaged
	_, err = compress.ParseBytes(stored)
	fmt.Println(err)
	// Output:
	// for 3 2 2
	// corrupt column: blocks of 99 values in 4 miniblocks
}
