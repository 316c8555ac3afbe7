package sqlfn

import (
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Documents of jsonb are the text that jsonb_out writes: keys in order and once, ", " and ": " between, no
// other blanks. What is within one is a part of its text.

// jsonEnd returns where the value ends that begins at i.
func jsonEnd(s string, i int) int {
	switch s[i] {
	case '"':
		end, _ := jsonStringEnd(s, i)
		return end
	case '{', '[':
		return jsonNestEnd(s, i)
	}
	for i < len(s) && s[i] != ',' && s[i] != '}' && s[i] != ']' {
		i++
	}
	return i
}

// jsonNestEnd returns where the array or object ends that begins at i.
func jsonNestEnd(s string, i int) int {
	for depth := 0; i < len(s); i++ {
		if !jsonMark[s[i]] {
			continue
		}
		switch s[i] {
		case '"':
			i, _ = jsonStringEnd(s, i)
			i--
		case '{', '[':
			depth++
		default:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// jsonMark are the bytes that jsonNestEnd stops at.
var jsonMark = [256]bool{'"': true, '{': true, '[': true, '}': true, ']': true}

// jsonStringEnd returns what is behind the string that begins at i, and whether it has escapes.
func jsonStringEnd(s string, i int) (end int, escaped bool) {
	i++
	for i+8 <= len(s) {
		w := eightBytes(s[i:])
		found := bytesOf(w, '"') | bytesOf(w, '\\')
		if found == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(found) >> 3
		if s[i] == '"' {
			return i + 1, escaped
		}
		i, escaped = i+2, true
	}
	for ; i < len(s); i++ {
		switch s[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			i, escaped = i+1, true
		}
	}
	return len(s), escaped
}

// eightBytes returns the first bytes of s as a word, the first one lowest.
func eightBytes(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// bytesOf returns a word whose lowest bit marks the lowest byte of w that is c; 0 where none is. Higher bits may
// mark others.
func bytesOf(w uint64, c byte) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	x := w ^ ones*uint64(c)
	return (x - ones) &^ x & tops
}

// jsonItems are the members of an array or object, one after the other.
type jsonItems struct {
	s  string
	at int // of the next one
}

func itemsOf(s string) jsonItems { return jsonItems{s, 1} }

// more reports whether there is another member.
func (t *jsonItems) more() bool { return t.at < len(t.s)-1 }

// value returns the next value.
func (t *jsonItems) value() string {
	end := jsonEnd(t.s, t.at)
	v := t.s[t.at:end]
	t.at = end + len(", ")
	return v
}

// pair returns the next key, as it is written, and its value.
func (t *jsonItems) pair() (key jsonString, value string) {
	end, escaped := jsonStringEnd(t.s, t.at)
	key = jsonString{t.s[t.at+1 : end-1], escaped}
	t.at = end + len(": ")
	return key, t.value()
}

// jsonString is a string between its quotes.
type jsonString struct {
	raw     string
	escaped bool
}

// stringOf returns the string that v is.
func stringOf(v string) (s jsonString, ok bool) {
	if v == "" || v[0] != '"' {
		return jsonString{}, false
	}
	raw := v[1 : len(v)-1]
	return jsonString{raw, strings.IndexByte(raw, '\\') >= 0}, true
}

// is reports whether it means text.
func (s jsonString) is(text string) bool {
	if !s.escaped {
		return s.raw == text
	}
	return len(s.raw) > len(text) && s.text() == text
}

// text returns what it means.
func (s jsonString) text() string {
	if !s.escaped {
		return s.raw
	}
	b := make([]byte, 0, len(s.raw))
	for rest := s.raw; rest != ""; {
		at := strings.IndexByte(rest, '\\')
		if at < 0 {
			b = append(b, rest...)
			break
		}
		b = append(b, rest[:at]...)
		var r rune
		r, rest = jsonEscape(rest[at+1:])
		b = utf8.AppendRune(b, r)
	}
	return string(b)
}

// jsonEscape reads what is behind a backslash.
func jsonEscape(s string) (r rune, rest string) {
	if at := strings.IndexByte("bfnrt", s[0]); at >= 0 {
		return rune("\b\f\n\r\t"[at]), s[1:]
	}
	if s[0] != 'u' {
		return rune(s[0]), s[1:] // a quote, a backslash
	}
	r, s = hexRune(s[1:5]), s[5:]
	if utf16.IsSurrogate(r) && len(s) >= 6 && s[:2] == `\u` {
		return utf16.DecodeRune(r, hexRune(s[2:6])), s[6:]
	}
	return r, s
}

func hexRune(digits string) rune {
	n, _ := strconv.ParseUint(digits, 16, 32)
	return rune(n)
}

// jsonField returns the value of an object's key.
func jsonField(s, key string) (v string, ok bool) {
	if s[0] != '{' {
		return "", false
	}
	v, _, ok = fieldFrom(s, 1, key)
	return v, ok
}

// fieldFrom looks for a key of an object from the one on that begins at at; behind is where the next begins. Keys
// are in order, short ones first (lengthCompareJsonbStringValue in jsonb_util.c): what is not found where it would
// be is not there.
func fieldFrom(s string, at int, key string) (v string, behind int, ok bool) {
	for at < len(s)-1 {
		end, escaped := jsonStringEnd(s, at)
		k := s[at+1 : end-1]
		value := end + len(": ")
		if escaped && len(k) > len(key) {
			k = jsonString{k, true}.text()
			escaped = false
		}
		if !escaped { // else it means less than key
			if k == key {
				end = jsonEnd(s, value)
				return s[value:end], end + len(", "), true
			}
			if len(k) > len(key) || len(k) == len(key) && k > key {
				break
			}
		}
		at = jsonEnd(s, value) + len(", ")
	}
	return "", at, false
}

// jsonLength is the number of an array's elements.
func jsonLength(s string) (n int64) {
	for t := itemsOf(s); t.more(); n++ {
		t.value()
	}
	return n
}

// jsonElement returns element n of an array, from its end on where n is negative.
func jsonElement(s string, n int64) (v string, ok bool) {
	if s[0] != '[' {
		return "", false
	}
	if n < 0 {
		n += jsonLength(s)
	}
	if n < 0 {
		return "", false
	}
	for t := itemsOf(s); t.more(); n-- {
		if v = t.value(); n == 0 {
			return v, true
		}
	}
	return "", false
}

// jsonStep returns what an element of a path finds (get_jsonb_path_all in jsonfuncs.c): the element of an array
// is a number as strtoint reads it.
func jsonStep(s, step string) (v string, ok bool) {
	if s[0] != '[' {
		return jsonField(s, step)
	}
	text := strings.TrimLeft(step, " \t\n\v\f\r")
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return "", false
	}
	return jsonElement(s, n)
}

// jsonScalar reports whether s is neither an array nor an object.
func jsonScalar(s string) bool { return s[0] != '[' && s[0] != '{' }

// jsonKind returns the first byte of a value, one for all numbers and one for both booleans.
func jsonKind(s string) byte {
	switch c := s[0]; {
	case c == '-' || '0' <= c && c <= '9':
		return '0'
	case c == 'f':
		return 't'
	default:
		return c
	}
}

// equalJSON reports whether two values are equal: that is, but for the decimals of numbers, the same text.
func equalJSON(a, b string) bool {
	if a == b {
		return true
	}
	if jsonKind(a) != jsonKind(b) {
		return false
	}
	switch a[0] {
	case '{':
		x, y := itemsOf(a), itemsOf(b)
		for x.more() && y.more() {
			k, v := x.pair()
			l, w := y.pair()
			if k.raw != l.raw || !equalJSON(v, w) {
				return false
			}
		}
		return !x.more() && !y.more()
	case '[':
		x, y := itemsOf(a), itemsOf(b)
		for x.more() && y.more() {
			if !equalJSON(x.value(), y.value()) {
				return false
			}
		}
		return !x.more() && !y.more()
	}
	return jsonKind(a) == '0' && trimDecimals(a) == trimDecimals(b)
}

// trimDecimals drops zeros at the end of a number's decimals, and the point.
func trimDecimals(s string) string {
	if strings.IndexByte(s, '.') < 0 {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// jsonContains reports whether a whole document contains another: an array also a single value that it has.
func jsonContains(s, part string) bool {
	if (s[0] == '{') != (part[0] == '{') {
		return false
	}
	switch {
	case s[0] == '{' || s[0] == '[' && part[0] == '[':
		return deepContains(s, part)
	case s[0] == '[':
		return hasElement(s, part)
	}
	return part[0] != '[' && equalJSON(s, part)
}

// deepContains is JsonbDeepContains (jsonb_util.c) of two arrays or two objects.
func deepContains(s, part string) bool {
	if s[0] != part[0] {
		return false
	}
	at := 1 // of an object's next key: those of both are in order
	for t := itemsOf(part); t.more(); {
		if s[0] == '{' {
			key, want := t.pair()
			var v string
			var ok bool
			if v, at, ok = fieldFrom(s, at, key.text()); !ok || jsonKind(v) != jsonKind(want) {
				return false
			}
			if jsonScalar(want) && !equalJSON(v, want) || !jsonScalar(want) && !deepContains(v, want) {
				return false
			}
			continue
		}
		if !hasElement(s, t.value()) {
			return false
		}
	}
	return true
}

// hasElement reports whether an array has a value, or one that contains it.
func hasElement(s, want string) bool {
	for t := itemsOf(s); t.more(); {
		v := t.value()
		if jsonScalar(want) {
			if jsonScalar(v) && equalJSON(v, want) {
				return true
			}
		} else if !jsonScalar(v) && deepContains(v, want) {
			return true
		}
	}
	return false
}

// jsonExists reports whether text is a key, an element, or the document itself.
func jsonExists(s, text string) bool {
	switch s[0] {
	case '{':
		_, ok := jsonField(s, text)
		return ok
	case '[':
		for t := itemsOf(s); t.more(); {
			if v, ok := stringOf(t.value()); ok && v.is(text) {
				return true
			}
		}
		return false
	}
	v, ok := stringOf(s)
	return ok && v.is(text)
}
