package pushdown

import (
	"errors"
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Statement is the decision on one SQL text. Exactly one of Star and Forward is
// set.
type Statement struct {
	Tree    *plan.Project // what is asked, over Tables; nil where it is forwarded
	Tables  []plan.Table  // the table references, in order of appearance
	Star    *plan.Star    // how it is answered
	Forward *plan.Forward
	// At is the byte of the text at which what is refused begins; -1 where that is not
	// known, and without Forward.
	At int
	// Small says why Star, though it can be answered, is not worth it: PostgreSQL
	// answers as fast. nil where it is worth it.
	Small *plan.Forward
}

// Plan decides on sql, which must be one SELECT. paramOIDs are the types that the
// client declared for $1, $2, ..., 0 or missing where it left them open. It never
// panics, whatever the text.
func Plan(sql string, paramOIDs []uint32, cat *catalog.Catalog) (st Statement) {
	a := &analyzer{cat: cat, optional: map[int]bool{}, intern: newInterner(), sizes: map[*plan.Call]int{}, called: map[string]bool{}, sql: sql}
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(*plan.Forward)
			if !ok {
				f = &plan.Forward{Reason: plan.ReasonInternalError, Detail: fmt.Sprint(p)}
			}
			st = Statement{Forward: f, At: location(a.at)}
		}
	}()
	stmts, err := parse(sql)
	if err != nil {
		detail := "cannot be parsed"
		if errors.Is(err, errNesting) {
			detail = err.Error()
		}
		fail(plan.ReasonNotSelect, detail)
	}
	if len(stmts) != 1 {
		fail(plan.ReasonNotSelect, fmt.Sprintf("%d statements", len(stmts)))
	}
	sel := stmts[0].Stmt.GetSelectStmt()
	if sel == nil {
		fail(plan.ReasonNotSelect, "")
	}
	if cat.Shadowed["::"] {
		fail(plan.ReasonShadowed, "cast between built-in types")
	}
	for _, oid := range paramOIDs {
		open := oid == 0 || oid == sqltype.OIDUnknown
		t := vector.TypeOf(sqltype.KindOf(oid))
		if t.Kind == vector.Numeric {
			t.Scale = vector.VaryingScale
		}
		a.params, a.declared = append(a.params, t), append(a.declared, !open)
	}
	q := a.query(sel)
	tree := &plan.Project{Input: q.rows, Exprs: q.outputs}
	for i := range a.params {
		if a.params[i].Kind == vector.Invalid {
			fail(plan.ReasonParameter, fmt.Sprintf("type of $%d", i+1))
		}
	}
	a.checkSize(tree)
	s := a.star(tree)
	return Statement{Tree: tree, Tables: a.tables, Star: s, At: -1, Small: small(s)}
}

// checkPlain forwards the clauses that no SELECT here may have.
func (a *analyzer) checkPlain(sel *pg.SelectStmt) {
	switch {
	case sel.Op != pg.SetOperation_SETOP_NONE:
		a.atKeyword(pg.Token_UNION, pg.Token_INTERSECT, pg.Token_EXCEPT)
		fail(plan.ReasonShape, "UNION, INTERSECT or EXCEPT")
	case sel.WithClause != nil:
		a.at = sel.WithClause
		fail(plan.ReasonShape, "WITH")
	case len(sel.ValuesLists) > 0:
		a.atKeyword(pg.Token_VALUES)
		fail(plan.ReasonShape, "VALUES")
	case sel.IntoClause != nil:
		a.atKeyword(pg.Token_INTO)
		fail(plan.ReasonNotSelect, "SELECT INTO")
	case len(sel.LockingClause) > 0:
		a.atKeyword(pg.Token_UPDATE, pg.Token_SHARE)
		fail(plan.ReasonShape, "FOR UPDATE or FOR SHARE")
	case len(sel.WindowClause) > 0:
		a.at = sel.WindowClause[0]
		fail(plan.ReasonShape, "window function")
	case len(sel.FromClause) == 0:
		walk(sel.ProtoReflect(), func(n *pg.Node) {
			if n.GetSubLink() != nil {
				a.at = n
			}
			if n.GetRangeVar() != nil {
				fail(plan.ReasonShape, "a sub-select as a value")
			}
		})
		a.at = nil
		fail(plan.ReasonNoTable, "no FROM")
	case sel.LimitOption == pg.LimitOption_LIMIT_OPTION_WITH_TIES:
		a.atKeyword(pg.Token_FETCH)
		fail(plan.ReasonShape, "FETCH FIRST ... WITH TIES")
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
func (a *analyzer) targets(list []*pg.Node, s *scope) []target {
	var out []target
	outer := a.at
	for _, n := range list {
		a.at = n
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
				continue
			}
			// A plain column stays one, so that an outer join may make it null.
			if names := nameList(ref.Fields); len(names) == len(ref.Fields) {
				c := s.find(names)
				a.mention(c)
				t := target{name: c.name, col: c, written: r.Val}
				if r.Name != "" {
					t.name = r.Name
				}
				out = append(out, t)
				continue
			}
		}
		t := target{name: r.Name, v: a.expr(r.Val, s), written: r.Val}
		if t.name == "" {
			t.name, _ = figureName(r.Val)
		}
		out = append(out, t)
	}
	if len(out) == 0 {
		fail(plan.ReasonShape, "no output columns")
	}
	a.at = outer
	return out
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
	outputs []plan.Expr
	names   []string // of the outputs
}

// query analyses a SELECT at the top, or the only FROM item of one.
func (a *analyzer) query(sel *pg.SelectStmt) query {
	a.checkPlain(sel)
	if len(sel.FromClause) == 1 {
		if r := sel.FromClause[0].GetRangeSubselect(); r != nil && groups(r.Subquery.GetSelectStmt()) {
			return a.overGrouped(sel, r)
		}
	}
	a.block = &block{aggIndex: map[aggKey]int{}}
	s := a.from(sel.FromClause)
	a.joinsDone = true
	a.sets = hasSets(sel.GroupClause)
	targets := a.targets(sel.TargetList, s)
	outputs := make([]plan.Expr, len(targets))
	for i, t := range targets {
		outputs[i] = a.targetExpr(t)
	}
	stableModifiers(outputs)
	q := query{rows: a.where(sel.WhereClause, s), outputs: outputs, names: namesOf(targets)}
	c := clauses{targets: targets, outputs: outputs}
	if sel.HavingClause != nil {
		c.having = conjuncts(nil, a.boolean(sel.HavingClause, s))
	}
	c.order = a.orderBy(sel.SortClause, s, targets, outputs)
	a.noAggs = "aggregate in GROUP BY"
	item := a.groupItems(s, targets, outputs)
	if a.sets {
		c.keys, c.sets = a.groupingSets(sel.GroupClause, sel.GroupDistinct, item)
	} else {
		c.keys = a.groupBy(sel.GroupClause, item)
	}
	limit := &plan.Limit{Count: a.limit(sel.LimitCount), Offset: a.limit(sel.LimitOffset)}
	grouped := len(sel.GroupClause) > 0 || len(a.aggs) > 0 || sel.HavingClause != nil || a.grouping
	distinct := len(sel.DistinctClause) > 0
	if distinct && sel.DistinctClause[0].GetNode() != nil {
		a.atKeyword(pg.Token_DISTINCT)
		fail(plan.ReasonShape, "DISTINCT ON")
	}
	if distinct {
		for _, e := range outputs {
			a.callsEquality(e.Type().Kind)
		}
	}
	if distinct && !grouped {
		// DISTINCT is grouping by all outputs.
		grouped, c.keys, distinct = true, outputs, false
	}
	if grouped {
		groups := a.group(&c, q.rows)
		if distinct && (len(groups.Sets) > 0 || !distinctAlready(c.outputs, groups)) {
			fail(plan.ReasonShape, "DISTINCT over groups")
		}
		q.rows, q.outputs = groups, c.outputs
	}
	if len(c.having) > 0 {
		q.rows = &plan.Filter{Input: q.rows, Conds: c.having}
	}
	return q.sortedAndCut(c.order, limit)
}

// sortedAndCut is q with ORDER BY and LIMIT.
func (q query) sortedAndCut(by []plan.Order, limit *plan.Limit) query {
	if len(by) > 0 {
		q.rows = &plan.Sort{Input: q.rows, By: by}
	}
	if limit.Count != nil || limit.Offset != nil {
		limit.Input = q.rows
		q.rows = limit
	}
	return q
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
}

// group groups rows, and turns what follows GROUP BY into expressions over groups.
func (a *analyzer) group(q *clauses, rows plan.Rel) *plan.Aggregate {
	if len(q.sets) == 1 {
		q.sets = nil // a single set has all keys
	}
	g := newGrouping(a, q.keys, q.sets)
	g.checkParts(q)
	over := func(es []plan.Expr) []plan.Expr {
		out := make([]plan.Expr, len(es))
		for i, e := range es {
			out[i] = g.over(e)
		}
		return out
	}
	q.outputs, q.having = over(q.outputs), over(q.having)
	for i := range q.order {
		q.order[i].Expr = g.over(q.order[i].Expr)
	}
	return &plan.Aggregate{Input: rows, Keys: g.exprs, Sets: g.sets, Aggs: a.aggs}
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

// groups reports whether a subquery groups, itself or the only item of its FROM.
func groups(sel *pg.SelectStmt) bool {
	if sel == nil || sel.Op != pg.SetOperation_SETOP_NONE {
		return false
	}
	if len(sel.GroupClause) > 0 || sel.HavingClause != nil || len(sel.DistinctClause) > 0 {
		return true
	}
	for _, n := range sel.TargetList {
		if hasAggregate(n.GetResTarget().GetVal()) {
			return true
		}
	}
	return len(sel.FromClause) == 1 && groups(sel.FromClause[0].GetRangeSubselect().GetSubquery().GetSelectStmt())
}

// hasAggregate reports whether an expression calls an aggregate where it is likely
// to: what it misses is found, and forwarded, by the analysis.
func hasAggregate(n *pg.Node) bool {
	any := func(ns []*pg.Node) bool { return slices.ContainsFunc(ns, hasAggregate) }
	switch x := n.GetNode().(type) {
	case *pg.Node_FuncCall:
		names := nameList(x.FuncCall.Funcname)
		if sqlfn.AggregateNamed(names[len(names)-1]) != nil || x.FuncCall.AggWithinGroup {
			return true
		}
		return any(x.FuncCall.Args)
	case *pg.Node_AExpr:
		return hasAggregate(x.AExpr.Lexpr) || hasAggregate(x.AExpr.Rexpr)
	case *pg.Node_TypeCast:
		return hasAggregate(x.TypeCast.Arg)
	case *pg.Node_CoalesceExpr:
		return any(x.CoalesceExpr.Args)
	case *pg.Node_CaseExpr:
		return any(x.CaseExpr.Args) || hasAggregate(x.CaseExpr.Defresult)
	case *pg.Node_CaseWhen:
		return hasAggregate(x.CaseWhen.Expr) || hasAggregate(x.CaseWhen.Result)
	case *pg.Node_BoolExpr:
		return any(x.BoolExpr.Args)
	case *pg.Node_NullTest:
		return hasAggregate(x.NullTest.Arg)
	case *pg.Node_GroupingFunc:
		return true
	}
	return false
}

// overGrouped analyses a SELECT that projects, filters, sorts and cuts the result of
// a grouped subquery: its WHERE is HAVING. Power BI writes such queries.
func (a *analyzer) overGrouped(sel *pg.SelectStmt, r *pg.RangeSubselect) query {
	if r.Lateral {
		fail(plan.ReasonShape, "LATERAL")
	}
	if len(sel.GroupClause) > 0 || sel.HavingClause != nil || len(sel.DistinctClause) > 0 {
		fail(plan.ReasonShape, "grouping of a grouped subquery")
	}
	inner := r.Subquery.GetSelectStmt()
	q := a.query(inner)
	item := &rel{}
	for i, name := range q.names {
		item.cols = append(item.cols, col{name: name, e: q.outputs[i]})
	}
	s := a.named(item, r.Alias, q.rows)
	a.noAggs = "aggregate over a grouped subquery"
	targets := a.targets(sel.TargetList, s)
	outputs := make([]plan.Expr, len(targets))
	for i, t := range targets {
		outputs[i] = a.targetExpr(t)
	}
	if sel.WhereClause != nil {
		q.rows = &plan.Filter{Input: q.rows, Conds: conjuncts(nil, a.boolean(sel.WhereClause, s))}
	}
	order := a.orderBy(sel.SortClause, s, targets, outputs)
	limit := &plan.Limit{Count: a.limit(sel.LimitCount), Offset: a.limit(sel.LimitOffset)}
	stableModifiers(outputs)
	q.outputs, q.names = outputs, namesOf(targets)
	return q.sortedAndCut(order, limit)
}

func namesOf(targets []target) []string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.name
	}
	return names
}
