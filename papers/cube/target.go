package cube

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// TargetBased computes each target cell by itself (section 2.3): for each dimension the
// map gives the base elements below the target's element, and the fact table, which is
// sorted by path, is searched for their combinations, one dimension after the other.
// Workers take target cells in turns.
func TargetBased[N Number](ctx context.Context, c *Cube[N], q Query, opt Options) ([]Result[N], error) {
	opt = opt.normal()
	return each(c, q, func(m *aggregationMap[N]) (Result[N], error) {
		const batch = 16 // targets
		order := m.bySelectivity()
		var next atomic.Uint64
		var mu sync.Mutex
		var all []entry[N]
		err := together(opt.Workers, func(int) error {
			var mine []entry[N]
			var path []int
			digits := make([]uint32, len(m.dims))
			for {
				from := (next.Add(1) - 1) * batch
				if from >= m.targets {
					mu.Lock()
					all = append(all, mine...)
					mu.Unlock()
					return nil
				}
				for t := from; t < min(from+batch, m.targets); t++ {
					path = m.area.Elements(t, path)
					for d := range digits {
						digits[d] = uint32(t / m.dims[d].stride % m.dims[d].radix)
					}
					s := search[N]{ctx: ctx, m: m, c: c, path: path, digits: digits, order: order}
					s.cells(0, 0, c.Len(), 1)
					if s.err != nil {
						return s.err
					}
					if s.filled {
						mine = append(mine, entry[N]{t, s.sum})
					}
				}
				if int64(len(mine))*24 > opt.MemoryLimit {
					return errMemory
				}
			}
		})
		return compact(all), err
	})
}

// search adds up the source cells of one target cell.
type search[N Number] struct {
	ctx    context.Context
	m      *aggregationMap[N]
	c      *Cube[N]
	path   []int
	digits []uint32 // positions of path's elements in the area's lists
	order  []int    // dimensions, those first that most cells fail by
	sum    N
	filled bool
	work   int
	err    error
}

// cells goes through the cells [from, to), which agree in all dimensions before d.
func (s *search[N]) cells(d, from, to int, weight N) {
	if d == len(s.path) {
		for _, v := range s.c.cells.Values[from:to] {
			s.sum += v * weight
			s.filled = true
		}
		return
	}
	if from == to {
		return
	}
	if s.work++; s.work%checkEvery == 0 && s.err == nil {
		s.err = s.ctx.Err()
	}
	if to-from <= searchCells {
		for i := from; i < to; i++ {
			if w, ok := s.reach(i, d); ok {
				s.sum += s.c.cells.Values[i] * (weight * w)
				s.filled = true
			}
		}
		return
	}
	// The sorted column and the sorted list of base elements leapfrog.
	column, list := s.c.cells.Paths[d], s.c.reaches[d][s.path[d]]
	for s.err == nil {
		list = list[gallop(len(list), func(i int) bool { return list[i].base >= column[from] }):]
		if len(list) == 0 {
			return
		}
		r := list[0]
		from += gallop(to-from, func(i int) bool { return column[from+i] >= r.base })
		if from == to {
			return
		}
		if column[from] != r.base {
			continue
		}
		end := from + gallop(to-from, func(i int) bool { return column[from+i] > r.base })
		s.cells(d+1, from, end, weight*r.weight)
		if from = end; from == to {
			return
		}
	}
}

// searchCells: so few cells are looked at one by one.
const searchCells = 16

// reach returns the weight with which cell i reaches the target in the dimensions from d
// on.
func (s *search[N]) reach(i, d int) (weight N, ok bool) {
	weight = 1
	for _, k := range s.order {
		if k < d {
			continue
		}
		t := &s.m.dims[k]
		digit := s.digits[k]
		at, to := t.of(s.c.cells.Paths[k][i])
		for at < to && t.digit[at] != digit {
			at++
		}
		if at == to {
			return 0, false
		}
		weight *= t.weight[at]
	}
	return weight, true
}

// bySelectivity orders the dimensions by the chance that an element reaches a target.
func (m *aggregationMap[N]) bySelectivity() []int {
	order := make([]int, len(m.dims))
	chance := make([]float64, len(m.dims))
	for d := range m.dims {
		bases := 0
		for _, e := range m.c.dims[d].Elements {
			if len(e.Children) == 0 {
				bases++
			}
		}
		order[d] = d
		chance[d] = float64(len(m.dims[d].digit)) / float64(bases) / float64(m.dims[d].radix)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(chance[a], chance[b]) })
	return order
}

// gallop returns the smallest i in [0, n) for which at(i) holds, or n; fast where that
// is near 0.
func gallop(n int, at func(int) bool) int {
	lo, hi := 0, 1
	for hi <= n && !at(hi-1) {
		lo, hi = hi, 2*hi
	}
	hi = min(hi, n)
	return lo + sort.Search(hi-lo, func(i int) bool { return at(lo + i) })
}

// together runs f on several goroutines and returns the first error, by number.
func together(workers int, f func(worker int) error) error {
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
