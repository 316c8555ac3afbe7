package olap

import (
	"slices"

	"pgaccel/plan"
	"pgaccel/sqlfn"
)

// ORDER BY an aggregate with LIMIT, over groups: a device leaves out groups that are certainly not among the first
// (program.Sink.Top), so that of many groups few come back. The processor orders these by all keys, as it would all.

// firstOnDevice is how many groups are wanted where a device may leave out others; else 0. All that the processor does with
// groups must be harmless for those that are left out, and nothing be computed of them but what is ordered and shown.
func (g *grouper) firstOnDevice() int64 {
	q := g.p.x.q
	if len(q.Having) > 0 || len(g.bases) != 1 || len(g.sets) != 1 || g.bases[0] != g.sets[0] || len(g.bases[0].axes) == 0 ||
		slices.ContainsFunc(g.accs, func(a acc) bool { return a.kind == accDistinct || a.kind == accRanked }) {
		return 0
	}
	for i := range q.Aggs {
		if !g.harmless(i) {
			return 0
		}
	}
	for i := range q.Group {
		if g.p.x.looseKey(i) {
			return 0
		}
	}
	return g.p.x.firstGroups()
}

// top has the first groups in the order of a key leave the device, where that is an aggregate that is an accumulator and
// never null.
func (l *lowering) top(first int64, key plan.Order, refs []aggRef, accs []deviceAcc) {
	e, ok := key.Expr.(plan.Agg)
	if !ok || refs[e.Index].distinct >= 0 {
		return
	}
	r := &refs[e.Index]
	at := r.value
	switch r.f.State {
	case sqlfn.AggregateCount:
		at = r.count
	case sqlfn.AggregateSum:
		ok = r.f == plan.Sum && r.count < 0 && r.offset == 0
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
	if ok {
		sink := &l.prog.Sink
		sink.Top, sink.TopDesc, sink.TopBy, l.q.Top = true, key.Desc, by.acc, uint64(first)
	}
}
