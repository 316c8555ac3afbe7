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
		y := plan.OwnYields(r)
		for _, t := range y.Tables {
			tables = max(tables, t+1)
		}
		for _, n := range y.Groups {
			groups = max(groups, n+1)
		}
		for _, n := range y.Outputs {
			outputs = max(outputs, n+1)
		}
		return true
	})
	return row{make([][]vector.Datum, tables), make([]*group, groups), make([][]value, outputs)}
}

// missing is a row of nulls.
func missing(y plan.Yields) row {
	return row{make([][]vector.Datum, len(y.Tables)), make([]*group, len(y.Groups)), make([][]value, len(y.Outputs))}
}

// take returns the parts y of the current row.
func (r *run) take(y plan.Yields) row {
	x := missing(y)
	for i, t := range y.Tables {
		x.tables[i] = r.current.tables[t]
	}
	for i, n := range y.Groups {
		x.groups[i] = r.current.groups[n]
	}
	for i, n := range y.Outputs {
		x.outputs[i] = r.current.outputs[n]
	}
	return x
}

// put makes x, of the parts y, current.
func (r *run) put(y plan.Yields, x row) {
	for i, t := range y.Tables {
		r.current.tables[t] = x.tables[i]
	}
	for i, n := range y.Groups {
		r.current.groups[n] = x.groups[i]
	}
	for i, n := range y.Outputs {
		r.current.outputs[n] = x.outputs[i]
	}
}

// collect returns all rows of an operator.
func (r *run) collect(rel plan.Rel) (rows []row, err error) {
	y := plan.YieldsOf(rel)
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
