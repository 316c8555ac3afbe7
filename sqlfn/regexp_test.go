package sqlfn

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"pgaccel/vector"
)

// TestRegexpReplace compares random regular expressions of those that are taken with the server's.
func TestRegexpReplace(t *testing.T) {
	conn := connect(t)
	r := rand.New(rand.NewPCG(1, 2))
	word := func(of []string, most int) (s string) {
		for range r.IntN(most + 1) {
			s += of[r.IntN(len(of))]
		}
		return s
	}
	atoms := []string{"a", "b", ".", "[ab]", "[^a]", "[^b.]", `\.`, "c", "[.]"}
	matched := 0
	for range 1500 {
		pattern, groups := "^", 0
		for range 1 + r.IntN(5) {
			atom := func(repeats bool) string {
				a := atoms[r.IntN(len(atoms))]
				if repeats {
					a += []string{"", "", "?", "*", "+"}[r.IntN(5)]
				}
				return a
			}
			switch form := r.IntN(4); form {
			case 0, 1:
				pattern += atom(true)
			default:
				open, repeats := []string{"(", "(?:"}[r.IntN(2)], form == 2
				pattern += open + atom(repeats)
				for range r.IntN(3) {
					pattern += atom(repeats)
				}
				if pattern += ")"; !repeats {
					pattern += []string{"", "?"}[r.IntN(2)]
				}
				if open == "(" {
					groups++
				}
			}
		}
		pattern += "$"
		to := "<"
		for g := range groups {
			to += `\` + string(rune('1'+g)) + "|"
		}
		for range 6 {
			s := word([]string{"a", "a", "b", ".", "c", "é", "\n"}, 7)
			var want string
			if err := conn.QueryRow(context.Background(), "SELECT regexp_replace($1, $2, $3)", s, pattern, to).Scan(&want); err != nil {
				t.Fatal(pattern, err)
			}
			got, err := regexpReplace.Eval([]vector.Value{{Str: s}, {Str: pattern}, {Str: to}})
			if err != nil || got.Str != want {
				t.Errorf("%q of %q by %q: %q %v, not %q", pattern, s, to, got.Str, err, want)
			}
			if strings.HasPrefix(want, "<") {
				matched++
			}
		}
	}
	if matched < 500 {
		t.Errorf("%d match", matched)
	}
}

// TestRegexpsOfTheServer are not taken.
func TestRegexpsOfTheServer(t *testing.T) {
	for _, pattern := range []string{"", "a", "^a", "a$", "^a|b$", "^(a|b)$", "^((a))$", "^(a*)?$", "^(a)*$", "^a*?$", "^a{2}$", `^\d$`, `^a\$`, "^[a-z]$", "^[[:alpha:]]$",
		"^[]a]$", "^[^]a]$", `^[\d]$`, "^()$", "^(?i)a$", "^(?=a)a$", "^(a$", "^a)$", "^**$", "^(a)??$", "^é$", "^[é]$", `^(a)\1$`, "^[a$", "^a^$"} {
		if re, ok := translate(pattern); ok {
			t.Errorf("%s is taken as %s", pattern, re)
		}
	}
	for _, to := range []string{`\0`, `\&`, `\`, `\\`, `\2`, `\n`} {
		if _, ok := template(to, 1); ok {
			t.Errorf("replacement %s is taken", to)
		}
	}
}
