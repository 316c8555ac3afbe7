package pushdown

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// Documents that are made of values: functions of "any" of the server's, and here of the documents that their arguments are.

// toJSONB is to_jsonb() of a value, and what other functions make of one. One without a type is text where they take any.
func (a *analyzer) toJSONB(name string, v value) plan.Expr {
	switch {
	case v.param > 0:
		fail(plan.ReasonParameter, "type of a parameter of "+name+"()")
	case v.unknown() && name == "to_jsonb":
		fail(plan.ReasonType, name+"() of a constant without a type")
	case v.unknown():
		v = typed(a.resolve(v, vector.TypeOf(vector.Text)))
	}
	if !sqlfn.InJSON(v.kind()) {
		fail(plan.ReasonType, name+"() of "+v.kind().String())
	}
	if name == "to_jsonb" {
		a.addCalls([]uint32{sqlfn.OIDToJSONB})
	}
	return a.callOf(sqlfn.ToJSONB(v.kind()), []value{v})
}

// buildJSONB is jsonb_build_array() and jsonb_build_object().
func (a *analyzer) buildJSONB(name string, vals []value) plan.Expr {
	object := name == "jsonb_build_object"
	if len(vals) == 0 || object && len(vals)%2 != 0 {
		fail(plan.ReasonFunction, name+"() in this form")
	}
	out := make([]value, len(vals))
	for i, v := range vals {
		if !object || i%2 == 1 {
			out[i] = typed(a.toJSONB(name, v))
			continue
		}
		if k := v.kind(); v.param > 0 || !v.unknown() && k != vector.Text && k != vector.Varchar {
			fail(plan.ReasonType, name+"() with a key that is no text")
		}
		out[i] = v
	}
	if object {
		a.addCalls([]uint32{sqlfn.OIDBuildObject})
		return a.callOf(sqlfn.BuildJSONBObject(len(vals)/2), out)
	}
	a.addCalls([]uint32{sqlfn.OIDBuildArray})
	return a.callOf(sqlfn.BuildJSONBArray(len(vals)), out)
}

// jsonbAgg is jsonb_agg(x ORDER BY ...), of an array of documents.
func (a *analyzer) jsonbAgg(name string, f *pg.FuncCall, s *scope) plan.Expr {
	sortedForm(name, f, 1)
	if f.AggDistinct {
		fail(plan.ReasonShape, name+"(DISTINCT)")
	}
	a.addCalls([]uint32{sqlfn.OIDJSONBAgg})
	list := a.sortedAggregate(name, f, s, func(w *plan.Window) {
		w.Agg = plan.AggregateCall{Func: plan.ArrayAgg, Arg: a.toJSONB(name, a.expr(f.Args[0], s))}
	})
	return a.callOf(sqlfn.ArrayOfJSONB(), []value{typed(list)})
}
