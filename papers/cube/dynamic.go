package cube

import (
	"context"
	"sync"
	"sync/atomic"
)

// DynamicParallelism is the algorithm of section 4.3. A parent takes a block of source
// cells, counts the targets of each, makes the inclusive prefix sums of the counts, and
// launches a child grid with one thread for each target of each cell; a child's thread
// finds its source cell by an upper bound search among the sums.
//
// A CPU cannot launch: child blocks go to a queue that all workers serve, which is also
// what has replaced the primitive on devices since (compute capability 9.0 has no
// cudaDeviceSynchronize in kernels). As measured in section 5.5.1, children run after
// the parents; SyncEvery makes each parent wait for its children after so many launches
// (section 5.5.2), which bounds the memory of the sums. FixedGrid launches one child
// block that loops, instead of as many as the targets fill.
func DynamicParallelism[N Number](ctx context.Context, c *Cube[N], q Query, opt Options) ([]Result[N], error) {
	opt = opt.normal()
	return each(c, q, func(m *aggregationMap[N]) (Result[N], error) {
		source, err := m.source(ctx, &opt)
		if err != nil {
			return Result[N]{}, err
		}
		r := &launches[N]{ctx: ctx, m: m, source: source, opt: &opt}
		r.changed.L = &r.mu
		if opt.Preaggregation != PreaggregateWorker {
			if r.shared, err = newSharedTable[N](m.cellsMax(source), m.targets, opt.HashFunctions, opt.MemoryLimit); err != nil {
				return Result[N]{}, err
			}
		}
		var all []entry[N]
		err = together(opt.Workers, func(int) error {
			w := newWarps(m, r.shared)
			if r.shared == nil {
				w.own = newOwnTable[N]()
			}
			r.parents(w)
			r.children(w, nil)
			r.mu.Lock()
			defer r.mu.Unlock()
			opt.Stats.Adds += w.adds
			opt.Stats.Relevant += w.relevant
			if w.own != nil {
				all = w.own.appendTo(all)
				opt.Stats.Adds += int64(w.own.used)
			}
			return r.err
		})
		if err != nil {
			return Result[N]{}, err
		}
		if r.shared != nil {
			all = r.shared.entries()
		}
		return compact(all), nil
	})
}

// childBlock is one block of a child grid, or all of a fixed one.
type childBlock struct {
	first    int      // position of the parent block's first source cell
	sums     []uint64 // inclusive prefix sums of its cells' target counts
	from, to uint64   // threads
	pending  *atomic.Int64
}

// launches is the state of one execution: the queue of child blocks.
type launches[N Number] struct {
	ctx    context.Context
	m      *aggregationMap[N]
	source sourceCells
	shared *sharedTable[N]
	opt    *Options
	next   atomic.Int64 // parent block

	mu      sync.Mutex
	changed sync.Cond // the queue, parents running, or a parent's pending children
	queue   []childBlock
	parent  int // workers that may still launch
	started int // workers that have begun
	bytes   int64
	err     error
}

func (r *launches[N]) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	r.changed.Broadcast()
}

func (r *launches[N]) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err != nil
}

// parents runs parent blocks until there are none left.
func (r *launches[N]) parents(w *warps[N]) {
	r.mu.Lock()
	r.parent++
	r.started++
	r.mu.Unlock()
	var pending atomic.Int64
	launched := 0
	for {
		from := int(r.next.Add(1)-1) * blockThreads
		if from >= r.source.n || r.failed() {
			break
		}
		if err := r.ctx.Err(); err != nil {
			r.fail(err)
			break
		}
		to := min(from+blockThreads, r.source.n)
		sums := make([]uint64, to-from)
		total := uint64(0)
		for i := range sums {
			n := r.m.count(r.source.at(from + i))
			if n > 0 {
				w.relevant++
			}
			total += n
			sums[i] = total
		}
		if total == 0 {
			continue
		}
		r.launch(from, sums, &pending)
		if launched++; r.opt.SyncEvery > 0 && launched%r.opt.SyncEvery == 0 {
			r.children(w, &pending)
		}
	}
	r.mu.Lock()
	r.parent--
	r.changed.Broadcast()
	r.mu.Unlock()
}

// launch puts a child grid for a parent block into the queue.
func (r *launches[N]) launch(first int, sums []uint64, pending *atomic.Int64) {
	total := sums[len(sums)-1]
	step := uint64(childThreads)
	if r.opt.FixedGrid {
		step = total
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opt.Stats.Children++
	r.bytes += int64(len(sums))*8 + int64((total+step-1)/step)*64
	if r.bytes > r.opt.MemoryLimit && r.err == nil {
		r.err = errMemory
	}
	for from := uint64(0); from < total && r.err == nil; from += step {
		r.queue = append(r.queue, childBlock{first, sums, from, min(from+step, total), pending})
		pending.Add(1)
	}
	r.changed.Broadcast()
}

// children runs child blocks: until those of one parent are done, or, where that is
// nil, until there can be no more.
func (r *launches[N]) children(w *warps[N], pending *atomic.Int64) {
	for {
		r.mu.Lock()
		for len(r.queue) == 0 && r.err == nil && (pending != nil && pending.Load() > 0 || pending == nil && r.parent > 0) {
			r.changed.Wait()
		}
		if r.err != nil || pending != nil && pending.Load() == 0 || len(r.queue) == 0 {
			r.mu.Unlock()
			return
		}
		b := r.queue[len(r.queue)-1]
		r.queue = r.queue[:len(r.queue)-1]
		r.bytes -= 64
		if b.from == 0 {
			r.bytes -= int64(len(b.sums)) * 8
		}
		r.mu.Unlock()
		err := r.ctx.Err()
		for from := b.from; from < b.to && err == nil; from += childThreads {
			w.child(&r.source, &b, from, min(from+childThreads, b.to), r.opt.Preaggregation)
			if from%(childThreads*64) == 0 {
				err = r.ctx.Err()
			}
		}
		if err == nil && w.own != nil && w.own.bytes()*int64(r.opt.Workers) > r.opt.MemoryLimit {
			err = errMemory
		}
		if err != nil {
			r.fail(err)
		}
		if b.pending.Add(-1) == 0 {
			r.mu.Lock()
			r.changed.Broadcast()
			r.mu.Unlock()
		}
	}
}

// child runs the threads [from, to) of a child grid.
func (w *warps[N]) child(s *sourceCells, b *childBlock, from, to uint64, pre Preaggregation) {
	values := w.m.c.cells.Values
	for ; from < to; from += warpThreads {
		lanes := int(min(warpThreads, to-from))
		stride := warpThreads
		for l := range lanes {
			thread := from + uint64(l)
			p := upperBound(b.sums, thread)
			before := uint64(0)
			if p > 0 {
				before = b.sums[p-1]
			}
			cell := s.at(b.first + p)
			number, weight := w.m.target(cell, thread-before)
			w.active[l], w.target[l], w.value[l] = true, number, values[cell]*weight
			if l == 0 {
				switch n := b.sums[p] - before; {
				case pre == PreaggregateWarp:
					stride = 1
				case pre == PreaggregateStride && n < warpThreads:
					stride = int(n)
				}
			}
		}
		if w.own != nil {
			for l := range lanes {
				w.own.add(w.target[l], w.value[l])
			}
			continue
		}
		w.write(lanes, int(from%(1<<30)), stride)
	}
}

// upperBound returns the position of the first sum beyond i (appendix D).
func upperBound(sums []uint64, i uint64) int {
	first, count := 0, len(sums)
	for count > 0 {
		step := count / 2
		if it := first + step; sums[it] <= i {
			first = it + 1
			count -= step + 1
		} else {
			count = step
		}
	}
	return first
}
