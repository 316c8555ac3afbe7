package olap

import (
	"strings"
	"unicode/utf8"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// like matches s against an SQL pattern as Postgres' MatchText does
// (src/backend/utils/adt/like_match.c): % is any run, _ one character of UTF-8,
// and \ takes the next character as it is. A pattern that ends in \ is an error
// only where the match comes that far.
func like(s, p string) (bool, error) {
	if lit, ok := inner(p); ok {
		return contains(s, lit, false), nil
	}
	return likeSteps(s, p, false)
}

// ilike is LIKE of both in lower case. Where both are ASCII that is done byte by byte; lower, which may be nil, has the case
// of other letters.
func ilike(s, p string, lower *sqlfn.Function) (bool, error) {
	if !ascii(s) || !ascii(p) {
		return likeLowered(s, p, lower)
	}
	if lit, ok := inner(p); ok {
		return contains(s, lit, true), nil
	}
	return likeSteps(s, p, true)
}

// likeLowered is ilike of any strings. It is the reference of that of ASCII.
func likeLowered(s, p string, lower *sqlfn.Function) (bool, error) {
	s, err := lowered(s, lower)
	if err != nil {
		return false, err
	}
	if p, err = lowered(p, lower); err != nil {
		return false, err
	}
	return like(s, p)
}

// lowered returns a string in lower case.
func lowered(s string, lower *sqlfn.Function) (string, error) {
	if lower == nil || lower.CanCases() { // it is not known yet
		return "", forward(plan.ReasonCollation, "ILIKE outside of ASCII")
	}
	v, err := callFunction(lower, []vector.Value{{Str: s}})
	return v.Str, err
}

// inner returns the literal of a pattern %literal%. It is valid UTF-8, so that it is found
// at the beginning of a character only.
func inner(p string) (lit string, ok bool) {
	if len(p) < 2 || p[0] != '%' || p[len(p)-1] != '%' {
		return "", false
	}
	lit = p[1 : len(p)-1]
	for i := range len(lit) {
		if c := lit[i]; c == '%' || c == '_' || c == '\\' {
			return "", false
		}
	}
	return lit, utf8.ValidString(lit)
}

// contains reports whether s has lit in it; insensitive to case in ASCII.
func contains(s, lit string, insensitive bool) bool {
	if !insensitive || lit == "" {
		return strings.Contains(s, lit)
	}
	first := lower(lit[0])
search:
	for i := range len(s) - len(lit) + 1 {
		if lower(s[i]) != first {
			continue
		}
		for j := 1; j < len(lit); j++ {
			if lower(s[i+j]) != lower(lit[j]) {
				continue search
			}
		}
		return true
	}
	return false
}

// likeSteps is like for any pattern, a character at a time. It is the reference of the
// others.
func likeSteps(s, p string, insensitive bool) (bool, error) {
	// After a % the match restarts one character later each time it fails.
	i, j := 0, 0
	star, restart := -1, 0
	for {
		switch {
		case j < len(p) && p[j] == '%':
			j++
			star, restart = j, i
			continue
		case j == len(p) && i == len(s):
			return true, nil
		case j < len(p) && i < len(s):
			c := p[j]
			width := 1
			if c == '\\' {
				if j+1 == len(p) {
					return false, failed("LIKE pattern ends with escape")
				}
				c = p[j+1]
				width = 2
			}
			if c == '_' && width == 1 {
				_, n := utf8.DecodeRuneInString(s[i:])
				i += n
				j++
				continue
			}
			if s[i] == c || insensitive && lower(s[i]) == lower(c) {
				i++
				j += width
				continue
			}
		}
		if star < 0 || restart >= len(s) {
			return false, nil
		}
		_, n := utf8.DecodeRuneInString(s[restart:])
		restart += n
		i, j = restart, star
	}
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
