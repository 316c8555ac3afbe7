package olap

import (
	"cmp"
	"math"
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
	done []*plan.WindowColumn // those that have been computed
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
	if err := w.x.rankByServer(keys); err != nil {
		return err
	}
	within, err := ordering(keys, by)
	if err != nil {
		return err
	}
	apart, err := w.partitions(p.Partition)
	if err != nil {
		return err
	}
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
	w.done = append(w.done, p)
	if err := w.x.take(out.held); err != nil {
		return err
	}
	switch {
	case out.varying():
		out.dict = decimalDict(out.decimals, out.t)
	case p.Arg >= 0 && out.t.Kind.IsText(): // its values are some of the argument's
		out.dict = w.cols[p.Arg].dict
	}
	return nil
}

// partitions returns an order of rows in which those of one partition are equal.
func (w *windower) partitions(columns []int) (func(a, b uint32) int, error) {
	ranks := make([][]int32, len(columns)) // of numerics of varying scale, some of which are equal
	for k, i := range columns {
		c := &w.cols[i]
		if !c.varying() || c.dict == nil {
			continue
		}
		var err error
		if ranks[k], err = c.dict.rank(c.t.Collation); err != nil {
			return nil, err
		}
	}
	return func(a, b uint32) int {
		for k, i := range columns {
			c := &w.cols[i]
			if c.nulls != nil && c.nulls[a]|c.nulls[b] != 0 {
				if r := cmp.Compare(c.nulls[a], c.nulls[b]); r != 0 {
					return r
				}
				continue
			}
			x, y := c.v[a], c.v[b]
			switch {
			case c.t.Kind.IsFloat():
				x, y = vector.FloatKey(x), vector.FloatKey(y)
			case ranks[k] != nil:
				x, y = int64(ranks[k][x]), int64(ranks[k][y])
			}
			if r := cmp.Compare(x, y); r != 0 {
				return r
			}
		}
		return 0
	}, nil
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
		// What the value depends on beside how many rows there are: the order of these, or which of
		// them is the first or the last.
		byRow := p.Func == plan.RowNumber || p.Func == plan.Ntile || p.Func == plan.Lag || p.Func == plan.WindowAggregate && p.Frame == plan.ToRow
		byEnd := p.Func == plan.FirstValue && from == 0 || p.Func == plan.LastValue && (p.Frame == plan.ToPeers || p.Frame == plan.ToEnd && to == len(rows))
		if to-from > 1 && (byRow && !w.allEqual(p, rows[from:to]) || byEnd && !w.cols[p.Arg].allEqual(rows[from:to])) {
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
			case plan.PercentRank:
				if len(rows) > 1 {
					out.v[rows[i]] = int64(math.Float64bits(float64(from) / float64(len(rows)-1)))
				}
				continue
			case plan.CumeDist:
				out.v[rows[i]] = int64(math.Float64bits(float64(to) / float64(len(rows))))
				continue
			case plan.Ntile:
				out.v[rows[i]] = ntile(int64(i), int64(len(rows)), p.Offset)
				continue
			case plan.Lag:
				if at := int64(i) - p.Offset; at >= 0 && at < int64(len(rows)) {
					out.copyValue(rows[i], &w.cols[p.Arg], rows[at])
				} else if p.Default >= 0 {
					out.copyValue(rows[i], &w.cols[p.Default], rows[i])
				} else {
					out.setNull(rows[i])
				}
				continue
			case plan.FirstValue:
				out.copyValue(rows[i], &w.cols[p.Arg], rows[0])
				continue
			case plan.LastValue:
				last := to - 1
				switch p.Frame {
				case plan.ToRow:
					last = i
				case plan.ToEnd:
					last = len(rows) - 1
				}
				out.copyValue(rows[i], &w.cols[p.Arg], rows[last])
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

// ntile is in which of so many parts of n rows row i is: n%parts of them, the first ones, have one
// row more than the others.
func ntile(i, n, parts int64) int64 {
	size, longer := n/parts, n%parts
	if i < longer*(size+1) {
		return i/(size+1) + 1
	}
	return (i-longer)/size + 1
}

// allEqual reports whether rows have the same values in all columns, so that their order in p makes no
// difference. It does where another window's order has made a difference between them, and p's is not
// the same: which value of the one a row with a value of the other has is the server's choice.
func (w *windower) allEqual(p *plan.WindowColumn, rows []uint32) bool {
	for i := range w.cols {
		if c := &w.cols[i]; !c.window && !c.allEqual(rows) {
			return false
		}
	}
	for _, q := range w.done {
		if (!slices.Equal(p.Partition, q.Partition) || !slices.Equal(p.Order, q.Order)) && !w.cols[q.To].allEqual(rows) {
			return false
		}
	}
	return true
}

// allEqual reports whether rows have the same value.
func (c *relationColumn) allEqual(rows []uint32) bool {
	for _, r := range rows[1:] {
		if c.null(r) != c.null(rows[0]) || !c.null(r) && c.v[r] != c.v[rows[0]] {
			return false
		}
	}
	return true
}

// copyValue gives row at the value that from, a column of the same type, has in row r.
func (c *relationColumn) copyValue(at uint32, from *relationColumn, r uint32) {
	switch {
	case from.null(r):
		c.setNull(at)
	case c.varying():
		c.v[at] = c.decimalCode(from.decimals[from.v[r]])
	default:
		c.v[at] = from.v[r]
	}
}

func (c *relationColumn) setNull(r uint32) {
	if c.nulls == nil {
		c.nulls = make([]uint8, len(c.v))
	}
	c.nulls[r] = 1
}

// windowState is an aggregate over the frame so far.
type windowState struct {
	p           *plan.WindowColumn
	arg, filter *relationColumn // nil for none
	ranks       []int32         // of text
	t           vector.Type
	n           int64 // values
	sum         vector.Int128
	total       vector.Decimal // the sum of numerics of varying scale
	wide        bool           // it has more than 127 bits
	best        int64          // of the least or the greatest, or what is folded
	bestKey     int64          // by which that is compared
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
			if least := s.p.Agg.State == sqlfn.AggregateLeast || s.p.Agg.State == sqlfn.AggregateGreatest; err == nil && least && s.arg.varying() {
				err = s.arg.dict.unlike()
			}
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
		if s.arg.varying() {
			total, ok := s.total.Add(s.arg.decimals[v])
			s.total, s.wide = total, s.wide || !ok
			return
		}
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
	case s.p.Agg.State != sqlfn.AggregateSum && s.arg.varying():
		v = out.decimalCode(s.arg.decimals[v])
	case s.p.Agg.State == sqlfn.AggregateSum:
		sum := vector.Decimal{Unscaled: s.sum}
		switch {
		case s.wide:
			return errNumeric
		case s.arg.varying():
			sum = s.total
		case s.arg.t.Kind == vector.Numeric:
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
		if s.arg.varying() {
			v = out.decimalCode(sum)
			break
		}
		var fits bool
		if v, fits = s.sum.Int64(); !fits {
			return errNumeric
		}
	}
	for _, r := range rows {
		if out.v[r] = v; null {
			out.setNull(r)
		}
	}
	return nil
}
