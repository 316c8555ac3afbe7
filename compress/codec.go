package compress

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
// decodes faster where the gain would be small. alloc returns zeroed memory of
// the given number of 32-bit words, 8-byte aligned, or nil where there is none
// left: then Encode returns nil. values is not kept.
func Encode(values []int64, alloc func(words int) []uint32) Column {
	return EncodeAs(CodecAuto, values, alloc)
}

// EncodeAs encodes with the given codec, or as Encode where that codec cannot
// hold the values (FOR: a block whose reference or range exceeds 32 bits).
func EncodeAs(codec Codec, values []int64, alloc func(words int) []uint32) Column {
	panic("BUG: compress.EncodeAs is being written")
}

// FloatKey maps the bits of a float64 to an integer that orders as Postgres
// orders floats: NaN above all and equal to every NaN, -0 equal to +0.
func FloatKey(bits int64) int64 {
	if bits&0x7fffffffffffffff > 0x7ff0000000000000 {
		return floatKeyNaN
	}
	if bits < 0 {
		return -(bits & 0x7fffffffffffffff)
	}
	return bits
}

// FloatKeyNaN is the key of every NaN: above that of +Inf.
const floatKeyNaN = 0x7ff0000000000001
