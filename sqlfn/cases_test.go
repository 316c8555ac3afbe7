package sqlfn

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// caseServer asks a session about a collation.
type caseServer struct {
	ctx       context.Context
	conn      *pgx.Conn
	collation string
}

func (s caseServer) Changing(last rune) ([]sqltype.CaseMapping, error) {
	rows, err := s.conn.Query(s.ctx, fmt.Sprintf(`SELECT ascii(c), lower(c COLLATE %[1]s), upper(c COLLATE %[1]s) FROM (SELECT chr(i) AS c FROM generate_series(1, $1::int4) i
		WHERE i NOT BETWEEN 55296 AND 57343) x WHERE lower(c COLLATE %[1]s) COLLATE "C" <> c OR upper(c COLLATE %[1]s) COLLATE "C" <> c ORDER BY 1`, s.collation), last)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[sqltype.CaseMapping])
}

func (s caseServer) Both(texts []string) (lower, upper []string, err error) {
	rows, err := s.conn.Query(s.ctx, fmt.Sprintf(`SELECT lower(s COLLATE %[1]s), upper(s COLLATE %[1]s) FROM unnest($1::text[]) WITH ORDINALITY u(s, n) ORDER BY n`, s.collation), texts)
	if err != nil {
		return nil, nil, err
	}
	for rows.Next() {
		var l, u string
		if err := rows.Scan(&l, &u); err != nil {
			return nil, nil, err
		}
		lower, upper = append(lower, l), append(upper, u)
	}
	return lower, upper, rows.Err()
}

// casedTexts are letters of which Unicode or a language says something of their own: that become several, that have a third
// case, whose case depends on the letters beside them, or that few systems know.
var casedTexts = []string{"", "São Paulo", "straße", "STRASSE", "ẞ", "İstanbul", "ıI", "i\u0307", "ŉ", "ǰ", "ΐ", "ΑΣ", "ΑΣ Σ", "Σ", "ΌΣΟΣ", "σς", "Ά Έ", "ά\u0301", "ǄǅǆǱǲǳ", "ﬁﬄ", "և", "ᾳᾼ", "ᾈ\u0345",
	"ა Ა", "Ꭰꭰᏸ", "\U00010400\U00010428", "\U0001E900\U0001E922", "\U0001D400", "\U00020BB7野屋", "\u212A\u212B\u2126", "ⓐⒶ", "Ⅷⅷ", "J\u0301Ì", "Į\u0300", "\u1E9E\u0130\u0131", "日本語", "naïve CAFÉ", "ÿŸ", "µΜμ", "ſs", "Œuvre", "ЖЁ"}

// casesOf returns the cases of a collation; nil where strings are for the server.
func casesOf(t *testing.T, conn *pgx.Conn, collation string) *sqltype.Cases {
	t.Helper()
	c, err := sqltype.AskCases(caseServer{t.Context(), conn, collation})
	if err != nil {
		t.Fatalf("%s: %v", collation, err)
	}
	return c
}

// caseCollations are collations, and whether their cases are known. Those that the server does not have are left out.
var caseCollations = map[string]bool{`"C"`: true, `"en_US.utf8"`: true, `"C.utf8"`: true, `"und-x-icu"`: true, `"en-x-icu"`: true, `"de-x-icu"`: true, `"tr-x-icu"`: false, `"az-x-icu"`: false, `"el-x-icu"`: false,
	`"lt-x-icu"`: false, `"nl-x-icu"`: true, `pg_c_utf8`: true, `pg_unicode_fast`: true}

// TestCasesAgainstPostgres compares lower() and upper() of all letters, alone and in texts at random, in many collations.
func TestCasesAgainstPostgres(t *testing.T) {
	conn := connect(t)
	for collation, known := range caseCollations {
		if _, err := conn.Exec(t.Context(), "SELECT ''::text COLLATE "+collation); err != nil {
			t.Logf("%s: %v", collation, err)
			continue
		}
		t.Run(collation, func(t *testing.T) {
			c := casesOf(t, conn, collation)
			if c == nil || !known {
				if known || c != nil {
					t.Errorf("is known: %v", c != nil)
				}
				return
			}
			texts := caseTexts(t, conn, collation)
			lower, upper, err := caseServer{t.Context(), conn, collation}.Both(texts)
			if err != nil {
				t.Fatal(err)
			}
			sigmas := 0
			for i, s := range texts {
				for f, want := range map[*Function]string{Lookup("lower", vector.Text): lower[i], Lookup("upper", vector.Text): upper[i]} {
					got, err := f.InCases(c).Apply([]vector.Value{{Str: s}})
					switch {
					case err != nil && f.Name == "lower" && strings.Contains(s, "Σ"):
						sigmas++
					case err != nil || got.Str != want:
						t.Errorf("%s(%q) is %q, %v; the server says %q", f.Name, s, got.Str, err, want)
					}
				}
			}
			t.Logf("%d texts, %d left to the server", len(texts), sigmas)
		})
	}
}

// caseTexts returns casedTexts, every character that changes, and texts of them at random.
func caseTexts(t *testing.T, conn *pgx.Conn, collation string) []string {
	list, err := caseServer{t.Context(), conn, collation}.Changing(0x1FFFF)
	if err != nil {
		t.Fatal(err)
	}
	texts := append([]string(nil), casedTexts...)
	var letters []string
	for _, m := range list {
		letters = append(letters, string(m.Char))
	}
	letters = append(letters, strings.Split("\u0300\u0301\u0307\u0308\u0345\u0323 .'-1iIjJ日\u00AD", "")...)
	texts = append(texts, letters...)
	r := rand.New(rand.NewPCG(41, 41))
	for range 5_000 {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString(letters[r.IntN(len(letters))])
			if r.IntN(3) == 0 {
				b.WriteString(letters[len(letters)-1-r.IntN(18)])
			}
		}
		texts = append(texts, b.String())
	}
	return texts
}

// TestCasesOfOthers: what no collation is known to say of, and strings without letters of another case.
func TestCasesOfOthers(t *testing.T) {
	c := casesOf(t, connect(t), `"C"`)
	for _, s := range []string{"\U00034000", "a\xff", "\xc3"} {
		for _, f := range Named("lower") {
			if v, err := f.InCases(c).Apply([]vector.Value{{Str: s}}); err == nil {
				t.Errorf("%q is %q", s, v.Str)
			}
		}
	}
}
