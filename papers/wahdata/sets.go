package wahdata

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Set is a data set: attributes discretised into bins.
type Set struct {
	Name string
	Rows int
	Bins []int // of each attribute, 256 at most
	fill func(s *Set, attribute int, dst []uint8)
}

// quickShare is by how much the quick sets are shorter.
const quickShare = 32

// Sets returns the four sets of the paper, in its order; quick makes them shorter.
func Sets(quick bool) []*Set {
	sets := []*Set{
		{Name: "KDD", Rows: 4_898_431, Bins: kddBins(), fill: kdd},
		{Name: "linkage", Rows: 5_749_132, Bins: []int{25, 25, 16, 16, 16, 16, 2, 3, 3, 3, 3, 2}, fill: linkage},
		{Name: "BPA", Rows: 7_273_800, Bins: bpaBins(), fill: bpa},
		{Name: "Zipf", Rows: 32_000_000, Bins: slices.Repeat([]int{10}, 10), fill: zipf},
	}
	for _, s := range sets {
		if quick {
			s.Rows /= quickShare
		}
	}
	return sets
}

// Total is the number of bins of all attributes.
func (s *Set) Total() int {
	n := 0
	for _, b := range s.Bins {
		n += b
	}
	return n
}

// Column returns the bin of every row, for one attribute. dst's memory is used
// where it is large enough.
func (s *Set) Column(attribute int, dst []uint8) []uint8 {
	dst = slices.Grow(dst[:0], s.Rows)[:s.Rows]
	s.fill(s, attribute, dst)
	return dst
}

// Bin is a bin of an attribute.
type Bin struct{ Attribute, Bin int }

// Pick returns n bins at random, in random order: "a range query of 64 random bit
// vectors". It returns all of them where there are fewer.
func (s *Set) Pick(n int) []Bin {
	var all []Bin
	for a, bins := range s.Bins {
		for b := range bins {
			all = append(all, Bin{a, b})
		}
	}
	random(s.Name, 0).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

// random is a generator for one attribute of one set.
func random(name string, attribute uint64) *rand.Rand {
	seed := uint64(14695981039346656037)
	for _, c := range []byte(name) {
		seed = (seed ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, attribute))
}

// chooser draws bins with given weights.
type chooser struct{ upto []uint64 }

// newChooser makes weights, of any sum, into thresholds.
func newChooser(weights []float64) chooser {
	sum, at := 0.0, 0.0
	for _, w := range weights {
		sum += w
	}
	var c chooser
	for _, w := range weights {
		at += w
		c.upto = append(c.upto, uint64(at/sum*(1<<63)))
	}
	c.upto[len(c.upto)-1] = math.MaxUint64
	return c
}

func (c chooser) draw(rng *rand.Rand) uint8 {
	r := rng.Uint64() >> 1
	for i, u := range c.upto {
		if r < u {
			return uint8(i)
		}
	}
	return uint8(len(c.upto) - 1)
}

// powers are the weights 1/k^skew of ranks 1 to n: the paper's p(k, n, skew), not
// yet divided by their sum.
func powers(n int, skew float64) []float64 {
	var w []float64
	for k := 1; k <= n; k++ {
		w = append(w, math.Pow(float64(k), -skew))
	}
	return w
}

// zipf is the paper's synthetic set: ten attributes of ten bins, each row drawn
// independently with skew 2. No row is like its neighbour.
func zipf(s *Set, attribute int, dst []uint8) {
	rng := random(s.Name, uint64(1+attribute))
	c := newChooser(powers(s.Bins[attribute], 2))
	for i := range dst {
		dst[i] = c.draw(rng)
	}
}
