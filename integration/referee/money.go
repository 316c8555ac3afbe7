package referee

// amount is what is computed of money by operators and casts; nil where there is nothing to compute it of.
func (g *gen) amount(depth int) *node {
	t := typ{kind: money}
	switch g.r.IntN(4) {
	case 0:
		if n := g.leaf(pick(g.r, int2, int4, int8, numeric)); n != nil && n.t.kind != int2 {
			return op(t, "@::money", g.closed(n))
		}
	case 1:
		if a, b := g.leaf(money), g.of(money, 0); a != nil {
			return op(t, pick(g.r, "(@ / 2 + @ / 2)", "(@ / 3 - @ * 0.5)"), a, b)
		}
	case 2:
		if a, n := g.leaf(money), g.of(pick(g.r, int2, int4, int8, numeric, float4, float8), 0); a != nil && tame(n) {
			if g.reckless {
				return op(t, pick(g.r, "(@ * @)", "(@ / @)"), a, g.closed(n))
			}
			return op(t, pick(g.r, "(@ / 1e6 * @)", "(@ / nullif(@::int8, 0))"), a, g.closed(n))
		}
	}
	if a := g.leaf(money); a != nil {
		return op(t, pick(g.r, "(@ / 3)", "(0.07 * @)", "(@ / 1.19)", "(@ / -100::int8)"), a)
	}
	return nil
}
