package compress

import (
	"unsafe"

	"pgaccel/internal/simd"
)

// constColumn is one value for all rows: a header and nothing else.
type constColumn struct {
	words []uint32
	n     int
	v     int64
}

func encodeConst(dst []uint32, n int, v int64) *constColumn {
	writeHeader(dst, CodecConstant, n)
	dst[6], dst[7] = uint32(uint64(v)), uint32(uint64(v)>>32)
	return &constColumn{words: dst, n: n, v: v}
}

func (c *constColumn) Codec() Codec { return CodecConstant }
func (c *constColumn) Len() int     { return c.n }
func (c *constColumn) Bytes() int   { return 4 * len(c.words) }

func (c *constColumn) Decode(dst []int64, start int) {
	checkRange(start, len(dst), c.n)
	for i := range dst {
		dst[i] = c.v
	}
}

func (c *constColumn) Gather(dst []int64, start int, sel []uint16) {
	checkSel(start, sel, c.n)
	dst = dst[:len(sel)]
	for i := range dst {
		dst[i] = c.v
	}
}

func (c *constColumn) Bounds(start, n int) (lo, hi int64) {
	checkRange(start, n, c.n)
	return c.v, c.v
}

func (c *constColumn) FilterRange(mask []uint64, start, n int, lo, hi int64) {
	checkRange(start, n, c.n)
	if c.v < lo || c.v > hi {
		clear(mask[:(n+63)/64])
	}
}

// plainColumn is the values as they are: for floats, and for integers that use
// all 64 bits.
type plainColumn struct {
	words  []uint32 // nil for Plain's: values without a header
	values []int64  // the same memory
}

// Plain returns a Plain column over values themselves, which must stay as they are
// and outlive it. It has no header: Words makes a copy that has one.
func Plain(values []int64) Column { return &plainColumn{values: values} }

func encodePlain(dst []uint32, values []int64) *plainColumn {
	writeHeader(dst, CodecPlain, len(values))
	c := &plainColumn{words: dst, values: int64s(dst[headerWords:])}
	copy(c.values, values)
	return c
}

// int64s reads pairs of little-endian words, 8-byte aligned, as integers.
func int64s(words []uint32) []int64 {
	if len(words) == 0 {
		return nil
	}
	return unsafe.Slice((*int64)(unsafe.Pointer(&words[0])), len(words)/2)
}

func (c *plainColumn) Codec() Codec { return CodecPlain }
func (c *plainColumn) Len() int     { return len(c.values) }
func (c *plainColumn) Bytes() int   { return 4 * (headerWords + 2*len(c.values)) }

func (c *plainColumn) Decode(dst []int64, start int) {
	checkRange(start, len(dst), len(c.values))
	copy(dst, c.values[start:])
}

func (c *plainColumn) Gather(dst []int64, start int, sel []uint16) {
	dst = dst[:len(sel)]
	tile := c.values[start:]
	for i, s := range sel {
		dst[i] = tile[s]
	}
}

func (c *plainColumn) Bounds(start, n int) (lo, hi int64) {
	checkRange(start, n, len(c.values))
	return simd.Bounds(c.values[start : start+n])
}

func (c *plainColumn) FilterRange(mask []uint64, start, n int, lo, hi int64) {
	checkRange(start, n, len(c.values))
	filterValues(mask, c.values[start:start+n], lo, hi)
}

// filterValues is FilterRange over decoded values.
func filterValues(mask []uint64, values []int64, lo, hi int64) {
	if lo > hi {
		clear(mask[:(len(values)+63)/64])
		return
	}
	simd.FilterValues(mask, values, lo, uint64(hi)-uint64(lo))
}
