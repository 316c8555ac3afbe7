package compress

import (
	"math"
	"testing"
)

// TestWidths: the bits of columns whose offsets, deltas and codes are known.
func TestWidths(t *testing.T) {
	ramp := make([]int64, 1100) // offsets of 7 bits in whole blocks, of 7 and less in the last
	runs := make([]int64, 1100) // runs of ten, of values 0 to 3
	for i := range ramp {
		ramp[i], runs[i] = int64(i), int64(i/10%4)
	}
	wholes := make([]int64, 1100)
	for i := range wholes {
		wholes[i] = int64(math.Float64bits(float64(i)))
	}
	for _, c := range []struct {
		codec       Codec
		values      []int64
		least, most int
	}{
		{CodecPlain, ramp, 64, 64},
		{CodecPlain, nil, 0, 0},
		{CodecConstant, make([]int64, 9), 0, 0},
		{CodecFOR, ramp, 5, 7},
		{CodecFOR64, []int64{-1 << 63, 1<<63 - 1}, 64, 64},
		{CodecLookup, []int64{7, 1 << 40, 7, 1 << 50}, 2, 2},
		{CodecDFOR, ramp, 0, 0},
		{CodecRFOR, runs, 2, 2},
		{CodecALP, wholes, 5, 7},
	} {
		col := EncodeAs(c.codec, c.values, func(words int) []uint32 { return make([]uint32, words) })
		if col.Codec() != c.codec {
			t.Fatalf("%v became %v", c.codec, col.Codec())
		}
		if least, most := Widths(col); least != c.least || most != c.most {
			t.Errorf("%v: %d to %d bits, want %d to %d", c.codec, least, most, c.least, c.most)
		}
	}
}
