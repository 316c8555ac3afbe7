package pushdown

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
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

// groupBy takes the keys of a GROUP BY, with expressions in the place of the names and positions of outputs. Keys of grouping sets
// must be columns, each of which is one key: of two outputs that are written alike one is null in a set that lacks it.
func (s *split) groupBy(items []*pg.Node) bool {
	if !s.resolveGroups(items) {
		return false
	}
	for _, g := range items {
		for _, k := range groupKeys(g) {
			if hasSets(items) && (k.GetColumnRef() == nil || slices.ContainsFunc(s.keys, func(o *pg.Node) bool { return sameExpr(o, k) })) {
				return false
			}
			s.keys = append(s.keys, k)
		}
	}
	return true
}
