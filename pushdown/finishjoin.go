package pushdown

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"pgaccel/catalog"
	"pgaccel/syntax"
)

// A SELECT that joins copied tables with others is split between the two. The core is over the copied ones, with the conditions on them
// alone, and grouped by the columns that the rest reads of them, where the aggregates can be combined:
//
//	text   SELECT l.name, sum(s.x) FROM sales s JOIN local l ON l.id = s.region WHERE s.day > $1 GROUP BY 1
//	core   SELECT s.region, sum(s.x) FROM sales s WHERE s.day > $1 GROUP BY s.region
//	rest   SELECT l.name, sum(c2) FROM (SELECT ...) pgaccel_rows, local l WHERE l.id = c1 GROUP BY 1
//
// Conditions that are left to the rest cannot fail: PostgreSQL may test them for rows that are not there any more.

// mixed is the FROM of such a SELECT.
type mixed struct {
	f      *finisher
	copied map[string]*catalog.Table // by their names in the FROM
	others map[string]*otherTable
	core   []*pg.Node // items over copied tables
	from   []*pg.Node // what is left, with rows
	on     []*pg.Node // conditions of joins that are taken apart
	rows   *pg.Node   // where the core's rows come
	kept   bool       // it is below a join that is kept
}

// joined splits sel between copied tables and others.
func (f *finisher) joined(sel *pg.SelectStmt) bool {
	links := false
	syntax.Walk(sel, func(n *pg.Node) bool {
		links = links || n.GetSubLink() != nil
		return !links
	})
	if links || sel.WithClause != nil {
		return false
	}
	if len(sel.GroupClause) > 0 || aggregated(sel) {
		if f.joinedRows(sel, true) {
			return true
		}
	}
	return f.joinedRows(sel, false)
}

// joinedRows takes the rows of the copied tables for the core, or groups of them.
func (f *finisher) joinedRows(sel *pg.SelectStmt, grouped bool) bool {
	s := f.newSplit(sel)
	m := &mixed{f: f, copied: map[string]*catalog.Table{}, others: map[string]*otherTable{}, rows: &pg.Node{}}
	s.mixed = m
	if !m.split(s.rest.FromClause) || !s.label() || !s.groupBy(s.rest.GroupClause) {
		return false
	}
	core := &pg.SelectStmt{FromClause: m.core, Op: pg.SetOperation_SETOP_NONE, LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT}
	var own, left []*pg.Node
	for _, c := range andedNodes(nil, append(m.on, s.rest.WhereClause)...) {
		_, theirs, known := m.sides(c)
		if !known || theirs && !safeCondition(c) {
			return false
		}
		if theirs {
			left = append(left, c)
		} else {
			own = append(own, c)
		}
	}
	core.WhereClause, s.rest.WhereClause, s.rest.FromClause = anded(own), anded(left), m.from
	column := s.joinedColumn
	if grouped {
		column, s.grouping = s.joinedGroupColumn, true
	}
	s.read(column)
	if !m.readJoins(column) || s.unnamed || len(s.cols) == 0 {
		return false
	}
	if grouped {
		for _, c := range s.cols {
			if c.GetColumnRef() != nil {
				core.GroupClause = append(core.GroupClause, proto.Clone(c).(*pg.Node))
			}
		}
		if len(core.GroupClause) == 0 {
			return false
		}
	}
	return s.take(core)
}

// readJoins is split's read for the conditions of joins that are kept.
func (m *mixed) readJoins(column func(*pg.Node) bool) bool {
	for _, n := range m.from {
		for j := n.GetJoinExpr(); j != nil; j = j.Larg.GetJoinExpr() {
			if _, _, known := m.sides(j.Quals); !known || !safeCondition(j.Quals) {
				return false
			}
			syntax.Walk(j.Quals, column)
		}
	}
	return true
}

// split takes a FROM apart. It is false where that is not one of copied tables that are joined with others, or joined with them from the left.
func (m *mixed) split(items []*pg.Node) bool {
	for _, n := range items {
		if !m.item(n) {
			return false
		}
	}
	if len(m.core) == 0 || len(m.others) == 0 {
		return false
	}
	if !m.kept {
		m.from = append([]*pg.Node{m.rows}, m.from...)
	}
	return true
}

// item takes an item of FROM apart.
func (m *mixed) item(n *pg.Node) bool {
	ours, theirs, ok := m.tables(n)
	j := n.GetJoinExpr()
	switch {
	case !ok, m.kept && ours:
		return false
	case !theirs:
		m.core = append(m.core, n)
		return true
	case n.GetRangeVar() != nil:
		m.from = append(m.from, n)
		return true
	case j == nil || len(j.UsingClause) > 0 || j.IsNatural || j.Alias != nil:
		return false
	case j.Jointype == pg.JoinType_JOIN_INNER:
		if !m.item(j.Larg) || !m.item(j.Rarg) {
			return false
		}
		if j.Quals != nil {
			m.on = append(m.on, j.Quals)
		}
		return true
	}
	// What is joined from the left keeps its rows: conditions on it may come first.
	if len(m.core) > 0 || !m.keep(n) {
		return false
	}
	m.kept = true
	m.from = append(m.from, n)
	return true
}

// keep puts the core's rows in the place of what others are joined to.
func (m *mixed) keep(n *pg.Node) bool {
	j := n.GetJoinExpr()
	if j == nil || j.Jointype != pg.JoinType_JOIN_LEFT || len(j.UsingClause) > 0 || j.IsNatural || j.Alias != nil || j.Rarg.GetRangeVar() == nil {
		return false
	}
	if ours, _, _ := m.tables(j.Rarg); ours {
		return false
	}
	if _, theirs, _ := m.tables(j.Larg); theirs {
		return m.keep(j.Larg)
	}
	m.core, j.Larg = append(m.core, j.Larg), m.rows
	return true
}

// tables notes the tables of an item of FROM, and says which there are; ok is false where there is anything but tables and joins.
func (m *mixed) tables(n *pg.Node) (ours, theirs, ok bool) {
	ok = true
	var item func(n *pg.Node)
	item = func(n *pg.Node) {
		switch x := n.GetNode().(type) {
		case *pg.Node_JoinExpr:
			item(x.JoinExpr.Larg)
			item(x.JoinExpr.Rarg)
		case *pg.Node_RangeVar:
			r := x.RangeVar
			if len(r.Alias.GetColnames()) > 0 {
				ok = false
			} else if t := m.f.copied(r); t != nil {
				m.copied[rangeName(r)], ours = t, true
			} else if o := m.f.other(r); o != nil {
				m.others[rangeName(r)], theirs = o, true
			} else {
				ok = false
			}
		default:
			ok = false
		}
	}
	item(n)
	return ours, theirs, ok
}

// sides says whose columns an expression reads; known is false where that is not certain.
func (m *mixed) sides(n *pg.Node) (ours, theirs, known bool) {
	known = true
	syntax.Walk(n, func(n *pg.Node) bool {
		if c := n.GetColumnRef(); c != nil {
			o, ok := m.ours(c)
			known, ours, theirs = known && ok, ours || o, theirs || !o
		}
		return true
	})
	return ours, theirs, known
}

// ours reports whether a column is of a copied table. Where a name is without a table, the others must not have it: PostgreSQL may
// have seen the statement before they did.
func (m *mixed) ours(c *pg.ColumnRef) (is, known bool) {
	names := nameList(c.Fields)
	switch {
	case len(names) != len(c.Fields) || len(names) > 2:
		return false, false
	case len(names) == 2:
		return m.copied[names[0]] != nil, m.copied[names[0]] != nil != (m.others[names[0]] != nil)
	case m.has(names[0]):
		m.absent(names[0])
		return true, true
	}
	whole := m.copied[names[0]] != nil || m.others[names[0]] != nil
	return false, !whole && !systemColumns[names[0]]
}

// has reports whether a copied table has a column of the name.
func (m *mixed) has(name string) bool {
	for _, t := range m.copied {
		if t.Column(name) >= 0 {
			return true
		}
	}
	return false
}

// absent has the session say that no other table has a column of the name.
func (m *mixed) absent(name string) {
	for _, o := range m.others {
		if !slices.Contains(o.absent, name) {
			o.absent = append(o.absent, name)
		}
	}
}

// isColumn is split's.
func (m *mixed) isColumn(n *pg.Node) (is, known bool) {
	names := nameList(n.GetColumnRef().GetFields())
	if len(names) != 1 {
		return false, false
	}
	m.absent(names[0]) // what is not ours is an output's
	return m.has(names[0]), true
}

// joinedColumn is column for a column of the copied tables.
func (s *split) joinedColumn(n *pg.Node) bool {
	c := n.GetColumnRef()
	if c == nil {
		return true
	}
	ours, known := s.mixed.ours(c)
	if !known {
		s.unnamed = true
	} else if ours {
		s.column(n)
	}
	return false
}

// joinedGroupColumn is joinedColumn, and column for an aggregate over them that can be combined.
func (s *split) joinedGroupColumn(n *pg.Node) bool {
	if !isAggregate(n) {
		return s.joinedColumn(n)
	}
	c := n.GetFuncCall()
	_, theirs, known := s.mixed.sides(n)
	switch {
	case known && !theirs && s.combines(n):
		return false
	case c.AggDistinct && !c.AggWithinGroup && len(c.AggOrder) == 0:
		return true // of values that are all there
	}
	s.unnamed = true
	return false
}

// andedNodes adds what is joined by AND.
func andedNodes(dst []*pg.Node, conditions ...*pg.Node) []*pg.Node {
	for _, n := range conditions {
		if b := n.GetBoolExpr(); b != nil && b.Boolop == pg.BoolExprType_AND_EXPR {
			dst = andedNodes(dst, b.Args...)
		} else if n != nil {
			dst = append(dst, n)
		}
	}
	return dst
}

// anded joins conditions by AND; nil for none.
func anded(conditions []*pg.Node) *pg.Node {
	switch len(conditions) {
	case 0:
		return nil
	case 1:
		return conditions[0]
	}
	return &pg.Node{Node: &pg.Node_BoolExpr{BoolExpr: &pg.BoolExpr{Boolop: pg.BoolExprType_AND_EXPR, Args: conditions}}}
}

// safeCondition reports whether a condition is sure not to fail for any row: it compares columns and constants.
func safeCondition(n *pg.Node) bool {
	all := func(nodes []*pg.Node) bool {
		return !slices.ContainsFunc(nodes, func(n *pg.Node) bool { return !safeCondition(n) })
	}
	switch x := n.GetNode().(type) {
	case *pg.Node_ColumnRef:
		return true
	case *pg.Node_List:
		return all(x.List.Items)
	case *pg.Node_BoolExpr:
		return all(x.BoolExpr.Args)
	case *pg.Node_NullTest:
		return safeCondition(x.NullTest.Arg)
	case *pg.Node_BooleanTest:
		return safeCondition(x.BooleanTest.Arg)
	case *pg.Node_AExpr:
		_, name, ok := builtinName(x.AExpr.Name)
		e := x.AExpr
		switch e.Kind {
		case pg.A_Expr_Kind_AEXPR_OP, pg.A_Expr_Kind_AEXPR_IN, pg.A_Expr_Kind_AEXPR_OP_ANY, pg.A_Expr_Kind_AEXPR_DISTINCT, pg.A_Expr_Kind_AEXPR_NOT_DISTINCT,
			pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN:
			compares := slices.Contains([]string{"=", "<>", "!=", "<", "<=", ">", ">=", "BETWEEN", "NOT BETWEEN"}, name)
			return compares && ok && safeCondition(e.Lexpr) && safeCondition(e.Rexpr) || withoutRows(n)
		case pg.A_Expr_Kind_AEXPR_LIKE, pg.A_Expr_Kind_AEXPR_ILIKE:
			pattern := e.Rexpr.GetAConst().GetSval()
			return ok && e.Lexpr.GetColumnRef() != nil && pattern != nil && !strings.Contains(pattern.Sval, `\`)
		}
		return false
	}
	return withoutRows(n)
}
