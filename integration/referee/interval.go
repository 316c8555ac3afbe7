package referee

import "slices"

// anyInterval is the type of intervals that are computed: they may have fields of which equal ones print apart, so that they are
// shown and compared, not grouped.
var anyInterval = typ{kind: opaque, name: "interval"}

// spanLeaf is an interval: of a column of any fields, of another, or a difference; nil where there is none.
func (g *gen) spanLeaf(depth int) *node {
	of := slices.DeleteFunc(g.opaques(), func(n *node) bool { return n.t.name != "interval" })
	if len(of) > 0 && !g.grouped && g.chance(30) {
		return pick(g.r, of...)
	}
	if n := g.leaf(interval); n != nil && n.lit == nil && g.chance(70) {
		return n
	}
	if n := g.difference(depth); n != nil && n.lit == nil {
		return n
	}
	return nil
}

// span is what is computed of intervals, nil where there are none. Most stay within what PostgreSQL holds.
func (g *gen) span(depth int) *node {
	a := g.spanLeaf(0)
	if depth > 0 && g.chance(40) {
		a = g.span(depth - 1)
	}
	if a == nil {
		return nil
	}
	constant := "interval '" + pick(g.r, "1 mon", "1 day", "-1 mons +3 days", "25 hours", "1 year 00:00:01", "00:00:00.000001", "-2 days -03:04:05.6") + "'"
	switch g.r.IntN(8) {
	case 0:
		return op(anyInterval, pick(g.r, "(@ + "+constant+")", "("+constant+" + @)", "(@ - "+constant+")", "("+constant+" - @)", "(@ + '1 day 02:03:04')"), a)
	case 1:
		return op(anyInterval, "(- @)", a)
	case 2, 3:
		if b := g.spanLeaf(0); b != nil {
			return op(anyInterval, pick(g.r, "(@ + @)", "(@ - @)"), a, b)
		}
	case 4:
		if n := g.of(pick(g.r, int2, int4, numeric, float8, float4), 0); tame(n) && n.lo >= -20 && n.hi <= 20 {
			return op(anyInterval, pick(g.r, "(@ * @)", "(@ / nullif(@, 0))"), a, g.closed(n))
		}
	}
	return op(anyInterval, pick(g.r, "(@ * 2)", "(@ * -0.5)", "(1.5 * @)", "(@ / 7)", "(@ / 3.3)", "(@ * '2')"), a)
}

// shownSpan is what may be shown of intervals: one, a moment later, or a field.
func (g *gen) shownSpan() *node {
	a := g.span(1)
	if a == nil {
		return nil
	}
	switch g.r.IntN(5) {
	case 0:
		k := pick(g.r, date, timestamp, timestamp, timestamptz)
		if at := g.of(k, 0); tame(at) && (k != timestamptz || g.utc) {
			t := k
			if t == date {
				t = timestamp
			}
			return op(typ{kind: t}, pick(g.r, "(@ + @)", "(@ - @)"), g.closed(at), a)
		}
	case 1:
		return op(typ{kind: numeric, scale: varying}, "extract("+pick(g.r, "epoch", "month", "day", "hour", "second")+" FROM @)", a)
	}
	return a
}

// comparedSpans compares intervals of any fields, nil where there are none.
func (g *gen) comparedSpans() *node {
	a, b := g.spanLeaf(0), g.span(0)
	if a == nil || b == nil {
		return nil
	}
	symbol := pick(g.r, "=", "<>", "<", "<=", ">", ">=")
	switch g.r.IntN(3) {
	case 0:
		return op(typ{kind: boolean}, "(@ "+symbol+" '"+pick(g.r, "1 day", "00:00:00", "30 days", "-1 days")+"')", b)
	case 1:
		return op(typ{kind: boolean}, "(@ "+symbol+" interval '"+pick(g.r, "1 mon", "24:00:00", "-1 years", "5 hours")+"')", b)
	}
	return op(typ{kind: boolean}, "(@ "+symbol+" @)", a, b)
}

// spanAggregate is a sum or an average of intervals, nil where there are none. It can only be shown.
func (g *gen) spanAggregate() *node {
	rows := g.rows()
	a := rows.spanLeaf(0)
	if g.chance(30) {
		a = rows.span(0)
	}
	if a == nil {
		return nil
	}
	n := op(anyInterval, pick(g.r, "sum(@)", "sum(@)", "sum(@)", "avg(@)", "avg(@)", "avg(@)", "avg(@)", "sum(DISTINCT @)"), a)
	n.agg = true
	if g.chance(20) {
		n.f += " FILTER (WHERE @)"
		n.args = append(slices.Clone(n.args), rows.condition(0))
	}
	if g.chance(20) {
		n = op(typ{kind: numeric, scale: varying}, "extract(epoch FROM @)", n)
		n.agg = true
	}
	return n
}
