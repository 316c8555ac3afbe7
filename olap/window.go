package olap

import (
	"cmp"
	"slices"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// windower computes the windows of a relation over its rows, which have all been gathered: they are
// put in the order of a window's partitions and keys, and one pass gives each row its value.
type windower struct {
	x    *execution
	cols []relationColumn
	n    int
}

// column computes a window.
func (w *windower) column(p *plan.WindowColumn) error {
	if err := w.x.take(int64(w.n) * 16); err != nil {
		return err
	}
	rows := make([]uint32, w.n)
	for i := range rows {
		rows[i] = uint32(i)
	}
	keys, by := make([]rcol, len(p.Order)), make([]plan.Order, len(p.Order))
	for i, o := range p.Order {
		keys[i] = w.cols[o.Column].result()
		by[i] = plan.Order{Desc: o.Desc, NullsFirst: o.NullsFirst}
	}
	within, err := ordering(keys, by)
	if err != nil {
		return err
	}
	apart := w.partitions(p.Partition)
	slices.SortStableFunc(rows, func(a, b uint32) int {
		if c := apart(a, b); c != 0 {
			return c
		}
		return within(a, b)
	})
	out := &w.cols[p.To]
	out.v = make([]int64, w.n)
	for from := 0; from < w.n; {
		if err := w.x.ctx.Err(); err != nil {
			return err
		}
		to := from + 1
		for to < w.n && apart(rows[from], rows[to]) == 0 {
			to++
		}
		if err := w.partition(p, out, rows[from:to], within); err != nil {
			return err
		}
		from = to
	}
	if err := w.x.take(out.held); err != nil {
		return err
	}
	switch {
	case out.varying():
		out.dict = decimalDict(out.decimals, out.t)
	case p.Arg >= 0 && out.t.Kind.IsText():
		out.dict = w.cols[p.Arg].dict
	}
	return nil
}

// partitions returns an order of rows in which those of one partition are equal.
func (w *windower) partitions(columns []int) func(a, b uint32) int {
	return func(a, b uint32) int {
		for _, i := range columns {
			c := &w.cols[i]
			if c.nulls != nil && c.nulls[a]|c.nulls[b] != 0 {
				if r := cmp.Compare(c.nulls[a], c.nulls[b]); r != 0 {
					return r
				}
				continue
			}
			x, y := c.v[a], c.v[b]
			if c.t.Kind.IsFloat() {
				x, y = vector.FloatKey(x), vector.FloatKey(y)
			}
			if r := cmp.Compare(x, y); r != 0 {
				return r
			}
		}
		return 0
	}
}

// partition computes the values of one partition's rows, which are in order.
func (w *windower) partition(p *plan.WindowColumn, out *relationColumn, rows []uint32, within func(a, b uint32) int) error {
	acc := windowState{p: p}
	if p.Func == plan.WindowAggregate {
		if err := acc.init(w, out.t); err != nil {
			return err
		}
	}
	peers := 0
	for from := 0; from < len(rows); peers++ {
		to := from + 1
		for to < len(rows) && within(rows[from], rows[to]) == 0 {
			to++
		}
		byRow := p.Func == plan.RowNumber || p.Func == plan.WindowAggregate && p.Frame == plan.ToRow
		if byRow && to-from > 1 && !w.alike(rows[from:to]) {
			return forward(plan.ReasonTies, "rows that the order of a window leaves equal")
		}
		for i := from; i < to; i++ {
			switch p.Func {
			case plan.RowNumber:
				out.v[rows[i]] = int64(i) + 1
				continue
			case plan.Rank:
				out.v[rows[i]] = int64(from) + 1
				continue
			case plan.DenseRank:
				out.v[rows[i]] = int64(peers) + 1
				continue
			}
			acc.add(rows[i])
			if p.Frame == plan.ToRow {
				if err := acc.put(out, rows[i:i+1]); err != nil {
					return err
				}
			}
		}
		if p.Func == plan.WindowAggregate && p.Frame == plan.ToPeers {
			if err := acc.put(out, rows[from:to]); err != nil {
				return err
			}
		}
		from = to
	}
	if p.Func == plan.WindowAggregate && p.Frame == plan.ToEnd {
		return acc.put(out, rows)
	}
	return nil
}

// alike reports whether rows have the same values in all columns that are not a window's.
func (w *windower) alike(rows []uint32) bool {
	for i := range w.cols {
		c := &w.cols[i]
		if c.window {
			continue
		}
		for _, r := range rows[1:] {
			if c.nulls != nil && c.nulls[r] != c.nulls[rows[0]] {
				return false
			}
			if (c.nulls == nil || c.nulls[r] == 0) && c.v[r] != c.v[rows[0]] {
				return false
			}
		}
	}
	return true
}

// windowState is an aggregate over the frame so far.
type windowState struct {
	p           *plan.WindowColumn
	arg, filter *relationColumn // nil for none
	ranks       []int32         // of text
	t           vector.Type
	n           int64 // values
	sum         vector.Int128
	best        int64 // of the least or the greatest, or what is folded
	bestKey     int64 // by which that is compared
}

func (s *windowState) init(w *windower, t vector.Type) (err error) {
	s.t = t
	if s.p.Filter >= 0 {
		s.filter = &w.cols[s.p.Filter]
	}
	if s.p.Arg >= 0 {
		s.arg = &w.cols[s.p.Arg]
		if s.arg.dict != nil {
			s.ranks, err = s.arg.dict.rank(s.arg.t.Collation)
		}
	}
	s.best = s.p.Agg.Start
	return err
}

func (c *relationColumn) null(r uint32) bool { return c.nulls != nil && c.nulls[r] != 0 }

// add adds a row.
func (s *windowState) add(r uint32) {
	if s.filter != nil && (s.filter.null(r) || s.filter.v[r] == 0) || s.arg != nil && s.arg.null(r) {
		return
	}
	s.n++
	if s.arg == nil {
		return
	}
	v := s.arg.v[r]
	switch s.p.Agg.State {
	case sqlfn.AggregateSum:
		s.sum = s.sum.Add(vector.Int128Of(v))
	case sqlfn.AggregateLeast, sqlfn.AggregateGreatest:
		key := v
		if len(s.ranks) > 0 {
			key = int64(s.ranks[v])
		}
		if s.n == 1 || key < s.bestKey == (s.p.Agg.State == sqlfn.AggregateLeast) && key != s.bestKey {
			s.best, s.bestKey = v, key
		}
	case sqlfn.AggregateFold:
		s.best = s.p.Agg.Fold(s.best, v)
	}
}

// put gives rows the value of the frame.
func (s *windowState) put(out *relationColumn, rows []uint32) error {
	v, null := s.best, s.n == 0
	switch {
	case s.p.Agg.State == sqlfn.AggregateCount:
		v, null = s.n, false
	case null:
		v = 0
	case s.p.Agg.State == sqlfn.AggregateSum:
		sum := vector.Decimal{Unscaled: s.sum}
		if s.arg.t.Kind == vector.Numeric {
			sum.Scale = s.arg.t.Scale
		}
		if s.p.Agg == plan.Avg {
			q, ok := vector.Div(sum, vector.Decimal{Unscaled: vector.Int128Of(s.n)})
			if !ok {
				return errNumeric
			}
			v = out.decimalCode(q)
			break
		}
		var fits bool
		if v, fits = s.sum.Int64(); !fits {
			return errNumeric
		}
	}
	for _, r := range rows {
		out.v[r] = v
	}
	if null {
		if out.nulls == nil {
			out.nulls = make([]uint8, len(out.v))
		}
		for _, r := range rows {
			out.nulls[r] = 1
		}
	}
	return nil
}
