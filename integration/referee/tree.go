package referee

import (
	"slices"
)

// maxEffort bounds what a statement makes PostgreSQL do.
const maxEffort = 2e6

// treeQuery makes a statement of several blocks.
func (g *gen) treeQuery(s *schema) *query {
	for range 20 {
		q := g.anyTree(s)
		if !g.chance(3) {
			q.dropUnread()
		}
		if effort(q) < maxEffort {
			return q
		}
	}
	return g.randomQuery(s)
}

func (g *gen) anyTree(s *schema) *query {
	d := *g
	d.nest = &nest{s: s, left: 1 + g.r.IntN(4)}
	d.around = nil
	g = &d
	q := &query{}
	if g.chance(25) {
		for range 1 + g.r.IntN(2) {
			c := &cte{name: g.nest.name("w"), how: pick(g.r, "", "", "", "MATERIALIZED ", "NOT MATERIALIZED ")}
			in := g.within()
			c.q = in.block()
			c.table, c.size = g.columnsOf(c.q), blockSize(c.q)
			g.nest.ctes = append(g.nest.ctes, c)
		}
		q.ctes = slices.Clone(g.nest.ctes)
	}
	if len(q.ctes) == 0 && g.chance(12) {
		if set := g.setOf(nil); set != nil {
			g.sortSet(set)
			return set
		}
	}
	g.sources(q, []int{1, 1, 2, 2, 2, 3}[g.r.IntN(6)], g.chance(65) || len(q.ctes) > 0)
	if len(q.from) > 1 && q.from[1].join == "JOIN" && len(q.from) == 2 && len(q.from[1].on) > 0 && g.chance(15) {
		g.onInArms(q)
	}
	for range []int{0, 1, 1, 1, 2}[g.r.IntN(5)] {
		if g.nest.left > 0 && g.chance(60) {
			if n := g.subCondition(); n != nil {
				q.where = append(q.where, n)
				continue
			}
		}
		q.where = append(q.where, g.condition(g.r.IntN(3)))
	}
	switch n := g.r.IntN(20); {
	case n < 12:
		g.groupedQuery(q)
	case n < 14:
		g.distinctQuery(q)
	default:
		g.rowQuery(q)
		if g.chance(20) && g.nest.left > 0 {
			if n := g.subValue(anyKind(g.r)); n != nil {
				q.out = append(q.out, output{n: n})
			}
		}
	}
	g.sortAndCut(q)
	g.distinctOn(q, 20)
	return q
}

// onInArms moves the condition of the one join into WHERE, into each arm of an OR.
func (g *gen) onInArms(q *query) {
	on := q.from[1].on
	q.from[1].join, q.from[1].on = ",", nil
	t := typ{kind: boolean}
	arm := func() *node { return op(t, "(@ AND @)", on[0], g.condition(0)) }
	all := op(t, "(@ OR @)", arm(), arm())
	if g.chance(30) {
		all = op(t, "(@ OR @)", all, pick(g.r, arm(), on[0]))
	}
	q.where = append(q.where, all)
	q.where = append(q.where, on[1:]...)
}

// dropUnread removes the queries of WITH that nothing reads.
func (q *query) dropUnread() {
	for {
		read := map[*cte]bool{}
		q.each(func(x *query) {
			for _, s := range x.from {
				read[s.cte] = true
			}
		})
		n := len(q.ctes)
		if q.ctes = slices.DeleteFunc(q.ctes, func(c *cte) bool { return !read[c] }); len(q.ctes) == n {
			return
		}
	}
}

// sortSet adds ORDER BY, and LIMIT, to a set operation.
func (g *gen) sortSet(q *query) {
	if !g.chance(50) {
		return
	}
	for _, i := range g.r.Perm(len(q.out)) {
		if n := q.out[i].n; !n.t.kind.isText() || g.bytewise(n.t) {
			q.order = append(q.order, sortKey{n: n, output: i + 1, tail: pick(g.r, "", " DESC", " NULLS FIRST", " DESC NULLS LAST")})
		}
	}
	if _, all := q.sortedColumns(); all && g.chance(50) {
		q.limit = g.count(20)
		q.limit.lit.param = false
	}
}

// block makes a query to stand in FROM or in WITH, whose outputs have names.
func (g *gen) block() *query {
	if g.chance(15) {
		if q := g.setOf(nil); q != nil {
			return q
		}
	}
	if g.chance(5) {
		return g.constants([]typ{g.someType(), g.someType()})
	}
	q := &query{}
	g.sources(q, []int{1, 1, 1, 2}[g.r.IntN(4)], g.chance(12))
	g.conditions(q, []int{0, 0, 1, 1, 2}[g.r.IntN(5)])
	switch n := g.r.IntN(20); {
	case n < 10:
		g.groupedBlock(q)
	case n < 13:
		g.distinctQuery(q)
	default:
		g.rowQuery(q)
	}
	if len(q.out) == 0 {
		q.out = []output{{n: op(typ{kind: int8}, "count(*)").within(0, 1e6)}}
		q.out[0].n.agg = true
	}
	g.shownAs(q)
	switch {
	case g.chance(20):
		if g.sortCut(q, 40); q.on > 0 && g.chance(60) {
			q.limit, q.offset = nil, nil
		}
	case g.chance(4) && !q.distinct && q.group == nil && !q.out[0].n.has(func(n *node) bool { return n.agg }):
		q.order = []sortKey{{n: g.of(int4, 1)}} // for nothing
	}
	return q
}

// someType is the type of a column of the schema.
func (g *gen) someType() typ {
	for range 20 {
		t := pick(g.r, g.nest.s.related()...)
		if c := pick(g.r, t.cols...); c.other == "" && c.t.kind != char {
			return c.t
		}
	}
	return typ{kind: int4}
}

// constants makes VALUES of the types.
func (g *gen) constants(types []typ) *query {
	q := &query{values: [][]*node{}}
	for range 1 + g.r.IntN(4) {
		var row []*node
		for _, t := range types {
			if t.kind == char {
				t = typ{kind: text}
			}
			if t.kind == numeric && (t.prec == 0 || t.scale == varying) {
				t.prec, t.scale = 6, 2
			}
			n := g.constant(t, g.valueOf(t), false)
			if n.lit.param = false; n.lit.form == bare && n.t.kind != boolean {
				n.lit.form, n.t.kind = casted, t.kind
			}
			if g.chance(10) {
				n.lit.value = nil
				n.lit.form = pick(g.r, open, casted)
			}
			row = append(row, n)
		}
		q.values = append(q.values, row)
	}
	for i, t := range types {
		n := &node{t: q.values[0][i].t}
		if n.t.coll = ""; t.kind == numeric {
			n.t.scale = varying
		}
		for _, row := range q.values {
			if row[i].lit.value != nil {
				n.t.kind = row[i].t.kind
			}
		}
		q.out = append(q.out, output{n: op(n.t, "")})
	}
	g.shownAs(q)
	return q
}

// setOf makes a set operation whose outputs are like types, or some; nil where the tables have no
// such columns.
func (g *gen) setOf(types []typ) *query {
	if types == nil {
		for range 1 + g.r.IntN(3) {
			types = append(types, g.someType())
		}
	}
	q := &query{set: pick(g.r, "UNION ALL", "UNION ALL", "UNION", "UNION", "INTERSECT", "EXCEPT")}
	if g.chance(15) {
		q.set = pick(g.r, "INTERSECT ALL", "EXCEPT ALL")
	}
	for i := range 2 {
		arm := &query{}
		d := *g
		if len(types) == 1 && g.chance(12) {
			if arm = d.setOf(types); arm == nil {
				return nil
			}
			q.arms = append(q.arms, arm)
			continue
		}
		if i == 1 && g.chance(6) {
			q.arms = append(q.arms, d.constants(types))
			continue
		}
		d.sources(arm, []int{1, 1, 1, 2}[g.r.IntN(4)], g.chance(10))
		for _, t := range types {
			n := d.valueLike(t)
			switch {
			case n == nil && t.kind == char:
				return nil
			case n == nil:
				if t.kind == numeric && t.scale == varying {
					return nil
				}
				n = g.constant(t, g.valueOf(t), false)
				n.lit.form, n.lit.param, n.t = casted, false, t
			case i == 1 && g.chance(6): // a null whose type the other arm says
				n = &node{t: t, lit: &constant{form: open}}
			}
			arm.out = append(arm.out, output{n: n})
		}
		d.conditions(arm, []int{0, 1, 1}[g.r.IntN(3)])
		if i > 0 && len(g.around) > 0 {
			d.correlated(arm, 5)
		}
		over := d
		over.grouped = true
		switch g.r.IntN(8) {
		case 0:
			arm.distinct = true
		case 1:
			for _, o := range arm.out {
				if o.n.lit == nil {
					arm.group = append(arm.group, groupKey{n: o.n})
					over.keys = append(over.keys, o.n)
				}
			}
			if arm.group != nil && g.chance(50) {
				arm.having = []*node{over.condition(0)}
			}
		case 2:
			d.sortCut(arm, 30)
		}
		q.arms = append(q.arms, arm)
	}
	for i, o := range q.arms[0].out {
		t, b := o.n.t, q.arms[1].out[i].n
		switch {
		case t.kind == numeric && b.t.scale != t.scale:
			t.scale = varying
		case t.kind.isInt() && b.t.kind.isInt():
			t.kind = widest(t.kind, b.t.kind)
		case t.kind.isText() && b.t.kind != t.kind:
			t.kind = text
		}
		if t.n = 0; t.kind == char || t.kind == varchar {
			t.n = o.n.t.n
		}
		n := op(t, "").within(union(o.n, b))
		if b.lit != nil && b.lit.value == nil {
			n.within(o.n.lo, o.n.hi)
		}
		if o.n.lit != nil || b.lit != nil && b.lit.value != nil {
			n.within(-1e18, 1e18)
		}
		q.out = append(q.out, output{n: n})
	}
	// The names are those of the first arm.
	g.shownAs(q)
	for a := q.arms[0]; ; a = a.arms[0] {
		for i := range a.out {
			if a.values == nil {
				a.out[i].as = q.out[i].as
			} else {
				q.out[i].as = a.out[i].as
			}
		}
		if a.set == "" {
			break
		}
	}
	return q
}

// groupedBlock makes a block of groups, of which all outputs are sure and shown.
func (g *gen) groupedBlock(q *query) {
	g.groupedQuery(q)
	q.out = slices.DeleteFunc(q.out, func(o output) bool { return o.n.noise > 0 })
	for i := range q.group {
		q.group[i].output = 0
	}
}
