package sqltype

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"pgaccel/vector"
)

const oidJSONB = 3802

// jsonbVersion is the first byte of the binary form; the text follows (jsonb_send in
// src/backend/utils/adt/jsonb.c).
const jsonbVersion = 1

// jsonbType is held as the text that jsonb_out writes: of equal documents it differs only in the decimals
// of numbers.
var jsonbType = Type{Kind: vector.JSONB, Name: "jsonb", OID: oidJSONB, Category: 'U', NoExtremes: true, Binary: BinaryJSONB,
	AppendString: func(dst []byte, s string) []byte { return append(dst, s...) },
	Parse:        parseJSONB, Receive: receiveJSONB,
	Samples: []string{"null", "true", " false ", "0", "-0", "-0.00", "1.50", "-12", `""`, `"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u001f"`, "[]", "{}", "[ 1,[2 , {}],null ]", "\"\x7fäß\"",
		`{"b":1,"a":2,"aa":[true],"a":3,"":{"x" : "y"}}`, `[[[]]]`, "\t{\"a\"\n:\r1}", `{"é":1,"zz":2,"z":3}`, "123456789012345678901234567890.10"},
	Left: []string{"", " ", "nul", "True", "01", "1.", ".5", "+1", "-", "1e2", "[1,]", "[1 2]", "{1:2}", `{"a"}`, `{"a":}`, `{"a":1,}`, `"`, `"\x"`, `"\u00"`, `"\u0000"`, `"\ud83d"`, `"\ude00"`, `"\ud83d\u0041"`, "\"\n\"",
		"{", "]", "1 2", "'a'", "NaN", "\v1"},
}

// maxJSONB bounds the text of a document that is read here, maxJSONBDepth how deep it is: what the server
// refuses as too large is larger.
const (
	maxJSONB      = 1 << 20
	maxJSONBDepth = 256
	maxDigits     = 1000
)

// parseJSONB reads what jsonb_in does, and writes it as jsonb_out. Numbers with exponents are left.
func parseJSONB(s string) (vector.Datum, bool) {
	d := vector.Datum{Type: vector.TypeOf(vector.JSONB)}
	if len(s) > maxJSONB || !utf8.ValidString(s) {
		return d, false
	}
	p := jsonbParser{rest: s}
	if !p.value(0) || p.token() != 0 {
		return d, false
	}
	d.Str = string(p.out)
	return d, true
}

func receiveJSONB(raw []byte) (vector.Datum, bool) {
	if len(raw) == 0 || raw[0] != jsonbVersion {
		return vector.Datum{Type: vector.TypeOf(vector.JSONB)}, false
	}
	return parseJSONB(string(raw[1:]))
}

// JSONBFromBinary returns the text within the binary form.
func JSONBFromBinary(raw []byte) (text []byte, ok bool) {
	if len(raw) == 0 || raw[0] != jsonbVersion {
		return nil, false
	}
	return raw[1:], true
}

// AppendJSONBBinary appends the binary form of a document's text.
func AppendJSONBBinary(dst []byte, text string) []byte {
	return append(append(dst, jsonbVersion), text...)
}

type jsonbParser struct {
	rest string
	out  []byte
}

// token skips blanks and returns the next byte, 0 at the end.
func (p *jsonbParser) token() byte {
	p.rest = strings.TrimLeft(p.rest, " \t\n\r")
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

// take skips blanks and a byte, if that is next.
func (p *jsonbParser) take(c byte) bool {
	if p.token() != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *jsonbParser) value(depth int) bool {
	if depth > maxJSONBDepth {
		return false
	}
	switch c := p.token(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		s, ok := p.text()
		p.out = AppendJSONString(p.out, s)
		return ok
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	for _, word := range []string{"null", "true", "false"} {
		if rest, ok := strings.CutPrefix(p.rest, word); ok {
			p.rest, p.out = rest, append(p.out, word...)
			return true
		}
	}
	return false
}

func (p *jsonbParser) array(depth int) bool {
	p.take('[')
	p.out = append(p.out, '[')
	for first := true; !first || p.token() != ']'; first = false {
		if !first {
			if p.token() == ']' {
				break
			}
			if !p.take(',') {
				return false
			}
			p.out = append(p.out, ", "...)
		}
		if !p.value(depth + 1) {
			return false
		}
	}
	p.out = append(p.out, ']')
	return p.take(']')
}

// object reads an object. Of equal keys the last one counts; short ones come first (uniqueifyJsonbObject
// in jsonb_util.c).
func (p *jsonbParser) object(depth int) bool {
	type pair struct {
		key   string
		value []byte
	}
	p.take('{')
	var pairs []pair
	for first := true; !first || p.token() != '}'; first = false {
		if !first {
			if p.token() == '}' {
				break
			}
			if !p.take(',') {
				return false
			}
		}
		if p.token() != '"' {
			return false
		}
		key, ok := p.text()
		if !ok || !p.take(':') {
			return false
		}
		at := len(p.out)
		if !p.value(depth + 1) {
			return false
		}
		pairs = append(pairs, pair{key, bytes.Clone(p.out[at:])})
		p.out = p.out[:at]
	}
	slices.Reverse(pairs)
	slices.SortStableFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(len(a.key), len(b.key)), strings.Compare(a.key, b.key))
	})
	pairs = slices.CompactFunc(pairs, func(a, b pair) bool { return a.key == b.key })
	p.out = append(p.out, '{')
	for i, kv := range pairs {
		if i > 0 {
			p.out = append(p.out, ", "...)
		}
		p.out = append(append(AppendJSONString(p.out, kv.key), ": "...), kv.value...)
	}
	p.out = append(p.out, '}')
	return p.take('}')
}

// number reads one without an exponent, which numeric_out writes as it stands, but for the sign of zero.
func (p *jsonbParser) number() bool {
	digits := func(at int) int {
		for at < len(p.rest) && '0' <= p.rest[at] && p.rest[at] <= '9' {
			at++
		}
		return at
	}
	at := 0
	if p.rest[0] == '-' {
		at = 1
	}
	end := digits(at)
	if end == at || p.rest[at] == '0' && end > at+1 {
		return false
	}
	if strings.HasPrefix(p.rest[end:], ".") {
		point := end
		if end = digits(point + 1); end == point+1 {
			return false
		}
	}
	text := p.rest[:end]
	if p.rest = p.rest[end:]; end > maxDigits || p.rest != "" && strings.IndexByte(" \t\n\r,]}", p.rest[0]) < 0 {
		return false
	}
	if strings.Trim(text, "-0.") == "" {
		text = strings.TrimPrefix(text, "-")
	}
	p.out = append(p.out, text...)
	return true
}

// text reads a string.
func (p *jsonbParser) text() (s string, ok bool) {
	rest := p.rest[1:]
	var b []byte
	for rest != "" {
		c := rest[0]
		switch {
		case c == '"':
			p.rest = rest[1:]
			return string(b), true
		case c < ' ':
			return "", false
		case c != '\\':
			b, rest = append(b, c), rest[1:]
		case strings.HasPrefix(rest, `\u`):
			var r rune
			if r, rest, ok = jsonRune(rest); !ok {
				return "", false
			}
			b = utf8.AppendRune(b, r)
		default:
			if len(rest) < 2 {
				return "", false
			}
			at := strings.IndexByte(`"\/bfnrt`, rest[1])
			if at < 0 {
				return "", false
			}
			b, rest = append(b, "\"\\/\b\f\n\r\t"[at]), rest[2:]
		}
	}
	return "", false
}

// jsonRune reads \uXXXX, or two of them that are a surrogate pair. The server has no character 0.
func jsonRune(s string) (r rune, rest string, ok bool) {
	unit := func() (u rune) {
		if len(s) < 6 || s[:2] != `\u` {
			return -1
		}
		n, err := strconv.ParseUint(s[2:6], 16, 16)
		if err != nil || strings.Contains(s[2:6], "_") {
			return -1
		}
		s = s[6:]
		return rune(n)
	}
	if r = unit(); utf16.IsSurrogate(r) {
		r = utf16.DecodeRune(r, unit())
		if r == utf8.RuneError {
			return 0, "", false
		}
	}
	return r, s, r > 0
}

// AppendJSONString appends a string as escape_json (src/backend/utils/adt/json.c) writes it.
func AppendJSONString(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		c := s[i]
		if at := strings.IndexByte("\"\\\b\f\n\r\t", c); at >= 0 {
			dst = append(dst, '\\', `"\bfnrt`[at])
		} else if c < ' ' {
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
