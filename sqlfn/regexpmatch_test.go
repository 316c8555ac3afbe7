package sqlfn

import (
	"math/rand/v2"
	"strings"
	"testing"

	"pgaccel/vector"
)

// matchWriter writes random regular expressions.
type matchWriter struct{ r *rand.Rand }

func (w matchWriter) of(list ...string) string { return list[w.r.IntN(len(list))] }

func (w matchWriter) alternatives(depth int) string {
	s := w.branch(depth)
	for w.r.IntN(3) == 0 {
		s += "|" + w.branch(depth)
	}
	return s
}

func (w matchWriter) branch(depth int) (s string) {
	for range w.r.IntN(4) {
		atom := w.of("a", "b", "k", "K", ".", "é", `\.`, `\d`, `\w`, `\s`, `\D`, `\W`, `\S`, `\n`, "^", "$", "-", "]", "}", "\n", w.set(), w.set())
		if depth > 0 && w.r.IntN(3) == 0 {
			atom = w.of("(", "(?:") + w.alternatives(depth-1) + ")"
		}
		s += atom + w.of("", "", "", "", "?", "*", "+", "{2}", "{1,}", "{0,2}", "{0}", "*?", "+?", "??", "{1,2}?")
	}
	return s
}

func (w matchWriter) set() string {
	s := w.of("[", "[^", "[-", "[^-")
	for range 1 + w.r.IntN(3) {
		s += w.of("a", "b", "K", "1", "é", ".", "a-c", "A-Z", "Z-a", "0-9", "é-ü", `\d`, `\w`, `\s`, `\]`, `\-`, `\\`, `+-\/`, "[", "^", "$", "[:alpha:]", "[:upper:]", "[:lower:]", "[:space:]", "[:digit:]", "[:alnum:]", "\n")
	}
	return s + w.of("]", "]", "-]")
}

// TestRegexpMatches compares random regular expressions with the server's, under several collations.
func TestRegexpMatches(t *testing.T) {
	conn := connect(t)
	w := matchWriter{rand.New(rand.NewPCG(3, 4))}
	collations := []string{"C", "und-x-icu", "en-x-icu"}
	taken, answered, matched := 0, 0, 0
	for range 4000 {
		pattern, inCase := w.alternatives(2), w.r.IntN(3) == 0
		if w.r.IntN(4) == 0 {
			pattern = "^(" + pattern + ")$"
		}
		if !TakesRegexp(pattern, inCase) {
			continue
		}
		taken++
		f, symbol := ByOID(OIDRegexpEq), "~"
		if inCase {
			f, symbol = ByOID(OIDRegexpInCaseEq), "~*"
		}
		var subjects []string
		for range 8 {
			s := ""
			for range w.r.IntN(6) {
				s += w.of("a", "a", "b", "c", "k", "K", "\u212a", "A", "é", "É", "1", "٣", "_", " ", "\u00a0", "\n", "\x1d", ".", "-", "]", "}", "ſ", "s", "Z", "ı", "i")
			}
			subjects = append(subjects, s)
		}
		for _, collation := range collations {
			var want []bool
			if err := conn.QueryRow(t.Context(), `SELECT array_agg(s COLLATE "`+collation+`" `+symbol+` $2 ORDER BY n) FROM unnest($1::text[]) WITH ORDINALITY u(s, n)`, subjects, pattern).Scan(&want); err != nil {
				t.Fatalf("%q: %v", pattern, err)
			}
			form := f
			if collation == "C" {
				form = f.InASCII
			}
			for i, s := range subjects {
				got, err := form.Eval([]vector.Value{{Str: s}, {Str: pattern}})
				if err == nil && (got.I != 0) != want[i] {
					t.Errorf("%q %s %q under %s: %v, not %v (%s)", s, symbol, pattern, collation, got.I != 0, want[i], matcherOf(pattern, inCase).re)
				}
				if err == nil {
					answered++
				}
				if want[i] {
					matched++
				}
			}
		}
	}
	t.Logf("%d taken, %d answered, %d match", taken, answered, matched)
	if taken < 1000 || answered < 10000 || matched < 5000 {
		t.Errorf("%d taken, %d answered, %d match", taken, answered, matched)
	}
}

// TestLargeRegexpMatches are patterns as large as are taken: the server takes them, too.
func TestLargeRegexpMatches(t *testing.T) {
	conn := connect(t)
	sets := ""
	for c := 'A'; c <= 'Z'; c++ {
		sets += "[" + string(c) + "-z]?"
	}
	for _, pattern := range []string{
		strings.Repeat("a", maxMatchSize), strings.Repeat("abc|", maxMatchSize/4), "^.{0,60}$", "^(?:.?[a-z]?){14}$", sets, `(?:((\w*)*)*)*`, "(?:(?:" + sets[:7*6] + ")*)*",
		strings.Repeat("(", maxMatchDepth) + "a" + strings.Repeat(")", maxMatchDepth), "(" + strings.Repeat("a|", 29) + "b)*", strings.Repeat(`[\w.]`, 150) + strings.Repeat("[^k]", 60),
	} {
		if !TakesRegexp(pattern, false) {
			t.Errorf("%s is not taken", pattern)
		}
		for _, collation := range []string{"C", "und-x-icu"} {
			var is bool
			if err := conn.QueryRow(t.Context(), `SELECT 'x' COLLATE "`+collation+`" ~ $1`, pattern).Scan(&is); err != nil {
				t.Errorf("%s: %v", pattern, err)
			}
		}
	}
	for _, pattern := range []string{strings.Repeat("a", maxMatchSize+1), "^.{0,61}$", "(a{20}){20}", "((((((a*)*)*)*)*)*)*", strings.Repeat("(", maxMatchDepth+2) + "a" + strings.Repeat(")", maxMatchDepth+2)} {
		if TakesRegexp(pattern, false) {
			t.Errorf("%s is taken", pattern)
		}
	}
}

// TestRegexpMatchesOfTheServer are not taken.
func TestRegexpMatchesOfTheServer(t *testing.T) {
	for _, pattern := range []string{"*", "+a", "a|*", "(*a)", "^*", "$?", "(^)*", "(^a)*", "(a$)+", "()*", "(", ")", "a)", "(a", "[", "[a", "[]", "[]a]", "[^]a]", "[]a", "a**", "a*+", "a{2}{3}", "a{", "a{x}", "{2}", "a{,2}",
		"a{256}", "a{3,2}", "a{1000}", "***=a", "***:a", "(?i)a", "(?=a)", "(?!a)", "(?<=a)a", "(?<!a)a", "(?#x)a", "(?P<x>a)", `(a)\1`, `\1`, `\m`, `\M`, `\y`, `\Y`, `\A`, `\Z`, `\z`, `\b`, `\B`, `\x41`, `\u0041`, `\0`, `\e`, `\cA`, `\Q`, `\pL`, `\`, `a\`,
		"[z-a]", "[a-c-e]", `[\d-a]`, `[a-\d]`, `[\D]`, `[\W]`, `[\y]`, "[[:punct:]]", "[[:graph:]]", "[[:print:]]", "[[:nothing:]]", "[[:<:]]", "[[:>:]]", "[[.a.]]", "[[=a=]]", "[a-[:alpha:]]", `\é`, "a\xff", "[\xff]"} {
		if TakesRegexp(pattern, false) {
			t.Errorf("%s is taken as %s", pattern, matcherOf(pattern, false).re)
		}
	}
	for _, pattern := range []string{"é", "[é]", "[a-é]"} {
		if TakesRegexp(pattern, true) {
			t.Errorf("%s of ~* is taken", pattern)
		}
	}
}
