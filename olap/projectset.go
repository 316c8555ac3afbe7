package olap

import (
	"pgaccel/plan"
	"pgaccel/vector"
)

// expandedBytes is about what a value takes until it is in a column: a string's header, a null.
const expandedBytes = 24

// projectSet computes the columns of what functions return for each row of the relation's block: the functions', the
// number of the row, and what is kept of the block's row.
func (x *execution) projectSet(p *plan.Relation, columns []relationColumn) (int, error) {
	r, rows, err := x.inner(p.Blocks[0])
	if err != nil {
		return 0, err
	}
	calls, ordinality := p.ProjectSet.Calls, p.ProjectSet.Ordinality()
	out := &result{output: make([]rcol, ordinality+1)}
	for i := range out.output {
		out.output[i].t = columns[i].t
	}
	number := &out.output[ordinality]
	var from []uint32 // the block's row that a row is of
	n := r.n
	if rows != nil {
		n = len(rows)
	}
	counts := make([]int, len(calls))
	for k := range n {
		i := uint32(k)
		if rows != nil {
			i = rows[k]
		}
		most, err := expand(calls, r, i, out.output, counts)
		if err != nil {
			return 0, forward(plan.ReasonEvaluation, err.Error())
		}
		for j := range most {
			number.v = append(number.v, int64(j+1))
			from = append(from, i)
		}
		out.n += most
		if err := x.take(int64(most) * int64(ordinality+1) * expandedBytes); err != nil {
			return 0, err
		}
		if k%tileRows == 0 {
			if err := x.ctx.Err(); err != nil {
				return 0, err
			}
		}
	}
	own := make([]*relationColumn, ordinality+1)
	for i := range own {
		own[i] = &columns[i]
	}
	if err := x.gather(own, out, nil, out.n, true); err != nil {
		return 0, err
	}
	var kept []*relationColumn
	for i := ordinality + 1; i < len(columns); i++ {
		kept = append(kept, &columns[i])
	}
	if from == nil {
		from = []uint32{} // not all
	}
	return out.n, x.gather(kept, &result{n: r.n, output: r.output[len(calls):]}, from, out.n, true)
}

// expand appends the rows that functions return for row i of r to columns, nulls to those of a function that returns
// less, and returns how many these are. counts is room for a number of each.
func expand(calls []plan.SetCall, r *result, i uint32, columns []rcol, counts []int) (most int, err error) {
	to := columns
	for c, call := range calls {
		width := len(call.Func.Columns)
		own := to[:width]
		to = to[width:]
		counts[c] = 0
		if v := r.output[c].at(i); !v.Null {
			err = call.Func.Expand(v.Str, func(values []vector.Value) {
				for c := range values {
					own[c].push(values[c])
				}
				counts[c]++
			})
			if err != nil {
				return 0, err
			}
		}
		most = max(most, counts[c])
	}
	to = columns
	for c, call := range calls {
		for range most - counts[c] {
			for w := range call.Func.Columns {
				to[w].push(vector.NullValue)
			}
		}
		to = to[len(call.Func.Columns):]
	}
	return most, nil
}
