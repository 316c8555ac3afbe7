package cube

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// climb turns class sums into target sums, one dimension at a time: the tensor is
// multiplied by the dimension's (class, target) matrix. The dimensions that shrink it
// most come first. Where the tensor would become too large, the class sums that are
// there are handed to each of their targets instead.
func (f *factored[N]) climb(sums []N, seen []uint8) (Result[N], error) {
	shape := make([]uint64, len(f.dims))
	left := make([]int, len(f.dims))
	for d := range f.dims {
		shape[d] = uint64(len(f.dims[d].first))
		left[d] = d
	}
	var order []int
	size, most := uint64(len(sums)), uint64(len(sums))
	for len(left) > 0 {
		best := 0
		for i, d := range left {
			b := left[best]
			if f.m.dims[d].radix*shape[b] < f.m.dims[b].radix*shape[d] {
				best = i
			}
		}
		d := left[best]
		left = append(left[:best], left[best+1:]...)
		order = append(order, d)
		hi, lo := bits.Mul64(size/shape[d], f.m.dims[d].radix)
		if hi != 0 || lo > uint64(f.opt.MemoryLimit)/18 {
			return f.expand(f.entriesOf(sums, seen))
		}
		size = lo
		most = max(most, size)
	}
	if most > max(denseClasses, 8*uint64(len(sums))) {
		// Few class sums and many targets: most would stay empty.
		occupied := uint64(0)
		for _, s := range seen {
			occupied += uint64(s)
		}
		if occupied*64 < most {
			return f.expand(f.entriesOf(sums, seen))
		}
	}
	for _, d := range order {
		if err := f.ctx.Err(); err != nil {
			return Result[N]{}, err
		}
		t := &f.m.dims[d]
		if k := f.dims[d].first; len(k) == 1 && t.radix == 1 && t.weight[t.start[k[0]]] == 1 {
			continue
		}
		pre, post := 1, 1
		for i, n := range shape {
			if i < d {
				pre *= int(n)
			} else if i > d {
				post *= int(n)
			}
		}
		sums, seen = contract(sums, seen, t, f.dims[d].first, pre, post)
		shape[d] = t.radix
	}
	n := 0
	for _, s := range seen {
		n += int(s)
	}
	r := Result[N]{Targets: make([]uint64, 0, n), Values: make([]N, 0, n)}
	for i, s := range seen {
		if s != 0 {
			r.Targets = append(r.Targets, uint64(i))
			r.Values = append(r.Values, sums[i])
		}
	}
	return r, nil
}

// contract multiplies the middle axis of a tensor [pre][class][post] by the matrix of
// a dimension. first holds an element of each class.
func contract[N Number](in []N, inSeen []uint8, t *targetsOf[N], first []uint32, pre, post int) (out []N, seen []uint8) {
	radix := int(t.radix)
	out, seen = make([]N, pre*radix*post), make([]uint8, pre*radix*post)
	for p := range pre {
		for class, e := range first {
			row := in[(p*len(first)+class)*post:][:post]
			rowSeen := inSeen[(p*len(first)+class)*post:][:post]
			if post == 1 && rowSeen[0] == 0 {
				continue
			}
			from, to := t.of(e)
			for i := from; i < to; i++ {
				at := (p*radix + int(t.digit[i])) * post
				w := t.weight[i]
				sum, was := out[at:][:post], seen[at:][:post]
				for k, v := range row {
					sum[k] += v * w
					was[k] |= rowSeen[k]
				}
			}
		}
	}
	return out, seen
}

// entriesOf lists the class sums that are there.
func (f *factored[N]) entriesOf(sums []N, seen []uint8) [][]entry[N] {
	var all []entry[N]
	for i, s := range seen {
		if s != 0 {
			all = append(all, entry[N]{uint64(i), sums[i]})
		}
	}
	workers := f.opt.Workers
	parts := make([][]entry[N], workers)
	for p := range parts {
		parts[p] = all[len(all)*p/workers : len(all)*(p+1)/workers]
	}
	return parts
}

// sparse adds up in hash tables: each worker in its own, by number of the combination
// of classes; then each worker puts together one partition of the numbers.
func (f *factored[N]) sparse() (Result[N], error) {
	c := f.m.c
	tables := make([]*ownTable[N], f.opt.Workers)
	var next atomic.Int64
	err := together(f.opt.Workers, func(worker int) error {
		t := newOwnTable[N]()
		tables[worker] = t
		for {
			from := int(next.Add(1)-1) * morselCells
			if from >= c.Len() {
				return nil
			}
			if f.ctx.Err() != nil {
				return f.ctx.Err()
			}
		cells:
			for i := from; i < min(from+morselCells, c.Len()); i++ {
				number := uint64(0)
				for d := range f.dims {
					class := f.dims[d].of[c.cells.Paths[d][i]]
					if class < 0 {
						continue cells
					}
					number = number*uint64(len(f.dims[d].first)) + uint64(class)
				}
				t.add(number, c.cells.Values[i])
			}
			if t.bytes()*int64(f.opt.Workers)*2 > f.opt.MemoryLimit {
				return errMemory
			}
		}
	})
	if err != nil {
		return Result[N]{}, err
	}
	parts := make([][]entry[N], f.opt.Workers)
	err = together(f.opt.Workers, func(worker int) error {
		merged := newOwnTable[N]()
		for _, t := range tables {
			for i, k := range t.keys {
				if k != 0 && mix(k)>>32%uint64(f.opt.Workers) == uint64(worker) {
					merged.add(k-1, t.values[i])
				}
			}
		}
		parts[worker] = merged.appendTo(nil)
		return nil
	})
	if err != nil {
		return Result[N]{}, err
	}
	return f.expand(parts)
}

// expand hands each class sum to all targets of its classes. parts are shared out to
// the workers, which keep tables of their own.
func (f *factored[N]) expand(parts [][]entry[N]) (Result[N], error) {
	var mu sync.Mutex
	var all []entry[N]
	err := together(len(parts), func(worker int) error {
		t := newOwnTable[N]()
		n := len(f.dims)
		at, from, to := make([]uint32, n), make([]uint32, n), make([]uint32, n)
		number, weight := make([]uint64, n+1), make([]N, n+1)
		for i, e := range parts[worker] {
			if i%1024 == 0 && f.ctx.Err() != nil {
				return f.ctx.Err()
			}
			for d := n - 1; d >= 0; d-- {
				k := uint64(len(f.dims[d].first))
				from[d], to[d] = f.m.dims[d].of(f.dims[d].first[e.target%k])
				at[d] = from[d]
				e.target /= k
			}
			weight[0] = e.value
			for d := 0; d >= 0; {
				for ; d < n; d++ {
					m := &f.m.dims[d]
					number[d+1] = number[d] + uint64(m.digit[at[d]])*m.stride
					weight[d+1] = weight[d] * m.weight[at[d]]
				}
				t.add(number[n], weight[n])
				for d = n - 1; d >= 0; d-- {
					if at[d]++; at[d] < to[d] {
						break
					}
					at[d] = from[d]
				}
			}
			if t.bytes()*int64(f.opt.Workers) > f.opt.MemoryLimit {
				return errMemory
			}
		}
		mu.Lock()
		defer mu.Unlock()
		all = t.appendTo(all)
		return nil
	})
	return compact(all), err
}
