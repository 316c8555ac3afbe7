package compress

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSortedIds: section 5.1 of the paper promises 1.8 bits a value, where GPU-FOR takes
// 7.8.
func TestSortedIds(t *testing.T) {
	v := make([]int64, 65536)
	for i := range v {
		v[i] = 1 + int64(i)
	}
	if c := EncodeAs(CodecDFOR, v, words64); c.Codec() != CodecDFOR || 8*float64(c.Bytes())/65536 > 1.8 {
		t.Errorf("%v: %d bytes", c.Codec(), c.Bytes())
	}
}

// TestTileLayouts pins the words of the formats: they are read by devices and from disk.
func TestTileLayouts(t *testing.T) {
	tail := func(words []uint32, zeros int) []uint32 { return append(words, make([]uint32, zeros)...) }
	is := func(c Column, want []uint32) {
		t.Helper()
		want[2] = uint32(len(want))
		if got := Words(c); !slices.Equal(got, want) {
			t.Errorf("%v:\ngot  %x\nwant %x", c.Codec(), got, want)
		}
	}
	// 130 values: deltas of 3, but 4 after value 39; the second block begins with value 128.
	v := make([]int64, 130)
	for i := range v {
		v[i] = 100 + 3*int64(i)
		if i >= 40 {
			v[i]++
		}
	}
	is(EncodeAs(CodecDFOR, v, words64), tail([]uint32{0x50470106, 130, 0, 128, 4, 4, 0, 0, // header
		1, 4, 6, // block starts: after the first value
		0, 3*129 + 1, // zone
		100, 3, 0x00000100, 1 << (39 - 32), 3, 0, // first; reference, widths, one miniblock; reference, widths
	}, tailWords))
	for i := range v {
		v[i] += 1 << 40
	}
	is(EncodeAs(CodecDFOR, v, words64), tail([]uint32{0x50470109, 130, 0, 128, 4, 4, 0, 0,
		2, 6, 9, 0, 0, 3*129 + 1, 0, 100, 256, 3, 0, 0x00000100, 1 << 7, 3, 0, 0}, tailWords))

	// Runs 7 7 5 5 5 9, and 9 again after the end of a block.
	v = slices.Concat([]int64{7, 7, 5, 5, 5}, slices.Repeat([]int64{9}, 509))
	is(EncodeAs(CodecRFOR, v, words64), tail([]uint32{0x50470107, 514, 0, 512, 16, 0, 0, 0,
		0, 4, 7, 7, 11, 14, // starts of values, of lengths
		3, 5, 3, 2 | 0<<3 | 4<<6, // count, reference, widths, miniblock
		1, 9, 0,
		3, 2, 9, 0 | 1<<9 | 505<<18, // lengths less 2
		1, 2, 0}, runTailWords))
	for i := range v {
		v[i] -= 1 << 40
	}
	is(EncodeAs(CodecRFOR, v, words64), tail([]uint32{0x5047010a, 514, 0, 512, 16, 0, 0, 0,
		0, 5, 9, 9, 13, 16, 3, 5, 0xffffff00, 3, 2 | 0<<3 | 4<<6, 1, 9, 0xffffff00, 0,
		3, 2, 9, 0 | 1<<9 | 505<<18, 1, 2, 0}, runTailWords))

	// Hundredths, with a NaN between them.
	v = make([]int64, 100)
	for i := range v {
		v[i] = int64(math.Float64bits(float64(125+i) / 100))
	}
	v[41] = 0x7ff8000000000123
	c := EncodeAs(CodecALP, v, words64)
	w := Words(c)
	if c.Codec() != CodecALP || w[3] != 16 || w[4] != 1024 || w[5] != 1 {
		t.Fatalf("%v: %x", c.Codec(), w[:8])
	}
	if e, f := w[9]&255, w[9]>>8; w[8] != 0 || e-f != 2 || w[10] != 1 || w[11] != 0 || w[12] != 41 || w[14] != 0x123 || w[15] != 0x7ff80000 {
		t.Errorf("exceptions %x", w[8:16])
	}
	for i := range 100 {
		if d := decodeReference(w[16:], i); d != 125+int64(i) && i != 41 {
			t.Errorf("integer %d is %d", i, d)
		}
	}
}

// TestEncodeFloats: decimals become ALP; what is none costs no more than Plain; every
// bit comes back.
func TestEncodeFloats(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	fill := func(n int, f func() float64) []int64 {
		v := make([]int64, n)
		for i := range v {
			v[i] = int64(math.Float64bits(f()))
		}
		return v
	}
	latency := func() float64 { return math.Round(math.Exp(r.NormFloat64()+4)*1000) / 1000 }
	for _, c := range []struct {
		name   string
		values []int64
		codec  Codec
		bits   float64 // a value, at most
	}{
		{"prices", fill(65536, func() float64 { return float64(r.IntN(100000)) / 100 }), CodecALP, 18},
		{"latencies", fill(65536, latency), CodecALP, 24},
		{"negative", fill(5000, func() float64 { return -latency() }), CodecALP, 25},
		{"whole", fill(5000, func() float64 { return float64(r.IntN(1000)) }), CodecALP, 12},
		{"noise", fill(65536, r.NormFloat64), CodecPlain, 64.1},
		{"one", fill(1000, func() float64 { return 0.1 }), CodecConstant, 1},
		{"none", nil, CodecConstant, 1},
	} {
		col := EncodeFloats(c.values, words64)
		if n := len(c.values); col.Codec() != c.codec || n > 0 && 8*float64(col.Bytes())/float64(n) > c.bits {
			t.Errorf("%s: %v of %d bytes for %d values", c.name, col.Codec(), col.Bytes(), n)
		}
	}
	for _, n := range lengths {
		data(n, r, func(name string, values []int64) {
			c := EncodeFloats(values, words64)
			if plain := 4 * (headerWords + 2*n); c.Bytes() > plain {
				t.Errorf("%d rows, %s: %d bytes, %d as they are", n, name, c.Bytes(), plain)
			}
			parsed, err := ParseBytes(Bytes(c))
			if err != nil {
				t.Fatal(err)
			}
			got := make([]int64, n)
			if parsed.Decode(got, 0); !slices.Equal(got, values) {
				t.Errorf("%d rows, %s: other floats come back", n, name)
			}
		})
	}
}
