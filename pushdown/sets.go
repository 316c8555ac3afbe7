package pushdown

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/vector"
)

// PostgreSQL's own limits are 4096 grouping sets (expand_grouping_sets) and 12 elements
// of a CUBE; a plan's sets have bits for 64 keys.
const (
	maxSets    = 4096
	maxCube    = 12
	maxSetKeys = 64
)

// hasSets reports whether GROUP BY has grouping sets: ROLLUP, CUBE, GROUPING SETS or ().
func hasSets(items []*pg.Node) bool {
	return slices.ContainsFunc(items, func(n *pg.Node) bool { return n.GetGroupingSet() != nil })
}

// setBuilder expands the items of a GROUP BY with grouping sets, as PostgreSQL's
// parse_agg.c does, into sets of bits, one for each different expression.
type setBuilder struct {
	a     *analyzer
	item  groupItem
	exprs []plan.Expr
	keys  []groupKey  // as each of exprs was first written
	index map[int]int // interned number -> position in exprs
}

// groupingSets analyses a GROUP BY with grouping sets: the different expressions, and
// the sets of them.
func (a *analyzer) groupingSets(items []*pg.Node, distinct bool, item groupItem) ([]plan.Expr, []uint64) {
	b := &setBuilder{a: a, item: item, index: map[int]int{}}
	// The items of a GROUP BY multiply: a, ROLLUP (b, c) is (a, b, c), (a, b), (a).
	sets := []uint64{0}
	for _, n := range items {
		var product []uint64
		expanded := b.expand(n)
		if len(sets)*len(expanded) > maxSets {
			fail(plan.ReasonShape, "too many grouping sets")
		}
		for _, s := range sets {
			for _, e := range expanded {
				product = append(product, s|e)
			}
		}
		sets = product
	}
	if distinct {
		var kept []uint64
		for _, s := range sets {
			if !slices.Contains(kept, s) {
				kept = append(kept, s)
			}
		}
		sets = kept
	}
	a.setKeys = b.keys
	return b.exprs, sets
}

// checkParts forwards where it is not certain which part of an expression PostgreSQL takes for
// a key: a key of which a part is given by other keys too, as in ROLLUP (f, f::float8). To it
// 1 >= f has no such part, but float84ge; to us it has the cast. An expression over such a key's
// columns must be one of the keys as it is written, or an output that is. So must one over a
// condition, where PostgreSQL before version 18 finds no key in what it simplifies: (a = 5) =
// false is a <> 5 (negate_clause), over an a of some row in the sets that lack the key.
func (g *grouping) checkParts(q *clauses) {
	var columns []plan.Expr // of such keys
	for i, k := range g.exprs {
		if _, ok := k.(*plan.Call); ok && (g.partsGiven(i) || g.nullCondition(i)) {
			plan.Walk(k, func(x plan.Expr) bool {
				if isColumn(x) {
					columns = append(columns, x)
				}
				return true
			})
		}
	}
	if columns == nil {
		return
	}
	var certain []plan.Expr // outputs
	check := func(e plan.Expr, written *pg.Node) {
		if isColumn(e) || slices.Contains(certain, e) {
			return
		}
		if written != nil && slices.ContainsFunc(g.a.setKeys, func(k groupKey) bool { return sameSyntax(k.written, written) }) {
			certain = append(certain, e)
			return
		}
		plan.Walk(e, func(x plan.Expr) bool {
			if slices.Contains(columns, x) {
				if written != nil {
					g.a.at = written
				}
				fail(plan.ReasonShape, "grouping sets over an expression and a part of it")
			}
			return true
		})
	}
	for i, e := range q.outputs {
		check(e, q.targets[i].written)
	}
	for _, e := range q.having {
		check(e, nil)
	}
	for _, o := range q.order {
		check(o.Expr, nil)
	}
}

// isColumn reports whether an expression is a column, of a table or of a derived one.
func isColumn(e plan.Expr) bool {
	switch e.(type) {
	case plan.Column, plan.Key, plan.Agg, plan.Output, *plan.Grouping: // GROUPING() of the block itself is none yet
		return true
	}
	return false
}

// partsGiven reports whether other keys give a part of key i, and one of the two is null in some
// set.
func (g *grouping) partsGiven(i int) (given bool) {
	common := g.common()
	always := common>>i&1 != 0
	plan.Walk(g.exprs[i], func(x plan.Expr) bool {
		k, ok := g.index[g.a.intern.id(x)]
		c, column := x.(plan.Column)
		given = given || ok && k != i && !(always && common>>k&1 != 0) || column && !always && g.dependent(c)
		return !given
	})
	return given
}

// nullCondition reports whether key i is a condition that is null in some set.
func (g *grouping) nullCondition(i int) bool {
	return g.exprs[i].Type().Kind == vector.Bool && g.common()>>i&1 == 0
}

// common is the keys that are in all sets.
func (g *grouping) common() uint64 {
	keys := ^uint64(0)
	for _, s := range g.sets {
		keys &= s
	}
	return keys
}

// expand is expand_groupingset_node: the sets that one item stands for.
func (b *setBuilder) expand(n *pg.Node) []uint64 {
	g := n.GetGroupingSet()
	if g == nil {
		return []uint64{b.simple(n)}
	}
	switch g.Kind {
	case pg.GroupingSetKind_GROUPING_SET_EMPTY:
		return []uint64{0}
	case pg.GroupingSetKind_GROUPING_SET_ROLLUP:
		sets := []uint64{0}
		for _, x := range g.Content {
			sets = append(sets, sets[len(sets)-1]|b.simple(x))
		}
		slices.Reverse(sets)
		return sets
	case pg.GroupingSetKind_GROUPING_SET_CUBE:
		if len(g.Content) > maxCube {
			fail(plan.ReasonShape, "CUBE of too many elements")
		}
		sets := make([]uint64, 1<<len(g.Content))
		for i, x := range g.Content {
			bits := b.simple(x)
			for m := range sets {
				if m>>i&1 != 0 {
					sets[m] |= bits
				}
			}
		}
		slices.Reverse(sets)
		return sets
	case pg.GroupingSetKind_GROUPING_SET_SETS:
		var sets []uint64
		for _, x := range g.Content {
			if sets = append(sets, b.expand(x)...); len(sets) > maxSets {
				fail(plan.ReasonShape, "too many grouping sets")
			}
		}
		return sets
	}
	fail(plan.ReasonShape, "grouping sets of this form")
	return nil
}

// simple is an expression, or a list of them in parentheses, as one set.
func (b *setBuilder) simple(n *pg.Node) uint64 {
	if row := n.GetRowExpr(); row != nil && row.RowFormat == pg.CoercionForm_COERCE_IMPLICIT_CAST {
		set := uint64(0)
		for _, x := range row.Args {
			set |= b.simple(x)
		}
		return set
	}
	if n.GetGroupingSet() != nil {
		fail(plan.ReasonShape, "grouping sets of this form")
	}
	key := b.item(n)
	if foldable(key.e) {
		// A constant is null in the sets that lack it; whether PostgreSQL knows that
		// depends on its version.
		fail(plan.ReasonParameter, "a constant in grouping sets")
	}
	k := b.a.intern.id(key.e)
	i, ok := b.index[k]
	if !ok {
		if i = len(b.exprs); i == maxSetKeys {
			fail(plan.ReasonShape, "too many keys of grouping sets")
		}
		b.exprs, b.keys = append(b.exprs, key.e), append(b.keys, key)
		b.index[k] = i
	}
	if b.keys[i].output != key.output || !sameSyntax(b.keys[i].written, key.written) {
		// Two outputs of one expression (SELECT a, a GROUP BY CUBE (1, 2)), or two expressions
		// that are one here (a, a::numeric): PostgreSQL has two keys.
		fail(plan.ReasonShape, "an expression that is two keys of grouping sets")
	}
	return 1 << i
}

// foldable reports whether PostgreSQL may make a constant of e when it plans
// (eval_const_expressions in clauses.c): because e reads no rows, or because what it reads
// is not needed, as in COALESCE(1, x), CASE WHEN true THEN 1 ELSE x END and x + NULL. It may
// say so of more expressions than PostgreSQL folds.
func foldable(e plan.Expr) bool {
	_, f := folds(e)
	return f
}

// folds returns whether e depends on the row or group, and foldable, in one walk: asking for the first at each call
// would take the square of the calls.
func folds(e plan.Expr) (reads, foldable bool) {
	c, ok := e.(*plan.Call)
	if !ok {
		reads = readsRows(e)
		return reads, !reads
	}
	for i, x := range c.Args {
		r, f := folds(x)
		reads = reads || r
		switch c.Op {
		case plan.OpCoalesce:
			f = f && i == 0
		case plan.OpCase:
			f = f && i%2 == 0 && i+1 < len(c.Args)
		default:
			switch k := x.(type) {
			case plan.Const:
				f = k.Null
			case plan.ServerConst:
				f = false // a null one is not taken
			}
		}
		foldable = foldable || f
	}
	return reads, foldable || !reads
}

// sameSyntax reports whether two expressions of one meaning are written alike, wherever
// they stand; a column is, with its table or without.
func sameSyntax(x, y *pg.Node) bool {
	a, b := nameList(x.GetColumnRef().GetFields()), nameList(y.GetColumnRef().GetFields())
	if len(a) > 0 && len(b) > 0 {
		return a[len(a)-1] == b[len(b)-1]
	}
	return x == y || sameTree(x, y)
}

// groupingCall is GROUPING(...) while its arguments are expressions over rows:
// grouping.over makes a plan.Grouping of it.
type groupingCall struct{ args []plan.Expr }

var int4Type = vector.TypeOf(vector.Int4)

// Type implements plan.Expr.
func (*groupingCall) Type() vector.Type { return int4Type }

// maxGroupingArgs is PostgreSQL's limit on arguments of GROUPING.
const maxGroupingArgs = 31

func (a *analyzer) groupingFunc(f *pg.GroupingFunc, s *scope) plan.Expr {
	if a.noAggs != "" {
		fail(plan.ReasonShape, a.noAggs)
	}
	if len(f.Args) > maxGroupingArgs {
		fail(plan.ReasonShape, "GROUPING() of too many arguments")
	}
	g := &groupingCall{}
	for _, n := range f.Args {
		v := a.expr(n, s)
		if v.unknown() {
			fail(plan.ReasonParameter, "GROUPING() of a value without a type")
		}
		g.args = append(g.args, v.e)
	}
	a.grouping = true
	return g
}

// overSets makes of GROUPING(...) an expression over groups. Its arguments must be keys.
func (g *grouping) overSets(c *groupingCall) plan.Expr {
	keys := make([]int, len(c.args))
	for i, e := range c.args {
		k, ok := g.index[g.a.intern.id(e)]
		if !ok || k >= g.written {
			fail(plan.ReasonShape, "GROUPING() of what is not grouped by")
		}
		keys[i] = k
	}
	if g.sets == nil {
		g.a.groupingZero = true
		return plan.Const{Datum: vector.Int(vector.Int4, 0)}
	}
	return &plan.Grouping{Of: g.a.aggregation(), Keys: keys, T: int4Type}
}
