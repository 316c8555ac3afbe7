package compress

import (
	"fmt"
	"testing"
)

func BenchmarkUnpack(b *testing.B) {
	for _, w := range []uint{0, 3, 4, 6, 7, 8, 11, 12, 15, 16, 17, 18, 24, 26, 32, 40, 63} {
		b.Run(fmt.Sprint(w), func(b *testing.B) {
			src := make([]uint32, 8*4*w)
			var dst [1024]int64
			for b.Loop() {
				for m := range 32 {
					unpack(w, (*[32]int64)(dst[m*32:]), src[uint(m)*w:], 7)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/value")
		})
	}
}

func BenchmarkOutside(b *testing.B) {
	for _, w := range []uint{3, 4, 6, 7, 8, 11, 12, 15, 16, 17, 18, 24, 26, 32, 40, 63} {
		b.Run(fmt.Sprint(w), func(b *testing.B) {
			src := make([]uint32, 8*4*w)
			for b.Loop() {
				for m := range 32 {
					outside(w, src[uint(m)*w:], 3, 100)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/value")
		})
	}
}
