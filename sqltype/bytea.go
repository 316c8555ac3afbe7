package sqltype

import (
	"bytes"
	"encoding/hex"
	"strings"

	"pgaccel/vector"
)

const oidBytea = 17

// byteaType is held as its bytes, by which it sorts (byteacmp in src/backend/utils/adt/varlena.c). AppendString
// writes it as under bytea_output hex. 18 has min and max of it, earlier servers have not.
var byteaType = Type{Kind: vector.Bytea, Name: "bytea", OID: oidBytea, Category: 'U', NoExtremes: true, Binary: BinaryBytes,
	AppendString: func(dst []byte, s string) []byte { return hex.AppendEncode(append(dst, `\x`...), []byte(s)) },
	Parse: func(s string) (vector.Datum, bool) {
		b, ok := parseBytea(s)
		return vector.Datum{Type: vector.TypeOf(vector.Bytea), Str: string(b)}, ok
	},
	Receive: func(raw []byte) (vector.Datum, bool) {
		return vector.Datum{Type: vector.TypeOf(vector.Bytea), Str: string(raw)}, true
	},
	Samples: []string{"", `\x`, "a", "ab", " a ", `\x00`, `\x0000`, `\x61`, `\xDEADbeef`, `\x7f`, `\x80`, `\xff00`, `a\\b`, `\000\177\377x`, "größe", "0x61"},
	Left:    []string{`\`, `\x1`, `\x1g`, `\x 61`, `\x61 62`, `\12`, `\400`, `\8`, `a\`},
}

// parseBytea reads what byteain does, but for blanks between digits: digits behind \x, or bytes of which
// a backslash stands twice and others may be three octal digits behind one.
func parseBytea(s string) (b []byte, ok bool) {
	if digits, is := strings.CutPrefix(s, `\x`); is {
		b, err := hex.DecodeString(digits)
		return b, err == nil
	}
	return ParseByteaEscape(s)
}

// ParseByteaEscape reads bytes of which a backslash stands twice and others may be three octal digits behind one.
func ParseByteaEscape(s string) (b []byte, ok bool) {
	for at := 0; at < len(s); at++ {
		c := s[at]
		switch rest := s[at+1:]; {
		case c != '\\':
		case strings.HasPrefix(rest, `\`):
			at++
		case len(rest) >= 3 && octal(rest[0], 3) && octal(rest[1], 7) && octal(rest[2], 7):
			c = (rest[0]-'0')<<6 | (rest[1]-'0')<<3 | (rest[2] - '0')
			at += 3
		default:
			return nil, false
		}
		b = append(b, c)
	}
	return b, true
}

// octal reports whether c is a digit up to the last one.
func octal(c, last byte) bool { return '0' <= c && c <= '0'+last }

// AppendByteaEscape writes bytes as under bytea_output escape: those that are not printed in ASCII as three
// octal digits (byteaout in varlena.c).
func AppendByteaEscape(dst []byte, s string) []byte {
	if !strings.Contains(s, `\`) && bytes.IndexFunc([]byte(s), func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
		return append(dst, s...)
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\':
			dst = append(dst, `\\`...)
		case c < 0x20 || c > 0x7e:
			dst = append(dst, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
