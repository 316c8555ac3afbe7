package bitmapidx

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func BenchmarkBuild(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, distinct := range []int64{10, 100000} {
		values := column(65536, func(int) int64 { return rng.Int64N(distinct) })
		b.Run(fmt.Sprint(distinct, " values"), func(b *testing.B) {
			for b.Loop() {
				Build(values, nil, nil)
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
