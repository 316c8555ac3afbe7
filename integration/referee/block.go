package referee

import (
	"slices"
	"strings"
)

// cte is a query of WITH.
type cte struct {
	name  string
	how   string // MATERIALIZED, or not, or nothing
	q     *query
	table *table // its columns
	size  int
}

// writeSet writes the arms of UNION, INTERSECT or EXCEPT.
func (q *query) writeSet(w *writer) {
	for i, a := range q.arms {
		if i > 0 {
			w.WriteString(" " + q.set + " ")
		}
		if a.set != "" || len(a.order) > 0 || a.limit != nil || a.offset != nil || len(a.ctes) > 0 {
			w.WriteString("(")
			a.write(w)
			w.WriteString(")")
			continue
		}
		a.write(w)
	}
}

func (q *query) writeValues(w *writer) {
	for i, row := range q.values {
		w.WriteString([]string{"VALUES (", "), ("}[min(i, 1)])
		w.list(row, ", ")
	}
	w.WriteString(")")
}

// children are the queries directly in q, always in the same order.
func (q *query) children() []*query {
	var out []*query
	if q.wrap != nil {
		out = append(out, q.wrap)
	}
	for _, c := range q.ctes {
		out = append(out, c.q)
	}
	out = append(out, q.arms...)
	for _, s := range q.from {
		if s.block != nil {
			out = append(out, s.block)
		}
	}
	for _, n := range q.ownNodes() {
		if n.sub != nil {
			out = append(out, n.sub)
		}
	}
	return out
}

// each calls f for q and all queries in it.
func (q *query) each(f func(*query)) {
	for _, c := range q.children() {
		c.each(f)
	}
	f(q)
}

// tables returns the tables that the query reads.
func (q *query) tables() []*table {
	var out []*table
	q.each(func(x *query) {
		for _, s := range x.from {
			if !s.table.virtual && !slices.Contains(out, s.table) {
				out = append(out, s.table)
			}
		}
	})
	return out
}

// ownRoots calls f with the place of each expression of the query itself.
func (q *query) ownRoots(f func(**node)) {
	each := func(ns []*node) {
		for i := range ns {
			f(&ns[i])
		}
	}
	for _, s := range q.from {
		each(s.on)
		each(s.where)
	}
	each(q.where)
	each(q.having)
	for _, x := range q.windows {
		f(&x.def)
	}
	for _, row := range q.values {
		each(row)
	}
	if q.set == "" && q.values == nil {
		for i := range q.out {
			f(&q.out[i].n)
		}
	}
	for i := range q.group {
		f(&q.group[i].n)
	}
	for i := range q.order {
		if q.order[i].n != nil {
			f(&q.order[i].n)
		}
	}
	for _, p := range []**node{&q.limit, &q.offset} {
		if *p != nil {
			f(p)
		}
	}
}

// ownNodes returns the query's own expressions, each once.
func (q *query) ownNodes() []*node {
	var out []*node
	seen := map[*node]bool{}
	q.ownRoots(func(p **node) {
		(*p).walk(func(n *node) {
			if !seen[n] {
				seen[n] = true
				out = append(out, n)
			}
		})
	})
	return out
}

// nodes returns the expressions of the query and of those in it, each once.
func (q *query) nodes() []*node {
	var out []*node
	seen := map[*node]bool{}
	q.each(func(x *query) {
		for _, n := range x.ownNodes() {
			if !seen[n] {
				seen[n] = true
				out = append(out, n)
			}
		}
	})
	return out
}

// undetermined reports whether a query within cuts its rows where no order tells which are left.
func (q *query) undetermined() bool {
	for _, c := range q.children() {
		if c == q.wrap { // cuts knows
			continue
		}
		constant := !slices.ContainsFunc(c.out, func(o output) bool { return o.n.lit == nil })
		if c.loose() {
			return true
		}
		if _, total := c.sortedColumns(); (c.limit != nil || c.offset != nil || c.on > 0) && !total && !constant || c.undetermined() {
			return true
		}
	}
	return false
}

// loose reports whether a query shows what the server may choose among rows that an order leaves equal.
func (q *query) loose() bool {
	return slices.ContainsFunc(q.ownNodes(), func(n *node) bool { return n.loose })
}

// columnsOf makes the columns of a block.
func (g *gen) columnsOf(q *query) *table {
	t := &table{virtual: true, apart: g.apart(q)}
	for _, o := range q.out {
		c := &column{name: o.as, t: o.n.t, lo: o.n.lo, hi: o.n.hi, spread: "even", wild: !tame(o.n)}
		if x := o.n.col; x != nil {
			c.pool, c.held, c.wild = x.pool, x.held, x.wild
		}
		c.other = c.t.name
		if c.t.coll == "*" {
			c.t.coll = ""
		}
		t.cols = append(t.cols, c)
	}
	return t
}

// blockMutations are ways to make what is in a query smaller, or to take it for the query.
func blockMutations(q *query) []func(*query) {
	var out []func(*query)
	add := func(f func(*query)) { out = append(out, f) }
	for i, child := range q.children() {
		if child != q.wrap {
			add(func(c *query) { *c = *c.children()[i] })
		}
	}
	for i := range q.ctes {
		add(func(c *query) { c.ctes[i].how = "" })
		add(func(c *query) { // in place of its first reader
			x := c.ctes[i]
			c.ctes = slices.Delete(c.ctes, i, i+1)
			c.each(func(y *query) {
				for _, s := range y.from {
					if s.cte == x {
						s.cte, s.block = nil, x.q
					}
				}
			})
		})
	}
	for i, s := range q.from {
		if strings.HasSuffix(s.join, " JOIN") {
			add(func(c *query) { c.from[i].join = "JOIN" })
		}
	}
	for i := range q.values {
		if len(q.values) > 1 {
			add(func(c *query) { c.values = slices.Delete(c.values, i, i+1) })
		}
	}
	for k, n := range q.ownNodes() {
		if n.t.kind == boolean && slices.ContainsFunc(n.args, func(a *node) bool { return a.sub != nil }) {
			add(func(c *query) {
				v := "f"
				*c.ownNodes()[k] = node{t: n.t, lit: &constant{value: &v, form: bare}}
			})
		}
	}
	for i, child := range q.children() {
		for _, m := range mutations(child) {
			add(func(c *query) { m(c.children()[i]) })
		}
	}
	return out
}

// effort is about how many rows PostgreSQL looks at, where it computes a sub-select that reads the
// query around it, or is compared in another way than by a hash table, for each row of that.
func effort(q *query) float64 {
	n := 1.0
	var all float64
	for _, s := range q.from {
		size := float64(sized(s))
		if s.block != nil {
			times := 1.0
			if s.lateral {
				times = max(n, 1)
			}
			all += times * effort(s.block)
		}
		switch {
		case s.join == "":
			n = size
		case s.join == ",":
			n *= max(size/8, 1)
		case uniqueJoin(s):
			all += size
		default:
			all += n * size / 8
			n = max(n, size, n*size/8)
		}
	}
	for _, c := range q.ctes {
		all += effort(c.q)
	}
	for _, a := range q.arms {
		all += effort(a)
	}
	each := map[*node]bool{} // sub-selects that are compared with each of their rows
	for _, x := range q.ownNodes() {
		for _, a := range x.args {
			each[a] = strings.Contains(x.f, " ANY ") || strings.Contains(x.f, " ALL ") || strings.Contains(x.f, " SOME ")
		}
	}
	sets := float64(1 + 8*len(q.sets))
	for _, x := range q.ownNodes() {
		switch {
		case x.moving: // a frame that the server may compute anew for each row
			all += n * n / 16
		case x.sub == nil:
		case each[x] || readsAround(x.sub):
			all += n * sets * effort(x.sub)
		default:
			all += effort(x.sub)
		}
	}
	return all + n
}

// uniqueJoin reports whether a source is joined by its key.
func uniqueJoin(s *source) bool {
	if len(s.table.key) != 1 || len(s.on) == 0 {
		return false
	}
	return s.on[0].has(func(n *node) bool { return n.from == s && n.col == s.table.cols[s.table.key[0]] })
}

// readsAround reports whether a query reads columns of another one around it.
func readsAround(q *query) bool {
	own := map[*source]bool{}
	q.each(func(x *query) {
		for _, s := range x.from {
			own[s] = true
		}
	})
	return slices.ContainsFunc(q.nodes(), func(n *node) bool { return n.from != nil && !own[n.from] })
}
