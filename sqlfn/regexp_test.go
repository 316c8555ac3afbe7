package sqlfn

import (
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

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

// TestSequence compares sequences with package regexp, also where they give up.
func TestSequence(t *testing.T) {
	patterns := []string{`^https?://(www[.])?([^/]+)/.*$`, `^https?://(?:www\.)?([^/]+)/.*$`, "^(a*)(a*)(a*)(.*)b$", "^.?(a[.])?([^/b]+)$", "^(.)(.?)(.*)(.+)$", "^[^a]*(a)?[^b]*$",
		"^(a*)b(.*)$", "^(a+)(b?)a*$", "^a*a*a*a*a*a*a*a*c$", "^(.*)[.](.*)$", "^(a)(a)(a)(a)(a)(a)(a)(a)(.*)$", "^(ab)?(a)?b*$", "^(?:ab)?([^c]*)(.*)$"}
	r := rand.New(rand.NewPCG(3, 4))
	alphabet := []string{"a", "a", "a", "b", ".", "/", "é", "日", "\n", "www.", "http://", "https://"}
	matched, gaveUp, decided := 0, 0, 0
	for _, text := range patterns {
		re, q, ok := translate(text)
		if !ok {
			t.Fatalf("%s is not taken", text)
		}
		reference := regexp.MustCompile(re)
		for _, n := range []int{0, 1, 2, 3, 5, 8, 63, 64, 127, 128, 129, 511, 512, 513} {
			for i := range 40 {
				s := strings.Repeat("a", n)
				if i > 0 {
					s = []string{"", "http://", "https://www.", "a"}[r.IntN(4)]
					for range n {
						s += alphabet[r.IntN(len(alphabet))]
					}
				}
				want := reference.FindStringSubmatchIndex(s)
				var m backtracker
				found, ok := m.match(q, s)
				if !ok {
					gaveUp++
					continue
				}
				if found != (want != nil) {
					t.Fatalf("%s of %q: %v, not %v", text, s, found, want)
				}
				if found {
					matched++
					if got := m.at[2:len(want)]; !slices.Equal(got, want[2:]) {
						t.Fatalf("%s of %q: %v, not %v", text, s, got, want[2:])
					}
				}
				if m.seen > len(s) {
					continue
				}
				for range 4 { // with anything behind what was seen
					other := s[:m.seen]
					for range r.IntN(4) {
						other += alphabet[r.IntN(len(alphabet))]
					}
					if !utf8.ValidString(other) {
						continue // within a character
					}
					decided++
					if at := reference.FindStringSubmatchIndex(other); (at != nil) != found || found && !slices.Equal(at[2:], want[2:]) {
						t.Fatalf("%s of %q: %v, where %d bytes of %q decide %v", text, other, at, m.seen, s, want)
					}
				}
			}
		}
	}
	if _, q, ok := translate("^(a)(a)(a)(a)(a)(a)(a)(a)(a)(.*)$"); !ok || q != nil {
		t.Error("a sequence of ten groups")
	}
	if matched < 1000 || gaveUp < 10 || decided < 1000 {
		t.Errorf("%d match, %d gave up, %d others are decided", matched, gaveUp, decided)
	}
}

func BenchmarkRegexpReplace(b *testing.B) {
	args := []vector.Value{{Str: "https://www.navy-4711.example/blue/red/?id=17&green=4711&almond=99"}, {Str: `^https?://(www[.])?([^/]+)/.*$`}, {Str: `\2`}}
	r, _ := replacementOf(args[1].Str, args[2].Str)
	b.Run("sequence", func(b *testing.B) {
		for b.Loop() {
			if v, err := regexpReplace.Eval(args); err != nil || v.Str != "navy-4711.example" {
				b.Fatal(v, err)
			}
		}
	})
	b.Run("regexp", func(b *testing.B) {
		for b.Loop() {
			if at := r.re.FindStringSubmatchIndex(args[0].Str); len(at) != 6 {
				b.Fatal(at)
			}
		}
	})
}

// TestRegexpsOfTheServer are not taken.
func TestRegexpsOfTheServer(t *testing.T) {
	for _, pattern := range []string{"", "a", "^a", "a$", "^a|b$", "^(a|b)$", "^((a))$", "^(a*)?$", "^(a)*$", "^a*?$", "^a{2}$", `^\d$`, `^a\$`, "^[a-z]$", "^[[:alpha:]]$",
		"^[]a]$", "^[^]a]$", `^[\d]$`, "^()$", "^(?i)a$", "^(?=a)a$", "^(a$", "^a)$", "^**$", "^(a)??$", "^é$", "^[é]$", `^(a)\1$`, "^[a$", "^a^$"} {
		if re, _, ok := translate(pattern); ok {
			t.Errorf("%s is taken as %s", pattern, re)
		}
	}
	for _, to := range []string{`\0`, `\&`, `\`, `\\`, `\2`, `\n`} {
		if _, ok := template(to, 1); ok {
			t.Errorf("replacement %s is taken", to)
		}
	}
}
