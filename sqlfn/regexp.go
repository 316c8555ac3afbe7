package sqlfn

import (
	"regexp"
	"strings"
	"sync/atomic"

	"pgaccel/vector"
)

// regexpReplace is regexp_replace of regular expressions that match the whole of a text in one way, whoever looks:
// PostgreSQL's advanced ones prefer the longest match (regexec.c), those of package regexp the first. See
// translate.
var regexpReplace = Function{
	Name: "regexp_replace", OID: 2284, Result: vector.Text, Partial: true,
	Args: []Param{{Kind: vector.Text}, {Kind: vector.Text}, {Kind: vector.Text}},
	Samples: [][]string{
		{"", "http://a.b/", "https://www.a.b/c/d", "http://www./", "ftp://a.b/c", "http://żółć.日本語/x\ny", "http://a.b/c\n", "www.www.a", "aab", "x"},
		{`^https?://(www[.])?([^/]+)/.*$`, `^https?://(?:www\.)?([^/]+)/.*$`, `^(a*)(.*)$`, `^.?(www[.])?([^/x]+)$`},
		{`\1`, `\2\1`, "", `<\1>`, "plain", `\1\1`},
	},
	TotalFor: func(c Call) bool {
		pattern, to := c.Args[1].Const, c.Args[2].Const
		if pattern == nil || to == nil {
			return false
		}
		if pattern.Null || to.Null {
			return true
		}
		p := compiled(pattern.Str)
		t, ok := template(to.Str, p.groups())
		return ok && len(t) <= 1
	},
	Eval: func(args []vector.Value) (vector.Value, error) {
		p := compiled(args[1].Str)
		t, ok := template(args[2].Str, p.groups())
		if !ok {
			return vector.NullValue, failed("regexp_replace() of this regular expression or replacement")
		}
		s := args[0].Str
		if len(s) >= maxText/4 { // the server makes four bytes of each character
			return vector.NullValue, failed("text of this length")
		}
		at := p.re.FindStringSubmatchIndex(s)
		if at == nil {
			return args[0], nil
		}
		var b strings.Builder
		for _, piece := range t {
			switch from := at[max(2*piece.group, 0)]; {
			case piece.group == 0:
				b.WriteString(piece.text)
			case from >= 0:
				b.WriteString(s[from:at[2*piece.group+1]])
			}
			if b.Len() > maxText {
				return vector.NullValue, failed("text of this length")
			}
		}
		return vector.Value{Str: b.String()}, nil
	},
}

// pattern is a regular expression; re is nil where it is not one of translate's.
type pattern struct {
	text string
	re   *regexp.Regexp
}

// groups is the number of parentheses that capture, -1 where it is none of translate's.
func (p *pattern) groups() int {
	if p.re == nil {
		return -1
	}
	return p.re.NumSubexp()
}

// last is the pattern that was used last: mostly all rows have one.
var last atomic.Pointer[pattern]

func compiled(text string) *pattern {
	p := last.Load()
	if p == nil || p.text != text {
		p = &pattern{text: strings.Clone(text)} // a row's text may be gone with the next one
		if translated, ok := translate(p.text); ok {
			p.re = regexp.MustCompile(translated)
		}
		last.Store(p)
	}
	return p
}

// piece is a part of a replacement: what a group matched, or a text where group is 0.
type piece struct {
	group int
	text  string
}

// template reads a replacement with \1 to \9; others with backslashes are the server's.
func template(to string, groups int) (t []piece, ok bool) {
	for len(to) > 0 {
		at := strings.IndexByte(to, '\\')
		if at != 0 {
			if at < 0 {
				at = len(to)
			}
			t, to = append(t, piece{text: to[:at]}), to[at:]
			continue
		}
		if len(to) < 2 || to[1] < '1' || int(to[1]-'0') > groups {
			return nil, false
		}
		t, to = append(t, piece{group: int(to[1] - '0')}), to[2:]
	}
	return t, groups >= 0
}

// translate returns a regular expression of package regexp that matches what PostgreSQL's does and captures the same. It
// takes those from ^ to $ that are a sequence of characters, sets [...] and [^...] of characters, and dots, each with ?, *
// or + or without, and of groups of these: (...) and (?:...) with nothing behind, or of characters and sets alone with ?. All
// are greedy, and the whole is matched to its end, so that both leave to each the most that the ones before it leave
// and that the rest can do without.
func translate(text string) (re string, ok bool) {
	rest, anchored := strings.CutPrefix(text, "^")
	rest, ended := strings.CutSuffix(rest, "$")
	if !anchored || !ended || strings.HasSuffix(rest, `\`) {
		return "", false
	}
	var b strings.Builder
	b.WriteString(`\A`)
	grouped, repeats, empty := false, false, false // within a group; it has ?, * or +; it has nothing
	for len(rest) > 0 {
		atom := ""
		switch c := rest[0]; {
		case c == '(':
			if grouped {
				return "", false
			}
			open := "("
			if strings.HasPrefix(rest, "(?:") {
				open = "(?:"
			} else if strings.HasPrefix(rest, "(?") || strings.HasPrefix(rest, "(*") {
				return "", false
			}
			b.WriteString(open)
			rest, grouped, repeats, empty = rest[len(open):], true, false, true
			continue
		case c == ')':
			if !grouped || empty {
				return "", false
			}
			b.WriteByte(')')
			rest, grouped = rest[1:], false
			if strings.HasPrefix(rest, "?") {
				if repeats {
					return "", false
				}
				b.WriteByte('?')
				rest = rest[1:]
			}
			if rest != "" && strings.IndexByte("?*+{", rest[0]) >= 0 {
				return "", false
			}
			continue
		case c == '.':
			atom, rest = `(?s:.)`, rest[1:]
		case c == '[':
			if atom, rest, ok = bracket(rest); !ok {
				return "", false
			}
		case c == '\\':
			if len(rest) < 2 || !punctuation(rest[1]) {
				return "", false // a class, a constraint, a reference
			}
			atom, rest = regexp.QuoteMeta(rest[1:2]), rest[2:]
		case c >= 0x80 || strings.IndexByte(`^$*+?{}|]`, c) >= 0 || c < ' ':
			return "", false
		default:
			atom, rest = regexp.QuoteMeta(rest[:1]), rest[1:]
		}
		b.WriteString(atom)
		empty = false
		if rest != "" && strings.IndexByte("?*+", rest[0]) >= 0 {
			b.WriteByte(rest[0])
			rest, repeats = rest[1:], true
		}
		if rest != "" && strings.IndexByte("?*+{", rest[0]) >= 0 {
			return "", false
		}
	}
	b.WriteString(`\z`)
	return b.String(), !grouped
}

// bracket reads a set of characters of ASCII without ranges, classes and escapes.
func bracket(text string) (set, rest string, ok bool) {
	end := strings.IndexByte(text, ']')
	if end < 0 {
		return "", "", false
	}
	members, negated := strings.CutPrefix(text[1:end], "^")
	if members == "" {
		return "", "", false // ] is a member
	}
	set = "["
	if negated {
		set = "[^"
	}
	for i := range len(members) {
		c := members[i]
		if c >= 0x80 || c < ' ' || strings.IndexByte(`[\-^`, c) >= 0 {
			return "", "", false
		}
		set += regexp.QuoteMeta(string(rune(c)))
	}
	return set + "]", text[end+1:], true
}

// punctuation reports whether a character behind a backslash means itself.
func punctuation(c byte) bool {
	return c > ' ' && c < 0x7f && (c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' || c > 'z')
}
