package referee

import "slices"

// clone copies the query; nodes that it shares stay shared in the copy.
func (q *query) clone() *query {
	c := &cloner{nodes: map[*node]*node{}, sources: map[*source]*source{}, ctes: map[*cte]*cte{}}
	return c.query(q)
}

type cloner struct {
	nodes   map[*node]*node
	sources map[*source]*source
	ctes    map[*cte]*cte
}

func (c *cloner) query(q *query) *query {
	if q == nil {
		return nil
	}
	d := *q
	d.wrap = c.query(q.wrap)
	d.ctes = nil
	for _, x := range q.ctes {
		d.ctes = append(d.ctes, c.cte(x))
	}
	d.arms = nil
	for _, a := range q.arms {
		d.arms = append(d.arms, c.query(a))
	}
	d.values = nil
	for _, row := range q.values {
		d.values = append(d.values, c.all(row))
	}
	d.from = nil
	for _, s := range q.from {
		d.from = append(d.from, c.source(s))
	}
	d.where, d.having = c.all(q.where), c.all(q.having)
	d.windows = nil
	for _, x := range q.windows {
		d.windows = append(d.windows, &window{x.name, c.node(x.def)})
	}
	d.out = slices.Clone(q.out)
	for i := range d.out {
		d.out[i].n = c.node(d.out[i].n)
	}
	d.group = slices.Clone(q.group)
	for i := range d.group {
		d.group[i].n = c.node(d.group[i].n)
	}
	d.sets = c.sets(q.sets)
	d.order = slices.Clone(q.order)
	for i := range d.order {
		d.order[i].n = c.node(d.order[i].n)
	}
	d.limit, d.offset = c.node(q.limit), c.node(q.offset)
	return &d
}

func (c *cloner) source(s *source) *source {
	if s == nil {
		return nil
	}
	if d, ok := c.sources[s]; ok {
		return d
	}
	d := *s
	c.sources[s] = &d
	d.inner = c.source(s.inner)
	d.block, d.cte = c.query(s.block), c.cte(s.cte)
	d.on, d.where = c.all(s.on), c.all(s.where)
	return &d
}

func (c *cloner) all(ns []*node) []*node {
	var out []*node
	for _, n := range ns {
		out = append(out, c.node(n))
	}
	return out
}

func (c *cloner) node(n *node) *node {
	if n == nil {
		return nil
	}
	if d, ok := c.nodes[n]; ok {
		return d
	}
	d := *n
	c.nodes[n] = &d
	d.args = c.all(n.args)
	if n.lit != nil {
		l := *n.lit
		d.lit = &l
	}
	d.from = c.source(n.from)
	d.sub = c.query(n.sub)
	return &d
}

func (c *cloner) cte(x *cte) *cte {
	if x == nil {
		return nil
	}
	if d, ok := c.ctes[x]; ok {
		return d
	}
	d := *x
	c.ctes[x] = &d
	d.q = c.query(x.q)
	return &d
}
