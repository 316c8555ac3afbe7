package pushdown

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// oidsPercentiles are the percentiles of an array of fractions in pg_proc; that of intervals is not taken.
var oidsPercentiles = map[*sqlfn.Aggregate]uint32{plan.PercentileDisc: 3978, plan.PercentileCont: 3980}

// percentile analyses name(fraction) WITHIN GROUP (ORDER BY x), and that of an array of fractions, which is the array of
// their percentiles. Of NULLS FIRST and LAST nothing depends: nulls are ignored.
func (a *analyzer) percentile(name string, f *pg.FuncCall, s *scope) plan.Expr {
	fn := sqlfn.AggregateNamed(name)
	if fn == nil || !fn.OrderedSet() || len(f.Args) != 1 || len(f.AggOrder) != 1 || f.AggDistinct {
		fail(plan.ReasonFunction, "ordered-set aggregate "+name+"()")
	}
	by := f.AggOrder[0].GetSortBy()
	if by == nil || by.SortbyDir == pg.SortByDir_SORTBY_USING {
		fail(plan.ReasonShape, "ORDER BY ... USING")
	}
	agg := plan.AggregateCall{Func: fn, Desc: by.SortbyDir == pg.SortByDir_SORTBY_DESC}
	var fractions []plan.Const
	list := fractionList(f.Args[0])
	a.overRows(func() {
		agg.Arg = a.argument(fn, name, by.Node, s)
		noOrder(agg.Arg.Type().Kind)
		if list == nil {
			fractions = append(fractions, a.fraction(name, f.Args[0], agg.Arg.Type().Kind, s))
		}
		for _, n := range list {
			fractions = append(fractions, a.fraction(name, n, agg.Arg.Type().Kind, s))
		}
		if fn == plan.PercentileCont {
			if k := agg.Arg.Type().Kind; !isNumber(k) {
				fail(plan.ReasonType, name+"() of "+k.String())
			}
			agg.Arg = a.cast(agg.Arg, vector.TypeOf(vector.Float8))
		}
		if f.AggFilter != nil {
			agg.Filter = a.boolean(f.AggFilter, s)
		}
	})
	agg.T = aggregateType(fn, name, agg.Arg)
	values := make([]plan.Expr, len(fractions))
	for i, p := range fractions {
		agg.Fraction = p
		values[i] = a.addAggregate(agg)
	}
	if list == nil {
		return values[0]
	}
	a.addCalls([]uint32{oidsPercentiles[fn]})
	if vector.ArrayOf(agg.T.Kind) == vector.Invalid {
		fail(plan.ReasonType, "array of "+agg.T.Kind.String())
	}
	of := sqlfn.MakeArray(agg.T.Kind, len(values)) // null where they are: of no values
	return &plan.Call{Op: plan.OpFunc, Func: of, T: vector.TypeOf(of.Result), Args: values}
}

// fractionList returns the members of an array that is written, nil of anything else.
func fractionList(n *pg.Node) []*pg.Node {
	array := n.GetAArrayExpr()
	if c := n.GetTypeCast(); c != nil && len(c.TypeName.GetArrayBounds()) == 1 {
		if literal, is := c.Arg.GetAConst().GetVal().(*pg.A_Const_Sval); is {
			c = castMembers(c, literal.Sval.Sval)
		}
		array = castElements(c)
	}
	return array.GetElements()
}

// castMembers makes a cast of ARRAY[...] of one of a literal; where that has nulls, or is not read, an empty one.
func castMembers(c *pg.TypeCast, literal string) *pg.TypeCast {
	list, ok := plan.ArrayMembers(literal, vector.TypeOf(vector.Text))
	array := &pg.A_ArrayExpr{}
	for _, d := range list {
		if ok = ok && !d.Null; ok {
			array.Elements = append(array.Elements, &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Val: &pg.A_Const_Sval{Sval: &pg.String{Sval: d.Str}}}}})
		}
	}
	if !ok {
		array.Elements = nil
	}
	return &pg.TypeCast{Arg: &pg.Node{Node: &pg.Node_AArrayExpr{AArrayExpr: array}}, TypeName: c.TypeName, Location: c.Location}
}

// fraction analyses a fraction, of values of a kind.
func (a *analyzer) fraction(name string, n *pg.Node, of vector.Kind, s *scope) plan.Const {
	// An open constant could be an array of fractions as well.
	fraction, ok := a.expr(n, s).e.(plan.Const)
	if k := fraction.Datum.Type.Kind; !ok || fraction.Null || !isNumber(k) {
		fail(plan.ReasonParameter, name+"() of a fraction that is not a numeric constant")
	}
	a.calls(name, fraction.Datum.Type.Kind, of)
	fraction, ok = a.cast(fraction, vector.TypeOf(vector.Float8)).(plan.Const)
	if p := fraction.Float64(); !ok || !(p >= 0 && p <= 1) {
		fail(plan.ReasonEvaluation, "a percentile that is not between 0 and 1")
	}
	return fraction
}
