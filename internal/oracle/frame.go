package oracle

import (
	"math"
	"math/big"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// peerGroup is the rows from..to of a partition, which the order does not tell apart, and their number
// among those of the partition.
type peerGroup struct{ number, from, to int }

// frame says which rows of a partition are in the frame of one.
type frame struct {
	plan.Frame
	w          *plan.Window
	rows       []windowRow
	peers      []peerGroup
	start, end value // offsets
	less       Less
}

func (r *run) frameOf(w *plan.Window, rows []windowRow, peers []peerGroup) (*frame, error) {
	f := &frame{Frame: w.Frame, w: w, rows: rows, peers: peers, less: r.less}
	for i, to := range []*value{&f.start, &f.end} {
		e := []plan.Expr{w.Frame.Start.Offset, w.Frame.End.Offset}[i]
		if e == nil {
			continue
		}
		v, err := r.eval(e)
		if err != nil {
			return nil, err
		}
		x := big.NewInt(v.i)
		if v.num != nil {
			x = v.num
		}
		if v.null || x.Sign() < 0 && !e.Type().Kind.IsFloat() || e.Type().Kind.IsFloat() && !(v.float() >= 0) {
			return nil, failed("frame offset must not be null or negative")
		}
		*to = v
	}
	return f, nil
}

// of returns the rows in the frame of row k, in their order.
func (f *frame) of(k int) (members []int, err error) {
	for i := range f.rows {
		from, err := f.within(f.Start, f.start, i, k, true)
		if err != nil {
			return nil, err
		}
		to, err := f.within(f.End, f.end, i, k, false)
		if err != nil {
			return nil, err
		}
		peer := f.peers[i] == f.peers[k]
		excluded := f.Exclude == plan.ExcludeCurrentRow && i == k || f.Exclude == plan.ExcludeGroup && peer || f.Exclude == plan.ExcludeTies && peer && i != k
		if from && to && !excluded {
			members = append(members, i)
		}
	}
	return members, nil
}

// within reports whether row i is not before the start of the frame of row k, or not behind its end.
func (f *frame) within(b plan.Bound, by value, i, k int, start bool) (bool, error) {
	if b.Kind == plan.UnboundedPreceding || b.Kind == plan.UnboundedFollowing {
		return true, nil
	}
	if f.Mode == plan.Range && b.Kind != plan.CurrentRow {
		return f.inRange(b, by, i, k, start)
	}
	at, row := i, k
	if f.Mode != plan.Rows {
		at, row = f.peers[i].number, f.peers[k].number
	}
	offset := int(min(by.i, math.MaxInt32))
	switch b.Kind {
	case plan.Preceding:
		row -= offset
	case plan.Following:
		row += offset
	}
	return start && at >= row || !start && at <= row, nil
}

// inRange is within for an offset of RANGE.
func (f *frame) inRange(b plan.Bound, by value, i, k int, start bool) (bool, error) {
	val, base := f.rows[i].order[0], f.rows[k].order[0]
	o := f.w.Order[0]
	t := o.Expr.Type()
	switch {
	case val.null && base.null:
		return true, nil
	case val.null: // it comes behind the start where nulls come last, and before the end where first
		return start != o.NullsFirst, nil
	case base.null:
		return start == o.NullsFirst, nil
	}
	before := b.Kind == plan.Preceding != o.Desc
	var c int
	switch {
	case t.Kind.IsFloat():
		v, sum := val.float(), base.float()+by.float()
		if before {
			sum = base.float() - by.float()
		}
		switch {
		case math.IsNaN(v) || math.IsNaN(base.float()):
			c = floatOrder(v, base.float())
		case math.IsNaN(sum): // infinity less infinity
		default:
			c = floatOrder(v, sum)
		}
	case t.Kind.IsInt() || t.Kind == vector.Numeric:
		rat := func(v value) *big.Rat {
			if v.num == nil {
				return new(big.Rat).SetInt64(v.i)
			}
			return new(big.Rat).SetFrac(v.num, vector.BigPow10(int(v.scale)))
		}
		sum := new(big.Rat).Add(rat(base), rat(by))
		if before {
			sum.Sub(rat(base), rat(by))
		}
		c = rat(val).Cmp(sum)
	default:
		sum, ok := b.From(t.Kind, plan.Moment(t.Kind, base.i), before)
		if !ok {
			return false, failed("a window frame beyond the years")
		}
		c = big.NewInt(plan.Moment(t.Kind, val.i)).Cmp(big.NewInt(sum))
	}
	if start == o.Desc { // the other way
		c = -c
	}
	return c >= 0, nil
}

func floatOrder(a, b float64) int {
	switch {
	case math.IsNaN(a) && math.IsNaN(b), a == b:
		return 0
	case math.IsNaN(a):
		return 1
	case math.IsNaN(b), a < b:
		return -1
	}
	return 1
}

// windowAggregate is finalise of the values of a frame, in their order. Where that matters ordered
// says whether it is known.
func (r *run) windowAggregate(a plan.AggregateCall, c acc, ordered func() error) (value, error) {
	if a.Arg == nil || len(c.values) == 0 {
		return r.finalise(a, c)
	}
	if a.Func.OverSorted() {
		if err := ordered(); err != nil {
			return null, err
		}
		return r.finalise(a, c)
	}
	extreme := a.Func.State == sqlfn.AggregateLeast || a.Func.State == sqlfn.AggregateGreatest
	t := a.Arg.Type()
	switch {
	case extreme && (t.Kind.IsFloat() || t.Varying()):
		best := c.values[0]
		for _, v := range c.values[1:] {
			n, err := compare(t, t.Collation, v, best, r.less)
			if err != nil {
				return null, err
			}
			if n == 0 || n < 0 == (a.Func.State == sqlfn.AggregateLeast) {
				best = v
			}
		}
		return best, nil
	case !t.Kind.IsFloat() || a.Func.State != sqlfn.AggregateSum && a.Func.State != sqlfn.AggregateMoments:
		return r.finalise(a, c)
	}
	if err := ordered(); err != nil {
		return null, err
	}
	sum, sxx := 0.0, 0.0
	for i, x := range c.values {
		v, n, before := x.float(), float64(i+1), sum
		sum += v
		if i == 0 && a.Func == plan.Sum {
			sum = v // it may be -0
		}
		if i == 0 || a.Func == plan.Sum {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				sxx = math.NaN()
			}
		} else {
			d := float64(v*n) - sum
			sxx += float64(d*d) / float64(n*(n-1))
		}
		if i > 0 && (math.IsInf(sum, 0) || a.Func != plan.Sum && math.IsInf(sxx, 0)) {
			if !math.IsInf(before, 0) && !math.IsInf(v, 0) {
				return null, failed("value out of range: overflow")
			}
			sxx = math.NaN()
		}
	}
	n := float64(len(c.values))
	switch {
	case a.Func == plan.Avg:
		sum /= n
	case a.Func.State == sqlfn.AggregateMoments:
		if a.Func.Sample && n == 1 {
			return null, nil
		}
		if sum = sxx / n; a.Func.Sample {
			sum = sxx / (n - 1)
		}
		if a.Func.Root {
			sum = math.Sqrt(sum)
		}
		if math.IsNaN(sum) {
			return value{i: vector.NaNBits}, nil
		}
	}
	return ofFloat(sum), nil
}
