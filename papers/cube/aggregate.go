package cube

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
)

// Limits of Aggregate.
const (
	morselCells = 1 << 16
	tileCells   = 1 << 10
	// denseClasses bounds the tensor of class sums, and so do the source cells where there
	// are more than denseAlways places: emptier tensors cost more than hash tables.
	denseClasses = 1 << 22
	denseAlways  = 1 << 18
	denseEmpty   = 16 // places for each source cell
	// replicaClasses: up to so many places each worker has several tensors, lest the
	// same place be read just after it was written.
	replicaClasses = 1 << 12
	replicas       = 4
	// irrelevant marks elements outside the source area in a table of places: however
	// many dimensions add up, the sum is negative.
	irrelevant = -1 << 24
	denseDims  = 64
)

// Aggregate computes q in the way that we would use (package comment): base elements
// that reach the same targets with the same weights are a class; one pass over the fact
// table adds each relevant cell once, by its classes; then each dimension's classes are
// turned into targets. Class sums are kept in arrays, or in hash tables where there are
// too many combinations; those are partitioned among the workers to be put together.
func Aggregate[N Number](ctx context.Context, c *Cube[N], q Query, opt Options) ([]Result[N], error) {
	opt = opt.normal()
	return each(c, q, func(m *aggregationMap[N]) (Result[N], error) {
		f := &factored[N]{ctx: ctx, m: m, opt: &opt, dims: make([]classes, len(m.dims))}
		fits := true
		size := uint64(1)
		for d := range m.dims {
			f.dims[d] = m.classify(d)
			if len(f.dims[d].first) == 0 {
				return Result[N]{}, nil
			}
			hi, lo := bits.Mul64(size, uint64(len(f.dims[d].first)))
			fits = fits && hi == 0 && lo < math.MaxUint64
			size = lo
		}
		if !fits {
			opt.Prefilter, opt.Preaggregation = true, PreaggregateWorker
			r, err := ParallelSourceBased(ctx, c, Query{m.area}, opt)
			if err != nil {
				return Result[N]{}, err
			}
			return r[0], nil
		}
		if size <= denseClasses && size <= max(denseAlways, denseEmpty*uint64(c.Len())) && len(m.dims) <= denseDims &&
			int64(size)*int64(9*opt.Workers) < opt.MemoryLimit {
			return f.dense(int(size))
		}
		return f.sparse()
	})
}

// factored is one execution of Aggregate over an area.
type factored[N Number] struct {
	ctx  context.Context
	m    *aggregationMap[N]
	opt  *Options
	dims []classes
}

// classes are the base elements of a dimension, those that reach the same targets
// with the same weights together.
type classes struct {
	of    []int32  // by element; -1 outside the source area
	first []uint32 // an element of each class
	all   bool     // no base element lies outside
}

// classify finds the classes of dimension d.
func (m *aggregationMap[N]) classify(d int) classes {
	t := &m.dims[d]
	n := len(t.start) - 1
	k := classes{of: make([]int32, n), all: true}
	byHash := map[uint64]int32{}
	for e := range n {
		k.of[e] = -1
		from, to := t.of(uint32(e))
		if from == to {
			k.all = k.all && len(m.c.dims[d].Elements[e].Children) > 0
			continue
		}
		h := uint64(to - from)
		for i := from; i < to; i++ {
			h = mix(h ^ uint64(t.digit[i]))
			h = mix(h ^ math.Float64bits(float64(t.weight[i])))
		}
		for ; ; h++ {
			class, found := byHash[h]
			if !found {
				byHash[h] = int32(len(k.first))
				k.of[e] = int32(len(k.first))
				k.first = append(k.first, uint32(e))
				break
			}
			a, b := t.of(k.first[class])
			if slices.Equal(t.digit[a:b], t.digit[from:to]) && slices.Equal(t.weight[a:b], t.weight[from:to]) {
				k.of[e] = class
				break
			}
		}
	}
	return k
}

// tensor is one worker's class sums: place 0 takes what is irrelevant.
type tensor[N Number] struct {
	sums [replicas][]N // those after the first only for small ones
	seen []uint8
	keys [tileCells]int32
}

// place maps a dimension's elements to their part of a cell's place.
type place struct {
	dim   int
	table []int32 // class * stride, or irrelevant
}

// dense adds up in arrays.
func (f *factored[N]) dense(size int) (Result[N], error) {
	c := f.m.c
	places := make([]place, 0, len(f.dims))
	stride := int32(1)
	for d := len(f.dims) - 1; d >= 0; d-- {
		k := &f.dims[d]
		if len(k.first) == 1 && k.all {
			continue // it neither moves a cell nor keeps one out
		}
		table := make([]int32, len(k.of))
		for e, class := range k.of {
			table[e] = class * stride
			if class < 0 {
				table[e] = irrelevant
			}
		}
		stride *= int32(len(k.first))
		places = append(places, place{d, table})
	}
	slices.Reverse(places)
	workers := max(1, min(f.opt.Workers, (c.Len()+morselCells-1)/morselCells))
	parts := make([]*tensor[N], workers)
	var next atomic.Int64
	err := together(workers, func(worker int) error {
		t := &tensor[N]{seen: make([]uint8, size+1)}
		t.sums[0] = make([]N, size+1)
		for r := 1; r < replicas; r++ {
			t.sums[r] = t.sums[0]
			if size <= replicaClasses {
				t.sums[r] = make([]N, size+1)
			}
		}
		parts[worker] = t
		for {
			from := int(next.Add(1)-1) * morselCells
			if from >= c.Len() {
				break
			}
			if f.ctx.Err() != nil {
				return f.ctx.Err()
			}
			for to := min(from+morselCells, c.Len()); from < to; from += tileCells {
				t.tile(c.cells.Paths, places, c.cells.Values, from, min(from+tileCells, to))
			}
		}
		if size <= replicaClasses {
			for _, more := range t.sums[1:] {
				for i, v := range more {
					t.sums[0][i] += v
				}
			}
		}
		return nil
	})
	if err != nil {
		return Result[N]{}, err
	}
	sums, seen := parts[0].sums[0][1:], parts[0].seen[1:]
	for _, p := range parts[1:] {
		for i, v := range p.sums[0][1:] {
			sums[i] += v
			seen[i] |= p.seen[i+1]
		}
	}
	return f.climb(sums, seen)
}

// tile adds the cells [from, to). They are sorted: where the first dimensions are the
// same for the first cell and the last, they are for all.
func (t *tensor[N]) tile(paths [][]uint32, places []place, values []N, from, to int) {
	same := 0
	for same < len(paths) && paths[same][from] == paths[same][to-1] {
		same++
	}
	base := int32(0)
	for len(places) > 0 && places[0].dim < same {
		if base += places[0].table[paths[places[0].dim][from]]; base < 0 {
			return
		}
		places = places[1:]
	}
	values = values[from:to]
	if len(places) == 0 {
		sum := N(0)
		for _, v := range values {
			sum += v
		}
		t.sums[0][base+1] += sum
		t.seen[base+1] = 1
		return
	}
	keys := t.keys[:len(values)]
	table := places[0].table
	for i, e := range paths[places[0].dim][from:to] {
		keys[i] = base + table[e]
	}
	for _, p := range places[1:] {
		table := p.table
		for i, e := range paths[p.dim][from:to] {
			keys[i] += table[e]
		}
	}
	seen, s0, s1, s2, s3 := t.seen, t.sums[0], t.sums[1], t.sums[2], t.sums[3]
	i := 0
	for ; i+replicas <= len(values); i += replicas {
		k := keys[i : i+replicas : i+replicas]
		v := values[i : i+replicas : i+replicas]
		k0, k1, k2, k3 := max(k[0], -1)+1, max(k[1], -1)+1, max(k[2], -1)+1, max(k[3], -1)+1
		s0[k0] += v[0]
		s1[k1] += v[1]
		s2[k2] += v[2]
		s3[k3] += v[3]
		seen[k0], seen[k1], seen[k2], seen[k3] = 1, 1, 1, 1
	}
	for ; i < len(values); i++ {
		k := max(keys[i], -1) + 1
		s0[k] += values[i]
		seen[k] = 1
	}
}
