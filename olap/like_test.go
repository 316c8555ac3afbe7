package olap

import (
	"math/rand/v2"
	"testing"
)

func TestLikeContains(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 23))
	letters := []rune("abAB/é€\U0001f600")
	text := func(n int) string {
		s := make([]rune, n)
		for i := range s {
			s[i] = letters[r.IntN(len(letters))]
			if r.IntN(3) > 0 {
				s[i] = letters[r.IntN(5)]
			}
		}
		return string(s)
	}
	matched := 0
	for range 20_000 {
		s, p := text(r.IntN(20)), "%"+text(r.IntN(4))+"%"
		for _, insensitive := range []bool{false, ascii(s) && ascii(p)} {
			want, err := likeSteps(s, p, insensitive)
			if err != nil {
				t.Fatal(err)
			}
			got, err := like(s, p)
			if insensitive {
				got, err = ilike(s, p, nil)
			}
			if got != want || err != nil {
				t.Fatalf("%q like %q (%v): %v, %v", s, p, insensitive, got, err)
			}
			if want {
				matched++
			}
		}
	}
	if matched < 1000 {
		t.Fatalf("%d matches", matched)
	}
}

// Patterns that are more than a literal between two %, and one that is no UTF-8.
func TestLikeInner(t *testing.T) {
	for _, p := range []string{"", "%", "a%", "%a", "%a%b%", "%a_b%", `%a\\%`, "%\xa9%", "%\xe2\x82%"} {
		if lit, ok := inner(p); ok {
			t.Errorf("%q is %q", p, lit)
		}
	}
	for p, want := range map[string]string{"%%": "", "%a%": "a", "%é€%": "é€"} {
		if lit, ok := inner(p); !ok || lit != want {
			t.Errorf("%q is %q, %v", p, lit, ok)
		}
	}
	if ok, err := like("é", "%\xa9%"); ok || err != nil {
		t.Errorf("half a character is found: %v", err)
	}
}

func FuzzLike(f *testing.F) {
	f.Add("/shop/Product/1", "%product%")
	f.Add("é\xa9", "%\xa9%")
	f.Fuzz(func(t *testing.T, s, p string) {
		lit, ok := inner(p)
		if !ok {
			return
		}
		for _, insensitive := range []bool{false, true} {
			if insensitive && !(ascii(s) && ascii(p)) {
				continue
			}
			want, err := likeSteps(s, p, insensitive)
			if got := contains(s, lit, insensitive); err != nil || got != want {
				t.Fatalf("%q like %q (%v): %v, %v", s, p, insensitive, got, err)
			}
		}
	})
}
