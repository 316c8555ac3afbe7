package sqltype

import (
	"strings"
	"unicode/utf8"
)

// Cases are the upper and lower case of characters under a collation in which those of ASCII have that of C. What becomes
// of a character does not depend on what stands beside it, but for the sigma where that is said.
type Cases struct {
	lower, upper map[rune]string // of characters outside of ASCII that change
	// finalSigma: the lower case of Σ is another at the end of a word.
	finalSigma bool
}

const capitalSigma = 'Σ'

// caseLast is the last character that may have a case, knownLast the last of which it is known whether it has one.
const caseLast, knownLast = 0x1FFFF, 0x33FFF

// Lower returns the lower case of a string; ok is false where it is not known.
func (c *Cases) Lower(s string) (lower string, ok bool) {
	if c.finalSigma && strings.ContainsRune(s, capitalSigma) {
		return "", false
	}
	return changed(s, 'A', 'Z', 'a'-'A', c.lower)
}

// Upper returns the upper case of a string; ok is false where it is not known.
func (c *Cases) Upper(s string) (upper string, ok bool) {
	return changed(s, 'a', 'z', 'A'+256-'a', c.upper)
}

// changed replaces the characters of s: add is what is added to bytes of ASCII from first to last.
func changed(s string, first, last, add byte, to map[rune]string) (string, bool) {
	b := make([]byte, 0, len(s)+8)
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if first <= c && c <= last {
				c += add
			}
			b = append(b, c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r > knownLast || r == utf8.RuneError && n == 1 {
			return "", false
		}
		if t, ok := to[r]; ok {
			b = append(b, t...)
		} else {
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return string(b), true
}
