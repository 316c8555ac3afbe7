package pushdown

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// counters count what expressions refer to by number, and queries.
type counters struct{ tables, aggregations, outputs, queries int }

// aggregation returns the number of the block's aggregation: Key.Of and Agg.Of.
func (a *analyzer) aggregation() int {
	if a.block.number == 0 {
		a.aggregations++
		a.block.number = a.aggregations
	}
	return a.block.number - 1
}

// nextOutput returns a new Output.Of.
func (a *analyzer) nextOutput() int {
	a.outputs++
	return a.outputs
}

// aggregates reports whether an expression has an aggregate or a GROUPING() of the block itself.
func (a *analyzer) aggregates(e plan.Expr) (found bool) {
	plan.Walk(e, func(x plan.Expr) bool {
		switch x := x.(type) {
		case plan.Agg:
			found = found || a.block.number > 0 && x.Of == a.aggregation()
		case *groupingCall:
			found = true
		}
		return !found
	})
	return found
}

// place is where an operator comes from.
type place struct {
	at   proto.Message
	name string // of what is written there; empty for what the operator says itself
}

// note notes where an operator comes from.
func (a *analyzer) note(r plan.Rel, at proto.Message, name string) {
	a.places[r] = place{a.written(at), name}
}

// maxQueries bounds the SELECTs of a statement as it is analysed: WITH queries that are put in
// place, each twice in the next, grow exponentially.
const maxQueries = 1000

func (a *analyzer) countQuery() {
	if a.queries++; a.queries > maxQueries {
		a.tooLarge("a query of this size")
	}
}

// query analyses a SELECT as a block of its own.
func (a *analyzer) query(sel *pg.SelectStmt, top bool) (q query) {
	a.countQuery()
	a.checkPlain(sel, top)
	outer, at, ctes := a.block, a.at, a.ctes
	a.block = &block{aggIndex: map[aggKey]int{}, inside: a.counted()}
	if sel.WithClause != nil {
		a.with(sel.WithClause, sel)
		a.at = at
	}
	switch {
	case sel.Op != pg.SetOperation_SETOP_NONE:
		q = a.setOperation(sel, top)
	case len(sel.ValuesLists) > 0:
		q = a.values(sel, top)
	default:
		q = a.selectBlock(sel, top)
	}
	a.block, a.at, a.ctes = outer, at, ctes
	return q
}

// derived analyses a subquery in FROM.
func (a *analyzer) derived(r *pg.RangeSubselect) *scope {
	if r.Lateral {
		outer := a.outer
		a.outer = a.lateral
		defer func() { a.outer = outer }()
	}
	sel := r.Subquery.GetSelectStmt()
	if sel == nil {
		fail(plan.ReasonShape, "a FROM item of this form")
	}
	return a.subquery(sel, r.Alias)
}

// subquery is a SELECT in FROM. One that only projects and filters is put in place: its columns
// stand for their expressions, its WHERE joins the outer one. Others are blocks, whose columns are
// keys and aggregates, computed of these, or outputs.
func (a *analyzer) subquery(sel *pg.SelectStmt, alias *pg.Alias) *scope {
	if !isBlock(sel) {
		return a.inPlace(sel, alias)
	}
	q := a.query(sel, false)
	a.computeOutputs(&q, sel)
	return a.named(&rel{cols: q.cols()}, alias, q.rows)
}

// computeOutputs has the outputs of a block that may fail computed within it, where not all that leaves
// rows out is moved into it: the server computes them for all rows, whatever is done with them.
func (a *analyzer) computeOutputs(q *query, sel *pg.SelectStmt) {
	if !filteredAbove(q.rows, a.joined) {
		return
	}
	if !slices.ContainsFunc(q.outputs, mayFail) {
		return
	}
	p := &plan.Project{Number: a.nextOutput(), Input: q.rows}
	for i, e := range q.outputs {
		if e != nil && readsRows(e) {
			q.outputs[i] = plan.Output{Of: p.Number, Index: len(p.Exprs), T: e.Type()}
			p.Exprs = append(p.Exprs, e)
		}
	}
	a.sides = append(a.sides, p) // the server computes none that nothing reads
	a.note(p, sel, "")
	q.rows = p
}

// filteredAbove reports whether what leaves rows of a block out may have to stand above it: conditions
// are not moved below LIMIT, DISTINCT ON and windows, nor joins below groups.
func filteredAbove(r plan.Rel, joined bool) bool {
	switch x := r.(type) {
	case *plan.Limit, *plan.Window:
		return true
	case *plan.Aggregate:
		return joined
	case *plan.Sort:
		return filteredAbove(x.Input, joined)
	case *plan.Filter:
		return filteredAbove(x.Input, joined)
	}
	return false
}

// joins reports whether a SELECT has more than one item in FROM, or sub-selects in WHERE.
func joins(sel *pg.SelectStmt) bool {
	found := len(sel.FromClause) != 1 || sel.FromClause[0].GetJoinExpr() != nil
	syntax.Walk(sel.WhereClause, func(n *pg.Node) bool {
		found = found || n.GetSubLink() != nil
		return !found
	})
	return found
}

// cols are the columns that a derived table has.
func (q *query) cols() []col {
	cols := make([]col, len(q.outputs))
	for i, e := range q.outputs {
		cols[i] = col{name: q.targets[i].name, e: e}
		if e == nil {
			cols[i].refuse = q.targets[i].col.refuse
		}
	}
	return cols
}

// inPlace analyses a subquery in FROM as a part of the block around it.
func (a *analyzer) inPlace(sel *pg.SelectStmt, alias *pg.Alias) *scope {
	a.countQuery()
	a.checkPlain(sel, false)
	joined := a.joined
	a.joined = joined || joins(sel)
	inner := a.from(sel.FromClause)
	a.joined = joined
	outer := a.noAggs
	a.noAggs = "aggregate in a subquery in FROM"
	item := &rel{}
	subs := a.own(func() {
		for _, t := range a.targets(sel.TargetList, inner) {
			c := t.col
			c.name = t.name
			if c.e == nil && c.refuse == nil {
				c.e = a.output(t.v)
			}
			item.cols = append(item.cols, c)
		}
	})
	rows := a.where(sel.WhereClause, inner)
	a.stop()
	rows = a.attach(rows, subs)
	a.noAggs = outer
	return a.named(item, alias, rows)
}

// isBlock reports whether a SELECT does more than project and filter.
func isBlock(sel *pg.SelectStmt) bool {
	return sel.Op != pg.SetOperation_SETOP_NONE || sel.WithClause != nil || len(sel.ValuesLists) > 0 || groups(sel) ||
		len(sel.SortClause) > 0 || sel.LimitCount != nil || sel.LimitOffset != nil ||
		callsInList(sel.TargetList, func(name string) bool { return setFunctions[name] })
}

// groups reports whether a SELECT has an aggregation, or a window.
func groups(sel *pg.SelectStmt) bool {
	if len(sel.GroupClause) > 0 || sel.HavingClause != nil || len(sel.DistinctClause) > 0 {
		return true
	}
	for _, n := range sel.TargetList {
		if hasAggregate(n.GetResTarget().GetVal()) {
			return true
		}
	}
	return false
}

// hasAggregate reports whether an expression calls an aggregate or a window function, sub-selects
// aside.
func hasAggregate(n *pg.Node) (found bool) {
	look := func(n *pg.Node) bool {
		switch x := n.GetNode().(type) {
		case *pg.Node_FuncCall:
			f := x.FuncCall
			if names := nameList(f.Funcname); len(names) > 0 {
				known := sqlfn.IsAggregate(names[len(names)-1])
				found = found || known || f.AggWithinGroup || f.Over != nil
			}
		case *pg.Node_GroupingFunc:
			found = true
		case *pg.Node_ColumnRef, *pg.Node_AConst, *pg.Node_SubLink:
			return false
		}
		return !found
	}
	syntax.Walk(n, look)
	return found
}

// nullable analyses the side of an outer join that can be missing. An expression over nulls need
// not be null: where the side computes, it is a derived table, whose outputs are.
func (a *analyzer) nullable(n *pg.Node) *scope {
	inside := a.counted()
	s := a.fromItem(n)
	a.stop()
	for t := inside.tables; t < len(a.tables); t++ {
		a.optional[t] = true
	}
	p := &plan.Project{Input: s.rows}
	computes := false
	index := map[int]int{} // interned number -> output
	each := func(f func(c *col)) {
		for _, r := range s.rels {
			for i := range r.cols {
				f(&r.cols[i])
			}
		}
		for i := range s.cols {
			f(&s.cols[i])
		}
	}
	each(func(c *col) {
		if c.refuse != nil {
			return
		}
		computes = computes || !inside.has(c.e, a.counted())
		if id := a.intern.id(c.e); index[id] == 0 {
			p.Exprs = append(p.Exprs, c.e)
			index[id] = len(p.Exprs)
		}
	})
	if !computes {
		return s
	}
	p.Number = a.nextOutput()
	a.sides = append(a.sides, p)
	a.note(p, n, "")
	done := map[*col]bool{}
	each(func(c *col) {
		if c.refuse == nil && !done[c] {
			done[c] = true
			c.e = plan.Output{Of: p.Number, Index: index[a.intern.id(c.e)] - 1, T: c.e.Type()}
		}
	})
	s.rows = p
	return s
}

// dropUnread takes out of the sides of outer joins and the outputs of blocks what nothing reads: a right
// is needed for what is named only.
func (a *analyzer) dropUnread(tree plan.Rel) {
	for _, p := range slices.Backward(a.sides) { // one within another was made first
		read := make([]bool, len(p.Exprs))
		plan.WalkRel(tree, func(r plan.Rel) bool {
			plan.Exprs(r, func(e plan.Expr) {
				plan.Walk(e, func(x plan.Expr) bool {
					if o, ok := x.(plan.Output); ok && o.Of == p.Number {
						read[o.Index] = true
					}
					return true
				})
			})
			return true
		})
		for i, e := range p.Exprs {
			if !read[i] && readsRows(e) {
				p.Exprs[i] = plan.Const{Datum: vector.Datum{Type: e.Type(), Null: true}}
			}
		}
	}
}
