package pushdown

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// Aggregates over sorted rows: a window below the groups gives each row the value of its group.

// stringAgg analyses string_agg(x, delimiter ORDER BY ...).
func (a *analyzer) stringAgg(name string, f *pg.FuncCall, s *scope) plan.Expr {
	sortedForm(name, f, 2)
	a.addCalls([]uint32{sqlfn.OIDStringAgg})
	return a.sortedAggregate(name, f, s, func(w *plan.Window) {
		w.Agg = plan.AggregateCall{Func: plan.StringAgg, Delimiter: a.delimiter(name, f.Args[1], s)}
		v := a.expr(f.Args[0], s)
		if v.unknown() || !v.kind().IsText() { // there is one of bytea, too
			fail(plan.ReasonType, name+"() of other than text")
		}
		if f.AggDistinct && len(f.AggOrder) > 0 && v.kind() != vector.Text {
			// The server compares the key with the argument that is cast already.
			fail(plan.ReasonShape, name+"(DISTINCT) in the order of what is no text")
		}
		a.callsCast(v, vector.Text)
		w.Agg.Arg = a.collated(a.cast(v.e, vector.TypeOf(vector.Text)))
	})
}

// arrayAgg analyses array_agg(x ORDER BY ...).
func (a *analyzer) arrayAgg(name string, f *pg.FuncCall, s *scope) plan.Expr {
	sortedForm(name, f, 1)
	a.addCalls([]uint32{sqlfn.OIDArrayAgg})
	return a.sortedAggregate(name, f, s, func(w *plan.Window) {
		v := a.expr(f.Args[0], s)
		if v.unknown() || vector.ArrayOf(v.kind()) == vector.Invalid {
			fail(plan.ReasonType, name+"() of "+v.kind().String())
		}
		w.Agg = plan.AggregateCall{Func: plan.ArrayAgg, Arg: a.collated(v.e)}
	})
}

// sortedForm refuses calls of other forms than name(args ORDER BY ...) and name(DISTINCT args).
func sortedForm(name string, f *pg.FuncCall, args int) {
	if len(f.Args) != args || f.AggStar {
		fail(plan.ReasonFunction, name+"() in this form")
	}
	if len(f.AggOrder) == 0 && !f.AggDistinct {
		fail(plan.ReasonTies, name+"() without ORDER BY")
	}
}

// mode analyses mode() WITHIN GROUP (ORDER BY x).
func (a *analyzer) mode(name string, f *pg.FuncCall, s *scope) plan.Expr {
	if len(f.Args) > 0 || len(f.AggOrder) != 1 || f.AggDistinct {
		fail(plan.ReasonFunction, name+"() in this form")
	}
	a.addCalls([]uint32{sqlfn.OIDMode})
	return a.sortedAggregate(name, f, s, func(w *plan.Window) { w.Agg.Func = plan.Mode })
}

// sortedAggregate analyses an aggregate over sorted rows, of which call has the function and the argument; without
// an argument that is what the rows are sorted by.
func (a *analyzer) sortedAggregate(name string, f *pg.FuncCall, s *scope, call func(w *plan.Window)) plan.Expr {
	w := &plan.Window{Number: a.nextOutput(), Func: plan.WindowAggregate, Frame: plan.WholeFrame}
	a.overRows(func() {
		call(w)
		if f.AggFilter != nil {
			w.Agg.Filter = a.boolean(f.AggFilter, s)
		}
		if len(f.AggOrder) > 0 {
			a.windowKeys(w, &pg.WindowDef{OrderClause: f.AggOrder}, s)
		}
		if w.Agg.Arg == nil {
			w.Agg.Arg = w.Order[0].Expr
		}
		if w.Agg.Distinct = f.AggDistinct; f.AggDistinct {
			a.distinctOrder(name, w, w.Agg.Arg.Type().Kind)
		}
	})
	return a.overSorted(name, w, f)
}

// overSorted notes the window of an aggregate over sorted rows, whose value is that of its group: of any
// row, for which the least will do, of texts by their bytes.
func (a *analyzer) overSorted(name string, w *plan.Window, f *pg.FuncCall) plan.Expr {
	a.sorted = append(a.sorted, w)
	a.note(w, f, name+"()")
	w.Agg.T = aggregateType(w.Agg.Func, name, w.Agg.Arg)
	t := w.Agg.T
	if t.Kind.IsText() {
		t.Collation = vector.Bytewise
	}
	value := plan.AggregateCall{Func: plan.Min, Arg: plan.Output{Of: w.Number, T: t}}
	value.T = aggregateType(plan.Min, name, value.Arg)
	value.T.Collation = w.Agg.T.Collation
	return a.cast(a.addAggregate(value), w.Agg.T) // of varchar the least is text
}

// delimiter is a constant: null is none.
func (a *analyzer) delimiter(name string, n *pg.Node, s *scope) string {
	v := a.expr(n, s)
	c, ok := a.resolve(v, vector.TypeOf(vector.Text)).(plan.Const)
	if !ok || v.param > 0 || !c.Null && !c.Datum.Type.Kind.IsText() {
		fail(plan.ReasonFunction, name+"() with a delimiter that is no constant")
	}
	return c.Str
}

// distinctOrder is the order of DISTINCT: the values' own, which ORDER BY must be by.
func (a *analyzer) distinctOrder(name string, w *plan.Window, k vector.Kind) {
	if len(w.Order) == 0 {
		a.callsEquality(k)
		w.Order = []plan.Order{{Expr: w.Agg.Arg}}
		return
	}
	if len(w.Order) != 1 || !a.intern.same(w.Order[0].Expr, w.Agg.Arg) {
		fail(plan.ReasonShape, name+"(DISTINCT) in another order than that of its values")
	}
}

// sortedAggregates puts the windows of aggregates over sorted rows below the groups.
func (a *analyzer) sortedAggregates(rows plan.Rel, q *clauses) plan.Rel {
	if len(a.sorted) > 0 && q.sets != nil {
		fail(plan.ReasonShape, "ORDER BY inside an aggregate of grouping sets")
	}
	for _, w := range a.sorted {
		w.Input, w.Partition = rows, q.keys
		rows = w
	}
	a.sorted = nil
	return rows
}
