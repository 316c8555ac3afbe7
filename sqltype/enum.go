package sqltype

import (
	"strings"
	"unicode/utf8"

	"pgaccel/vector"
)

// FirstUserOID is the first OID of what somebody has made (FirstNormalObjectId in PostgreSQL's
// access/transam.h).
const FirstUserOID = 16384

// enumType is what all enums have in common: a value's forms are its label (enum_out, enum_send).
// Which labels there are is the catalog's to say. Samples are those of a type that tests make, in its order.
var enumType = Type{Kind: vector.Enum, Name: "anyenum", Category: 'E', Binary: BinaryText,
	Parse:   parseLabel,
	Receive: func(raw []byte) (vector.Datum, bool) { return parseLabel(string(raw)) },
	Samples: []string{"new", "paid", "on hold", "größer €", "Cancelled", "a", "New", "it's", `back\slash`, "123", " "},
}

func parseLabel(s string) (vector.Datum, bool) {
	return vector.Datum{Type: vector.TypeOf(vector.Enum), Str: s}, utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}
