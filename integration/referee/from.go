package referee

import (
	"fmt"
	"slices"
)

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
		src.table = g.columnsOf(src.block)
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
		first, last := pick(g.r, "timestamp", "date"), "timestamp "
		if first == "timestamp" && g.chance(30) {
			last = ""
		}
		src.call = fmt.Sprintf("generate_series(%s '2000-01-%02d', %s'2000-01-15 12:00', %s'%s')", first, 1+g.r.IntN(20), last, pick(g.r, "interval ", ""), pick(g.r, "1 day", "7 hours", "1 month", "-1 day", "1 day 30 minutes"))
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
	return (a.kind != numeric || a.scale == b.scale) && a.n == b.n && a.coll == b.coll
}

// pair finds columns that may be equal, nil where there are none.
func (g *gen) pair(left, right []*node) (a, b *node) {
	for range 30 {
		if len(left) == 0 || len(right) == 0 {
			return nil, nil
		}
		a, b := pick(g.r, left...), pick(g.r, right...)
		if same(a.t, b.t) && (!a.t.kind.isFloat() || g.chance(40)) && (a.t.kind != boolean || g.chance(10)) {
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
	if rows < maxPairs/4 && g.chance(10) {
		if s := g.expansion(); s != nil {
			q.from = append(q.from, s)
			g.scope = q.from
		}
	}
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
			q.out = append(q.out, output{n: d.of(anyValue(g.r), 1)})
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
			d.groupedBlock(q)
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
	if q.set == "" { // whose outputs have names
		g.shownAs(q)
	}
	if q.values == nil && q.set == "" && len(q.from) > 0 && g.chance(40) {
		g.sortCut(q, 4)
		if q.on == 0 && g.chance(50) {
			q.offset = nil
		}
	}
	s.block = q
	s.table = g.columnsOf(q)
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
