package pushdown

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// windowFunctions are those that are no aggregates, with their OIDs in pg_proc, by the number of
// their arguments; 0 where there is none of so many.
var windowFunctions = map[string]struct {
	fn   plan.WindowFunc
	oids [4]uint32
}{"row_number": {plan.RowNumber, [4]uint32{3100}}, "rank": {plan.Rank, [4]uint32{3101}}, "dense_rank": {plan.DenseRank, [4]uint32{3102}},
	"percent_rank": {plan.PercentRank, [4]uint32{3103}}, "cume_dist": {plan.CumeDist, [4]uint32{3104}}, "ntile": {plan.Ntile, [4]uint32{1: 3105}},
	"lag": {plan.Lag, [4]uint32{1: 3106, 3107, 3108}}, "lead": {plan.Lag, [4]uint32{1: 3109, 3110, 3111}},
	"first_value": {plan.FirstValue, [4]uint32{1: 3112}}, "last_value": {plan.LastValue, [4]uint32{1: 3113}}}

// The frames of parsenodes.h (FRAMEOPTION_*), without the bit of BETWEEN and that of a frame that is
// written.
const (
	frameWritten = 0x01 | 0x10
	rangeToRow   = 0x02 | 0x20 | 0x400
	rowsToRow    = 0x04 | 0x20 | 0x400
	groupsToRow  = 0x08 | 0x20 | 0x400
	rangeToEnd   = 0x02 | 0x20 | 0x100
	rowsToEnd    = 0x04 | 0x20 | 0x100
	groupsToEnd  = 0x08 | 0x20 | 0x100
)

var frames = map[int32]plan.Frame{rangeToRow: plan.ToPeers, groupsToRow: plan.ToPeers, rowsToRow: plan.ToRow,
	rangeToEnd: plan.ToEnd, rowsToEnd: plan.ToEnd, groupsToEnd: plan.ToEnd}

// window analyses a window function: its operator is noted, and stands over the rows of the block, or
// over its groups where it has some.
func (a *analyzer) window(name string, f *pg.FuncCall, s *scope) plan.Expr {
	if a.noAggs != "" {
		fail(plan.ReasonShape, "window function in "+a.noAggs)
	}
	if f.AggWithinGroup || f.FuncVariadic || f.AggDistinct || len(f.AggOrder) > 0 {
		fail(plan.ReasonFunction, "window function "+name+"() in this form")
	}
	w := &plan.Window{}
	if fn, ok := windowFunctions[name]; ok {
		if w.Func = fn.fn; len(f.Args) >= len(fn.oids) || fn.oids[len(f.Args)] == 0 || f.AggFilter != nil || f.AggStar {
			fail(plan.ReasonFunction, "window function "+name+"() in this form")
		}
		a.addCalls([]uint32{fn.oids[len(f.Args)]})
		a.windowArguments(w, name, f.Args, s)
	} else if fn := sqlfn.AggregateNamed(name); fn != nil && !fn.OrderedSet() {
		w.Func, w.Agg = plan.WindowAggregate, a.windowAggregate(fn, name, f, s)
	} else {
		fail(plan.ReasonFunction, "window function "+name+"()")
	}
	a.windowOver(w, a.windowDef(f.Over), s)
	w.Number = a.nextOutput()
	a.windows = append(a.windows, w)
	a.note(w, a.at, "window function")
	return plan.Output{Of: w.Number, T: w.Type()}
}

// windowArguments are those of a function that is no aggregate.
func (a *analyzer) windowArguments(w *plan.Window, name string, args []*pg.Node, s *scope) {
	if len(args) == 0 {
		return
	}
	if w.Func == plan.Ntile {
		if w.Offset = a.integerConstant(name, args[0], s); w.Offset < 1 {
			fail(plan.ReasonEvaluation, "ntile() of no parts")
		}
		return
	}
	v := a.expr(args[0], s)
	if v.unknown() {
		fail(plan.ReasonType, name+"() of a value without a type")
	}
	w.Arg = v.e
	if w.Func != plan.Lag {
		return
	}
	if w.Offset = 1; len(args) > 1 {
		w.Offset = a.integerConstant(name, args[1], s)
	}
	if len(args) > 2 {
		both, t := a.commonResults([]value{v, a.expr(args[2], s)})
		if w.Arg, w.Default = both[0], both[1]; t.Kind.IsText() {
			fail(plan.ReasonType, name+"() with a default that is text")
		}
	}
	if name == "lead" {
		w.Offset = -w.Offset
	}
}

// integerConstant is an argument of type integer that is the same for all rows.
func (a *analyzer) integerConstant(name string, n *pg.Node, s *scope) int64 {
	k, ok := a.resolve(a.expr(n, s), vector.TypeOf(vector.Int4)).(plan.Const)
	if !ok || k.Null || k.Datum.Type.Kind != vector.Int4 {
		fail(plan.ReasonFunction, "window function "+name+"() by other than a constant")
	}
	return k.I
}

// windowAggregate is an aggregate over a window.
func (a *analyzer) windowAggregate(fn *sqlfn.Aggregate, name string, f *pg.FuncCall, s *scope) plan.AggregateCall {
	agg, kinds := a.aggregateCall(fn, name, f, s)
	agg.T = aggregateType(agg.Func, name, agg.Arg)
	a.calls(name, kinds...)
	return agg
}

// windowDef finds what OVER refers to.
func (a *analyzer) windowDef(over *pg.WindowDef) *pg.WindowDef {
	if over.Name != "" {
		for _, n := range a.windowDefs {
			if d := n.GetWindowDef(); d.Name == over.Name {
				over = d
				break
			}
		}
	}
	if over.Refname != "" {
		fail(plan.ReasonShape, "a window made of another")
	}
	return over
}

// windowOver analyses PARTITION BY, ORDER BY and the frame.
func (a *analyzer) windowOver(w *plan.Window, d *pg.WindowDef, s *scope) {
	frame, ok := frames[d.FrameOptions&^frameWritten]
	if w.Frame = frame; !ok || d.StartOffset != nil || d.EndOffset != nil {
		fail(plan.ReasonShape, "a window frame of this form")
	}
	key := func(n *pg.Node) plan.Expr {
		v := a.expr(n, s)
		if v.unknown() {
			fail(plan.ReasonParameter, "a window over a value without a type")
		}
		a.callsEquality(v.kind())
		return v.e
	}
	for _, n := range d.PartitionClause {
		w.Partition = append(w.Partition, key(n))
	}
	for _, n := range d.OrderClause {
		by := n.GetSortBy()
		o := a.direction(n)
		o.Expr = a.collated(key(by.Node))
		w.Order = append(w.Order, o)
	}
}

// over makes the expressions of windows over rows some over groups.
func (g *grouping) overWindows(windows []*plan.Window) {
	for _, w := range windows {
		for _, e := range []*plan.Expr{&w.Agg.Arg, &w.Agg.Filter, &w.Arg, &w.Default} {
			if *e != nil {
				*e = g.over(*e)
			}
		}
		for i, e := range w.Partition {
			w.Partition[i] = g.over(e)
		}
		for i := range w.Order {
			w.Order[i].Expr = g.over(w.Order[i].Expr)
		}
	}
}

// attachWindows puts the block's windows over rows.
func (a *analyzer) attachWindows(rows plan.Rel) plan.Rel {
	for _, w := range a.windows {
		w.Input = rows
		rows = w
	}
	a.windows = nil
	return rows
}
