package pushdown

import (
	"slices"

	"pgaccel/plan"
	"pgaccel/vector"
)

// maxCalls bounds the calls in one expression's tree, and maxAllCalls those in the
// whole query. CASE x, NULLIF and BETWEEN use an operand twice, so that nesting them
// grows trees exponentially.
const (
	maxCalls    = 20_000
	maxAllCalls = 200_000
)

// maxOperators bounds the operators of a tree, those of a Shared counted again each time that it is read: walks over
// a tree do. A WITH query that reads the one before it twice doubles them.
const maxOperators = 20_000

// call builds a Call, counting.
func (a *analyzer) call(op plan.Op, t vector.Type, args ...plan.Expr) *plan.Call {
	return a.sized(&plan.Call{Op: op, Args: args, T: t})
}

func (a *analyzer) sized(c *plan.Call) *plan.Call {
	n := 1
	for _, x := range c.Args {
		if sub, ok := x.(*plan.Call); ok {
			n += a.sizes[sub]
		}
	}
	switch c.Op {
	case plan.OpAdd, plan.OpSub, plan.OpMul, plan.OpDiv, plan.OpMod, plan.OpNeg, plan.OpAbs, plan.OpCast, plan.OpFunc:
		if !readsRows(c) {
			a.constants = append(a.constants, c)
		} else if !slices.ContainsFunc(c.Args, func(x plan.Expr) bool { return !foldable(x) }) {
			// It may fail as PostgreSQL plans, and here for no row that is not there.
			fail(plan.ReasonEvaluation, "a call that PostgreSQL may fold to a constant")
		}
	}
	a.built++
	if n > maxCalls || a.built > maxAllCalls {
		a.tooLarge("an expression of this size")
	}
	a.sizes[c] = n
	return c
}

// share returns what reads the rows of p, which is whole, from several places.
func (a *analyzer) share(number int, name string, p *plan.Project) *plan.Shared {
	s := &plan.Shared{Number: number, Name: name, Plan: p}
	if _, known := a.operators[p]; !known {
		a.operators[p] = a.countOperators(p)
	}
	return s
}

// countOperators fails where a tree has more than maxOperators. What is shared is counted once and added.
func (a *analyzer) countOperators(tree plan.Rel) (n int) {
	plan.WalkRel(tree, func(r plan.Rel) bool {
		n++
		s, shared := r.(*plan.Shared)
		if shared {
			n += a.operators[s.Plan]
		}
		return !shared
	})
	if n > maxOperators {
		a.tooLarge("a query of this size")
	}
	return n
}

// checkSize bounds the tree as a whole.
func (a *analyzer) checkSize(tree plan.Rel) {
	a.countOperators(tree)
	total := 0
	plan.WalkRel(tree, func(r plan.Rel) bool {
		plan.Exprs(r, func(e plan.Expr) {
			if c, ok := e.(*plan.Call); ok {
				total += a.sizes[c]
			}
		})
		return true
	})
	if total > maxAllCalls {
		a.tooLarge("a query of this size")
	}
}
