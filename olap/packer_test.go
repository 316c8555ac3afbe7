package olap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestDistinctOf compares what several goroutines number with what one does: the same rows have the
// same number, and each number has a row that has it.
func TestDistinctOf(t *testing.T) {
	defer func(n int) { distinctParted = n }(distinctParted)
	distinctParted = 2
	r := rand.New(rand.NewPCG(1, 2))
	lengths := []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, buildChunk - 1, buildChunk, buildChunk + 1, 3*buildChunk + 7}
	for _, domain := range []int64{1, 3, 500, 1 << 13, 1 << 40} {
		for _, n := range lengths {
			t.Run(fmt.Sprintf("%d of %d", n, domain), func(t *testing.T) {
				all := n + n/3
				one, two := vec{v: make([]int64, all), nulls: make([]uint8, all)}, vec{v: make([]int64, all)}
				for i := range all {
					one.v[i], two.v[i] = r.Int64N(domain)-1, r.Int64N(min(domain, 5))
					one.nulls[i] = uint8(b2i(r.IntN(10) == 0))
				}
				var rows []uint32 // nil: all
				if domain != 3 {
					for i := range n {
						rows = append(rows, uint32((i*7+3)%max(all, 1)))
					}
				}
				pack := newPacker()
				pack.add(&node{lo: -1, hi: domain - 2, nullable: true}, 0)
				pack.add(&node{lo: 0, hi: min(domain, 5) - 1}, 0)
				cols := []vec{one, two}
				named := rows
				if rows == nil {
					for i := range n {
						named = append(named, uint32(i))
					}
				}
				wantOf, wantRep := pack.distinct(cols, named)
				x := &execution{ctx: context.Background(), opt: Options{Workers: 4}}
				of, rep := pack.distinctOf(x, cols, rows, n)
				if len(of) != n || len(rep) != len(wantRep) {
					t.Fatalf("%d rows, %d distinct, want %d and %d", len(of), len(rep), n, len(wantRep))
				}
				to := map[uint32]uint32{}
				for i := range of {
					if want, known := to[of[i]]; known && want != wantOf[i] {
						t.Fatalf("row %d: two values have the number %d", i, of[i])
					}
					to[of[i]] = wantOf[i]
				}
				if len(to) != len(wantRep) {
					t.Errorf("%d numbers, want %d", len(to), len(wantRep))
				}
				mine, _ := pack.distinct(cols, rep)
				for number, at := range rep {
					again, _ := pack.distinct(cols, []uint32{at, wantRep[to[uint32(number)]]})
					if mine[number] != uint32(number) || again[0] != again[1] {
						t.Fatalf("number %d: row %d does not have it", number, at)
					}
				}
			})
		}
	}
}
