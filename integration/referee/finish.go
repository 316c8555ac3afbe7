package referee

import "slices"

// Parts of a question that pgaccel refuses, so that PostgreSQL finishes what is left: functions that it knows, of values of any
// type, whose results show the type as well as the value.

// refusedOf makes a value that is refused of one that is not.
func (g *gen) refusedOf(n *node) *node {
	t := typ{kind: text, n: n.t.n, coll: n.t.coll}
	if !n.t.kind.isText() {
		t.coll = typ{}.coll
	}
	t.n = 0
	made := op(t, pick(g.r, "quote_nullable(@)", "to_json(@)::text", "json_build_array(@)::text", "json_build_object('k', @)::text"), n)
	made.agg = n.agg
	return made
}

// finished has some outputs and conditions of a query refused; keys that are outputs, and what has several right answers, stay.
func (g *gen) finished(q *query) {
	if !g.finish {
		return
	}
	for i := range q.out {
		o := &q.out[i]
		key := slices.ContainsFunc(q.group, func(k groupKey) bool { return k.output == i+1 })
		odd := o.n.has(func(n *node) bool { return n.noise > 0 || n.loose || n.moving || n.lit != nil && n == o.n })
		if !key && !odd && g.chance(40) {
			o.n = g.refusedOf(o.n)
		}
	}
	if g.chance(20) {
		over := *g
		if n := over.rows().leaf(pick(g.r, int4, date, text, numeric)); n != nil && n.lit == nil {
			q.where = append(q.where, op(typ{kind: boolean}, "num_nulls(@) = 0", n))
		}
	}
}
