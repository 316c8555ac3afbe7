package referee

import (
	"fmt"
	"strings"
)

// expandable returns a column that functions expand to rows, nil where there is none: text that is split, or a document.
func (g *gen) expandable() *node {
	found := g.columns(func(c *column) bool {
		return c.t.kind == jsonb || c.t.kind == json || c.t.kind.isText() && c.t.kind != char
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

// documentOf is a document where it is an array or an object, and else an empty one; now and then it is whatever it is.
func (g *gen) documentOf(of string, k kind, what string) string {
	if g.chance(4) {
		return of
	}
	empty := map[string]string{"array": "[]", "object": "{}"}[what]
	return fmt.Sprintf("CASE WHEN %s_typeof(%s) = '%s' THEN %[2]s ELSE '%[4]s'::%[1]s END", k.sql(), of, what, empty)
}

// expandingCall is a call of a function that expands a value, and the columns of its rows. of is how the value is written.
func (g *gen) expandingCall(n *node, of string) (call string, cols []*column) {
	add := func(t typ, like *column) {
		c := &column{name: g.nest.name("v"), t: t, lo: 1, hi: 9, spread: "even", wild: true}
		if like != nil {
			c.pool, c.held = like.pool, like.held
		}
		cols = append(cols, c)
	}
	plain := typ{kind: text}
	if n.t.kind.isText() {
		add(typ{kind: text, coll: n.t.coll}, n.col)
		return "unnest(" + g.split(of) + ")", cols
	}
	f, what := "_array_elements", "array"
	switch g.r.IntN(4) {
	case 0:
		f += "_text"
		add(plain, nil)
	case 1:
		add(typ{kind: n.t.kind}, n.col)
	case 2:
		f, what = "_object_keys", "object"
		add(plain, nil)
	default:
		f, what = "_each_text", "object"
		add(plain, nil)
		add(plain, nil)
	}
	return n.t.kind.sql() + f + "(" + g.documentOf(of, n.t.kind, what) + ")", cols
}

// expansion makes a source of the rows to which functions expand values of the sources before it; nil where
// there is nothing to expand.
func (g *gen) expansion() *source {
	if g.expandable() == nil {
		return nil
	}
	s := &source{alias: g.nest.name("s"), join: pick(g.r, "JOIN", "LEFT JOIN", "LEFT JOIN", "CROSS JOIN"), rows: 4, table: &table{virtual: true}}
	var calls, arrays []string
	for range pick(g.r, 1, 1, 2, 3) {
		n := g.expandable()
		of := n.col.name
		if n.from.alias != "" {
			of = n.from.alias + "." + of
		}
		call, cols := g.expandingCall(n, of)
		calls, s.table.cols = append(calls, call), append(s.table.cols, cols...)
		if array, ok := strings.CutPrefix(call, "unnest("); ok {
			arrays = append(arrays, strings.TrimSuffix(array, ")"))
		}
	}
	switch {
	case len(arrays) == len(calls) && g.chance(50):
		s.call = "unnest(" + strings.Join(arrays, ", ") + ")"
	case len(calls) > 1 || g.chance(10):
		s.call = "ROWS FROM (" + strings.Join(calls, ", ") + ")"
	default:
		s.call = calls[0]
	}
	if g.chance(40) {
		s.call += " WITH ORDINALITY"
		s.table.cols = append(s.table.cols, &column{name: g.nest.name("v"), t: typ{kind: int8}, lo: 1, hi: 9, spread: "even", wild: true})
	}
	if s.join != "CROSS JOIN" && g.chance(30) {
		on := *g
		on.nest = nil
		on.scope = []*source{s}
		s.on = []*node{on.condition(g.r.IntN(2))}
	}
	return s
}

// expandedOutputs makes outputs that expand the rows, one or several; none where there is nothing to expand.
func (g *gen) expandedOutputs() (outs []output) {
	for range pick(g.r, 1, 1, 2, 3) {
		n := g.expandable()
		switch {
		case n == nil:
			return nil
		case n.t.kind.isText():
			outs = append(outs, output{n: op(typ{kind: text, coll: n.t.coll}, "unnest("+g.split("@")+")", n)})
			continue
		}
		k := n.t.kind.sql()
		f := pick(g.r, k+"_object_keys(CASE WHEN "+k+"_typeof(@) = 'object' THEN @ ELSE '{}'::"+k+" END)",
			k+"_array_elements_text(CASE WHEN "+k+"_typeof(@) = 'array' THEN @ ELSE '[]'::"+k+" END)")
		outs = append(outs, output{n: op(typ{kind: text}, f, n, n)})
	}
	return outs
}
