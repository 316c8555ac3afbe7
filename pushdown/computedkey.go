package pushdown

import (
	"math/bits"
	"slices"

	"pgaccel/plan"
)

// computedKey makes a relation of a table, with a column more by which it can be joined: the
// expression that a condition equates with one over other tables (`substring(a.zip, 1, 2) =
// substring(b.zip, 1, 2)`), or else a constant, where every row meets every other and conditions
// choose among them. It reports whether there was a table to do this to.
func (s *star) computedKey(t *joinTree) bool {
	free := func(i int) bool { return t.optional[i] == nil && t.asks[i] == nil }
	best, cond, side := -1, -1, 0
	for k, e := range s.conds {
		c, ok := e.(*plan.Call)
		if !ok || c.Op != plan.OpEq || !lookupPossible(c.Args[0].Type(), c.Args[1].Type()) || mayFail(c) {
			continue
		}
		for i, a := range c.Args {
			set, other := plan.Tables(a), plan.Tables(c.Args[1-i])
			if _, plain := a.(plan.Column); plain || bits.OnesCount64(set) != 1 || other == 0 || set&other != 0 {
				continue
			}
			if at := bits.TrailingZeros64(set); free(at) && (best < 0 || s.sourceOf(at).Meta.Rows < s.sourceOf(best).Meta.Rows) {
				best, cond, side = at, k, i
			}
		}
	}
	if best >= 0 {
		c := *s.conds[cond].(*plan.Call)
		c.Args = slices.Clone(c.Args)
		s.conds = slices.Delete(slices.Clone(s.conds), cond, cond+1)
		c.Args[side] = s.nest(1<<best, c.Args[side])
		s.conds = append(s.conds, &c)
		return true
	}
	for _, i := range t.scans {
		if _, has := s.keys[i]; !has && free(i) && !s.equated(i) && (best < 0 || s.sourceOf(i).Meta.Rows < s.sourceOf(best).Meta.Rows) {
			best = i
		}
	}
	if best < 0 || len(t.scans) < 2 {
		return false
	}
	s.crossJoin(s.nest(1<<best, one).(plan.Column))
	return true
}

// crossJoin notes that a column holds a constant, by which each row meets every other.
func (s *star) crossJoin(key plan.Column) {
	if s.keys == nil {
		s.keys = map[int]int{}
	}
	s.keys[key.Table] = key.Column
}

// equated reports whether a condition equates anything of a table with anything of others: of a type of
// which there are no lookups. PostgreSQL has hash joins for it, and does not look at every pair.
func (s *star) equated(t int) bool {
	return slices.ContainsFunc(s.conds, func(e plan.Expr) bool {
		c, ok := e.(*plan.Call)
		if !ok || c.Op != plan.OpEq {
			return false
		}
		a, b := plan.Tables(c.Args[0]), plan.Tables(c.Args[1])
		return a != 0 && b != 0 && a&b == 0 && (a|b)&(1<<t) != 0
	})
}
