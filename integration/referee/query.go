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
	// natural has using left out: these are the names that both sides have.
	natural bool
	// derived makes it (SELECT columns FROM table WHERE where) AS alias.
	derived bool
	where   []*node
	inner   *source // in which where is written
	schema  bool    // the table's name is written with its schema
	view    bool    // its view is read in its stead
	with    bool    // derived, in WITH
	lateral bool    // derived or a block, behind LATERAL
	block   *query  // what is in parentheses instead of a table; table has its columns
	cte     *cte    // likewise, of WITH
	call    string  // likewise, a function
	rows    int     // which yields so many
}

func (s *source) columnName(c *column) string { return c.name }

// relation is the name of the table, or of its view.
func (s *source) relation() string {
	name := s.table.name
	if s.schema {
		name = s.table.qualified()
	}
	if s.view {
		name += "_view"
	}
	return name
}

func (s *source) write(w *writer) {
	name := s.relation()
	switch {
	case s.call != "":
		var names []string
		for _, c := range s.table.cols {
			names = append(names, c.name)
		}
		w.WriteString(s.call + " AS " + s.alias + " (" + strings.Join(names, ", ") + ")")
		return
	case s.cte != nil:
		w.WriteString(s.cte.name + " " + s.alias)
		return
	case s.block != nil:
		if s.lateral {
			w.WriteString("LATERAL ")
		}
		w.WriteString("(")
		s.block.write(w)
		w.WriteString(") AS " + s.alias)
		return
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
	if (!s.named || s.view) && s.alias != "" {
		w.WriteString(" " + s.alias)
	}
}

// subquery writes what a derived source is.
func (s *source) subquery(w *writer) {
	name := s.relation()
	var cols []string
	for _, c := range s.table.cols {
		if c.other == "" || c.t.kind == opaque {
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
	for _, c := range q.ctes {
		w.WriteString(before + c.name + " AS " + c.how + "(")
		c.q.write(w)
		w.WriteString(")")
		before = ", "
	}
	if q.wrap != nil && q.with {
		w.WriteString(before + "w AS (")
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
	on            int // DISTINCT ON so many of order's keys; 0 for none
	out           []output
	group         []groupKey
	sets          []*set // how GROUP BY arranges the keys; nil for a plain list
	having        []*node
	windows       []*window // of the WINDOW clause
	order         []sortKey
	limit, offset *node
	// wrap makes it SELECT wrapOut FROM (query) AS w WHERE wrapWhere. Its columns are
	// those of w.
	wrap *query
	with bool // wrap is written in WITH
	ctes []*cte
	// set, UNION or another, makes it the rows of arms, which are sorted and cut here; out says
	// of which types they are, no more.
	set     string
	arms    []*query
	values  [][]*node // VALUES: as with set
	raw     string    // instead of all else: a question outside of the subset
	ordered bool      // a raw one's rows come in one order only
	ties    bool      // texts may be equal that are written apart: an ORDER BY leaves them in any order
}

// write writes the query's text.
func (q *query) write(w *writer) {
	if q.raw != "" {
		w.WriteString(q.raw)
		return
	}
	q.writeWith(w)
	switch {
	case q.set != "":
		q.writeSet(w)
	case q.values != nil:
		q.writeValues(w)
	default:
		q.writeSelect(w)
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

// writeSelect writes what stands before ORDER BY.
func (q *query) writeSelect(w *writer) {
	w.WriteString("SELECT ")
	if q.distinct {
		w.WriteString("DISTINCT ")
	}
	for i, o := range q.order[:min(q.on, len(q.order))] {
		w.WriteString([]string{"DISTINCT ON (", ", "}[min(i, 1)])
		q.reference(w, o.n, o.output, o.byAlias)
		if i+1 == min(q.on, len(q.order)) {
			w.WriteString(") ")
		}
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
	if q.wrap != nil || len(q.from) > 0 {
		w.WriteString(" FROM ")
	}
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
			if s.natural {
				w.WriteString(" NATURAL")
			}
			w.WriteString(" " + s.join + " ")
		}
		s.write(w)
		if i > 0 && !s.natural && s.join != "," && s.join != "CROSS JOIN" {
			switch {
			case len(s.using) > 0:
				w.WriteString(" USING (" + strings.Join(s.using, ", ") + ")")
			case len(s.on) == 0:
				w.WriteString(" ON true")
			default:
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
	q.writeWindows(w)
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
	if q.limit != nil || q.offset != nil || q.on > 0 {
		return true
	}
	if q.wrap == nil || !q.wrap.cuts() {
		return false
	}
	_, total := q.wrap.sortedColumns()
	return !total || q.wrap.wrap != nil && q.wrap.wrap.cuts()
}
