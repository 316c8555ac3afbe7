package olap

import (
	"strings"
	"unicode/utf8"

	"pgaccel/colstore"
	"pgaccel/compress"
	"pgaccel/plan"
	"pgaccel/sqlfn"
)

// likePattern is a pattern of LIKE, prepared for many strings. One of literals between runs
// (%) is searched for literal by literal: each where it first occurs leaves most to the next,
// so that nothing is tried again. Anything else is matched by like.
type likePattern struct {
	text string
	// parts are the literals of the pattern, the first of which stands at the beginning and the
	// last at the end; either may be empty. Nil: the pattern is not made of such.
	parts []string
	least int // bytes of all parts
}

func prepareLike(p string) *likePattern {
	l := &likePattern{text: p, parts: likeParts(p)}
	for _, s := range l.parts {
		l.least += len(s)
	}
	return l
}

// likeParts returns the literals between the % of a pattern, without their escapes; nil where
// it has a _, or ends in an escape. A literal is valid UTF-8, so that it is found at the
// beginning of a character only and ends at the end of one.
func likeParts(p string) []string {
	parts := []string{}
	var lit []byte
	end := func() bool {
		parts = append(parts, string(lit))
		valid := utf8.Valid(lit)
		lit = lit[:0]
		return valid
	}
	for i := 0; i < len(p); i++ {
		switch c := p[i]; c {
		case '%':
			if !end() {
				return nil
			}
			continue
		case '_':
			return nil
		case '\\':
			if i++; i == len(p) {
				return nil
			}
		}
		lit = append(lit, p[i])
	}
	if !end() {
		return nil
	}
	return parts
}

// match is like(s, l.text).
func (l *likePattern) match(s string) (bool, error) {
	if l.parts == nil {
		return like(s, l.text)
	}
	last := len(l.parts) - 1
	if last == 0 {
		return s == l.parts[0], nil
	}
	if len(s) < l.least || !strings.HasPrefix(s, l.parts[0]) || !strings.HasSuffix(s, l.parts[last]) {
		return false, nil
	}
	s = s[len(l.parts[0]) : len(s)-len(l.parts[last])]
	for _, p := range l.parts[1:last] {
		i := strings.Index(s, p)
		if i < 0 {
			return false, nil
		}
		s = s[i+len(p):]
	}
	return true, nil
}

// ilikePattern is a pattern of ILIKE, prepared for many strings.
type ilikePattern struct {
	text  string
	lower *sqlfn.Function // of ilike
	ascii bool            // the pattern is
	// lowered is the pattern in lower case; nil: that is not known, and asked of ilike where a string needs it.
	lowered *likePattern
}

func prepareILike(p string, lower *sqlfn.Function) *ilikePattern {
	l := &ilikePattern{text: p, lower: lower, ascii: ascii(p)}
	if s, err := lowered(p, lower); err == nil {
		l.lowered = prepareLike(s)
	}
	return l
}

// match is ilike(s, l.text, l.lower).
func (l *ilikePattern) match(s string) (bool, error) {
	if l.lowered == nil || l.ascii && ascii(s) {
		return ilike(s, l.text, l.lower)
	}
	s, err := lowered(s, l.lower)
	if err != nil {
		return false, err
	}
	return l.lowered.match(s)
}

// encodedLike is LIKE, or NOT LIKE, over strings that stay as the dictionary has encoded them.
type encodedLike struct {
	dict    *colstore.Dict
	pattern *compress.Pattern
	matcher *compress.Matcher
	not     bool
}

// newEncodedLike returns that of e, whose only leaf has the strings of d; nil where e is something
// else, its pattern is not made of literals, or the strings are not encoded.
func newEncodedLike(e *plan.Call, d *dict) *encodedLike {
	l := &encodedLike{dict: d.src}
	for e.Op == plan.OpNot {
		of, ok := e.Args[0].(*plan.Call)
		if !ok {
			return nil
		}
		e, l.not = of, !l.not
	}
	if e.Op != plan.OpLike || e.Insensitive || d.src == nil {
		return nil
	}
	p, constant := constantText(e.Args[1])
	if _, leaf := prepareText(e.Args[0]); !leaf || !constant {
		return nil
	}
	if l.pattern = compress.NewPattern(likeParts(p)); l.pattern == nil {
		return nil
	}
	if l.matcher = d.src.Matcher(l.pattern); l.matcher == nil {
		return nil
	}
	return l
}
