package sqlfn

import (
	"strconv"
	"strings"
)

// Documents of json are the text that was written: with blanks, keys in any order, and some more than once.
// They are valid (json_in), but for what only those who read strings refuse.

// rawBlanks are the bytes between tokens.
const rawBlanks = " \t\n\r"

// rawSkip returns where the next token begins.
func rawSkip(s string, at int) int {
	for at < len(s) && strings.IndexByte(rawBlanks, s[at]) >= 0 {
		at++
	}
	return at
}

// rawEnd returns where the value ends that begins at i.
func rawEnd(s string, i int) int {
	if s[i] == '"' || s[i] == '{' || s[i] == '[' {
		return jsonEnd(s, i)
	}
	for i < len(s) && strings.IndexByte(rawBlanks+",}]", s[i]) < 0 {
		i++
	}
	return i
}

// rawItems are the members of an array or object, one after the other.
type rawItems struct {
	s  string
	at int // of the next one
}

// rawItemsOf returns those of a value that begins with its bracket.
func rawItemsOf(s string) rawItems { return rawItems{s, rawSkip(s, 1)} }

// more reports whether there is another member.
func (t *rawItems) more() bool { return t.at < len(t.s) && t.s[t.at] != ']' && t.s[t.at] != '}' }

// value returns the next value.
func (t *rawItems) value() string {
	end := rawEnd(t.s, t.at)
	v := t.s[t.at:end]
	if t.at = rawSkip(t.s, end); t.at < len(t.s) && t.s[t.at] == ',' {
		t.at = rawSkip(t.s, t.at+1)
	}
	return v
}

// pair returns the next key, as it is written, and its value.
func (t *rawItems) pair() (key jsonString, value string) {
	end, escaped := jsonStringEnd(t.s, t.at)
	key = jsonString{t.s[t.at+1 : end-1], escaped}
	t.at = rawSkip(t.s, rawSkip(t.s, end)+1) // behind the colon
	return key, t.value()
}

// rawField returns the last value that an object has of a key, and how many it has.
func rawField(s, key string) (v string, n int) {
	if s[0] != '{' {
		return "", 0
	}
	for t := rawItemsOf(s); t.more(); {
		if k, value := t.pair(); k.is(key) {
			v, n = value, n+1
		}
	}
	return v, n
}

// rawLength is the number of an array's elements.
func rawLength(s string) (n int64) {
	for t := rawItemsOf(s); t.more(); n++ {
		t.value()
	}
	return n
}

// rawElement returns element n of an array, from its end on where n is negative.
func rawElement(s string, n int64) (v string, ok bool) {
	if s[0] != '[' {
		return "", false
	}
	if n < 0 {
		n += rawLength(s)
	}
	if n < 0 {
		return "", false
	}
	for t := rawItemsOf(s); t.more(); n-- {
		if v = t.value(); n == 0 {
			return v, true
		}
	}
	return "", false
}

// rawStep returns what an element of a path finds (get_path_all in jsonfuncs.c), and how many values it finds: the
// element of an array is a number as strtoint reads it.
func rawStep(s, step string) (v string, n int) {
	if s[0] != '[' {
		return rawField(s, step)
	}
	text := strings.TrimLeft(step, " \t\n\v\f\r")
	i, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return "", 0
	}
	if v, ok := rawElement(s, i); ok {
		return v, 1
	}
	return "", 0
}

// rawReadable reports whether the server reads all strings of a document: an escape may be of no character, or of
// half of one. Those of surrogates are not looked at further.
func rawReadable(s string) bool {
	for {
		at := strings.Index(s, `\u`)
		if at < 0 {
			return true
		}
		// Of an even number of backslashes none escapes the u.
		from := at
		for from > 0 && s[from-1] == '\\' {
			from--
		}
		digits := s[at+2:]
		if (at-from)%2 == 0 && (len(digits) < 4 || digits[:4] == "0000" || (digits[0] == 'd' || digits[0] == 'D') && digits[1] >= '8') {
			return false
		}
		s = digits
	}
}
