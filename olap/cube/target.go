package cube

import (
	"context"
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
		var next atomic.Uint64
		var mu sync.Mutex
		var all []entry[N]
		err := together(opt.Workers, func(int) error {
			var mine []entry[N]
			var path []int
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
					s := search[N]{ctx: ctx, c: c, path: path}
					s.cells(0, 0, c.Len(), 1)
					if s.err != nil {
						return s.err
					}
					if s.filled {
						mine = append(mine, entry[N]{t, s.sum})
					}
				}
				if int64(len(mine))*24 > opt.MemoryLimit {
					return ErrMemory
				}
			}
		})
		return compact(all), err
	})
}

// search adds up the source cells of one target cell.
type search[N Number] struct {
	ctx    context.Context
	c      *Cube[N]
	path   []int
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
	if s.work++; s.work%checkEvery == 0 && s.err == nil {
		s.err = s.ctx.Err()
	}
	column := s.c.cells.Paths[d]
	for _, r := range s.c.reaches[d][s.path[d]] {
		if s.err != nil {
			return
		}
		from += sort.Search(to-from, func(i int) bool { return column[from+i] >= r.base })
		if from == to {
			return
		}
		if column[from] != r.base {
			continue
		}
		end := from + sort.Search(to-from, func(i int) bool { return column[from+i] > r.base })
		s.cells(d+1, from, end, weight*r.weight)
		from = end
	}
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
