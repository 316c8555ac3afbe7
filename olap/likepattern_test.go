package olap

import (
	"math/rand/v2"
	"testing"
)

func TestLikePattern(t *testing.T) {
	r := rand.New(rand.NewPCG(29, 29))
	letters := []rune("aabb/é€\U0001f600")
	text := func(n int, more string) string {
		all := append([]rune(more), letters...)
		s := make([]rune, n)
		for i := range s {
			s[i] = all[r.IntN(len(all))]
		}
		return string(s)
	}
	matched, prepared := 0, 0
	for range 200_000 {
		s, p := text(r.IntN(14), "%_"), text(r.IntN(9), `%%%%%_\`)
		if r.IntN(8) == 0 && len(s) > 1 {
			s = s[1:] // it may begin within a character
		}
		if r.IntN(8) == 0 && len(p) > 1 {
			p = p[1:]
		}
		l := prepareLike(p)
		want, wantErr := likeSteps(s, p, false)
		got, err := l.match(s)
		if got != want || (err != nil) != (wantErr != nil) {
			t.Fatalf("%q like %q: %v, %v instead of %v, %v", s, p, got, err, want, wantErr)
		}
		if l.parts != nil {
			prepared++
			if want {
				matched++
			}
		}
	}
	if matched < 5000 || prepared < 20_000 {
		t.Errorf("%d matches of %d prepared patterns", matched, prepared)
	}
}

func TestLikeParts(t *testing.T) {
	for _, p := range []string{"_", "a%_", `a\`, `%\`, "%\xa9%", "\xe2\x82", "\xe2%"} {
		if l := prepareLike(p); l.parts != nil {
			t.Errorf("%q has the parts %q", p, l.parts)
		}
	}
	for p, want := range map[string]int{"": 1, "a": 1, "%": 2, "%%": 3, `a\%b`: 1, `\_%\\`: 2, "%special%requests%": 4} {
		if l := prepareLike(p); len(l.parts) != want {
			t.Errorf("%q has the parts %q", p, l.parts)
		}
	}
}

func FuzzLikePattern(f *testing.F) {
	f.Add("the special, final requests", "%special%requests%")
	f.Add("é\xa9%", `%\%`)
	f.Fuzz(func(t *testing.T, s, p string) {
		want, wantErr := likeSteps(s, p, false)
		got, err := prepareLike(p).match(s)
		if got != want || (err != nil) != (wantErr != nil) {
			t.Fatalf("%q like %q: %v, %v instead of %v, %v", s, p, got, err, want, wantErr)
		}
	})
}
