package pushdown

import (
	"slices"

	"pgaccel/plan"
)

// common pulls the conjuncts that all arms of an OR have in common out of it, as PostgreSQL's
// planner does (process_duplicate_ors in prepqual.c): (a AND b) OR (a AND c) is a AND (b OR c), so
// that a can be a join's key. An arm that has nothing else makes the rest of the others no matter.
func (a *analyzer) common(conds []plan.Expr) (out []plan.Expr) {
	for _, e := range conds {
		c, ok := e.(*plan.Call)
		if !ok || c.Op != plan.OpOr {
			out = append(out, e)
			continue
		}
		arms := make([][]plan.Expr, len(c.Args))
		for i, x := range c.Args {
			arms[i] = conjuncts(nil, x)
		}
		var shared []plan.Expr
		in := func(x plan.Expr) func(plan.Expr) bool {
			return func(o plan.Expr) bool { return a.intern.same(x, o) }
		}
		for _, x := range arms[0] {
			if !slices.ContainsFunc(shared, in(x)) &&
				!slices.ContainsFunc(arms[1:], func(arm []plan.Expr) bool { return !slices.ContainsFunc(arm, in(x)) }) {
				shared = append(shared, x)
			}
		}
		if len(shared) == 0 {
			out = append(out, e)
			continue
		}
		out = append(out, shared...)
		var rest []plan.Expr
		for _, arm := range arms {
			arm = slices.DeleteFunc(arm, func(x plan.Expr) bool { return slices.ContainsFunc(shared, in(x)) })
			if len(arm) == 0 {
				rest = nil
				break
			}
			all := arm[0]
			if len(arm) > 1 {
				all = a.call(plan.OpAnd, boolType, arm...)
			}
			rest = append(rest, all)
		}
		if len(rest) > 0 {
			out = append(out, a.call(plan.OpOr, boolType, rest...))
		}
	}
	return out
}

// implied returns what conditions over several tables, by OR, say of one table: of
// (a AND b) OR (c AND d), where a and c are over the same table, that a OR c is true, as PostgreSQL's
// planner does (extract_restriction_or_clauses in orclauses.c). Fewer rows of that table are looked
// up then.
func (a *analyzer) implied(conds []plan.Expr) (out []plan.Expr) {
	for _, e := range conds {
		c, ok := e.(*plan.Call)
		tables := plan.Tables(e)
		if !ok || c.Op != plan.OpOr || tables&(tables-1) == 0 || mayFail(e) {
			continue
		}
		for t := range plan.MaxTables {
			if tables>>uint(t)&1 == 0 {
				continue
			}
			var arms []plan.Expr
			for _, x := range c.Args {
				own := slices.DeleteFunc(conjuncts(nil, x), func(x plan.Expr) bool { return plan.Tables(x) != 1<<uint(t) })
				switch len(own) {
				case 0:
				case 1:
					arms = append(arms, own[0])
				default:
					arms = append(arms, a.call(plan.OpAnd, boolType, own...))
				}
			}
			if len(arms) == len(c.Args) {
				out = append(out, a.call(plan.OpOr, boolType, arms...))
			}
		}
	}
	return out
}
