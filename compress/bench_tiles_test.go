package compress

import (
	"math/rand/v2"
	"testing"
)

// tileCases are columns that the formats other than GPU-FOR are for.
var tileCases = []struct {
	name   string
	codecs []Codec
	value  func(r *rand.Rand, v []int64, i int) int64
}{
	{"ids", []Codec{CodecFOR, CodecDFOR}, func(_ *rand.Rand, _ []int64, i int) int64 { return int64(i) }},
	{"timestamps", []Codec{CodecFOR64, CodecDFOR64}, func(r *rand.Rand, _ []int64, i int) int64 {
		return 7e14 + int64(i)*3e6 + int64(r.IntN(2e6))
	}},
	{"runs of 4", []Codec{CodecFOR, CodecLookup, CodecRFOR, CodecDFOR}, func(r *rand.Rand, v []int64, i int) int64 {
		return runValue(r, v, i, 4)
	}},
	{"orders", []Codec{CodecFOR, CodecLookup, CodecRFOR}, func(r *rand.Rand, v []int64, i int) int64 {
		if i%28 == 0 || i%28 == 1 || i%28 == 3 || i%28 == 6 || i%28 == 10 || i%28 == 15 || i%28 == 21 {
			return int64(r.IntN(2400)) * 37 // runs of one to seven
		}
		return v[i-1]
	}},
	{"runs of 40", []Codec{CodecFOR, CodecRFOR}, func(r *rand.Rand, v []int64, i int) int64 { return runValue(r, v, i, 40) }},
	{"17 bits", []Codec{CodecFOR}, func(r *rand.Rand, _ []int64, i int) int64 { return int64(r.IntN(1 << 17)) }},
}

func runValue(r *rand.Rand, v []int64, i, length int) int64 {
	if i > 0 && r.IntN(length) > 0 {
		return v[i-1]
	}
	return int64(r.IntN(2400)) * 37
}

func tileBench(b *testing.B, f func(c Column, start int, sel []uint16)) {
	for _, tc := range tileCases {
		r := rand.New(rand.NewPCG(1, 1))
		v := make([]int64, benchRows)
		for i := range v {
			v[i] = tc.value(r, v, i)
		}
		var sel []uint16
		for i := range 1024 {
			if r.IntN(50) == 0 {
				sel = append(sel, uint16(i))
			}
		}
		for _, codec := range tc.codecs {
			b.Run(tc.name+"/"+codec.String(), func(b *testing.B) {
				c := EncodeAs(codec, v, words64)
				if c.Codec() != codec {
					b.Fatalf("encoded as %v", c.Codec())
				}
				for b.Loop() {
					for start := 0; start < benchRows; start += 1024 {
						f(c, start, sel)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/value")
				b.ReportMetric(float64(c.Bytes())*8/benchRows, "bits/value")
			})
		}
	}
}

func BenchmarkTileDecode(b *testing.B) {
	dst := make([]int64, 1024)
	tileBench(b, func(c Column, start int, _ []uint16) { c.Decode(dst, start) })
}

func BenchmarkTileFilter(b *testing.B) {
	mask := make([]uint64, 16)
	tileBench(b, func(c Column, start int, _ []uint16) {
		for i := range mask {
			mask[i] = ^uint64(0)
		}
		lo, hi := c.Bounds(start, 1024)
		c.FilterRange(mask, start, 1024, lo+(hi-lo)/4+1, lo+(hi-lo)/2)
	})
}

// BenchmarkTileGather selects one row in fifty; ns/value counts all rows.
func BenchmarkTileGather(b *testing.B) {
	dst := make([]int64, 1024)
	tileBench(b, func(c Column, start int, sel []uint16) { c.Gather(dst, start, sel) })
}
