package wahbits

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// scattered is a segment of random bits.
func scattered(seed uint64, p float64) *Bitmap {
	rng := rand.New(rand.NewPCG(seed, 0))
	bits := make([]bool, 65536)
	scatter(rng, bits, p)
	return compressed(bits)
}

// BenchmarkAnd combines segments of random bits in both ways, and as chosen.
func BenchmarkAnd(b *testing.B) {
	for _, p := range []float64{0.0003, 0.0065, 0.016, 0.04, 0.16, 0.64} {
		x, y := scattered(1, p), scattered(2, p)
		chunks := chunksOf(x.rows)
		out := make([]uint64, chunks)
		perChunk := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(chunks), "ns/chunk")
		}
		name := fmt.Sprintf("share=%g/atoms=%.2f", p, float64(len(x.atoms))/float64(chunks))
		b.Run(name+"/runs", func(b *testing.B) {
			for b.Loop() {
				combineRuns(out, opAnd, x, y)
			}
			perChunk(b)
		})
		b.Run(name+"/windows", func(b *testing.B) {
			for b.Loop() {
				combineWindows(out, opAnd, x.atoms, y.atoms, chunks)
			}
			perChunk(b)
		})
		b.Run(name+"/driven", func(b *testing.B) {
			for b.Loop() {
				combineDriven(out, x.atoms, y.atoms, 0, chunks)
			}
			perChunk(b)
		})
		var dst *Bitmap
		b.Run(name+"/chosen", func(b *testing.B) {
			for b.Loop() {
				dst = And(dst, x, y)
			}
			perChunk(b)
		})
	}
}

// BenchmarkWindow takes the parts of combineWindows alone.
func BenchmarkWindow(b *testing.B) {
	for _, p := range []float64{0, 0.0065, 0.04, 0.64} {
		x := scattered(1, p)
		chunks := chunksOf(x.rows)
		buf, out := make([]uint64, chunks), make([]uint64, chunks)
		perChunk := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(chunks), "ns/chunk")
		}
		b.Run(fmt.Sprintf("share=%g/or", p), func(b *testing.B) {
			for b.Loop() {
				c := cursor{atoms: x.atoms}
				c.or(buf)
			}
			perChunk(b)
		})
		b.Run(fmt.Sprintf("share=%g/compress", p), func(b *testing.B) {
			for b.Loop() {
				compress(out, 0, buf)
			}
			perChunk(b)
		})
	}
}

// BenchmarkOrAll is the union of bins as of a column with as many values.
func BenchmarkOrAll(b *testing.B) {
	for _, m := range []int{8, 64} {
		var bins []*Bitmap
		for i := range m {
			bins = append(bins, scattered(uint64(i), 1/float64(m)))
		}
		var dst *Bitmap
		b.Run(fmt.Sprint(m), func(b *testing.B) {
			for b.Loop() {
				dst = OrAll(dst, bins)
			}
		})
	}
}

// BenchmarkDense reads a segment tile by tile.
func BenchmarkDense(b *testing.B) {
	for _, p := range []float64{0.0065, 0.64} {
		x := scattered(1, p)
		tile := make([]uint64, 16)
		b.Run(fmt.Sprintf("share=%g", p), func(b *testing.B) {
			for b.Loop() {
				r := newReader(x)
				for at := 0; at < x.rows; at += 1024 {
					r.Dense(tile, at, 1024)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/tile")
		})
	}
}
