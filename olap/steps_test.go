package olap

import (
	"math/rand/v2"
	"testing"
)

// TestSetOfTable compares the set of a table with its bytes.
func TestSetOfTable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range edgeLengths {
		table := make([]uint8, n)
		for i := range table {
			table[i] = uint8(r.IntN(2))
		}
		s := setOfTable(-3, table)
		if s.Lo != -3 || s.Size != int64(n) {
			t.Fatalf("%d: %d, %d", n, s.Lo, s.Size)
		}
		for i, v := range table {
			if s.Bits[i>>6]>>(i&63)&1 != uint64(v) {
				t.Fatalf("%d: bit %d", n, i)
			}
		}
	}
}
