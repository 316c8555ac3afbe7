package pushdown

import (
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
}

// callArray analyses a call of one of arrayFunctions.
func (a *analyzer) callArray(name string, vals []value) plan.Expr {
	f, ok := arrayFunctions[name][len(vals)]
	if !ok || !vals[0].kind().IsArray() {
		fail(plan.ReasonFunction, name+"() in this form")
	}
	elem := vals[0].kind().Element()
	switch f.use {
	case sqlfn.ArrayLower, sqlfn.ArrayUpper:
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
