package cube

import (
	"context"
	"encoding/binary"
	"slices"
)

// checkEvery is how many cells (or targets) pass between looks at the context.
const checkEvery = 1 << 14

// SourceBased is the thesis' single-threaded CPU algorithm (section 4.1, StOAP): the
// fact table cell by cell; for each cell, target by target, the target's path is
// built, and the weighted value is added in a hash map of target paths. Our fact table
// is an array of columns, which is kinder to it than StOAP's own hash map.
func SourceBased[N Number](ctx context.Context, c *Cube[N], q Query, opt Options) ([]Result[N], error) {
	opt = opt.normal()
	return each(c, q, func(m *aggregationMap[N]) (Result[N], error) {
		dims := len(m.dims)
		slots := map[string]int{}
		var values []N
		path := make([]byte, 4*dims)
		at := make([]uint32, dims)
	cells:
		for i, value := range c.cells.Values {
			if i%checkEvery == 0 && ctx.Err() != nil {
				return Result[N]{}, ctx.Err()
			}
			for d := range m.dims {
				from, to := m.dims[d].of(c.cells.Paths[d][i])
				if from == to {
					continue cells
				}
				at[d] = from
			}
			opt.Stats.Relevant++
			for more := true; more; {
				weighted := value
				for d := range m.dims {
					t := &m.dims[d]
					binary.LittleEndian.PutUint32(path[4*d:], t.digit[at[d]])
					weighted *= t.weight[at[d]]
				}
				opt.Stats.Adds++
				slot, ok := slots[string(path)]
				if !ok {
					slot = len(values)
					if int64(slot)*int64(4*dims+48) > opt.MemoryLimit {
						return Result[N]{}, errMemory
					}
					slots[string(path)] = slot
					values = append(values, 0)
				}
				values[slot] += weighted
				more = false
				for d := dims - 1; d >= 0; d-- {
					from, to := m.dims[d].of(c.cells.Paths[d][i])
					if at[d]++; at[d] < to {
						more = true
						break
					}
					at[d] = from
				}
			}
		}
		r := make([]entry[N], 0, len(values))
		for path, slot := range slots {
			number := uint64(0)
			for d := range m.dims {
				number += uint64(binary.LittleEndian.Uint32([]byte(path[4*d:4*d+4]))) * m.dims[d].stride
			}
			r = append(r, entry[N]{number, values[slot]})
		}
		return compact(r), nil
	})
}

// entry is a value on its way to a target cell.
type entry[N Number] struct {
	target uint64
	value  N
}

// compact sorts entries and adds up those of one target: the thesis' stream compaction.
func compact[N Number](all []entry[N]) Result[N] {
	slices.SortFunc(all, func(a, b entry[N]) int {
		switch {
		case a.target < b.target:
			return -1
		case a.target > b.target:
			return 1
		}
		return 0
	})
	r := Result[N]{Targets: make([]uint64, 0, len(all)), Values: make([]N, 0, len(all))}
	for _, e := range all {
		if n := len(r.Targets); n > 0 && r.Targets[n-1] == e.target {
			r.Values[n-1] += e.value
			continue
		}
		r.Targets = append(r.Targets, e.target)
		r.Values = append(r.Values, e.value)
	}
	return r
}
