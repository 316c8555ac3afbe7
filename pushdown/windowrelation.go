package pushdown

import (
	"fmt"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/sqlfn"
)

// windowRelation makes the relation of window functions, one over the other: what is read of the
// rows below, what the windows are over, and their values.
func (a *analyzer) windowRelation(top *plan.Window, l *leaf) plan.Source {
	var windows []*plan.Window
	var below plan.Rel = top
	for {
		w, ok := below.(*plan.Window)
		if !ok {
			break
		}
		checkWindow(w)
		windows, below = append(windows, w), w.Input
	}
	to := map[int]int{} // Window.Number -> column
	var columns []plan.Expr
	at := map[int]int{} // interned expression -> column
	add := func(e plan.Expr) int {
		if e == nil {
			return -1
		}
		id := a.intern.id(e)
		c, ok := at[id]
		if !ok {
			c = len(columns)
			at[id], columns = c, append(columns, e)
		}
		return c
	}
	isWindow := func(e plan.Expr) bool {
		o, ok := e.(plan.Output)
		for _, w := range windows {
			if ok && w.Number == o.Of {
				return true
			}
		}
		return false
	}
	for _, e := range l.read { // the leaf's columns, in their order
		if isWindow(e) {
			to[e.(plan.Output).Of] = len(columns)
		}
		add(e)
	}
	r := &plan.Relation{}
	for i := len(windows) - 1; i >= 0; i-- {
		w := windows[i]
		c, read := to[w.Number]
		if !read {
			c = add(plan.Output{Of: w.Number, T: w.Type()})
		}
		col := plan.WindowColumn{To: c, Func: w.Func, Arg: add(w.Arg), Filter: -1, Default: add(w.Default), Offset: add(w.Offset), Frame: w.Frame}
		if w.Func == plan.WindowAggregate {
			col.Agg, col.Arg, col.Filter = w.Agg.Func, add(w.Agg.Arg), add(w.Agg.Filter)
			col.Distinct, col.Delimiter = w.Agg.Distinct, w.Agg.Delimiter
		}
		for _, e := range w.Partition {
			col.Partition = append(col.Partition, add(e))
		}
		for _, o := range w.Order {
			col.Order = append(col.Order, plan.ColumnOrder{Column: add(o.Expr), Desc: o.Desc, NullsFirst: o.NullsFirst})
		}
		r.Windows = append(r.Windows, col)
	}
	p := &plan.Project{Input: below}
	r.Meta = &catalog.Table{Name: "window"}
	for i, e := range columns {
		r.Meta.Columns = append(r.Meta.Columns, catalog.Column{Name: fmt.Sprintf("c%d", i), Type: e.Type()})
		if !isWindow(e) {
			p.Exprs = append(p.Exprs, e)
		}
	}
	r.Blocks = []*plan.Star{a.star(withColumns(p))}
	if len(p.Exprs) == 0 { // the windows' own columns are all there is: a block has one all the same
		r.Meta.Columns = append(r.Meta.Columns, catalog.Column{Name: "one", Type: one.Type()})
	}
	r.Meta.Rows = expectedRows(r.Blocks[0])
	var place []int // the columns that are the block's outputs
	for i, e := range columns {
		if !isWindow(e) {
			place = append(place, i)
		}
	}
	for _, ix := range uniqueKeys(r.Blocks[0]) {
		for i, c := range ix.Columns {
			ix.Columns[i] = place[c]
		}
		r.Meta.Indexes = append(r.Meta.Indexes, ix)
	}
	return plan.Source{Meta: r.Meta, Relation: r}
}

// checkWindow forwards aggregates that are not computed over windows.
func checkWindow(w *plan.Window) {
	if w.Func == plan.WindowAggregate && w.Agg.Func.State == sqlfn.AggregateMoments && w.Agg.Arg.Type().Varying() {
		fail(plan.ReasonFunction, "window function "+w.Agg.Func.String()+"() of numerics of several scales")
	}
}
