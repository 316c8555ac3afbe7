package referee

import (
	"math"
	"slices"
	"strings"

	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// aggregateNames returns the names of the aggregates with a state that give a result of kind k
// for an argument of kind of.
func aggregateNames(state sqlfn.AggregateState, of, k kind) (names []string) {
	for _, a := range sqlfn.Aggregates {
		if a.State == state && !a.Star && kind(a.Result(vector.TypeOf(vector.Kind(of))).Kind) == k {
			names = append(names, a.Names...)
		}
	}
	return names
}

// extremes are the names of those that take the least or the greatest value.
func extremes(of, k kind) []string {
	return append(aggregateNames(sqlfn.AggregateLeast, of, k), aggregateNames(sqlfn.AggregateGreatest, of, k)...)
}

// fraction is the argument of a percentile.
func (g *gen) fraction() string {
	return pick(g.r, "0.5", "0.5", "0.95", "0.99", "0.25", "0", "1", "0.333", "1.0", "0.5::float8")
}

// direction is how a percentile's values are sorted; where nulls go does not matter.
func (g *gen) direction() string {
	return pick(g.r, "", "", "", " DESC", " ASC NULLS FIRST", " DESC NULLS LAST")
}

// distinct is the argument of an aggregate, now and then each value once.
func (g *gen) distinct() string { return pick(g.r, "(@)", "(@)", "(@)", "(DISTINCT @)") }

// aggregateOf returns an aggregate call with a result of the kind, nil where there is
// none.
func (g *gen) aggregateOf(k kind) *node {
	rows := g.rows()
	depth := g.r.IntN(2)
	call := func(t typ, f string, args ...*node) *node {
		n := op(t, f, args...)
		n.agg = true
		if g.chance(15) {
			n.f += " FILTER (WHERE @)"
			n.args = append(slices.Clone(n.args), rows.condition(g.r.IntN(2)))
		}
		return n
	}
	count := func() *node {
		if g.chance(60) {
			return call(typ{kind: int8}, "count(*)").within(0, 1e6)
		}
		n := rows.of(anyValue(g.r), depth)
		switch {
		case n.lit != nil:
			return call(typ{kind: int8}, "count(*)").within(0, 1e6)
		case g.chance(35):
			return call(typ{kind: int8}, "count(DISTINCT @)", n).within(0, 1e6)
		}
		if g.chance(10) && n.t.kind.isInt() {
			return call(typ{kind: int8}, "count(@ ORDER BY @ DESC)", n, n).within(0, 1e6)
		}
		return call(typ{kind: int8}, "count(@)", n).within(0, 1e6)
	}
	// addend is a number, sometimes one that a condition turns into zero.
	addend := func(k kind, pivot bool) *node {
		n := rows.of(k, depth)
		switch {
		case n.t.scale == varying:
			return n
		case !pivot && n.t.kind == numeric && n.t.scale != 0:
			return n
		case g.chance(15):
			return op(n.t, "CASE WHEN @ THEN @ ELSE 0 END", rows.condition(1), n).within(min(n.lo, 0), max(n.hi, 0))
		case g.chance(8):
			return op(n.t, "coalesce(@, 0)", n).within(min(n.lo, 0), max(n.hi, 0))
		}
		return n
	}
	sum := func(k kind, t typ) *node {
		f := pick(g.r, "sum(@)", "sum(@)", "sum(@)", "sum(@)", "sum(DISTINCT @)")
		n := addend(k, f == "sum(@)")
		if n == nil {
			return nil
		}
		if t.kind == numeric {
			t.scale, t.prec = n.t.scale, 36
		}
		args := []*node{n}
		if by := rows.leaf(anyValue(g.r)); by != nil && by.lit == nil && vector.Kind(by.t.kind).Ordered() && f == "sum(@)" && g.chance(6) {
			f, args = "sum(@ ORDER BY @)", append(args, by)
		}
		return call(t, f, args...).within(min(n.lo*1e5, n.lo), max(n.hi*1e5, n.hi))
	}
	extreme := func() *node {
		n := rows.of(k, depth)
		if k.isText() && n.col == nil && !g.bytewise(n.t) || n.lit != nil {
			if n = rows.leaf(k); n == nil {
				return nil
			}
		}
		if k.isText() && !g.bytewise(n.t) && !g.chance(40) { // a rank that may be to come
			return nil
		}
		within := " WITHIN GROUP (ORDER BY @" + g.direction() + ")"
		switch {
		case k.entry().NoExtremes:
			return call(n.t, "percentile_disc("+g.fraction()+")"+within, n).within(n.lo, n.hi)
		case k == text && g.chance(15):
			concat := pick(g.r, "string_agg(DISTINCT @, ',')", "string_agg(@, ', ' ORDER BY @)", "string_agg(@, '' ORDER BY @ DESC)", "string_agg(DISTINCT @, '-' ORDER BY @)")
			return call(n.t, concat, slices.Repeat([]*node{n}, strings.Count(concat, "@"))...)
		case g.chance(25):
			return call(n.t, pick(g.r, "mode()", "percentile_disc("+g.fraction()+")", "percentile_disc("+g.fraction()+")")+within, n).within(n.lo, n.hi)
		}
		t := n.t
		if t.kind == varchar {
			t.kind = text
		}
		return call(t, pick(g.r, extremes(n.t.kind, t.kind)...)+g.distinct(), n).within(n.lo, n.hi)
	}
	// fold is any that folds its values, which need not be of kind k.
	fold := func() *node {
		of := anyKind(g.r)
		names := aggregateNames(sqlfn.AggregateFold, of, k)
		if len(names) == 0 {
			return nil
		}
		n := rows.of(of, depth)
		if n.lit != nil {
			return nil
		}
		return call(typ{kind: k}, pick(g.r, names...)+g.distinct(), n)
	}
	if n := fold(); n != nil {
		return n
	}
	switch {
	case k == money && g.chance(40):
		if n := rows.of(money, depth); n.lit == nil {
			return call(typ{kind: money}, pick(g.r, "sum(@ / 100000)", "sum(@ * 1e-6::float8)", "sum(@)"), n)
		}
	case k == boolean:
		return call(typ{kind: boolean}, pick(g.r, extremes(k, k)...)+"(@)", rows.of(boolean, depth))
	case k == int8:
		switch g.r.IntN(5) {
		case 0, 1:
			return count()
		case 2, 3:
			return sum(pick(g.r, int2, int4, int4), typ{kind: int8})
		}
	case k == numeric:
		switch g.r.IntN(7) {
		case 0:
			return sum(int8, typ{kind: numeric})
		case 1, 2:
			return sum(numeric, typ{kind: numeric})
		case 3, 4:
			if n := addend(pick(g.r, int2, int4, int8, numeric), false); n != nil {
				return call(typ{kind: numeric, scale: varying}, "avg"+g.distinct(), n).within(n.lo, n.hi)
			}
		case 5:
			if n := addend(pick(g.r, int2, int4, int8, numeric), false); n != nil {
				names := aggregateNames(sqlfn.AggregateMoments, n.t.kind, numeric)
				return call(typ{kind: numeric, scale: varying}, pick(g.r, names...)+g.distinct(), n)
			}
		}
	case k == float8 && g.chance(50):
		n := rows.of(pick(g.r, int2, int4, int8, numeric, float4, float8), depth)
		if n.lit == nil && n.t.scale != varying {
			return call(typ{kind: float8}, "percentile_cont("+g.fraction()+") WITHIN GROUP (ORDER BY @"+g.direction()+")", n)
		}
	}
	return extreme()
}

// arrayAggregate returns an array of values in their order, nil where there is none. It can only be shown.
func (g *gen) arrayAggregate() *node {
	k := anyKind(g.r)
	of := vector.ArrayOf(vector.Kind(k))
	if of == vector.Invalid || !vector.Kind(k).Ordered() {
		return nil
	}
	n := g.rows().leaf(k)
	if n == nil || n.lit != nil || k.isText() && !g.bytewise(n.t) && !g.chance(40) {
		return nil
	}
	f := pick(g.r, "array_agg(@ ORDER BY @)", "array_agg(@ ORDER BY @ DESC)", "array_agg(DISTINCT @)", "array_agg(DISTINCT @ ORDER BY @ DESC NULLS LAST)", "coalesce(array_agg(@ ORDER BY @ NULLS FIRST), '{}')",
		"percentile_disc(ARRAY["+g.fraction()+", "+g.fraction()+"]) WITHIN GROUP (ORDER BY @"+g.direction()+")")
	a := op(typ{kind: kind(of)}, f, slices.Repeat([]*node{n}, strings.Count(f, "@"))...)
	a.agg = true
	if f[0] != 'c' && g.chance(15) {
		a.f += " FILTER (WHERE @)"
		a.args = append(slices.Clone(a.args), g.rows().condition(g.r.IntN(2)))
	}
	return a
}

// inexactAggregate returns an aggregate that adds up floats, whose last digits depend in
// PostgreSQL on the order of rows; nil where there is none. It can only be shown: a
// condition or an order might turn on such a digit.
func (g *gen) inexactAggregate() *node {
	rows := g.rows()
	n := rows.leaf(pick(g.r, float8, float8, float4))
	if n == nil || g.chance(40) {
		if n = rows.leaf(pick(g.r, int2, int4, numeric, float4)); n != nil {
			n = op(typ{kind: float8}, "@::float8", n).within(n.lo, n.hi)
		}
	}
	// Values that cancel leave nothing but such digits.
	if n == nil || n.lit != nil || !tame(n) || math.IsInf(n.lo, 0) || math.IsInf(n.hi, 0) {
		return nil
	}
	most := max(math.Abs(n.lo), math.Abs(n.hi))
	f := "avg"
	noise := 1e-10 * most
	switch {
	case n.t.kind == float8 && g.chance(45):
		f, noise = "sum", 1e-8*most // of some thousand rows
	case g.chance(60):
		f = pick(g.r, aggregateNames(sqlfn.AggregateMoments, n.t.kind, float8)...)
		if f[0] == 'v' {
			noise *= most
		}
	}
	a := op(typ{kind: float8}, f+g.distinct(), n)
	a.agg, a.noise = true, noise
	if g.chance(15) {
		a.f += " FILTER (WHERE @)"
		a.args = append(slices.Clone(a.args), rows.condition(g.r.IntN(2)))
	}
	return a
}
