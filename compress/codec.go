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

// The codecs. Those of the paper keep its names.
const (
	CodecAuto     Codec = 0 // EncodeAs: let the chooser decide; never stored
	CodecPlain    Codec = 1 // 64-bit words as they are
	CodecConstant Codec = 2 // one value for all rows
	CodecFOR      Codec = 3 // GPU-FOR: 32-bit reference, widths 0..32
	CodecFOR64    Codec = 4 // GPU-FOR's layout with a 64-bit reference, widths 0..64
	CodecLookup   Codec = 5 // sorted distinct values and GPU-FOR codes into them
	CodecDFOR     Codec = 6 // GPU-DFOR; reserved
	CodecRFOR     Codec = 7 // GPU-RFOR; reserved
	CodecLanes    Codec = 8 // vectors of 1024 values in 32 lanes; reserved
)

var codecNames = [...]string{"auto", "plain", "constant", "for", "for64", "lookup", "dfor", "rfor", "lanes"}

// String returns the codec's name as settings and pgaccel.columns show it.
func (c Codec) String() string {
	if int(c) < len(codecNames) {
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

// Encode encodes values with the codec that takes the fewest bytes, or one that
// decodes faster where the gain would be small. alloc returns memory of the given
// number of 32-bit words, 8-byte aligned, zeroed or not, or nil where there is none
// left: then Encode returns nil. values is not kept. It panics beyond 2^24 values.
func Encode(values []int64, alloc func(words int) []uint32) Column {
	return EncodeAs(CodecAuto, values, alloc)
}

// EncodeAs encodes with the given codec, or as Encode where that codec cannot
// hold the values: FOR where a block's reference exceeds int32 or its range 32
// bits, Constant where there are several values, Lookup where there are more
// than 4096 or none.
func EncodeAs(codec Codec, values []int64, alloc func(words int) []uint32) Column {
	if len(values) > rowsMax {
		panic(fmt.Sprintf("BUG: column of %d values", len(values)))
	}
	switch codec {
	case CodecPlain:
		return withWords(alloc, headerWords+2*len(values), func(dst []uint32) Column {
			return encodePlain(dst, values)
		})
	case CodecAuto, CodecConstant, CodecFOR, CodecFOR64, CodecLookup:
	default:
		panic(fmt.Sprintf("BUG: no encoder for codec %v", codec))
	}
	if v, ok := constant(values); ok && (codec == CodecAuto || codec == CodecConstant) {
		return withWords(alloc, headerWords, func(dst []uint32) Column {
			return encodeConst(dst, len(values), v)
		})
	}
	p := lookupPlans.Get().(*lookupPlan)
	defer lookupPlans.Put(p)
	if codec == CodecLookup && p.analyse(values) {
		return withWords(alloc, p.words(), func(dst []uint32) Column { return p.encode(dst) })
	}
	f := &p.forValues
	f.analyse(values)
	wide := !f.narrow || codec == CodecFOR64
	words := f.words(wide)
	if codec == CodecAuto || codec == CodecLookup || codec == CodecConstant || codec == CodecFOR && wide {
		// A table pays where codes are clearly shorter than offsets; it costs one
		// more load for each value.
		if 32*words > lookupBitsMin*len(values) && p.analyse(values) && p.words() < words*9/10 {
			return withWords(alloc, p.words(), func(dst []uint32) Column { return p.encode(dst) })
		}
		// Copying beats unpacking where there is nothing to unpack.
		if plain := headerWords + 2*len(values); words >= plain*15/16 {
			return withWords(alloc, plain, func(dst []uint32) Column { return encodePlain(dst, values) })
		}
	}
	return withWords(alloc, words, func(dst []uint32) Column { return f.encode(dst, values, wide) })
}

// lookupBitsMin is the bits per value below which a table is not tried.
const lookupBitsMin = 8

func withWords(alloc func(words int) []uint32, words int, encode func([]uint32) Column) Column {
	dst := alloc(words)
	if dst == nil {
		return nil
	}
	return encode(dst[:words])
}

// constant reports whether all values are equal, and which one; 0 for none.
func constant(values []int64) (v int64, ok bool) {
	if len(values) == 0 {
		return 0, true
	}
	v = values[0]
	for _, u := range values {
		if u != v {
			return 0, false
		}
	}
	return v, true
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
