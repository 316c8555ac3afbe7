package sqlfn

import "pgaccel/vector"

// OIDs of functions that pushdown calls for operators.
const (
	OIDJSONExtractPath     = 3951
	OIDJSONExtractPathText = 3953
)

// rawDocuments are the functions of json, in databases of UTF-8 (PostgreSQL's jsonfuncs.c).
var rawDocuments = []Function{
	jsonPart("json_object_field", 3947, vector.Text),
	jsonPart("json_object_field_text", 3948, vector.Text),
	jsonPart("json_array_element", 3949, vector.Int4),
	jsonPart("json_array_element_text", 3950, vector.Int4),
	jsonPart("json_extract_path", OIDJSONExtractPath, vector.Text),
	jsonPart("json_extract_path_text", OIDJSONExtractPathText, vector.Text),
	{
		Name: "json_typeof", OID: 3968, Result: vector.Text, Args: []Param{{Kind: vector.JSON}}, Total: true, Samples: [][]string{jsonSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.Value{Str: jsonbNames[jsonKind(args[0].Str[rawSkip(args[0].Str, 0):])]}, nil
		},
	},
	{
		Name: "json_array_length", OID: 3956, Result: vector.Int4, Args: []Param{{Kind: vector.JSON}}, Samples: [][]string{jsonSamples}, Partial: true,
		Eval: func(args []vector.Value) (vector.Value, error) {
			s := args[0].Str[rawSkip(args[0].Str, 0):]
			if s[0] != '[' {
				return vector.NullValue, failed("json_array_length() of what is no array")
			}
			return vector.Value{I: rawLength(s)}, nil
		},
	},
}

var jsonSamples = append([]string{" [1 , [2,3 ],{\"a\" :1} ,\t\"x\"]\n", `{"a":1 , "b" : {"a":[1, 2]} ,"a" : " x"}`, `{"a":{"b":1},"a":{"c":2}}`, `{"\u0061":"\/","b":"\\u0041"}`, "  null ", ` "a"`, "[ ]", "{ }", "[1.50,1.0]"}, jsonbSamples...)

// jsonPart is a function that finds a part of a document; those whose name ends in text return what a
// string means, others as they are written, and of null no value.
func jsonPart(name string, oid uint32, by vector.Kind) Function {
	path := oid == OIDJSONExtractPath || oid == OIDJSONExtractPathText
	f := Function{Name: name, OID: oid, Result: vector.JSON, Args: []Param{{Kind: vector.JSON}, {Kind: by, Usual: keySamples[:4]}},
		Samples: [][]string{jsonSamples, keySamples}, Variadic: path, Partial: true}
	if by == vector.Int4 {
		f.Args[1].Usual, f.Samples[1] = itemSamples[:5], itemSamples
	}
	text := len(name) > 5 && name[len(name)-5:] == "_text"
	if text {
		f.Result = vector.Text
	}
	f.Eval = func(args []vector.Value) (vector.Value, error) {
		s := args[0].Str
		if !rawReadable(s) {
			return vector.NullValue, failed(name + "() of a document with escapes that are no characters")
		}
		s = s[rawSkip(s, 0):]
		v, n := "", 0
		switch {
		case path:
			// The server looks in all values of the key for what is further down the path.
			if v, n = rawStep(s, args[1].Str); n > 1 {
				return vector.NullValue, failed(name + "() by a key that an object has more than once")
			}
		case by == vector.Int4:
			var ok bool
			if v, ok = rawElement(s, args[1].I); ok {
				n = 1
			}
		default:
			v, n = rawField(s, args[1].Str)
		}
		if n == 0 || text && v == "null" {
			return vector.NullValue, nil
		}
		if str, isString := stringOf(v); text && isString {
			v = str.text()
		}
		return vector.Value{Str: v}, nil
	}
	return f
}
