package compress

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// matchReference looks for literals one after the other.
func matchReference(literals []string, s string) bool {
	last := len(literals) - 1
	if !strings.HasPrefix(s, literals[0]) {
		return false
	}
	s = s[len(literals[0]):]
	for _, l := range literals[1:last] {
		i := strings.Index(s, l)
		if i < 0 {
			return false
		}
		s = s[i+len(l):]
	}
	return strings.HasSuffix(s, literals[last])
}

// randomLiterals are pieces of s, some of them changed.
func randomLiterals(r *rand.Rand, s string) []string {
	literals := make([]string, 2+r.IntN(4))
	for i := range literals {
		from := r.IntN(len(s) + 1)
		size := min(r.IntN(12), len(s)-from)
		if r.IntN(3) == 0 {
			from, size = i*len(s)/len(literals), min(r.IntN(9), len(s)/len(literals))
		}
		literals[i] = s[from : from+size]
		if r.IntN(9) == 0 {
			literals[i] += "!"
		}
	}
	if r.IntN(2) == 0 {
		literals[0] = s[:min(len(s), r.IntN(5))]
	}
	if r.IntN(2) == 0 {
		literals[len(literals)-1] = s[len(s)-min(len(s), r.IntN(5)):]
	}
	return literals
}

// TestPattern compares automata over bytes and over codes with a search.
func TestPattern(t *testing.T) {
	forms := map[string]func(int) string{
		"repeated": func(i int) string {
			return strings.Repeat("ab", i%5) + strings.Repeat("aab", i%7) + strings.Repeat("a", i%11)
		},
	}
	for name, form := range symbolSamples {
		forms[name] = form
	}
	for name, form := range forms {
		r := rand.New(rand.NewPCG(7, 7))
		var sample [][]byte
		for i := range 513 {
			sample = append(sample, []byte(form(i)))
		}
		for _, trained := range []int{0, 1, len(sample)} { // without symbols all is escaped
			e := TrainSymbols(sample[:trained])
			matched := 0
			for range 200 {
				literals := randomLiterals(r, form(r.IntN(len(sample))))
				p := NewPattern(literals)
				if p == nil {
					t.Fatalf("%s: no automaton for %q", name, literals)
				}
				m := p.Matcher(e.Table())
				for range 80 {
					s := sample[r.IntN(len(sample))]
					want := matchReference(literals, string(s))
					if got := p.Match(s); got != want {
						t.Fatalf("%s: %q in %q: %v", name, literals, s, got)
					}
					if got := m.Accepts(m.Step(0, e.Append(nil, s))); got != want {
						t.Fatalf("%s: %q in %q, encoded: %v", name, literals, s, got)
					}
					if want {
						matched++
					}
				}
			}
			if matched == 0 {
				t.Errorf("%s: nothing is matched", name)
			}
		}
	}
}

func TestPatternSize(t *testing.T) {
	for n, want := range map[int]bool{0: true, 1: true, 63: true, 64: true, 126: true, 127: false, 128: false, 129: false, 511: false} {
		s := strings.Repeat("x", n)
		p := NewPattern([]string{"", s, ""})
		if (p != nil) != want {
			t.Errorf("an automaton for %d bytes: %v", n, p != nil)
		}
		if p != nil && (!p.Match([]byte("y"+s)) || n > 0 && p.Match([]byte(s[1:]))) {
			t.Errorf("%d bytes are not matched", n)
		}
	}
	for _, literals := range [][]string{nil, {"a"}} {
		if NewPattern(literals) != nil {
			t.Errorf("an automaton for %q, which has no run", literals)
		}
	}
}

func BenchmarkPattern(b *testing.B) {
	words := symbolSamples["words"]
	var sample [][]byte
	bytes := 0
	for i := range 4096 {
		sample = append(sample, []byte(words(i)))
		bytes += len(sample[i])
	}
	e := TrainSymbols(sample)
	var codes [][]byte
	for _, s := range sample {
		codes = append(codes, e.Append(nil, s))
	}
	literals := []string{"", "special", "requests", ""}
	m := NewPattern(literals).Matcher(e.Table())
	b.Run("codes", func(b *testing.B) {
		b.SetBytes(int64(bytes))
		for range b.N {
			for _, c := range codes {
				m.Step(0, c)
			}
		}
	})
	b.Run("decoded", func(b *testing.B) {
		b.SetBytes(int64(bytes))
		var buf []byte
		for range b.N {
			for _, c := range codes {
				buf = e.Table().AppendDecoded(buf[:0], c)
				matchReference(literals, string(buf))
			}
		}
	})
}
