package pushdown

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// Statement is the decision on one SQL text. Exactly one of Star and Forward is
// set: Forward also where there is a tree, but no star that answers it.
type Statement struct {
	Tree    *plan.Project // what is asked, over Deps.Tables; nil where that cannot be said
	Deps    plan.Deps     // with Tree
	Star    *plan.Star    // how it is answered
	Forward *plan.Forward
	// At is the byte of the text at which what is refused begins; -1 where that is not
	// known, and without Forward.
	At int
	// Refused is Forward and At, and what else is refused: of parts that do not depend on each
	// other all, up to a limit.
	Refused []Refusal
	// Names are those of the output columns.
	Names []string
	// Small says why Star, though it can be answered, is not worth it: PostgreSQL
	// answers as fast. nil where it is worth it.
	Small *plan.Forward
}

// Plan decides on a text, which must be one SELECT. paramOIDs are the types that the
// client declared for $1, $2, ..., 0 or missing where it left them open. It never
// panics, whatever the text.
func Plan(text *syntax.Text, paramOIDs []uint32, cat *catalog.Catalog) Statement {
	return planPart(text, paramOIDs, 0, cat)
}

// planPart is Plan for a text that is a part of a statement with so many parameters at least, all of which it has.
func planPart(text *syntax.Text, paramOIDs []uint32, params int, cat *catalog.Catalog) Statement {
	st, settled := planned(text, paramOIDs, params, cat, false)
	if st.Star != nil && settled {
		// In any session, if it is only for constants that it would have to be one in UTC.
		if any, _ := planned(text, paramOIDs, params, cat, true); any.Star != nil && !any.Deps.NeedsUTC && !any.Deps.NeedsISO && !any.Deps.NeedsIntervalStyle && !any.Deps.NeedsMonetary {
			return any
		}
	}
	return st
}

// planned is Plan. settled says that an expression over no rows was computed for certain settings of
// the session; with unsettled it is left to the server.
func planned(text *syntax.Text, paramOIDs []uint32, params int, cat *catalog.Catalog, unsettled bool) (st Statement, settled bool) {
	a := &analyzer{cat: cat, paramOIDs: paramOIDs, unsettled: unsettled, computed: map[*plan.Project]plan.Source{}, optional: map[int]bool{}, places: map[plan.Rel]place{}, intern: newInterner(), sizes: map[*plan.Call]int{}, operators: map[*plan.Project]int{}, called: map[string]bool{}, text: text}
	defer func() {
		if p := recover(); p != nil {
			st.Star, st.Refused = nil, a.caught(p)
			st.Forward, st.At = st.Refused[0].Forward, st.Refused[0].At
		}
	}()
	sel, other := text.Select()
	if sel == nil {
		fail(plan.ReasonNotSelect, other)
	}
	if cat.Shadowed["::"] {
		fail(plan.ReasonShadowed, "cast between built-in types")
	}
	for _, oid := range paramOIDs {
		open := oid == 0 || oid == sqltype.OIDUnknown
		a.params, a.declared = append(a.params, a.typeByOID(oid)), append(a.declared, !open)
	}
	q := a.query(sel, true)
	tree := &plan.Project{Input: q.rows, Exprs: q.outputs}
	for len(a.params) < params {
		a.params, a.declared = append(a.params, vector.Type{}), append(a.declared, false)
	}
	for i := range a.params {
		if a.params[i].Kind == vector.Invalid && a.serverParams[i+1] == 0 && (params == 0 || namesParam(sel, i+1)) {
			fail(plan.ReasonParameter, fmt.Sprintf("type of $%d", i+1))
		}
	}
	a.checkSize(tree)
	a.dropUnread(tree)
	a.checkLoose(tree)
	a.checkEnums()
	for _, t := range q.targets {
		st.Names = append(st.Names, t.name)
	}
	st.Tree, st.Deps = tree, plan.Deps{Tables: a.tables, Views: a.views, Params: a.params}
	if len(a.tables) == 0 { // nothing to ask rights for, and nothing to be faster with
		fail(plan.ReasonNoTable, "no FROM")
	}
	st.Star, st.At = a.star(tree), -1
	// Rights are asked for what is named: a tree that reads another column, or is wrong otherwise,
	// is the server's to answer.
	if err := plan.Validate(tree, a.tables, a.params); err != nil {
		fail(plan.ReasonInternalError, err.Error())
	}
	st.Star.Constants = a.constants
	a.noteDerived()
	st.Deps.NeedsUTC, st.Deps.NeedsISO, st.Deps.NamesUTC = a.needsUTC, a.needsISO, a.namesUTC
	st.Deps.NeedsIntervalStyle = a.needsIntervals
	st.Deps.NeedsMonetary = a.needsMonetary
	st.Deps.SessionZone, st.Deps.ReadsZone, st.Deps.Zones = a.sessionZone, a.readsZone, a.zones
	st.Deps.Cased = a.casedIn
	st.Deps.Functions, st.Deps.Calls = a.functions, a.oids
	st.Deps.ServerConsts, st.Deps.ServerParams = a.server, a.serverParamTypes()
	st.Small = small(st.Star)
	return st, a.settled
}

// namesParam reports whether sel has the parameter.
func namesParam(sel *pg.SelectStmt, number int) (has bool) {
	syntax.Walk(sel, func(n *pg.Node) bool {
		has = has || int(n.GetParamRef().GetNumber()) == number
		return !has
	})
	return has
}

// checkPlain forwards the clauses that no SELECT here may have. top is false for a derived table.
func (a *analyzer) checkPlain(sel *pg.SelectStmt, top bool) {
	switch {
	case sel.IntoClause != nil:
		a.at = a.text.Keyword(pg.Token_INTO)
		fail(plan.ReasonNotSelect, "SELECT INTO")
	case len(sel.LockingClause) > 0:
		a.at = a.text.Keyword(pg.Token_UPDATE, pg.Token_SHARE)
		fail(plan.ReasonShape, "FOR UPDATE or FOR SHARE")
	case sel.LimitOption == pg.LimitOption_LIMIT_OPTION_WITH_TIES:
		a.at = a.text.Keyword(pg.Token_FETCH)
		fail(plan.ReasonShape, "FETCH FIRST ... WITH TIES")
	case top && len(sel.FromClause) == 0 && sel.Op == pg.SetOperation_SETOP_NONE && len(sel.ValuesLists) == 0:
		reads := false
		syntax.Walk(sel, func(n *pg.Node) bool {
			reads = reads || n.GetRangeVar() != nil
			return !reads
		})
		if reads {
			return // in a sub-select
		}
		fail(plan.ReasonNoTable, "no FROM")
	}
}

// target is one output column.
type target struct {
	name    string
	v       value
	col     col      // instead of v for what `*` gave: it may be refused if it is read
	written *pg.Node // the syntax; a column's name for what `*` gave
}

// targets analyses a select list, with `*` expanded.
func (a *analyzer) targets(list []*pg.Node, s *scope) (out []target) {
	if len(list) == 0 {
		fail(plan.ReasonShape, "no output columns")
	}
	for _, n := range list {
		a.attempt(func() {
			outer := a.at
			a.at = n
			out = append(out, a.target(n, s)...)
			a.at = outer
		})
	}
	return out
}

// target analyses an item of a select list.
func (a *analyzer) target(n *pg.Node, s *scope) (out []target) {
	r := n.GetResTarget()
	if r == nil || len(r.Indirection) > 0 {
		fail(plan.ReasonShape, "an output column of this form")
	}
	if ref := r.Val.GetColumnRef(); ref != nil {
		if cols, ok := starred(ref, s); ok {
			for _, c := range cols {
				a.mention(c)
				name := &pg.Node{Node: &pg.Node_String_{String_: &pg.String{Sval: c.name}}}
				ref := &pg.ColumnRef{Fields: []*pg.Node{name}, Location: ref.Location}
				out = append(out, target{name: c.name, col: c, written: &pg.Node{Node: &pg.Node_ColumnRef{ColumnRef: ref}}})
			}
			return out
		}
		// A plain column stays one, so that an outer join may make it null.
		if names := nameList(ref.Fields); len(names) == len(ref.Fields) {
			c := s.find(names)
			a.mention(c)
			t := target{name: c.name, col: c, written: r.Val}
			if r.Name != "" {
				t.name = r.Name
			}
			return append(out, t)
		}
	}
	t := target{name: r.Name, v: a.expr(r.Val, s), written: r.Val}
	if t.name == "" {
		t.name, _ = figureName(r.Val)
	}
	return append(out, t)
}

// starred returns what `*` or `t.*` stands for.
func starred(ref *pg.ColumnRef, s *scope) ([]col, bool) {
	last := len(ref.Fields) - 1
	if last < 0 || ref.Fields[last].GetAStar() == nil {
		return nil, false
	}
	if last == 0 {
		return s.cols, true
	}
	r := s.relation(nameList(ref.Fields[:last]))
	if r == nil {
		fail(plan.ReasonShape, "reference to an unknown relation")
	}
	return r.cols, true
}

// value returns the output's expression; one without a type is text.
func (a *analyzer) targetExpr(t target) plan.Expr {
	if t.col.refuse != nil {
		a.at = t.written
		panic(t.col.refuse)
	}
	if t.col.e != nil {
		return t.col.e
	}
	return a.output(t.v)
}

// output closes the type of an output column.
func (a *analyzer) output(v value) plan.Expr { return a.resolve(v, vector.TypeOf(vector.Text)) }

// query is an analysed SELECT: rows, and what is shown of them.
type query struct {
	rows    plan.Rel
	targets []target
	outputs []plan.Expr // of the targets; nil for one that is refused if it is read
}

// selectBlock analyses what a SELECT says. top is false for one that is a derived table.
func (a *analyzer) selectBlock(sel *pg.SelectStmt, top bool) query {
	a.joined = joins(sel)
	s := a.from(sel.FromClause)
	a.joinsDone, a.windowDefs, a.usedDefs, a.keyLinks = true, sel.WindowClause, map[string]bool{}, keyLinks(sel.GroupClause)
	a.sets = hasSets(sel.GroupClause)
	a.setCalls.allowed = true
	targets := a.targets(sel.TargetList, s)
	outputs := make([]plan.Expr, len(targets))
	for i, t := range targets {
		if top || groups(sel) || t.col.refuse == nil {
			a.attempt(func() {
				outputs[i] = a.targetExpr(t)
				stableModifiers(outputs[i : i+1])
			})
		}
	}
	q := query{rows: a.where(sel.WhereClause, s), targets: targets, outputs: outputs}
	c := clauses{targets: targets, outputs: outputs}
	if sel.HavingClause != nil {
		c.having = a.conditions(sel.HavingClause, s, nil)
	}
	a.stop()
	c.order = a.orderBy(sel.SortClause, s, targets, outputs)
	distinct, on := a.distinctKeys(sel.DistinctClause, s, targets, outputs)
	c.on = on
	a.unusedWindows(s)
	a.noAggs = "aggregate in GROUP BY"
	item := a.groupItems(s, targets, outputs)
	if a.sets {
		a.attempt(func() { c.keys, c.sets = a.groupingSets(sel.GroupClause, sel.GroupDistinct, item) })
	} else {
		c.keys = a.groupBy(sel.GroupClause, item)
	}
	limit := a.limits(sel, top)
	grouped := len(sel.GroupClause) > 0 || len(a.aggs) > 0 || sel.HavingClause != nil || a.grouping
	a.expand(&q, &c, s, outputs, grouped, distinct, limit != nil)
	if distinct {
		for _, e := range outputs {
			a.callsEqualityOf(e)
		}
	}
	if distinct && !grouped {
		// DISTINCT is grouping by all outputs.
		grouped, c.keys, distinct = true, outputs, false
		if len(a.windows) > 0 {
			q.rows, a.subselects = a.attachWindows(a.attach(q.rows, a.subselects)), nil
		}
	}
	if grouped {
		// PostgreSQL leaves conditions on a key that is correlated above the groups (contain_subplans in subquery_planner,
		// plan/planner.c): it has computed the aggregates of groups that they remove. Here they are moved to the rows.
		if (!top || sel.HavingClause != nil) && a.keySubLink && slices.ContainsFunc(a.aggs, func(g plan.AggregateCall) bool {
			return mayFail(g.Arg) || mayFail(g.Filter) || aggregateFails(g)
		}) {
			fail(plan.ReasonEvaluation, "an aggregate that may fail, of groups by a sub-select that a condition may read")
		}
		groups, over := a.group(&c, q.rows, a.subselects)
		a.note(groups, sel, "")
		distinct = distinct && (len(groups.Sets) > 0 || !distinctAlready(c.outputs, groups))
		q.rows, q.outputs = a.attach(groups, over), c.outputs
	} else {
		q.rows = a.attach(q.rows, a.subselects)
	}
	if len(c.having) > 0 {
		q.rows = &plan.Filter{Input: q.rows, Conds: c.having}
	}
	q.rows = a.attachWindows(q.rows)
	switch {
	case distinct:
		q.rows, q.outputs = a.distinctGroups(&c, q.rows), c.outputs
	case len(c.on) > 0:
		a.distinctOn(&q, &c)
	}
	q.sortAndCut(c.order, limit)
	a.noteOrder(q.rows, sel)
	return q
}

// distinctGroups groups groups by all outputs.
func (a *analyzer) distinctGroups(c *clauses, groups plan.Rel) plan.Rel {
	over := *a.block
	over.number, over.aggs, over.aggIndex, over.sorted, over.subselects = 0, nil, map[aggKey]int{}, nil, nil
	a.block = &over
	c.keys, c.sets, c.having = c.outputs, nil, nil
	rows, _ := a.group(c, groups, nil)
	a.at = a.text.Keyword(pg.Token_DISTINCT)
	a.note(rows, a.at, "DISTINCT over groups")
	return rows
}

// noteOrder notes where the order and the cut on top of a block come from.
func (a *analyzer) noteOrder(r plan.Rel, sel *pg.SelectStmt) {
	if l, ok := r.(*plan.Limit); ok {
		n := sel.LimitCount
		if n == nil {
			n = sel.LimitOffset
		}
		a.note(l, n, "")
		r = l.Input
	}
	if o, ok := r.(*plan.Sort); ok && len(sel.SortClause) > 0 {
		a.note(o, sel.SortClause[0], "")
	}
}

// limits analyses LIMIT and OFFSET: nil where nothing is written. Of a subquery LIMIT ALL is not nothing:
// it cuts nothing, but keeps conditions out.
func (a *analyzer) limits(sel *pg.SelectStmt, top bool) *plan.Limit {
	l := &plan.Limit{}
	a.attempt(func() { l.Count = a.limit(sel.LimitCount) })
	a.attempt(func() { l.Offset = a.limit(sel.LimitOffset) })
	a.stop()
	if l.Count != nil || l.Offset != nil || !top && (sel.LimitCount != nil || sel.LimitOffset != nil) {
		return l
	}
	return nil
}

// sortAndCut adds ORDER BY and LIMIT.
func (q *query) sortAndCut(by []plan.Order, limit *plan.Limit) {
	if len(by) > 0 {
		q.rows = &plan.Sort{Input: q.rows, By: by}
	}
	if limit != nil {
		limit.Input = q.rows
		q.rows = limit
	}
}

// clauses are those of a SELECT that may group: expressions over rows, until group makes of them
// expressions over groups.
type clauses struct {
	keys    []plan.Expr
	sets    []uint64
	having  []plan.Expr
	targets []target
	outputs []plan.Expr
	order   []plan.Order
	on      []plan.Expr // of DISTINCT ON
}

// group groups rows, and turns what follows GROUP BY into expressions over groups. It returns those
// of the sub-selects that are over groups.
func (a *analyzer) group(q *clauses, rows plan.Rel, subs []subselect) (*plan.Aggregate, []subselect) {
	if len(q.sets) == 1 {
		q.sets = nil // a single set has all keys
	}
	g := newGrouping(a, q.keys, q.sets)
	g.checkParts(q)
	below, over := a.overRowsAndGroups(q, g, subs)
	q.outputs, q.having = slices.Clone(q.outputs), slices.Clone(q.having)
	for i, e := range q.outputs {
		a.attempt(func() {
			outer := a.at
			a.at = q.targets[i].written
			q.outputs[i] = g.over(e)
			a.at = outer
		})
	}
	for i, e := range q.having {
		a.attempt(func() { q.having[i] = g.over(e) })
	}
	for i := range q.order {
		a.attempt(func() { q.order[i].Expr = g.over(q.order[i].Expr) })
	}
	for i := range q.on {
		a.attempt(func() { q.on[i] = g.over(q.on[i]) })
	}
	a.attempt(func() { g.overWindows(a.windows) })
	a.stop()
	rows = a.sortedAggregates(a.attach(rows, below), q)
	return &plan.Aggregate{Number: a.aggregation(), Input: rows, Keys: g.exprs, Sets: g.sets, Aggs: a.aggs}, over
}

// distinctAlready reports whether each group gives another row: all keys are shown.
func distinctAlready(outputs []plan.Expr, groups *plan.Aggregate) bool {
	shown := map[int]bool{}
	for _, e := range outputs {
		if k, ok := e.(plan.Key); ok {
			shown[k.Index] = true
		}
	}
	return len(shown) == len(groups.Keys)
}
