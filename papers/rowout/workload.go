package rowout

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
)

// Point is an object's place.
type Point struct{ X, Y int32 }

// Rect is a query: what lies between, edges included.
type Rect struct{ X0, Y0, X1, Y1 int32 }

// contains is the predicate.
func (r Rect) contains(p Point) bool {
	return p.X >= r.X0 && p.X <= r.X1 && p.Y >= r.Y0 && p.Y <= r.Y1
}

// Cell is a part of a Workload: points and entries that follow each other.
type Cell struct {
	FirstPoint, Points  int
	FirstEntry, Entries int
	firstWord           int64 // of the bitmap
}

// Lines returns how many words each entry has.
func (c Cell) Lines() int { return (c.Points + 31) / 32 }

// stride returns how many words a line has.
func (c Cell) stride() int { return (c.Entries + 31) &^ 31 }

// Workload is a batch of queries over points in cells.
type Workload struct {
	Points  []Point  // by cell
	IDs     []uint32 // of the points
	Queries []Rect
	Entries []uint32 // queries, by cell
	Cells   []Cell
	words   int64 // of a bitmap
}

// add appends a cell of points and of queries, by their numbers.
func (w *Workload) add(points []Point, ids []uint32, entries []uint32) {
	c := Cell{FirstPoint: len(w.Points), Points: len(points), FirstEntry: len(w.Entries), Entries: len(entries), firstWord: w.words}
	w.Points = append(w.Points, points...)
	w.IDs = append(w.IDs, ids...)
	w.Entries = append(w.Entries, entries...)
	w.Cells = append(w.Cells, c)
	w.words += int64(c.Lines()) * int64(c.stride())
}

// world is how wide and high it is.
const world = 1 << 22

// Uniform returns a workload as the paper's experiment has it: objects at uniformly
// distributed places, each with a square query around it, of so many results on average.
// Cells are as wide as queries, but have cellPoints points on average at least.
func Uniform(objects int, results float64, cellPoints int, seed uint64) *Workload {
	rng := rand.New(rand.NewPCG(2015, seed))
	side := world * math.Sqrt(results/float64(max(objects, 1)))
	cell := max(side, world*math.Sqrt(float64(cellPoints)/float64(max(objects, 1))))
	grid := max(1, int(world/cell))
	at := func(v int32) int { return min(max(int(int64(v)*int64(grid)/world), 0), grid-1) }
	w := &Workload{Queries: make([]Rect, objects)}
	points, ids, entries := make([][]Point, grid*grid), make([][]uint32, grid*grid), make([][]uint32, grid*grid)
	half := int32(min(side/2, world))
	for i := range objects {
		p := Point{rng.Int32N(world), rng.Int32N(world)}
		q := Rect{p.X - half, p.Y - half, p.X + half, p.Y + half}
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
func (w *Workload) Reference() (counts []uint32, ids []uint32) {
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
func (w *Workload) sum() (results, sum uint64) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan Cell)
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
