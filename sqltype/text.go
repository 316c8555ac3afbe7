package sqltype

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"pgaccel/vector"
)

const (
	OIDText    = 25
	OIDBPChar  = 1042
	OIDVarchar = 1043
)

var (
	textType = stringType(Type{Kind: vector.Text, Name: "text", OID: OIDText, Preferred: true, Implicit: []vector.Kind{vector.Varchar, vector.BPChar, vector.Name},
		Samples: []string{"", " ", "a  ", "größe €𝄞", "\x01\n\t\\\""}})
	varcharType = stringType(Type{Kind: vector.Varchar, Name: "varchar", OID: OIDVarchar, Implicit: []vector.Kind{vector.Text, vector.BPChar, vector.Name},
		Samples: []string{"", "a  ", "abcde", "ééééé"}})
	bpcharType = stringType(Type{Kind: vector.BPChar, Name: "bpchar", OID: OIDBPChar, Implicit: []vector.Kind{vector.Text, vector.Varchar, vector.Name},
		Samples: []string{"", "a", "é", "abcd"}})
)

// stringType completes the Type of a kind of text, whose forms are the characters
// themselves, in UTF-8.
func stringType(t Type) Type {
	of := vector.TypeOf(t.Kind)
	t.Category, t.Binary = 'S', BinaryText
	t.Parse = func(s string) (vector.Datum, bool) {
		return vector.Datum{Type: of, Str: s}, utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
	}
	t.Receive = func(raw []byte) (vector.Datum, bool) { return t.Parse(string(raw)) }
	return t
}

// ValidText reports whether v can be a value of text. The server does not look at what it has stored: functions
// in C, and damaged pages, leave text there of which its own functions say different things.
func ValidText(v []byte) bool { return utf8.Valid(v) && bytes.IndexByte(v, 0) < 0 }
