package referee

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// window is a window that functions are over, or a named one of the WINDOW clause.
type window struct {
	name string
	def  *node // what stands in its parentheses
}

// writeWindows writes the WINDOW clause.
func (q *query) writeWindows(w *writer) {
	for i, x := range q.windows {
		w.WriteString([]string{" WINDOW ", ", "}[min(i, 1)] + x.name + " AS (")
		w.node(x.def)
		w.WriteString(")")
	}
}

// over is what the generator knows of a window that it has made.
type over struct {
	text   string // behind OVER
	args   []*node
	keys   []*node
	unique bool // its order leaves no rows equal
	cuts   bool // its frame may end between rows that the order leaves equal
}

// tellsApart returns columns that no two rows of FROM agree in, nil where none are known.
func (g *gen) tellsApart(from []*source) (keys []*node) {
	outer := slices.ContainsFunc(from, func(s *source) bool {
		return strings.Contains(s.join, "LEFT") || strings.Contains(s.join, "RIGHT") || strings.Contains(s.join, "FULL")
	})
	for _, s := range from {
		at := s.table.key
		if s.table.virtual {
			if at = s.table.apart; outer { // a row of nulls, beside one that is not there
				return nil
			}
		}
		if at == nil {
			return nil
		}
		for _, i := range at {
			c := s.table.cols[i]
			if c.other != "" || strings.Contains(c.t.coll, "loose") {
				return nil
			}
			keys = append(keys, &node{t: c.t, col: c, from: s, lo: c.lo, hi: c.hi})
		}
	}
	return keys
}

// apart returns the outputs of a block that no two of its rows agree in, nil where none are known.
func (g *gen) apart(q *query) (at []int) {
	find := func(n *node) bool {
		i := slices.IndexFunc(q.out, func(o output) bool {
			return o.n == n || n.col != nil && o.n.col == n.col && o.n.from == n.from
		})
		at = append(at, i)
		return i >= 0
	}
	switch {
	case q.values != nil, strings.HasSuffix(q.set, " ALL"), q.sets != nil:
		return nil
	case q.set != "", q.distinct:
		for i := range q.out {
			at = append(at, i)
		}
		return at
	case q.group != nil:
		for _, k := range q.group {
			if !find(k.n) {
				return nil
			}
		}
		return at
	}
	for _, n := range g.tellsApart(q.from) {
		if !find(n) {
			return nil
		}
	}
	return at
}

// addWindows adds window functions to what a query shows of its rows or, where g is of groups, of its
// groups.
func (g *gen) addWindows(q *query) {
	unique := g.tellsApart(q.from)
	if g.grouped {
		unique = nil
		for _, k := range q.group {
			if k.n.t.kind.isText() && !g.bytewise(k.n.t) && k.n.col == nil || strings.Contains(k.n.t.coll, "loose") {
				unique = nil
				break
			}
			unique = append(unique, k.n)
		}
		if q.sets != nil {
			unique = nil
		}
	}
	d := *g
	d.nest = nil
	w := d.window(q, unique)
	for range 1 + g.r.IntN(3) {
		if g.chance(30) {
			w = d.window(q, unique)
		}
		if n := d.windowCall(w); n != nil {
			q.out = append(q.out, output{n: d.aroundWindow(n)})
		}
	}
}

// aroundWindow is now and then an expression over a window function.
func (g *gen) aroundWindow(n *node) *node {
	if !g.chance(20) {
		return n
	}
	switch {
	case n.t.kind == int8 && n.lo >= 0 && n.hi <= 1e6:
		return pick(g.r, op(typ{kind: boolean}, "(@ <= "+strconv.Itoa(1+g.r.IntN(9))+")", n), op(typ{kind: int8}, "(@ - 1)", n).within(n.lo-1, n.hi-1))
	case n.t.kind == char, n.t.kind == numeric:
	default:
		if b := g.leaf(n.t.kind); b != nil && !b.agg && alike(n.t, b.t) {
			return op(n.t, "coalesce(@, @)", n, b).within(union(n, b))
		}
	}
	return n
}

// orderKey is an expression that a window may be ordered or divided by.
func (g *gen) orderKey() *node {
	for range 8 {
		n := g.subject(g.r.IntN(2))
		if n.lit != nil || n.noise > 0 || n.t.kind.isText() && n.col == nil && !g.bytewise(n.t) && !g.reckless {
			continue
		}
		return n
	}
	return nil
}

// window makes a window; where unique are keys that tell all rows apart, its order mostly ends in them.
func (g *gen) window(q *query, unique []*node) *over {
	w := &over{}
	var partition, order []string
	var partitionArgs, orderArgs []*node
	if g.chance(55) {
		for range 1 + g.r.IntN(5)/4 {
			if n := g.orderKey(); n != nil {
				partition, partitionArgs = append(partition, "@"), append(partitionArgs, n)
			}
		}
	}
	key := func(n *node) {
		order = append(order, "@"+pick(g.r, "", "", "", " DESC", " ASC")+pick(g.r, "", "", "", " NULLS FIRST", " NULLS LAST"))
		orderArgs = append(orderArgs, n)
	}
	if g.chance(85) {
		w.unique = len(unique) > 0 && g.chance(75)
		if !w.unique || g.chance(60) {
			for range 1 + g.r.IntN(4)/3 {
				if n := g.orderKey(); n != nil {
					key(n)
				}
			}
		}
		if w.unique {
			for _, n := range unique {
				key(n)
			}
		}
	}
	w.keys = orderArgs
	clause := func(words string, list []string) string {
		if len(list) == 0 {
			return ""
		}
		return words + " BY " + strings.Join(list, ", ")
	}
	join := func(parts ...string) string {
		return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
	}
	frame, frameArgs := g.frame(w)
	p, o := clause("PARTITION", partition), clause("ORDER", order)
	define := func(text string, args []*node) string {
		name := fmt.Sprintf("v%d", len(q.windows)+1)
		q.windows = append(q.windows, &window{name, op(typ{kind: boolean}, text, args...)})
		return name
	}
	switch n := g.r.IntN(20); {
	case n < 3: // named
		w.text = define(join(p, o, frame), slices.Concat(partitionArgs, orderArgs, frameArgs))
	case n < 5: // a copy of one that is named
		name := define(p, partitionArgs)
		w.text, w.args = "("+join(name, o, frame)+")", slices.Concat(orderArgs, frameArgs)
	case n < 6:
		name := define(join(p, o), slices.Concat(partitionArgs, orderArgs))
		w.text, w.args = "("+join(name, frame)+")", frameArgs
	case n < 7: // a copy of a copy
		name := define(p, partitionArgs)
		w.text = define(join(name, o, frame), slices.Concat(orderArgs, frameArgs))
	default:
		w.text, w.args = "("+join(p, o, frame)+")", slices.Concat(partitionArgs, orderArgs, frameArgs)
	}
	return w
}

// frame makes the frame of a window, or none.
func (g *gen) frame(w *over) (text string, args []*node) {
	if g.chance(45) {
		return "", nil
	}
	mode := pick(g.r, "ROWS", "ROWS", "ROWS", "RANGE", "RANGE", "GROUPS")
	if mode == "ROWS" && !w.unique && !g.chance(20) || mode == "GROUPS" && len(w.keys) == 0 {
		mode = "RANGE"
	}
	offsets := mode != "RANGE" || len(w.keys) == 1 && g.offset(w.keys[0].t, mode) != ""
	// Bounds in the order that SQL wants of them.
	kinds := []string{"UNBOUNDED PRECEDING", "@ PRECEDING", "CURRENT ROW", "@ FOLLOWING", "UNBOUNDED FOLLOWING"}
	bound := func(from, to int) int {
		for {
			if i := from + g.r.IntN(to-from+1); i%2 == 0 || offsets {
				return i
			}
		}
	}
	write := func(i int) string {
		if i%2 == 0 {
			return kinds[i]
		}
		if mode == "RANGE" {
			return strings.Replace(kinds[i], "@", g.offset(w.keys[0].t, mode), 1)
		}
		n := g.count(6)
		if n.lit.value == nil {
			return strings.Replace(kinds[i], "@", "2", 1)
		}
		if g.nest != nil || g.around != nil {
			n.lit.param = false
		}
		if n.lit.param = false; n.lit.form == open && !g.reckless {
			n.lit.form = bare
		}
		args = append(args, n)
		return kinds[i]
	}
	start := bound(0, 3)
	if text = mode + " "; start < 3 && g.chance(15) {
		text += write(start)
		w.cuts = mode == "ROWS"
	} else {
		least := start
		if start == 2 && !offsets {
			least = 2
		}
		end := bound(max(least, 1), 4)
		text += "BETWEEN " + write(start) + " AND " + write(end)
		w.cuts = mode == "ROWS" && (start != 0 || end != 4)
	}
	if g.chance(20) {
		text += " EXCLUDE " + pick(g.r, "CURRENT ROW", "GROUP", "TIES", "NO OTHERS")
		w.cuts = w.cuts || strings.HasSuffix(text, "CURRENT ROW")
	}
	return text, args
}

// offset is a distance between values of a type as RANGE takes it, "" where there is none.
func (g *gen) offset(t typ, mode string) string {
	switch {
	case t.kind.isInt():
		return pick(g.r, "0", "1", "3", "10", "1000")
	case t.kind == numeric:
		return pick(g.r, "0", "1", "2.5", "100", "0.01")
	case t.kind.isFloat():
		return pick(g.r, "0", "0.5", "3", "1000", "'1.5'")
	case t.kind == date, t.kind == timestamp:
		return pick(g.r, "'1 day'", "interval '7 days'", "'1 month'", "interval '90 minutes'", "interval '1 year 2 days'", "'0 days'")
	case t.kind == timestamptz && g.utc:
		return pick(g.r, "'1 day'", "'36 hours'", "'1 month'")
	case t.kind == timeOfDay:
		return pick(g.r, "'10 minutes'", "interval '3 hours'", "'0'")
	}
	return ""
}

// windowCall is a window function, nil where none was found. Where the order leaves rows equal it is
// mostly one that has the same value for them.
func (g *gen) windowCall(w *over) *node {
	free := w.unique || g.chance(4)
	n := g.windowFunction(free, w)
	if n == nil {
		return nil
	}
	n.loose = n.loose || !w.unique && (free || w.cuts)
	n.agg, n.noise = false, 0
	n.f += " OVER " + w.text
	n.args = append(slices.Clone(n.args), w.args...)
	n.moving = strings.Contains(w.text, "FOLLOWING") || strings.Contains(w.text, "EXCLUDE")
	return n
}

func (g *gen) windowFunction(free bool, w *over) *node {
	big, double := typ{kind: int8}, typ{kind: float8}
	value := func() *node {
		for range 6 {
			if n := g.leaf(anyKind(g.r)); n != nil && n.lit == nil && n.noise == 0 && (n.t.kind != char || g.chance(15)) {
				return n
			}
		}
		return nil
	}
	switch k := g.r.IntN(20); {
	case k < 2:
		return op(big, pick(g.r, "rank()", "dense_rank()", "rank()")).within(1, 1e6)
	case k < 3:
		return op(double, pick(g.r, "percent_rank()", "cume_dist()")).within(0, 1)
	case k < 5 && free:
		return op(big, "row_number()").within(1, 1e6)
	case k < 6 && free:
		return op(typ{kind: int4}, "ntile("+strconv.Itoa(1+g.r.IntN(7))+")").within(1, 7)
	case k < 9 && free:
		a := value()
		if a == nil {
			return nil
		}
		name := pick(g.r, "lag", "lead")
		switch g.r.IntN(4) {
		case 0:
			return op(a.t, name+"(@, "+pick(g.r, "0", "1", "2", "5", "-1", "NULL")+")", a).within(a.lo, a.hi)
		case 1:
			if b := g.sameAs(a); b != nil && b.lit.value != nil {
				b.lit.param = false
				if b.lit.form == open && g.grouped {
					b.lit.form = casted
				}
				return op(a.t, name+"(@, "+pick(g.r, "1", "2", "7")+", @)", a, b).within(union(a, b))
			}
		case 2:
			if b := value(); b != nil && alike(a.t, b.t) && b.t.kind != char {
				return op(a.t, name+"(@, 1, @)", a, b).within(union(a, b))
			}
		}
		return op(a.t, name+"(@)", a).within(a.lo, a.hi)
	case k < 12:
		a := value()
		if !free && len(w.keys) > 0 { // what peers agree in
			a = pick(g.r, w.keys...)
		}
		if a == nil || a.lit != nil || !free && (len(w.keys) == 0 || a.t.kind.isFloat() || !total(a.t)) {
			return nil
		}
		f := pick(g.r, "first_value(@)", "last_value(@)", "nth_value(@, "+pick(g.r, "1", "2", "5")+")")
		return op(a.t, f, a).within(a.lo, a.hi)
	}
	return g.windowAggregate(free)
}

// windowAggregate is an aggregate to stand over a window; ordered says that the order of rows is known.
func (g *gen) windowAggregate(ordered bool) *node {
	if !g.grouped {
		for range 6 {
			n := g.aggregateOf(pick(g.r, int8, int8, numeric, numeric, int4, int2, float4, float8, date, timestamp, boolean, text, varchar))
			if n != nil && n.agg && !strings.Contains(n.f, "DISTINCT") && !strings.Contains(n.f, "WITHIN") {
				return n
			}
			if ordered && g.chance(20) {
				if n = g.inexactAggregate(); n != nil && !strings.Contains(n.f, "DISTINCT") {
					return n
				}
			}
		}
		return op(typ{kind: int8}, "count(*)").within(0, 1e6)
	}
	for range 6 {
		switch n := g.of(pick(g.r, int8, int8, int8, numeric, int4, date, boolean), g.r.IntN(2)); {
		case n == nil || n.lit != nil || n.noise > 0:
		case n.t.kind == int8 || n.t.kind == numeric && n.t.scale != varying:
			t := typ{kind: numeric, scale: n.t.scale, prec: 36}
			if g.chance(30) {
				t.scale = varying
				return op(t, "avg(@)", n)
			}
			return op(t, "sum(@)", n).within(min(n.lo*1e5, n.lo), max(n.hi*1e5, n.hi))
		case n.t.kind == boolean:
			return op(n.t, pick(g.r, "bool_and(@)", "bool_or(@)"), n)
		case n.t.kind == int4 || n.t.kind == date:
			return op(n.t, pick(g.r, "min(@)", "max(@)"), n).within(n.lo, n.hi)
		}
	}
	return op(typ{kind: int8}, "count(*)").within(0, 1e6)
}
