package sqltype

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// CaseServer asks a server about upper and lower case under a collation.
type CaseServer interface {
	// Changing returns the characters up to last that have another lower or upper case.
	Changing(last rune) ([]CaseMapping, error)
	// Both returns the lower and the upper case of texts.
	Both(texts []string) (lower, upper []string, err error)
}

// CaseMapping is a character with its lower and its upper case.
type CaseMapping struct {
	Char         rune
	Lower, Upper string
}

// AskCases returns the cases of a collation as the server has them; nil where characters of ASCII have others than in C, or
// what becomes of a character depends on what stands beside it: ICU maps strings, and Greek, Lithuanian and Turkic languages
// have such rules. The C library and PostgreSQL's C.UTF-8 map each character alone (str_tolower in formatting.c). That is
// not taken for granted: it is tried with all characters that change, in many contexts.
func AskCases(server CaseServer) (*Cases, error) {
	list, err := server.Changing(caseLast)
	if err != nil {
		return nil, err
	}
	c := &Cases{lower: map[rune]string{}, upper: map[rune]string{}}
	ascii := 0
	for _, m := range list {
		if m.Char < utf8.RuneSelf {
			ascii++
			continue // the probes have these, too
		}
		if s := string(m.Char); m.Lower != s {
			c.lower[m.Char] = m.Lower
		}
		if s := string(m.Char); m.Upper != s {
			c.upper[m.Char] = m.Upper
		}
	}
	if ascii != 2*26 {
		return nil, nil
	}
	probes := caseProbes(list)
	lower, upper, err := server.Both(probes)
	if err != nil {
		return nil, err
	}
	if len(lower) != len(probes) || len(upper) != len(probes) {
		return nil, errors.New("texts are missing")
	}
	for i, p := range probes {
		l, known := c.Lower(p)
		if known && l != lower[i] && strings.ContainsRune(p, capitalSigma) {
			c.finalSigma, known = true, false
		}
		u, _ := c.Upper(p)
		if known && l != lower[i] || u != upper[i] {
			return nil, nil
		}
	}
	return c, nil
}

// caseNeighbours are what a character stands beside in probes: what rules of contexts name (SpecialCasing.txt of Unicode: marks
// above and below, dots, the i), vowels of Greek, and what is and is not a part of a word.
var caseNeighbours = []string{"", "a", "A", "i", "I", "j", "J", "1", ".", "'", "-", "_", "\u00AD", "\u200D", "ß", "İ", "ı", "α", "Α", "ι", "υ", "Ι", "Υ", "η", "Η", "σ", "ς",
	"\u0300", "\u0301", "\u0303", "\u0304", "\u0307", "\u0308", "\u0323", "\u0328", "\u0342", "\u0345", "日", "\U0001F600"}

// caseProbes returns texts in which characters stand in many contexts. Σ stands in some of its own only.
func caseProbes(list []CaseMapping) []string {
	var probes []string
	var all []rune
	for _, m := range list {
		var b strings.Builder
		c := string(m.Char)
		for _, n := range caseNeighbours {
			b.WriteString(" " + n + c + n + "a" + c + n)
		}
		probes = append(probes, b.String(), c, c+c, "a"+c, "Α"+c+" ")
		if m.Char != capitalSigma {
			all = append(all, m.Char)
		}
	}
	forth := string(all)
	slices.Reverse(all)
	probes = append(probes, forth, string(all), strings.Join(caseNeighbours, ""))
	var beyond strings.Builder // ideographs, which have no case
	for r := rune(caseLast + 1); r <= knownLast; r++ {
		beyond.WriteRune(r)
	}
	return append(probes, beyond.String())
}
