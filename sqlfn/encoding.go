package sqlfn

import (
	"encoding/base64"
	"encoding/hex"
	"strings"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// encodings are encode() and decode() (PostgreSQL's encode.c).
var encodings = []Function{
	{
		Name: "encode", OID: 1946, Result: vector.Text, Args: []Param{{Kind: vector.Bytea}, encodingParam}, Total: true,
		Samples: [][]string{append([]string{strings.Repeat("a", 56), strings.Repeat("b", 57), strings.Repeat("ç", 57), strings.Repeat("d", 115)}, byteaSamples...), nil},
		Eval: func(args []vector.Value) (vector.Value, error) {
			if len(args[0].Str) > maxText/4 { // of which each byte may be four characters
				return vector.NullValue, failed("text of this length")
			}
			return vector.Value{Str: encoded(args[0].Str, strings.ToLower(args[1].Str))}, nil
		},
	},
	{
		Name: "decode", OID: 1947, Result: vector.Bytea, Args: []Param{{Kind: vector.Text, Usual: decodeSamples[:6]}, encodingParam}, Partial: true,
		Samples: [][]string{append(append([]string(nil), decodeSamples...), textSamples...), nil},
		Eval: func(args []vector.Value) (vector.Value, error) {
			b, ok := decoded(args[0].Str, strings.ToLower(args[1].Str))
			if !ok {
				return vector.NullValue, failed("text that is not of this encoding")
			}
			return vector.Value{Str: string(b)}, nil
		},
	},
}

var (
	encodingParam = Param{Kind: vector.Text, Constants: []string{"hex", "base64", "escape"}, AnyCase: true}
	decodeSamples = []string{"abcd", "AB12", "", "6162", "DEADbeef", "a b c d", "ab cd", " 61\n62\t", "a b", "abc", "0x61", `\x61`, "YQ==", "YQ=", "YWI=", "YWJj", "Y Q\n=\t=", "YQ==YQ==", "YQ=a", "Y===", "=", "a===",
		"YWJjYWJj", "YR==", "YWK=", "____", "+/+/", `a\\b`, `\000\377`, `\400`, `\08`, `\`, `a\12`, "é"}
)

// base64Line is how many characters lines of base64 have.
const base64Line = 76

func encoded(s, format string) string {
	switch format {
	case "hex":
		return hex.EncodeToString([]byte(s))
	case "base64":
		all := base64.StdEncoding.EncodeToString([]byte(s))
		var b strings.Builder
		b.Grow(len(all) + len(all)/base64Line)
		for len(all) >= base64Line && (len(all) > base64Line || !strings.HasSuffix(all, "=")) { // the server breaks a line behind whole groups of bytes
			b.WriteString(all[:base64Line])
			b.WriteByte('\n')
			all = all[base64Line:]
		}
		return b.String() + all
	}
	var b []byte
	for i := range len(s) { // unlike bytea_output escape, that has what ASCII does not print
		switch c := s[i]; {
		case c == '\\':
			b = append(b, `\\`...)
		case c == 0 || c > 0x7f:
			b = append(b, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

// encodingBlanks may stand between the characters of base64, and between the bytes of hex.
const encodingBlanks = " \n\t\r"

func decoded(s, format string) (b []byte, ok bool) {
	var err error
	switch format {
	case "hex":
		for {
			s = strings.TrimLeft(s, encodingBlanks)
			if s == "" {
				return b, true
			}
			if len(s) < 2 {
				return nil, false
			}
			if b, err = hex.AppendDecode(b, []byte(s[:2])); err != nil {
				return nil, false
			}
			s = s[2:]
		}
	case "base64":
		s = strings.Map(func(r rune) rune {
			if strings.ContainsRune(encodingBlanks, r) {
				return -1
			}
			return r
		}, s)
		b, err = base64.StdEncoding.DecodeString(s)
		return b, err == nil
	}
	return sqltype.ParseByteaEscape(s)
}
