package referee

import (
	"slices"
	"strings"
)

// set is a part of GROUP BY with grouping sets: a key, or a form over others.
type set struct {
	form  string // "ROLLUP ", "CUBE ", "GROUPING SETS " or "", a list in parentheses
	key   *node  // instead
	items []*set
}

// write writes the set without the keys that the query has lost.
func (s *set) write(w *writer, q *query) {
	if s.key != nil {
		i := slices.IndexFunc(q.group, func(k groupKey) bool { return k.n == s.key })
		q.reference(w, s.key, q.group[i].output, q.group[i].byAlias)
		return
	}
	items := slices.DeleteFunc(slices.Clone(s.items), func(x *set) bool { return !x.writable(q) })
	if len(items) == 0 {
		w.WriteString("()")
		return
	}
	w.WriteString(s.form + "(")
	for i, x := range items {
		if i > 0 {
			w.WriteString(", ")
		}
		x.write(w, q)
	}
	w.WriteString(")")
}

// writable reports whether the set is still there: a lost key is not.
func (s *set) writable(q *query) bool {
	return s.key == nil || slices.ContainsFunc(q.group, func(k groupKey) bool { return k.n == s.key })
}

// randomSets arranges the keys of a query in grouping sets; each occurs at least once.
func (g *gen) randomSets(keys []groupKey) []*set {
	one := func() *set { return &set{key: pick(g.r, keys...).n} }
	list := func(n int, f func() *set) []*set {
		var out []*set
		for range 1 + g.r.IntN(n) {
			out = append(out, f())
		}
		return out
	}
	composite := func() *set {
		if g.chance(25) {
			return &set{items: append(list(2, one), one())}
		}
		return one()
	}
	var item func(depth int) *set
	item = func(depth int) *set {
		switch n := g.r.IntN(10); {
		case n < 3:
			return &set{form: "ROLLUP ", items: list(3, composite)}
		case n < 5:
			return &set{form: "CUBE ", items: list(3, composite)}
		case n < 7 && depth > 0:
			return &set{form: "GROUPING SETS ", items: list(3, func() *set { return item(depth - 1) })}
		case n < 8:
			return &set{} // ()
		}
		return composite()
	}
	var out []*set
	if g.chance(50) { // as people write them
		var all []*set
		for _, k := range keys {
			all = append(all, &set{key: k.n})
		}
		return append(out, &set{form: pick(g.r, "ROLLUP ", "ROLLUP ", "CUBE "), items: all})
	}
	out = list(2, func() *set { return item(2) })
	var rest []*set
	for _, k := range keys {
		if !slices.ContainsFunc(out, func(s *set) bool { return s.has(k.n) }) {
			rest = append(rest, &set{key: k.n})
		}
	}
	if len(rest) > 0 {
		out = append(out, &set{form: pick(g.r, "ROLLUP ", "CUBE ", "GROUPING SETS "), items: rest})
	}
	if !slices.ContainsFunc(out, func(s *set) bool { return s.form != "" || s.key == nil && len(s.items) == 0 }) {
		out = append(out, &set{form: "ROLLUP ", items: []*set{one()}})
	}
	return out
}

// keyOver returns an expression over a key of grouping sets that may be another key, and one that
// is much like it but another to PostgreSQL, which is not null in the sets that lack it; nil for
// a key that has none here.
func (g *gen) keyOver(key *node) (over, like *node) {
	var overs, likes []string
	switch k := key.t.kind; {
	case k.isNumber():
		overs = []string{"(@ > 5)", "(@ = 1)", "(@::float8)", "(@ IS NULL)"}
		likes = []string{"(5 < @)", "(NOT (@ <= 5))", "(@ > 5.0)", "(1 >= @)", "(@ BETWEEN 1 AND 1)", "(@ >= 1::float8)", "(NOT (@ IS NOT NULL))"}
	case k == date || k == timestamp:
		overs = []string{"(@ >= date '2000-01-08')", "(@::timestamp)", "(@::date)"}
		likes = []string{"(@ >= timestamp '2000-01-08')", "(date '2000-01-08' <= @)", "(NOT (@ < date '2000-01-08'))", "(@ > timestamp '2000-01-07 12:00')"}
	case k == boolean:
		overs, likes = []string{"(NOT @)", "(@ IS TRUE)"}, []string{"(@ = false)", "(@ IS NOT FALSE)", "(NOT (NOT @))"}
	default:
		return nil, nil
	}
	of := func(forms []string) *node {
		f := pick(g.r, forms...)
		t := typ{kind: boolean}
		switch {
		case strings.HasSuffix(f, "::float8)"):
			t.kind = float8
		case strings.HasSuffix(f, "::timestamp)"):
			t.kind = timestamp
		case strings.HasSuffix(f, "::date)"):
			t.kind = date
		}
		return op(t, f, key)
	}
	return of(overs), of(likes)
}

func (s *set) has(key *node) bool {
	return s.key == key || slices.ContainsFunc(s.items, func(x *set) bool { return x.has(key) })
}

// groupingOf returns GROUPING() of some keys.
func (g *gen) groupingOf() *node {
	n := 1 + g.r.IntN(min(len(g.keys), 3))
	var args []*node
	for _, i := range g.r.Perm(len(g.keys))[:n] {
		args = append(args, g.keys[i])
	}
	return op(typ{kind: int4}, pick(g.r, "grouping(", "GROUPING(")+strings.Repeat("@, ", n-1)+"@)", args...).within(0, 7)
}

func (c *cloner) sets(list []*set) []*set {
	var out []*set
	for _, s := range list {
		out = append(out, &set{form: s.form, key: c.node(s.key), items: c.sets(s.items)})
	}
	return out
}
