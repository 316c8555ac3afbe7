package program

import (
	"cmp"
	"math"
	"slices"

	"pgaccel/gpu/device"
)

// Tuning holds the choices of a kernel that change its speed and not its result. TuningFor
// makes them; each is part of the generated source.
type Tuning struct {
	Threads     int // of a block: a multiple of 32, at most 1024
	BlocksPerSM int // that are launched for each multiprocessor, and can be resident
	Positions   int // 32-row positions in flight where a vector is not read at once: 1, 2, 4, 8, 16 or 32
	// Order is the order of the steps, by their places in the program: risky ones first.
	// nil: as the program has them.
	Order []int
	// Queue says that rows that pass the first Dense steps are gathered into full warps, for
	// the other steps and the sink. Without it all rows of a vector see every step.
	Queue bool
	Dense int
	// StageLookups and StageBits say which bitmaps blocks copy to their shared memory
	// first, by lookup and by set of StepBits.
	StageLookups, StageBits []bool
	// WindowLookups says of which lookups the rows of a vector are only compared with the
	// interval of the keys, and looked up once they are gathered: where the interval says
	// nearly as much, as that of a year's days does. It counts with Queue.
	WindowLookups []bool
	// Carries says that whole vectors of one column are decided by words_inside and
	// words_marked, instead of an offset and a condition for each row.
	Carries bool
	// Together says that the words of all columns that the first steps read of a vector are
	// read at once, where they are few, and Carries compares all with intervals: less waiting,
	// and nothing is left out where no row of a vector is left.
	Together bool
	// Rows is how many gathered rows a lane has at a time, 1 or 2; 0 is 1.
	Rows int
	// TableBytes is the shared memory for more than one table of few groups in a block, so
	// that its warps mostly add to different words.
	TableBytes int
	// Indexed says that bitmap indexes may narrow what the kernel sees: it takes the vectors that they leave from a list, and
	// does not read the columns of steps that they decide.
	Indexed bool
	// Widths are the widths of columns that are the same in all segments, so that shifts
	// become constants (measured on an H200: 0.14 ms instead of 0.37 of a query of three
	// ranges); -1 where they are not known, or differ. nil: all are -1.
	Widths []int8
}

// sharedReserve is what the system takes of the shared memory that a block can have, and
// some for the small things that are static.
const sharedReserve = 4 << 10

// gatherBits says when rows are gathered: reading a column of a gathered row costs as much
// memory traffic as so many bits of each row of the vector do (measured on an H200).
const gatherBits = 280

// choices are those of TuningFor that measurements decide, by names of Tuning.
type choices struct {
	carries, windows, together bool
	rows                       int
	search                     bool // steps in the order that all of them cost least in
	threads, blocks            int
}

// chosen are the best of what TestTuning of internal/bench (tag tuning) has measured on an H200,
// by the geometric mean of the Star Schema Benchmark's queries at scale factor 20, dimensions
// filtered anew: 0.210 ms before, 0.182 with carries, 0.172 with these. Fewer threads and
// more blocks lose; two rows gain up to 10 % of queries 2.1, 3.2 and 4.3, and lose as much or
// more of 1.1, 3.1 and 4.2. Measured, too, and dropped: reading a bitmap in shared memory only
// for rows that steps before have left, and columns of gathered rows without branches (lanes
// whose row is gone read a word that all of them do), which made no difference, and a byte
// for each key in shared memory instead of a bit, and fetching a unit's next vector to the
// second-level cache while one is computed, which lost.
var chosen = choices{carries: true, windows: true, search: true, together: true, threads: 1024, blocks: 1}

// TuningFor chooses for an execution on a device: in which order steps are applied, which of
// them see all rows, and what of q's data blocks keep in shared memory. widths become
// Tuning.Widths. Of what differs between executions it looks at sizes of bitmaps and
// numbers of groups only, and at these against what a block has, so that executions
// mostly share a kernel.
func TuningFor(q *Query, info *device.Info, widths ...int8) Tuning {
	t := Tuning{Threads: chosen.threads, BlocksPerSM: chosen.blocks, Positions: 4, Widths: widths,
		Indexed: q.Indexed != nil, Carries: chosen.carries, Together: chosen.together, Rows: chosen.rows,
		StageLookups: make([]bool, len(q.Program.Lookups)), StageBits: make([]bool, len(q.Bits)),
		WindowLookups: make([]bool, len(q.Program.Lookups))}
	if info.Kind == device.Emulator {
		t.Threads = 64
	}
	c := chooser{q: q, t: &t, g: &generator{p: q.Program, t: t}}
	c.left = int64(info.SharedPerBlock)/int64(t.BlocksPerSM) - sharedReserve - int64(t.Threads/32*queueRows*4)
	if q.Sink.Kind == SinkGroups && q.Sink.Place == PlaceShared {
		places := q.places()
		c.left -= int64(q.Groups)*places.sharedGroupBytes() + 8
	}
	c.order()
	c.split()
	t.TableBytes = int(max(min(c.left, 8<<10), 0))
	return t
}

// chooser makes a Tuning.
type chooser struct {
	q    *Query
	t    *Tuning
	g    *generator
	left int64 // bytes of shared memory
	// movable says that a step may come later: faults do not depend on it.
	movable bool
}

// share is about the share of rows that pass a step.
func (s *Step) share() float64 {
	if s.Permille == 0 {
		return 1.0 / 25
	}
	return min(float64(s.Permille)/1000, 1)
}

// bits is the width of the columns that nodes read, together.
func (c *chooser) bits(roots []int) (bits float64) {
	for _, column := range c.g.columnsOf(roots) {
		if w, ok := c.g.widthOf(column); ok {
			bits += float64(w)
		} else {
			bits += 20
		}
	}
	return bits
}

// quick reports whether a step compares offsets of a column, for all rows of a vector at
// little cost, and the bitmap that it then wants in shared memory.
func (c *chooser) quick(s *Step) (quick bool, bitmap int64, staged *bool) {
	if _, plain := c.g.newDense(nil, false).plain(*s); !plain {
		return false, 0, nil
	}
	switch s.Kind {
	case StepBits:
		return true, bitmapBytes(c.q.Bits[s.Index].Size), &c.t.StageBits[s.Index]
	case StepProbe:
		return true, bitmapBytes(c.q.Lookups[s.Index].Size), &c.t.StageLookups[s.Index]
	}
	return true, 0, nil
}

// order brings quick steps into the order of bits read for rows removed. Others stay behind
// them, in their order: what they need of lookups comes from steps before them.
func (c *chooser) order() {
	p := c.q.Program
	var first, indexed, quick, slow []int
	_, single := p.many()
	for i := range single {
		s := &p.Steps[i]
		is, _, _ := c.quick(s)
		switch {
		case s.Risky:
			first = append(first, i)
		case is && c.q.Indexed.hasTerm(s):
			indexed = append(indexed, i)
		case is:
			quick = append(quick, i)
		default:
			slow = append(slow, i)
		}
	}
	cost := func(i int) float64 {
		s := &p.Steps[i]
		return (c.bits([]int{c.g.stepNode(*s)}) + 4) / max(1-s.share(), 0.001)
	}
	// Faults that count only for rows that are left are those of all rows that conditions
	// before have left: then nothing changes places.
	faults := false
	for _, i := range slow {
		faults = faults || p.risky(c.g.stepNode(p.Steps[i]))
	}
	if faults {
		return
	}
	slices.SortStableFunc(quick, func(a, b int) int { return cmp.Compare(cost(a), cost(b)) })
	c.movable = true
	if chosen.search && len(quick) <= searchMax {
		quick = c.search(quick, slow)
	}
	c.t.Order = slices.Concat(first, indexed, quick, slow)
	for i := single; i < len(p.Steps); i++ { // they see pairs
		c.t.Order = append(c.t.Order, i)
	}
	c.g.t.Order = c.t.Order
}

// searchMax is the most steps whose orders are all looked at.
const searchMax = 5

// search returns the order of quick steps, which has some slow ones behind it, that costs least
// by bits read. A step of all rows costs the same wherever it is, so that it is best to begin
// with the one after which the others can be gathered.
func (c *chooser) search(quick, slow []int) []int {
	width := make(map[int]float64, len(quick))
	for _, i := range quick {
		width[i] = c.bits([]int{c.g.stepNode(c.q.Program.Steps[i])}) + 4
	}
	later := 0.0
	for _, i := range slow {
		later += c.bits([]int{c.g.stepNode(c.q.Program.Steps[i])})
	}
	roots, _ := c.q.Program.sinkNodes()
	later += c.bits(roots)
	best, least := slices.Clone(quick), math.Inf(1)
	order := slices.Clone(quick)
	var visit func(k int, share, cost float64, gathers bool)
	visit = func(k int, share, cost float64, gathers bool) {
		if k == len(order) {
			if cost += min(later, share*gatherBits); cost < least-0.5 {
				best, least = slices.Clone(order), cost
			}
			return
		}
		for j := k; j < len(order); j++ {
			i := order[j]
			// In front of those that keep their order.
			copy(order[k+1:j+1], order[k:j])
			order[k] = i
			gathers := gathers || k > 0 && share*gatherBits < width[i]-4
			step := width[i]
			if gathers {
				step = share * gatherBits
			}
			visit(k+1, share*c.q.Program.Steps[i].share(), cost+step, gathers)
			copy(order[k:j], order[k+1:j+1])
			order[j] = i
		}
	}
	visit(0, 1, 0, false)
	return best
}

// windowShareMax is the most rows that are looked up after they were gathered: a bitmap in
// shared memory is found for all rows at about the same cost where it is more.
const windowShareMax = 1.0 / 8

// window reports whether the interval of a probe's keys says about as much as the probe.
func (c *chooser) window(s *Step) bool {
	if !chosen.windows || !c.movable || s.Kind != StepProbe {
		return false
	}
	n := &c.q.Program.Nodes[c.g.stepNode(*s)]
	if n.Op != OpColumn {
		return false
	}
	width, known := c.g.widthOf(n.Index)
	if !known || width > 31 {
		return false
	}
	within := float64(c.q.Lookups[s.Index].Size) / float64(uint64(1)<<width)
	return within < 0.5 && within <= 2*s.share() && s.share() <= windowShareMax
}

// split decides up to where steps see all rows.
func (c *chooser) split() {
	steps := c.g.stages()[0]
	if c.q.Sink.Kind == SinkBitmap {
		c.stageAll(steps)
		return
	}
	share := 1.0
	for k := range steps {
		s := &steps[k]
		if s.Kind == StepProbe && c.q.Program.Lookups[s.Index].Left {
			c.t.Dense = k + 1
			continue
		}
		quick, bitmap, staged := c.quick(s)
		room := staged == nil || *staged || bitmap <= c.left
		gather := share*gatherBits < c.bits([]int{c.g.stepNode(*s)}) && !c.q.Indexed.hasTerm(s)
		if k > 0 && !s.Risky && (gather || !room && share < 0.9 || !quick && share < 0.5) {
			c.t.Queue = true
			return
		}
		if quick && c.window(s) {
			c.t.WindowLookups[s.Index], c.t.Queue = true, true
		} else if staged != nil && room && !*staged {
			*staged = true
			c.left -= bitmap
		}
		share *= s.share()
		c.t.Dense = k + 1
	}
	if x := c.q.Indexed; x != nil && x.Clustered {
		return // where a few warps had all rows that are left, others would wait for these
	}
	roots, _ := c.q.Program.sinkNodes()
	single := c.q.Sink.Kind == SinkGroups && c.q.Sink.Place == PlaceSingle
	c.t.Queue = c.t.Queue || len(steps) > 0 && (share*gatherBits < c.bits(roots) || !single && share < 0.5)
}

// stageAll stages what fits.
func (c *chooser) stageAll(steps []Step) {
	for k := range steps {
		if _, bitmap, staged := c.quick(&steps[k]); staged != nil && !*staged && bitmap <= c.left {
			*staged = true
			c.left -= bitmap
		}
	}
}
