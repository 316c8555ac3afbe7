package referee

import (
	"math/rand/v2"
	"slices"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// opaque is the kind of columns that are only returned: typ.name says of which type. gen.columns leaves them out.
const opaque = kind(vector.Opaque)

// opaqueExtensions are those of which world.read makes the extension. Operators of hstore might be preferred to built-in ones.
var opaqueExtensions = slices.DeleteFunc(sqltype.OpaqueExtensions(), func(t *sqltype.Opaque) bool { return t.Name != "citext" })

// opaqueColumn makes a column one of an opaque type.
func (c *column) opaqueColumn(r *rand.Rand) {
	of := pick(r, slices.Concat(sqltype.Opaques(), opaqueExtensions)...)
	c.t, c.other, c.domain, c.wild, c.pool = typ{kind: opaque, name: of.Name}, of.SQL(), false, false, of.Samples
}

// opaques are the columns of opaque types.
func (g *gen) opaques() (found []*node) {
	for _, s := range g.scope {
		for _, c := range s.table.cols {
			if c.t.kind == opaque {
				found = append(found, &node{t: c.t, col: c, from: s})
			}
		}
	}
	return found
}

// opaqueValue is a value of an opaque type, as it is or chosen; nil where there is none.
func (g *gen) opaqueValue() *node {
	found := g.opaques()
	if len(found) == 0 {
		return nil
	}
	n := pick(g.r, found...)
	switch g.r.IntN(8) {
	case 0:
		return op(n.t, "CASE WHEN @ THEN @ END", g.rows().condition(0), n)
	case 1:
		return op(n.t, "CASE WHEN @ IS NULL THEN @ ELSE @ END", n, n, n)
	case 2:
		return op(n.t, "COALESCE(@, NULL)", n)
	}
	return n
}

// opaqueCount counts values of an opaque type; nil where there is none.
func (g *gen) opaqueCount() *node {
	found := g.opaques()
	if len(found) == 0 {
		return nil
	}
	n := op(typ{kind: int8}, pick(g.r, "count(@)", "count(*) FILTER (WHERE @ IS NULL)"), pick(g.r, found...)).within(0, 1e9)
	n.agg = true
	return n
}

// spelled are the columns of opaque types that are compared: of which equal values may print apart.
func (g *gen) spelled() []*node {
	return slices.DeleteFunc(g.opaques(), func(n *node) bool { return n.t.name != "interval" && n.t.name != "citext" })
}

// spelledAggregate is the least or greatest of such values, or how many there are; nil where there is none.
func (g *gen) spelledAggregate() *node {
	found := g.spelled()
	if len(found) == 0 {
		return nil
	}
	n := pick(g.r, found...)
	a := op(n.t, pick(g.r, "min(@)", "max(@)"), n)
	if g.chance(50) {
		a = op(typ{kind: int8}, "count(DISTINCT @)", n).within(0, 1e9)
	}
	a.agg = true
	if g.chance(20) {
		a.f += " FILTER (WHERE @)"
		a.args = append(slices.Clone(a.args), g.rows().condition(0))
	}
	return a
}

// comparedCitext compares values of citext, nil where there is none.
func (g *gen) comparedCitext() *node {
	found := slices.DeleteFunc(g.spelled(), func(n *node) bool { return n.t.name != "citext" })
	if len(found) == 0 {
		return nil
	}
	n, t := pick(g.r, found...), typ{kind: boolean}
	literal := func() string { return quote(pick(g.r, "", "A", "a", "gröSSe", "größe", "GRÖSSE", "B", "ß")) }
	symbol := pick(g.r, "=", "<>", "<", "<=", ">", ">=", "=", "IS DISTINCT FROM")
	switch g.r.IntN(6) {
	case 0:
		return op(t, "(@ "+symbol+" @)", n, pick(g.r, found...))
	case 1:
		return op(t, "(@ "+pick(g.r, "", "NOT ")+"IN ("+literal()+", "+literal()+", "+literal()+"))", n)
	case 2:
		return op(t, "(@ "+pick(g.r, "LIKE", "ILIKE", "NOT LIKE", "NOT ILIKE")+" "+pick(g.r, "'%R%'", "'a%'", "'GR_SS%'", "'%ö%'", "'A'")+")", n)
	case 3:
		return op(t, "(@ "+pick(g.r, "~", "~*", "!~", "!~*")+" "+pick(g.r, "'^A'", "'s+e$'", "'R.S'")+")", n)
	case 4:
		return op(t, "(@ BETWEEN "+literal()+" AND "+literal()+")", n)
	}
	return op(t, "(@ "+symbol+" "+literal()+")", n)
}

// twice makes a query of rows one of them twice, now and then where it returns opaque values: UNION ALL compares none.
func (g *gen) twice(q *query) *query {
	opaques := false
	for _, o := range q.out {
		opaques = opaques || o.n.t.kind == opaque
	}
	if !opaques || len(q.order) > 0 || q.limit != nil || q.offset != nil || !g.chance(30) {
		return q
	}
	set := &query{set: "UNION ALL", arms: []*query{q, q.clone()}}
	for _, o := range q.out {
		n := op(o.n.t, "").within(o.n.lo, o.n.hi)
		n.noise = o.n.noise
		set.out = append(set.out, output{n: n, as: o.as})
	}
	return set
}
