package referee

import "fmt"

// expandable returns a column that functions expand to rows, nil where there is none: text that is split, or a document.
func (g *gen) expandable() *node {
	found := g.columns(func(c *column) bool {
		return c.t.kind == jsonb || c.t.kind.isText() && c.t.kind != char
	})
	if len(found) == 0 {
		return nil
	}
	return pick(g.r, found...)
}

// split is an array of the parts of a text.
func (g *gen) split(of string) string {
	null := pick(g.r, "", "", ", ''", ", 'b'")
	return fmt.Sprintf("string_to_array(%s, '%s'%s)", of, pick(g.r, "a", "e", " ", "b", ","), null)
}

// documentOf is a document where it is of a kind, and else an empty one; now and then it is whatever it is.
func (g *gen) documentOf(of, kind, empty string) string {
	if g.chance(8) {
		return of
	}
	return fmt.Sprintf("CASE WHEN jsonb_typeof(%s) = '%s' THEN %[1]s ELSE '%[3]s'::jsonb END", of, kind, empty)
}

// expansion makes a source of the rows to which a function expands a value of the sources before it; nil where
// there is nothing to expand.
func (g *gen) expansion() *source {
	n := g.expandable()
	if n == nil {
		return nil
	}
	of := n.col.name
	if n.from.alias != "" {
		of = n.from.alias + "." + of
	}
	s := &source{alias: g.nest.name("s"), join: pick(g.r, "JOIN", "LEFT JOIN", "LEFT JOIN", "CROSS JOIN"), rows: 4, table: &table{virtual: true}}
	add := func(t typ, like *column) {
		c := &column{name: g.nest.name("v"), t: t, lo: 1, hi: 9, spread: "even", wild: true}
		if like != nil {
			c.pool, c.held = like.pool, like.held
		}
		s.table.cols = append(s.table.cols, c)
	}
	plain := typ{kind: text}
	switch f := g.r.IntN(4); {
	case n.t.kind.isText():
		s.call = "unnest(" + g.split(of) + ")"
		add(typ{kind: text, coll: n.t.coll}, n.col)
	case f == 0:
		s.call = "jsonb_array_elements_text(" + g.documentOf(of, "array", "[]") + ")"
		add(plain, nil)
	case f == 1:
		s.call = "jsonb_array_elements(" + g.documentOf(of, "array", "[]") + ")"
		add(typ{kind: jsonb}, n.col)
	case f == 2:
		s.call = "jsonb_object_keys(" + g.documentOf(of, "object", "{}") + ")"
		add(plain, nil)
	default:
		s.call = "jsonb_each_text(" + g.documentOf(of, "object", "{}") + ")"
		add(plain, nil)
		add(plain, nil)
	}
	if g.chance(40) {
		s.call += " WITH ORDINALITY"
		add(typ{kind: int8}, nil)
	}
	if s.join != "CROSS JOIN" && g.chance(30) {
		on := *g
		on.nest = nil
		on.scope = []*source{s}
		s.on = []*node{on.condition(g.r.IntN(2))}
	}
	return s
}

// expandedOutput makes an output that expands the rows, nil where there is nothing to expand.
func (g *gen) expandedOutput() *node {
	n := g.expandable()
	switch {
	case n == nil:
		return nil
	case n.t.kind == jsonb:
		return op(typ{kind: text}, "jsonb_object_keys(CASE WHEN jsonb_typeof(@) = 'object' THEN @ ELSE '{}'::jsonb END)", n, n)
	}
	return op(typ{kind: text, coll: n.t.coll}, "unnest("+g.split("@")+")", n)
}
