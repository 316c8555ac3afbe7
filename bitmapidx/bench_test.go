package bitmapidx

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func BenchmarkBuild(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	v := int64(0)
	for _, c := range []struct {
		name  string
		value func(int) int64
	}{
		{"10 values", func(int) int64 { return rng.Int64N(10) }},
		{"many values", func(int) int64 { return rng.Int64N(1 << 30) }},
		{"runs", func(int) int64 {
			if rng.IntN(2000) == 0 {
				v = rng.Int64N(1 << 30)
			}
			return v
		}},
	} {
		values := column(65536, c.value)
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if p := Profiled(values, nil); p.Rows > 0 {
					Build(values, nil, nil)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/65536, "ns/row")
		})
	}
}

// BenchmarkRange looks up ranges of some bins of a segment, of values that are scattered or
// clustered.
func BenchmarkRange(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name  string
		value func(i int) int64
	}{
		{"scattered", func(int) int64 { return rng.Int64N(64) }},
		{"clustered", func(i int) int64 { return int64(i / 200 * 37 % 64) }},
		{"sorted", func(i int) int64 { return int64(i / 1024) }},
	} {
		x := Build(column(65536, c.value), nil, nil)
		rows := make([]uint64, 1024)
		for _, bins := range []int64{1, 2, 8, 32} {
			b.Run(fmt.Sprintf("%s/%d", c.name, bins), func(b *testing.B) {
				for b.Loop() {
					x.Range(rows, 16, 15+bins)
				}
			})
		}
	}
}
