package sqlfn

import "pgaccel/vector"

// OIDs of functions that pushdown calls for operators.
const (
	OIDJSONBEq              = 4043
	OIDJSONBNe              = 4038
	OIDJSONBExists          = 4047
	OIDJSONBExistsAny       = 4048
	OIDJSONBExistsAll       = 4049
	OIDJSONBExtractPath     = 3217
	OIDJSONBExtractPathText = 3940
)

// documents are the functions of jsonb, in databases of UTF-8 (PostgreSQL's jsonfuncs.c and jsonb_op.c).
var documents = []Function{
	jsonbPart("jsonb_object_field", 3478, vector.Text, valueOfKey),
	jsonbPart("jsonb_object_field_text", 3214, vector.Text, valueOfKey),
	jsonbPart("jsonb_array_element", 3215, vector.Int4, valueAt),
	jsonbPart("jsonb_array_element_text", 3216, vector.Int4, valueAt),
	jsonbPart("jsonb_extract_path", OIDJSONBExtractPath, vector.Text, valueOfStep),
	jsonbPart("jsonb_extract_path_text", OIDJSONBExtractPathText, vector.Text, valueOfStep),
	jsonbTest("jsonb_contains", 4046, vector.JSONB, jsonContains),
	jsonbTest("jsonb_contained", 4050, vector.JSONB, func(part, s string) bool { return jsonContains(s, part) }),
	jsonbTest("jsonb_exists", OIDJSONBExists, vector.Text, jsonExists),
	jsonbTest("jsonb_eq", OIDJSONBEq, vector.JSONB, equalJSON),
	jsonbTest("jsonb_ne", OIDJSONBNe, vector.JSONB, func(a, b string) bool { return !equalJSON(a, b) }),
	{
		Name: "jsonb_typeof", OID: 3210, Result: vector.Text, Args: []Param{{Kind: vector.JSONB}}, Total: true, Samples: [][]string{jsonbSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.Value{Str: jsonbNames[jsonKind(args[0].Str)]}, nil
		},
	},
	{
		Name: "jsonb_array_length", OID: 3207, Result: vector.Int4, Args: []Param{{Kind: vector.JSONB}}, Samples: [][]string{jsonbSamples}, Partial: true,
		Eval: func(args []vector.Value) (vector.Value, error) {
			if args[0].Str[0] != '[' {
				return vector.NullValue, failed("jsonb_array_length() of what is no array")
			}
			return vector.Value{I: jsonLength(args[0].Str)}, nil
		},
	},
}

var jsonbNames = map[byte]string{'{': "object", '[': "array", '"': "string", '0': "number", 't': "boolean", 'n': "null"}

var (
	jsonbSamples = []string{"null", "true", "false", "0", "1", "1.0", "-1.50", `"a"`, `"b\"\\\n\u0001é"`, `""`, "[]", "{}", `["a", 1, null, [1, 2], {"a": 1}]`, `[1.0, "b", [2]]`, `[[], {}]`, `[[1, 2, 2], true]`,
		`{"a": 1, "b": "x,}]{\"", "0": null, "": true}`, `{"a": {"b": [1.00, {"c": "d"}]}, "c": [1]}`, `{"a": {"b": [1]}}`, `{"a\"b\n": "q", "é": "żółć", "日本": "\u0007"}`, `{"a": 1.0}`, `{"k": "a ", ": ": 1}`, `[{"a": [1, "a"], "b": null}]`}
	keySamples  = []string{"a", "b", "0", "", "a\"b\n", "é", "日本", "1", "-1", " 1", "+0", "-9", "1x", "4294967296", ", ", ": ", "b\"\\\n\x01é", `a\"b\n`}
	itemSamples = []string{"0", "1", "2", "-1", "-2", "100", "-100", "2147483647", "-2147483648"}
)

func valueOfKey(s string, key vector.Value) (string, bool) { return jsonField(s, key.Str) }

func valueOfStep(s string, step vector.Value) (string, bool) { return jsonStep(s, step.Str) }

// valueAt takes a single value for an array that has it alone, as that is held in the server.
func valueAt(s string, n vector.Value) (string, bool) {
	if jsonScalar(s) {
		return s, n.I == 0 || n.I == -1
	}
	return jsonElement(s, n.I)
}

// jsonbPart is a function that finds a part of a document; those whose name ends in text return what a
// string means, others as they are written, and of null no value.
func jsonbPart(name string, oid uint32, by vector.Kind, find func(s string, by vector.Value) (string, bool)) Function {
	f := Function{Name: name, OID: oid, Result: vector.JSONB, Args: []Param{{Kind: vector.JSONB}, {Kind: by, Usual: keySamples[:4]}}, Total: true,
		Samples:  [][]string{jsonbSamples, keySamples},
		Variadic: oid == OIDJSONBExtractPath || oid == OIDJSONBExtractPathText}
	if by == vector.Int4 {
		f.Args[1].Usual, f.Samples[1] = itemSamples[:5], itemSamples
	}
	text := len(name) > 5 && name[len(name)-5:] == "_text"
	if text {
		f.Result = vector.Text
	}
	f.Eval = func(args []vector.Value) (vector.Value, error) {
		v, ok := find(args[0].Str, args[1])
		if !ok || text && v == "null" {
			return vector.NullValue, nil
		}
		if s, isString := stringOf(v); text && isString {
			v = s.text()
		}
		return vector.Value{Str: v}, nil
	}
	return f
}

// jsonbTest is a condition on a document and something else.
func jsonbTest(name string, oid uint32, second vector.Kind, test func(a, b string) bool) Function {
	f := Function{Name: name, OID: oid, Result: vector.Bool, Args: []Param{{Kind: vector.JSONB}, {Kind: second, Usual: keySamples[:4]}}, Total: true,
		Samples: [][]string{jsonbSamples, keySamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.BoolValue(test(args[0].Str, args[1].Str)), nil
		}}
	if second == vector.JSONB {
		f.Args[1].Usual, f.Samples[1] = jsonbSamples[:8], jsonbSamples
	}
	return f
}
