package replica

import (
	"fmt"
	"slices"
	"testing"

	"pgaccel/catalog"
)

// TestPageQueue: the ranges of a leaf follow each other, without a gap, from its first
// page to an open end; they get no longer, and many sessions end with short ones.
func TestPageQueue(t *testing.T) {
	for _, sessions := range []int{1, 2, 3, 16, 64} {
		for _, sizes := range [][]int64{{0}, {1}, {rangePagesMin - 1}, {rangePagesMin}, {splitPages - 1}, {splitPages}, {2 * splitPages}, {2*rangePagesMin + 1},
			{100_000}, {1 << 31}, {0, 0, 0}, {5, 0, 100_000, 3, 70_000, 0}, slices.Repeat([]int64{100}, 1000), slices.Repeat([]int64{10_000}, 100)} {
			t.Run(fmt.Sprint(sessions, " sessions, ", len(sizes), " leaves, first of ", sizes[0]), func(t *testing.T) {
				var leaves []leafPages
				all := int64(0)
				for i, n := range sizes {
					leaves = append(leaves, leafPages{Part: catalog.Part{OID: uint32(i)}, pages: n})
					all += n
				}
				q := newPageQueue(leaves, sessions)
				if q.sessions < 1 || q.sessions > int64(sessions) || q.sessions > 1 && all < q.sessions*splitPages {
					t.Fatalf("%d sessions for %d pages", q.sessions, all)
				}
				leaf, at, largest, taken := 0, int64(0), all+1, 0
				var last pageRange
				for !q.empty() {
					r, ok := q.take()
					if !ok {
						t.Fatal("nothing to take of a queue that is not empty")
					}
					if int(r.leaf.OID) != leaf || r.from != at || r.to < r.from || r.last != (r.to == sizes[leaf]) {
						t.Fatalf("%+v of %d pages, after page %d of leaf %d", r, sizes[leaf], at, leaf)
					}
					n := r.to - r.from
					if n > max(largest, 2*rangePagesMin) {
						t.Errorf("%+v is longer than %d before", r, largest)
					}
					if q.sessions > 1 && n > all/(2*q.sessions)+rangePagesMin {
						t.Errorf("%+v is more than a session's half of %d", r, all)
					}
					if at = r.to; r.last {
						leaf, at = leaf+1, 0
					} else {
						largest = n + rangePagesMin
					}
					last = r
					taken++
				}
				if leaf != len(sizes) {
					t.Errorf("%d of %d leaves", leaf, len(sizes))
				}
				if n := last.to - last.from; q.sessions > 1 && n > 2*rangePagesMin {
					t.Errorf("the last range has %d pages", n)
				}
				if q.sessions == 1 && taken != len(sizes) {
					t.Errorf("one session takes %d ranges of %d leaves", taken, len(sizes))
				}
				if r, ok := q.take(); ok {
					t.Errorf("%+v of an empty queue", r)
				}
			})
		}
	}
}
