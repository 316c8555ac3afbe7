package pushdown

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// What is asked of arrays that columns hold: x = ANY (column), column @> constant, cardinality(column). They
// have neither order nor groups here.

// oidsOfArrays are functions of all arrays in pg_proc.
var oidsOfArrays = map[string]uint32{"@>": 2748, "<@": 2749, "&&": 2747, "=": 744, "<>": 390, "cardinality": 3179, "array_length": 2176}

// bytesEqual reports whether equal values of a kind are held alike.
func bytesEqual(k vector.Kind) bool {
	return k != vector.Invalid && k != vector.Numeric && !k.IsFloat() && k != vector.BPChar && k.Ordered()
}

// memberOf is x = ANY (column) and x <> ALL (column). ok is false where there is another array than that of a column.
func (a *analyzer) memberOf(x *pg.A_Expr, symbol string, isAny bool, s *scope) (e plan.Expr, ok bool) {
	if x.Rexpr.GetColumnRef() == nil || isAny && symbol != "=" || !isAny && symbol != "<>" {
		return nil, false
	}
	array := a.expr(x.Rexpr, s)
	if !array.kind().IsArray() {
		return nil, false
	}
	elem := array.kind().Element()
	subject := typed(a.resolve(a.expr(x.Lexpr, s), openType(vector.TypeOf(elem))))
	by := subject.kind()
	alike := by == elem || by.IsInt() && elem.IsInt() || by.IsText() && elem.IsText()
	if !alike || !bytesEqual(elem) || !bytesEqual(by) || loose(subject.e.Type()) {
		fail(plan.ReasonType, "ANY or ALL of an array of "+elem.String())
	}
	a.callsMember(symbol, by, elem, manyMembers)
	e = a.callOf(sqlfn.OfArray(sqlfn.ArrayMember, elem, by), []value{subject, array})
	if !isAny {
		e = a.not(e)
	}
	return e, true
}

// arrayOperator is column @> array, column <@ array and column && array with a constant array. ok is false where the left
// side is no array of a column.
func (a *analyzer) arrayOperator(symbol string, x *pg.A_Expr, s *scope) (e plan.Expr, ok bool) {
	use, known := map[string]sqlfn.ArrayUse{"@>": sqlfn.ArrayContains, "<@": sqlfn.ArrayContained, "&&": sqlfn.ArrayOverlaps}[symbol]
	if !known || x.Lexpr.GetColumnRef() == nil {
		return nil, false
	}
	array := a.expr(x.Lexpr, s)
	if !array.kind().IsArray() {
		return nil, false
	}
	return a.arrayWith(use, symbol, array, x.Rexpr, s), true
}

// arrayWith asks something of an array of a column and a constant one.
func (a *analyzer) arrayWith(use sqlfn.ArrayUse, symbol string, array value, with *pg.Node, s *scope) plan.Expr {
	elem := array.kind().Element()
	if !bytesEqual(elem) {
		fail(plan.ReasonType, symbol+" of arrays of "+elem.String())
	}
	a.addCalls([]uint32{oidsOfArrays[symbol]})
	return a.callOf(sqlfn.OfArray(use, elem, elem), []value{array, typed(a.constantArray(with, elem, s))})
}

// arrayComparison is column = array and column <> array with a constant array.
func (a *analyzer) arrayComparison(op plan.Op, symbol string, array value, with *pg.Node, s *scope) plan.Expr {
	switch op {
	case plan.OpEq:
		return a.arrayWith(sqlfn.ArrayEqual, symbol, array, with, s)
	case plan.OpNe:
		return a.not(a.arrayWith(sqlfn.ArrayEqual, "<>", array, with, s))
	}
	fail(plan.ReasonType, "order of arrays")
	return nil
}

// constantArray analyses an array of a kind that is written: ARRAY[...] of constants, or a literal.
func (a *analyzer) constantArray(n *pg.Node, elem vector.Kind, s *scope) plan.Const {
	t := vector.TypeOf(vector.ArrayOf(elem))
	array, literal := n.GetAArrayExpr(), n
	if c := n.GetTypeCast(); c != nil && len(c.TypeName.GetArrayBounds()) == 1 && len(c.TypeName.Typmods) == 0 {
		names := nameList(c.TypeName.Names)
		if typeNames[names[len(names)-1]] != elem {
			fail(plan.ReasonType, "an array of another type than "+t.Kind.String())
		}
		array, literal = castElements(c), c.Arg
	}
	if text, is := literal.GetAConst().GetVal().(*pg.A_Const_Sval); is {
		return a.parseLiteral(text.Sval.Sval, t)
	}
	if array == nil || len(array.Elements) == 0 {
		fail(plan.ReasonType, "an array that is not constant")
	}
	list := sqltype.NewArray(vector.TypeOf(elem))
	members := make([]value, len(array.Elements))
	for i, m := range array.Elements {
		members[i] = a.expr(m, s)
	}
	if k, ok := commonKind(members); !ok || k != elem {
		fail(plan.ReasonType, "an array of another type than "+t.Kind.String())
	}
	for _, m := range members {
		if m.param > 0 {
			fail(plan.ReasonParameter, "parameter in an array")
		}
		a.callsCast(m, elem)
		c, ok := a.cast(a.resolve(m, vector.TypeOf(elem)), vector.TypeOf(elem)).(plan.Const)
		if !ok {
			fail(plan.ReasonType, "an array that is not constant")
		}
		list.Add(c.Datum.Value())
	}
	return plan.Const{Datum: vector.Datum{Type: t, Str: list.String()}}
}

// arraySize analyses cardinality() and array_length().
func (a *analyzer) arraySize(name string, vals []value) plan.Expr {
	use := map[string]sqlfn.ArrayUse{"cardinality": sqlfn.ArrayCardinality, "array_length": sqlfn.ArrayLength}[name]
	if len(vals) == 0 || !vals[0].kind().IsArray() {
		fail(plan.ReasonFunction, name+"()")
	}
	f := sqlfn.OfArray(use, vals[0].kind().Element(), vector.Invalid)
	if len(f.Args) != len(vals) || len(vals) > 1 && vals[1].kind() != vector.Int4 {
		fail(plan.ReasonFunction, name+"() in this form")
	}
	a.addCalls([]uint32{oidsOfArrays[name]})
	return a.callOf(f, vals)
}
