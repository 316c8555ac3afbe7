package cube

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
)

// The launch configuration of the thesis (section 5.2, appendix C): a page of source
// cells is one step of the moving grid.
const (
	warpThreads  = 32
	blockThreads = 768
	gridBlocks   = 30
	pageCells    = gridBlocks * blockThreads
	childThreads = 1024
)

// ParallelSourceBased is the source-based algorithm of section 4.2 without dynamic
// parallelism. Workers take blocks of source cells as the moving grid of threads would
// and add to one shared table of target cells.
func ParallelSourceBased[N Number](ctx context.Context, c *Cube[N], q Query, opt Options) ([]Result[N], error) {
	opt = opt.normal()
	return each(c, q, func(m *aggregationMap[N]) (Result[N], error) {
		source, err := m.source(ctx, &opt)
		if err != nil {
			return Result[N]{}, err
		}
		var all []entry[N]
		var shared *sharedTable[N]
		if opt.Preaggregation != PreaggregateWorker {
			if shared, err = newSharedTable[N](m.cellsMax(source), m.targets, opt.HashFunctions, opt.MemoryLimit); err != nil {
				return Result[N]{}, err
			}
		}
		var mu sync.Mutex
		var next atomic.Int64
		err = together(opt.Workers, func(int) error {
			w := newWarps(m, shared)
			if shared == nil {
				w.own = newOwnTable[N]()
			}
			for {
				from := int(next.Add(1)-1) * blockThreads
				if from >= source.n {
					break
				}
				if ctx.Err() != nil {
					return ctx.Err()
				}
				for to := min(from+blockThreads, source.n); from < to; from += warpThreads {
					w.run(&source, from, min(from+warpThreads, to), opt.Preaggregation)
				}
				if w.own != nil && w.own.bytes()*int64(opt.Workers) > opt.MemoryLimit {
					return errMemory
				}
			}
			mu.Lock()
			defer mu.Unlock()
			opt.Stats.Adds += w.adds
			opt.Stats.Relevant += w.relevant
			if w.own != nil {
				all = w.own.appendTo(all)
				opt.Stats.Adds += int64(w.own.used)
			}
			return nil
		})
		if err != nil {
			return Result[N]{}, err
		}
		if shared != nil {
			all = shared.entries()
		}
		return compact(all), nil
	})
}

// sourceCells are the cells that the aggregation reads: all, or those of a list.
type sourceCells struct {
	n    int
	list []uint32 // nil: cells 0 to n-1
}

func (s *sourceCells) at(i int) int {
	if s.list != nil {
		return int(s.list[i])
	}
	return i
}

// cellsMax bounds the number of filled target cells.
func (m *aggregationMap[N]) cellsMax(s sourceCells) uint64 {
	sum := uint64(0)
	for i := range s.n {
		if sum += m.count(s.at(i)); sum >= m.targets {
			return m.targets
		}
	}
	return sum
}

// source applies the prefilter, where it is asked for: first pages, by the range of
// elements that occurs within them, then the cells of the pages that are left.
func (m *aggregationMap[N]) source(ctx context.Context, opt *Options) (sourceCells, error) {
	n := m.c.Len()
	if !opt.Prefilter || n > math.MaxUint32 {
		return sourceCells{n: n}, nil
	}
	// before[d][e] counts the elements below e that are in the source area.
	before := make([][]uint32, len(m.dims))
	for d := range m.dims {
		start := m.dims[d].start
		before[d] = make([]uint32, len(start))
		for e := range len(start) - 1 {
			before[d][e+1] = before[d][e]
			if start[e+1] > start[e] {
				before[d][e+1]++
			}
		}
	}
	pages := (n + pageCells - 1) / pageCells
	kept := make([][]uint32, pages)
	var next atomic.Int64
	err := together(opt.Workers, func(int) error {
		for {
			p := int(next.Add(1) - 1)
			if p >= pages {
				return nil
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			from, to := p*pageCells, min((p+1)*pageCells, n)
			if !m.pageRelevant(before, from, to) {
				continue
			}
			var list []uint32
			for i := from; i < to; i++ {
				if m.relevant(i) {
					list = append(list, uint32(i))
				}
			}
			kept[p] = list
		}
	})
	if err != nil {
		return sourceCells{}, err
	}
	list := []uint32{}
	for _, k := range kept {
		list = append(list, k...)
	}
	return sourceCells{n: len(list), list: list}, nil
}

// pageRelevant reports whether the source area meets the ranges of the page's elements.
// Cells are sorted: up to the first dimension that changes within the page, first and
// last cell tell all.
func (m *aggregationMap[N]) pageRelevant(before [][]uint32, from, to int) bool {
	for d := range m.dims {
		column := m.c.cells.Paths[d]
		lo, hi := column[from], column[to-1]
		if before[d][hi+1] == before[d][lo] {
			return false
		}
		if lo != hi {
			break
		}
	}
	return true
}

// warps executes warps of threads in lockstep: in each step every thread of a warp has
// one target cell, or has run out of them.
type warps[N Number] struct {
	m        *aggregationMap[N]
	shared   *sharedTable[N]
	own      *ownTable[N]
	fans     [warpThreads]*fan[N]
	target   [warpThreads]uint64
	value    [warpThreads]N
	active   [warpThreads]bool
	adds     int64
	relevant int64
}

func newWarps[N Number](m *aggregationMap[N], shared *sharedTable[N]) *warps[N] {
	w := &warps[N]{m: m, shared: shared}
	for i := range w.fans {
		w.fans[i] = newFan(m)
	}
	return w
}

// run aggregates the source cells [from, to), at most a warp of them.
func (w *warps[N]) run(s *sourceCells, from, to int, pre Preaggregation) {
	values := w.m.c.cells.Values
	if pre == PreaggregateNone || pre == PreaggregateWorker {
		f := w.fans[0]
		for i := from; i < to; i++ {
			cell := s.at(i)
			if !f.begin(cell) {
				continue
			}
			w.relevant++
			v := values[cell]
			for more := true; more; more = f.next() {
				if w.own != nil {
					w.own.add(f.lastNumber, v*f.lastWeight)
					continue
				}
				w.adds++
				w.shared.add(f.lastNumber, i, v*f.lastWeight)
			}
		}
		return
	}
	var cell [warpThreads]int
	lanes, left := to-from, 0
	for l := range lanes {
		cell[l] = s.at(from + l)
		if w.active[l] = w.fans[l].begin(cell[l]); w.active[l] {
			left++
			w.relevant++
		}
	}
	for left > 0 {
		for l := range lanes {
			if w.active[l] {
				w.target[l] = w.fans[l].lastNumber
				w.value[l] = values[cell[l]] * w.fans[l].lastWeight
			}
		}
		// Within the parent a stride of one is the same as comparing with the first
		// lane (section 5.4.1).
		w.write(lanes, from, 1)
		for l := range lanes {
			if w.active[l] && !w.fans[l].next() {
				w.active[l] = false
				left--
			}
		}
	}
}

// write adds the lanes' values to their targets. Lanes whose target is that of the lane
// l % stride give their values to it, if it takes part.
func (w *warps[N]) write(lanes, thread, stride int) {
	sum, merged := w.value, [warpThreads]bool{}
	if stride < warpThreads {
		for l := stride; l < lanes; l++ {
			first := l % stride
			if w.active[l] && w.active[first] && w.target[l] == w.target[first] {
				sum[first] += w.value[l]
				merged[l] = true
			}
		}
	}
	for l := range lanes {
		if w.active[l] && !merged[l] {
			w.adds++
			w.shared.add(w.target[l], thread+l, sum[l])
		}
	}
}
