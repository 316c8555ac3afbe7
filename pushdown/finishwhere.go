package pushdown

import (
	"regexp"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// A condition of WHERE that is refused is left to the rest where it cannot fail: the core has the others.
//
//	text   SELECT count(*) FROM docs WHERE day > $1 AND words @@ 'cat & dog'
//	core   SELECT words FROM docs WHERE day > $1
//	rest   SELECT count(*) FROM (SELECT ... unnest($2) ...) rows WHERE rows.c1 @@ 'cat & dog'
//
// One that may fail is not: PostgreSQL may test it for rows that others leave out.

// maxConditions bounds how many conditions are looked at one by one.
const maxConditions = 6

// conditions takes the rows of FROM, and of those conditions that are planned, for the core.
func (f *finisher) conditions(sel *pg.SelectStmt) bool {
	all := andedNodes(nil, sel.WhereClause)
	if len(all) == 0 || len(all) > maxConditions {
		return false
	}
	s := f.newSplit(sel)
	var own []*pg.Node
	for _, c := range andedNodes(nil, s.rest.WhereClause) {
		if !comparesConstant(c) || len(all) > 1 && f.plansCondition(sel, c) {
			own = append(own, c)
		} else {
			s.left = append(s.left, c)
		}
	}
	if len(s.left) == 0 || !s.label() || !s.groupBy(s.rest.GroupClause) {
		return false
	}
	core := s.from()
	core.WhereClause, s.rest.WhereClause = anded(own), anded(s.left)
	s.read(s.rowColumn)
	return !s.unnamed && len(s.cols) > 0 && s.take(core)
}

// plansCondition reports whether a condition of sel can be planned.
func (f *finisher) plansCondition(sel *pg.SelectStmt, condition *pg.Node) bool {
	probe := selectFrom(sel)
	probe.WhereClause = condition
	probe.TargetList = []*pg.Node{selectItem(parsedExpr("count(*)"), "")}
	st, _, ok := f.planned(probe)
	return ok && st.Star != nil
}

// comparesConstant reports whether a condition has the form of one that is left to the rest: cannotFail sees to its types.
func comparesConstant(n *pg.Node) bool {
	switch x := n.GetNode().(type) {
	case *pg.Node_BoolExpr:
		return !slices.ContainsFunc(x.BoolExpr.Args, func(n *pg.Node) bool { return !comparesConstant(n) })
	case *pg.Node_AExpr:
		l, r := x.AExpr.Lexpr, x.AExpr.Rexpr
		return x.AExpr.Kind == pg.A_Expr_Kind_AEXPR_OP && (l.GetColumnRef() != nil && isConstant(r) || r.GetColumnRef() != nil && isConstant(l))
	}
	return false
}

// isConstant reports whether n is a literal, or a cast of one: what is wrong about it is said when the statement is parsed.
func isConstant(n *pg.Node) bool {
	if c := n.GetTypeCast(); c != nil {
		return c.Arg.GetAConst() != nil
	}
	return n.GetAConst() != nil
}

var (
	comparing  = []string{"=", "<>", "!=", "<", "<=", ">", ">="}
	ranging    = append([]string{"@>", "<@", "&&", "<<", ">>", "&<", "&>"}, comparing...)
	networking = append([]string{"<<", "<<=", ">>", ">>=", "&&"}, comparing...)
)

// totalOperators have a result for all values of a type of columns and all constants that they take beside it.
// What computes floats may overflow, and is not among them: distances, areas, circles; nor -|-, which looks for the next value.
var totalOperators = map[string][]string{
	"tsvector": append([]string{"@@"}, comparing...), "tsquery": append([]string{"@>", "<@"}, comparing...),
	"jsonb": {"@?", "@@"}, "inet": networking, "cidr": networking, "money": comparing, "interval": comparing,
	"oid":   comparing,
	"point": {"<<", ">>", "<<|", "|>>", "<^", ">^", "~="}, "box": {"@>", "<@", "&&", "<<", ">>", "&<", "&>", "<<|", "|>>", "&<|", "|&>", "~="},
	"text": {"~<~", "~<=~", "~>~", "~>=~"}, "varchar": {"~<~", "~<=~", "~>~", "~>=~"}, "bpchar": {"~<~", "~<=~", "~>~", "~>=~"},
	"int4range": ranging, "int8range": ranging, "numrange": ranging, "daterange": ranging, "tsrange": ranging, "tstzrange": ranging,
}

// failingPath matches jsonpath that may fail in spite of what @? and @@ suppress: dates and times without a time zone, a numeric's typmod,
// what rounds up past the longest numeric, variables. Names of methods are read in either case, and comments may follow them.
var failingPath = regexp.MustCompile(`(?i)date|time|decimal|ceiling|floor|\\|\$\s*[^\s.\[\])?*+/%<>=!&|,-]`)

// cannotFail reports whether a condition of the rest has a result for every row: an operator of totalOperators between a column of
// the core and a constant.
func (f *finisher) cannotFail(n *pg.Node) bool {
	if b := n.GetBoolExpr(); b != nil {
		return !slices.ContainsFunc(b.Args, func(n *pg.Node) bool { return !f.cannotFail(n) })
	}
	e := n.GetAExpr()
	if e == nil {
		return false
	}
	column, constant := e.Lexpr, e.Rexpr
	if column.GetColumnRef() == nil {
		column, constant = constant, column
	}
	i, ok := f.coreColumn(column)
	if !ok {
		return false
	}
	_, operator, ok := builtinName(e.Name)
	name := columnTypeName(f.core.Star.Output[i].Type())
	if !ok || !slices.Contains(totalOperators[name], operator) {
		return false
	}
	if name != "jsonb" {
		return true
	}
	if cast := constant.GetTypeCast(); cast != nil {
		constant = cast.Arg
	}
	path := constant.GetAConst().GetSval()
	return path != nil && !failingPath.MatchString(path.Sval)
}

// columnTypeName is a type's name in pg_type.
func columnTypeName(t vector.Type) string {
	if t.Kind == vector.Opaque {
		return sqltype.OpaqueOf(t.Collation.OID).Name
	}
	return sqltype.Of(t.Kind).Name
}
