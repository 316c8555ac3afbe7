package referee

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// rows is the generator of what an aggregate's argument or a key may hold.
func (g *gen) rows() *gen {
	d := *g
	d.grouped, d.sets, d.keys = false, false, nil
	return &d
}

// from chooses tables and joins.
func (g *gen) from(s *schema, q *query) {
	fact := s.tables[0]
	if dims := s.related()[1:]; len(dims) > 0 && g.chance(15) {
		fact = pick(g.r, dims...)
	}
	qualify := g.chance(10)
	add := func(t *table, join string) *source {
		src := &source{table: t, alias: t.name, named: true, join: join, schema: qualify, view: g.chance(8)}
		taken := func(a string) bool {
			return slices.ContainsFunc(q.from, func(x *source) bool { return x.alias == a })
		}
		if g.chance(50) || taken(src.alias) {
			src.named = false
			src.alias = fmt.Sprintf("t%d", len(q.from))
		}
		if g.chance(6) {
			src.derived, src.named = true, false
			src.alias = fmt.Sprintf("t%d", len(q.from))
			src.inner = &source{table: t}
			src.with = g.chance(25)
			src.lateral = g.chance(20)
			if g.chance(60) {
				inner := *g
				inner.scope = []*source{src.inner}
				src.where = []*node{inner.condition(1)}
			}
		}
		q.from = append(q.from, src)
		return src
	}
	first := add(fact, "")
	type pending struct {
		from *source
		left bool
	}
	queue := []pending{{first, false}}
	for len(queue) > 0 && len(q.from) < 5 {
		p := queue[0]
		queue = queue[1:]
		for _, prefix := range references(p.from.table) {
			if !g.chance(55) || len(q.from) >= 5 {
				continue
			}
			to := p.from.table.cols[prefix[0]].refsTo
			left := p.left || g.chance(30)
			join := pick(g.r, "JOIN", "JOIN", "INNER JOIN", ",")
			if left {
				join = "LEFT JOIN"
			}
			comma := slices.ContainsFunc(q.from, func(x *source) bool { return x.join == "," })
			if comma && !left { // a comma binds less than JOIN
				join = ","
			} else if comma {
				continue
			}
			dim := add(to, join)
			column := func(s *source, c *column) *node { return &node{t: c.t, col: c, from: s, lo: c.lo, hi: c.hi} }
			for i, c := range prefix {
				a, b := column(p.from, p.from.table.cols[c]), column(dim, to.cols[to.key[i]])
				if g.chance(40) {
					a, b = b, a
				}
				dim.on = append(dim.on, op(typ{kind: boolean}, "@ = @", a, b))
			}
			named := func(i int) bool {
				c, k := p.from.table.cols[prefix[i]], to.cols[to.key[i]]
				return c.name == k.name && c.t.kind == k.t.kind
			}
			if named(0) && named(len(prefix)-1) && join != "," && g.chance(50) {
				for _, k := range to.key {
					dim.using = append(dim.using, to.cols[k].name)
				}
				dim.on = nil
			} else if g.chance(15) {
				only := *g
				only.scope = []*source{dim}
				dim.on = append(dim.on, only.condition(g.r.IntN(2)))
			}
			queue = append(queue, pending{dim, left})
		}
	}
	// A table joined to itself by its key.
	if len(q.from) < 3 && fact.key != nil && g.chance(4) && !slices.ContainsFunc(q.from, func(x *source) bool { return x.join == "," }) {
		twin := add(fact, pick(g.r, "JOIN", "LEFT JOIN"))
		for _, k := range fact.key {
			c := fact.cols[k]
			twin.on = append(twin.on, op(typ{kind: boolean}, "@ = @", &node{t: c.t, col: c, from: first, lo: c.lo, hi: c.hi}, &node{t: c.t, col: c, from: twin, lo: c.lo, hi: c.hi}))
		}
	}
	g.many(s, q, add)
	// dim RIGHT JOIN fact is fact LEFT JOIN dim.
	if len(q.from) == 2 && q.from[1].join == "LEFT JOIN" && g.chance(30) {
		on := q.from[1].on
		q.from[0], q.from[1] = q.from[1], q.from[0]
		q.from[0].join, q.from[0].on = "", nil
		q.from[1].join, q.from[1].on = "RIGHT JOIN", on
		q.from[0].using, q.from[1].using = nil, q.from[0].using
	}
	q.from[len(q.from)-1].natural = len(q.from) == 2 && q.from[1].isNatural(q.from[0]) && g.chance(50)
	if len(q.from) == 1 && !first.derived && g.chance(40) {
		first.alias, first.named = "", true
	}
	g.scope = q.from
}

// isNatural reports whether USING has all names that the columns of both have.
func (s *source) isNatural(other *source) bool {
	if len(s.using) == 0 || s.derived || other.derived {
		return false
	}
	common := 0
	for _, c := range s.table.cols {
		if slices.ContainsFunc(other.table.cols, func(o *column) bool { return o.name == c.name }) {
			common++
		}
	}
	return common == len(s.using)
}

// many joins a small table by columns that are no key of it, now and then.
func (g *gen) many(s *schema, q *query, add func(*table, string) *source) {
	if !g.chance(3) || len(q.from) > 3 || slices.ContainsFunc(q.from, func(x *source) bool { return x.join == "," }) {
		return
	}
	from := pick(g.r, q.from...)
	if from.join == "LEFT JOIN" {
		return
	}
	for range 8 {
		to := pick(g.r, s.related()...)
		a, b := pick(g.r, from.table.cols...), pick(g.r, to.cols...)
		same := a.t.kind == b.t.kind && a.t.scale == b.t.scale && a.t.n == b.t.n && a.t.coll == b.t.coll
		if a.other != "" || b.other != "" || !same || a.t.kind.isFloat() || len(to.rows)*len(from.table.rows) > 60*5000 {
			continue
		}
		src := add(to, "JOIN")
		src.on = []*node{op(typ{kind: boolean}, "@ = @", &node{t: a.t, col: a, from: from, lo: a.lo, hi: a.hi}, &node{t: b.t, col: b, from: src, lo: b.lo, hi: b.hi})}
		return
	}
}

// references groups the columns of a table that point to one other table's key: the
// positions of the first of each group and those after it.
func references(t *table) [][]int {
	var out [][]int
	for i, c := range t.cols {
		if c.refs == nil {
			continue
		}
		prefix, _, _ := strings.Cut(c.name, "_")
		if n := len(out); n > 0 {
			last := t.cols[out[n-1][0]]
			if p, _, _ := strings.Cut(last.name, "_"); p == prefix && last.refsTo == c.refsTo {
				out[n-1] = append(out[n-1], i)
				continue
			}
		}
		out = append(out, []int{i})
	}
	return slices.DeleteFunc(out, func(g []int) bool { return len(g) != len(t.cols[g[0]].refsTo.key) })
}

// randomQuery makes a SELECT over the schema.
func (g *gen) randomQuery(s *schema) *query {
	q := &query{}
	g.from(s, q)
	for range []int{0, 1, 1, 1, 2, 3}[g.r.IntN(6)] {
		q.where = append(q.where, g.condition(g.r.IntN(3)))
	}
	switch n := g.r.IntN(20); {
	case n < 13:
		g.groupedQuery(q)
	case n < 15:
		g.distinctQuery(q)
	default:
		g.rowQuery(q)
	}
	g.sortAndCut(q)
	exact := !slices.ContainsFunc(q.out, func(o output) bool { return o.n.noise > 0 })
	if len(q.group) > 0 && q.limit == nil && q.offset == nil && exact && g.chance(6) {
		return g.wrapped(q)
	}
	if g.chance(3) {
		return g.shown(q)
	}
	return g.twice(q)
}

// shown puts a query into FROM of another one that shows its columns, or some.
func (g *gen) shown(q *query) *query {
	w := &query{wrap: q, with: g.chance(50)}
	for i := range q.out {
		q.out[i].as = fmt.Sprintf("w%d", i+1)
		if n := q.out[i].n; i == 0 || g.chance(80) {
			shown := op(n.t, fmt.Sprintf("w.w%d", i+1)).within(n.lo, n.hi)
			shown.noise = n.noise
			w.out = append(w.out, output{n: shown})
		}
	}
	for i := range q.group {
		q.group[i].byAlias = false
	}
	return w
}

// groupable returns an expression to group by.
func (g *gen) groupable() *node {
	if found := g.spelled(); len(found) > 0 && g.chance(12) {
		return pick(g.r, found...)
	}
	rows := g.rows()
	for range 8 {
		k := pick(g.r, slices.Concat([]kind{boolean, int2, int4, int8, numeric, date, text, varchar, char, timestamp, timestamptz, timeOfDay, float8, float4, int4, text, date}, ordered)...)
		n := rows.leaf(k)
		if g.chance(35) {
			n = rows.of(k, 1+g.r.IntN(2))
		}
		// -0 and 0 are one group, which prints whichever came first.
		if n == nil || n.lit != nil || k.isFloat() && !tame(n) && !g.reckless && !g.chance(15) || n.t.scale == varying && !g.chance(20) {
			continue
		}
		if g.finish && !k.isFloat() && n.t.scale != varying && g.chance(15) {
			return g.refusedOf(n)
		}
		return n
	}
	return rows.of(int4, 1)
}

func (g *gen) groupedQuery(q *query) {
	over := *g
	over.grouped = true
	for range []int{0, 1, 1, 1, 2, 2, 3}[g.r.IntN(7)] {
		n := g.groupable()
		if n.lit != nil {
			continue
		}
		q.group = append(q.group, groupKey{n: n})
		over.keys = append(over.keys, n)
	}
	constant := func(k groupKey) bool { return !k.n.has(func(n *node) bool { return n.col != nil }) }
	if len(q.group) > 0 && g.chance(12) && (g.reckless || !slices.ContainsFunc(q.group, constant)) {
		over.sets = true
		if key, shown := g.keyOver(pick(g.r, q.group...).n); key != nil && g.chance(30) {
			q.group = append(q.group, groupKey{n: key})
			over.keys = append(over.keys, key)
			q.out = append(q.out, output{n: shown})
		}
		q.sets = g.randomSets(q.group)
		if g.chance(70) {
			q.out = append(q.out, output{n: over.groupingOf()})
		}
	}
	for i := range q.group {
		if g.chance(80) {
			q.out = append(q.out, output{n: q.group[i].n})
			if at := len(q.out); g.chance(30) {
				q.group[i].output = at
				if g.chance(50) {
					q.group[i].byAlias, q.out[at-1].as = true, fmt.Sprintf("g%d", at)
				}
			}
		}
	}
	for range 1 + g.r.IntN(4) {
		k := pick(g.r, slices.Concat([]kind{int8, int8, int8, numeric, numeric, numeric, int4, text, date, boolean, timestamp, float8, char, varchar, int2, timestamptz, timeOfDay, float4}, ordered, []kind{text, jsonb})...)
		depth := 0
		if g.chance(25) {
			depth = 1 + g.r.IntN(2)
		}
		if n := over.of(k, depth); n != nil {
			o := output{n: n}
			if g.chance(30) {
				o.as = fmt.Sprintf("a%d", len(q.out)+1)
			}
			q.out = append(q.out, o)
		}
	}
	if g.chance(10) {
		if n := g.inexactAggregate(); n != nil {
			q.out = append(q.out, output{n: n})
		}
	}
	if g.chance(8) {
		if n := g.arrayAggregate(); n != nil {
			q.out = append(q.out, output{n: n})
		}
	}
	if g.chance(5) {
		if n := g.spanAggregate(); n != nil {
			q.out = append(q.out, output{n: n})
		}
	}
	if n := g.spelledAggregate(); n != nil && g.chance(15) {
		q.out = append(q.out, output{n: n})
	}
	if n := g.opaqueCount(); n != nil && g.chance(30) {
		q.out = append(q.out, output{n: n})
	}
	if g.chance(20) {
		q.having = append(q.having, over.condition(g.r.IntN(2)))
	}
	if len(q.group) == 0 && !slices.ContainsFunc(q.out, func(o output) bool { return o.n.has(func(n *node) bool { return n.agg }) }) {
		n := op(typ{kind: int8}, "count(*)")
		n.agg = true
		q.out = append(q.out, output{n: n})
	}
	if g.chance(g.windowed(10)) {
		over.addWindows(q)
	}
	if len(q.group) > 0 && q.sets == nil && g.chance(4) {
		shown := func(k groupKey) bool { return slices.ContainsFunc(q.out, func(o output) bool { return o.n == k.n }) }
		q.distinct = g.reckless || !slices.ContainsFunc(q.group, func(k groupKey) bool { return !shown(k) })
	}
	g.finished(q)
}

func (g *gen) distinctQuery(q *query) {
	q.distinct = true
	for range 1 + g.r.IntN(3) {
		if n := g.groupable(); n.lit == nil {
			q.out = append(q.out, output{n: n})
		}
	}
	if g.chance(8) {
		q.out = append(q.out, g.expandedOutputs()...)
	}
	if len(q.out) == 0 {
		q.out = append(q.out, output{n: g.of(int4, 1)})
	}
}

func (g *gen) rowQuery(q *query) {
	if len(q.from) == 1 && g.chance(15) && !slices.ContainsFunc(q.from[0].table.cols, func(c *column) bool { return c.other != "" }) {
		for _, n := range g.columns(func(*column) bool { return true }) {
			q.out = append(q.out, output{n: n})
		}
		return
	}
	for range 1 + g.r.IntN(5) {
		n := g.subject(g.r.IntN(3))
		o := output{n: n}
		if g.chance(20) {
			o.as = fmt.Sprintf("o%d", len(q.out)+1)
		}
		q.out = append(q.out, o)
	}
	if g.chance(5) {
		if n := g.shownSpan(); n != nil {
			q.out = append(q.out, output{n: n})
		}
	}
	if g.chance(4) {
		q.out = append(q.out, g.expandedOutputs()...)
	}
	if n := g.opaqueValue(); n != nil && g.chance(60) {
		q.out = append(q.out, output{n: n})
	}
	if g.chance(g.windowed(30)) {
		g.addWindows(q)
	}
	g.finished(q)
}

// windowed is of how many of 100 queries windows stand, where there may be so many in trees.
func (g *gen) windowed(percent int) int {
	if g.nest == nil {
		return percent / 4
	}
	return percent
}

// sortAndCut adds ORDER BY, LIMIT and OFFSET.
func (g *gen) sortAndCut(q *query) {
	sortable := func(n *node) bool {
		// Computed text sorts only in C.
		return n.lit == nil && n.noise == 0 && n.t.kind != opaque && (!n.t.kind.isText() || n.col != nil || g.bytewise(n.t) || n.agg && !g.linguistic || g.reckless)
	}
	tail := func() string {
		return pick(g.r, "", "", " ASC", " DESC", " DESC", " USING >", " USING <") + pick(g.r, "", "", "", " NULLS FIRST", " NULLS LAST")
	}
	if !g.chance(60) {
		if g.chance(2) {
			q.limit = g.count(20)
		}
		return
	}
	total := g.chance(60)
	perm := g.r.Perm(len(q.out))
	if !total && len(perm) > 1 {
		perm = perm[:1+g.r.IntN(len(perm)-1)]
	}
	for _, at := range perm {
		o := &q.out[at]
		if !sortable(o.n) {
			continue
		}
		key := sortKey{n: o.n, tail: tail()}
		switch {
		case o.n.f != "" && o.n.agg && g.chance(40):
			if o.as != "" {
				key.output, key.byAlias = at+1, true
			}
		default:
			key.output = at + 1
			key.byAlias = o.as != "" && g.chance(50)
		}
		q.order = append(q.order, key)
	}
	// Rows that tie in all but their key are told apart by it.
	if keyed := q.from[0].table.key; len(q.group) == 0 && !q.distinct && keyed != nil && g.chance(30) && !slices.ContainsFunc(q.out, func(o output) bool { return o.n.agg }) {
		grouped := slices.ContainsFunc(q.out, func(o output) bool { return o.n.has(func(n *node) bool { return n.agg }) })
		if !grouped && len(q.having) == 0 {
			for _, k := range keyed {
				c := q.from[0].table.cols[k]
				q.order = append(q.order, sortKey{n: &node{t: c.t, col: c, from: q.from[0], lo: c.lo, hi: c.hi}, tail: tail()})
			}
		}
	}
	_, all := q.sortedColumns()
	if len(q.order) > 0 && g.chance(35) && (all || g.chance(20)) {
		q.limit = g.count(30)
		if g.chance(25) {
			q.offset = g.count(10)
		}
	}
}

// count is a constant for LIMIT or OFFSET.
func (g *gen) count(most int) *node {
	n := g.constant(typ{kind: int8}, strconv.Itoa(g.r.IntN(most)), false)
	n.lit.form = pick(g.r, bare, bare, open)
	if n.lit.param {
		n.lit.form = open
	}
	if n.lit.value == nil {
		n.lit.param = false
	}
	return n
}

// wrapped puts a grouped query into FROM of another one.
func (g *gen) wrapped(q *query) *query {
	w := &query{wrap: q, with: g.chance(30)}
	over := &gen{r: g.r, utc: g.utc, linguistic: g.linguistic}
	for i := range q.out {
		q.out[i].as = fmt.Sprintf("w%d", i+1)
		n := op(q.out[i].n.t, fmt.Sprintf("w.w%d", i+1)).within(q.out[i].n.lo, q.out[i].n.hi)
		over.keys = append(over.keys, n)
	}
	for i := range q.group {
		q.group[i].byAlias = false
	}
	for _, n := range over.keys {
		if g.chance(75) {
			w.out = append(w.out, output{n: n})
		}
	}
	if len(w.out) == 0 {
		w.out = append(w.out, output{n: over.keys[0]})
	}
	if n := pick(g.r, over.keys...); g.chance(50) && n.t.kind != char {
		if n.t.kind.isNumber() && !math.IsInf(n.lo, 0) {
			w.where = append(w.where, op(typ{kind: boolean}, "@ > @", n, g.constant(typ{kind: int4}, strconv.Itoa(g.r.IntN(10)), false)))
		} else {
			w.where = append(w.where, op(typ{kind: boolean}, "@ IS NOT NULL", n))
		}
	}
	if g.chance(50) {
		for i, o := range w.out {
			if !o.n.t.kind.isText() {
				w.order = append(w.order, sortKey{n: o.n, output: i + 1})
			}
		}
		if _, all := w.sortedColumns(); all && g.chance(30) {
			w.limit = g.count(10)
		}
	}
	return w
}
