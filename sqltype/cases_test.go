package sqltype

import (
	"errors"
	"strings"
	"testing"
	"unicode"
)

// caseTable is a server with the cases of Go, of strings to which change is applied first.
type caseTable struct {
	change func(s string, lower bool) string
	err    error
}

func (c caseTable) of(s string, lower bool) string {
	to := unicode.ToUpper
	if lower {
		to = unicode.ToLower
	}
	if c.change != nil {
		s = c.change(s, lower)
	}
	return strings.Map(to, s)
}

func (c caseTable) Changing(last rune) (list []CaseMapping, err error) {
	for r := rune(1); r <= last; r++ {
		s := string(r)
		if l, u := c.of(s, true), c.of(s, false); r != unicode.ReplacementChar && (l != s || u != s) {
			list = append(list, CaseMapping{r, l, u})
		}
	}
	return list, c.err
}

func (c caseTable) Both(texts []string) (lower, upper []string, err error) {
	for _, s := range texts {
		lower, upper = append(lower, c.of(s, true)), append(upper, c.of(s, false))
	}
	return lower, upper, c.err
}

// TestAskCases: cases in which a character depends on others are not known, but for the sigma.
func TestAskCases(t *testing.T) {
	replace := func(of bool, old, new string) func(string, bool) string {
		return func(s string, lower bool) string {
			if lower == of {
				s = strings.ReplaceAll(s, old, new)
			}
			return s
		}
	}
	for name, x := range map[string]struct {
		change func(string, bool) string
		known  bool
		sigma  bool
	}{
		"plain":                     {known: true},
		"one becomes two":           {change: replace(false, "ß", "SS"), known: true},
		"Turkish":                   {change: replace(true, "I", "ı")},
		"an accent goes":            {change: replace(false, "α\u0301", "α")},
		"a dot stays":               {change: replace(true, "Į\u0300", "į\u0307\u0300")},
		"two vowels":                {change: replace(false, "άυ", "αϋ")},
		"final sigma":               {change: replace(true, "Σ ", "ς "), known: true, sigma: true},
		"letters beyond all others": {change: replace(true, "\U00020BB7", "x")},
		"two letters of ASCII":      {change: replace(false, "ij", "ĳ")},
		"an i that keeps its dot":   {change: replace(true, "i\u0307", "i\u0307\u0307")},
	} {
		c, err := AskCases(caseTable{change: x.change})
		if err != nil || (c != nil) != x.known || c != nil && c.finalSigma != x.sigma {
			t.Errorf("%s: %v, %v", name, c != nil, err)
		}
	}
	broken := errors.New("no session")
	if c, err := AskCases(caseTable{err: broken}); c != nil || err != broken {
		t.Errorf("%v, %v", c, err)
	}
}

func TestCases(t *testing.T) {
	c, err := AskCases(caseTable{})
	if err != nil {
		t.Fatal(err)
	}
	for s, want := range map[string]string{"": "", "ABC xyz": "abc xyz", "É": "é", "aÉ\U00010400日": "aé\U00010428日", "@[`{": "@[`{"} {
		if got, ok := c.Lower(s); got != want || !ok {
			t.Errorf("%q is %q, %v", s, got, ok)
		}
	}
	for s, want := range map[string]string{"": "", "ABC xyz": "ABC XYZ", "é": "É", "@[`{": "@[`{", "az": "AZ"} {
		if got, ok := c.Upper(s); got != want || !ok {
			t.Errorf("%q is %q, %v", s, got, ok)
		}
	}
	for _, s := range []string{"\xff", "é\xc3", "\U00034000"} {
		if got, ok := c.Upper(s); ok {
			t.Errorf("%q is %q", s, got)
		}
	}
}
