package olap

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWordTable compares insertAll, insert and find with a map, across the lengths at which their
// loops end and tables grow.
func TestWordTable(t *testing.T) {
	for _, w := range []int{1, 2, 3} {
		for _, n := range append(slices.Clone(edgeLengths), 20_000) {
			for _, different := range []int{1, 40, 1 << 30} {
				r := rand.New(rand.NewPCG(uint64(w), uint64(n+different)))
				var keys []uint64
				for len(keys) < n*w {
					key := make([]uint64, w)
					key[r.IntN(w)] = uint64(r.IntN(different))
					for range min(1+r.IntN(3), n-len(keys)/w) {
						keys = append(keys, key...)
					}
				}
				name := fmt.Sprintf("%d words, %d keys of %d", w, n, different)
				checkWordTable(t, name, newWordTable(w, r.IntN(2)*n), keys)
			}
		}
	}
}

func checkWordTable(t *testing.T, name string, table *wordTable, keys []uint64) {
	t.Helper()
	w := table.w
	one, want := newWordTable(w, 0), map[[3]uint64]uint32{}
	index := make([]uint32, len(keys)/w)
	table.insertAll(keys, index)
	for j, got := range index {
		key := keys[j*w : (j+1)*w]
		var k [3]uint64
		copy(k[:], key)
		number, known := want[k]
		if !known {
			number = uint32(len(want))
			want[k] = number
		}
		if i, fresh := one.insert(key); i != number || fresh == known {
			t.Fatalf("%s: insert of row %d says %d, %v; want %d, %v", name, j, i, fresh, number, !known)
		}
		if i, found := table.find(key); got != number || i != number || !found {
			t.Fatalf("%s: row %d has number %d, found %d, want %d", name, j, got, i, number)
		}
	}
	if table.n != len(want) || !slices.Equal(table.keys, one.keys) {
		t.Fatalf("%s: %d keys, want %d", name, table.n, len(want))
	}
	absent := make([]uint64, w)
	absent[w-1] = 1 << 40
	if _, found := table.find(absent); found {
		t.Errorf("%s: a key that is not there is found", name)
	}
}

func TestUnrepeated(t *testing.T) {
	for _, n := range edgeLengths {
		for _, different := range []int{1, 2, 1000} {
			r := rand.New(rand.NewPCG(uint64(n), uint64(different)))
			keys := make([]uint64, n)
			for i := range keys {
				keys[i] = uint64(r.IntN(different))
			}
			if want, got := slices.Compact(slices.Clone(keys)), unrepeated(keys); !slices.Equal(got, want) {
				t.Fatalf("%d words of %d: %d are left, want %d", n, different, len(got), len(want))
			}
		}
	}
}
