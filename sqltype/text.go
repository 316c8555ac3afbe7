package sqltype

import (
	"strings"
	"unicode/utf8"

	"pgaccel/vector"
)

// textType makes the Type of text, varchar and char(n), whose forms are the characters
// themselves, in UTF-8.
func textType(k vector.Kind) Type {
	t := vector.TypeOf(k)
	parse := func(s string) (vector.Datum, bool) {
		return vector.Datum{Type: t, Str: s}, utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
	}
	return Type{Binary: BinaryText, Parse: parse, Receive: func(raw []byte) (vector.Datum, bool) { return parse(string(raw)) }}
}
