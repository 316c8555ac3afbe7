package oracle

import (
	"slices"

	"pgaccel/plan"
	"pgaccel/vector"
)

// row is what expressions read: the rows of table references, the groups of aggregations and the
// outputs of derived tables, by number. In a run's current row they stand where their numbers
// say; in one that is kept, in the order of what an operator yields. nil is one that an outer join
// joined with nulls.
type row struct {
	tables  [][]vector.Datum
	groups  []*group
	outputs [][]value
}

// newRow returns a row for all that a tree may yield.
func newRow(tree plan.Rel) row {
	tables, groups, outputs := 0, 0, 1 // no number is 0
	plan.WalkRel(tree, func(r plan.Rel) bool {
		y := ownYields(r)
		for _, t := range y.tables {
			tables = max(tables, t+1)
		}
		for _, n := range y.groups {
			groups = max(groups, n+1)
		}
		for _, n := range y.outputs {
			outputs = max(outputs, n+1)
		}
		return true
	})
	return row{make([][]vector.Datum, tables), make([]*group, groups), make([][]value, outputs)}
}

// yields says which parts of the current row an operator sets: numbers.
type yields struct{ tables, groups, outputs []int }

// ownYields returns what an operator yields that those below it do not.
func ownYields(r plan.Rel) (y yields) {
	switch x := r.(type) {
	case *plan.Scan:
		y.tables = []int{x.Table}
	case *plan.Aggregate:
		y.groups = []int{x.Number}
	case *plan.Project:
		y.output(x.Number)
	case *plan.Shared:
		y.output(x.Number)
	case *plan.SetOp:
		y.output(x.Number)
	case *plan.Values:
		y.output(x.Number)
	case *plan.Join:
		y.output(x.Number)
	case *plan.Window:
		y.output(x.Number)
	}
	return y
}

func (y *yields) output(number int) {
	if number > 0 {
		y.outputs = []int{number}
	}
}

// yieldsOf returns what expressions over an operator may read.
func yieldsOf(r plan.Rel) yields {
	y := ownYields(r)
	switch r.(type) {
	case *plan.Aggregate, *plan.Project, *plan.Shared, *plan.SetOp, *plan.Values:
		return y
	}
	inputs := r.Inputs()
	if j, ok := r.(*plan.Join); ok {
		switch j.Kind {
		case plan.Semi, plan.Anti, plan.NotIn, plan.Mark:
			inputs = inputs[:1]
		}
	}
	for _, in := range inputs {
		below := yieldsOf(in)
		y.tables = append(y.tables, below.tables...)
		y.groups = append(y.groups, below.groups...)
		y.outputs = append(y.outputs, below.outputs...)
	}
	return y
}

// readBy reports whether an expression reads any of it.
func (y yields) readBy(e plan.Expr) (reads bool) {
	plan.Walk(e, func(x plan.Expr) bool {
		switch x := x.(type) {
		case plan.Column:
			reads = reads || slices.Contains(y.tables, x.Table)
		case plan.Key:
			reads = reads || slices.Contains(y.groups, x.Of)
		case plan.Agg:
			reads = reads || slices.Contains(y.groups, x.Of)
		case *plan.Grouping:
			reads = reads || slices.Contains(y.groups, x.Of)
		case plan.Output:
			reads = reads || slices.Contains(y.outputs, x.Of)
		}
		return !reads
	})
	return reads
}

// missing is a row of nulls.
func (y yields) missing() row {
	return row{make([][]vector.Datum, len(y.tables)), make([]*group, len(y.groups)), make([][]value, len(y.outputs))}
}

// take returns the parts y of the current row.
func (r *run) take(y yields) row {
	x := y.missing()
	for i, t := range y.tables {
		x.tables[i] = r.current.tables[t]
	}
	for i, n := range y.groups {
		x.groups[i] = r.current.groups[n]
	}
	for i, n := range y.outputs {
		x.outputs[i] = r.current.outputs[n]
	}
	return x
}

// put makes x, of the parts y, current.
func (r *run) put(y yields, x row) {
	for i, t := range y.tables {
		r.current.tables[t] = x.tables[i]
	}
	for i, n := range y.groups {
		r.current.groups[n] = x.groups[i]
	}
	for i, n := range y.outputs {
		r.current.outputs[n] = x.outputs[i]
	}
}

// collect returns all rows of an operator.
func (r *run) collect(rel plan.Rel) (rows []row, err error) {
	y := yieldsOf(rel)
	err = r.rows(rel, func() error {
		rows = append(rows, r.take(y))
		return nil
	})
	return rows, err
}

// same reports whether two rows of one operator look alike.
func (x row) same(o row) bool {
	return slices.EqualFunc(x.tables, o.tables, slices.Equal[[]vector.Datum]) &&
		slices.EqualFunc(x.groups, o.groups, func(g, h *group) bool {
			return g == h || g != nil && h != nil && g.set == h.set &&
				slices.EqualFunc(g.keys, h.keys, sameValue) && slices.EqualFunc(g.aggs, h.aggs, sameValue)
		}) &&
		slices.EqualFunc(x.outputs, o.outputs, func(a, b []value) bool { return slices.EqualFunc(a, b, sameValue) })
}
