package sqltype

import (
	"strings"

	"pgaccel/vector"
)

// OIDBool is boolean's OID in pg_type.dat, as such constants of the other types are theirs.
const OIDBool = 16

var boolType = word(Type{Kind: vector.Bool, Name: "bool", OID: OIDBool, Category: 'B', Preferred: true, NoExtremes: true, Binary: BinaryBool,
	AppendText: AppendBool, Least: 0, Greatest: 1, Samples: []string{"t", "f"}}, parseBool)

// parseBool reads a boolean: 0 or 1. (boolin takes unique prefixes of the words, too.)
func parseBool(s string) (v int64, ok bool) {
	switch strings.ToLower(s) {
	case "t", "true", "y", "yes", "on", "1":
		return 1, true
	case "f", "false", "n", "no", "off", "0":
		return 0, true
	}
	return 0, false
}

// AppendBool appends the text form.
func AppendBool(dst []byte, v int64) []byte {
	if v != 0 {
		return append(dst, 't')
	}
	return append(dst, 'f')
}

// BoolFromBinary reads the binary form: any byte but 0 is true.
func BoolFromBinary(raw []byte) int64 {
	if raw[0] != 0 {
		return 1
	}
	return 0
}

// AppendBoolBinary appends the binary form.
func AppendBoolBinary(dst []byte, v int64) []byte { return append(dst, byte(v)) }
