package olap

import (
	"math/bits"
	"slices"

	"pgaccel/plan"
)

// Grouping sets (GROUPING SETS, ROLLUP, CUBE) are computed in one scan. The sets form a
// lattice by inclusion; the groups of a set are sums of those of any superset, since all
// states can be merged:
//
//	rows --scan--> (a, b, c) --merge--> (a, b) --> (a) --> ()
//	          \--> (d)                  (a, c)
//
// Some groupings, the bases, are computed from rows: the sets that no other includes, or
// unions of them where one union has few groups and saves work for every row. Each other
// set is computed from the smallest grouping that is there and includes it.

// arrange plans the groupings: bases and strategies. Without sets there is one, by all
// keys.
func (g *grouper) arrange(sets []uint64) {
	rows := g.p.expectedRows()
	g.bases, g.sets = nil, nil
	if sets == nil {
		by := g.newGrouping(0, true)
		g.bases, g.sets = []*grouping{by}, []*grouping{by}
		g.estimate(g.bases, rows)
		by.choose(rows)
		return
	}
	made := map[uint64]*grouping{}
	get := func(set uint64) *grouping {
		if made[set] == nil {
			made[set] = g.newGrouping(set, false)
			g.estimate([]*grouping{made[set]}, rows)
		}
		return made[set]
	}
	for _, set := range sets {
		g.sets = append(g.sets, get(set))
	}
	for set, by := range made {
		maximal := true
		for other := range made {
			maximal = maximal && (other == set || set&^other != 0)
		}
		if maximal {
			g.bases = append(g.bases, by)
		}
	}
	slices.SortFunc(g.bases, func(a, b *grouping) int { // an order of its own, not the map's
		if a.set < b.set {
			return -1
		}
		return 1
	})
	g.unite(rows, get)
	for _, by := range g.bases {
		by.choose(rows)
	}
	for _, by := range g.sets {
		if by.how == groupAuto {
			by.choose(rows)
			if by.how == groupPartitioned { // it is computed from groups
				by.how = groupHash
			}
		}
	}
}

// rowCost estimates the nanoseconds that a row costs in a grouping.
func (by *grouping) rowCost() float64 {
	per := 1 + float64(len(by.g.accs))
	switch n := by.expect; {
	case len(by.axes) == 0:
		return 0.3 * per
	case n <= denseSmall:
		return 1 + per
	case n <= denseGroups:
		return 3 + 2*per
	default:
		return 10 + 4*per
	}
}

// groupCost estimates the nanoseconds of merging a group into one of another set.
func (by *grouping) groupCost() float64 { return 10 + 5*float64(1+len(by.g.accs)) }

// unite replaces two bases by their union as long as that saves time.
func (g *grouper) unite(rows float64, get func(uint64) *grouping) {
	for len(g.bases) > 1 {
		best, bi, bj := 0.0, -1, -1
		for i, a := range g.bases {
			for j, b := range g.bases[:i] {
				u := get(a.set | b.set)
				saved := rows*(a.rowCost()+b.rowCost()-u.rowCost()) - 2*u.expect*u.groupCost()
				if saved > best {
					best, bi, bj = saved, i, j
				}
			}
		}
		if bi < 0 {
			return
		}
		u := get(g.bases[bi].set | g.bases[bj].set)
		kept := []*grouping{u}
		for _, b := range g.bases {
			if b.set&^u.set != 0 {
				kept = append(kept, b)
			}
		}
		g.bases = kept
	}
}

// derive computes the sets that are no bases, larger ones first.
func (g *grouper) derive() error {
	there := slices.Clone(g.bases)
	todo := slices.Clone(g.sets)
	slices.SortStableFunc(todo, func(a, b *grouping) int { return bits.OnesCount64(b.set) - bits.OnesCount64(a.set) })
	for _, by := range todo {
		if by.done != nil {
			continue
		}
		var from *grouping
		for _, f := range there {
			if by.set&^f.set == 0 && (from == nil || f.size() < from.size()) {
				from = f
			}
		}
		if err := by.deriveFrom(from); err != nil {
			return err
		}
		there = append(there, by)
	}
	return nil
}

// size returns the groups of a result, with those that do not exist.
func (by *grouping) size() (n int) {
	for _, s := range by.done {
		n += s.size()
	}
	return n
}

// deriveFrom computes a grouping from one by more keys.
func (by *grouping) deriveFrom(finer *grouping) error {
	s := by.newGroups()
	s.open()
	by.done = []*groups{s}
	for _, from := range finer.done {
		of := from.numbers(0, from.size())
		if len(of) == 0 {
			continue
		}
		to := make([]uint32, len(of))
		by.numbersFrom(from, of, to, s)
		if err := s.addTo(from, of, to); err != nil {
			return err
		}
	}
	return nil
}

// numbersFrom writes the groups of s that the groups of a finer table belong to.
func (by *grouping) numbersFrom(from *groups, of, to []uint32, s *groups) {
	words := by.pack.words
	var keys []uint64
	if s.table != nil {
		keys = make([]uint64, len(of)*words)
	}
	for i := range by.axes {
		a, part := &by.axes[i], &by.pack.parts[i]
		v := by.axisFrom(a, from, of)
		if s.table != nil {
			for j := range of {
				part.pack(keys[j*words:(j+1)*words], v, j)
			}
			continue
		}
		for j := range of {
			to[j] += uint32(part.digit(v, j) * part.stride)
		}
	}
	if s.table != nil {
		s.table.insertAll(keys, to)
		s.resize(s.table.n)
	}
}

// axisFrom returns the values or codes of an axis for the groups of a finer table.
func (by *grouping) axisFrom(a *axis, from *groups, of []uint32) vec {
	for fi := range from.by.axes {
		f := &from.by.axes[fi]
		if a.node != nil {
			if f.node == nil || f.keys[0] != a.keys[0] {
				continue
			}
			v, nulls := from.digits(fi, of)
			return vec{v, nulls}
		}
		if f.node != nil || f.probe != a.probe {
			continue
		}
		v, _ := from.digits(fi, of)
		if a.codeOf != nil {
			for j, code := range v {
				e := uint32(code)
				if f.rep != nil {
					e = f.rep[code]
				}
				v[j] = int64(a.codeOf[e])
			}
		}
		return vec{v: v}
	}
	panic("BUG: a set from one that does not include it")
}

// sets checks the grouping sets, and what GROUPING says about them.
func (s *support) sets(q *plan.Star) {
	if q.Sets != nil && (!q.Grouped || len(q.Group) > 64 || len(q.Sets) == 0) {
		s.no(plan.ReasonShape, "grouping sets")
	}
	for _, set := range q.Sets {
		if len(q.Group) < 64 && set>>uint(len(q.Group)) != 0 {
			s.no(plan.ReasonShape, "a grouping set of unknown keys")
		}
	}
	check := func(e plan.Expr) {
		plan.Walk(e, func(n plan.Expr) bool {
			if g, ok := n.(*plan.Grouping); ok {
				for _, k := range g.Keys {
					if k < 0 || k >= len(q.Group) {
						s.no(plan.ReasonShape, "GROUPING of an unknown key")
					}
				}
				if len(g.Keys) > 31 {
					s.no(plan.ReasonShape, "GROUPING of more than 31 keys")
				}
			}
			return s.why == nil
		})
	}
	for _, list := range [][]plan.Expr{q.Having, q.Output} {
		for _, e := range list {
			check(e)
		}
	}
	for _, k := range q.Order {
		check(k.Expr)
	}
}

func (g *grouper) describe(t func(string, ...any)) {
	for _, by := range g.bases {
		switch by.how {
		case groupSingle:
			t("  one group")
		case groupDense:
			t("  array of %d groups", by.pack.card)
		case groupPartitioned:
			what := "tables"
			if by.radix.direct {
				what = "arrays"
			}
			t("  partitioned, %d %s of %d rows, about %.0f groups", len(by.radix.parts), what, by.radix.rows, by.expect)
			if by.radix.combines() {
				t("  neighbours of a group are added up first")
			}
		default:
			t("  hash of groups, %d words a key", by.pack.words)
		}
	}
	if len(g.sets) > 1 {
		t("  %d grouping sets from %d groupings of rows", len(g.sets), len(g.bases))
	}
	for _, a := range g.accs {
		t("  accumulator %s", accNames[a.kind])
	}
}
