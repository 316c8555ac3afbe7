package compress

//go:generate go test ./internal/gen -update

import (
	"fmt"
	"slices"

	"pgaccel/internal/invariant"
)

// Codec names a column format. The numbers are written to disk and read by
// devices: they never change.
type Codec uint32

// The codecs. Those of the paper keep its names. 8 and 12 were others, which nothing chose.
const (
	CodecAuto     Codec = 0  // EncodeAs: let the chooser decide; never stored
	CodecPlain    Codec = 1  // 64-bit words as they are
	CodecConstant Codec = 2  // one value for all rows
	CodecFOR      Codec = 3  // GPU-FOR: 32-bit reference, widths 0..32
	CodecFOR64    Codec = 4  // GPU-FOR's layout with a 64-bit reference, widths 0..64
	CodecLookup   Codec = 5  // sorted distinct values and GPU-FOR codes into them
	CodecDFOR     Codec = 6  // GPU-DFOR: 32-bit values, deltas as GPU-FOR
	CodecRFOR     Codec = 7  // GPU-RFOR: runs of 32-bit values
	CodecDFOR64   Codec = 9  // GPU-DFOR's layout with 64-bit values and deltas
	CodecRFOR64   Codec = 10 // GPU-RFOR's layout with 64-bit values
	CodecALP      Codec = 11 // floats as decimals, after ALP
)

var codecNames = [...]string{"auto", "plain", "constant", "for", "for64", "lookup", "dfor", "rfor", 9: "dfor64", "rfor64", "alp"}

// String returns the codec's name as settings and pgaccel.columns show it.
func (c Codec) String() string {
	if int(c) < len(codecNames) && codecNames[c] != "" {
		return codecNames[c]
	}
	return "unknown"
}

// Column is an encoded column of one segment. It is immutable and safe for any
// number of readers; its words live where Encode's alloc put them and must stay
// there as long as the column is used. Its methods are called once per tile,
// never per row. Arguments outside the stated shape are programmer errors and
// panic.
type Column interface {
	Codec() Codec
	Len() int   // rows
	Bytes() int // encoded size, header included
	// Decode writes the values of rows [start, start+len(dst)) to dst. start is a
	// multiple of 128, the end may lie anywhere up to Len.
	Decode(dst []int64, start int)
	// Gather writes the value of row start+sel[i] to dst[i]. sel ascends.
	Gather(dst []int64, start int, sel []uint16)
	// Bounds returns bounds of the values of rows [start, start+n), from headers
	// alone: every value v has lo <= v <= hi, but the bounds need not be reached.
	// start is a multiple of 128, n > 0.
	Bounds(start, n int) (lo, hi int64)
	// FilterRange clears every bit i of bits, i < n, whose row start+i holds a value
	// outside [lo, hi]; bit i is bit i&63 of bits[i>>6]. Set bits of rows inside stay
	// as they are, bits past n are left alone or cleared. start is a multiple of 128.
	FilterRange(bits []uint64, start, n int, lo, hi int64)
}

// checkRange panics unless rows [start, start+n) exist and start begins a block.
func checkRange(start, n, rows int) {
	if start%blockRows != 0 || start < 0 || n < 0 || start+n > rows {
		panic(fmt.Sprintf("BUG: rows [%d, %d+%d) of a column of %d", start, start, n, rows))
	}
}

// checkSel is checkRange for Gather, where invariants are checked: it looks at
// every position.
func checkSel(start int, sel []uint16, rows int) {
	if !invariant.Enabled || len(sel) == 0 {
		return
	}
	checkRange(start, int(sel[len(sel)-1])+1, rows)
	invariant.Check(slices.IsSorted(sel), "selection does not ascend")
}
