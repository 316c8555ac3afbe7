package sqlfn

import (
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// SetFunction is a function that returns rows: those that one value is expanded to. It has none for a null.
type SetFunction struct {
	Name    string // pg_proc.proname
	OID     uint32 // pg_proc.oid
	Arg     vector.Kind
	Columns []vector.Type
	Names   []string // of the columns, as its OUT parameters are called; nil where it has none
	// Fails says that some values are an error.
	Fails bool
	// Expand calls row with each row in its order. The row is the callee's.
	Expand func(s string, row func([]vector.Value)) error
}

// Image returns the function whose result are the bytes that a value held as a string is held as
// (datum_image_eq in datum.c compares values so). It is none of the server's: documents and arrays have no
// groups and are not joined by, and those that are held alike are expanded alike.
func Image(k vector.Kind) *Function {
	type image struct{ of vector.Kind }
	if f, ok := makers.Load(image{k}); ok {
		return f.(*Function)
	}
	f := &Function{Name: "image", OID: 4, Result: vector.Bytea, Args: []Param{{Kind: k}}, Total: true,
		Eval: func(args []vector.Value) (vector.Value, error) { return args[0], nil }}
	kept, _ := makers.LoadOrStore(image{k}, f)
	return kept.(*Function)
}

// Unnest returns unnest() of arrays of a kind: the elements of all dimensions, as they are stored (array_unnest
// in arrayfuncs.c). elem is their type.
func Unnest(elem vector.Type) *SetFunction {
	return &SetFunction{Name: "unnest", OID: 2331, Arg: vector.ArrayOf(elem.Kind), Columns: []vector.Type{elem},
		Expand: func(s string, row func([]vector.Value)) error {
			var v [1]vector.Value
			sqltype.EachElement(s, func(raw string, null bool) {
				if v[0] = vector.NullValue; !null {
					v[0] = sqltype.ElementValue(elem.Kind, raw)
				}
				row(v[:])
			})
			return nil
		}}
}

// SetOfJSONB returns a function that expands documents, nil where there is none of that name. text is the type
// of the texts among its columns.
func SetOfJSONB(name string, text vector.Type) *SetFunction {
	f := &SetFunction{Name: name, Arg: vector.JSONB, Fails: true}
	document := vector.TypeOf(vector.JSONB)
	switch name {
	case "jsonb_array_elements":
		f.OID, f.Columns, f.Names = 3219, []vector.Type{document}, []string{"value"}
		f.Expand = elementsOf(func(v string) vector.Value { return vector.Value{Str: v} })
	case "jsonb_array_elements_text":
		f.OID, f.Columns, f.Names = 3465, []vector.Type{text}, []string{"value"}
		f.Expand = elementsOf(jsonText)
	case "jsonb_object_keys":
		f.OID, f.Columns = 3931, []vector.Type{text}
		f.Expand = pairsOf(func(_ string) vector.Value { return vector.Value{} }, 1)
	case "jsonb_each":
		f.OID, f.Columns, f.Names = 3208, []vector.Type{text, document}, []string{"key", "value"}
		f.Expand = pairsOf(func(v string) vector.Value { return vector.Value{Str: v} }, 2)
	case "jsonb_each_text":
		f.OID, f.Columns, f.Names = 3932, []vector.Type{text, text}, []string{"key", "value"}
		f.Expand = pairsOf(jsonText, 2)
	default:
		return nil
	}
	return f
}

// jsonText is what a value means as text: a string what it stands for, null none, all else as it is written.
func jsonText(v string) vector.Value {
	if v == "null" {
		return vector.NullValue
	}
	if s, isString := stringOf(v); isString {
		v = s.text()
	}
	return vector.Value{Str: v}
}

// elementsOf expands an array (elements_worker_jsonb in jsonfuncs.c).
func elementsOf(value func(string) vector.Value) func(string, func([]vector.Value)) error {
	return func(s string, row func([]vector.Value)) error {
		if s[0] != '[' {
			return failed("elements of what is no array")
		}
		var v [1]vector.Value
		for t := itemsOf(s); t.more(); {
			v[0] = value(t.value())
			row(v[:])
		}
		return nil
	}
}

// pairsOf expands an object: to its keys, of two columns with their values (each_worker_jsonb in jsonfuncs.c).
func pairsOf(value func(string) vector.Value, columns int) func(string, func([]vector.Value)) error {
	return func(s string, row func([]vector.Value)) error {
		if s[0] != '{' {
			return failed("keys of what is no object")
		}
		var v [2]vector.Value
		for t := itemsOf(s); t.more(); {
			k, document := t.pair()
			v = [2]vector.Value{{Str: k.text()}, value(document)}
			row(v[:columns])
		}
		return nil
	}
}
