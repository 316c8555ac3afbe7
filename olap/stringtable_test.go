package olap

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgaccel/vector"
)

// TestStringTable compares the numbers of strings with those of a map.
func TestStringTable(t *testing.T) {
	for _, kind := range []vector.Kind{vector.Text, vector.BPChar} {
		for _, n := range []int{0, 1, 3, 4, 5, 63, 64, 65, 5000} {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			table, want, list := stringTable{kind: kind}, map[string]int64{}, []string(nil)
			for range n {
				s := strings.Repeat("x", r.IntN(3)) + fmt.Sprint(r.IntN(n)) + strings.Repeat(" ", r.IntN(2))
				key := canonical(kind, s)
				code, known := want[key]
				if !known {
					code = int64(len(list))
					want[key], list = code, append(list, s)
				}
				if got, isNew := table.code(s); got != code || isNew == known {
					t.Fatalf("%v, %d strings: %q is number %d, new %v; want %d, %v", kind, n, s, got, isNew, code, !known)
				}
			}
			if !slices.Equal(table.list, list) {
				t.Errorf("%v, %d strings: %q, want %q", kind, n, table.list, list)
			}
		}
	}
}
