package pushdown

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/catalog"
	"pgaccel/plan"
)

// distinctKeys analyses DISTINCT: plain, or the keys of DISTINCT ON, which are found as those of
// ORDER BY are.
func (a *analyzer) distinctKeys(clause []*pg.Node, s *scope, targets []target, outputs []plan.Expr) (plain bool, on []plan.Expr) {
	if len(clause) == 0 || clause[0].GetNode() == nil {
		return len(clause) > 0, nil
	}
	if a.sets {
		a.at = a.text.Keyword(pg.Token_DISTINCT)
		fail(plan.ReasonShape, "DISTINCT ON with grouping sets")
	}
	var by []plan.Order
	for _, n := range clause {
		item := &pg.Node{Node: &pg.Node_SortBy{SortBy: &pg.SortBy{Node: n}}}
		a.attempt(func() { by = a.orderItem(by, item, s, targets, outputs) })
	}
	for _, o := range by {
		a.callsEquality(o.Expr.Type().Kind)
		on = append(on, o.Expr)
	}
	return false, on
}

// distinctOn leaves the first row of those that agree in the keys of DISTINCT ON. What is shown is
// computed for all rows.
func (a *analyzer) distinctOn(q *query, c *clauses) {
	p := &plan.Project{Number: a.nextOutput(), Input: q.rows}
	index := map[int]int{} // interned number -> output
	output := func(e plan.Expr) plan.Expr {
		if _, constant := e.(plan.Const); constant {
			return e
		}
		id := a.intern.id(e)
		i, ok := index[id]
		if !ok {
			i = len(p.Exprs)
			index[id], p.Exprs = i, append(p.Exprs, e)
		}
		return plan.Output{Of: p.Number, Index: i, T: e.Type()}
	}
	outputs := slices.Clone(q.outputs)
	for i, e := range outputs {
		outputs[i] = output(e)
	}
	order := slices.Clone(c.order)
	for i := range order {
		order[i].Expr = output(order[i].Expr)
	}
	first := &plan.Limit{Input: p, Count: int8Const(1)}
	for _, e := range c.on {
		first.Per = append(first.Per, output(e))
	}
	if len(order) > 0 {
		first.Input = &plan.Sort{Input: p, By: order}
	}
	a.note(p, a.at, "")
	a.at = a.text.Keyword(pg.Token_DISTINCT)
	a.note(first, a.at, "DISTINCT ON")
	q.rows, q.outputs, c.order = first, outputs, order
}

// cutRelation makes the relation of a cut of groups of rows.
func (a *analyzer) cutRelation(x *plan.Limit, l *leaf) plan.Source {
	below, columns, cut := x.Input, slices.Clone(l.read), &plan.Cut{}
	column := func(e plan.Expr) int {
		id := a.intern.id(e)
		c, ok := l.index[id]
		if !ok {
			c = len(columns)
			l.index[id], columns = c, append(columns, e)
		}
		return c
	}
	for _, e := range x.Per {
		cut.Partition = append(cut.Partition, column(e))
	}
	if s, ok := below.(*plan.Sort); ok {
		below = s.Input
		for _, o := range s.By {
			if slices.ContainsFunc(x.Per, func(e plan.Expr) bool { return a.intern.same(e, o.Expr) }) {
				continue // the same in each group
			}
			cut.Order = append(cut.Order, plan.ColumnOrder{Column: column(o.Expr), Desc: o.Desc, NullsFirst: o.NullsFirst})
		}
	}
	cut.Count, cut.Offset = constantCount(x.Count), constantCount(x.Offset)
	p := &plan.Project{Input: below, Exprs: columns}
	if d, ok := below.(*plan.Project); ok && d.Number > 0 { // its values are what is read
		p.Input = d.Input
		for i, e := range columns {
			p.Exprs[i] = plan.Rewrite(e, func(e plan.Expr) plan.Expr {
				if o, ok := e.(plan.Output); ok && o.Of == d.Number {
					return d.Exprs[o.Index]
				}
				return e
			})
		}
	}
	source := newSource("first rows", []*plan.Star{a.star(withColumns(p))})
	source.Relation.Cut = cut
	if cut.Count == 1 {
		source.Meta.Indexes = append(source.Meta.Indexes, catalog.Index{Unique: true, Columns: cut.Partition})
	}
	return source
}

// constantCount is the number of a LIMIT or OFFSET of groups of rows.
func constantCount(e plan.Expr) int64 {
	if e == nil {
		return 0
	}
	c, ok := e.(plan.Const)
	if !ok || c.Null {
		fail(plan.ReasonParameter, "LIMIT or OFFSET of groups of rows that is a parameter")
	}
	return c.I
}
