package sqltype

import "pgaccel/vector"

const oidName = 19

// nameSize is the size of a name with the byte of 0 behind it (NAMEDATALEN in src/include/pg_config_manual.h).
const nameSize = 64

// nameType is held as its characters, which sort by their bytes: its collation is C where nothing else is declared, and columns of
// others are not copied.
var nameType = func() Type {
	of := vector.TypeOf(vector.Name)
	t := Type{Kind: of.Kind, Name: "name", OID: oidName, Category: 'S', Implicit: []vector.Kind{vector.Text}, NoExtremes: true, Binary: BinaryText,
		AppendString: func(dst []byte, s string) []byte { return append(dst, s...) },
		Samples:      []string{"", " ", "a", "a ", "A", "a b", "größe", "pg_class", "123456789012345678901234567890123456789012345678901234567890123"},
		Left:         []string{"1234567890123456789012345678901234567890123456789012345678901234", "ééééééééééééééééééééééééééééééé\u00e9"},
	}
	// A longer one is cut by the server, between characters of the database's encoding.
	t.Parse = func(s string) (vector.Datum, bool) {
		return vector.Datum{Type: of, Str: s}, len(s) < nameSize && ValidText([]byte(s))
	}
	t.Receive = func(raw []byte) (vector.Datum, bool) { return t.Parse(string(raw)) }
	return t
}()
