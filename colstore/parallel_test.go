package colstore

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
)

func TestInRanges(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for _, n := range []int{0, 1, parallelMin - 1, 2*parallelMin - 1, 2 * parallelMin, 100*parallelMin + 7} {
		seen := make([]atomic.Int32, n)
		inRanges(n, func(from, to int) {
			for i := from; i < to; i++ {
				seen[i].Add(1)
			}
		})
		for i := range seen {
			if got := seen[i].Load(); got != 1 {
				t.Fatalf("%d of %d: %d times", i, n, got)
			}
		}
	}
}

func TestSortParallel(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 2, parallelMin, parallelMin + 1, 2*parallelMin + 1, 20 * parallelMin} {
		for name, value := range map[string]func(i int) int{"random": func(int) int { return r.Int() }, "few": func(int) int { return r.IntN(3) }, "equal": func(int) int { return 7 },
			"sorted": func(i int) int { return i }, "reversed": func(i int) int { return -i }, "saw": func(i int) int { return i % 1000 }} {
			s := make([]int, n)
			for i := range s {
				s[i] = value(i)
			}
			want := slices.Clone(s)
			slices.Sort(want)
			sortParallel(s, cmp.Compare[int])
			if !slices.Equal(s, want) {
				t.Errorf("%d %s values are not in order", n, name)
			}
		}
	}
}

// TestRanksAreTheOrder compares ranks with a plain sort, at sizes on both sides of what
// is sorted in parallel: strings that begin alike, end in zeros or blanks, or are short.
func TestRanksAreTheOrder(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	forms := map[string]func(i int) string{
		"number":  func(i int) string { return fmt.Sprint(i) },
		"common":  func(i int) string { return fmt.Sprintf("what all begin with %d", i) },
		"zeros":   func(i int) string { return "same" + string(make([]byte, i%9)) + fmt.Sprint(i) },
		"blanks":  func(i int) string { return fmt.Sprintf("%-*d", i%12, i/3) },
		"nothing": func(i int) string { return fmt.Sprint(i)[:min(i, 1)] + string(make([]byte, i%40000/100)) },
	}
	for name, form := range forms {
		for _, n := range []int{0, 1, 100, 3 * parallelMin} {
			for _, padded := range []bool{false, true} {
				a := &arena{limit: 1 << 30}
				dict := newDictionary(a)
				dict.ranking.memcmp, dict.ranking.padded = true, padded
				var want [][]byte
				r := rand.New(rand.NewPCG(uint64(n), 1))
				for _, i := range r.Perm(n) {
					b := []byte(form(i))
					if code, err := dict.add(b, maphash.Bytes(hashSeed, b)); err != nil {
						t.Fatal(err)
					} else if int(code) == len(want) {
						want = append(want, b)
					}
				}
				order := make([]int, len(want))
				for i := range order {
					order[i] = i
				}
				slices.SortFunc(order, func(a, b int) int {
					x, y := want[a], want[b]
					if padded {
						if c := bytes.Compare(bytes.TrimRight(x, " "), bytes.TrimRight(y, " ")); c != 0 {
							return c
						}
					}
					return bytes.Compare(x, y)
				})
				d := dict.version()
				ranks := d.Ranks()
				for rank, code := range order {
					if int(ranks[code]) != rank {
						t.Fatalf("%s, %d strings, padded %v: rank of %q is %d, want %d", name, n, padded, want[code], ranks[code], rank)
					}
				}
				d.release()
				a.close()
			}
		}
	}
}
