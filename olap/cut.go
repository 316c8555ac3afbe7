package olap

import (
	"pgaccel/plan"
	"pgaccel/vector"
)

// cut leaves the rows of each partition that p says, and returns how many there are. Where rows tie
// at a cut all that tie must look alike: which of them PostgreSQL takes is not known.
func (w *windower) cut(p *plan.Cut) (int, error) {
	if err := w.x.take(int64(w.n) * 8); err != nil {
		return 0, err
	}
	sorted, err := w.sorted(p.Partition, p.Order)
	if err != nil {
		return 0, err
	}
	rows := sorted.rows
	kept := rows[:0:0]
	for from := 0; from < w.n; {
		to := from + 1
		for to < w.n && sorted.apart(rows[from], rows[to]) == 0 {
			to++
		}
		first := from + int(min(p.Offset, int64(to-from)))
		last := first + int(min(p.Count, int64(to-first)))
		for _, at := range []int{first, last} {
			if at > from && at < to && !w.tiesAlike(sorted.order, rows[from:to], at-from) {
				return 0, forward(plan.ReasonTies, "rows that the order leaves equal, of which some are taken")
			}
		}
		kept = append(kept, rows[first:last]...)
		from = to
	}
	for i := range w.cols {
		w.cols[i].keep(kept)
	}
	return len(kept), nil
}

// tiesAlike reports whether the rows that tie where rows are cut have the same values.
func (w *windower) tiesAlike(order *rowOrder, rows []uint32, at int) bool {
	if order.rows(rows[at-1], rows[at]) != 0 {
		return true
	}
	from, to := at-1, at+1
	for from > 0 && order.rows(rows[from-1], rows[at]) == 0 {
		from--
	}
	for to < len(rows) && order.rows(rows[to], rows[at]) == 0 {
		to++
	}
	for i := range w.cols {
		if !w.cols[i].allEqual(rows[from:to]) {
			return false
		}
	}
	return true
}

// identity is a column of a result in which equal values, and only these, are equal integers or
// floats.
func (c *relationColumn) identity() (rcol, error) {
	switch {
	case c.t.Kind.IsFloat():
		return c.result(), nil
	case c.varying() && c.dict != nil: // some codes are of equal numerics
		ranks, err := c.dict.rank(c.t.Collation)
		if err != nil {
			return rcol{}, err
		}
		k := rcol{t: vector.TypeOf(vector.Int8), v: make([]int64, len(c.v)), nulls: c.nulls}
		for i, code := range c.v {
			if !c.null(uint32(i)) {
				k.v[i] = int64(ranks[code])
			}
		}
		return k, nil
	}
	return rcol{t: vector.TypeOf(vector.Int8), v: c.v, nulls: c.nulls}, nil
}

// keep leaves some rows of the column.
func (c *relationColumn) keep(rows []uint32) {
	v := make([]int64, len(rows))
	for i, r := range rows {
		v[i] = c.v[r]
	}
	if c.v = v; c.nulls == nil {
		return
	}
	nulls := make([]uint8, len(rows))
	for i, r := range rows {
		nulls[i] = c.nulls[r]
	}
	c.nulls = nulls
}
