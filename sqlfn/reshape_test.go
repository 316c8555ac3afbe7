package sqlfn

import (
	"math/rand/v2"
	"testing"

	"pgaccel/vector"
)

// TestInitcapInICU compares initcap() with that of collations to which other parts of a text are words.
func TestInitcapInICU(t *testing.T) {
	conn := connect(t)
	r := rand.New(rand.NewPCG(5, 6))
	parts := []string{"a", "b", "I", "j", "ij", "IJ", " ", "-", "/", ",", "(", "&", "+", "\n", "hello", "1", "_", ".", "'", ":"}
	f, answered := ByOID(872), 0
	for range 3000 {
		s := ""
		for range r.IntN(7) {
			s += parts[r.IntN(len(parts)-r.IntN(6))]
		}
		got, err := f.Eval([]vector.Value{{Str: s}})
		if err != nil {
			continue
		}
		answered++
		var want [4]string
		if err := conn.QueryRow(t.Context(), `SELECT initcap($1 COLLATE "und-x-icu"), initcap($1 COLLATE "nl-x-icu"), initcap($1 COLLATE "el-x-icu"), initcap($1 COLLATE "C")`, s).Scan(&want[0], &want[1], &want[2], &want[3]); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if got.Str != w {
				t.Errorf("%q: %q, not %q", s, got.Str, want)
				break
			}
		}
	}
	if answered < 1000 {
		t.Errorf("%d answered", answered)
	}
}
