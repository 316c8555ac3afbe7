package pushdown

import (
	"slices"

	"pgaccel/plan"
	"pgaccel/vector"
)

// equality is a condition `column of Table = expression over other tables`, or a
// constant.
type equality struct {
	cond   int // position in the list that it came from
	column int
	outer  plan.Expr
}

// joinTree chooses the driving table and hangs every other table on it by a unique
// key; where that cannot be, all but one: that one is attached by columns that are no
// key, so that a row may meet several of its rows (a many-to-many table of a hierarchy
// with weights). It returns the joins in the order of attachment, tables still numbered by
// appearance, and the positions in s.conds that became join keys.
func (s *star) joinTree() (root int, joins []plan.StarJoin, used map[int]bool) {
	optional := map[int]*leftJoin{}
	for i := range s.lefts {
		optional[s.lefts[i].table] = &s.lefts[i]
	}
	// The largest table first: the driving table's rows are the query's work.
	var roots []int
	for _, i := range s.scans {
		if optional[i] == nil {
			roots = append(roots, i)
		}
	}
	slices.SortStableFunc(roots, func(i, j int) int {
		switch ri, rj := s.tables[i].Meta.Rows, s.tables[j].Meta.Rows; {
		case ri > rj:
			return -1
		case ri < rj:
			return 1
		}
		return 0
	})
	for _, many := range []bool{false, true} {
		for _, r := range roots {
			if joins, used, ok := s.attachAll(r, optional, many); ok {
				return r, joins, used
			}
		}
	}
	s.at = s.refs[s.unattached(roots[0], optional)]
	fail(plan.ReasonShape, "join on no unique key")
	return 0, nil, nil
}

// unattached returns the first table that cannot be attached to a driving table.
func (s *star) unattached(root int, optional map[int]*leftJoin) int {
	joins, _, _ := s.attachAll(root, optional, true)
	for _, t := range s.scans {
		if t != root && !slices.ContainsFunc(joins, func(j plan.StarJoin) bool { return j.Table == t }) {
			return t
		}
	}
	return root
}

// attachAll tries one driving table, with one join on no unique key if many is set.
func (s *star) attachAll(root int, optional map[int]*leftJoin, many bool) ([]plan.StarJoin, map[int]bool, bool) {
	attached := uint64(1) << root
	used := map[int]bool{}
	var joins []plan.StarJoin
	for progress := true; progress && len(joins) < len(s.scans)-1; {
		progress = false
		for _, t := range s.scans {
			if attached&(1<<t) != 0 {
				continue
			}
			var j plan.StarJoin
			var ok bool
			if l := optional[t]; l != nil {
				j, ok = s.attachLeft(t, attached, l)
			} else {
				j, ok = s.attachInner(t, attached, used)
			}
			if ok {
				attached |= 1 << t
				joins = append(joins, j)
				progress = true
			}
		}
		if !progress && many {
			if j, ok := s.attachMany(attached, optional, used); ok {
				attached |= 1 << j.Table
				joins = append(joins, j)
				progress, many = true, false
			}
		}
	}
	return joins, used, len(joins) == len(s.scans)-1
}

func (s *star) attachInner(t int, attached uint64, used map[int]bool) (plan.StarJoin, bool) {
	eqs := s.equalities(s.conds, t, attached)
	keys := s.uniqueKey(t, eqs)
	if keys == nil {
		return plan.StarJoin{}, false
	}
	j := plan.StarJoin{Table: t, Kind: plan.Inner}
	for _, e := range keys {
		used[e.cond] = true
		j.Key, j.Outer = append(j.Key, e.column), append(j.Outer, e.outer)
	}
	return j, true
}

// attachMany attaches the smallest table that some columns equate with those attached.
func (s *star) attachMany(attached uint64, optional map[int]*leftJoin, used map[int]bool) (best plan.StarJoin, ok bool) {
	for _, t := range s.scans {
		if attached&(1<<t) != 0 || optional[t] != nil || ok && s.tables[t].Meta.Rows >= s.tables[best.Table].Meta.Rows {
			continue
		}
		j := plan.StarJoin{Table: t, Kind: plan.Inner, Many: true}
		for _, e := range s.equalities(s.conds, t, attached) {
			if plan.Tables(e.outer) != 0 && !slices.Contains(j.Key, e.column) {
				j.Key, j.Outer = append(j.Key, e.column), append(j.Outer, e.outer)
			}
		}
		if j.Key != nil {
			best, ok = j, true
		}
	}
	if ok { // a second equality of a column stays a condition
		for _, e := range s.equalities(s.conds, best.Table, attached) {
			if i := slices.Index(best.Key, e.column); i >= 0 && s.intern.same(best.Outer[i], e.outer) {
				used[e.cond] = true
			}
		}
	}
	return best, ok
}

// attachLeft attaches by ON alone, because WHERE comes after the nulls are made.
func (s *star) attachLeft(t int, attached uint64, l *leftJoin) (plan.StarJoin, bool) {
	eqs := s.equalities(l.on, t, attached)
	keys := s.uniqueKey(t, eqs)
	if keys == nil {
		return plan.StarJoin{}, false
	}
	j := plan.StarJoin{Table: t, Kind: plan.Left}
	isKey := map[int]bool{}
	for _, e := range keys {
		isKey[e.cond] = true
		j.Key, j.Outer = append(j.Key, e.column), append(j.Outer, e.outer)
	}
	for i, c := range l.on {
		if isKey[i] {
			continue
		}
		if plan.Tables(c)&^(1<<t) != 0 {
			fail(plan.ReasonShape, "outer join with a condition over other tables")
		}
		j.On = append(j.On, c)
	}
	return j, true
}

// equalities finds the conditions that equate a column of t with an expression over
// attached tables, in a form that a lookup can use. Those with a constant, which
// complete a key such as (id, language), come last.
func (s *star) equalities(conds []plan.Expr, t int, attached uint64) []equality {
	var out, fixed []equality
	for i, e := range conds {
		c, ok := e.(*plan.Call)
		if !ok || c.Op != plan.OpEq {
			continue
		}
		for side := range 2 {
			col, isColumn := c.Args[side].(plan.Column)
			other := c.Args[1-side]
			tables := plan.Tables(other)
			if !isColumn || col.Table != t || tables&^attached != 0 || !lookupPossible(col.T, other.Type()) {
				continue
			}
			eq := equality{cond: i, column: col.Column, outer: other}
			switch {
			case tables != 0:
				out = append(out, eq)
			case isLeaf(other):
				fixed = append(fixed, eq)
			}
		}
	}
	if out == nil {
		return nil // constants alone make no join
	}
	return append(out, fixed...)
}

// lookupPossible reports whether equal values of the two types are held alike.
func lookupPossible(key, outer vector.Type) bool {
	switch {
	case key.Kind.IsInt() && outer.Kind.IsInt():
		return true
	case key.Kind.IsFloat() || outer.Kind.IsFloat():
		return false // NaN and the two zeros
	case key.Kind == vector.Numeric && outer.Kind == vector.Numeric:
		return key.Scale == outer.Scale && key.Scale != vector.VaryingScale
	case key.Kind == vector.BPChar || outer.Kind == vector.BPChar:
		return key.Kind == outer.Kind && key.Typmod == outer.Typmod // a constant has none
	case key.Kind.IsText() && outer.Kind.IsText():
		return true
	}
	return key.Kind == outer.Kind
}

// uniqueKey picks the equalities for one unique index of t, the shortest, nil where
// none is covered.
func (s *star) uniqueKey(t int, eqs []equality) []equality {
	var best []equality
	for _, ix := range s.tables[t].Meta.Indexes {
		if !ix.Unique || len(ix.Columns) == 0 || best != nil && len(ix.Columns) >= len(best) {
			continue
		}
		var keys []equality
		for _, c := range ix.Columns {
			i := slices.IndexFunc(eqs, func(e equality) bool { return e.column == c })
			if i < 0 {
				break
			}
			keys = append(keys, eqs[i])
		}
		if !slices.ContainsFunc(keys, func(e equality) bool { return plan.Tables(e.outer) != 0 }) {
			continue
		}
		if len(keys) == len(ix.Columns) {
			best = keys
		}
	}
	return best
}

// renumber moves the driving table to position 0 and the others to the order in
// which they are attached.
func (s *star) renumber(root int) {
	q := s.q
	order := []int{root}
	for _, j := range q.Joins {
		order = append(order, j.Table)
	}
	to := make([]int, len(s.tables))
	for i, t := range order {
		to[t], q.Tables = i, append(q.Tables, plan.Source{Meta: s.tables[t].Meta, Table: t})
	}
	*q = *q.Map(func(e plan.Expr) plan.Expr {
		return plan.Rewrite(e, func(x plan.Expr) plan.Expr {
			if c, ok := x.(plan.Column); ok {
				c.Table = to[c.Table]
				return c
			}
			return x
		})
	})
	for i := range q.Joins {
		q.Joins[i].Table = to[q.Joins[i].Table]
	}
}
