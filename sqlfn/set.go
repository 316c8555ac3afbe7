package sqlfn

import (
	"strings"

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
	f := &Function{Name: "image", OID: imageOID, Result: vector.Bytea, Args: []Param{{Kind: k}}, Total: true,
		Eval: func(args []vector.Value) (vector.Value, error) { return args[0], nil }}
	kept, _ := makers.LoadOrStore(image{k}, f)
	return kept.(*Function)
}

// imageOID is the OID of Image's functions, which is none of a function of the server's.
const imageOID = 4

// IsImage reports whether a function is one of Image: equal strings, and they alone, have equal images.
func (f *Function) IsImage() bool { return f.OID == imageOID }

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

// SetOfDocument returns a function that expands documents of json or jsonb, nil where there is none of that name. text is
// the type of the texts among its columns.
func SetOfDocument(name string, text vector.Type) *SetFunction {
	f := &SetFunction{Name: name, Fails: true}
	what, raw := strings.CutPrefix(name, "json_")
	of := expansion{raw: raw, value: func(v string) vector.Value { return vector.Value{Str: v} }}
	if f.Arg = vector.JSON; !raw {
		what, f.Arg = strings.TrimPrefix(name, "jsonb_"), vector.JSONB
	}
	document := vector.TypeOf(f.Arg)
	if what == "array_elements_text" || what == "each_text" {
		document, of.value = text, jsonText
	}
	oids := map[string][2]uint32{"array_elements": {3219, 3955}, "array_elements_text": {3465, 3969}, "object_keys": {3931, 3957},
		"each": {3208, 3958}, "each_text": {3932, 3959}}[what]
	if f.OID = oids[0]; raw {
		f.OID = oids[1]
	}
	switch what {
	case "array_elements", "array_elements_text":
		f.Columns, f.Names, f.Expand = []vector.Type{document}, []string{"value"}, of.elements
	case "object_keys":
		f.Columns, f.Expand = []vector.Type{text}, of.keys
	case "each", "each_text":
		f.Columns, f.Names, f.Expand = []vector.Type{text, document}, []string{"key", "value"}, of.pairs
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

// expansion is how documents are expanded: raw ones are of json, whose text is as it was written.
type expansion struct {
	raw   bool
	value func(string) vector.Value
}

// memberReader goes through the members of an array or object, in their order, and of json's objects through all of a key.
type memberReader interface {
	more() bool
	value() string
	pair() (key jsonString, value string)
}

// members returns those of a document that begins with a bracket.
func (x expansion) members(s string, bracket byte) (memberReader, error) {
	if x.raw {
		if !rawReadable(s) {
			return nil, failed("a document with escapes that are no characters")
		}
		s = s[rawSkip(s, 0):]
	}
	switch {
	case s[0] != bracket && bracket == '[':
		return nil, failed("elements of what is no array")
	case s[0] != bracket:
		return nil, failed("keys of what is no object")
	case x.raw:
		t := rawItemsOf(s)
		return &t, nil
	}
	t := itemsOf(s)
	return &t, nil
}

// elements expands an array (elements_worker in jsonfuncs.c, elements_worker_jsonb).
func (x expansion) elements(s string, row func([]vector.Value)) error {
	t, err := x.members(s, '[')
	if err != nil {
		return err
	}
	for v := make([]vector.Value, 1); t.more(); {
		v[0] = x.value(t.value())
		row(v)
	}
	return nil
}

// keys expands an object to its keys (json_object_keys in jsonfuncs.c, jsonb_object_keys).
func (x expansion) keys(s string, row func([]vector.Value)) error {
	return x.pairs(s, func(v []vector.Value) { row(v[:1]) })
}

// pairs expands an object to its keys with their values (each_worker in jsonfuncs.c, each_worker_jsonb).
func (x expansion) pairs(s string, row func([]vector.Value)) error {
	t, err := x.members(s, '{')
	if err != nil {
		return err
	}
	for v := make([]vector.Value, 2); t.more(); {
		key, value := t.pair()
		v[0], v[1] = vector.Value{Str: key.text()}, x.value(value)
		row(v)
	}
	return nil
}
