package compress

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkEncodeTiles encodes what the formats other than GPU-FOR are for.
func BenchmarkEncodeTiles(b *testing.B) {
	for _, tc := range tileCases {
		b.Run(fmt.Sprint(tc.name), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			v := make([]int64, benchRows)
			for i := range v {
				v[i] = tc.value(r, v, i)
			}
			words := words64(2*benchRows + 4096)
			for b.Loop() {
				Encode(v, func(n int) []uint32 { return words[:n] })
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/value")
		})
	}
}
