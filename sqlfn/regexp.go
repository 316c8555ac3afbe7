package sqlfn

import (
	"regexp"
	"strings"
	"unicode/utf8"

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
		r, ok := replacementOf(pattern.Str, to.Str)
		return ok && len(r.pieces) <= 1
	},
	Eval: func(args []vector.Value) (vector.Value, error) {
		r, _, err := replaceMatch(args)
		return r, err
	},
	EvalPrefix: replaceMatch,
}

// replaceMatch is regexp_replace, and says how much of the text decides the result.
func replaceMatch(args []vector.Value) (v vector.Value, bytes int, err error) {
	r, ok := replacementOf(args[1].Str, args[2].Str)
	s := args[0].Str
	switch {
	case !ok:
		return vector.NullValue, -1, failed("regexp_replace() of this regular expression or replacement")
	case len(s) >= maxReplaced:
		return vector.NullValue, -1, failed("text of this length")
	}
	var room backtracker
	at, seen, matched := r.find(&room, s)
	if !matched {
		return args[0], -1, nil
	}
	if len(r.pieces) == 1 && r.pieces[0].group > 0 { // a part of s
		g := r.pieces[0].group
		return vector.Value{Str: s[max(at[2*g], 0):max(at[2*g+1], 0)]}, seen, nil
	}
	var b strings.Builder
	for _, piece := range r.pieces {
		switch from := at[max(2*piece.group, 0)]; {
		case piece.group == 0:
			b.WriteString(piece.text)
		case from >= 0:
			b.WriteString(s[from:at[2*piece.group+1]])
		}
		if b.Len() > maxText {
			return vector.NullValue, -1, failed("text of this length")
		}
	}
	return vector.Value{Str: b.String()}, seen, nil
}

// maxReplaced bounds the bytes of a text: the server makes four of each character.
const maxReplaced = maxText / 4

// expression is a regular expression of translate's.
type expression struct {
	re       *regexp.Regexp
	sequence *sequence // nil where re has more groups
}

// replacement is what regexp_replace does to texts.
type replacement struct {
	expression
	pieces []piece
}

var (
	expressions = memo[expression]{make: func(text string) (e expression, ok bool) {
		translated, q, ok := translate(text)
		if !ok {
			return e, false
		}
		return expression{regexp.MustCompile(translated), q}, true
	}}
	templates = memo[[]piece]{make: func(to string) ([]piece, bool) { return template(to, sequenceGroups) }}
)

// replacementOf reads the arguments; ok is false where the server has to.
func replacementOf(text, to string) (r replacement, ok bool) {
	if r.expression, ok = expressions.of(text); !ok {
		return r, false
	}
	r.pieces, ok = templates.of(to)
	for _, p := range r.pieces {
		ok = ok && p.group <= r.re.NumSubexp()
	}
	return r, ok
}

// find returns where the groups of a match are, as FindStringSubmatchIndex does; room has them. seen is how many bytes of s decide
// that, with anything behind them: -1 where all of s does.
func (e *expression) find(room *backtracker, s string) (at []int, seen int, matched bool) {
	if e.sequence != nil && utf8.ValidString(s) {
		if matched, ok := room.match(e.sequence, s); ok {
			if seen = room.seen; seen > len(s) {
				seen = -1
			}
			return room.at[:], seen, matched
		}
	}
	at = e.re.FindStringSubmatchIndex(s)
	return at, -1, at != nil
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
	return t, true
}

// translate returns a regular expression of package regexp that matches what PostgreSQL's does and captures the same, and
// the
// same as a sequence, which is nil where too many groups capture. It takes those from ^ to $ that are a sequence of
// characters, sets [...] and [^...] of characters, and dots, each with ?, * or + or without, and of groups of these: (...) and (?:...) with nothing behind, or of characters and sets alone with ?. All
// are greedy, and the whole is matched to its end, so that both leave to each the most that the ones before it leave
// and that the rest can do without.
func translate(text string) (re string, q *sequence, ok bool) {
	rest, anchored := strings.CutPrefix(text, "^")
	rest, ended := strings.CutSuffix(rest, "$")
	if !anchored || !ended || strings.HasSuffix(rest, `\`) {
		return "", nil, false
	}
	var b strings.Builder
	b.WriteString(`\A`)
	grouped, repeats, empty := false, false, false // within a group; it has ?, * or +; it has nothing
	q = &sequence{}
	groups, group := 0, step{} // that capture; the one that is open
	begin := 0                 // of it
	for len(rest) > 0 {
		atom := ""
		var s step
		switch c := rest[0]; {
		case c == '(':
			if grouped {
				return "", nil, false
			}
			open := "("
			if strings.HasPrefix(rest, "(?:") {
				open = "(?:"
			} else if strings.HasPrefix(rest, "(?") || strings.HasPrefix(rest, "(*") {
				return "", nil, false
			}
			b.WriteString(open)
			group = step{kind: stepClose}
			if open == "(" {
				groups++
				group.group = 2*groups + 1
			}
			begin = len(q.steps)
			q.steps = append(q.steps, step{kind: stepOpen}, step{kind: stepOpen, group: group.group &^ 1})
			rest, grouped, repeats, empty = rest[len(open):], true, false, true
			continue
		case c == ')':
			if !grouped || empty {
				return "", nil, false
			}
			b.WriteByte(')')
			q.steps = append(q.steps, group)
			rest, grouped = rest[1:], false
			if strings.HasPrefix(rest, "?") {
				if repeats {
					return "", nil, false
				}
				b.WriteByte('?')
				rest = rest[1:]
				q.steps[begin].kind, q.steps[begin].skip = stepOptionalGroup, len(q.steps)
			}
			if rest != "" && strings.IndexByte("?*+{", rest[0]) >= 0 {
				return "", nil, false
			}
			continue
		case c == '.':
			atom, rest = `(?s:.)`, rest[1:]
			s.complement()
		case c == '[':
			if atom, rest, ok = bracket(rest, &s); !ok {
				return "", nil, false
			}
		case c == '\\':
			if len(rest) < 2 || !punctuation(rest[1]) {
				return "", nil, false // a class, a constraint, a reference
			}
			s.add(rest[1])
			atom, rest = regexp.QuoteMeta(rest[1:2]), rest[2:]
		case c >= 0x80 || strings.IndexByte(`^$*+?{}|]`, c) >= 0 || c < ' ':
			return "", nil, false
		default:
			s.add(c)
			atom, rest = regexp.QuoteMeta(rest[:1]), rest[1:]
		}
		b.WriteString(atom)
		empty = false
		if rest != "" && strings.IndexByte("?*+", rest[0]) >= 0 {
			s.optional, s.repeated = rest[0] != '+', rest[0] != '?'
			b.WriteByte(rest[0])
			rest, repeats = rest[1:], true
		}
		if rest != "" && strings.IndexByte("?*+{", rest[0]) >= 0 {
			return "", nil, false
		}
		q.steps = append(q.steps, s)
	}
	b.WriteString(`\z`)
	if groups > sequenceGroups {
		return b.String(), nil, !grouped
	}
	q.markPossessive()
	return b.String(), q, !grouped
}

// bracket reads a set of characters of ASCII without ranges, classes and escapes, whose members are those of s then.
func bracket(text string, s *step) (set, rest string, ok bool) {
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
		s.add(c)
	}
	if negated {
		s.complement()
	}
	return set + "]", text[end+1:], true
}

// punctuation reports whether a character behind a backslash means itself.
func punctuation(c byte) bool {
	return c > ' ' && c < 0x7f && (c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' || c > 'z')
}
