package pushdown

import (
	"slices"

	"pgaccel/plan"
	"pgaccel/vector"
)

// Under a nondeterministic collation different texts may be equal, 'a' and 'A'. Which of them a group, a
// minimum or DISTINCT shows depends on the order of rows in the server. Text of such a collation is
// passed on, counted and computed with, here; what compares it is forwarded.

// loose reports whether values of the type may be equal and differ in their bytes.
func loose(t vector.Type) bool {
	return t.Kind.IsText() && t.Collation.OID != 0 && !t.Collation.Deterministic
}

// looseFunctions are those that see the bytes of their arguments only. Others search: strpos(), replace().
var looseFunctions = []string{"textcat", "concat", "left", "right", "lower", "upper", "length", "char_length", "character_length", "octet_length", "substring", "substr"}

// checkLoose forwards a statement that compares text of a nondeterministic collation.
func (a *analyzer) checkLoose(tree plan.Rel) {
	compared := func(es ...plan.Expr) {
		if slices.ContainsFunc(es, func(e plan.Expr) bool { return e != nil && loose(e.Type()) }) {
			fail(plan.ReasonCollation, "comparison in a nondeterministic collation")
		}
	}
	orders := func(by []plan.Order) {
		for _, o := range by {
			compared(o.Expr)
		}
	}
	aggregate := func(g *plan.AggregateCall) {
		if g.Func != plan.Count || g.Distinct {
			compared(g.Arg)
		}
	}
	plan.WalkRel(tree, func(r plan.Rel) bool {
		switch x := r.(type) {
		case *plan.Aggregate:
			compared(x.Keys...)
			for i := range x.Aggs {
				aggregate(&x.Aggs[i])
			}
		case *plan.Sort:
			orders(x.By)
		case *plan.Limit:
			compared(x.Per...)
		case *plan.Window:
			compared(x.Partition...)
			orders(x.Order)
			if x.Func == plan.WindowAggregate {
				aggregate(&x.Agg)
			}
		case *plan.SetOp:
			if x.Kind != plan.Union || !x.All {
				compared(x.Left.Exprs...)
				compared(x.Right.Exprs...)
			}
		}
		plan.Exprs(r, func(e plan.Expr) {
			plan.Walk(e, func(e plan.Expr) bool {
				if c, ok := e.(*plan.Call); ok && !unseen(c) {
					compared(c.Args...)
				}
				return true
			})
		})
		return true
	})
}

// unseen reports whether a call compares none of its arguments.
func unseen(c *plan.Call) bool {
	switch c.Op {
	case plan.OpIsNull, plan.OpIsNotNull, plan.OpCoalesce, plan.OpCase, plan.OpCast:
		return true
	case plan.OpFunc:
		return slices.Contains(looseFunctions, c.Func.Name)
	}
	return false
}
