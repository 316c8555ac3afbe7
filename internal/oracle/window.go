package oracle

import (
	"fmt"
	"slices"

	"pgaccel/plan"
)

// windowRow is a row of a window's input with what the window needs of it.
type windowRow struct {
	result
	arg argument
}

// window calls f for each row of a window's input, with the window's value.
func (r *run) window(w *plan.Window, f func() error) error {
	y := plan.YieldsOf(w.Input)
	var names []string // of partitions, as they come
	partitions := map[string][]windowRow{}
	err := r.rows(w.Input, func() (err error) {
		x := windowRow{result: result{row: r.take(y)}}
		name := ""
		for _, e := range w.Partition {
			v, err := r.eval(e)
			if err != nil {
				return err
			}
			name += fmt.Sprintf("%t %q ", v.null, equalName(e.Type(), v))
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
			if !sameValue(values[i], values[k]) && !rows[i].row.same(rows[k].row) {
				return nil, forward(plan.ReasonTies, "")
			}
		}
		i = last
	}
	return values, nil
}
