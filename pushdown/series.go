package pushdown

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/vector"
)

// The functions generate_series and unnest(anyarray) in pg_proc, by the number of arguments.
var seriesCalls = map[vector.Kind][4]uint32{vector.Int4: {2: 1067, 3: 1066}, vector.Int8: {2: 1069, 3: 1068},
	vector.Timestamp: {3: 938}, vector.TimestampTZ: {3: 939}}

const oidUnnest = 2331

// functionItem analyses functions in FROM: generate_series, unnest of an array that is written, or those of setFunctions.
func (a *analyzer) functionItem(r *pg.RangeFunction) *scope {
	calls := callsInFrom(r)
	f := calls[0]
	name := a.functionName(f.Funcname)
	if !hasOnlyArguments(f) {
		fail(plan.ReasonFunction, name+"()")
	}
	outer := a.noAggs
	a.noAggs = "aggregate in FROM"
	var rows plan.Rel
	var outputs []plan.Expr
	var set *rel
	switch {
	case len(calls) > 1:
		rows, set = a.setFunctionItem(calls, r)
	case name == "generate_series":
		rows, outputs = a.series(f)
	case name == "unnest" && len(f.Args) == 1 && writtenArray(f.Args[0]) != nil:
		rows, outputs = a.unnest(f)
	case setFunctions[name]:
		rows, set = a.setFunctionItem(calls, r)
	default:
		fail(plan.ReasonShape, "function in FROM")
	}
	a.noAggs = outer
	a.note(rows, a.at, "")
	if set != nil {
		return a.named(set, r.Alias, rows)
	}
	item := &rel{name: name, cols: []col{{name: name, e: outputs[0]}}, scalar: !r.Ordinality}
	if r.Alias != nil {
		item.cols[0].name = r.Alias.Aliasname
	}
	if r.Ordinality {
		item.cols = append(item.cols, col{name: "ordinality", e: outputs[1]})
	}
	return a.named(item, r.Alias, rows)
}

// hasOnlyArguments reports whether a call has nothing but arguments.
func hasOnlyArguments(f *pg.FuncCall) bool {
	return !f.FuncVariadic && !f.AggStar && !f.AggDistinct && !f.AggWithinGroup && f.AggFilter == nil && f.Over == nil && len(f.AggOrder) == 0
}

// callsInFrom are the calls of a function in FROM, or of ROWS FROM. unnest() of several arrays is one for each
// (transformRangeFunction in parse_clause.c).
func callsInFrom(r *pg.RangeFunction) (calls []*pg.FuncCall) {
	for _, n := range r.Functions {
		items := n.GetList().GetItems() // the call, and a list of column definitions
		f := items[0].GetFuncCall()
		switch {
		case f == nil:
			fail(plan.ReasonShape, "a FROM item of this form")
		case len(r.Coldeflist) > 0 || len(items) > 1 && items[1].GetList() != nil:
			fail(plan.ReasonShape, "functions in FROM of this form")
		case len(f.Args) < 2 || len(f.Funcname) != 1 || f.Funcname[0].GetString_().GetSval() != "unnest" || !hasOnlyArguments(f):
			calls = append(calls, f)
			continue
		}
		for _, array := range f.Args {
			calls = append(calls, &pg.FuncCall{Funcname: f.Funcname, Args: []*pg.Node{array}, Funcformat: f.Funcformat, Location: f.Location})
		}
	}
	return calls
}

// series analyses generate_series: of integers, and of dates and timestamps by a constant interval.
// Which of its functions is meant follows from func_select_candidate in parse_func.c.
func (a *analyzer) series(f *pg.FuncCall) (plan.Rel, []plan.Expr) {
	n := len(f.Args)
	if n != 2 && n != 3 {
		fail(plan.ReasonFunction, "generate_series() in this form")
	}
	by, moments := plan.Interval{}, false
	if n == 3 {
		by, moments = seriesStep(f.Args[2])
	}
	written := f.Args
	if moments {
		written = f.Args[:2]
	}
	s := &scope{outer: a.lateral}
	var args []value
	counts := map[vector.Kind]int{}
	subs := a.own(func() {
		for _, x := range written {
			v := a.expr(x, s)
			counts[v.kind()]++
			args = append(args, v)
		}
	})
	// A literal without a type, and NULL, are whatever the others make of them.
	open := 0
	for _, v := range args {
		if v.text != nil || v.null {
			open++
		}
	}
	var k vector.Kind
	switch {
	case !moments && counts[vector.Int4] == len(args):
		k = vector.Int4
	case !moments && counts[vector.Int4]+counts[vector.Int8] == len(args):
		k = vector.Int8
	case moments && counts[vector.TimestampTZ] > 0 && counts[vector.TimestampTZ]+counts[vector.Date]+counts[vector.Timestamp]+open == 2,
		moments && counts[vector.Date] > 0 && counts[vector.Date]+open == 2:
		k = vector.TimestampTZ // which is the preferred one
	case moments && counts[vector.Timestamp] > 0 && counts[vector.Timestamp]+counts[vector.Date]+open == 2:
		k = vector.Timestamp
	default:
		fail(plan.ReasonFunction, "generate_series() of these types")
	}
	a.addCalls([]uint32{seriesCalls[k][n]})
	x := &plan.Series{Number: a.nextOutput(), By: by, T: vector.TypeOf(k)}
	x.Input = a.attach(&plan.Values{Rows: [][]plan.Expr{nil}}, subs)
	exprs := make([]plan.Expr, 3)
	for i, v := range args {
		a.callsCast(v, k)
		exprs[i] = a.cast(a.resolve(v, x.T), x.T)
	}
	x.From, x.To, x.Step = exprs[0], exprs[1], exprs[2]
	if n == 2 {
		x.Step = plan.Const{Datum: vector.Int(k, 1)}
	}
	if k == vector.TimestampTZ {
		a.needsUTC = true // which days begin when
	}
	return x, []plan.Expr{plan.Output{Of: x.Number, T: x.T}, plan.Output{Of: x.Number, Index: 1, T: vector.TypeOf(vector.Int8)}}
}

// seriesStep reads a constant interval: a literal may have no type, as beside moments it is an interval.
func seriesStep(n *pg.Node) (by plan.Interval, ok bool) {
	if s, literal := n.GetAConst().GetVal().(*pg.A_Const_Sval); literal {
		return intervalOf(s.Sval.Sval)
	}
	return intervalConst(n)
}

// writtenArray is ARRAY[...], cast or not; nil where it is anything else.
func writtenArray(n *pg.Node) *pg.A_ArrayExpr {
	array := n.GetAArrayExpr()
	if c := n.GetTypeCast(); c != nil && len(c.TypeName.GetArrayBounds()) == 1 {
		array = castElements(c)
	}
	return array
}

// unnest analyses unnest(ARRAY[...]): VALUES of its elements.
func (a *analyzer) unnest(f *pg.FuncCall) (plan.Rel, []plan.Expr) {
	array := writtenArray(f.Args[0])
	if len(array.Elements) == 0 {
		fail(plan.ReasonType, "array")
	}
	v := &plan.Values{Number: a.nextOutput()}
	var elements []value
	a.noSubselects("an array", func() {
		for _, n := range array.Elements {
			if n.GetAArrayExpr() != nil {
				fail(plan.ReasonType, "array")
			}
			elements = append(elements, a.expr(n, &scope{outer: a.lateral}))
		}
	})
	out, t := a.oneType("array", elements)
	if t.Kind == vector.BPChar {
		fail(plan.ReasonType, "array of char(n)")
	}
	a.addCalls([]uint32{oidUnnest})
	t.Typmod = -1 // a function's result has none
	for i, e := range out {
		v.Rows = append(v.Rows, []plan.Expr{e, int8Const(int64(i + 1))})
	}
	return v, []plan.Expr{plan.Output{Of: v.Number, T: t}, plan.Output{Of: v.Number, Index: 1, T: vector.TypeOf(vector.Int8)}}
}

// seriesRelation makes the relation of a series.
func (a *analyzer) seriesRelation(x *plan.Series) plan.Source {
	block := a.star(&plan.Project{Input: x.Input, Exprs: x.Args()})
	meta := &catalog.Table{Name: "series", Rows: expectedSeries}
	for i, t := range x.Types() {
		meta.Columns = append(meta.Columns, catalog.Column{Name: [2]string{"value", "ordinality"}[i], Type: t, NotNull: true})
		meta.Indexes = append(meta.Indexes, catalog.Index{Unique: true, Columns: []int{i}})
	}
	from, constant := x.From.(plan.Const)
	to, also := x.To.(plan.Const)
	step, fixed := x.Step.(plan.Const)
	if constant && also && (fixed || x.Step == nil) && !from.Null && !to.Null && !step.Null {
		values, _ := x.Values(from.I, to.I, step.I)
		meta.Rows = int64(len(values))
	}
	return plan.Source{Meta: meta, Relation: &plan.Relation{Meta: meta, Blocks: []*plan.Star{block}, Series: x}}
}

// expectedSeries is a guess at the values of a series.
const expectedSeries = 1000
