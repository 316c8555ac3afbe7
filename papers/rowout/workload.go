package rowout

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
)

// point is an object's place.
type point struct{ X, Y int32 }

// rect is a query: what lies between, edges included.
type rect struct{ X0, Y0, X1, Y1 int32 }

// contains is the predicate.
func (r rect) contains(p point) bool {
	return p.X >= r.X0 && p.X <= r.X1 && p.Y >= r.Y0 && p.Y <= r.Y1
}

// cell is a part of a workload: points and entries that follow each other.
type cell struct {
	FirstPoint, Points  int
	FirstEntry, Entries int
	firstWord           int64 // of the bitmap
}

// Lines returns how many words each entry has.
func (c cell) Lines() int { return (c.Points + 31) / 32 }

// stride returns how many words a line has.
func (c cell) stride() int { return (c.Entries + 31) &^ 31 }

// workload is a batch of queries over points in cells.
type workload struct {
	Points  []point  // by cell
	IDs     []uint32 // of the points
	Queries []rect
	Entries []uint32 // queries, by cell
	Cells   []cell
	words   int64 // of a bitmap
}

// add appends a cell of points and of queries, by their numbers.
func (w *workload) add(points []point, ids []uint32, entries []uint32) {
	c := cell{FirstPoint: len(w.Points), Points: len(points), FirstEntry: len(w.Entries), Entries: len(entries), firstWord: w.words}
	w.Points = append(w.Points, points...)
	w.IDs = append(w.IDs, ids...)
	w.Entries = append(w.Entries, entries...)
	w.Cells = append(w.Cells, c)
	w.words += int64(c.Lines()) * int64(c.stride())
}

// world is how wide and high it is.
const world = 1 << 22

// uniform returns a workload as the paper's experiment has it: objects at uniformly
// distributed places, each with a square query around it, of so many results on average.
// Cells are as wide as queries, but have cellPoints points on average at least.
func uniform(objects int, results float64, cellPoints int, seed uint64) *workload {
	rng := rand.New(rand.NewPCG(2015, seed))
	side := world * math.Sqrt(results/float64(max(objects, 1)))
	cell := max(side, world*math.Sqrt(float64(cellPoints)/float64(max(objects, 1))))
	grid := max(1, int(world/cell))
	at := func(v int32) int { return min(max(int(int64(v)*int64(grid)/world), 0), grid-1) }
	w := &workload{Queries: make([]rect, objects)}
	points, ids, entries := make([][]point, grid*grid), make([][]uint32, grid*grid), make([][]uint32, grid*grid)
	half := int32(min(side/2, world))
	for i := range objects {
		p := point{rng.Int32N(world), rng.Int32N(world)}
		q := rect{p.X - half, p.Y - half, p.X + half, p.Y + half}
		w.Queries[i] = q
		home := at(p.Y)*grid + at(p.X)
		points[home], ids[home] = append(points[home], p), append(ids[home], uint32(i))
		for y := at(q.Y0); y <= at(q.Y1); y++ {
			for x := at(q.X0); x <= at(q.X1); x++ {
				entries[y*grid+x] = append(entries[y*grid+x], uint32(i))
			}
		}
	}
	for c := range points {
		w.add(points[c], ids[c], entries[c])
	}
	return w
}

// Reference returns the number of results of each entry, and their ids, one entry after the
// other: one comparison after the other.
func (w *workload) Reference() (counts []uint32, ids []uint32) {
	counts = make([]uint32, len(w.Entries))
	for _, c := range w.Cells {
		for e := c.FirstEntry; e < c.FirstEntry+c.Entries; e++ {
			for p := c.FirstPoint; p < c.FirstPoint+c.Points; p++ {
				if w.Queries[w.Entries[e]].contains(w.Points[p]) {
					counts[e]++
					ids = append(ids, w.IDs[p])
				}
			}
		}
	}
	return counts, ids
}

// mix is what a result adds to a sum that does not depend on order.
func mix(query, id uint32) uint64 {
	h := (uint64(query)<<32 | uint64(id)) * 0x9e3779b97f4a7c15
	h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
	return h ^ h>>32
}

// sum returns the number of results and the sum of what they are mixed to, modulo 2^64.
func (w *workload) sum() (results, sum uint64) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan cell)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var n, all uint64
			for c := range next {
				points, ids := w.Points[c.FirstPoint:][:c.Points], w.IDs[c.FirstPoint:]
				for _, q := range w.Entries[c.FirstEntry:][:c.Entries] {
					r := w.Queries[q]
					for i, p := range points {
						if r.contains(p) {
							n++
							all += mix(q, ids[i])
						}
					}
				}
			}
			mu.Lock()
			results, sum = results+n, sum+all
			mu.Unlock()
		})
	}
	for _, c := range w.Cells {
		next <- c
	}
	close(next)
	wg.Wait()
	return results, sum
}
