package referee

import (
	"fmt"
	"slices"
	"strings"
)

// source is an item of FROM: a table, or a subquery that projects and filters one.
type source struct {
	table *table
	alias string // "" where columns are written without a table
	named bool   // the alias is the table's own name: nothing is written after it
	join  string // JOIN, LEFT JOIN, RIGHT JOIN or a comma; "" for the first
	on    []*node
	using []string // instead of on
	// derived makes it (SELECT columns FROM table WHERE where) AS alias.
	derived bool
	where   []*node
	inner   *source // in which where is written
	schema  bool    // the table's name is written with its schema
	with    bool    // derived, in WITH
	lateral bool    // derived, behind LATERAL
}

func (s *source) columnName(c *column) string { return c.name }

func (s *source) write(w *writer) {
	name := s.table.name
	if s.schema {
		name = s.table.qualified()
	}
	switch {
	case s.derived && s.with:
		w.WriteString(s.alias)
		return
	case s.derived:
		if s.lateral {
			w.WriteString("LATERAL ")
		}
		s.subquery(w)
		w.WriteString(" AS " + s.alias)
		return
	}
	w.WriteString(name)
	if !s.named && s.alias != "" {
		w.WriteString(" " + s.alias)
	}
}

// subquery writes what a derived source is.
func (s *source) subquery(w *writer) {
	name := s.table.name
	if s.schema {
		name = s.table.qualified()
	}
	var cols []string
	for _, c := range s.table.cols {
		if c.other == "" {
			cols = append(cols, c.name)
		}
	}
	w.WriteString("(SELECT " + strings.Join(cols, ", ") + " FROM " + name)
	if len(s.where) > 0 {
		w.WriteString(" WHERE ")
		w.list(s.where, " AND ")
	}
	w.WriteString(")")
}

// writeWith writes the WITH clause, if there is one.
func (q *query) writeWith(w *writer) {
	before := "WITH "
	if q.wrap != nil && q.with {
		w.WriteString("WITH w AS (")
		q.wrap.write(w)
		w.WriteString(")")
		before = ", "
	}
	for _, s := range q.from {
		if s.derived && s.with {
			w.WriteString(before + s.alias + " AS ")
			s.subquery(w)
			before = ", "
		}
	}
	if before == ", " {
		w.WriteString(" ")
	}
}

// output is an item of the select list.
type output struct {
	n  *node
	as string // alias, "" for none
}

// sortKey is an item of ORDER BY.
type sortKey struct {
	n       *node
	output  int // 1 and up: written as the number of an output, or as its alias
	byAlias bool
	tail    string // DESC, NULLS FIRST, ...
}

// groupKey is an item of GROUP BY.
type groupKey struct {
	n       *node
	output  int
	byAlias bool
}

// query is a SELECT.
type query struct {
	from          []*source
	where         []*node
	distinct      bool
	out           []output
	group         []groupKey
	sets          []*set // how GROUP BY arranges the keys; nil for a plain list
	having        []*node
	order         []sortKey
	limit, offset *node
	// wrap makes it SELECT wrapOut FROM (query) AS w WHERE wrapWhere. Its columns are
	// those of w.
	wrap    *query
	with    bool   // wrap is written in WITH
	raw     string // instead of all else: a question outside of the subset
	ordered bool   // a raw one's rows come in one order only
}

// write writes the query's text.
func (q *query) write(w *writer) {
	if q.raw != "" {
		w.WriteString(q.raw)
		return
	}
	q.writeWith(w)
	w.WriteString("SELECT ")
	if q.distinct {
		w.WriteString("DISTINCT ")
	}
	for i, o := range q.out {
		if i > 0 {
			w.WriteString(", ")
		}
		w.node(o.n)
		if o.as != "" {
			w.WriteString(" AS " + o.as)
		}
	}
	w.WriteString(" FROM ")
	if q.wrap != nil && q.with {
		w.WriteString("w")
	} else if q.wrap != nil {
		w.WriteString("(")
		q.wrap.write(w)
		w.WriteString(") AS w")
	}
	where := q.where
	for i, s := range q.from {
		switch {
		case i == 0:
		case s.join == ",":
			w.WriteString(", ")
			where = slices.Concat(where, s.on)
		default:
			w.WriteString(" " + s.join + " ")
		}
		s.write(w)
		if i > 0 && s.join != "," {
			if len(s.using) > 0 {
				w.WriteString(" USING (" + strings.Join(s.using, ", ") + ")")
			} else {
				w.WriteString(" ON ")
				w.list(s.on, " AND ")
			}
		}
	}
	if len(where) > 0 {
		w.WriteString(" WHERE ")
		w.list(where, " AND ")
	}
	if len(q.sets) > 0 {
		for i, s := range q.sets {
			w.WriteString([]string{" GROUP BY ", ", "}[min(i, 1)])
			if !s.writable(q) {
				w.WriteString("()")
				continue
			}
			s.write(w, q)
		}
	} else {
		for i, g := range q.group {
			w.WriteString([]string{" GROUP BY ", ", "}[min(i, 1)])
			q.reference(w, g.n, g.output, g.byAlias)
		}
	}
	if len(q.having) > 0 {
		w.WriteString(" HAVING ")
		w.list(q.having, " AND ")
	}
	for i, o := range q.order {
		w.WriteString([]string{" ORDER BY ", ", "}[min(i, 1)])
		q.reference(w, o.n, o.output, o.byAlias)
		w.WriteString(o.tail)
	}
	if q.limit != nil {
		w.WriteString(" LIMIT ")
		w.node(q.limit)
	}
	if q.offset != nil {
		w.WriteString(" OFFSET ")
		w.node(q.offset)
	}
}

// reference writes a key as the number or name of an output, or in full.
func (q *query) reference(w *writer, n *node, output int, byAlias bool) {
	switch {
	case output > 0 && output <= len(q.out) && byAlias && q.out[output-1].as != "":
		w.WriteString(q.out[output-1].as)
	case output > 0 && output <= len(q.out) && !byAlias:
		fmt.Fprint(w, output)
	default:
		w.node(n)
	}
}

// sql returns the text with its parameters.
func (q *query) sql(params bool) (string, []bound) {
	w := &writer{params: params, seen: map[*node]int{}}
	q.write(w)
	return w.String(), w.bounds
}

// sortedColumns returns the positions of the outputs that ORDER BY sorts by, as long
// as each key is an output, and whether all outputs are among them.
func (q *query) sortedColumns() (keys []int, total bool) {
	if q.raw != "" || len(q.order) == 0 {
		return nil, false
	}
	for _, o := range q.order {
		at := o.output - 1
		if at < 0 || at >= len(q.out) {
			at = slices.IndexFunc(q.out, func(x output) bool { return x.n == o.n })
		}
		if at < 0 {
			break
		}
		keys = append(keys, at)
	}
	for i := range q.out {
		if !slices.Contains(keys, i) {
			return keys, false
		}
	}
	return keys, true
}

// cuts reports whether LIMIT or OFFSET keep a part of the rows, and in a query that is wrapped
// of no order that would tell which.
func (q *query) cuts() bool {
	if q.limit != nil || q.offset != nil {
		return true
	}
	if q.wrap == nil || !q.wrap.cuts() {
		return false
	}
	_, total := q.wrap.sortedColumns()
	return !total || q.wrap.wrap != nil && q.wrap.wrap.cuts()
}

// clone copies the query; nodes that it shares stay shared in the copy.
func (q *query) clone() *query {
	c := &cloner{nodes: map[*node]*node{}, sources: map[*source]*source{}}
	return c.query(q)
}

type cloner struct {
	nodes   map[*node]*node
	sources map[*source]*source
}

func (c *cloner) query(q *query) *query {
	if q == nil {
		return nil
	}
	d := *q
	d.wrap = c.query(q.wrap)
	d.from = nil
	for _, s := range q.from {
		d.from = append(d.from, c.source(s))
	}
	d.where, d.having = c.all(q.where), c.all(q.having)
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
	return &d
}

// tables returns the tables that the query reads.
func (q *query) tables() []*table {
	var out []*table
	if q.wrap != nil {
		out = q.wrap.tables()
	}
	for _, s := range q.from {
		if !slices.Contains(out, s.table) {
			out = append(out, s.table)
		}
	}
	return out
}

// roots calls f with the place of each expression of the query.
func (q *query) roots(f func(**node)) {
	each := func(ns []*node) {
		for i := range ns {
			f(&ns[i])
		}
	}
	if q.wrap != nil {
		q.wrap.roots(f)
	}
	for _, s := range q.from {
		each(s.on)
		each(s.where)
	}
	each(q.where)
	each(q.having)
	for i := range q.out {
		f(&q.out[i].n)
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
