package pushdown

import (
	"slices"

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
	"lag": {plan.Lag, [4]uint32{1: 3106, 3107, 3108}}, "lead": {plan.Lead, [4]uint32{1: 3109, 3110, 3111}},
	"first_value": {plan.FirstValue, [4]uint32{1: 3112}}, "last_value": {plan.LastValue, [4]uint32{1: 3113}}, "nth_value": {plan.NthValue, [4]uint32{2: 3114}}}

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
	if w.Func == plan.Ntile {
		w.Offset = a.windowOffset(name, args[0], s)
		return
	}
	if len(args) == 0 {
		return
	}
	v := a.expr(args[0], s)
	if v.unknown() {
		fail(plan.ReasonType, name+"() of a value without a type")
	}
	if w.Arg = v.e; len(args) > 1 {
		w.Offset = a.windowOffset(name, args[1], s)
	}
	if len(args) > 2 {
		both, t := a.commonResults([]value{v, a.expr(args[2], s)})
		if w.Arg, w.Default = both[0], both[1]; t.Kind == vector.BPChar {
			fail(plan.ReasonType, name+"() with a default that is char(n)")
		}
	}
}

// windowOffset is an argument of type integer.
func (a *analyzer) windowOffset(name string, n *pg.Node, s *scope) plan.Expr {
	t := vector.TypeOf(vector.Int4)
	v := a.expr(n, s)
	e := a.resolve(v, t)
	if k := e.Type().Kind; k != vector.Int2 && k != vector.Int4 {
		fail(plan.ReasonType, "window function "+name+"() by a "+k.String())
	}
	a.callsCast(v, vector.Int4)
	return a.cast(e, t)
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
		return a.namedWindow(over.Name, len(a.windowDefs))
	}
	return a.copyWindow(over, len(a.windowDefs))
}

// namedWindow finds a window among the first n of the WINDOW clause.
func (a *analyzer) namedWindow(name string, n int) *pg.WindowDef {
	for i, w := range a.windowDefs[:n] {
		if d := w.GetWindowDef(); d.Name == name {
			a.usedDefs[name] = true
			return a.copyWindow(d, i)
		}
	}
	fail(plan.ReasonShape, "a window that is not defined")
	return nil
}

// unusedWindows analyses what windows of the WINDOW clause are over that nothing reads: the server
// computes it all the same, and aggregates in it make groups.
func (a *analyzer) unusedWindows(s *scope) {
	for _, n := range a.windowDefs {
		d := n.GetWindowDef()
		if a.usedDefs[d.Name] {
			continue
		}
		a.attempt(func() {
			a.at = n
			subs := len(a.subselects)
			w := &plan.Window{}
			a.windowKeys(w, d, s)
			keys := slices.Clone(w.Partition)
			for _, o := range w.Order {
				keys = append(keys, o.Expr)
			}
			if len(a.subselects) > subs || slices.ContainsFunc(keys, func(e plan.Expr) bool { return a.aggregates(e) || mayFail(e) }) {
				fail(plan.ReasonShape, "a window that nothing reads, over what may fail")
			}
		})
	}
}

// copyWindow is a window with what it has from the one that it is made of, which is among the first n
// of the WINDOW clause: the partitions, and the order where it has none of its own
// (transformWindowDefinitions in parse_clause.c).
func (a *analyzer) copyWindow(d *pg.WindowDef, n int) *pg.WindowDef {
	if d.Refname == "" {
		return d
	}
	of := a.namedWindow(d.Refname, n)
	if len(d.PartitionClause) > 0 || len(d.OrderClause) > 0 && len(of.OrderClause) > 0 || of.FrameOptions&frameWritten != 0 {
		fail(plan.ReasonShape, "a window that overrides what it is made of")
	}
	order := d.OrderClause
	if len(order) == 0 {
		order = of.OrderClause
	}
	return &pg.WindowDef{PartitionClause: of.PartitionClause, OrderClause: order, FrameOptions: d.FrameOptions, StartOffset: d.StartOffset, EndOffset: d.EndOffset}
}

// windowOver analyses PARTITION BY, ORDER BY and the frame.
func (a *analyzer) windowOver(w *plan.Window, d *pg.WindowDef, s *scope) {
	a.windowKeys(w, d, s)
	w.Frame = a.frame(d, w.Order, s)
}

// windowKeys analyses PARTITION BY and ORDER BY.
func (a *analyzer) windowKeys(w *plan.Window, d *pg.WindowDef, s *scope) {
	key := func(n *pg.Node) plan.Expr {
		v := a.expr(n, s)
		if v.unknown() {
			fail(plan.ReasonParameter, "a window over a value without a type")
		}
		a.callsEquality(v.kind())
		return v.e
	}
	for _, n := range d.PartitionClause {
		by := key(n)
		w.Partition = append(w.Partition, a.same(by, by.Type()))
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
		for _, e := range []*plan.Expr{&w.Agg.Arg, &w.Agg.Filter, &w.Arg, &w.Default, &w.Offset} {
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
