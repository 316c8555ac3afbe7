package olap

import (
	"slices"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// Aggregation before a join (Yan and Larson, Eager aggregation and lazy aggregation, VLDB 1995; where each row is a group it is
// the groupjoin of Moerkotte and Neumann, Accelerating queries with group-by and join by groupjoin, VLDB 2011): the orders of
// each customer are counted by the customer's number, and looked up, instead of a row for each order.
//
//	customer left join orders group by c_custkey  -->  customer left join (orders group by o_custkey)

// groupJoin has the query look up what it aggregates, where that is all of one joined table whose rows multiply, and groups are
// rows of the first table.
func (x *execution) groupJoin() error {
	q := x.q
	at := slices.IndexFunc(q.Joins, func(j plan.StarJoin) bool { return j.Many })
	if at < 0 || !q.Grouped || q.Sets != nil || len(q.Group) == 0 || len(q.Aggs) == 0 || x.spill != nil || (x.limited || x.offset > 0) && len(q.Order) == 0 ||
		failsAnywhere(q) || failsGrouped(q) || q.Tables[0].Relation != nil {
		return nil
	}
	if err := x.arrange(); err != nil {
		return err
	}
	j := q.Joins[at]
	t := j.Table
	own, kind := uint64(1)<<uint(t), x.kinds[t]
	s := q.Tables[t]
	if j.Exists || s.Relation != nil || x.parent[t] != 0 || x.subtree(t) != own || kind != plan.Inner && kind != plan.Left || !x.opt.enough(x.rowsBelow(s), reduceRows) {
		return nil
	}
	others := func(es ...plan.Expr) bool { // read nothing of the table
		return !slices.ContainsFunc(es, func(e plan.Expr) bool { return plan.Tables(e)&own != 0 })
	}
	if !others(q.Group...) || !x.groupsAreRows() {
		return nil
	}
	for i, e := range j.Outer {
		if c := s.Meta.Columns[j.Key[i]].Type; !inOrder(c) || e.Type() != c {
			return nil
		}
	}
	groups := &plan.Star{Tables: []plan.Source{s}, Grouped: true, Filter: slices.Clone(j.On)}
	var filter []plan.Expr
	for _, e := range q.Filter {
		switch {
		case others(e):
			filter = append(filter, e)
		case kind == plan.Inner && plan.Tables(e) == own:
			groups.Filter = append(groups.Filter, e)
		default:
			return nil
		}
	}
	for i, k := range j.Key {
		c := s.Meta.Columns[k].Type
		groups.Group = append(groups.Group, plan.Column{Table: t, Column: k, T: c})
		groups.Output = append(groups.Output, plan.Key{Index: i, T: c})
	}
	values := make([]plan.Expr, len(q.Aggs)) // by aggregate
	for i, a := range q.Aggs {
		if a.Arg != nil && plan.Tables(a.Arg)&^own != 0 || a.Filter != nil && plan.Tables(a.Filter)&^own != 0 {
			return nil
		}
		column := plan.Column{Table: t, Column: len(groups.Output), T: a.T}
		groups.Output = append(groups.Output, plan.Agg{Index: i, T: a.T})
		if values[i] = column; kind == plan.Inner {
			continue
		}
		// Of a row without a partner the aggregate is that of one row of nulls.
		none, isColumn := int64(0), false
		if a.Arg == nil {
			none = 1
		} else {
			_, isColumn = a.Arg.(plan.Column)
		}
		counts := a.Func == plan.CountStar || a.Func == plan.Count
		if a.Filter != nil || a.Arg == nil && !counts || a.Arg != nil && !isColumn || !counts && !nullOfNulls(a.Func) {
			return nil
		}
		if counts {
			values[i] = &plan.Call{Op: plan.OpCoalesce, T: a.T, Args: []plan.Expr{column, plan.Const{Datum: vector.Datum{Type: a.T, I: none}}}}
		}
	}
	groups.Aggs = q.Aggs
	groups = groups.Map(func(e plan.Expr) plan.Expr {
		return withColumns(e, func(c plan.Column) plan.Column {
			c.Table = 0
			return c
		})
	})
	over := func(e plan.Expr) plan.Expr {
		return plan.Rewrite(e, func(e plan.Expr) plan.Expr {
			switch e := e.(type) {
			case plan.Key:
				return q.Group[e.Index]
			case plan.Agg:
				return values[e.Index]
			}
			return e
		})
	}
	star := *q
	star.Grouped, star.Group, star.Aggs, star.Having, star.Filter = false, nil, nil, nil, filter
	for _, e := range q.Having {
		star.Filter = append(star.Filter, over(e))
	}
	star.Output, star.Order = slices.Clone(q.Output), slices.Clone(q.Order)
	for i, e := range star.Output {
		star.Output[i] = over(e)
	}
	for i, o := range star.Order {
		star.Order[i].Expr = over(o.Expr)
	}
	star.Tables, star.Joins = slices.Clone(q.Tables), slices.Clone(q.Joins)
	star.Tables[t] = plan.NewSource("groups", groups)
	key := make([]int, len(j.Key))
	for i := range key {
		key[i] = i
	}
	star.Joins[at] = plan.StarJoin{Table: t, Kind: kind, Outer: j.Outer, Key: key}
	x.q = &star
	x.files = x.maySpill() // where memory does not hold the groups before the join, files do behind it
	return x.arrange()
}

// nullOfNulls reports whether an aggregate of nulls alone is null.
func nullOfNulls(f *sqlfn.Aggregate) bool {
	return f == plan.Sum || f == plan.Min || f == plan.Max || f == plan.Avg
}

// groupsAreRows reports whether each row of the first table is a group by itself.
func (x *execution) groupsAreRows() bool {
	meta := x.q.Tables[0].Meta
	var columns []int
	for _, e := range x.q.Group {
		if c, ok := e.(plan.Column); ok && c.Table == 0 && meta.Columns[c.Column].NotNull && inOrder(c.T) {
			columns = append(columns, c.Column)
		}
	}
	return len(columns) > 0 && meta.UniqueOn(columns)
}
