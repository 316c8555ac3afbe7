package olap

import (
	"math"
	"slices"

	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// HAVING, and ORDER BY an aggregate with LIMIT, over groups: a device leaves out groups that are certainly not of the result
// (program.Sink.Having, Top), so that of many groups few come back. The processor asks what is left for all conditions, and
// orders it by all keys, as it would all.

// harmlessOnDevice reports whether a device may leave out groups: all that the processor does with groups must be harmless
// for those.
func (g *grouper) harmlessOnDevice() bool {
	q := g.p.x.q
	if len(g.bases) != 1 || len(g.sets) != 1 || g.bases[0] != g.sets[0] || len(g.bases[0].axes) == 0 || mayFail(q.Having) {
		return false
	}
	for i := range q.Aggs {
		if !g.harmless(i) {
			return false
		}
	}
	for i := range q.Group {
		if g.p.x.looseKey(i) {
			return false
		}
	}
	return true
}

// leavesOut has groups left out that are not of the result, of which so many are expected.
func (g *grouper) leavesOut(l *lowering, by *grouping, digits []deviceDigit, accs []deviceAcc) {
	collects := func(a acc) bool { return a.kind == accDistinct || a.kind == accRanked }
	if l.why != "" || slices.ContainsFunc(g.accs, collects) || !g.harmlessOnDevice() {
		return
	}
	x := g.p.x
	all := true
	for _, e := range x.q.Having {
		all = l.having(e, g.refs, accs) && all
	}
	// Nothing is computed of groups that are cut off but what is ordered and shown.
	if first := x.firstGroups(); all && first > 0 && (x.opt.DeviceWait || by.expect >= float64(max(cutCandidates, first*firstOf))) {
		acc, _, ok := accumulated(x.orderOfCut()[0].Expr, g.refs, accs)
		l.top(uint64(first), by, acc, ok, digits)
	}
}

// topCounts has the first groups alone leave the device in the order of how many different values of accumulator k they have,
// where nothing else is computed of groups; false where all do.
func (g *grouper) topCounts(l *lowering, by *grouping, k int, digits []deviceDigit) bool {
	x := g.p.x
	if l.why != "" || !l.prog.Sink.Counted || len(g.accs) != 1 || len(x.q.Having) > 0 || !g.harmlessOnDevice() ||
		slices.ContainsFunc(g.refs, func(r aggRef) bool { return r.distinct != k }) {
		return false
	}
	first := x.firstGroups()
	if first <= 0 || !x.opt.DeviceWait && by.expect < float64(max(cutCandidates, first*firstOf)) {
		return false
	}
	key := x.orderOfCut()[0]
	if _, counts := key.Expr.(plan.Agg); !counts || !key.Desc {
		return false
	}
	l.top(uint64(first), by, -1, true, digits)
	return true
}

// accumulated returns the accumulator of a program, -1 for the rows, that an aggregate is, in its own scale and never null.
func accumulated(e plan.Expr, refs []aggRef, accs []deviceAcc) (acc int, r *aggRef, ok bool) {
	a, ok := e.(plan.Agg)
	if !ok || refs[a.Index].distinct >= 0 {
		return 0, nil, false
	}
	r = &refs[a.Index]
	at := r.value
	switch r.f.State {
	case sqlfn.AggregateCount:
		at = r.count
	case sqlfn.AggregateSum:
		ok = r.f == plan.Sum && r.count < 0 && r.offset == 0 && !r.arg.t.Kind.IsFloat()
	case sqlfn.AggregateLeast, sqlfn.AggregateGreatest:
		ok = r.count < 0 && r.arg.dict == nil && !r.arg.t.Kind.IsFloat()
	default:
		ok = false
	}
	by := deviceAcc{-1, -1} // the rows
	if at >= 0 {
		by = accs[at]
		ok = ok && by.acc >= 0 && by.more < 0
	}
	return by.acc, r, ok
}

// top has the first groups leave the device: in the order of the first key, where that is an aggregate that is an accumulator
// and never null, and those that tie in that of the next one. Where the first key is what groups are by, all tie in none.
func (l *lowering) top(first uint64, by *grouping, acc int, accumulated bool, digits []deviceDigit) {
	x, sink := by.g.p.x, &l.prog.Sink
	keys, at := x.orderOfCut(), 0
	if accumulated {
		sink.Top, sink.TopDesc, sink.TopBy, l.q.Top = true, keys[0].Desc, acc, first
		at = 1
	}
	if at == len(keys) {
		return
	}
	then := keys[at]
	k, ok := then.Expr.(plan.Key)
	if !ok {
		return
	}
	for i := range by.axes {
		if n := by.axes[i].node; n == nil || !inOrder(n.t) || n.nullable || !slices.Contains(by.axes[i].keys, k.Index) || by.pack.parts[i].card == 0 {
			continue
		}
		if !sink.Top {
			sink.Top, sink.TopBy, l.q.Top = true, program.TopTied, first
		}
		sink.TopThen, sink.TopThenDesc = program.TopNumber, then.Desc
		if digits[i].prefix {
			sink.TopThen = program.TopPrefix
		}
		l.q.TopDigit = program.DigitPlace{Stride: digits[i].stride, Card: digits[i].card}
		x.tiesDropped = x.tiesDropped || at >= len(x.q.Order)
		return
	}
}

// having leaves out groups for which a condition of HAVING is false; ok is false where it leaves some of them.
func (l *lowering) having(e plan.Expr, refs []aggRef, accs []deviceAcc) (ok bool) {
	c, ok := e.(*plan.Call)
	if !ok {
		return false
	}
	over, k, op, ok := comparisonWithConstant(c)
	if !ok {
		return false
	}
	by, r, ok := accumulated(plan.ValueKept(over), refs, accs)
	if !ok || k.Null || k.Datum.Type.Kind != vector.Numeric && !k.Datum.Type.Kind.IsInt() {
		return false
	}
	scale := int16(0)
	if r.f.State != sqlfn.AggregateCount {
		switch t := r.arg.t; {
		case t.Kind == vector.Numeric && !t.Varying():
			scale = t.Scale
		case !t.Kind.IsInt():
			return false
		}
	}
	n, exact := plan.FloorTo(k.Decimal(), scale)
	op, bound, _, decided := plan.Narrow(op, vector.Int8, n, exact)
	if decided {
		return false
	}
	within := program.Range{Lo: math.MinInt64, Hi: math.MaxInt64}
	switch {
	case bound == math.MinInt64 || bound == math.MaxInt64: // an end that is none
		return false
	case op == plan.OpEq:
		within = program.Range{Lo: bound, Hi: bound}
	case op == plan.OpLt:
		within.Hi = bound - 1
	case op == plan.OpLe:
		within.Hi = bound
	case op == plan.OpGt:
		within.Lo = bound + 1
	case op == plan.OpGe:
		within.Lo = bound
	default:
		return false
	}
	l.prog.Sink.Having, l.q.Having = append(l.prog.Sink.Having, by), append(l.q.Having, within)
	return true
}
