package olap

import (
	"pgaccel/plan"
	"pgaccel/vector"
)

// expandedBytes is about what a value takes until it is in a column: a string's header, a null.
const expandedBytes = 24

// projectSet computes the columns of what a function returns for each row of the relation's block: the function's,
// the number of its row, and what is kept of the block's row.
func (x *execution) projectSet(p *plan.Relation, columns []relationColumn) (int, error) {
	r, rows, err := x.inner(p.Blocks[0])
	if err != nil {
		return 0, err
	}
	set := p.ProjectSet
	ordinality := set.Ordinality()
	out := &result{output: make([]rcol, ordinality+1)}
	for i := range out.output {
		out.output[i].t = columns[i].t
	}
	number := &out.output[ordinality]
	var from []uint32 // the block's row that a row is of
	n, first := r.n, 0
	if rows != nil {
		n = len(rows)
	}
	for k := range n {
		i := uint32(k)
		if rows != nil {
			i = rows[k]
		}
		v := r.output[0].at(i)
		if v.Null {
			continue
		}
		first = out.n
		err := set.Func.Expand(v.Str, func(values []vector.Value) {
			for c := range values {
				out.output[c].push(values[c])
			}
			out.n++
			number.v = append(number.v, int64(out.n-first))
			from = append(from, i)
		})
		if err != nil {
			return 0, forward(plan.ReasonEvaluation, err.Error())
		}
		if err := x.take(int64(out.n-first) * int64(ordinality+1) * expandedBytes); err != nil {
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
	return out.n, x.gather(kept, &result{n: r.n, output: r.output[1:]}, from, out.n, true)
}
