package plan

import "slices"

// MapRel returns an operator with each expression, of it and of those below, replaced by what f
// returns for it. What is shared reads nothing outside and stays. copied is called with each operator
// and what it has become.
func MapRel(r Rel, f func(Expr) Expr, copied func(from, to Rel)) (to Rel) {
	one := func(e Expr) Expr {
		if e == nil {
			return nil
		}
		return f(e)
	}
	all := func(es []Expr) []Expr {
		out := slices.Clone(es)
		for i, e := range es {
			out[i] = f(e)
		}
		return out
	}
	orders := func(by []Order) []Order {
		out := slices.Clone(by)
		for i := range out {
			out[i].Expr = f(out[i].Expr)
		}
		return out
	}
	call := func(a AggregateCall) AggregateCall {
		a.Arg, a.Filter, a.Fraction = one(a.Arg), one(a.Filter), one(a.Fraction)
		return a
	}
	below := func(r Rel) Rel { return MapRel(r, f, copied) }
	project := func(p *Project) *Project {
		c := *p
		c.Input, c.Exprs = below(p.Input), all(p.Exprs)
		return &c
	}
	defer func() {
		if to != nil { // f may have panicked
			copied(r, to)
		}
	}()
	switch x := r.(type) {
	case *Join:
		c := *x
		c.Left, c.Right, c.On = below(x.Left), below(x.Right), all(x.On)
		return &c
	case *Filter:
		return &Filter{Input: below(x.Input), Conds: all(x.Conds)}
	case *Aggregate:
		c := *x
		c.Input, c.Keys, c.Aggs = below(x.Input), all(x.Keys), slices.Clone(x.Aggs)
		for i := range c.Aggs {
			c.Aggs[i] = call(c.Aggs[i])
		}
		return &c
	case *Sort:
		return &Sort{Input: below(x.Input), By: orders(x.By)}
	case *Limit:
		return &Limit{Input: below(x.Input), Count: one(x.Count), Offset: one(x.Offset), Per: all(x.Per)}
	case *Project:
		return project(x)
	case *Values:
		c := *x
		c.Rows = slices.Clone(x.Rows)
		for i := range c.Rows {
			c.Rows[i] = all(c.Rows[i])
		}
		return &c
	case *Window:
		c := *x
		c.Input, c.Agg, c.Arg, c.Default = below(x.Input), call(x.Agg), one(x.Arg), one(x.Default)
		c.Partition, c.Order = all(x.Partition), orders(x.Order)
		return &c
	case *SetOp:
		c := *x
		c.Left, c.Right = project(x.Left), project(x.Right)
		return &c
	case *Series:
		c := *x
		c.Input, c.From, c.To, c.Step = below(x.Input), one(x.From), one(x.To), one(x.Step)
		return &c
	case *ProjectSet:
		c := x.WithArgs(all(x.Args()))
		c.Input = below(x.Input)
		return c
	}
	return r // Scan, Shared
}
