package sqlfn

import (
	"math"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Open ends of slices: beyond all subscripts that there are.
const (
	SliceStart = math.MinInt32
	SliceEnd   = math.MaxInt32
)

var errArrayShape = failed("an array of several dimensions, or beyond its subscripts")

// arrayBuild completes a function that takes elements of an array, or makes another array of it.
func arrayBuild(f *Function, use ArrayUse, elem vector.Kind) {
	array, integer := Param{Kind: vector.ArrayOf(elem)}, Param{Kind: vector.Int4}
	f.Result, f.Total = array.Kind, false
	switch use {
	case ArraySubscript:
		f.Name, f.Result, f.Args, f.Total = "subscript", elem, []Param{array, integer}, true
		f.Type = func(Call) vector.Type {
			if elem == vector.Numeric {
				return vector.NumericType(vector.VaryingScale)
			}
			return vector.TypeOf(elem)
		}
		f.Eval = func(args []vector.Value) (vector.Value, error) {
			raw, null, ok := sqltype.ArrayElement(args[0].Str, args[1].I)
			if null || !ok {
				return vector.NullValue, nil
			}
			return sqltype.ElementValue(elem, raw), nil
		}
	case ArraySlice:
		f.Name, f.Args, f.Total = "slice", []Param{array, integer, integer}, true
		f.Eval = func(args []vector.Value) (vector.Value, error) {
			return vector.Value{Str: sqltype.ArraySlice(args[0].Str, args[1].I, args[2].I)}, nil
		}
	case ArrayTrim:
		f.Name, f.Args = "trim_array", []Param{array, integer}
		f.Eval = arrayTrim
	case ArrayCat:
		f.Name, f.Args, f.CalledOnNull = "array_cat", []Param{array, array}, true
		f.Eval = func(args []vector.Value) (vector.Value, error) {
			switch {
			case args[0].Null:
				return args[1], nil
			case args[1].Null:
				return args[0], nil
			}
			s, ok := sqltype.ArrayJoined(args[0].Str, args[1].Str)
			return boundedArray(s, ok)
		}
	case ArrayAppend:
		f.Name, f.Args, f.CalledOnNull = "array_append", []Param{array, {Kind: elem}}, true
		f.Eval = func(args []vector.Value) (vector.Value, error) {
			return arrayWith(args[0], elem, args[1], false)
		}
	case ArrayPrepend:
		f.Name, f.Args, f.CalledOnNull = "array_prepend", []Param{{Kind: elem}, array}, true
		f.Eval = func(args []vector.Value) (vector.Value, error) {
			return arrayWith(args[1], elem, args[0], true)
		}
	case ArrayReplace:
		f.Name, f.Args, f.CalledOnNull = "array_replace", []Param{array, {Kind: elem}, {Kind: elem}}, true
		f.Eval = func(args []vector.Value) (vector.Value, error) {
			if args[0].Null {
				return vector.NullValue, nil
			}
			return boundedArray(sqltype.ArrayReplaced(args[0].Str, notDistinct(elem, args[1]), elem, args[2]), true)
		}
	}
}

// arrayWith is an array, none where it is null, with another element.
func arrayWith(array vector.Value, elem vector.Kind, v vector.Value, first bool) (vector.Value, error) {
	if array.Null {
		array.Str = ""
	}
	s, ok := sqltype.ArrayWith(array.Str, elem, v, first)
	return boundedArray(s, ok)
}

// boundedArray is an array that is as long as values may be.
func boundedArray(s string, ok bool) (vector.Value, error) {
	if !ok {
		return vector.NullValue, errArrayShape
	}
	return held(s, "")
}

// arrayTrim is trim_array(array, n): without its last n elements.
func arrayTrim(args []vector.Value) (vector.Value, error) {
	length, _ := sqltype.ArrayLength(args[0].Str, 1)
	n := args[1].I
	if n < 0 || n > length {
		return vector.NullValue, failed("number of elements to trim must be between 0 and the array's length")
	}
	last := int64(0)
	if bounds := sqltype.ArrayBounds(args[0].Str); len(bounds) > 0 {
		last = bounds[0][1] - n
	}
	return vector.Value{Str: sqltype.ArraySlice(args[0].Str, SliceStart, last)}, nil
}
