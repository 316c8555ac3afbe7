package olap

import (
	"slices"

	"pgaccel/plan"
	"pgaccel/vector"
)

// expandedBytes is about what a value takes until it is in a column: a string's header, a null.
const expandedBytes = 24

// projectSet computes the columns of what functions return for each row of the relation's block: the functions', the
// number of the row, and what is kept of the block's row. Those that nothing reads are left zero.
func (x *execution) projectSet(p *plan.Relation, columns []relationColumn) (int, error) {
	r, rows, err := x.inner(p.Blocks[0])
	if err != nil {
		return 0, err
	}
	calls, ordinality := p.ProjectSet.Calls, p.ProjectSet.Ordinality()
	read := x.read[p]
	if read == nil {
		read = slices.Repeat([]bool{true}, len(columns))
	}
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
		most, err := expand(calls, r, i, out.output, read, counts)
		if err != nil {
			return 0, forward(plan.ReasonEvaluation, err.Error())
		}
		for j := range most {
			if read[ordinality] {
				number.v = append(number.v, int64(j+1))
			}
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
	if from == nil {
		from = []uint32{} // not all
	}
	var zeros []int64
	for i := range columns {
		c := &columns[i]
		switch {
		case !read[i]:
			if zeros == nil {
				zeros = make([]int64, out.n)
			}
			c.v = zeros
			switch {
			case c.t.Kind.IsString():
				c.dict = listDict([]string{""}, c.t)
			case c.varying():
				c.dict = decimalDict(make([]vector.Decimal, 1), c.t)
			}
		case i <= ordinality:
			err = x.gather([]*relationColumn{c}, &result{n: out.n, output: out.output[i : i+1]}, nil, out.n, true)
		default:
			at := len(calls) + i - ordinality - 1
			err = x.gather([]*relationColumn{c}, &result{n: r.n, output: r.output[at : at+1]}, from, out.n, true)
		}
		if err != nil {
			return 0, err
		}
	}
	return out.n, nil
}

// expand appends the rows that functions return for row i of r to columns, nulls to those of a function that returns
// less, and returns how many these are. Of the columns only those that are read have values. counts is room for a
// number of each function.
func expand(calls []plan.SetCall, r *result, i uint32, columns []rcol, read []bool, counts []int) (most int, err error) {
	at := 0
	for c, call := range calls {
		own, wanted := columns[at:at+len(call.Func.Columns)], read[at:]
		at += len(own)
		counts[c] = 0
		if v := r.output[c].at(i); !v.Null {
			err = call.Func.Expand(v.Str, func(values []vector.Value) {
				for c := range values {
					if wanted[c] {
						own[c].push(values[c])
					}
				}
				counts[c]++
			})
			if err != nil {
				return 0, err
			}
		}
		most = max(most, counts[c])
	}
	at = 0
	for c, call := range calls {
		for w := range call.Func.Columns {
			for range most - counts[c] {
				if read[at+w] {
					columns[at+w].push(vector.NullValue)
				}
			}
		}
		at += len(call.Func.Columns)
	}
	return most, nil
}
