package referee

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// integer returns arithmetic with an integer result.
func (g *gen) integer(k kind, depth int) *node {
	least, most := k.limits()
	result := func(t typ, f string, lo, hi float64, args ...*node) *node {
		l, m := t.kind.limits()
		if lo >= l && hi <= m || g.reckless && g.chance(30) {
			return op(t, f, args...).within(max(lo, l), min(hi, m))
		}
		return nil
	}
	wider := func(a, b *node) typ { return typ{kind: widest(a.t.kind, b.t.kind)} }
	lower := func() kind { return pick(g.r, k, k, int4, int2) }
	for range 4 {
		var n *node
		choice := g.r.IntN(15)
		if k == int2 && g.chance(15) { // few expressions are, and many functions
			choice = 14
		}
		switch choice {
		case 0, 1:
			a, b := g.of(k, depth), g.of(lower(), depth)
			n = result(wider(a, b), "(@ + @)", a.lo+b.lo, a.hi+b.hi, a, b)
		case 2, 3:
			a, b := g.of(k, depth), g.of(lower(), depth)
			n = result(wider(a, b), "(@ - @)", a.lo-b.hi, a.hi-b.lo, a, b)
		case 4, 5:
			a, b := g.of(k, depth), g.of(lower(), depth)
			lo, hi := product(a, b)
			n = result(wider(a, b), "(@ * @)", lo, hi, a, b)
		case 6:
			a, b := g.of(k, depth), g.divisor(lower(), depth)
			if a.lo > least || b.lo >= 0 || g.reckless {
				n = op(wider(a, b), pick(g.r, "(@ / @)", "@ / @"), a, b).within(min(a.lo, -a.hi), max(a.hi, -a.lo))
				n.f = "(@ / @)"
			}
		case 7:
			a, b := g.of(k, depth), g.divisor(lower(), depth)
			n = op(wider(a, b), pick(g.r, "(@ % @)", "mod(@, @)"), a, b).within(min(a.lo, 0), max(a.hi, 0))
		case 8:
			a := g.of(k, depth)
			n = result(typ{kind: a.t.kind}, pick(g.r, "(- @)", "(-(@))"), -a.hi, -a.lo, a)
		case 9:
			a := g.of(k, depth)
			n = result(typ{kind: a.t.kind}, "abs(@)", 0, max(a.hi, -a.lo), a)
		case 10:
			a := g.of(pick(g.r, int2, int4, int8, numeric, float4, float8), depth)
			if a.t.kind.isInt() && g.chance(15) { // by its text, which blanks may surround
				a = g.written(a)
			}
			if a.lo >= least+1 && a.hi <= most-1 || g.reckless {
				n = op(typ{kind: k}, pick(g.r, "@::"+k.sql(), "CAST(@ AS "+k.sql()+")"), g.closed(a)).within(math.Floor(a.lo), math.Ceil(a.hi))
			}
		case 11:
			if k == int4 {
				n = op(typ{kind: int4}, pick(g.r, "(@)::integer", "CAST(@ AS integer)"), g.of(boolean, depth)).within(0, 1)
			}
		case 12:
			if a, b := g.leaf(date), g.leaf(date); k == int4 && a != nil && b != nil && tame(a) && tame(b) {
				n = op(typ{kind: int4}, "(@ - @)", a, b).within(-4e6, 4e6)
			}
		case 13:
			if a := g.of(k, depth); a.t.kind.isInt() {
				n = op(a.t, "(+ @)", a).within(a.lo, a.hi)
			}
		case 14:
			n = g.function(k, depth)
		}
		if n != nil && n.t.kind == k {
			return n
		}
	}
	return nil
}

// closed puts parentheses around what a suffix would not bind to.
func (g *gen) closed(n *node) *node {
	if n.lit != nil || n.col != nil || strings.HasPrefix(n.f, "(") && strings.HasSuffix(n.f, ")") {
		return n
	}
	return &node{t: n.t, f: "(@)", args: []*node{n}, lo: n.lo, hi: n.hi}
}

func widest(a, b kind) kind {
	rank := map[kind]int{int2: 0, int4: 1, int8: 2}
	if rank[a] > rank[b] {
		return a
	}
	return b
}

func product(a, b *node) (lo, hi float64) {
	p := []float64{a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi}
	if slices.ContainsFunc(p, math.IsNaN) {
		return math.Inf(-1), math.Inf(1)
	}
	return slices.Min(p), slices.Max(p)
}

// tame reports whether no column below n holds edges of its type.
func tame(n *node) bool {
	return !n.has(func(x *node) bool { return x.col != nil && x.col.wild })
}

// divisor is a number that is not zero, unless it is reckless.
func (g *gen) divisor(k kind, depth int) *node {
	n := g.of(k, depth)
	switch {
	case n.lo > 0 || n.hi < 0 || g.reckless && g.chance(30):
		return n
	case g.chance(60):
		return op(n.t, "nullif(@, 0)", n).within(n.lo, n.hi)
	}
	return g.constant(typ{kind: k, prec: 3, scale: 1}, strconv.Itoa(1+g.r.IntN(100)), false)
}

// decimal returns an expression with a numeric result. Over rows its digits are
// bounded by what 64 bits hold.
func (g *gen) decimal(depth int) *node {
	operand := func() *node {
		if g.chance(25) {
			return g.of(pick(g.r, int4, int2, int8), depth)
		}
		return g.of(numeric, depth)
	}
	digits := func(n *node) (whole, scale int) {
		switch n.t.kind {
		case int2:
			return 5, 0
		case int4:
			return 10, 0
		case int8:
			return 19, 0
		}
		if n.t.prec == 0 {
			return 18, max(n.t.scale, 0)
		}
		return n.t.prec - n.t.scale, n.t.scale
	}
	for range 5 {
		a := operand()
		switch g.r.IntN(11) {
		case 0, 1, 2:
			b := operand()
			if a.t.kind != numeric && b.t.kind != numeric {
				continue
			}
			if a.t.scale == varying || b.t.scale == varying {
				return op(typ{kind: numeric, scale: varying}, pick(g.r, "(@ + @)", "(@ - @)", "(@ * @)"), a, b)
			}
			aw, as := digits(a)
			bw, bs := digits(b)
			scale := max(as, bs)
			t := typ{kind: numeric, prec: max(aw, bw) + scale + 1, scale: scale}
			if !g.grouped && max(aw, bw)+scale > 18 && !g.reckless {
				continue
			}
			f := pick(g.r, "+", "-", "%")
			if f == "%" {
				b = g.divisor(numeric, 0)
				if b.t.scale == varying || b.t.kind != numeric && a.t.kind != numeric {
					continue
				}
				_, bs = digits(b)
				t.scale = max(as, bs)
				if aw+t.scale > 18 {
					continue
				}
				return op(t, "(@ % @)", a, b).within(min(a.lo, 0), max(a.hi, 0))
			}
			if f == "-" {
				return op(t, "(@ - @)", a, b).within(a.lo-b.hi, a.hi-b.lo)
			}
			return op(t, "(@ + @)", a, b).within(a.lo+b.lo, a.hi+b.hi)
		case 3, 4:
			b := operand()
			if a.t.kind != numeric && b.t.kind != numeric || a.t.scale == varying || b.t.scale == varying {
				continue
			}
			aw, as := digits(a)
			bw, bs := digits(b)
			lo, hi := product(a, b)
			limit := math.Pow10(18 - as - bs)
			if as+bs > 18 || (hi > limit || lo < -limit) && !g.reckless {
				continue
			}
			return op(typ{kind: numeric, prec: aw + bw + as + bs, scale: as + bs}, "(@ * @)", a, b).within(lo, hi)
		case 5:
			if a.t.kind == numeric {
				return op(a.t, pick(g.r, "(- @)", "abs(@)"), a).within(min(a.lo, -a.hi, 0), max(a.hi, -a.lo))
			}
		case 6:
			if a.t.kind.isInt() {
				if g.chance(20) {
					return op(typ{kind: numeric, scale: varying}, "@::numeric", g.written(a)).within(a.lo, a.hi)
				}
				if g.grouped {
					return op(typ{kind: numeric, prec: 19}, "@::numeric", g.closed(a)).within(a.lo, a.hi)
				}
				if a.t.kind != int8 || tame(a) && a.hi < 1e12 {
					t := typ{kind: numeric, prec: 18, scale: pick(g.r, 0, 2)}
					return op(t, fmt.Sprintf("@::numeric(18,%d)", t.scale), g.closed(a)).within(a.lo, a.hi)
				}
			}
		case 7:
			if a.t.kind == numeric && a.t.scale != varying && a.lit == nil {
				t := typ{kind: numeric, prec: 18, scale: g.r.IntN(5)}
				limit := math.Pow10(18 - t.scale)
				if a.hi < limit && a.lo > -limit {
					return op(t, fmt.Sprintf("CAST(@ AS numeric(18,%d))", t.scale), a).within(a.lo-1, a.hi+1)
				}
			}
		case 8, 9:
			if n := g.function(numeric, depth); n != nil {
				return n
			}
		case 10:
			a, t := g.of(numeric, depth), typ{kind: numeric, scale: varying}
			switch b := g.of(pick(g.r, numeric, int8), 0); {
			case g.chance(50) || b.lit != nil:
				return op(t, "(@ / @)", a, g.divisor(pick(g.r, numeric, int8), 0))
			case g.chance(50):
				return op(t, "(@ / nullif(@, 0))", a, b)
			default:
				return op(t, pick(g.r, "CASE WHEN @ > 0 THEN @ / @ END", "CASE WHEN @ = 0 THEN NULL ELSE @ / @ END"), b, a, b)
			}
		}
	}
	return nil
}

// float returns an expression of type real or double precision.
func (g *gen) float(k kind, depth int) *node {
	small := func(n *node) bool { return tame(n) && n.lo > -1e15 && n.hi < 1e15 || g.reckless }
	for range 4 {
		switch g.r.IntN(8) {
		case 0, 1, 2:
			a, b := g.of(k, 0), g.of(k, 0)
			if k == float8 && g.chance(40) {
				b = g.of(pick(g.r, float4, int4, numeric), 0)
			}
			if !small(a) || !small(b) {
				continue
			}
			f := pick(g.r, "(@ + @)", "(@ - @)", "(@ * @)")
			if g.chance(25) {
				f, b = "(@ / @)", g.divisor(pick(g.r, float8, int4), 0)
				if b.t.kind == float8 && b.col != nil && !g.reckless {
					continue
				}
			}
			t := typ{kind: float8}
			if a.t.kind == float4 && b.t.kind == float4 {
				t.kind = float4
			}
			if t.kind == k {
				return op(t, f, a, b)
			}
		case 3:
			return op(typ{kind: k}, pick(g.r, "(- @)", "abs(@)"), g.of(k, depth))
		case 4, 5:
			if k == float8 {
				if a := g.of(pick(g.r, int4, int8, numeric, float4), depth); a.lit == nil {
					if !a.t.kind.isFloat() && g.chance(20) {
						a = g.written(a)
					}
					return op(typ{kind: k}, pick(g.r, "@::double precision", "@::float8"), g.closed(a))
				}
			}
		case 6:
			if n := g.function(k, depth); n != nil {
				return n
			}
		}
	}
	return nil
}

// written is the text of a value, which blanks may surround.
func (g *gen) written(a *node) *node {
	return op(typ{kind: text, coll: computed}, pick(g.r, "@::text", "(' ' || @::text)", "(@::text || ' ')"), g.closed(a)).within(a.lo, a.hi)
}

// computed stands for the collation of text that was made of something else: it is
// the default, but not known as such.
const computed = "?"
