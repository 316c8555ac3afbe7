package compress

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

const benchRows = 65536

func benchColumn(width int, codec Codec) (Column, []int64) {
	r := rand.New(rand.NewPCG(1, 1))
	v := make([]int64, benchRows)
	for i := range v {
		v[i] = int64(r.Uint64() & (1<<width - 1))
	}
	return EncodeAs(codec, v, words64), v
}

var benchCases = []struct {
	codec  Codec
	widths []int
}{
	{CodecFOR, []int{0, 1, 3, 4, 6, 8, 11, 12, 15, 16, 17, 18, 24, 26, 32}},
	{CodecFOR64, []int{17, 33, 40, 63, 64}},
	{CodecLookup, []int{11}},
	{CodecPlain, []int{64}},
	{CodecConstant, []int{0}},
}

// bench runs f over every tile of 1024 rows of each codec and width, and reports
// the time per value and the decoded bytes per second.
func bench(b *testing.B, f func(b *testing.B, c Column, start int)) {
	for _, bc := range benchCases {
		for _, w := range bc.widths {
			b.Run(fmt.Sprintf("%v/%d", bc.codec, w), func(b *testing.B) {
				c, _ := benchColumn(w, bc.codec)
				if c.Codec() != bc.codec {
					b.Fatalf("encoded as %v", c.Codec())
				}
				b.SetBytes(8 * benchRows)
				for b.Loop() {
					for start := 0; start < benchRows; start += 1024 {
						f(b, c, start)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/value")
			})
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	dst := make([]int64, 1024)
	bench(b, func(_ *testing.B, c Column, start int) { c.Decode(dst, start) })
}

func BenchmarkFilterRange(b *testing.B) {
	mask := make([]uint64, 16)
	bench(b, func(_ *testing.B, c Column, start int) {
		for i := range mask {
			mask[i] = ^uint64(0)
		}
		lo, hi := c.Bounds(start, 1024)
		c.FilterRange(mask, start, 1024, lo+(hi-lo)/4+1, hi/2)
	})
}

// BenchmarkGather selects one row in eight; ns/value counts all rows of the tile.
func BenchmarkGather(b *testing.B) {
	dst := make([]int64, 1024)
	var sel []uint16
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 1024 {
		if r.IntN(8) == 0 {
			sel = append(sel, uint16(i))
		}
	}
	bench(b, func(_ *testing.B, c Column, start int) { c.Gather(dst, start, sel) })
}

func BenchmarkEncode(b *testing.B) {
	for _, w := range []int{3, 11, 17, 24, 40, 64} {
		b.Run(fmt.Sprint(w), func(b *testing.B) {
			_, v := benchColumn(w, CodecPlain)
			words := words64(2*benchRows + 4096)
			for b.Loop() {
				Encode(v, func(n int) []uint32 { return words[:n] })
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/value")
		})
	}
}
