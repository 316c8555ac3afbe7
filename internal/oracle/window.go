package oracle

import (
	"slices"

	"pgaccel/plan"
)

// windowRow is a row of a window's input with what the window needs of it.
type windowRow struct {
	result
	arg      argument // of an aggregate
	of       value    // Window.Arg
	fallback value    // Window.Default
	by       value    // Window.Offset
}

// window calls f for each row of a window's input, with the window's value.
func (r *run) window(w *plan.Window, f func() error) error {
	y := plan.YieldsOf(w.Input)
	var names []string // of partitions, as they come
	partitions := map[string][]windowRow{}
	err := r.rows(w.Input, func() (err error) {
		x := windowRow{result: result{row: r.take(y)}}
		name, err := r.groupName(w.Partition)
		if err != nil {
			return err
		}
		for _, o := range w.Order {
			v, err := r.eval(o.Expr)
			if err != nil {
				return err
			}
			x.order = append(x.order, v)
		}
		if w.Func == plan.WindowAggregate {
			if x.arg, err = r.argumentOf(w.Agg); err != nil {
				return err
			}
		}
		x.of, x.fallback, x.by = null, null, value{i: 1}
		for i, to := range []*value{&x.of, &x.fallback, &x.by} {
			if e := []plan.Expr{w.Arg, w.Default, w.Offset}[i]; e != nil {
				if *to, err = r.eval(e); err != nil {
					return err
				}
			}
		}
		if partitions[name] == nil {
			names = append(names, name)
		}
		partitions[name] = append(partitions[name], x)
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		rows := partitions[name]
		values, err := r.windowValues(w, rows)
		if err != nil {
			return err
		}
		for i, x := range rows {
			r.put(y, x.row)
			r.current.outputs[w.Number] = values[i : i+1]
			if err := f(); err != nil {
				return err
			}
		}
	}
	return nil
}

// windowValues sorts a partition and computes the value for each row.
func (r *run) windowValues(w *plan.Window, rows []windowRow) ([]value, error) {
	var failure error
	compare := func(a, b windowRow) int {
		c, err := r.compareRows(w.Order, a.result, b.result)
		if err != nil {
			failure = err
		}
		return c
	}
	slices.SortStableFunc(rows, compare)
	peers := make([]peerGroup, len(rows)) // by row
	for i := 0; i < len(rows); {
		var p peerGroup
		if i > 0 {
			p.number = peers[i-1].number + 1
		}
		p.from, p.to = i, i+1
		for p.to < len(rows) && compare(rows[i], rows[p.to]) == 0 {
			p.to++
		}
		for ; i < p.to; i++ {
			peers[i] = p
		}
	}
	if failure != nil {
		return nil, failure
	}
	f, err := r.frameOf(w, rows, peers)
	if err != nil {
		return nil, err
	}
	values := make([]value, len(rows))
	for k := range rows {
		p := peers[k]
		switch w.Func {
		case plan.RowNumber:
			values[k] = value{i: int64(k + 1)}
		case plan.Rank:
			values[k] = value{i: int64(p.from + 1)}
		case plan.DenseRank:
			values[k] = value{i: int64(p.number + 1)}
		case plan.PercentRank:
			values[k] = ofFloat(0)
			if len(rows) > 1 {
				values[k] = ofFloat(float64(p.from) / float64(len(rows)-1))
			}
		case plan.CumeDist:
			values[k] = ofFloat(float64(p.to) / float64(len(rows)))
		case plan.Ntile:
			values[k] = null
			first := slices.IndexFunc(rows, func(x windowRow) bool { return !x.by.null })
			if first >= 0 && first <= k {
				if rows[first].by.i < 1 {
					return nil, failed("ntile() of no parts")
				}
				values[k] = value{i: ntile(k-first, len(rows), rows[first].by.i)}
			}
		case plan.Lag, plan.Lead:
			at := int64(k) + rows[k].by.i
			if w.Func == plan.Lag {
				at = int64(k) - rows[k].by.i
			}
			switch {
			case rows[k].by.null:
				values[k] = null
			case at >= 0 && at < int64(len(rows)):
				values[k] = rows[at].of
			default:
				values[k] = rows[k].fallback
			}
		default:
			if values[k], err = r.framed(w, f, rows, peers, k); err != nil {
				return nil, err
			}
		}
		byRow := !w.Func.Framed() && w.Func != plan.Rank && w.Func != plan.DenseRank && w.Func != plan.PercentRank && w.Func != plan.CumeDist || w.Func.Framed() && w.Frame.Cuts()
		if byRow && !rows[p.from].row.same(rows[k].row) {
			return nil, forward(plan.ReasonTies, "")
		}
	}
	return values, nil
}

// framed is the value of row k over its frame.
func (r *run) framed(w *plan.Window, f *frame, rows []windowRow, peers []peerGroup, k int) (value, error) {
	members, err := f.of(k)
	if err != nil {
		return null, err
	}
	if w.Func == plan.WindowAggregate {
		var a acc
		for _, i := range members {
			a.add(rows[i].arg)
		}
		return r.windowAggregate(w.Agg, a, func() error {
			for i, p := range peers {
				if i == p.from && !peersAlike(w.Agg, rows[p.from:p.to]) {
					return forward(plan.ReasonTies, "")
				}
			}
			return nil
		})
	}
	at := 0
	switch w.Func {
	case plan.LastValue:
		at = len(members) - 1
	case plan.NthValue:
		if rows[k].by.null {
			return null, nil
		}
		if rows[k].by.i < 1 {
			return null, failed("argument of nth_value must be greater than zero")
		}
		at = int(min(rows[k].by.i, int64(len(members))+1)) - 1
	}
	if at < 0 || at >= len(members) {
		return null, nil
	}
	p := peers[members[at]]
	for _, x := range rows[p.from:p.to] {
		if !sameValue(x.of, rows[members[at]].of) {
			return null, forward(plan.ReasonTies, "")
		}
	}
	return rows[members[at]].of, nil
}

// peersAlike reports whether an aggregate has the same value whatever the order of peers: they give it the
// same, or, over sorted rows, those that count do.
func peersAlike(a plan.AggregateCall, peers []windowRow) bool {
	if a.Func.OverSorted() {
		peers = slices.DeleteFunc(slices.Clone(peers), func(x windowRow) bool { return x.arg.skip || x.arg.v.null && a.Func != plan.ArrayAgg })
	}
	return !slices.ContainsFunc(peers, func(x windowRow) bool {
		return x.arg.skip != peers[0].arg.skip || !sameValue(x.arg.v, peers[0].arg.v)
	})
}

// ntile is in which of so many parts of n rows row k is: the first ones have one more where they
// cannot be alike.
func ntile(k, n int, parts int64) int64 {
	for part := int64(1); ; part++ {
		size := n / int(parts)
		if part <= int64(n%int(parts)) {
			size++
		}
		if k < size {
			return part
		}
		k -= size
	}
}
