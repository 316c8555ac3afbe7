package pushdown

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
)

// usingNames are the columns that a join is by: those that USING has, or for NATURAL those of the left side
// whose names the right one has, too (transformFromClauseItem in parse_clause.c). Without any a natural join
// is one of all rows with all.
func usingNames(j *pg.JoinExpr, l, r *scope) []string {
	if !j.IsNatural {
		return nameList(j.UsingClause)
	}
	var names []string
	for _, c := range l.cols {
		if r.has(c.name) {
			names = append(names, c.name)
		}
	}
	return names
}

// using makes the conditions of USING and merges its columns: they come first in
// `*` and are not ambiguous.
func (a *analyzer) using(j *pg.JoinExpr, names []string, l, r, both *scope) []plan.Expr {
	a.operator("=")
	var on []plan.Expr
	var merged []col
	for _, name := range names {
		lc, rc := l.find([]string{name}), r.find([]string{name})
		le, re := a.use(lc), a.use(rc)
		if le.Type().Kind != re.Type().Kind || le.Type().Scale != re.Type().Scale {
			fail(plan.ReasonType, "JOIN USING columns of two types")
		}
		on = append(on, a.compare(plan.OpEq, typed(le), typed(re)))
		switch j.Jointype {
		case pg.JoinType_JOIN_RIGHT:
			lc = rc
		case pg.JoinType_JOIN_FULL: // whichever there is
			out, t := a.commonResults([]value{typed(le), typed(re)})
			lc = col{name: lc.name, e: a.call(plan.OpCoalesce, t, out...)}
		}
		merged = append(merged, lc)
	}
	cols := slices.Clone(merged)
	for _, c := range both.cols {
		if !slices.Contains(names, c.name) {
			cols = append(cols, c)
		}
	}
	both.cols = cols
	if alias := j.JoinUsingAlias; alias != nil { // it has the merged columns alone
		both.rels = append(both.rels, &rel{name: alias.Aliasname, cols: merged})
	}
	return on
}
