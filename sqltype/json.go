package sqltype

import (
	"strings"

	"pgaccel/vector"
)

const oidJSON = 114

// jsonType is held as the text that was written, which json_out and json_send return as it is.
var jsonType = Type{Kind: vector.JSON, Name: "json", OID: oidJSON, Category: 'U', NoExtremes: true, Binary: BinaryText,
	AppendString: func(dst []byte, s string) []byte { return append(dst, s...) },
	Parse:        parseJSON, Receive: func(raw []byte) (vector.Datum, bool) { return parseJSON(string(raw)) },
	Samples: append([]string{`{"a" : 1, "b": [2 , 3] ,"a":"x"}`, "[]  ", `{"b":null,"a":{"b":[true,"\u00e9"]}}`}, jsonbType.Samples...),
	Left:    jsonbType.Left,
}

// parseJSON reads what json_in does, but for what jsonb_in refuses and numbers with exponents.
func parseJSON(s string) (vector.Datum, bool) {
	_, ok := parseJSONB(s)
	return vector.Datum{Type: vector.TypeOf(vector.JSON), Str: strings.Clone(s)}, ok
}
