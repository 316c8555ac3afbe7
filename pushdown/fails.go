package pushdown

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
)

// What may be an error of the server's must not be left out here where the server computes it.

// mayFail reports whether computing an expression may be an error, whatever is known of its columns.
func mayFail(e plan.Expr) bool { return e != nil && plan.Facts{}.MayFail(e) }

// relFails reports whether something that is computed for rows or groups may fail.
func relFails(r plan.Rel) (fails bool) {
	plan.WalkRel(r, func(r plan.Rel) bool {
		plan.Exprs(r, func(e plan.Expr) { fails = fails || mayFail(e) })
		fails = fails || operatorFails(r)
		return !fails
	})
	return fails
}

// operatorFails reports whether an operator may be an error though its expressions are none.
func operatorFails(r plan.Rel) bool {
	variable := func(e plan.Expr) bool {
		_, constant := e.(plan.Const)
		return e != nil && !constant
	}
	switch x := r.(type) {
	case *plan.Join: // several rows
		return x.Kind == plan.Single && !oneRow(x.Right)
	case *plan.Limit: // a negative number
		return variable(x.Count) || variable(x.Offset)
	case *plan.Series: // a step of zero
		return variable(x.Step)
	case *plan.ProjectSet:
		return slices.ContainsFunc(x.Calls, func(c plan.SetCall) bool { return c.Func.Fails })
	case *plan.Aggregate:
		return slices.ContainsFunc(x.Aggs, aggregateFails)
	case *plan.Window:
		return aggregateFails(x.Agg) || variable(x.Frame.Start.Offset) || variable(x.Frame.End.Offset) ||
			(x.Func == plan.Ntile || x.Func == plan.NthValue) && variable(x.Offset)
	}
	return false
}

// aggregateFails reports whether an aggregate may be an error for its values: sums of floats leave their range.
func aggregateFails(g plan.AggregateCall) bool {
	return g.Func != nil && g.Arg != nil && g.AddsFloats()
}

// existsComputes reports whether the server computes what a sub-select of EXISTS yields: it keeps the outputs of
// one that is not plain (simplify_EXISTS_query in subselect.c), and of its rows up to the first they may fail.
func existsComputes(sel *pg.SelectStmt, rows plan.Rel) bool {
	computes := sel.Op != pg.SetOperation_SETOP_NONE || sel.HavingClause != nil || sel.LimitOffset != nil || sel.LimitCount != nil
	plan.WalkRel(rows, func(r plan.Rel) bool {
		switch x := r.(type) {
		case *plan.Aggregate:
			computes = computes || len(x.Aggs) > 0 || len(x.Sets) > 0
		case *plan.Window:
			computes = true
		}
		return !computes
	})
	return computes
}

// leftOutFails reports whether an order, or a window function by itself, may fail: whether there are rows does not depend on them.
func leftOutFails(r plan.Rel) (fails bool) {
	plan.WalkRel(r, func(r plan.Rel) bool {
		switch x := r.(type) {
		case *plan.Sort:
			fails = fails || slices.ContainsFunc(x.By, func(by plan.Order) bool { return mayFail(by.Expr) })
		case *plan.Window:
			fails = fails || operatorFails(r)
		}
		return !fails
	})
	return fails
}
