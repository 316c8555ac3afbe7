package pushdown

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"pgaccel/vector"
)

// Where a key is refused, groups by the columns that it is made of can be the core, if the aggregates can be
// combined: the rest computes the key once for each of them.
//
//	text   SELECT soundex(name), count(*), avg(x) FROM t GROUP BY 1
//	core   SELECT name, count(*), sum(x), count(x) FROM t GROUP BY name
//	rest   SELECT soundex(c1), coalesce(sum(c2), 0)::int8, sum(c3) / sum(c4) FROM ... GROUP BY soundex(c1)

// partialCall is an aggregate of the rest, over those of the core.
type partialCall struct {
	node       *pg.Node // in the rest
	name       string
	value, all int // columns of the core; all is the count of an avg
}

// combined are the aggregates of those of parts.
var combined = []string{"count", "sum", "avg", "min", "max", "bool_and", "bool_or", "every", "bit_and", "bit_or"}

// partialGroups takes groups by columns for the core.
func (f *finisher) partialGroups(sel *pg.SelectStmt) bool {
	s := f.newSplit(sel)
	if !s.label() || !s.groupBy(s.rest.GroupClause) {
		return false
	}
	core := s.from()
	s.grouping = true
	s.read(s.partialColumn)
	if s.unnamed || len(s.partial) == 0 {
		return false
	}
	for _, c := range s.cols {
		if c.GetColumnRef() != nil {
			core.GroupClause = append(core.GroupClause, proto.Clone(c).(*pg.Node))
		}
	}
	return len(core.GroupClause) > 0 && s.take(core)
}

// partialColumn is column for a column, or an aggregate that can be combined.
func (s *split) partialColumn(n *pg.Node) bool {
	switch c := n.GetFuncCall(); {
	case isAggregate(n) && s.combines(n):
		return false
	case isAggregate(n) && c.AggDistinct && !c.AggWithinGroup && len(c.AggOrder) == 0:
		return true // of the columns' values, which are all there
	case isAggregate(n), n.GetSubLink() != nil:
		s.unnamed = true
		return false
	}
	return s.rowColumn(n)
}

// combines notes an aggregate whose values of parts can be combined.
func (s *split) combines(n *pg.Node) bool {
	c := n.GetFuncCall()
	_, name, _ := builtinName(c.Funcname)
	extreme := name == "min" || name == "max"
	if !slices.Contains(combined, name) || c.AggDistinct && !extreme || c.AggWithinGroup || len(c.AggOrder) > 0 || len(c.Args) > 1 {
		return false
	}
	named := func(name string) *pg.Node {
		call := proto.Clone(n).(*pg.Node)
		call.GetFuncCall().Funcname = parsedExpr(name + "(1)").GetFuncCall().Funcname
		return call
	}
	p := partialCall{node: n, name: name}
	if name == "avg" {
		p.value, p.all = s.number(named("sum")), s.number(named("count"))
	} else {
		p.value = s.number(n)
	}
	s.partial = append(s.partial, p)
	return true
}

// combine puts in the place of aggregates what combines those of the core, which is planned. It is false where that
// might round otherwise, or values that are equal may differ.
func (s *split) combine() bool {
	for i, e := range s.f.core.Star.Output {
		if s.grouping && s.cols[i].GetColumnRef() != nil && !equalIsSame(e.Type()) {
			return false
		}
	}
	for _, p := range s.partial {
		kind := s.f.core.Star.Output[p.value].Type().Kind
		value := rowsAlias + "." + columnName(p.value)
		sum := "pg_catalog.sum(" + value + ")"
		var sql string
		switch {
		case p.name == "count":
			sql = "COALESCE(" + sum + ", 0)::pg_catalog.int8"
		case (p.name == "sum" || p.name == "avg") && kind != vector.Int8 && kind != vector.Numeric:
			return false
		case p.name == "sum" && kind == vector.Int8:
			sql = sum + "::pg_catalog.int8"
		case p.name == "sum":
			sql = sum
		case p.name == "avg":
			sql = sum + " OPERATOR(pg_catalog./) pg_catalog.sum(" + rowsAlias + "." + columnName(p.all) + ")"
		default:
			sql = "pg_catalog." + p.name + "(" + value + ")"
		}
		p.node.Node = parsedExpr(sql).Node
	}
	return true
}

// equalIsSame reports whether values of a type that are equal are the same in each other respect, too.
func equalIsSame(t vector.Type) bool {
	switch {
	case t.Kind.IsText():
		return t.Collation.OID == 0 || t.Collation.Deterministic
	case t.Kind.IsFloat(), t.Varying(), t.Kind.IsDocument(), t.Kind == vector.Interval, t.Kind.IsArray(), t.Kind == vector.Opaque:
		return false
	}
	return true
}
