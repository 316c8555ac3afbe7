package olap

import (
	"math/bits"
	"slices"

	"pgaccel/plan"
)

// restrict has large intermediate relations computed for the keys alone that small tables have which they are
// joined to, and of which conditions leave some rows: of a UNION ALL of sales and returns those of the days that
// are asked for. What is left of the relations is joined as it would have been.
func (x *execution) restrict() {
	for t := range x.q.Tables {
		s := &x.q.Tables[t]
		if t > 0 && x.kinds[t] != plan.Inner || s.Relation == nil || !x.opt.enough(x.rowsBelow(*s), reduceRows) {
			continue
		}
		for _, j := range x.q.Joins {
			if x.parent[j.Table] == t && x.kinds[j.Table] == plan.Inner && !j.Many && x.q.Tables[j.Table].Relation == nil &&
				(coreShare*x.rowsBelow(x.q.Tables[j.Table]) <= x.rowsBelow(*s) || x.opt.Eager) {
				x.restrictBy(t, j)
			}
		}
	}
}

// restrictBy leaves of the relation that is table t the rows that have a partner in a joined table.
func (x *execution) restrictBy(t int, j plan.StarJoin) {
	own := slices.DeleteFunc(slices.Clone(x.conds[j.Table]), func(e plan.Expr) bool { return plan.Tables(e) != 1<<uint(j.Table) })
	s := x.q.Tables[t]
	if len(own) == 0 || !x.computedForSome(s.Relation) {
		return
	}
	relation := *s.Relation
	relation.Blocks = slices.Clone(relation.Blocks)
	for b, block := range relation.Blocks {
		with := plan.StarJoin{Table: len(block.Tables), Kind: plan.Inner, Exists: true, Key: j.Key}
		for _, e := range j.Outer {
			c, ok := e.(plan.Column)
			if !ok || c.Table != t {
				return
			}
			over := block.Output[c.Column]
			if k, key := over.(plan.Key); key {
				over = block.Group[k.Index]
			} else if block.Grouped {
				return
			}
			with.Outer = append(with.Outer, over)
		}
		for _, e := range own {
			with.On = append(with.On, withColumns(e, func(c plan.Column) plan.Column {
				c.Table = with.Table
				return c
			}))
		}
		c := *block
		c.Tables, c.Joins = append(slices.Clip(c.Tables), x.q.Tables[j.Table]), append(slices.Clip(c.Joins), with)
		relation.Blocks[b] = &c
	}
	q := *x.q
	q.Tables = slices.Clone(q.Tables)
	q.Tables[t].Relation = &relation
	x.q = &q
}

// transfer passes conditions of joined tables on to columns that a condition says are equal to those that the tables
// are joined to: of the nations of one region, which suppliers are joined to, by c_nationkey = s_nationkey to
// customers. Such a table, and what it is joined to, is joined to the other column, too.
//
// So are columns equal by which a table is joined by several: of the parts of one name, which lines are joined to by
// l_partkey, by l_partkey = ps_partkey to what suppliers have.
func (x *execution) transfer() error {
	for again := true; again; {
		again = false
		pass := func(to, from plan.Expr) bool {
			a, okA := to.(plan.Column)
			b, okB := from.(plan.Column)
			return okA && okB && a.Table != b.Table && a.T == b.T && x.transferTo(a, b)
		}
		for _, e := range x.q.Filter {
			c, ok := e.(*plan.Call)
			again = again || ok && c.Op == plan.OpEq && (pass(c.Args[0], c.Args[1]) || pass(c.Args[1], c.Args[0]))
		}
		for _, j := range x.q.Joins {
			for i, k := range j.Key {
				of := x.q.Tables[j.Table]
				again = again || len(j.Key) > 1 && of.Relation == nil && pass(plan.Column{Table: j.Table, Column: k, T: of.Meta.Columns[k].Type}, j.Outer[i])
			}
		}
		if again {
			if err := x.arrange(); err != nil {
				return err
			}
		}
	}
	return nil
}

// transferTo joins to a column what an equal one is joined to, where that is small and of conditions.
func (x *execution) transferTo(to, from plan.Column) bool {
	rows := x.rowsBelow(x.q.Tables[to.Table])
	if !x.innerUpTo(to.Table, 0) || !x.innerUpTo(from.Table, 0) || !x.opt.enough(rows, reduceRows) {
		return false
	}
	joined := func(j plan.StarJoin, c plan.Column) bool {
		return len(j.Outer) == 1 && j.Outer[0] == plan.Expr(c) && !j.Many && !j.Exists
	}
	return slices.ContainsFunc(x.q.Joins, func(j plan.StarJoin) bool {
		return joined(j, from) && x.kinds[j.Table] == plan.Inner && !slices.ContainsFunc(x.q.Joins, func(o plan.StarJoin) bool {
			return joined(o, to) && sameSource(x.q.Tables[o.Table], x.q.Tables[j.Table]) && slices.Equal(o.Key, j.Key)
		}) && x.copyBelow(j.Table, to, rows)
	})
}

// sameSource reports whether two sources are of one table.
func sameSource(a, b plan.Source) bool {
	return a.Relation == nil && b.Relation == nil && a.Table == b.Table
}

// innerUpTo reports whether the joins on the way from a table up to another are inner ones.
func (x *execution) innerUpTo(t, top int) bool {
	for ; t != top; t = x.parent[t] {
		if t < 0 || x.kinds[t] != plan.Inner {
			return false
		}
	}
	return true
}

// copyBelow joins a table and what is below it, once more, to a column of another, of so many rows.
func (x *execution) copyBelow(t int, to plan.Column, rows int) bool {
	set, q := x.subtree(t), *x.q
	if set>>uint(to.Table)&1 != 0 || len(q.Tables)+bits.OnesCount64(set) > plan.MaxTables {
		return false
	}
	at := map[int]int{} // the copies, by table
	below := 0
	q.Tables, q.Joins, q.Filter = slices.Clip(q.Tables), slices.Clip(q.Joins), slices.Clip(q.Filter)
	for u := range x.q.Tables {
		if set>>uint(u)&1 == 0 {
			continue
		}
		if x.q.Tables[u].Relation != nil || !x.innerUpTo(u, t) {
			return false
		}
		below += x.rowsBelow(x.q.Tables[u])
		at[u] = len(q.Tables)
		q.Tables = append(q.Tables, x.q.Tables[u])
	}
	if filteredShare*below > rows && !x.opt.Eager {
		return false
	}
	copied := func(e plan.Expr) plan.Expr {
		return withColumns(e, func(c plan.Column) plan.Column {
			if n, ok := at[c.Table]; ok {
				c.Table = n
			}
			return c
		})
	}
	for _, j := range x.q.Joins {
		if set>>uint(j.Table)&1 == 0 {
			continue
		}
		if j.Many {
			return false
		}
		outer := []plan.Expr{to}
		if j.Table != t {
			outer = slices.Clone(j.Outer)
			for i := range outer {
				outer[i] = copied(outer[i])
			}
		}
		on := slices.Clone(j.On)
		for i := range on {
			on[i] = copied(on[i])
		}
		j.Table, j.Kind, j.Outer, j.On = at[j.Table], plan.Inner, outer, on
		q.Joins = append(q.Joins, j)
	}
	filtered := false
	for _, e := range x.q.Filter {
		if tables := plan.Tables(e); tables != 0 && tables&^set == 0 {
			q.Filter, filtered = append(q.Filter, copied(e)), true
		}
	}
	if !filtered {
		return false
	}
	x.q = &q
	return true
}

// computedForSome reports whether a relation may be computed for some keys only.
func (x *execution) computedForSome(r *plan.Relation) bool {
	return x.relations[r] == nil && r.Series == nil && r.ProjectSet == nil && r.Cut == nil && len(r.Windows) == 0 && x.readers[r] <= 1 &&
		!slices.ContainsFunc(r.Blocks, func(q *plan.Star) bool {
			return len(q.Tables) == 0 || len(q.Tables) == plan.MaxTables || q.Sets != nil || q.Limit != nil || q.Offset != nil || failsAnywhere(q) || failsGrouped(q)
		})
}
