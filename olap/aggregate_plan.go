package olap

import (
	"math"
	"slices"

	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// aggRef says where an aggregate's parts are; -1 for count: the group's rows.
type aggRef struct {
	f            *sqlfn.Aggregate
	t            vector.Type
	arg          *node
	value, count int
	zeros        int
	offset       int64   // to be added to each value that was summed up (see shifted)
	ranks        []int64 // text: code by rank; nil where codes are in order
	dict         *dict

	// DISTINCT: the set, and the accumulator that its values go to; over is nil for
	// count.
	distinct int
	over     *acc

	// The percentiles. cast is set where arg's values are to be cast to double precision.
	ordered  bool
	fraction float64
	desc     bool
	cast     func(int64) (int64, error)
}

// addAggregates compiles the aggregates, whose expressions are lowered.
func (g *grouper) addAggregates(aggs []plan.AggregateCall) error {
	c := &aggCompiler{g: g}
	// First of all the nodes: which sums share an accumulator depends on all of them.
	refs, filters := make([]aggRef, len(aggs)), make([]*node, len(aggs))
	for i, a := range aggs {
		r := &refs[i]
		*r = aggRef{f: a.Func, t: a.T, count: -1, value: -1, zeros: -1, distinct: -1, desc: a.Desc}
		var err error
		if a.Filter != nil {
			if filters[i], err = c.compile(a.Filter); err != nil {
				return err
			}
		}
		if a.Func.Star {
			continue
		}
		arg := a.Arg
		if a.Func == plan.PercentileCont {
			arg, r.cast = uncast(arg)
		}
		if a.Func.State == sqlfn.AggregateSum && !a.Distinct {
			r.arg, r.offset, err = c.shifted(arg)
		} else {
			r.arg, err = c.compile(arg)
		}
		if err != nil {
			return err
		}
		if r.t.Varying() && (a.Func.Idempotent || a.Func.OrderedSet()) { // a constant has the scale that it turned out to have
			r.t.Scale = r.arg.t.Scale
		}
		if !a.Distinct && r.arg.t.Kind.IsFloat() && a.Func.State == sqlfn.AggregateMoments {
			c.squared = append(c.squared, acc{arg: r.arg, filter: filters[i]})
		}
	}
	for i, a := range aggs {
		if err := c.add(&refs[i], a, filters[i]); err != nil {
			return err
		}
	}
	g.refs = refs
	return nil
}

// shifted compiles a sum's argument. Where that is an integer plus or minus a constant and cannot leave its type's range, it is
// the integer: the sum is that of the integer, and the constant as often. So sums of one integer and several constants are one.
func (c *aggCompiler) shifted(e plan.Expr) (n *node, offset int64, err error) {
	call, ok := e.(*plan.Call)
	if !ok || call.Op != plan.OpAdd && call.Op != plan.OpSub {
		n, err = c.compile(e)
		return n, 0, err
	}
	base, by := call.Args[0], call.Args[1]
	if _, first := base.(plan.Const); first && call.Op == plan.OpAdd {
		base, by = by, base
	}
	k, constant := by.(plan.Const)
	lo, hi, ranged := kindRange(call.T.Kind)
	if !constant || k.Null || k.I == math.MinInt64 || !ranged || !call.T.Kind.IsInt() || !base.Type().Kind.IsInt() || !k.Type().Kind.IsInt() {
		n, err = c.compile(e)
		return n, 0, err
	}
	if offset = k.I; call.Op == plan.OpSub {
		offset = -k.I
	}
	if n, err = c.compile(base); err != nil || n.dict != nil || n.kind == nodeConst || n.lo < 0 && offset < lo-n.lo || n.hi > 0 && offset > hi-n.hi || offset < lo || offset > hi {
		n, err = c.compile(e)
		return n, 0, err
	}
	return n, offset, nil
}

// uncast returns what an expression casts to double precision, and the cast: where it
// keeps the order of the values, those that are to be ranked need not be cast before.
func uncast(e plan.Expr) (plan.Expr, func(int64) (int64, error)) {
	c, ok := e.(*plan.Call)
	if !ok || c.Op != plan.OpCast || c.T.Kind != vector.Float8 {
		return e, nil
	}
	if t := c.Args[0].Type(); !t.Varying() {
		if f := castFloat(t); f != nil {
			return c.Args[0], f
		}
	}
	return e, nil
}

// castFloat returns the cast of integers and numerics to double precision; nil for other
// types.
func castFloat(t vector.Type) func(int64) (int64, error) {
	if !t.Kind.IsInt() && t.Kind != vector.Numeric {
		return nil
	}
	return func(v int64) (int64, error) {
		r, err := castScalar(vector.WordValue(v, t), t, vector.TypeOf(vector.Float8))
		return r.I, err
	}
}

type aggCompiler struct {
	g     *grouper
	nodes []struct {
		e plan.Expr
		n *node
	}
	keyed   []acc // float arguments and the nodes of their keys, as filter
	present []acc // arguments of counts, and the nodes that tell whether they are null
	squared []acc // float arguments and filters of which the squares are summed up
}

func (c *aggCompiler) compile(e plan.Expr) (*node, error) {
	for _, k := range c.nodes {
		if k.e == e {
			return k.n, nil
		}
	}
	n, err := c.g.p.c.compile(e)
	c.nodes = append(c.nodes, struct {
		e plan.Expr
		n *node
	}{e, n})
	return n, err
}

// use returns the number of an accumulator, a new one where there is none like it.
func (c *aggCompiler) use(kind accKind, arg, filter *node) int {
	return c.share(acc{kind: kind, arg: arg, filter: filter})
}

func (c *aggCompiler) share(a acc) int {
	g := c.g
	i := slices.IndexFunc(g.accs, func(b acc) bool {
		return b.kind == a.kind && b.fold == a.fold && b.arg == a.arg && b.filter == a.filter
	})
	if i >= 0 {
		return i
	}
	g.accs = append(g.accs, c.windowed(a))
	return len(g.accs) - 1
}

func (c *aggCompiler) windowed(a acc) acc {
	if a.kind == accFloatMoments || a.kind == accFloatSum {
		a.window = newFloatWindow(c.g.p.rowsMax(), a.kind == accFloatMoments)
	}
	return a
}

// add adds aggregate a, whose argument is compiled.
func (c *aggCompiler) add(r *aggRef, a plan.AggregateCall, filter *node) error {
	if filter != nil {
		r.count = c.use(program.AccRows, nil, filter)
	}
	if a.Func.Star {
		return nil
	}
	arg, f := r.arg, a.Func
	if f == plan.Count && !a.Distinct {
		arg = c.presence(arg)
	}
	by := arg
	distinct := a.Distinct && !f.Idempotent
	if distinct || f.OrderedSet() {
		// What is collected stands for itself: nobody counts.
		if arg.t.Kind.IsFloat() {
			by = c.floatKey(arg)
		}
	} else if f.State == sqlfn.AggregateSum && arg.t.Varying() && arg.dict != nil {
		// The sum counts what it adds up.
	} else if arg.nullable || f == plan.Count && arg.risky { // its errors must come up
		r.count = c.use(program.AccCount, arg, filter)
	}
	switch {
	case f.State == sqlfn.AggregateLeast, f.State == sqlfn.AggregateGreatest:
		if arg.dict.grows() && arg.t.Kind.IsString() && !arg.t.Collation.C && c.g.p.x.opt.Rank != nil {
			// Its order is known once the server has ranked what is collected: the first or last of it.
			r.ordered, r.dict = true, arg.dict
			r.fraction = float64(b2i(f.State == sqlfn.AggregateGreatest))
			r.value = c.use(accRanked, arg, filter)
			return c.g.p.c.unlike(arg.t, arg.dict)
		}
		kind := program.AccMin
		if f.State == sqlfn.AggregateGreatest {
			kind = program.AccMax
		}
		by, err := c.ordered(r, filter)
		if err != nil {
			return err
		}
		if by.dict.grows() {
			kind += accLeastText - program.AccMin
		}
		r.value = c.use(kind, by, filter)
	case f.OrderedSet():
		fraction, ok := a.Fraction.(plan.Const)
		if r.fraction = fraction.Float64(); !ok || fraction.Null || !(r.fraction >= 0 && r.fraction <= 1) {
			return failed("percentile value is not between 0 and 1")
		}
		by, err := c.ordered(r, filter)
		if err != nil {
			return err
		}
		r.ordered, r.value = true, c.use(accRanked, by, filter)
	case distinct:
		r.distinct = c.use(accDistinct, by, filter)
		if err := c.g.p.c.unlike(arg.t, arg.dict); err != nil {
			return err
		}
		if f == plan.Count {
			break
		}
		over, err := c.over(r, a, by, nil)
		if err != nil {
			return err
		}
		over = c.windowed(over)
		r.over = &over
		if by != arg {
			r.zeros = c.use(accZeros, arg, filter)
		}
	case f == plan.Count:
	default:
		over, err := c.over(r, a, arg, filter)
		if err != nil {
			return err
		}
		r.value = c.share(over)
	}
	return nil
}

// over returns the accumulator of an aggregate that adds up or folds its values.
func (c *aggCompiler) over(r *aggRef, a plan.AggregateCall, by, filter *node) (o acc, err error) {
	o = acc{arg: by, filter: filter}
	if a.Func.State == sqlfn.AggregateFold {
		o.kind, o.fold = accFold, a.Func
		return o, nil
	}
	o.kind, err = c.sumKind(r, a)
	return o, err
}

// sumKind returns the accumulator of a sum, an average or a variance.
func (c *aggCompiler) sumKind(r *aggRef, a plan.AggregateCall) (accKind, error) {
	arg := r.arg
	number := arg.t.Kind.IsInt() || arg.t.Kind == vector.Numeric
	sum := a.Func.State == sqlfn.AggregateSum
	switch {
	case arg.t.Varying() && !sum:
		return 0, forward(plan.ReasonFunction, "variance of numerics of varying scale")
	case arg.t.Varying() && arg.dict != nil:
		return accDecimalSum, nil
	case arg.t.Kind.IsFloat():
		if a.Func == plan.Sum && arg.t.Kind == vector.Float4 {
			return 0, forward(plan.ReasonFunction, "sum of floats")
		}
		squared := slices.ContainsFunc(c.squared, func(s acc) bool { return s.arg == arg && a.Filter == nil && s.filter == nil })
		if !sum || !a.Distinct && squared {
			return accFloatMoments, nil
		}
		return accFloatSum, nil
	case !number:
		return 0, forward(plan.ReasonFunction, "sum of "+arg.t.Kind.String())
	case !sum:
		return accMoments, nil
	}
	if m, ok := plan.OpMul.Integer(magnitude(arg.lo, arg.hi), c.g.p.rowsMax()); ok && m < 1<<63-1 && arg.lo != -1<<63 {
		return program.AccSum, nil
	}
	return program.AccSum128, nil
}

// ordered returns the node by which an argument is ordered.
func (c *aggCompiler) ordered(r *aggRef, filter *node) (*node, error) {
	arg := r.arg
	switch {
	case arg.t.Kind.IsFloat():
		r.zeros = c.use(accZeros, arg, filter)
		return c.floatKey(arg), nil
	case arg.dict == nil:
		return arg, nil
	}
	if err := c.g.p.c.unlike(arg.t, arg.dict); err != nil {
		return nil, err
	}
	if arg.dict.grows() { // its values have no ranks yet
		r.dict = arg.dict
		return arg, c.g.p.x.ordersUnknown(arg, arg.t.Collation)
	}
	if !r.ordered && arg.dict.inOrder(arg.t.Collation) {
		r.dict = arg.dict
		return arg, nil
	}
	ranks, err := c.g.p.x.rankOf(arg.dict, arg.t.Collation)
	if err != nil {
		return nil, err
	}
	to := make([]int64, max(len(ranks), 1))
	for code, rank := range ranks {
		if to[code] = int64(rank); rank < 0 {
			return nil, forward(plan.ReasonCollation, "a string without a rank")
		}
	}
	// Ranks have gaps where strings were ranked that came after this version.
	r.ranks = codesByRank(ranks, arg.t.Collation)
	r.dict = arg.dict
	return c.g.p.c.recode(arg, to), nil
}

// severalTexts stands for texts that are equal and written apart, in place of the code of one.
const severalTexts = -1

// codesByRank returns the code of each rank.
func codesByRank(ranks []int32, c vector.Collation) []int64 {
	highest := int32(0) // ranks have gaps, where others were ranked, too
	for _, rank := range ranks {
		highest = max(highest, rank)
	}
	codes, taken := make([]int64, highest+1), make([]bool, highest+1)
	for code, rank := range ranks {
		if codes[rank] = int64(code); taken[rank] && c.OID != 0 && !c.Deterministic {
			codes[rank] = severalTexts
		}
		taken[rank] = true
	}
	return codes
}

// ranked returns the code of a rank.
func (r *aggRef) ranked(rank int64) (int64, error) {
	code := r.ranks[rank]
	if code == severalTexts {
		return 0, forward(plan.ReasonCollation, "the first of texts that are equal and written apart")
	}
	return code, nil
}

// floatKey returns the node of a float argument's keys, with the bounds that the zone
// maps give those that are not null.
func (c *aggCompiler) floatKey(arg *node) *node {
	for _, k := range c.keyed {
		if k.arg == arg {
			return k.filter
		}
	}
	n := c.g.p.c.floatKey(arg)
	if arg.kind == nodeColumn {
		n.lo, n.hi, _ = c.g.p.columnBounds(arg.col)
	}
	c.keyed = append(c.keyed, acc{arg: arg, filter: n})
	return n
}

// presence is that of the compiler, the same node for the same argument.
func (c *aggCompiler) presence(arg *node) *node {
	for _, k := range c.present {
		if k.arg == arg {
			return k.filter
		}
	}
	n := c.g.p.c.presence(arg)
	c.present = append(c.present, acc{arg: arg, filter: n})
	return n
}
