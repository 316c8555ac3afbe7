package sqlfn

import (
	"fmt"
	"hash/maphash"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"pgaccel/vector"
)

// OIDs of the functions of the operators ~, !~, ~* and !~*.
const (
	OIDRegexpEq       = 1254
	OIDRegexpNe       = 1256
	OIDRegexpInCaseEq = 1238
	OIDRegexpInCaseNe = 1239
)

// matches tell whether a regular expression matches a part of a text (PostgreSQL's regexp.c). Which part is not asked: both
// kinds of regular expressions of one language do. See matchReader.
var matches = []Function{
	matchOf("textregexeq", OIDRegexpEq, false, false),
	matchOf("textregexne", OIDRegexpNe, false, true),
	matchOf("texticregexeq", OIDRegexpInCaseEq, true, false),
	matchOf("texticregexne", OIDRegexpInCaseNe, true, true),
}

var matchSamples = []string{"^a", "def$", "^(Abc|日本)", `[[:alpha:]]+\s`, "b", "^[^a-z]*$", "", ".", "a|é|%$", `\d{2,}%`, "^.{1,3}$", `^(?:[a-c ]+|\W+)*$`, `\\|"`}

// TakesRegexp reports whether a pattern of ~, or of ~* where inCase is set, is one that is matched here.
func TakesRegexp(text string, inCase bool) bool { return matcherOf(text, inCase).re != nil }

func matchOf(name string, oid uint32, inCase, not bool) Function {
	f := Function{
		Name: name, OID: oid, Result: vector.Bool, Args: []Param{{Kind: vector.Text}, {Kind: vector.Text, Usual: matchSamples}},
		Samples: [][]string{append([]string{"aBC", "Ab", "10%", "a\x1fb", "\n", "ÉK"}, textSamples...), append([]string{"(?i)a", `(a)\1`}, matchSamples...)},
	}
	ascii := f
	f.TotalFor = func(c Call) bool {
		p := c.Args[1].Const
		return p != nil && (p.Null || matcherOf(p.Str, inCase).re != nil && !matcherOf(p.Str, inCase).classes)
	}
	ascii.TotalFor = func(c Call) bool {
		p := c.Args[1].Const
		return p != nil && (p.Null || matcherOf(p.Str, inCase).re != nil)
	}
	eval := func(inASCII bool) func(args []vector.Value) (vector.Value, error) {
		return func(args []vector.Value) (vector.Value, error) {
			s, m := args[0].Str, matcherOf(args[1].Str, inCase)
			switch {
			case m.re == nil:
				return vector.NullValue, failed("this regular expression")
			case len(s) >= maxText/4: // the server makes four bytes of each character
				return vector.NullValue, failed("text of this length")
			case m.classes && !inASCII && !plain(s):
				return vector.NullValue, failed("classes of characters outside of ASCII")
			}
			return vector.BoolValue(m.re.MatchString(s) != not), nil
		}
	}
	f.Eval, ascii.Eval = eval(false), eval(true)
	f.InASCII = &ascii
	return f
}

// plain reports whether characters are in the same classes under all collations: those of ASCII, less some that are
// blank to ICU only.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf || 0x1c <= s[i] && s[i] <= 0x1f {
			return false
		}
	}
	return true
}

// matcher is a pattern of ~ or ~*; re is nil where it is left to the server.
type matcher struct {
	text    string
	inCase  bool
	re      *regexp.Regexp
	classes bool // it has some whose members depend on the collation
}

// matchers are those that were used last: mostly all rows have one or a few.
var (
	matchers    [64]atomic.Pointer[matcher]
	matcherSeed = maphash.MakeSeed()
)

func matcherOf(text string, inCase bool) *matcher {
	at := &matchers[maphash.String(matcherSeed, text)%uint64(len(matchers))]
	m := at.Load()
	if m == nil || m.text != text || m.inCase != inCase {
		m = newMatcher(strings.Clone(text), inCase) // a row's text may be gone with the next one
		at.Store(m)
	}
	return m
}

func newMatcher(text string, inCase bool) *matcher {
	m := &matcher{text: text, inCase: inCase}
	if len(text) > maxMatchSize {
		return m
	}
	r := matchReader{rest: text, inCase: inCase}
	p, ok := r.alternatives(0)
	if !ok || r.rest != "" || p.size > maxMatchSize || p.loops > maxMatchLoops {
		return m
	}
	if re, err := regexp.Compile(p.re); err == nil {
		m.re, m.classes = re, r.classes
	}
	return m
}

// The server has no result for regular expressions that are too complex: here these are of a size, with its repetitions
// written out, and so are the parts that are repeated, which it connects to each other.
const (
	maxMatchSize  = 1000
	maxMatchLoops = 60
	maxMatchDepth = 20
)

// matchReader reads PostgreSQL's advanced regular expressions (regcomp.c, regc_lex.c) of which package regexp has the
// language: of characters, escapes of them, dots, sets, \d \w \s and their complements, ^ and $, groups, alternatives and
// quantifiers. Everything else is the server's.
type matchReader struct {
	rest    string
	inCase  bool
	classes bool
}

// part is what was read, for package regexp.
type part struct {
	re    string
	size  int // the characters that it has, those of repetitions each time
	loops int // those that are within quantifiers
	// anchored: it has a ^ or $, which is not repeated: the server's ways with loops of these differ by version.
	anchored bool
}

func (p *part) add(q part) {
	p.re += q.re
	p.size += q.size
	p.loops += q.loops
	p.anchored = p.anchored || q.anchored
}

// alternatives reads up to the end, or the parenthesis that closes the group.
func (r *matchReader) alternatives(depth int) (p part, ok bool) {
	for r.rest != "" && r.rest[0] != ')' {
		if r.rest[0] == '|' {
			p.re += "|"
			r.rest = r.rest[1:]
			continue
		}
		q, ok := r.atom(depth)
		if !ok {
			return p, false
		}
		if q, ok = r.quantified(q); !ok {
			return p, false
		}
		if p.add(q); p.size > maxMatchSize {
			return p, false
		}
	}
	return p, depth == 0 && r.rest == "" || depth > 0 && r.rest != ""
}

// atom reads what a quantifier may follow.
func (r *matchReader) atom(depth int) (part, bool) {
	c, n := utf8.DecodeRuneInString(r.rest)
	switch c {
	case '(':
		r.rest = r.rest[1:]
		if rest, found := strings.CutPrefix(r.rest, "?:"); found {
			r.rest = rest
		}
		p, ok := r.alternatives(depth + 1)
		if !ok || depth > maxMatchDepth {
			return p, false
		}
		r.rest, p.re = r.rest[1:], "(?:"+p.re+")"
		return p, true
	case '^':
		r.rest = r.rest[1:]
		return part{re: `\A`, anchored: true}, true
	case '$':
		r.rest = r.rest[1:]
		return part{re: `\z`, anchored: true}, true
	case '.':
		r.rest = r.rest[1:]
		return part{re: `(?s:.)`, size: 1}, true
	case '[':
		set, ok := r.bracket()
		return part{re: set, size: 1}, ok
	case '\\':
		if len(r.rest) > 1 {
			if set, negated, ok := class(r.rest[1]); ok {
				r.rest, r.classes = r.rest[2:], true
				return part{re: set.pattern(negated), size: 1}, true
			}
		}
		c, ok := r.escape()
		if !ok {
			return part{}, false
		}
		return r.character(c)
	case '*', '+', '?', '{', utf8.RuneError:
		return part{}, false
	}
	r.rest = r.rest[n:]
	return r.character(c)
}

func (r *matchReader) character(c rune) (part, bool) {
	var s charSet
	if !s.add(c, c, r.inCase) {
		return part{}, false
	}
	return part{re: s.pattern(false), size: 1}, true
}

// escape reads a character behind a backslash.
func (r *matchReader) escape() (rune, bool) {
	if len(r.rest) < 2 {
		return 0, false
	}
	c := r.rest[1]
	r.rest = r.rest[2:]
	if at := strings.IndexByte("tnrfv", c); at >= 0 {
		return rune("\t\n\r\f\v"[at]), true
	}
	return rune(c), punctuation(c)
}

var quantifier = regexp.MustCompile(`^(?:[*+?]|\{(\d{1,3})(,(\d{1,3})?)?\})`)

// quantified reads the quantifier behind p, if there is one. Whether it is greedy does not matter.
func (r *matchReader) quantified(p part) (part, bool) {
	if r.rest == "" || strings.IndexByte("*+?{", r.rest[0]) < 0 {
		return p, true
	}
	q := quantifier.FindStringSubmatch(r.rest)
	if q == nil || p.size == 0 || p.anchored {
		return p, false
	}
	times := 2
	if q[1] != "" {
		least, _ := strconv.Atoi(q[1])
		most, _ := strconv.Atoi(q[3])
		if least > 255 || most > 255 || q[3] != "" && most < least {
			return p, false
		}
		times = max(least+1, most)
	}
	r.rest = strings.TrimPrefix(r.rest[len(q[0]):], "?")
	p.re += q[0]
	p.size *= times
	p.loops = p.size
	return p, r.rest == "" || strings.IndexByte("*+?{", r.rest[0]) < 0
}

// bracket reads a set.
func (r *matchReader) bracket() (string, bool) {
	r.rest = r.rest[1:]
	rest, negated := strings.CutPrefix(r.rest, "^")
	r.rest = rest
	var s charSet
	for first := true; ; first = false {
		if r.rest == "" || first && r.rest[0] == ']' { // which is a member there
			return "", false
		}
		if r.rest[0] == ']' {
			r.rest = r.rest[1:]
			return s.pattern(negated), true
		}
		if r.members(&s) {
			r.classes = true
			continue
		}
		low, ok := r.member(first)
		if !ok {
			return "", false
		}
		high := low
		if len(r.rest) > 1 && r.rest[0] == '-' && r.rest[1] != ']' {
			r.rest = r.rest[1:]
			if high, ok = r.member(false); !ok {
				return "", false
			}
		}
		if !s.add(low, high, r.inCase) {
			return "", false
		}
	}
}

// members reads a class within a set; it reports whether there is one.
func (r *matchReader) members(s *charSet) bool {
	if len(r.rest) > 1 && r.rest[0] == '\\' {
		of, negated, ok := class(r.rest[1])
		if !ok || negated { // not within sets before 14
			return false
		}
		s.ranges, r.rest = append(s.ranges, of.ranges...), r.rest[2:]
		return true
	}
	for name, of := range namedClasses {
		if rest, found := strings.CutPrefix(r.rest, "[:"+name+":]"); found {
			for _, c := range of.ranges {
				s.add(c[0], c[1], r.inCase)
			}
			r.rest = rest
			return true
		}
	}
	return false
}

// member reads a character within a set.
func (r *matchReader) member(first bool) (rune, bool) {
	c, n := utf8.DecodeRuneInString(r.rest)
	switch {
	case c == '\\':
		return r.escape()
	case c == '-' && !first && !strings.HasPrefix(r.rest, "-]"), c == ']', c == utf8.RuneError:
		return 0, false
	case c == '[' && len(r.rest) > 1 && strings.IndexByte(":.=", r.rest[1]) >= 0:
		return 0, false
	}
	r.rest = r.rest[n:]
	return c, true
}

// charSet is a set of characters by ranges.
type charSet struct{ ranges [][2]rune }

// add adds a range, in both cases if so said: of letters of ASCII alone these are known. ok is false where they are not.
func (s *charSet) add(low, high rune, inCase bool) (ok bool) {
	if low > high || inCase && high >= utf8.RuneSelf {
		return false
	}
	s.ranges = append(s.ranges, [2]rune{low, high})
	for c := low; inCase && c <= high; c++ {
		if letter(byte(c)) {
			s.ranges = append(s.ranges, [2]rune{c ^ 0x20, c ^ 0x20})
		}
	}
	return true
}

func (s *charSet) pattern(negated bool) string {
	if len(s.ranges) == 1 && !negated && s.ranges[0][0] == s.ranges[0][1] {
		return regexp.QuoteMeta(string(s.ranges[0][0]))
	}
	var b strings.Builder
	b.WriteByte('[')
	if negated {
		b.WriteByte('^')
	}
	for _, r := range s.ranges {
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, r[0], r[1])
	}
	b.WriteByte(']')
	return b.String()
}

// namedClasses are what is in classes under all collations.
var namedClasses = map[string]charSet{
	"digit": {[][2]rune{{'0', '9'}}},
	"alpha": {[][2]rune{{'A', 'Z'}, {'a', 'z'}}},
	"alnum": {[][2]rune{{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
	"upper": {[][2]rune{{'A', 'Z'}}},
	"lower": {[][2]rune{{'a', 'z'}}},
	"space": {[][2]rune{{'\t', '\r'}, {' ', ' '}}},
}

// class returns the class of an escape, which in capitals is its complement.
func class(c byte) (s charSet, negated, ok bool) {
	switch c | 0x20 {
	case 'd':
		s = namedClasses["digit"]
	case 's':
		s = namedClasses["space"]
	case 'w':
		s.ranges = append([][2]rune{{'_', '_'}}, namedClasses["alnum"].ranges...)
	default:
		return s, false, false
	}
	return s, c&0x20 == 0, letter(c)
}
