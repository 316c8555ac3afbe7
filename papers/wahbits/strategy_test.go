package wahbits

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestDecomp(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for _, n := range lengths {
		for _, name := range shapeNames() {
			bits, b := shaped(name, rng, n)
			words := Decomp(b.Atoms(), chunksOf(n))
			for c, w := range words {
				for i := range chunkBits {
					if set := w>>i&1 != 0; c*chunkBits+i < n && set != bits[c*chunkBits+i] || c*chunkBits+i >= n && set || w>>63 != 0 {
						t.Fatalf("%s, %d rows: row %d is %v", name, n, c*chunkBits+i, set)
					}
				}
			}
			if !FromChunks(words, n).Equal(b) {
				t.Fatalf("%s, %d rows: FromChunks differs", name, n)
			}
		}
	}
}

func TestStrategiesAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 34))
	names := shapeNames()
	for _, n := range []int{0, 1, 63, 64, 127, 128, 511, 512, 513, 63 * 1024, 65536, 63*3000 + 5} {
		for _, m := range []int{1, 2, 3, 4, 5, 7, 8, 31, 64, 65, 130} {
			if n*m > 1<<21 || testing.Short() && n*m > 1<<18 {
				continue
			}
			want := make([]bool, n)
			var bins []*Bitmap
			for range m {
				bits, b := shaped(names[rng.IntN(len(names))], rng, n)
				if rng.IntN(2) == 0 { // lest everything is full
					bits, b = shaped("rare", rng, n)
				}
				for i, set := range bits {
					want[i] = want[i] || set
				}
				bins = append(bins, b)
			}
			expected := compressed(want)
			for _, s := range Strategies() {
				for _, workers := range []int{1, 2, 5} {
					if got := s.Union(bins, workers); !got.Equal(expected) {
						sameBits(t, fmt.Sprintf("%v of %d bins, %d rows, %d workers", s, m, n, workers), got, want)
					}
				}
			}
			for _, p := range []int{1, 2, 3, m} {
				cols := decompression(bins, 1)
				if got := FromChunks(reduceHybrid(cols, p, 7, 2), n); !got.Equal(expected) {
					t.Fatalf("hybrid of %d tiles, %d bins, %d rows differs", p, m, n)
				}
			}
		}
	}
}

func TestStrategyNames(t *testing.T) {
	var names []string
	for _, s := range append(Strategies(), strategies) {
		if slices.Contains(names, s.String()) {
			t.Errorf("two strategies are called %v", s)
		}
		names = append(names, s.String())
	}
}
