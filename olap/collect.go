package olap

import (
	"math"
	"slices"
	"sync/atomic"

	"pgaccel/plan"
	"pgaccel/vector"
)

// rows are collected values: n of each column.
type rows struct {
	n     int
	cols  []vec
	taken int64 // bytes that are accounted for them
	from  int   // of how many rows they are the distinct ones; 0: they are all
}

// cut says which rows a query's ORDER BY, OFFSET and LIMIT leave; the zero value
// leaves all.
type cut struct {
	rows  int64 // OFFSET + LIMIT; 0: no cut
	order []plan.Order
	keys  int // position of the order's keys among the collected values
}

// collector gathers nodes' values.
type collector struct {
	p     *pipeline
	nodes []*node
	cut   cut
	// better maps the first key to integers of which smaller ones come first; nil
	// where rows are not ordered.
	better *node
	total  atomic.Int64
	parts  []*gathered // by morsel, or by worker where the order is left to later
}

// gathered are the values of some rows.
type gathered struct {
	cols  []vec
	good  []int64 // the first key, smaller is better; only with a cut
	taken int64
	bound int64 // rows that are worse cannot be among the first
	prune int   // rows at which to look for a better bound
	more  int   // rows more than are kept until then
}

// pruneRows is how many rows more than needed are gathered before the worst are
// dropped. Tests make it small.
var pruneRows = 8192

// boundRows is the same where the bound saves reading rows.
const boundRows = 64

// collect runs the pipeline and returns the values of exprs for its rows, in the
// table's order. With a cut the rows that cannot be among the first are left out,
// and the order is any.
func (p *pipeline) collect(exprs []plan.Expr, at cut) (*rows, error) {
	nodes, err := p.c.list(exprs)
	if err != nil {
		return nil, err
	}
	for i, o := range at.order {
		if err := p.x.ordersUnknown(nodes[at.keys+i], o.Expr.Type().Collation); err != nil {
			return nil, err
		}
	}
	if at.rows > 0 && len(at.order) > 0 && !nodes[at.keys].ranked(at.order[0].Expr.Type().Collation) {
		at = cut{} // which rows are the first is known once all are there
	}
	p.collected = nodes
	defer p.complete()
	if at.rows == 0 && p.secondPass(nodes) {
		return p.collectBits(nodes)
	}
	c := &collector{p: p, nodes: nodes, cut: at}
	if at.rows > 0 && len(at.order) > 0 {
		if c.better, err = p.normalized(nodes[at.keys]); err != nil {
			return nil, err
		}
		p.top = p.topScan(nodes, at)
	} else {
		c.parts = make([]*gathered, p.x.opt.morsels(p.tab).count(p.tab))
	}
	sinks := make(chan *gathered, p.x.opt.Workers)
	if err := p.run(func(*worker) sink {
		s := &collecting{c: c}
		if c.better != nil {
			s.part = c.newPart()
			sinks <- s.part
		}
		return s
	}); err != nil {
		return nil, err
	}
	close(sinks)
	for g := range sinks {
		c.parts = append(c.parts, g)
	}
	return c.join()
}

// normalized returns the node whose values, ascending, stand in the order of key;
// direction and nulls are applied in tile.
func (p *pipeline) normalized(key *node) (*node, error) {
	switch {
	case key.dict != nil && key.dict.inOrder(key.t.Collation):
		code := *key
		code.t, code.dict = vector.TypeOf(vector.Int4), nil
		return &code, nil
	case key.dict != nil:
		ranks, err := key.dict.rank(key.t.Collation)
		if err != nil {
			return nil, err
		}
		to := make([]int64, max(len(ranks), 1))
		for i, r := range ranks {
			to[i] = int64(r)
		}
		return p.c.recode(key, to), nil
	case key.t.Kind.IsFloat():
		return p.c.floatKey(key), nil
	}
	return key, nil
}

func (c *collector) newPart() *gathered {
	more := pruneRows
	if c.p.top != nil {
		more = min(more, boundRows)
	}
	if c.p.x.opt.Eager {
		more = eagerRows
	}
	return &gathered{cols: make([]vec, len(c.nodes)), bound: math.MaxInt64, more: more, prune: more + int(c.cut.rows)}
}

// join puts the parts together, a column after the other: what they held of it is given back.
func (c *collector) join() (*rows, error) {
	r, x := &rows{cols: make([]vec, len(c.nodes))}, c.p.x
	at := make([]int, len(c.parts)) // where each begins
	for i, g := range c.parts {
		if at[i] = r.n; g != nil {
			r.n += len(g.cols[0].v)
		}
	}
	for i := range c.nodes {
		if err := x.take(int64(r.n) * 9); err != nil {
			return nil, err
		}
		r.taken += int64(r.n) * 9
		col := &r.cols[i]
		col.v = unset[int64](r.n)
		if c.nodes[i].nullable {
			col.nulls = unset[uint8](r.n)
		}
		if err := x.eachOf(len(c.parts), r.n, func(k int) error {
			if g := c.parts[k]; g != nil {
				copy(col.v[at[k]:], g.cols[i].v)
				if col.nulls != nil {
					copy(col.nulls[at[k]:], g.cols[i].nulls)
				}
				g.cols[i] = vec{}
			}
			return nil
		}); err != nil {
			return nil, err
		}
		for _, g := range c.parts {
			if g != nil {
				part := g.taken / int64(len(c.nodes)-i)
				x.give(part)
				g.taken -= part
			}
		}
	}
	return r, nil
}

// collecting is one worker's sink.
type collecting struct {
	c    *collector
	part *gathered
}

// tile implements sink.
func (s *collecting) tile(w *worker) {
	c := s.c
	if c.better != nil {
		s.first(w)
		return
	}
	if c.parts[w.morsel] == nil {
		c.parts[w.morsel] = c.newPart()
	}
	g := c.parts[w.morsel]
	g.append(w, c.nodes)
	if n := c.total.Add(int64(len(w.f.sel))); c.cut.rows > 0 && n > c.cut.rows && g.differ() {
		// Any rows would do for Postgres; we cannot know which it takes.
		w.fail(forward(plan.ReasonTies, "LIMIT without ORDER BY"))
	}
}

var noNulls [tileRows]uint8

// append adds the selected rows' values.
func (g *gathered) append(w *worker, nodes []*node) {
	for i, n := range nodes {
		v := w.eval(n)
		g.cols[i].v = append(g.cols[i].v, v.v...)
		if n.nullable {
			if v.nulls == nil {
				v.nulls = noNulls[:len(v.v)]
			}
			g.cols[i].nulls = append(g.cols[i].nulls, v.nulls...)
		}
	}
	g.account(w)
}

func (g *gathered) account(w *worker) {
	if b := int64(cap(g.cols[0].v)) * int64(len(g.cols)*9); b > g.taken {
		if err := w.p.x.take(b - g.taken); err != nil {
			w.fail(err)
		}
		g.taken = b
	}
}

// differ reports whether two of the rows look different.
func (g *gathered) differ() bool {
	for i := range g.cols {
		c := &g.cols[i]
		for k, v := range c.v {
			if c.nulls != nil && c.nulls[k] != c.nulls[0] || (c.nulls == nil || c.nulls[0] == 0) && v != c.v[0] {
				return true
			}
		}
	}
	return false
}

// first gathers the rows that may be among the first c.cut.rows.
func (s *collecting) first(w *worker) {
	c, g := s.c, s.part
	for _, n := range c.nodes {
		if n.risky {
			w.eval(n) // fails for rows that are cut off too
		}
	}
	key := w.eval(c.better)
	o := c.cut.order[0]
	if c.p.top != nil {
		g.bound = min(g.bound, c.p.top.bound.Load())
	}
	next := w.next
	k := 0
	for i, v := range key.v {
		if o.Desc {
			v = ^v
		}
		if key.nulls != nil && key.nulls[i] != 0 {
			v = math.MaxInt64
			if o.NullsFirst {
				v = math.MinInt64
			}
		}
		if v <= g.bound {
			next[k] = w.f.sel[i]
			g.good = append(g.good, v)
			k++
		}
	}
	if w.selected(k); k == 0 {
		return
	}
	g.append(w, c.nodes)
	if len(g.good) >= g.prune {
		g.drop(int(c.cut.rows))
		if c.p.top != nil {
			c.p.top.tighten(g.bound)
		}
	}
}

// drop removes the rows that are worse than the n-th best; ties stay.
func (g *gathered) drop(n int) {
	g.bound = min(g.bound, nthSmallest(slices.Clone(g.good), n-1))
	k := 0
	for i, v := range g.good {
		if v > g.bound {
			continue
		}
		g.good[k] = v
		for c := range g.cols {
			g.cols[c].v[k] = g.cols[c].v[i]
			if g.cols[c].nulls != nil {
				g.cols[c].nulls[k] = g.cols[c].nulls[i]
			}
		}
		k++
	}
	g.good = g.good[:k]
	for c := range g.cols {
		g.cols[c].v = g.cols[c].v[:k]
		if g.cols[c].nulls != nil {
			g.cols[c].nulls = g.cols[c].nulls[:k]
		}
	}
	g.prune = 2*k + g.more
}
