package pushdown

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// arrayFunction is a function of arrays of any type. oid is 0 where it has no form of so many arguments.
type arrayFunction struct {
	use sqlfn.ArrayUse
	oid uint32
}

// arrayFunctions are those by name and number of arguments.
var arrayFunctions = map[string]map[int]arrayFunction{
	"array_lower": {2: {sqlfn.ArrayLower, 2091}}, "array_upper": {2: {sqlfn.ArrayUpper, 2092}},
	"array_ndims": {1: {sqlfn.ArrayDimensions, 748}}, "array_dims": {1: {sqlfn.ArrayDims, 747}},
	"array_position":  {2: {sqlfn.ArrayPosition, 3277}},
	"array_positions": {2: {sqlfn.ArrayPositions, 3278}}, "array_remove": {2: {sqlfn.ArrayRemove, 3167}},
	"array_to_string": {2: {sqlfn.ArrayToString, 395}, 3: {sqlfn.ArrayToStringNulls, 384}},
	"array_append":    {2: {sqlfn.ArrayAppend, 378}}, "array_prepend": {2: {sqlfn.ArrayPrepend, 379}}, "array_cat": {2: {sqlfn.ArrayCat, 383}},
	"array_replace": {3: {sqlfn.ArrayReplace, 3168}}, "trim_array": {2: {sqlfn.ArrayTrim, 6172}},
}

// callArray analyses a call of one of arrayFunctions.
func (a *analyzer) callArray(name string, vals []value) plan.Expr {
	f, ok := arrayFunctions[name][len(vals)]
	at := 0
	if f.use == sqlfn.ArrayPrepend {
		at = 1
	}
	if !ok || !vals[at].kind().IsArray() {
		fail(plan.ReasonFunction, name+"() in this form")
	}
	elem := vals[at].kind().Element()
	switch f.use {
	case sqlfn.ArrayAppend, sqlfn.ArrayPrepend, sqlfn.ArrayCat, sqlfn.ArrayReplace:
		a.matchElementTypes(name, f.use, elem, vals)
	case sqlfn.ArrayLower, sqlfn.ArrayUpper, sqlfn.ArrayTrim:
		if k := vals[1].kind(); k != vector.Int4 && k != vector.Int2 {
			fail(plan.ReasonFunction, name+"() in this form")
		}
	case sqlfn.ArrayPosition, sqlfn.ArrayPositions, sqlfn.ArrayRemove:
		vals[1] = typed(a.resolve(vals[1], openType(vector.TypeOf(elem))))
		if k := vals[1].kind(); k != elem && !(k.IsText() && k != vector.BPChar && elem.IsText()) || !bytesEqual(elem) || loose(vals[1].e.Type()) {
			fail(plan.ReasonType, name+"() of an array of "+elem.String())
		}
		vals[1] = typed(a.cast(vals[1].e, vector.TypeOf(elem)))
	case sqlfn.ArrayToString, sqlfn.ArrayToStringNulls:
		if sqltype.Of(elem).Settings || elem.IsFloat() { // settings say how these are written
			fail(plan.ReasonType, name+"() of an array of "+elem.String())
		}
	}
	a.addCalls([]uint32{f.oid})
	return a.callOf(sqlfn.OfArray(f.use, elem, vector.Invalid), vals)
}

// matchElementTypes refuses arguments of other types than an array's: they would be cast, or the array. What has no type is read as
// one of these.
func (a *analyzer) matchElementTypes(name string, use sqlfn.ArrayUse, elem vector.Kind, vals []value) {
	if use == sqlfn.ArrayReplace && !bytesEqual(elem) {
		fail(plan.ReasonType, name+"() of an array of "+elem.String())
	}
	for i, v := range vals {
		if v.param > 0 {
			fail(plan.ReasonParameter, "type of a parameter of "+name+"()")
		}
		if v.unknown() && use != sqlfn.ArrayCat {
			vals[i] = typed(a.resolve(v, openType(vector.TypeOf(elem))))
			vals[i] = typed(a.cast(vals[i].e, vector.TypeOf(elem)))
			continue
		}
		if k := v.kind(); k != elem && k != vector.ArrayOf(elem) {
			fail(plan.ReasonType, name+"() of an array of "+elem.String()+" and of "+k.String())
		}
	}
}

// concatenatedArray is || of an array and another, or of an array and an element. ok is false where neither is an array.
func (a *analyzer) concatenatedArray(l, r value) (e plan.Expr, ok bool) {
	name := "array_cat"
	switch lk, rk := l.kind(), r.kind(); {
	case !lk.IsArray() && !rk.IsArray():
		return nil, false
	case l.unknown() || r.unknown():
		fail(plan.ReasonType, "|| of an array and a constant without a type")
	case !rk.IsArray():
		name = "array_append"
	case !lk.IsArray():
		name = "array_prepend"
	}
	return a.callArray(name, []value{l, r}), true
}

// arraySubscript is array[i] and array[i:j] of one dimension. They call no function that there is a right to (arraysubs.c).
func (a *analyzer) arraySubscript(array value, at []*pg.Node, s *scope) plan.Expr {
	if len(at) != 1 || at[0].GetAIndices() == nil {
		fail(plan.ReasonShape, "subscripts of several dimensions")
	}
	subscript := func(n *pg.Node, open int64) value {
		if n == nil {
			return typed(plan.Const{Datum: vector.Int(vector.Int4, open)})
		}
		v := a.expr(n, s)
		if v.null && v.param == 0 {
			v = typed(a.resolve(v, vector.TypeOf(vector.Int4)))
		}
		if k := v.kind(); v.param > 0 || k != vector.Int4 && k != vector.Int2 {
			fail(plan.ReasonType, "subscript of type "+k.String())
		}
		a.callsCast(v, vector.Int4)
		return v
	}
	elem, x := array.kind().Element(), at[0].GetAIndices()
	if x.IsSlice {
		f := sqlfn.OfArray(sqlfn.ArraySlice, elem, vector.Invalid)
		return a.callOf(f, []value{array, subscript(x.Lidx, sqlfn.SliceStart), subscript(x.Uidx, sqlfn.SliceEnd)})
	}
	return a.callOf(sqlfn.OfArray(sqlfn.ArraySubscript, elem, vector.Invalid), []value{array, subscript(x.Uidx, 0)})
}

// elementCollation is the collation of an array's elements, which is known of columns that have the database's.
func (a *analyzer) elementCollation(array vector.Type) vector.Collation {
	if array.Collation.OID == defaultCollation {
		if c, ok := a.defaultCollation(); ok {
			return c
		}
		return vector.Collation{}
	}
	fail(plan.ReasonCollation, "text of an array whose collation is not known")
	return vector.Collation{}
}
