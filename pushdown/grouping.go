package pushdown

import (
	"fmt"
	"slices"
	"strconv"

	"pgaccel/plan"
)

// interner numbers expressions: two have the same number exactly if they are
// equal. Each node is looked at once, so that comparing subtrees stays linear.
type interner struct {
	ids   map[string]int
	calls map[*plan.Call]int
}

func newInterner() *interner {
	return &interner{ids: map[string]int{}, calls: map[*plan.Call]int{}}
}

func (n *interner) id(e plan.Expr) int {
	c, isCall := e.(*plan.Call)
	if isCall {
		if id, ok := n.calls[c]; ok {
			return id
		}
	}
	var k string
	switch x := e.(type) {
	case nil:
		k = "-"
	case plan.Column:
		k = fmt.Sprintf("c%d.%d", x.Table, x.Column)
	case plan.Const:
		t := x.Datum.Type
		k = fmt.Sprintf("k%d/%d/%d/%t/%d/%q/%d,%d", t.Kind, t.Scale, t.Collation.OID, x.Null, x.I, x.Str, x.Num.Unscaled.Hi, x.Num.Unscaled.Lo)
	case plan.Param:
		k = fmt.Sprintf("p%d", x.Index)
	case plan.ServerConst:
		k = fmt.Sprintf("v%d", x.Index)
	case plan.Key:
		k = fmt.Sprintf("K%d.%d", x.Of, x.Index)
	case plan.Agg:
		k = fmt.Sprintf("A%d.%d", x.Of, x.Index)
	case plan.Scalar:
		k = fmt.Sprintf("S%d.%d", x.Of, x.Index)
	case plan.Output:
		k = fmt.Sprintf("O%d.%d", x.Of, x.Index)
	case *plan.Grouping:
		k = fmt.Sprintf("G%d.%d", x.Of, x.Keys)
	case *groupingCall:
		b := []byte("g")
		for _, a := range x.args {
			b = strconv.AppendInt(append(b, ' '), int64(n.id(a)), 10)
		}
		k = string(b)
	case *plan.Call:
		oid := uint32(0)
		if x.Func != nil {
			oid = x.Func.OID
		}
		b := fmt.Appendf(nil, "%d:%d/%d/%d/%d/%d/%t", x.Op, x.T.Kind, x.T.Scale, x.T.Typmod, x.T.Collation.OID, oid, x.Insensitive)
		for _, a := range x.Args {
			b = strconv.AppendInt(append(b, ' '), int64(n.id(a)), 10)
		}
		k = string(b)
	default:
		panic(fmt.Sprintf("BUG: expression %T", e))
	}
	id, ok := n.ids[k]
	if !ok {
		id = len(n.ids)
		n.ids[k] = id
	}
	if isCall {
		n.calls[c] = id
	}
	return id
}

// same reports whether two expressions are equal.
func (n *interner) same(x, y plan.Expr) bool { return x == y || n.id(x) == n.id(y) }

// grouping turns expressions over rows into expressions over groups.
type grouping struct {
	a       *analyzer
	exprs   []plan.Expr
	index   map[int]int  // interned number -> position in exprs
	spelled map[int]bool // interned numbers of what is grouped by its key
	written int          // the number of exprs that GROUP BY has; others depend on them
	sets    []uint64     // grouping sets: bits for positions in exprs; nil for none
	below   []subselect  // over rows: their values are none over groups
}

// newGrouping groups by exprs. With sets they must differ from each other.
func newGrouping(a *analyzer, exprs []plan.Expr, sets []uint64) *grouping {
	g := &grouping{a: a, index: map[int]int{}, spelled: map[int]bool{}, sets: slices.Clone(sets)}
	for _, e := range exprs {
		if hasEqualityKey(e.Type()) {
			if sets != nil {
				fail(plan.ReasonShape, "grouping sets of values that are equal and print apart")
			}
			a.callsEqualityOf(e)
			g.spelled[a.intern.id(e)] = true
			e = a.keyOf(e)
		}
		g.add(e)
	}
	g.written = len(g.exprs)
	return g
}

func (g *grouping) add(e plan.Expr) plan.Key {
	k := g.a.intern.id(e)
	i, ok := g.index[k]
	if !ok {
		i = len(g.exprs)
		g.exprs = append(g.exprs, e)
		g.index[k] = i
	}
	return plan.Key{Of: g.a.aggregation(), Index: i, T: e.Type()}
}

// over rewrites e: what equals a grouping expression becomes its Key.
func (g *grouping) over(e plan.Expr) plan.Expr {
	if i, ok := g.index[g.a.intern.id(e)]; ok {
		return plan.Key{Of: g.a.aggregation(), Index: i, T: e.Type()}
	}
	if g.spelled[g.a.intern.id(e)] {
		return g.a.sole(e)
	}
	if slices.ContainsFunc(g.below, func(s subselect) bool { return s.inside.has(e, s.upTo) }) {
		notGrouped()
	}
	if g.a.passes(e) {
		return e
	}
	switch x := e.(type) {
	case plan.Key, plan.Output, *plan.Grouping:
		notGrouped()
	case plan.Agg:
		if x.Of != g.a.aggregation() { // a derived table's
			notGrouped()
		}
	case plan.Column:
		if !g.dependent(x) {
			notGrouped()
		}
		k := g.add(x)
		for i := range g.sets { // what depends on keys of every set is in every set
			if k.Index >= maxSetKeys {
				fail(plan.ReasonShape, "too many keys of grouping sets")
			}
			g.sets[i] |= 1 << k.Index
		}
		return k
	case *groupingCall:
		return g.overSets(x)
	case *plan.Call:
		args := make([]plan.Expr, len(x.Args))
		for i, y := range x.Args {
			args[i] = g.over(y)
		}
		d := *x
		d.Args = args
		return g.a.sized(&d)
	}
	return e
}

func notGrouped() {
	fail(plan.ReasonShape, "a column that is neither grouped nor aggregated")
}

// dependent reports whether a column is the same throughout each group because a
// unique key of its table is grouped, in every grouping set. Grouping by it too then
// changes nothing. (PostgreSQL asks for the primary key; with another it reports an error
// first.)
func (g *grouping) dependent(c plan.Column) bool {
	common := g.common()
	var keys []int
	for i, e := range g.exprs {
		if g.sets != nil && common>>i&1 == 0 {
			continue
		}
		if k, ok := e.(plan.Column); ok && k.Table == c.Table {
			keys = append(keys, k.Column)
		}
	}
	return g.a.tables[c.Table].Meta.UniqueOn(keys)
}

// dedupe drops repeated conjuncts and those that are constantly true.
func (a *analyzer) dedupe(conds []plan.Expr) []plan.Expr {
	seen := map[int]bool{}
	return slices.DeleteFunc(slices.Clone(conds), func(e plan.Expr) bool {
		k := a.intern.id(e)
		c, isConst := e.(plan.Const)
		drop := seen[k] || isConst && !c.Null && c.I != 0
		seen[k] = true
		return drop
	})
}
