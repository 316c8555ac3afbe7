package olap

import (
	"math"
	"slices"

	"pgaccel/plan"
)

// windower computes the windows of a relation over its rows, which have all been gathered: they are
// put in the order of a window's partitions and keys, and one pass gives each row its value.
type windower struct {
	x     *execution
	cols  []relationColumn
	n     int
	done  []*plan.WindowColumn // those that have been computed
	order *windowOrder         // of the last one
}

// windowOrder is all rows in the order of a window: one partition after the other.
type windowOrder struct {
	partition []int
	order     []plan.ColumnOrder
	parts     []windowPart
}

// column computes a window.
func (w *windower) column(p *plan.WindowColumn) error {
	// For each row its place in the order, its group's, and the value.
	if err := w.x.take(int64(w.n) * 16); err != nil {
		return err
	}
	f, err := w.frames(p)
	if err != nil {
		return err
	}
	if o := w.order; o == nil || !slices.Equal(p.Partition, o.partition) || !slices.Equal(p.Order, o.order) {
		if w.order, err = w.ordered(p); err != nil {
			return err
		}
	}
	out := &w.cols[p.To]
	out.v = make([]int64, w.n)
	c := &windowColumn{windower: w, p: p, out: out, frames: f}
	if p.Func == plan.WindowAggregate {
		if c.agg, err = newWindowAggregate(w, p, out); err != nil {
			return err
		}
		defer c.agg.close()
	}
	makes := p.Agg == plan.StringAgg || p.Agg == plan.ArrayAgg // values of its own
	if makes {
		out.codes = &stringTable{kind: out.t.Kind}
	} else if p.Arg >= 0 && out.t.Kind.IsString() {
		if out.dict = w.cols[p.Arg].dict; p.Default >= 0 { // values of two dictionaries
			out.codes = &stringTable{kind: out.t.Kind}
		}
	}
	for i := range w.order.parts {
		if err := w.x.ctx.Err(); err != nil {
			return err
		}
		if err := c.partition(&w.order.parts[i]); err != nil {
			return err
		}
	}
	w.done = append(w.done, p)
	if !makes { // values that were counted one by one
		if err := w.x.take(out.held); err != nil {
			return err
		}
	}
	switch {
	case out.varying():
		out.dict = decimalDict(out.decimals, out.t)
	case out.codes != nil:
		out.dict = listDict(out.codes.list, out.t)
	}
	return nil
}

// sorted are all rows in the order of partitions, and of keys within each.
type sorted struct {
	rows  []uint32
	order *rowOrder
	apart func(a, b uint32) int // 0: of one partition
}

// sorted sorts the rows; those that tie stay as they are.
func (w *windower) sorted(partition []int, order []plan.ColumnOrder) (*sorted, error) {
	var keys []rcol
	var by []plan.Order
	for _, c := range partition {
		k, err := w.cols[c].identity()
		if err != nil {
			return nil, err
		}
		keys, by = append(keys, k), append(by, plan.Order{})
	}
	s := &sorted{rows: make([]uint32, w.n)}
	var err error
	if s.apart, err = ordering(keys, by); err != nil {
		return nil, err
	}
	for _, o := range order {
		keys, by = append(keys, w.cols[o.Column].result()), append(by, plan.Order{Desc: o.Desc, NullsFirst: o.NullsFirst})
	}
	if s.order, err = w.x.orderBy(keys, by, w.n); err != nil {
		return nil, err
	}
	for i := range s.rows {
		s.rows[i] = uint32(i)
	}
	s.order.sort(s.rows)
	return s, w.x.ctx.Err()
}

// ordered sorts the rows for a window.
func (w *windower) ordered(p *plan.WindowColumn) (*windowOrder, error) {
	s, err := w.sorted(p.Partition, p.Order)
	if err != nil {
		return nil, err
	}
	rows := s.rows
	o := &windowOrder{partition: p.Partition, order: p.Order}
	var starts []int32 // of all partitions
	for from := 0; from < w.n; {
		first := len(starts)
		starts = append(starts, 0)
		to := from + 1
		for ; to < w.n; to++ {
			if s.order.rows(rows[to-1], rows[to]) == 0 {
				continue
			}
			if s.apart(rows[from], rows[to]) != 0 {
				break
			}
			starts = append(starts, int32(to-from))
		}
		starts = append(starts, int32(to-from))
		o.parts = append(o.parts, windowPart{rows: rows[from:to:to], starts: starts[first:len(starts):len(starts)]})
		from = to
	}
	return o, nil
}

// windowColumn is a window that is being computed.
type windowColumn struct {
	*windower
	p      *plan.WindowColumn
	out    *relationColumn
	frames *frames
	agg    *windowAggregate
	// alike says of each group of the partition whether its rows have the same argument: 1, or -1.
	alike []int8
}

// partition computes the values of one partition's rows.
func (c *windowColumn) partition(part *windowPart) error {
	if err := c.checkTies(part); err != nil {
		return err
	}
	switch {
	case c.p.Func == plan.Ntile:
		return c.tiles(part)
	case c.p.Func == plan.Lag || c.p.Func == plan.Lead:
		c.neighbours(part)
		return nil
	case c.agg != nil && c.p.Agg.OverSorted():
		return c.agg.overSorted(part)
	case !c.p.Func.Framed():
		c.ranks(part)
		return nil
	}
	c.frames.begin(part)
	if c.agg != nil {
		c.agg.begin(part.rows)
	} else {
		c.alike = append(c.alike[:0], make([]int8, len(part.starts))...)
	}
	for {
		more, err := c.frames.next()
		if err != nil || !more {
			return err
		}
		if c.agg != nil {
			err = c.agg.put(part.rows[c.frames.i], c.frames.spans())
		} else {
			err = c.place(part)
		}
		if err != nil {
			return err
		}
	}
}

// checkTies forwards where a value depends on the order of rows that are peers.
func (c *windowColumn) checkTies(part *windowPart) error {
	p := c.p
	byRow := p.Func == plan.RowNumber || p.Func == plan.Ntile || p.Func == plan.Lag || p.Func == plan.Lead || p.Func.Framed() && p.Frame.Cuts()
	byOrder := c.agg != nil && c.agg.ordered
	if !byRow && !byOrder {
		return nil
	}
	for g := range len(part.starts) - 1 {
		peers := part.rows[part.starts[g]:part.starts[g+1]]
		switch {
		case len(peers) == 1:
		case byRow && !c.allEqual(p, peers), byOrder && !c.agg.allEqual(peers):
			return forward(plan.ReasonTies, "rows that the order of a window leaves equal")
		case byRow && p.Func >= plan.FirstValue && p.Frame.Exclude == plan.ExcludeTies:
			// WinGetFuncArgInFrame loses its way where peers of the row are in its frame, and it is not.
			return forward(plan.ReasonTies, "a place in ROWS EXCLUDE TIES of rows with peers")
		}
	}
	return nil
}

// ranks numbers the rows.
func (c *windowColumn) ranks(part *windowPart) {
	n := len(part.rows)
	for g := range len(part.starts) - 1 {
		from, to := int(part.starts[g]), int(part.starts[g+1])
		for i := from; i < to; i++ {
			v := int64(i) + 1
			switch c.p.Func {
			case plan.Rank:
				v = int64(from) + 1
			case plan.DenseRank:
				v = int64(g) + 1
			case plan.PercentRank:
				if v = 0; n > 1 {
					v = int64(math.Float64bits(float64(from) / float64(n-1)))
				}
			case plan.CumeDist:
				v = int64(math.Float64bits(float64(to) / float64(n)))
			}
			c.out.v[part.rows[i]] = v
		}
	}
}

// offset is the argument of type integer for a row.
func (c *windowColumn) offset(r uint32) (n int64, null bool) {
	if c.p.Offset < 0 {
		return 1, false
	}
	o := &c.cols[c.p.Offset]
	return o.v[r], o.null(r)
}

// tiles divides the rows from the first one on whose argument is not null, by that.
func (c *windowColumn) tiles(part *windowPart) error {
	first, parts := -1, int64(0)
	for i, r := range part.rows {
		if first < 0 {
			n, null := c.offset(r)
			if null {
				c.out.setNull(r)
				continue
			}
			if n < 1 {
				return failed("ntile() of no parts")
			}
			first, parts = i, n
		}
		c.out.v[r] = ntile(int64(i-first), int64(len(part.rows)), parts)
	}
	return nil
}

// neighbours gives each row the value of one before or behind.
func (c *windowColumn) neighbours(part *windowPart) {
	for i, r := range part.rows {
		by, null := c.offset(r)
		if c.p.Func == plan.Lag {
			by = -by
		}
		at := int64(i) + by
		switch {
		case null:
			c.out.setNull(r)
		case at >= 0 && at < int64(len(part.rows)):
			c.out.copyValue(r, &c.cols[c.p.Arg], part.rows[at])
		case c.p.Default >= 0:
			c.out.copyValue(r, &c.cols[c.p.Default], r)
		default:
			c.out.setNull(r)
		}
	}
}

// place gives the current row the value of a row of its frame.
func (c *windowColumn) place(part *windowPart) error {
	r, spans := part.rows[c.frames.i], c.frames.spans()
	k := int64(1) // which one
	switch n := 0; c.p.Func {
	case plan.LastValue:
		for _, s := range spans {
			n += s.to - s.from
		}
		k = int64(n)
	case plan.NthValue:
		var null bool
		if k, null = c.offset(r); !null && k < 1 {
			return failed("argument of nth_value must be greater than zero")
		} else if null {
			k = 0
		}
	}
	for _, s := range spans {
		if size := int64(s.to - s.from); k > size {
			k -= size
			continue
		} else if k < 1 {
			break
		}
		at := s.from + int(k) - 1
		g, _ := slices.BinarySearch(part.starts, int32(at)+1)
		g--
		if c.alike[g] == 0 {
			c.alike[g] = -1
			if c.cols[c.p.Arg].allEqual(part.rows[part.starts[g]:part.starts[g+1]]) {
				c.alike[g] = 1
			}
		}
		if c.alike[g] < 0 {
			return forward(plan.ReasonTies, "rows that the order of a window leaves equal")
		}
		c.out.copyValue(r, &c.cols[c.p.Arg], part.rows[at])
		return nil
	}
	c.out.setNull(r)
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
	case c.codes != nil:
		c.v[at] = c.code(from.dict.value(from.v[r]).Str)
	default:
		c.v[at] = from.v[r]
	}
}

func (c *relationColumn) null(r uint32) bool { return c.nulls != nil && c.nulls[r] != 0 }

func (c *relationColumn) setNull(r uint32) {
	if c.nulls == nil {
		c.nulls = make([]uint8, len(c.v))
	}
	c.nulls[r] = 1
}
