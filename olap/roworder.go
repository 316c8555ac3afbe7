package olap

import (
	"cmp"
	"math/bits"
	"slices"

	"pgaccel/plan"
)

// rowOrder is the order of rows by an ORDER BY. Its keys are put into one integer a row, as
// far as there is room: to compare integers takes a tenth of what it takes to look at
// columns.
type rowOrder struct {
	x       *execution            // on whose goroutines it sorts; nil: on the caller's
	compare func(a, b uint32) int // by the columns, of several goroutines at once
	keys    []uint64              // by row; nil: there are none
	whole   bool                  // rows with equal keys tie; else compare tells
	free    int                   // the lower bits of keys that are 0
}

// order returns the order of rows 0 to n-1.
func (x *execution) order(cols []rcol, n int) (*rowOrder, error) {
	return x.orderBy(cols, x.q.Order, n)
}

// orderBy returns the order of rows 0 to n-1 by columns, of each of which by says the direction.
func (x *execution) orderBy(cols []rcol, by []plan.Order, n int) (*rowOrder, error) {
	if err := x.rankByServer(cols); err != nil {
		return nil, err
	}
	less, err := ordering(cols, by)
	if err != nil {
		return nil, err
	}
	o := &rowOrder{x: x, compare: less}
	if len(cols) == 0 || n < 2 {
		return o, nil
	}
	if err := x.take(int64(n) * 8); err != nil {
		return nil, err
	}
	o.keys, o.free, o.whole = make([]uint64, n), 64, true
	var spare []int64
	for i := range cols {
		v, known := cols[i].integers(&spare)
		if !known || len(v) != n || !o.add(v, cols[i].nulls, by[i]) {
			o.whole = false
			break
		}
	}
	if o.free == 64 && !o.whole {
		o.keys = nil
	}
	return o, nil
}

// add puts a column's integers behind those that are there. It reports whether all of their
// bits had room.
func (o *rowOrder) add(v []int64, nulls []uint8, k plan.Order) bool {
	lo, hi, some := int64(0), int64(0), false
	absent := false
	for i, x := range v {
		switch {
		case nulls != nil && nulls[i] != 0:
			absent = true
		case !some:
			lo, hi, some = x, x, true
		default:
			lo, hi = min(lo, x), max(hi, x)
		}
	}
	if absent {
		// A bit says whether there is a value.
		if o.free == 0 {
			return false
		}
		o.free--
		for i := range v {
			if (nulls[i] != 0) != k.NullsFirst {
				o.keys[i] |= 1 << o.free
			}
		}
	}
	width := bits.Len64(uint64(hi) - uint64(lo))
	lost := max(width-o.free, 0)
	o.free -= width - lost
	for i, x := range v {
		if absent && nulls[i] != 0 {
			continue
		}
		from := uint64(x) - uint64(lo)
		if k.Desc {
			from = uint64(hi) - uint64(x)
		}
		o.keys[i] |= from >> lost << o.free
	}
	return lost == 0
}

// rows compares two rows.
func (o *rowOrder) rows(a, b uint32) int {
	if o.keys != nil {
		if x, y := o.keys[a], o.keys[b]; x != y || o.whole {
			return cmp.Compare(x, y)
		}
	}
	return o.compare(a, b)
}

// sort orders rows, which ascend: those that tie stay so.
func (o *rowOrder) sort(rows []uint32) {
	if o.x != nil && o.x.opt.Workers > 1 && o.x.opt.enough(len(rows), parallelSort) {
		o.sortParted(rows)
		return
	}
	o.sortRun(rows)
}

func (o *rowOrder) sortRun(rows []uint32) {
	if len(rows) < 2 {
		return
	}
	place := bits.Len(uint(len(rows) - 1))
	switch {
	case o.keys == nil:
		slices.SortStableFunc(rows, o.compare)
	case o.whole && place <= o.free:
		// A key with the row's place among the others.
		list := make([]uint64, len(rows))
		for i, r := range rows {
			list[i] = o.keys[r] | uint64(i)
		}
		slices.Sort(list)
		was := slices.Clone(rows)
		for i, k := range list {
			rows[i] = was[k&(1<<place-1)]
		}
	default:
		type keyed struct {
			key uint64
			row uint32
		}
		list := make([]keyed, len(rows))
		for i, r := range rows {
			list[i] = keyed{o.keys[r], r}
		}
		slices.SortFunc(list, func(a, b keyed) int {
			if a.key != b.key {
				return cmp.Compare(a.key, b.key)
			}
			if !o.whole {
				if c := o.compare(a.row, b.row); c != 0 {
					return c
				}
			}
			return cmp.Compare(a.row, b.row)
		})
		for i := range list {
			rows[i] = list[i].row
		}
	}
}
