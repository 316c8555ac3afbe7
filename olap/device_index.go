package olap

import (
	"math"
	"slices"
	"sync"

	"pgaccel/colstore"
	"pgaccel/gpu/program"
)

// Bitmap indexes of a query for a device, which asks them by itself (program.Narrow). Here is chosen which:
// the steps stay, and are decided by the columns where no index is asked.

// indexable is a step that indexes may answer, as the processor and as a device has it.
type indexable struct {
	s     *step
	step  program.Step
	any   []interval
	nodes []int // of their columns
}

// useIndexes names the bitmap indexes that a device asks. The query is run before released gives back
// what was read of them.
func (l *lowering) useIndexes(q *program.Query) (released func()) {
	use := l.p.x.opt.Indexes
	if !l.p.narrowable || use == IndexOff || q.TableID == 0 {
		return func() {}
	}
	chosen, clustered := l.choose(l.indexedSteps(), use == IndexForce)
	if len(chosen) == 0 {
		return func() {}
	}
	x := &program.Indexed{Clustered: clustered}
	var held []*heldIndexes
	for _, c := range chosen {
		for i, of := range c.any {
			at := slices.IndexFunc(held, func(h *heldIndexes) bool { return h.col == of.n.col })
			if at < 0 {
				h := &heldIndexes{segments: l.p.tab.Segments, col: of.n.col, by: map[int]*colstore.Index{}}
				at, held = len(held), append(held, h)
				x.Columns = append(x.Columns, program.IndexedColumn{Column: q.Nodes[c.nodes[i]].Index, Version: l.p.tab.IndexVersion(h.col), Of: h.of})
			}
			term := program.IndexTerm{Column: at, Kind: c.step.Kind, Index: c.step.Index, In: of.set != nil,
				Range: program.Range{Lo: of.lo, Hi: of.hi}, Or: i < len(c.any)-1}
			if term.In {
				term.Index = q.Nodes[c.step.Node].Index
			}
			x.Terms = append(x.Terms, term)
		}
	}
	q.Indexed = x
	indexesAsked.Add(int64(len(x.Terms)))
	return func() {
		for _, h := range held {
			h.release()
		}
	}
}

// indexedSteps are those of whose columns there are indexes.
func (l *lowering) indexedSteps() (list []indexable) {
	terms := 0
	for _, c := range l.indexable {
		lacks := slices.ContainsFunc(c.any, func(of interval) bool { return l.p.tab.IndexVersion(of.n.col) == 0 })
		if n := terms + len(c.any); !lacks && n <= program.IndexTermsMax {
			list, terms = append(list, c), n
		}
	}
	return list
}

// heldIndexes are indexes of a column that are not given back while a device may copy them.
type heldIndexes struct {
	segments []*colstore.Segment
	col      int

	mu sync.Mutex
	by map[int]*colstore.Index
}

// of is program.IndexedColumn.Of.
func (h *heldIndexes) of(segment int) (id uint64, words []uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	x, ok := h.by[segment]
	if !ok {
		x = h.segments[segment].Index(h.col)
		h.by[segment] = x
	}
	if x == nil {
		return 0, nil
	}
	return x.ID, x.Words()
}

func (h *heldIndexes) release() {
	for _, x := range h.by {
		if x != nil {
			x.Release()
		}
	}
}

// What indexes cost a device, in bytes of columns that it reads in the same time. Of these an H200 reads 3.4 TB/s:
// 1840 segments took 8 us and 5 to 11 us more for each term (bench/results).
const (
	narrowRow    = 0.3     // of a row: its bit is written and read, and a block has 65,536 of them
	termRow      = 0.3     // of a row of each term: bins are looked for
	atomCost     = 4 * 8   // of an atom
	indexShare   = 0.8     // of a scan's cost that indexes may have, at most
	vectorRows   = 1 << 10 // of which all of a column is read, or nothing
	indexSamples = 8       // segments that are looked at
	// clusteredRows is how many rows of a vector that has some pass where a device had better read whole vectors
	// of columns than row by row.
	clusteredRows = 64
)

// narrowCost is that of one more launch. Tests have none.
var narrowCost float64 = 16 << 20

// indexEstimate is what some segments say of a step.
type indexEstimate struct {
	bytes float64 // of the column
	atoms float64 // that a device reads of the indexes
	alive float64 // vectors that have a row which the indexes leave, at most
	rows  float64 // that these leave
	exact bool
}

// choose returns those of some steps of which a device asks the indexes: all where that is forced, none where
// the scan is as cheap. clustered is program.Indexed.Clustered.
func (l *lowering) choose(list []indexable, forced bool) (chosen []indexable, clustered bool) {
	segments := l.p.tab.Segments
	if len(list) == 0 || len(segments) == 0 {
		return nil, false
	}
	known := make([]indexEstimate, len(list))
	for k := range known {
		known[k].exact = true
	}
	survived, rows := 0, 0
	apart := max(len(segments)/indexSamples, 1)
	for i := apart / 2; i < len(segments); i += apart {
		if seg := segments[i]; survives(seg, list) {
			survived++
			rows += seg.Rows
			for k := range list {
				known[k].sample(&list[k], seg)
			}
		}
	}
	if survived == 0 {
		if forced {
			return list, false
		}
		return nil, false
	}
	vectors := float64(rows) / vectorRows
	scan, reach, passing, alive := 0.0, 1.0, 1.0, 1.0
	together := math.Inf(1) // rows of a vector that has some
	gains := make([]float64, len(list))
	for k := range known {
		x := &known[k]
		gains[k] = x.bytes*reach - atomCost*x.atoms - termRow*float64(rows)
		scan += x.bytes * reach
		passing *= list[k].s.share
		reach = min(reach, x.alive/vectors, 1-math.Pow(1-passing, vectorRows))
		if forced || gains[k] > 0 {
			alive = min(alive, x.alive/vectors)
			together = min(together, x.rows/max(x.alive, 1))
		}
	}
	alive = min(alive, reach)
	clustered = together > clusteredRows
	if forced {
		return list, clustered
	}
	cost := narrowCost/float64(apart) + narrowRow*float64(rows)
	for k := range known {
		x := &known[k]
		if gains[k] > 0 {
			chosen = append(chosen, list[k])
			cost += atomCost*x.atoms + termRow*float64(rows)
		}
		if gains[k] <= 0 || !x.exact {
			cost += x.bytes * alive
		}
	}
	if cost > indexShare*scan {
		return nil, false
	}
	return chosen, clustered
}

// survives reports whether zone maps leave a segment, as far as ranges say.
func survives(seg *colstore.Segment, list []indexable) bool {
	for _, c := range list {
		if !slices.ContainsFunc(c.any, func(of interval) bool {
			z := &seg.Columns[of.n.col]
			return max(of.lo, z.Min) <= min(of.hi, z.Max)
		}) {
			return false
		}
	}
	return true
}

// sample adds what a segment says.
func (x *indexEstimate) sample(c *indexable, seg *colstore.Segment) {
	vectors := float64(seg.Rows) / vectorRows
	alive, rows := 0.0, 0.0
	for i, of := range c.any {
		z := &seg.Columns[of.n.col]
		if !slices.ContainsFunc(c.any[:i], func(o interval) bool { return o.n == of.n }) {
			width := program.LaneFormatOf(&program.SegmentColumn{Min: z.Min, Max: z.Max}).Width
			x.bytes += float64(seg.Rows) * float64(width) / 8
		}
		x.exact = x.exact && len(c.any) == 1
		index := seg.Index(of.n.col)
		if index == nil {
			alive, rows = vectors, rows+float64(seg.Rows)*c.s.share
			x.exact = false
			continue
		}
		chosen := index.Select(func(least, most int64) bool {
			if !of.has(least, most) {
				return false
			}
			if c.step.Kind != program.StepBits {
				x.exact = x.exact && of.set == nil && of.lo <= least && most <= of.hi
				return true
			}
			some := c.s.tableHas(max(of.lo, least), min(of.hi, most))
			x.exact = x.exact && (!some || least == most)
			return some
		})
		alive += float64(chosen.Tiles)
		rows += float64(chosen.Rows)
		if others := index.Bytes()/8 - chosen.Atoms; c.step.Kind != program.StepBits && of.set == nil && others < chosen.Atoms {
			chosen.Atoms = others // these are read
		}
		x.atoms += float64(chosen.Atoms)
		index.Release()
	}
	x.alive += min(alive, vectors)
	x.rows += min(rows, float64(seg.Rows))
}

// tableHas reports whether one of the values from lo to hi passes a table step; of many, that it does.
func (s *step) tableHas(lo, hi int64) bool {
	if hi-lo >= 1024 {
		return true
	}
	for v := lo; v <= hi; v++ {
		if s.table[v-s.n.lo] != 0 {
			return true
		}
	}
	return false
}
