package pushdown

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/vector"
)

// orderBy analyses ORDER BY: an output's name first, then its number, then an
// expression (findTargetlistEntrySQL92).
func (a *analyzer) orderBy(items []*pg.Node, s *scope, targets []target, outputs []plan.Expr) (order []plan.Order) {
	for _, n := range items {
		a.attempt(func() { order = a.orderItem(order, n, s, targets, outputs) })
	}
	return order
}

// orderItem adds an item of ORDER BY that is not there yet.
func (a *analyzer) orderItem(order []plan.Order, n *pg.Node, s *scope, targets []target, outputs []plan.Expr) []plan.Order {
	by, o := n.GetSortBy(), a.direction(n)
	if name, ok := plainName(by.Node); ok {
		o.Expr = a.byName(name, targets, outputs)
	}
	if o.Expr == nil {
		o.Expr = a.ordinalOrExpr(by.Node, s, outputs, "ORDER BY")
	}
	o.Expr = a.keyOf(o.Expr)
	noOrder(o.Expr.Type().Kind)
	o.Expr = a.collated(o.Expr)
	if !slices.ContainsFunc(order, func(p plan.Order) bool { return a.intern.same(p.Expr, o.Expr) }) {
		order = append(order, o)
	}
	return order
}

// direction is how an item of ORDER BY sorts.
func (a *analyzer) direction(n *pg.Node) plan.Order {
	by := n.GetSortBy()
	o := plan.Order{Desc: by.GetSortbyDir() == pg.SortByDir_SORTBY_DESC}
	if by == nil || by.SortbyDir == pg.SortByDir_SORTBY_USING {
		a.at = n
		o.Desc = a.descends(by.GetUseOp())
	}
	o.NullsFirst = o.Desc
	switch by.SortbyNulls {
	case pg.SortByNulls_SORTBY_NULLS_FIRST:
		o.NullsFirst = true
	case pg.SortByNulls_SORTBY_NULLS_LAST:
		o.NullsFirst = false
	}
	return o
}

// descends reports whether the operator of ORDER BY ... USING is > and not <, which are those of DESC and ASC for all types that are
// ordered here (addTargetToSortList).
func (a *analyzer) descends(operator []*pg.Node) bool {
	symbol := ""
	if len(operator) > 0 {
		symbol = a.opSymbol(operator)
	}
	if symbol != "<" && symbol != ">" {
		fail(plan.ReasonShape, "ORDER BY ... USING "+symbol)
	}
	return symbol == ">"
}

// groupBy analyses GROUP BY without grouping sets.
func (a *analyzer) groupBy(items []*pg.Node, item groupItem) []plan.Expr {
	var out []plan.Expr
	for _, n := range items {
		if row := n.GetRowExpr(); row != nil && row.RowFormat == pg.CoercionForm_COERCE_IMPLICIT_CAST {
			out = append(out, a.groupBy(row.Args, item)...)
			continue
		}
		a.attempt(func() { out = append(out, item(n).e) })
	}
	return out
}

// groupKey is an expression of GROUP BY.
type groupKey struct {
	e plan.Expr
	// output is the output that it means, -1 for none: PostgreSQL groups by outputs,
	// adding those that the select list lacks.
	output  int
	written *pg.Node // itself, or that output as it is written
}

// groupItem analyses one expression of GROUP BY.
type groupItem func(n *pg.Node) groupKey

// groupItems looks for a column's name first, then an output's, then an output's number.
func (a *analyzer) groupItems(s *scope, targets []target, outputs []plan.Expr) groupItem {
	return func(n *pg.Node) groupKey {
		k := groupKey{output: -1, written: n}
		if name, ok := plainName(n); ok && !s.has(name) {
			if k.e = a.byName(name, targets, outputs); k.e != nil {
				k.output = slices.IndexFunc(targets, func(t target) bool { return t.name == name })
				k.written = targets[k.output].written
			}
		}
		if k.e == nil {
			k.e = a.ordinalOrExpr(n, s, outputs, "GROUP BY")
			if c := n.GetAConst(); c != nil {
				k.output = int(c.GetIval().GetIval()) - 1
				k.written = targets[k.output].written
			} else {
				k.output = slices.IndexFunc(outputs, func(o plan.Expr) bool { return a.intern.same(o, k.e) })
			}
		}
		if a.aggregates(k.e) {
			fail(plan.ReasonShape, "aggregate in GROUP BY")
		}
		a.keySubLink = a.keySubLink || len(keyLinks([]*pg.Node{k.written})) > 0
		return k
	}
}

// collated gives text without a collation, such as a CASE of constants, the database's
// default, by which it is ordered.
func (a *analyzer) collated(e plan.Expr) plan.Expr {
	t := e.Type()
	if (t.Kind != vector.Text && t.Kind != vector.Varchar) || t.Collation.OID != 0 {
		return e
	}
	if c, ok := a.defaultCollation(); ok {
		t.Collation = c
		return a.call(plan.OpCast, t, e)
	}
	return e
}

// defaultCollation returns what is known of the database's default.
func (a *analyzer) defaultCollation() (c vector.Collation, ok bool) {
	if a.cat.Collation.OID != 0 {
		return a.cat.Collation, true
	}
	for _, tab := range a.cat.Tables {
		for _, c := range tab.Columns {
			if c.Type.Kind.IsText() && c.Type.Collation.OID == defaultCollation {
				return c.Type.Collation, true
			}
		}
	}
	return c, false
}

// defaultCollation is the collation "default" (pg_collation.dat): the database's.
const defaultCollation = 100

// The collations "C" and "POSIX".
const (
	cCollation     = 950
	posixCollation = 951
)

// plainName returns an unqualified column name.
func plainName(n *pg.Node) (string, bool) {
	if r := n.GetColumnRef(); r != nil && len(r.Fields) == 1 {
		if s := r.Fields[0].GetString_(); s != nil {
			return s.Sval, true
		}
	}
	return "", false
}

// byName finds an output by name, nil where there is none.
func (a *analyzer) byName(name string, targets []target, outputs []plan.Expr) plan.Expr {
	var found plan.Expr
	for i, t := range targets {
		if t.name != name {
			continue
		}
		if found != nil && !a.intern.same(found, outputs[i]) {
			fail(plan.ReasonShape, "ambiguous output name")
		}
		found = outputs[i]
	}
	return found
}

func (a *analyzer) ordinalOrExpr(n *pg.Node, s *scope, outputs []plan.Expr, clause string) plan.Expr {
	if c := n.GetAConst(); c != nil {
		v, ok := c.Val.(*pg.A_Const_Ival)
		if !ok || v.Ival.GetIval() < 1 || int(v.Ival.GetIval()) > len(outputs) {
			a.at = n
			fail(plan.ReasonShape, clause+" a constant")
		}
		e := outputs[v.Ival.GetIval()-1]
		if e == nil {
			a.at = n
			fail(plan.ReasonType, clause+" a column that cannot be read")
		}
		return e
	}
	v := a.expr(n, s)
	if v.unknown() {
		a.at = n
		fail(plan.ReasonParameter, clause+" a value without a type")
	}
	return v.e
}

// limit analyses LIMIT and OFFSET: nil for none, LIMIT ALL and LIMIT NULL.
func (a *analyzer) limit(n *pg.Node) plan.Expr {
	if n == nil {
		return nil
	}
	v := a.expr(n, &scope{})
	if v.null {
		return nil
	}
	a.callsCast(v, vector.Int8)
	switch e := a.resolve(v, vector.TypeOf(vector.Int8)).(type) {
	case plan.Const:
		if e.Datum.Type.Kind.IsInt() && !e.Null && e.I >= 0 {
			return plan.Const{Datum: vector.Int(vector.Int8, e.I)}
		}
	case plan.Param:
		if e.T.Kind.IsInt() {
			return e
		}
	}
	a.at = n
	fail(plan.ReasonShape, "LIMIT or OFFSET of this form")
	return nil
}

// subLinkName is figureName of a sub-select; "" where its name is that of the first of `*`.
func subLinkName(link *pg.SubLink) (name string, strength int) {
	switch link.SubLinkType {
	case pg.SubLinkType_ARRAY_SUBLINK:
		return "array", 2
	case pg.SubLinkType_EXISTS_SUBLINK:
		return "exists", 2
	case pg.SubLinkType_EXPR_SUBLINK:
	default:
		return "?column?", 0
	}
	sel := link.Subselect.GetSelectStmt()
	for sel.GetLarg() != nil {
		sel = sel.Larg
	}
	if len(sel.GetValuesLists()) > 0 {
		return "column1", 2
	}
	if len(sel.GetTargetList()) == 0 {
		return "", 2
	}
	t := sel.TargetList[0].GetResTarget()
	if t.GetName() != "" {
		return t.Name, 2
	}
	if fields := t.GetVal().GetColumnRef().GetFields(); len(fields) > 0 && fields[len(fields)-1].GetAStar() != nil {
		return "", 2
	}
	name, _ = figureName(t.GetVal())
	return name, 2
}

// figureName is the name that PostgreSQL gives an output without AS, and how sure
// it is of it (FigureColnameInternal in parse_target.c).
func figureName(n *pg.Node) (name string, strength int) {
	last := func(nodes []*pg.Node) string {
		for i := len(nodes) - 1; i >= 0; i-- {
			if s := nodes[i].GetString_(); s != nil {
				return s.Sval
			}
		}
		return ""
	}
	switch x := n.GetNode().(type) {
	case *pg.Node_ColumnRef:
		if name := last(x.ColumnRef.Fields); name != "" {
			return name, 2
		}
	case *pg.Node_FuncCall:
		return last(x.FuncCall.Funcname), 2
	case *pg.Node_AIndirection:
		if name := last(x.AIndirection.Indirection); name != "" {
			return name, 2
		}
		return figureName(x.AIndirection.Arg)
	case *pg.Node_SubLink:
		return subLinkName(x.SubLink)
	case *pg.Node_AArrayExpr:
		return "array", 2
	case *pg.Node_RowExpr:
		return "row", 2
	case *pg.Node_XmlExpr:
		if x.XmlExpr.Op != pg.XmlExprOp_IS_DOCUMENT {
			return strings.ToLower(strings.Replace(x.XmlExpr.Op.String(), "IS_", "", 1)), 2
		}
	case *pg.Node_XmlSerialize:
		return "xmlserialize", 2
	case *pg.Node_AExpr:
		if x.AExpr.Kind == pg.A_Expr_Kind_AEXPR_NULLIF {
			return "nullif", 2
		}
	case *pg.Node_TypeCast:
		if name, strength = figureName(x.TypeCast.Arg); strength < 2 && x.TypeCast.TypeName != nil {
			return last(x.TypeCast.TypeName.Names), 1
		}
		return name, strength
	case *pg.Node_CollateClause:
		return figureName(x.CollateClause.Arg)
	case *pg.Node_CaseExpr:
		if name, strength = figureName(x.CaseExpr.Defresult); strength < 2 {
			return "case", 1
		}
		return name, strength
	case *pg.Node_CoalesceExpr:
		return "coalesce", 2
	case *pg.Node_MinMaxExpr:
		return strings.ToLower(strings.TrimPrefix(x.MinMaxExpr.Op.String(), "IS_")), 2
	case *pg.Node_GroupingFunc:
		return "grouping", 2
	case *pg.Node_SqlvalueFunction:
		name := strings.ToLower(strings.TrimPrefix(x.SqlvalueFunction.Op.String(), "SVFOP_"))
		return strings.TrimSuffix(name, "_n"), 2
	}
	return "?column?", 0
}
