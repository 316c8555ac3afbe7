package pushdown

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/syntax"
)

// Keys of GROUP BY where a SELECT is split.

// groupKeys are the expressions of an item of GROUP BY.
func groupKeys(g *pg.Node) (keys []*pg.Node) {
	var inner []*pg.Node
	switch x := g.GetNode().(type) {
	case *pg.Node_GroupingSet:
		inner = x.GroupingSet.Content
	case *pg.Node_RowExpr:
		inner = x.RowExpr.Args
	default:
		return []*pg.Node{g}
	}
	for _, n := range inner {
		keys = append(keys, groupKeys(n)...)
	}
	return keys
}

// unsureKeys reports whether it is not sure what of grouping sets PostgreSQL takes for a key, where it is a part of an
// expression: another one of the same column may be it with a cast that is not written, and what is neither a column nor
// a call may be simplified first (checkParts). Groups of such sets are the rest's.
func (s *split) unsureKeys() bool {
	if !hasSets(s.sel.GroupClause) {
		return false
	}
	for i, a := range s.keys {
		if a.GetColumnRef() == nil && a.GetFuncCall() == nil {
			return true
		}
		for _, b := range s.keys[:i] {
			if (a.GetFuncCall() != nil || b.GetFuncCall() != nil) && shareColumn(a, b) {
				return true
			}
		}
	}
	return false
}

// keysTwice reports whether grouping sets have a key twice: where these are two outputs, as in SELECT a, a AS b GROUP BY
// ROLLUP (a, b), each is null by itself, and elsewhere that would be one.
func keysTwice(groups []*pg.Node) bool {
	var keys []*pg.Node
	for _, g := range groups {
		keys = append(keys, groupKeys(g)...)
	}
	for i, a := range keys {
		if hasSets(groups) && slices.ContainsFunc(keys[:i], func(b *pg.Node) bool {
			return exprText(a) == exprText(b) || shareColumn(a, b)
		}) {
			return true
		}
	}
	return false
}

// shareColumn reports whether two expressions read a column of one name.
func shareColumn(a, b *pg.Node) (do bool) {
	syntax.Walk(a, func(x *pg.Node) bool {
		syntax.Walk(b, func(y *pg.Node) bool {
			do = do || x.GetColumnRef() != nil && y.GetColumnRef() != nil && sameColumn(x.GetColumnRef(), y.GetColumnRef())
			return !do
		})
		return !do
	})
	return do
}

// resolvedGroups is resolveGroups of a GROUP BY. Keys of grouping sets must be columns: of two outputs that are written alike one
// is null in a set that lacks it.
func (s *split) resolvedGroups(items []*pg.Node) bool {
	if !s.resolveGroups(items) {
		return false
	}
	for _, g := range items {
		if hasSets(items) && slices.ContainsFunc(groupKeys(g), func(k *pg.Node) bool { return k.GetColumnRef() == nil }) {
			return false
		}
	}
	return true
}
