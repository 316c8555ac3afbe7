package sqlfn

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// arrayDims is array_dims(array): the bounds of each dimension.
func arrayDims(args []vector.Value) (vector.Value, error) {
	var b strings.Builder
	for _, d := range sqltype.ArrayBounds(args[0].Str) {
		fmt.Fprintf(&b, "[%d:%d]", d[0], d[1])
	}
	return vector.Value{Str: b.String(), Null: b.Len() == 0}, nil
}

// arrayBound is array_lower(array, dimension), or array_upper of end 1.
func arrayBound(end int) func(args []vector.Value) (vector.Value, error) {
	return func(args []vector.Value) (vector.Value, error) {
		bounds := sqltype.ArrayBounds(args[0].Str)
		if n := args[1].I; n >= 1 && n <= int64(len(bounds)) {
			return vector.Value{I: bounds[n-1][end]}, nil
		}
		return vector.NullValue, nil
	}
}

// arrayPosition is array_position(array, element): the subscript of the first one that is not distinct.
func arrayPosition(elem vector.Kind, args []vector.Value) (vector.Value, error) {
	if args[0].Null {
		return vector.NullValue, nil
	}
	at, err := positions(elem, args)
	if len(at) == 0 {
		return vector.NullValue, err
	}
	return vector.Value{I: at[0]}, nil
}

// arrayPositions is array_positions(array, element): the subscripts of all that are not distinct.
func arrayPositions(elem vector.Kind, args []vector.Value) (vector.Value, error) {
	if args[0].Null {
		return vector.NullValue, nil
	}
	at, err := positions(elem, args)
	list := sqltype.NewArray(vector.TypeOf(vector.Int4))
	for _, n := range at {
		list.Add(vector.Value{I: n})
	}
	return vector.Value{Str: list.String()}, err
}

// positions are the subscripts of an array's elements that are not distinct from a value.
func positions(elem vector.Kind, args []vector.Value) (found []int64, err error) {
	bounds := sqltype.ArrayBounds(args[0].Str)
	switch {
	case len(bounds) == 0:
		return nil, nil
	case len(bounds) > 1:
		return nil, failed("searching for elements in multidimensional arrays")
	}
	alike, at := notDistinct(elem, args[1]), bounds[0][0]
	sqltype.EachElement(args[0].Str, func(raw string, null bool) {
		if alike(raw, null) {
			found = append(found, at)
		}
		at++
	})
	return found, nil
}

// notDistinct returns what tells whether an element, in binary form, is not distinct from a value.
func notDistinct(elem vector.Kind, v vector.Value) func(raw string, null bool) bool {
	if v.Null {
		return func(_ string, null bool) bool { return null }
	}
	x, possible := sqltype.ElementBinary(elem, v)
	return func(raw string, null bool) bool { return possible && !null && raw == x }
}

// arrayRemove is array_remove(array, element): without all that are not distinct (array_replace_internal in arrayfuncs.c).
func arrayRemove(elem vector.Kind, args []vector.Value) (vector.Value, error) {
	if args[0].Null {
		return vector.NullValue, nil
	}
	if len(sqltype.ArrayBounds(args[0].Str)) > 1 {
		return vector.NullValue, failed("removing elements from multidimensional arrays")
	}
	return vector.Value{Str: sqltype.ArrayWithout(args[0].Str, notDistinct(elem, args[1]))}, nil
}

// arrayToString is array_to_string(array, delimiter) and, with the text of nulls, of three arguments.
func arrayToString(elem vector.Kind, args []vector.Value) (vector.Value, error) {
	if args[0].Null || args[1].Null {
		return vector.NullValue, nil
	}
	var b strings.Builder
	first := true
	sqltype.EachElement(args[0].Str, func(raw string, null bool) {
		if null && (len(args) < 3 || args[2].Null) {
			return
		}
		if !first {
			b.WriteString(args[1].Str)
		}
		first = false
		if null {
			b.WriteString(args[2].Str)
		} else {
			b.WriteString(sqltype.ElementText(elem, raw))
		}
	})
	return held(b.String(), "")
}

// splits are string_to_array(text, delimiter) and, with the text of nulls, of three arguments (PostgreSQL's varlena.c).
var splits = []Function{splitOf(394, 2), splitOf(376, 3)}

func splitOf(oid uint32, n int) Function {
	delimiters := []string{",", "", "a", "::", "é"}
	args := []Param{{Kind: vector.Text}, {Kind: vector.Text, Usual: delimiters}, {Kind: vector.Text, Usual: []string{"", "a", "b"}}}
	return Function{Name: "string_to_array", OID: oid, Result: vector.ArrayOf(vector.Text), Args: args[:n], CalledOnNull: true,
		Samples: [][]string{append([]string{",", "a,b", ",a,,b,", "x::y:::z", "éaé"}, textSamples...), delimiters, {"", "a", "b"}}[:n],
		Eval: func(args []vector.Value) (vector.Value, error) {
			if args[0].Null {
				return vector.NullValue, nil
			}
			var parts []string
			switch s, by := args[0].Str, args[1]; {
			case s == "":
			case by.Null:
				for s != "" {
					_, size := utf8.DecodeRuneInString(s)
					parts, s = append(parts, s[:size]), s[size:]
				}
			case by.Str == "":
				parts = []string{s}
			default:
				parts = strings.Split(s, by.Str)
			}
			list := sqltype.NewArray(vector.TypeOf(vector.Text))
			for _, p := range parts {
				list.Add(vector.Value{Str: p, Null: n == 3 && !args[2].Null && p == args[2].Str})
			}
			return vector.Value{Str: list.String()}, nil
		},
	}
}
