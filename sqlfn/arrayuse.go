package sqlfn

import (
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// ArrayUse is what is asked of an array.
type ArrayUse uint8

// What is asked. Elements are compared by their binary form: it is for kinds of which equal values have
// the same.
const (
	ArrayMember        ArrayUse = iota // x = ANY (array): null where it is not found beside nulls
	ArrayContains                      // array @> array
	ArrayOverlaps                      // array && array
	ArrayCardinality                   // cardinality(array)
	ArrayLength                        // array_length(array, integer)
	ArrayLower                         // array_lower(array, integer)
	ArrayUpper                         // array_upper(array, integer)
	ArrayDimensions                    // array_ndims(array)
	ArrayDims                          // array_dims(array)
	ArrayPosition                      // array_position(array, element)
	ArrayToString                      // array_to_string(array, text)
	ArrayToStringNulls                 // array_to_string(array, text, text)
	ArrayContained                     // array <@ array
	ArrayEqual                         // array = array
	ArrayPositions                     // array_positions(array, element)
	ArrayRemove                        // array_remove(array, element)
	ArraySubscript                     // array[integer]
	ArraySlice                         // array[integer:integer]
	ArrayAppend                        // array_append(array, element)
	ArrayPrepend                       // array_prepend(element, array)
	ArrayCat                           // array_cat(array, array)
	ArrayReplace                       // array_replace(array, element, element)
	ArrayTrim                          // trim_array(array, integer)
)

// arrayUse names a function of OfArray.
type arrayUse struct {
	use      ArrayUse
	elem, by vector.Kind
}

// OfArray returns the function that asks something of arrays of a kind. Of ArrayMember the member, of kind by,
// comes first.
func OfArray(use ArrayUse, elem, by vector.Kind) *Function {
	key := arrayUse{use, elem, by}
	if f, ok := makers.Load(key); ok {
		return f.(*Function)
	}
	array := Param{Kind: vector.ArrayOf(elem)}
	f := &Function{Result: vector.Bool, Args: []Param{array, array}, Total: true}
	switch use {
	case ArrayMember:
		f.Name, f.Args, f.CalledOnNull = "member", []Param{{Kind: by}, array}, true
		f.Eval = func(args []vector.Value) (vector.Value, error) {
			if args[1].Null || args[0].Null && sqltype.Elements(args[1].Str) > 0 { // of no elements null is none, too
				return vector.NullValue, nil
			}
			if args[0].Null {
				return vector.BoolValue(false), nil
			}
			raw, ok := sqltype.ElementBinary(elem, args[0])
			return member(raw, ok, args[1].Str), nil
		}
	case ArrayContains, ArrayOverlaps:
		f.Name = map[ArrayUse]string{ArrayContains: "arraycontains", ArrayOverlaps: "arrayoverlap"}[use]
		f.Eval = func(args []vector.Value) (vector.Value, error) {
			return vector.BoolValue(members(args[0].Str, args[1].Str, use == ArrayContains)), nil
		}
	case ArrayContained:
		f.Name = "arraycontained"
		f.Eval = func(args []vector.Value) (vector.Value, error) {
			return vector.BoolValue(members(args[1].Str, args[0].Str, true)), nil
		}
	case ArrayEqual:
		f.Name = "array_eq"
		f.Eval = func(args []vector.Value) (vector.Value, error) {
			return vector.BoolValue(sqltype.ArraysEqual(args[0].Str, args[1].Str)), nil
		}
	case ArrayCardinality:
		f.Name, f.Result, f.Args = "cardinality", vector.Int4, []Param{array}
		f.Eval = func(args []vector.Value) (vector.Value, error) {
			return vector.Value{I: sqltype.Elements(args[0].Str)}, nil
		}
	case ArrayLength:
		f.Name, f.Result, f.Args = "array_length", vector.Int4, []Param{array, {Kind: vector.Int4}}
		f.Eval = func(args []vector.Value) (vector.Value, error) {
			n, ok := sqltype.ArrayLength(args[0].Str, args[1].I)
			return vector.Value{I: n, Null: !ok}, nil
		}
	case ArrayLower, ArrayUpper:
		f.Name = map[ArrayUse]string{ArrayLower: "array_lower", ArrayUpper: "array_upper"}[use]
		f.Result, f.Args, f.Eval = vector.Int4, []Param{array, {Kind: vector.Int4}}, arrayBound(int(use-ArrayLower))
	case ArrayDimensions:
		f.Name, f.Result, f.Args = "array_ndims", vector.Int4, []Param{array}
		f.Eval = func(args []vector.Value) (vector.Value, error) {
			n := int64(len(sqltype.ArrayBounds(args[0].Str)))
			return vector.Value{I: n, Null: n == 0}, nil
		}
	case ArrayDims:
		f.Name, f.Result, f.Args, f.Eval = "array_dims", vector.Text, []Param{array}, arrayDims
	case ArrayPosition:
		f.Name, f.Result, f.Args, f.CalledOnNull, f.Total = "array_position", vector.Int4, []Param{array, {Kind: elem}}, true, false
		f.Eval = func(args []vector.Value) (vector.Value, error) { return arrayPosition(elem, args) }
	case ArrayPositions, ArrayRemove:
		f.Args, f.CalledOnNull, f.Total = []Param{array, {Kind: elem}}, true, false
		if use == ArrayPositions {
			f.Name, f.Result = "array_positions", vector.ArrayOf(vector.Int4)
			f.Eval = func(args []vector.Value) (vector.Value, error) { return arrayPositions(elem, args) }
		} else {
			f.Name, f.Result = "array_remove", array.Kind
			f.Eval = func(args []vector.Value) (vector.Value, error) { return arrayRemove(elem, args) }
		}
	case ArrayToString, ArrayToStringNulls:
		texts := []Param{array, {Kind: vector.Text}, {Kind: vector.Text}}
		f.Name, f.Result, f.Args, f.CalledOnNull, f.Total = "array_to_string", vector.Text, texts[:2+use-ArrayToString], true, false
		f.Eval = func(args []vector.Value) (vector.Value, error) { return arrayToString(elem, args) }
	default:
		arrayBuild(f, use, elem)
	}
	f.OID = [...]uint32{ArrayLower: 2091, ArrayUpper: 2092, ArrayDimensions: 748, ArrayDims: 747, ArrayPosition: 3277, ArrayToString: 395, ArrayToStringNulls: 384, ArrayMember: 1, ArrayContains: 2748, ArrayOverlaps: 2747, ArrayCardinality: 3179, ArrayLength: 2176,
		ArrayContained: 2749, ArrayEqual: 744, ArrayPositions: 3278, ArrayRemove: 3167,
		ArraySubscript: 2, ArraySlice: 3, ArrayAppend: 378, ArrayPrepend: 379, ArrayCat: 383, ArrayReplace: 3168, ArrayTrim: 6172}[use] // tells them apart
	kept, _ := makers.LoadOrStore(key, f)
	return kept.(*Function)
}

// member is x = ANY (array); x may be a value that no element can have.
func member(x string, possible bool, array string) vector.Value {
	found, nulls := false, false
	sqltype.EachElement(array, func(raw string, null bool) {
		nulls = nulls || null
		found = found || possible && !null && raw == x
	})
	if nulls && !found {
		return vector.NullValue
	}
	return vector.BoolValue(found)
}

// members reports whether an array has all members of another, or one of them; nulls match nothing
// (array_contain_compare in arrayfuncs.c).
func members(array, of string, all bool) bool {
	result := all
	sqltype.EachElement(of, func(raw string, null bool) {
		has := member(raw, !null, array)
		if found := !has.Null && has.I != 0; found != all {
			result = found
		}
	})
	return result
}
