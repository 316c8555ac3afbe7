package olap

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"testing"
)

// wordsAt returns words of which the upper bits of the hash are those of a place.
func wordsAt(r *rand.Rand, place uint64, bits uint, n int) (words []uint64) {
	for len(words) < n {
		if x := r.Uint64(); hashOne(x)>>(64-bits) == place {
			words = append(words, x)
		}
	}
	return words
}

// TestUnite compares the union that goroutines make of sets with the words inserted one by one.
func TestUnite(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 11))
	clash := wordsAt(r, 511, 10, 100)                        // more than the slots after the last of a range
	clash = append(clash, wordsAt(r, 1023, 10, spill+20)...) // and than those after the last place
	for _, n := range append(edgeLengths, 40_000) {
		for workers := 1; workers <= 5; workers += 2 {
			for _, clashes := range []bool{false, true} {
				t.Run(fmt.Sprint(n, workers, clashes), func(t *testing.T) {
					x := &execution{ctx: context.Background(), opt: Options{Workers: workers}}
					want := map[uint64]bool{}
					var sets []*wordSet
					for k := range workers + 1 {
						s := newWordSet(r.IntN(2*n + 1))
						for range n * k / (workers + 1) {
							w := r.Uint64() >> (20 * uint(r.IntN(4)))
							want[w] = true
							s.insert(w)
						}
						if clashes {
							for _, w := range clash[k*7:] {
								want[w] = true
								s.insert(w)
							}
						}
						sets = append(sets, s)
					}
					u, err := x.unite(sets)
					if err != nil {
						t.Fatal(err)
					}
					got := map[uint64]bool{}
					u.each(func(w uint64) { got[w] = true })
					if !maps.Equal(got, want) || u.len() != len(want) {
						t.Fatalf("%d words, len %d, want %d", len(got), u.len(), len(want))
					}
					for w := range want {
						u.insert(w) // it finds each where it is
					}
					if u.len() != len(want) {
						t.Fatalf("len %d once all were inserted again, want %d", u.len(), len(want))
					}
				})
			}
		}
	}
}

// TestUnitePairs compares the union that goroutines make of sets of pairs with the pairs inserted one by one.
func TestUnitePairs(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 12))
	for _, n := range append([]int{pairsSplit - 1, pairsSplit, pairsSplit + 1, 100_000, 500_000}, edgeLengths...) {
		for workers := 1; workers <= 5; workers += 2 {
			x := &execution{ctx: context.Background(), opt: Options{Workers: workers}, memory: new(atomic.Int64), room: 1 << 40}
			want := map[[2]uint64]bool{}
			var sets []*pairSet
			for k := range workers + 1 {
				s := newPairSet()
				for range n * k / (workers + 1) {
					pair := [2]uint64{r.Uint64N(50), r.Uint64() >> (20 * uint(r.IntN(4)))}
					if n == 500_000 { // each many times, in full lists
						pair[1] %= 1 << 10
					}
					want[pair] = true
					s.insert(pair[:])
				}
				sets = append(sets, s)
			}
			u, err := x.unitePairs(sets)
			if err != nil {
				t.Fatal(err)
			}
			got := map[[2]uint64]bool{}
			u.each(func(a, b uint64) { got[[2]uint64{a, b}] = true })
			if !maps.Equal(got, want) || u.len() != len(want) {
				t.Fatalf("%d rows, %d workers: %d pairs, len %d, want %d", n, workers, len(got), u.len(), len(want))
			}
			for pair := range want {
				u.insert(pair[:]) // it finds each where it is
			}
			if u.insertAll([]uint64{50, 1, 50, 1, 50, 2}, make([]uint32, 3)); u.len() != len(want)+2 {
				t.Fatalf("%d rows, %d workers: len %d once all were inserted again and two more, want %d", n, workers, u.len(), len(want)+2)
			}
		}
	}
}

// TestWordSetOverGrows inserts words again that were set aside before the set grew.
func TestWordSetOverGrows(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 12))
	s, clash := newWordSet(0), wordsAt(r, 1023, 10, spill+2)
	for _, w := range clash {
		s.insert(w)
	}
	if len(s.over) == 0 {
		t.Fatal("no word was set aside")
	}
	for range 2000 {
		s.insert(r.Uint64())
	}
	for _, w := range clash {
		s.insert(w)
	}
	if s.len() != len(clash)+2000 {
		t.Errorf("%d words, want %d", s.len(), len(clash)+2000)
	}
}
