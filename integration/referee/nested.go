package referee

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// nest is what the blocks of one statement have in common.
type nest struct {
	s     *schema
	names int // given to sources and columns
	left  int // sub-selects to come
	ctes  []*cte
}

func (n *nest) name(prefix string) string {
	n.names++
	return prefix + strconv.Itoa(n.names)
}

// nests reports whether here is to be a sub-select, which percent says how often.
func (g *gen) nests(percent int) bool {
	return g.nest != nil && g.nest.left > 0 && g.chance(percent)
}

// seen are the columns that a sub-select may read of the query around it.
func (g *gen) seen() []*node {
	out := g.around
	if g.grouped {
		for _, k := range g.keys {
			if k.col != nil {
				out = append(slices.Clone(out), k)
			}
		}
		return out
	}
	return append(slices.Clone(out), g.columns(func(*column) bool { return true })...)
}

// within is the generator of a query within that of g.
func (g *gen) within() *gen {
	d := *g
	d.around = g.seen()
	d.grouped, d.sets, d.keys, d.scope = false, false, nil, nil
	return &d
}

// sized is about how many rows a source has.
func sized(s *source) int {
	switch {
	case s.call != "":
		return s.rows
	case s.cte != nil:
		return s.cte.size
	case s.block != nil:
		return blockSize(s.block)
	}
	return len(s.table.rows) + 1
}

func blockSize(q *query) int {
	switch {
	case q.set != "":
		return blockSize(q.arms[0]) + blockSize(q.arms[1])
	case q.values != nil:
		return len(q.values)
	}
	n := 1
	for _, s := range q.from {
		switch {
		case s.join == "":
			n = sized(s)
		case !uniqueJoin(s):
			n = max(n, sized(s), n*sized(s)/8)
		}
	}
	return n
}

// item makes an item of FROM: a table, or a block where deep.
func (g *gen) item(deep bool) *source {
	src := &source{alias: g.nest.name("s")}
	switch {
	case deep && len(g.nest.ctes) > 0 && g.chance(50):
		src.cte = pick(g.r, g.nest.ctes...)
		src.table = src.cte.table
	case deep && g.chance(60):
		d := g.within()
		d.around = nil
		src.block = d.block()
		src.table = columnsOf(src.block)
	case deep && g.chance(15):
		g.series(src)
	default:
		src.table = g.nest.s.tables[0]
		if g.chance(50) {
			src.table = pick(g.r, g.nest.s.related()...)
		}
		src.view = g.chance(15)
	}
	return src
}

// series makes a source generate_series or unnest of an array.
func (g *gen) series(src *source) {
	t := pick(g.r, typ{kind: int4}, typ{kind: int4}, typ{kind: int8}, typ{kind: timestamp}, typ{kind: date})
	lo, hi := 0.0, 0.0
	switch t.kind {
	case int4, int8:
		from, step := g.r.IntN(40)-10, pick(g.r, 1, 1, 2, 7, -1, -3)
		src.rows = g.r.IntN(30)
		lo, hi = float64(from-100), float64(from+250)
		cast := pick(g.r, "", "::int4")
		if t.kind == int8 {
			cast = "::int8"
		}
		src.call = fmt.Sprintf("generate_series(%d%s, %d, %d)", from, cast, from+step*(src.rows-1), step)
		if step == 1 && g.chance(50) {
			src.call = fmt.Sprintf("generate_series(%d, %d%s)", from, from+src.rows-1, cast)
		}
	case timestamp:
		src.rows = 1 + g.r.IntN(20)
		src.call = fmt.Sprintf("generate_series(%s '2000-01-%02d', timestamp '2000-01-15 12:00', interval '%s')", pick(g.r, "timestamp", "date"), 1+g.r.IntN(20), pick(g.r, "1 day", "7 hours", "1 month", "-1 day", "1 day 30 minutes"))
	default:
		src.call = "unnest(ARRAY["
		src.rows = 1 + g.r.IntN(4)
		for i := range src.rows {
			src.call += []string{"", ", "}[min(i, 1)] + pick(g.r, "date '2000-01-03'", "date '1999-12-31'", "date '2000-01-09'", "NULL")
		}
		src.call += "]::date[])"
	}
	src.table = &table{virtual: true, cols: []*column{{name: g.nest.name("v"), t: t, lo: lo, hi: hi, spread: "even"}}}
	if g.chance(30) {
		src.call += " WITH ORDINALITY"
		src.table.cols = append(src.table.cols, &column{name: g.nest.name("v"), t: typ{kind: int8}, lo: 1, hi: 40, spread: "even"})
	}
}

// same reports whether a lookup may compare the two, as it mostly does.
func same(a, b typ) bool {
	if a.kind != b.kind {
		return a.kind.isInt() && b.kind.isInt() || a.kind.isText() && b.kind.isText() && a.kind != char && b.kind != char && a.coll == b.coll
	}
	return (a.kind != numeric || a.scale == b.scale && a.scale != varying) && a.n == b.n && a.coll == b.coll
}

// pair finds columns that may be equal, nil where there are none.
func (g *gen) pair(left, right []*node) (a, b *node) {
	for range 30 {
		if len(left) == 0 || len(right) == 0 {
			return nil, nil
		}
		a, b := pick(g.r, left...), pick(g.r, right...)
		if same(a.t, b.t) && !a.t.kind.isFloat() && (a.t.kind != boolean || g.chance(10)) {
			return a, b
		}
	}
	return nil, nil
}

// sourceColumns are a source's columns.
func (g *gen) sourceColumns(s *source) []*node {
	d := *g
	d.scope = []*source{s}
	return d.columns(func(*column) bool { return true })
}

// maxPairs bounds the pairs of rows that a join on no key may have to look at.
const maxPairs = 150_000

// sources makes a FROM of up to n items, of which some are blocks where deep.
func (g *gen) sources(q *query, n int, deep bool) {
	q.from = []*source{g.item(deep)}
	rows := sized(q.from[0])
	for range n - 1 {
		g.scope = q.from
		if g.chance(20) {
			if s := g.laterally(rows); s != nil {
				rows = max(rows, rows*min(sized(s), 8)/4)
				q.from = append(q.from, s)
			}
			continue
		}
		s := g.item(deep)
		a, b := g.pair(g.columns(func(*column) bool { return true }), g.sourceColumns(s))
		if a == nil {
			continue
		}
		unique := len(s.table.key) == 1 && s.table.cols[s.table.key[0]] == b.col
		if !unique && rows*sized(s) > maxPairs {
			continue
		}
		if !unique {
			rows = max(rows, rows*sized(s)/8)
		}
		s.join = pick(g.r, "JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
		s.on = g.joinedOn(s, a, b, rows*sized(s) < maxPairs/10)
		q.from = append(q.from, s)
	}
	g.scope = q.from
}

// joinedOn makes the conditions of a join with s: that two columns are equal, mostly, and of either side or
// of both. few says that the server may look at all pairs.
func (g *gen) joinedOn(s *source, a, b *node, few bool) (on []*node) {
	t := typ{kind: boolean}
	full := s.join == "FULL JOIN"
	swapped := func(f string, a, b *node) *node {
		if g.chance(50) {
			a, b = b, a
		}
		return op(t, f, a, b)
	}
	both := *g
	both.scope = append(slices.Clone(g.scope), s)
	if !g.chance(30) {
		both.nest = nil
	}
	switch {
	case few && !full && g.chance(4):
	case few && !full && g.chance(12):
		on = append(on, op(t, "@ "+pick(g.r, "<", "<=", ">", ">=", "<>")+" @", a, b))
		if a, b := g.pair(g.columns(func(*column) bool { return true }), g.sourceColumns(s)); a != nil && g.chance(50) {
			on = append(on, op(t, "@ "+pick(g.r, "<", "<=", ">", ">=")+" @", a, b))
		}
	case a.t.kind.isText() && a.t.kind != char && g.chance(12):
		lower := func(n *node) *node { return op(typ{kind: text, coll: n.t.coll}, "lower(@)", n) }
		on = append(on, op(t, "@ = @", lower(a), lower(b)))
	case a.t.kind.isInt() && g.chance(8):
		on = append(on, swapped("(@ + 1) = @", a, b))
	case g.chance(6):
		value := g.constant(a.t, g.valueOf(a.t), false)
		value.lit.form, value.lit.param = casted, false
		with := func(n *node) *node { return op(n.t, "coalesce(@, @)", n, value) }
		on = append(on, op(t, "@ = @", with(a), with(b)))
	default:
		on = append(on, swapped("@ = @", a, b))
	}
	if g.chance(15) {
		only := both
		only.scope = []*source{s}
		on = append(on, only.condition(g.r.IntN(2)))
	}
	if g.chance(12) {
		only := both
		only.scope = g.scope
		on = append(on, only.condition(g.r.IntN(2)))
	}
	if a, b := g.pair(g.columns(func(*column) bool { return true }), g.sourceColumns(s)); a != nil && g.chance(15) {
		on = append(on, swapped("@ "+pick(g.r, "=", "<", "<=", "<>")+" @", a, b))
	}
	if g.chance(4) {
		on = append(on, both.condition(1))
	}
	if !full && g.nests(4) {
		sub := both
		sub.nest = g.nest
		if n := sub.subCondition(); n != nil {
			on = append(on, n)
		}
	}
	return on
}

// laterally makes a block that reads the rows of the sources before it, of which there are so many; nil
// where that is too much.
func (g *gen) laterally(rows int) *source {
	if rows > 3000 || g.nest.left <= 0 {
		return nil
	}
	g.nest.left--
	s := &source{alias: g.nest.name("s"), lateral: true, join: pick(g.r, "JOIN", "LEFT JOIN", "LEFT JOIN", "CROSS JOIN")}
	d := g.within()
	around := d.around
	q := &query{}
	switch n := g.r.IntN(20); {
	case n < 1: // expressions alone
		d.scope = g.scope
		for range 1 + g.r.IntN(2) {
			q.out = append(q.out, output{n: d.of(anyKind(g.r), 1)})
		}
	case n < 3:
		a := pick(g.r, around...)
		if a.t.kind == char {
			return nil
		}
		q.values = [][]*node{{a}}
		for range g.r.IntN(3) {
			b := pick(g.r, around...)
			for range 20 {
				if same(a.t, b.t) && a.t == b.t {
					break
				}
				b = pick(g.r, around...)
			}
			if a.t != b.t {
				b = a
			}
			q.values = append(q.values, []*node{b})
		}
		n := op(a.t, "").within(a.lo, a.hi)
		for _, row := range q.values {
			n.within(union(n, row[0]))
		}
		q.out = []output{{n: n}}
	case n < 4:
		if q = d.setOf(nil); q == nil {
			return nil
		}
	default:
		d.sources(q, []int{1, 1, 1, 2}[g.r.IntN(4)], g.chance(12))
		if !d.correlated(q, 92) && g.chance(80) {
			return nil
		}
		d.conditions(q, []int{0, 0, 1}[g.r.IntN(3)])
		over := *d
		over.grouped = true
		switch {
		case n < 10: // a group of each
			for range 1 + g.r.IntN(2) {
				if a := over.of(anyKind(g.r), g.r.IntN(2)); a != nil && a.noise == 0 && a.has(func(n *node) bool { return n.agg }) {
					q.out = append(q.out, output{n: a})
				}
			}
			q.out = append(q.out, output{n: op(typ{kind: int8}, "count(*)").within(0, 1e6)})
			q.out[len(q.out)-1].n.agg = true
			if g.chance(15) {
				q.having = []*node{over.condition(0)}
			}
		case n < 12:
			d.groupedQuery(q)
			q.out = slices.DeleteFunc(q.out, func(o output) bool { return o.n.noise > 0 })
			for i := range q.group {
				q.group[i].output = 0
			}
		case n < 13:
			d.distinctQuery(q)
		default:
			d.rowQuery(q)
			if g.chance(25) {
				q.out = append(q.out, output{n: pick(g.r, around...)})
			}
		}
		if len(q.out) == 0 {
			return nil
		}
	}
	g.shownAs(q)
	if q.values == nil && q.set == "" && len(q.from) > 0 && g.chance(40) {
		g.sortCut(q, 4)
		if q.on == 0 && g.chance(50) {
			q.offset = nil
		}
	}
	s.block = q
	s.table = columnsOf(q)
	if s.join != "CROSS JOIN" && g.chance(30) {
		on := *g
		on.nest = nil
		if on.scope = []*source{s}; g.chance(30) {
			on.scope = append(slices.Clone(g.scope), s)
		}
		s.on = []*node{on.condition(g.r.IntN(2))}
	}
	return s
}

// correlated adds conditions with the query around to a sub-select: equalities mostly.
func (g *gen) correlated(q *query, percent int) bool {
	if !g.chance(percent) {
		return false
	}
	own := g.columns(func(*column) bool { return true })
	a, b := g.pair(own, g.around)
	if a == nil {
		return false
	}
	add := func(a, b *node, symbol string) {
		if g.chance(40) {
			a, b = b, a
		}
		q.where = append(q.where, op(typ{kind: boolean}, "@ "+symbol+" @", a, b))
	}
	add(a, b, pick(g.r, "=", "=", "=", "=", "=", "=", "=", pick(g.r, "<", ">=", "<>")))
	if g.chance(25) {
		if a, b := g.pair(own, g.around); a != nil {
			add(a, b, pick(g.r, "=", "=", "<>", "<", ">="))
		}
	}
	if g.chance(4) { // of the query around alone
		q.where = append(q.where, op(typ{kind: boolean}, "@ IS NOT NULL", pick(g.r, g.around...)))
	}
	return true
}

// conditions adds up to n conditions.
func (g *gen) conditions(q *query, n int) {
	for range n {
		q.where = append(q.where, g.condition(g.r.IntN(2)))
	}
}

// valueLike is a column, or seldom an expression, of a type like t; nil where there is none.
func (g *gen) valueLike(t typ) *node {
	found := g.columns(func(c *column) bool { return same(c.t, t) })
	switch {
	case len(found) == 0:
		return nil
	case g.chance(10):
		if n := g.of(t.kind, 1); n.lit == nil && same(n.t, t) {
			return n
		}
	}
	return pick(g.r, found...)
}

// total reports whether an order by values of the type leaves none to choose.
func total(t typ) bool {
	return !t.kind.isFloat() && (t.kind != numeric || t.scale != varying) && !strings.Contains(t.coll, "loose")
}

// sortCut sorts a query by all outputs and cuts its rows, where that is determined.
func (g *gen) sortCut(q *query, most int) {
	for _, o := range q.out {
		if !total(o.n.t) {
			return
		}
	}
	for i, o := range q.out {
		q.order = append(q.order, sortKey{n: o.n, output: i + 1, tail: pick(g.r, "", "", " DESC") + pick(g.r, "", "", " NULLS FIRST", " NULLS LAST")})
	}
	g.distinctOn(q, 25)
	q.limit = g.count(most)
	q.limit.lit.param = false
	if g.chance(20) {
		q.offset = g.count(4)
		q.offset.lit.param = false
	}
}

// distinctOn makes a query whose order tells all rows apart one of the first rows by some of its keys.
func (g *gen) distinctOn(q *query, percent int) {
	if _, all := q.sortedColumns(); all && !q.distinct && q.sets == nil && q.set == "" && q.values == nil && g.chance(percent) {
		q.on = 1 + g.r.IntN(len(q.order))
	}
}

// members makes a query of one output like t, nil where there is none.
func (g *gen) members(t typ) *query {
	g.nest.left--
	d := g.within()
	switch {
	case g.chance(6):
		return d.constants([]typ{t})
	case g.chance(8):
		if q := d.setOf([]typ{t}); q != nil {
			return q
		}
	}
	q := &query{}
	d.sources(q, []int{1, 1, 1, 1, 2}[g.r.IntN(5)], g.chance(15))
	n := d.valueLike(t)
	if n == nil {
		return nil
	}
	q.out = []output{{n: n}}
	d.correlated(q, 20)
	d.conditions(q, []int{0, 0, 1, 1, 1, 2}[g.r.IntN(6)])
	over := *d
	over.grouped, over.keys = true, []*node{n}
	switch g.r.IntN(13) {
	case 12: // for nothing
		q.order = []sortKey{{n: d.of(int4, 1)}}
	case 0, 1:
		q.distinct = true
	case 2, 3:
		q.group = []groupKey{{n: n}}
		if g.chance(60) {
			q.having = []*node{over.condition(g.r.IntN(2))}
		}
	case 4:
		d.sortCut(q, 10)
	case 5: // an aggregate of one row
		over.keys = nil
		if a := over.aggregateOf(t.kind); a != nil && same(a.t, t) {
			q.out = []output{{n: a}}
		}
	case 6:
		q.where = append(q.where, op(typ{kind: boolean}, pick(g.r, "false", "@ IS NULL", "@ IS NOT NULL", "@ IS NOT NULL"), n))
		if q.where[len(q.where)-1].f == "false" {
			q.where[len(q.where)-1].args = nil
		}
	}
	return q
}

// existing makes a query of which all that matters is whether it has rows.
func (g *gen) existing() *query {
	g.nest.left--
	d := g.within()
	q := &query{}
	d.sources(q, []int{1, 1, 1, 1, 2}[g.r.IntN(5)], g.chance(15))
	q.out = []output{{n: op(typ{kind: int4}, pick(g.r, "1", "*", "NULL", "1"))}}
	d.correlated(q, 75)
	d.conditions(q, []int{0, 0, 1, 1, 2}[g.r.IntN(5)])
	over := *d
	over.grouped = true
	switch g.r.IntN(12) {
	case 0:
		q.out = []output{{n: d.subject(1)}}
	case 1:
		n := d.subject(0)
		over.keys = []*node{n}
		q.group, q.out = []groupKey{{n: n}}, []output{{n: n}}
		if g.chance(70) {
			q.having = []*node{over.condition(1)}
		}
	case 2: // one row, or none by HAVING
		q.out = []output{{n: over.aggregateOf(int8)}}
		if q.out[0].n == nil {
			q.out[0].n = op(typ{kind: int8}, "count(*)")
		}
		if g.chance(50) {
			q.having = []*node{over.condition(0)}
		}
	case 3:
		v := "1"
		q.out = []output{{n: &node{t: typ{kind: int4}, lit: &constant{value: &v, form: bare}}}}
		q.limit = g.count(3)
		q.limit.lit.param = false
	}
	return q
}

// subCondition is a condition with a sub-select, nil where none was found.
func (g *gen) subCondition() *node {
	t := typ{kind: boolean}
	sub := func(q *query) *node { return &node{t: t, sub: q} }
	if g.chance(40) {
		return op(t, pick(g.r, "EXISTS @", "EXISTS @", "NOT EXISTS @", "(EXISTS @)", "(NOT EXISTS @)"), sub(g.existing()))
	}
	for range 3 {
		if g.nest.left <= 0 {
			return nil
		}
		a := g.subject(g.r.IntN(2))
		if g.chance(25) { // as a value of a comparison
			if n := g.subValue(a.t.kind); n != nil && (same(n.t, a.t) || a.t.kind.isNumber()) {
				return op(t, "(@ "+pick(g.r, "=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM")+" @)", a, n)
			}
			continue
		}
		q := g.members(a.t)
		if q == nil {
			continue
		}
		form := pick(g.r, "(@ IN @)", "(@ IN @)", "(@ IN @)", "(@ NOT IN @)", "(@ NOT IN @)", "(@ NOT IN @)", "@ NOT IN @", "(@ = ANY @)", "(@ <> ALL @)")
		if g.chance(20) {
			form = "(@ " + pick(g.r, "<", "<=", ">", ">=", "<>", "=") + " " + pick(g.r, "ANY", "ALL", "SOME") + " @)"
		}
		return op(t, form, a, sub(q))
	}
	return nil
}

// subValue is a sub-select of the kind as a value, nil where none was found.
func (g *gen) subValue(k kind) *node {
	if k == boolean && g.chance(50) {
		return g.subCondition()
	}
	g.nest.left--
	d := g.within()
	q := &query{}
	d.sources(q, []int{1, 1, 1, 1, 2}[g.r.IntN(5)], g.chance(15))
	var n *node
	switch m := g.r.IntN(20); {
	case m < 13:
		d.correlated(q, 65)
		over := *d
		over.grouped = true
		if n = over.aggregateOf(k); n != nil && g.chance(15) {
			for _, o := range g.seen() {
				if alike(n.t, o.t) && n.t.kind != char {
					n = op(n.t, "coalesce(@, @)", n, o).within(union(n, o))
					break
				}
			}
		}
		d.conditions(q, []int{0, 0, 1, 1}[g.r.IntN(4)])
		if n != nil && g.chance(7) {
			q.having = []*node{over.condition(0)}
		}
	case m < 17: // the row of a key
		if n = d.leaf(k); n == nil || len(n.from.table.key) != 1 {
			return nil
		}
		q.from = []*source{n.from}
		n.from.join, n.from.on = "", nil
		d.scope = q.from
		c := n.from.table.cols[n.from.table.key[0]]
		key := &node{t: c.t, col: c, from: n.from, lo: c.lo, hi: c.hi}
		_, o := d.pair([]*node{key}, d.around)
		if o == nil || g.chance(20) {
			o = d.like(key)
		}
		q.where = []*node{op(typ{kind: boolean}, "@ = @", key, o)}
		if g.chance(20) {
			n = d.of(k, 1)
		}
	case m < 19: // the first
		if n = d.leaf(k); n == nil || !total(n.t) {
			return nil
		}
		q.out = []output{{n: n}}
		d.correlated(q, 30)
		d.sortCut(q, 2)
		one := "1"
		q.limit.lit.value = &one
	default: // one, or an error
		n = d.leaf(k)
		d.conditions(q, 2)
	}
	if n == nil || n.t.kind != k {
		return nil
	}
	if q.out == nil {
		q.out = []output{{n: n}}
	}
	return &node{t: n.t, sub: q, lo: n.lo, hi: n.hi}
}

// shownAs gives the outputs of a block names.
func (g *gen) shownAs(q *query) {
	for i := range q.out {
		if q.values != nil {
			q.out[i].as = fmt.Sprintf("column%d", i+1)
			continue
		}
		q.out[i].as = g.nest.name("b")
	}
	for i := range q.group {
		q.group[i].byAlias = false
	}
}
