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
		x.of, x.fallback = null, null
		if w.Arg != nil {
			if x.of, err = r.eval(w.Arg); err != nil {
				return err
			}
		}
		if w.Default != nil {
			if x.fallback, err = r.eval(w.Default); err != nil {
				return err
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
	if failure != nil {
		return nil, failure
	}
	values := make([]value, len(rows))
	rank := int64(0)
	for i := 0; i < len(rows); {
		last := i + 1 // behind the peers of row i
		for last < len(rows) && compare(rows[i], rows[last]) == 0 {
			last++
		}
		rank++
		for k := i; k < last; k++ {
			end := map[plan.Frame]int{plan.ToPeers: last, plan.ToRow: k + 1, plan.ToEnd: len(rows)}[w.Frame]
			switch w.Func {
			case plan.RowNumber:
				values[k] = value{i: int64(k + 1)}
			case plan.Rank:
				values[k] = value{i: int64(i + 1)}
			case plan.DenseRank:
				values[k] = value{i: rank}
			case plan.PercentRank:
				values[k] = ofFloat(0)
				if len(rows) > 1 {
					values[k] = ofFloat(float64(i) / float64(len(rows)-1))
				}
			case plan.CumeDist:
				values[k] = ofFloat(float64(last) / float64(len(rows)))
			case plan.Ntile:
				values[k] = value{i: ntile(k, len(rows), w.Offset)}
			case plan.Lag:
				values[k] = rows[k].fallback
				if at := int64(k) - w.Offset; at >= 0 && at < int64(len(rows)) {
					values[k] = rows[at].of
				}
			case plan.FirstValue:
				values[k] = rows[0].of
			case plan.LastValue:
				values[k] = rows[end-1].of
			default:
				var a acc
				for _, x := range rows[:end] {
					a.add(x.arg)
				}
				var err error
				if values[k], err = r.finalise(w.Agg, a); err != nil {
					return nil, err
				}
			}
			// Which of the peers comes first is not known.
			byEnd := w.Func == plan.FirstValue && i == 0 || w.Func == plan.LastValue && (w.Frame == plan.ToPeers || w.Frame == plan.ToEnd && last == len(rows))
			differs := !sameValue(values[i], values[k]) && w.Func != plan.LastValue || w.Func == plan.Lag || byEnd && !sameValue(rows[i].of, rows[k].of)
			if differs && !rows[i].row.same(rows[k].row) {
				return nil, forward(plan.ReasonTies, "")
			}
		}
		i = last
	}
	return values, nil
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
