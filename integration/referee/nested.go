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
	return !t.kind.isFloat() && t.kind != opaque && (t.kind != numeric || t.scale != varying) && !strings.Contains(t.coll, "loose")
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
