package cube

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"runtime"
)

// Area is a target area: for each dimension the target elements, each once.
type Area [][]int

// Query asks for the target cells of several areas.
type Query []Area

// Result are the filled target cells of one area, by ascending number. A number has a
// digit for each dimension, the first the most significant: the position in the area's
// list of elements.
type Result[N Number] struct {
	Targets []uint64
	Values  []N
}

// Elements writes the target elements of a number of area a to path, one for each
// dimension, and returns it.
func (a Area) Elements(number uint64, path []int) []int {
	path = append(path[:0], make([]int, len(a))...)
	for d := len(a) - 1; d >= 0; d-- {
		n := uint64(len(a[d]))
		path[d] = a[d][number%n]
		number /= n
	}
	return path
}

// Preaggregation says how additions to the shared table are saved.
type Preaggregation uint8

// The ways of ParallelSourceBased and DynamicParallelism.
const (
	PreaggregateNone   Preaggregation = iota
	PreaggregateWarp                  // lanes of a warp that meet the first lane's target (4.2.1)
	PreaggregateStride                // every N-th lane, N the first lane's targets (4.3.4)
	PreaggregateWorker                // a table for each worker; those of the blocks of a device
)

// Options are the choices of the executors; each ignores what it has no use for.
type Options struct {
	Workers        int   // goroutines; 0: as many as there are processors
	MemoryLimit    int64 // bytes of tables and tensors at a time; 0: 1 GiB
	Prefilter      bool  // keep relevant pages, then relevant cells, before aggregating
	Preaggregation Preaggregation
	HashFunctions  int  // slots for each target cell; 0: 1
	FixedGrid      bool // DynamicParallelism: a child grid is one block that loops
	SyncEvery      int  // DynamicParallelism: a parent waits after so many launches; 0: never
	Stats          *Stats
}

// Stats says what an execution did, over all areas.
type Stats struct {
	Relevant int64 // source cells that reached a target
	Adds     int64 // additions to tables of target cells that other threads would share
	Children int64 // child grids launched
}

// Executor is the form of all algorithms here. It returns a result for each area. The
// error is that of ctx, errRange, errMemory, or says what is wrong with the query.
type Executor[N Number] func(ctx context.Context, c *Cube[N], q Query, opt Options) ([]Result[N], error)

func (o Options) normal() Options {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.MemoryLimit <= 0 {
		o.MemoryLimit = 1 << 30
	}
	o.HashFunctions = max(o.HashFunctions, 1)
	if o.Stats == nil {
		o.Stats = &Stats{}
	}
	return o
}

// aggregationMap is the thesis' map, for one area.
type aggregationMap[N Number] struct {
	c       *Cube[N]
	area    Area
	dims    []targetsOf[N]
	targets uint64 // target cells
}

// targetsOf lists, for each element e of a dimension, what it reaches: digits and
// weights from start[e] up to start[e+1].
type targetsOf[N Number] struct {
	start  []uint32
	digit  []uint32
	weight []N
	stride uint64 // of the digit within a target's number
	radix  uint64
}

// of returns the bounds of element e's targets.
func (t *targetsOf[N]) of(e uint32) (from, to uint32) { return t.start[e], t.start[e+1] }

// newMap makes the aggregation map of an area, and checks that sums fit.
func newMap[N Number](c *Cube[N], area Area) (*aggregationMap[N], error) {
	if len(area) != len(c.dims) {
		return nil, fmt.Errorf("cube: an area over %d dimensions, the cube has %d", len(area), len(c.dims))
	}
	m := &aggregationMap[N]{c: c, area: area, dims: make([]targetsOf[N], len(area)), targets: 1}
	bound := c.absSum
	for d := len(area) - 1; d >= 0; d-- {
		n := len(c.dims[d].Elements)
		t := targetsOf[N]{start: make([]uint32, n+1), stride: m.targets, radix: uint64(len(area[d]))}
		seen := make([]bool, n)
		total := uint64(0)
		for _, e := range area[d] {
			if e < 0 || e >= n {
				return nil, fmt.Errorf("cube: %s has no element %d", c.dims[d].Name, e)
			}
			if seen[e] {
				return nil, fmt.Errorf("cube: %s of %s is listed twice", c.dims[d].Elements[e].Name, c.dims[d].Name)
			}
			seen[e] = true
			total += uint64(len(c.reaches[d][e]))
		}
		if total > math.MaxUint32 {
			return nil, errMemory
		}
		for _, e := range area[d] {
			for _, r := range c.reaches[d][e] {
				t.start[r.base+1]++
			}
		}
		for e := range n {
			t.start[e+1] += t.start[e]
		}
		t.digit, t.weight = make([]uint32, total), make([]N, total)
		at := append([]uint32(nil), t.start...)
		most := int64(1)
		for k, e := range area[d] {
			for _, r := range c.reaches[d][e] {
				t.digit[at[r.base]], t.weight[at[r.base]] = uint32(k), r.weight
				at[r.base]++
				if !isFloat[N]() {
					most = max(most, magnitude(int64(r.weight)))
				}
			}
		}
		bound = mulSaturated(bound, most)
		hi, lo := bits.Mul64(m.targets, t.radix)
		if hi != 0 || lo > math.MaxInt64 {
			return nil, errRange
		}
		m.targets = lo
		m.dims[d] = t
	}
	if bound == math.MaxInt64 {
		return nil, errRange
	}
	return m, nil
}

// each runs one area after the other.
func each[N Number](c *Cube[N], q Query, f func(m *aggregationMap[N]) (Result[N], error)) ([]Result[N], error) {
	out := make([]Result[N], 0, len(q))
	for _, area := range q {
		m, err := newMap(c, area)
		if err != nil {
			return nil, err
		}
		var r Result[N]
		if m.targets > 0 {
			if r, err = f(m); err != nil {
				return nil, err
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// relevant reports whether cell i reaches a target.
func (m *aggregationMap[N]) relevant(i int) bool {
	for d := range m.dims {
		if from, to := m.dims[d].of(m.c.cells.Paths[d][i]); from == to {
			return false
		}
	}
	return true
}

// fan walks the targets of one source cell: an odometer with a digit for each
// dimension that keeps numbers and weights of the digits so far.
type fan[N Number] struct {
	m          *aggregationMap[N]
	at         []uint32 // by dimension: the position in its lists
	from, to   []uint32
	number     []uint64 // by dimension: of the digits up to it
	weight     []N
	lastNumber uint64
	lastWeight N
}

func newFan[N Number](m *aggregationMap[N]) *fan[N] {
	n := len(m.dims)
	return &fan[N]{m: m, at: make([]uint32, n), from: make([]uint32, n), to: make([]uint32, n), number: make([]uint64, n+1), weight: make([]N, n+1)}
}

// begin goes to the first target of cell i, if there is one.
func (f *fan[N]) begin(i int) bool {
	for d := range f.m.dims {
		f.from[d], f.to[d] = f.m.dims[d].of(f.m.c.cells.Paths[d][i])
		if f.from[d] == f.to[d] {
			return false
		}
		f.at[d] = f.from[d]
	}
	f.weight[0] = 1
	f.settle(0)
	return true
}

// settle computes numbers and weights from dimension d on.
func (f *fan[N]) settle(d int) {
	for ; d < len(f.at); d++ {
		t := &f.m.dims[d]
		f.number[d+1] = f.number[d] + uint64(t.digit[f.at[d]])*t.stride
		f.weight[d+1] = f.weight[d] * t.weight[f.at[d]]
	}
	f.lastNumber, f.lastWeight = f.number[d], f.weight[d]
}

// next goes to the next target, if there is one.
func (f *fan[N]) next() bool {
	for d := len(f.at) - 1; d >= 0; d-- {
		if f.at[d]++; f.at[d] < f.to[d] {
			f.settle(d)
			return true
		}
		f.at[d] = f.from[d]
	}
	return false
}

// count returns the number of targets of cell i.
func (m *aggregationMap[N]) count(i int) uint64 {
	n := uint64(1)
	for d := range m.dims {
		from, to := m.dims[d].of(m.c.cells.Paths[d][i])
		n *= uint64(to - from)
	}
	return n
}

// target returns the k-th target of cell i, and its weight.
func (m *aggregationMap[N]) target(i int, k uint64) (number uint64, weight N) {
	weight = 1
	for d := len(m.dims) - 1; d >= 0; d-- {
		t := &m.dims[d]
		from, to := t.of(m.c.cells.Paths[d][i])
		n := uint64(to - from)
		at := uint64(from) + k%n
		k /= n
		number += uint64(t.digit[at]) * t.stride
		weight *= t.weight[at]
	}
	return number, weight
}
