package olap

import (
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
			with.On = append(with.On, plan.Rewrite(e, func(e plan.Expr) plan.Expr {
				if c, ok := e.(plan.Column); ok {
					c.Table = with.Table
					return c
				}
				return e
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

// computedForSome reports whether a relation may be computed for some keys only.
func (x *execution) computedForSome(r *plan.Relation) bool {
	return x.relations[r] == nil && r.Series == nil && r.ProjectSet == nil && r.Cut == nil && len(r.Windows) == 0 && x.readers[r] <= 1 &&
		!slices.ContainsFunc(r.Blocks, func(q *plan.Star) bool {
			return len(q.Tables) == 0 || len(q.Tables) == plan.MaxTables || q.Sets != nil || q.Limit != nil || q.Offset != nil || failsAnywhere(q) || failsGrouped(q)
		})
}
