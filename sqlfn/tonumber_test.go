package sqlfn

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"pgaccel/vector"
)

// randomNumberLayout returns a pattern, and a text that mostly is laid out as that says.
func randomNumberLayout(r *rand.Rand) (pattern, text string) {
	if r.IntN(3) == 0 {
		text = "-"
	}
	skip := r.IntN(4)
	for n, i := 1+r.IntN(9), 0; i < n; i++ {
		place := string("99990,"[r.IntN(6)])
		pattern += place
		switch {
		case i < skip && n > skip:
		case place == ",":
			text += ","
		default:
			text += string("0123456789"[r.IntN(10)])
		}
	}
	if r.IntN(2) == 0 {
		pattern += "."
		if r.IntN(4) > 0 {
			text += "."
		}
		for range r.IntN(5) {
			pattern += string("990"[r.IntN(3)])
			if r.IntN(5) > 0 && strings.Contains(text, ".") {
				text += string("0123456789"[r.IntN(10)])
			}
		}
	}
	if r.IntN(10) == 0 {
		at := r.IntN(len(text) + 1)
		text = text[:at] + []string{" ", "-", "0", ",", ".", "+", "a"}[r.IntN(7)] + text[at:]
	}
	return pattern, text
}

// TestRandomNumberLayouts reads random texts by random patterns: as the server, or not.
func TestRandomNumberLayouts(t *testing.T) {
	conn := connect(t)
	if _, err := conn.Exec(context.Background(), `CREATE FUNCTION run(t text, p text) RETURNS text LANGUAGE plpgsql AS
		$$ BEGIN RETURN to_number(t, p)::text; EXCEPTION WHEN others THEN RETURN 'error ' || sqlerrm; END $$`); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	var patterns, texts []string
	for len(patterns) < 30000 {
		if pattern, text := randomNumberLayout(r); takesNumberLayout(pattern) {
			patterns, texts = append(patterns, pattern), append(texts, text)
		}
	}
	rows, err := conn.Query(t.Context(), "SELECT run(t, p) FROM unnest($1::text[], $2::text[]) WITH ORDINALITY u(t, p, n) ORDER BY n", texts, patterns)
	if err != nil {
		t.Fatal(err)
	}
	want, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	answered := 0
	for i, w := range want {
		v, err := toNumber([]vector.Value{{Str: texts[i]}, {Str: patterns[i]}})
		if err != nil {
			continue
		}
		if answered++; v.Num.String() != w {
			t.Errorf("%q as %q is %s; the server says %s", texts[i], patterns[i], v.Num, w)
		}
	}
	if t.Logf("%d answered", answered); answered < 10000 {
		t.Errorf("%d answered", answered)
	}
}
