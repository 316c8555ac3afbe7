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
// appearance, and the positions in a.conds that became join keys.
func (a *analyzer) joinTree() (root int, joins []plan.Join, used map[int]bool) {
	optional := map[int]*leftJoin{}
	for i := range a.lefts {
		optional[a.lefts[i].table] = &a.lefts[i]
	}
	// The largest table first: the driving table's rows are the query's work.
	var roots []int
	for i := range a.tables {
		if optional[i] == nil {
			roots = append(roots, i)
		}
	}
	slices.SortStableFunc(roots, func(i, j int) int {
		switch ri, rj := a.tables[i].Meta.Rows, a.tables[j].Meta.Rows; {
		case ri > rj:
			return -1
		case ri < rj:
			return 1
		}
		return 0
	})
	for _, many := range []bool{false, true} {
		for _, r := range roots {
			if joins, used, ok := a.attachAll(r, optional, many); ok {
				return r, joins, used
			}
		}
	}
	a.at = a.refs[a.unattached(roots[0], optional)]
	fail(plan.ReasonShape, "join on no unique key")
	return 0, nil, nil
}

// unattached returns the first table that cannot be attached to a driving table.
func (a *analyzer) unattached(root int, optional map[int]*leftJoin) int {
	joins, _, _ := a.attachAll(root, optional, true)
	for t := range a.tables {
		if t != root && !slices.ContainsFunc(joins, func(j plan.Join) bool { return j.Table == t }) {
			return t
		}
	}
	return root
}

// attachAll tries one driving table, with one join on no unique key if many is set.
func (a *analyzer) attachAll(root int, optional map[int]*leftJoin, many bool) ([]plan.Join, map[int]bool, bool) {
	attached := uint64(1) << root
	used := map[int]bool{}
	var joins []plan.Join
	for progress := true; progress && len(joins) < len(a.tables)-1; {
		progress = false
		for t := range a.tables {
			if attached&(1<<t) != 0 {
				continue
			}
			var j plan.Join
			var ok bool
			if l := optional[t]; l != nil {
				j, ok = a.attachLeft(t, attached, l)
			} else {
				j, ok = a.attachInner(t, attached, used)
			}
			if ok {
				attached |= 1 << t
				joins = append(joins, j)
				progress = true
			}
		}
		if !progress && many {
			if j, ok := a.attachMany(attached, optional, used); ok {
				attached |= 1 << j.Table
				joins = append(joins, j)
				progress, many = true, false
			}
		}
	}
	return joins, used, len(joins) == len(a.tables)-1
}

func (a *analyzer) attachInner(t int, attached uint64, used map[int]bool) (plan.Join, bool) {
	eqs := a.equalities(a.conds, t, attached)
	keys := a.uniqueKey(t, eqs)
	if keys == nil {
		return plan.Join{}, false
	}
	j := plan.Join{Table: t, Kind: plan.Inner}
	for _, e := range keys {
		used[e.cond] = true
		j.Key, j.Outer = append(j.Key, e.column), append(j.Outer, e.outer)
	}
	return j, true
}

// attachMany attaches the smallest table that some columns equate with those attached.
func (a *analyzer) attachMany(attached uint64, optional map[int]*leftJoin, used map[int]bool) (best plan.Join, ok bool) {
	for t := range a.tables {
		if attached&(1<<t) != 0 || optional[t] != nil || ok && a.tables[t].Meta.Rows >= a.tables[best.Table].Meta.Rows {
			continue
		}
		j := plan.Join{Table: t, Kind: plan.Inner, Many: true}
		for _, e := range a.equalities(a.conds, t, attached) {
			if plan.Tables(e.outer) != 0 && !slices.Contains(j.Key, e.column) {
				j.Key, j.Outer = append(j.Key, e.column), append(j.Outer, e.outer)
			}
		}
		if j.Key != nil {
			best, ok = j, true
		}
	}
	if ok { // a second equality of a column stays a condition
		for _, e := range a.equalities(a.conds, best.Table, attached) {
			if i := slices.Index(best.Key, e.column); i >= 0 && a.intern.same(best.Outer[i], e.outer) {
				used[e.cond] = true
			}
		}
	}
	return best, ok
}

// attachLeft attaches by ON alone, because WHERE comes after the nulls are made.
func (a *analyzer) attachLeft(t int, attached uint64, l *leftJoin) (plan.Join, bool) {
	eqs := a.equalities(l.on, t, attached)
	keys := a.uniqueKey(t, eqs)
	if keys == nil {
		return plan.Join{}, false
	}
	j := plan.Join{Table: t, Kind: plan.Left}
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
func (a *analyzer) equalities(conds []plan.Expr, t int, attached uint64) []equality {
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
func (a *analyzer) uniqueKey(t int, eqs []equality) []equality {
	var best []equality
	for _, ix := range a.tables[t].Meta.Indexes {
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
func renumber(q *plan.Query, root int) {
	order := []int{root}
	for _, j := range q.Joins {
		order = append(order, j.Table)
	}
	to := make([]int, len(q.Tables))
	tables := make([]plan.Table, len(q.Tables))
	for i, t := range order {
		to[t], tables[i] = i, q.Tables[t]
	}
	q.Tables = tables
	f := func(e plan.Expr) plan.Expr {
		if e == nil {
			return nil
		}
		return plan.Rewrite(e, func(x plan.Expr) plan.Expr {
			if c, ok := x.(plan.Column); ok {
				c.Table = to[c.Table]
				return c
			}
			return x
		})
	}
	all := func(es []plan.Expr) {
		for i, e := range es {
			es[i] = f(e)
		}
	}
	for i := range q.Joins {
		j := &q.Joins[i]
		j.Table = to[j.Table]
		all(j.Outer)
		all(j.On)
	}
	all(q.Filter)
	all(q.Group)
	for i := range q.Aggs {
		q.Aggs[i].Arg, q.Aggs[i].Filter = f(q.Aggs[i].Arg), f(q.Aggs[i].Filter)
	}
	all(q.Having)
	all(q.Output)
	for i := range q.Order {
		q.Order[i].Expr = f(q.Order[i].Expr)
	}
}
