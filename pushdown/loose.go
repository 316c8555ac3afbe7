package pushdown

import (
	"slices"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// Under a nondeterministic collation different texts may be equal, 'a' and 'A'. Which of them a group or a
// minimum shows depends on the order of rows in the server: where there are such, which is seen once groups are
// there, the statement is forwarded (package olap). Where text is compared only, one of those that are
// equal stands for all (plan.OpSame), so that the bytes decide.

// loose reports whether values of the type may be equal and differ in their bytes.
func loose(t vector.Type) bool {
	return t.Kind.IsText() && t.Collation.OID != 0 && !t.Collation.Deterministic
}

// same returns what is equal, by its bytes, where e is under the collation of t.
func (a *analyzer) same(e plan.Expr, t vector.Type) plan.Expr {
	if !loose(t) {
		return e
	}
	if e.Type().Kind == vector.BPChar {
		e = a.unpadded(e)
	}
	t.Kind, t.Typmod = vector.Text, -1
	return a.call(plan.OpSame, t, e)
}

// loosened returns text with the nondeterministic collation of t, which it has beside text that has it: rows of
// both are compared by it.
func (a *analyzer) loosened(e plan.Expr, t vector.Type) plan.Expr {
	if !loose(t) || e.Type().Collation.OID != 0 {
		return e
	}
	if k, ok := e.(plan.Const); ok {
		k.Datum.Type.Collation = t.Collation
		return k
	}
	own := e.Type()
	own.Collation = t.Collation
	return a.call(plan.OpCast, own, e)
}

// isSame reports whether an expression is such.
func isSame(e plan.Expr) bool {
	c, ok := e.(*plan.Call)
	return ok && c.Op == plan.OpSame
}

// looseFunctions are those that see the bytes of their arguments only. Others search: strpos(), replace().
var looseFunctions = []string{"textcat", "concat", "concat_ws", "left", "right", "lower", "upper", "length", "char_length", "character_length", "octet_length", "substring", "substr"}

// checkLoose forwards a statement that shows one of several texts that are equal, or searches in such.
func (a *analyzer) checkLoose(tree plan.Rel) {
	compared := func(es ...plan.Expr) {
		if slices.ContainsFunc(es, func(e plan.Expr) bool { return e != nil && loose(e.Type()) && !isSame(e) }) {
			fail(plan.ReasonCollation, "one of several equal texts, or a search, in a nondeterministic collation")
		}
	}
	aggregate := func(g *plan.AggregateCall, window bool) {
		if over := g.Func == plan.Count && !g.Distinct || !window && (g.Func.State == sqlfn.AggregateLeast || g.Func.State == sqlfn.AggregateGreatest || g.Func == plan.PercentileDisc); !over {
			compared(g.Arg)
		}
	}
	plan.WalkRel(tree, func(r plan.Rel) bool {
		switch x := r.(type) {
		case *plan.Aggregate:
			for i := range x.Aggs {
				aggregate(&x.Aggs[i], false)
			}
		case *plan.Limit:
			compared(x.Per...)
		case *plan.Window:
			compared(x.Partition...)
			if x.Func == plan.WindowAggregate {
				aggregate(&x.Agg, true)
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

// unseen reports whether equal arguments of a call cannot be told from each other, or are by their bytes.
func unseen(c *plan.Call) bool {
	switch c.Op {
	case plan.OpIsNull, plan.OpIsNotNull, plan.OpCoalesce, plan.OpCase, plan.OpCast, plan.OpSame,
		plan.OpLt, plan.OpLe, plan.OpGt, plan.OpGe: // their order is the server's, with ties
		return true
	case plan.OpFunc:
		return slices.Contains(looseFunctions, c.Func.Name)
	}
	return false
}
