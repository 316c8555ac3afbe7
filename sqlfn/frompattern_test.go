package sqlfn

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"pgaccel/vector"
)

// randomPattern makes a pattern, and a text that may be laid out like it, or nearly.
func randomPattern(r *rand.Rand, keywords []string) (pattern, text string) {
	separators := []string{"", "", "-", "/", ".", ":", " ", ",", ", ", "_", "\"T\"", "\"at\"", "\"-\"", "  "}
	for i := range 1 + r.IntN(6) {
		if i > 0 {
			s := separators[r.IntN(len(separators))]
			pattern += s
			if s = strings.Trim(s, "\""); r.IntN(30) == 0 {
				s = separators[r.IntN(8)]
			}
			text += s
		}
		name := keywords[r.IntN(len(keywords))]
		if i == 0 && r.IntN(2) == 0 {
			name = "YYYY"
		}
		k := patternKeywords[name]
		if r.IntN(6) == 0 {
			name = strings.ToLower(name)
		}
		pattern += name
		switch {
		case k.names != nil:
			n := k.names[r.IntN(len(k.names))]
			if r.IntN(3) == 0 {
				n = strings.ToUpper(n)
			}
			text += n
		case k.field == yearField && k.width == 4:
			text += fmt.Sprintf("%04d", 1000+r.IntN(2000))
		case k.field == monthField, k.field == hourField:
			text += fmt.Sprintf("%0*d", 2-r.IntN(5)/4, r.IntN(13))
		case k.width == 2:
			text += fmt.Sprintf("%0*d", 2-r.IntN(5)/4, r.IntN(33))
		default:
			text += fmt.Sprintf("%0*d", 1+r.IntN(k.width), r.IntN(1000))
		}
	}
	switch r.IntN(12) {
	case 0:
		text = text[:r.IntN(len(text)+1)]
	case 1:
		text += []string{" ", "x", "-1", " 10:00", ".5", "é"}[r.IntN(6)]
	case 2:
		at := r.IntN(len(text) + 1)
		text = text[:at] + []string{" ", "-", "0", "1", "+", "a"}[r.IntN(6)] + text[at:]
	}
	return pattern, text
}

// TestRandomPatterns reads random texts by random patterns: as the server, or not.
func TestRandomPatterns(t *testing.T) {
	conn := connect(t)
	if _, err := conn.Exec(context.Background(), `CREATE FUNCTION run(t text, p text) RETURNS text LANGUAGE plpgsql AS
		$$ BEGIN RETURN to_timestamp(t, p)::timestamp::text || '|' || to_date(t, p); EXCEPTION WHEN others THEN RETURN 'error ' || sqlerrm; END $$`); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	keywords := slices.Sorted(maps.Keys(patternKeywords))
	var patterns, texts []string
	for len(patterns) < 20000 {
		if pattern, text := randomPattern(r, keywords); takesMomentPattern(pattern) {
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
	answered, declined := 0, 0
	for i, w := range want {
		args := []vector.Value{{Str: texts[i]}, {Str: patterns[i]}}
		at, err := toMoment(vector.TimestampTZ)(args)
		day, _ := toMoment(vector.Date)(args)
		if err != nil {
			if !strings.HasPrefix(w, "error ") {
				declined++
			}
			continue
		}
		answered++
		moment, date, _ := strings.Cut(w, "|")
		if strings.HasPrefix(w, "error ") || parse(t, vector.Timestamp, "'"+moment+"'") != at || parse(t, vector.Date, "'"+date+"'") != day {
			t.Errorf("%q as %q is %d, %d; the server says %s", texts[i], patterns[i], at.I, day.I, w)
		}
	}
	t.Logf("%d answered, %d left to the server", answered, declined)
	if answered < 5000 {
		t.Errorf("%d answered", answered)
	}
}
