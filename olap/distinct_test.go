package olap

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"pgaccel/gpu/program"
	"slices"
	"testing"
)

// edgeLengths are numbers of rows at which loops over tiles, blocks and words end.
var edgeLengths = []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 1023, 1024, 3000}

type pair struct {
	g uint32
	x int64
}

// feed adds pairs to a state in tiles of random length; ungrouped where all are of one
// group and the state is of one.
func feed(r *rand.Rand, a *acc, s *state, pairs []pair, ungrouped bool) {
	for len(pairs) > 0 {
		n := min(1+r.IntN(tileRows), len(pairs))
		index, v := make([]uint32, n), vec{v: make([]int64, n)}
		for k, p := range pairs[:n] {
			index[k], v.v[k] = p.g, p.x
		}
		if r.IntN(2) == 0 {
			// The same with nulls between.
			v.nulls = make([]uint8, n)
			for k := 0; k < len(v.v) && len(v.v) < tileRows; k += 3 {
				at := r.IntN(len(v.v))
				v.v = append(v.v[:at:at], append([]int64{a.arg.lo}, v.v[at:]...)...)
				index = append(index[:at:at], append([]uint32{index[0]}, index[at:]...)...)
				v.nulls = append(v.nulls[:at:at], append([]uint8{1}, v.nulls[at:]...)...)
			}
		}
		if ungrouped {
			index = nil
		}
		s.add(a, index, v, len(v.v))
		pairs = pairs[n:]
	}
}

func newState(a *acc, x extent, groups int) *state {
	s := &state{}
	s.open(a, x)
	s.grow(a, groups)
	return s
}

// mergeSome merges from into to group by group: all of it, or some groups and then the
// others. mapped gives each group its target.
func mergeSome(r *rand.Rand, a *acc, to, from *state, mapped []uint32) {
	if r.IntN(2) == 0 {
		to.mergeAll(a, from, nil, mapped)
		return
	}
	var of, rest, target, restTarget []uint32
	for j, i := range mapped {
		if r.IntN(2) == 0 {
			of, target = append(of, uint32(j)), append(target, i)
		} else {
			rest, restTarget = append(rest, uint32(j)), append(restTarget, i)
		}
	}
	to.mergeAll(a, from, of, target)
	to.mergeAll(a, from, rest, restTarget)
}

func distinctOf(s *state) map[pair]bool {
	out := map[pair]bool{}
	s.extra.(*distinct).each(func(g uint32, x int64) { out[pair{g, x}] = true })
	return out
}

// extents are what a table of n groups may know of itself.
func extents(n int) []extent {
	return []extent{{uint64(n), 1 << 16}, {uint64(n), 0}, {0, 0}, {uint64(n), 500}}
}

func TestDistinct(t *testing.T) {
	kinds := map[string]bool{}
	for seed, bounds := range [][2]int64{{-3, 5}, {0, 0}, {0, 63}, {0, 64}, {-1 << 40, -1<<40 + 3000}, {0, 1 << 31}, {-1 << 45, 1 << 45}, {math.MinInt64, math.MaxInt64}, {math.MinInt64, math.MinInt64 + 1}} {
		for _, groups := range []int{1, 2, 7, 300} {
			for _, n := range edgeLengths {
				r := rand.New(rand.NewPCG(uint64(seed), uint64(n)))
				a := &acc{kind: accDistinct, arg: &node{lo: bounds[0], hi: bounds[1]}}
				some := extents(groups)
				x, y := some[r.IntN(len(some))], some[r.IntN(len(some))]
				from, to := newState(a, x, groups), newState(a, y, groups)
				draw := func() (out []pair) {
					for range n {
						if len(out) > 0 && r.IntN(4) == 0 { // a run
							out = append(out, out[len(out)-1])
							continue
						}
						span := uint64(bounds[1]) - uint64(bounds[0])
						if span > 100 && r.IntN(2) == 0 {
							span = 100
						}
						d := r.Uint64()
						if span < math.MaxUint64 {
							d %= span + 1
						}
						out = append(out, pair{uint32(r.IntN(groups)), int64(uint64(bounds[0]) + d)})
					}
					return out
				}
				first, second := draw(), draw()
				ungrouped := groups == 1 && r.IntN(2) == 0
				feed(r, a, from, first, ungrouped)
				feed(r, a, to, second, ungrouped)
				want := map[pair]bool{}
				for _, p := range first {
					want[p] = true
				}
				name := fmt.Sprintf("%v, %d groups, %d rows, %v and %v", bounds, groups, n, x, y)
				if got := distinctOf(from); !maps.Equal(got, want) {
					t.Fatalf("%s: %d pairs, want %d", name, len(got), len(want))
				}
				mapped := make([]uint32, groups)
				for j := range mapped {
					mapped[j] = uint32(r.IntN(groups))
				}
				mergeSome(r, a, to, from, mapped)
				clear(want)
				counts := make([]int64, groups)
				for _, p := range first {
					want[pair{mapped[p.g], p.x}] = true
				}
				for _, p := range second {
					want[p] = true
				}
				sums := make([]int64, groups)
				for p := range want {
					counts[p.g]++
					sums[p.g] += p.x
				}
				if got := distinctOf(to); !maps.Equal(got, want) {
					t.Fatalf("%s: %d pairs when merged, want %d", name, len(got), len(want))
				}
				e := to.extra.(*distinct)
				for g, c := range e.numbers() {
					if c != counts[g] {
						t.Fatalf("%s: %d values of group %d, want %d", name, c, g, counts[g])
					}
				}
				over := e.stateOver(&acc{kind: program.AccSum, arg: a.arg})
				if !slices.Equal(over.V, sums) {
					t.Fatalf("%s: sums %v, want %v", name, over.V, sums)
				}
				kinds[fmt.Sprint(e.words > 0, e.set != nil, e.wide != nil)] = true
			}
		}
	}
	if len(kinds) != 3 {
		t.Errorf("only the kinds %v were met", kinds)
	}
}

// TestWordSetCrowded adds words whose hashes agree in the bits that choose a place: the
// set must neither lose one nor grow without end.
func TestWordSetCrowded(t *testing.T) {
	var words []uint64
	for x := uint64(1); len(words) < 300; x++ {
		if hashOne(x)>>50 == 1<<14-1 {
			words = append(words, x)
		}
	}
	s := newWordSet(0)
	for from := 0; from < len(words); from += 100 {
		s.addAll(words[from : from+100])
	}
	s.addAll(words)
	s.addAll([]uint64{0, 0})
	if s.len() != len(words)+1 || s.bytes() > 1<<20 {
		t.Errorf("%d words in %d bytes, want %d", s.len(), s.bytes(), len(words)+1)
	}
	seen := map[uint64]bool{}
	s.each(func(x uint64) { seen[x] = true })
	for _, x := range append(words, 0) {
		if !seen[x] {
			t.Fatalf("word %d is lost", x)
		}
	}
	if len(s.over) == 0 {
		t.Error("no word was set aside")
	}
}

func FuzzWordSet(f *testing.F) {
	f.Add(uint64(1), uint16(500), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, width uint8) {
		r := rand.New(rand.NewPCG(seed, 7))
		a, b, want := newWordSet(int(n%50)), newWordSet(0), map[uint64]bool{}
		for _, s := range []*wordSet{a, b} {
			for left := int(n); left > 0; {
				words := make([]uint64, min(left, 1+r.IntN(tileRows)))
				for i := range words {
					words[i] = r.Uint64() >> (width % 64)
					want[words[i]] = true
				}
				s.addAll(words)
				left -= len(words)
			}
		}
		a.reserve(b.len())
		b.each(a.insert)
		got := map[uint64]bool{}
		a.each(func(x uint64) { got[x] = true })
		if !maps.Equal(got, want) || a.len() != len(want) {
			t.Fatalf("%d words, len %d, want %d", len(got), a.len(), len(want))
		}
	})
}

// TestSplit: the parts of a set, merged into sets of their own, are the set.
func TestSplit(t *testing.T) {
	const groups, parts = 900, 5
	for _, bounds := range [][2]int64{{-5, 1 << 20}, {math.MinInt64, math.MaxInt64}} { // a set of words, a table of two
		for _, n := range []int{0, 1, 63, 64, 129, 513, 40000} {
			r := rand.New(rand.NewPCG(3, uint64(n)))
			e := newDistinct(&acc{arg: &node{lo: bounds[0], hi: bounds[1]}}, extent{})
			e.grow(groups)
			want := map[[2]int64]bool{}
			for range n {
				g, x := uint32(r.IntN(groups)), bounds[0]+int64(r.Uint64N(1<<14))
				e.addOne(g, x)
				want[[2]int64{int64(g), x}] = true
			}
			part, at, members := make([]uint16, groups), make([]uint32, groups), make([][]uint32, parts)
			for g := range groups {
				p := r.IntN(parts - 1) // one has none
				part[g], at[g] = uint16(p), uint32(len(members[p]))
				members[p] = append(members[p], uint32(g))
			}
			sizes := make([]int, parts)
			for p := range sizes {
				sizes[p] = len(members[p])
			}
			for p, d := range e.split(part, at, sizes) {
				into := newDistinct(&acc{arg: &node{lo: bounds[0], hi: bounds[1]}}, extent{})
				into.grow(sizes[p])
				to := make([]uint32, sizes[p]) // in another order
				for i := range to {
					to[i] = uint32(sizes[p] - 1 - i)
				}
				into.mergeAll(d, nil, to)
				into.each(func(g uint32, x int64) {
					key := [2]int64{int64(members[p][sizes[p]-1-int(g)]), x}
					if !want[key] {
						t.Fatalf("%v, %d pairs: %v came from nowhere, or twice", bounds, n, key)
					}
					delete(want, key)
				})
			}
			if len(want) > 0 {
				t.Fatalf("%v, %d pairs: %d are lost", bounds, n, len(want))
			}
		}
	}
}
