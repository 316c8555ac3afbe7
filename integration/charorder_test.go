package integration

import (
	"fmt"
	"testing"
)

// charsSchema has char(n) under several collations, with blanks, what sorts before blanks, and what a collation
// does not look at first.
const charsSchema = `CREATE TABLE chars (id int PRIMARY KEY, c char(6) COLLATE "C", w char(10) COLLATE "C", e char(6) COLLATE "en-x-icu", g char(6) COLLATE "de-x-icu", d char(6), n int NOT NULL);
INSERT INTO chars SELECT i, v, CASE WHEN i % 5 > 0 THEN v || CASE i % 3 WHEN 0 THEN '' WHEN 1 THEN 'x' ELSE E'\t' END END, v, v, v, i % 10
 FROM (SELECT i, (ARRAY['a', E'a\t', E'a\x01b', 'a b', 'A', 'ab', 'a-b', 'Ab', 'b', '', ' a', 'ä', 'Ä', 'z', 'é', 'e', 'aaaaaa', 'aaaaaz', '~', NULL])[i % 20 + 1] AS v FROM generate_series(1, 3000) i) x`

// charComparisons are conditions on char(n) by order; %s is a column. Their constants are among its values: of others
// collations but C are the server's affair.
var charComparisons = []string{"%s < 'b'", "%s <= 'a'", "%s > 'a '", "%s >= 'ab    '", "NOT %s < ''", "%s BETWEEN 'A' AND 'ab'", "%s > E'a\\t'", "%s >= 'a'::char(6)", "'é' > %s", "%s > 'a'::char(9)",
	"%s < 'b'::text"}

// TestCharOrder compares char(n) by order: blanks at its end do not count, what would sort before them does.
func TestCharOrder(t *testing.T) {
	s := privateStack(t, charsSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	check := func(sql string, format []int16, params ...string) {
		t.Helper()
		s.accelerates(t, 1, func() {
			want, got := ask(t, direct, sql, format, params...), ask(t, proxy, sql, format, params...)
			if want.err != "" {
				t.Errorf("%s: the server itself: %s", sql, want.err)
			}
			if got.String() != want.String() {
				t.Errorf("%s: %s", sql, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		})
		if t.Failed() {
			t.Fatal(sql)
		}
	}
	for _, column := range []string{"c", "w", "e", "g", "d"} {
		for i, c := range charComparisons {
			where := fmt.Sprintf(c, column)
			p := protocols[i%len(protocols)]
			check("SELECT count(*), sum(n), min(id), max(id) FROM chars WHERE "+where, p.format)
			check("SELECT n, count(*) FILTER (WHERE "+where+") FROM chars GROUP BY n ORDER BY n", p.format)
		}
		for _, p := range protocols {
			check("SELECT "+column+", count(*) FROM chars GROUP BY 1 ORDER BY 1", p.format)
			check("SELECT id, "+column+" FROM chars WHERE n = 3 ORDER BY "+column+" DESC NULLS LAST, id LIMIT 50", p.format)
			check("SELECT min("+column+"), max("+column+") FROM chars", p.format)
			if p.format != nil {
				check("SELECT count(*), sum(n) FROM chars WHERE "+column+" >= $1 AND "+column+" < $2", p.format, "a", "b ")
			}
		}
	}
	for _, p := range protocols {
		check("SELECT count(*), min(id) FROM chars WHERE c < 'aaaaaab' AND w >= 'ax' AND d <> 'q'", p.format)
		check("SELECT count(*), min(id) FROM chars WHERE c < w", p.format)
		check("SELECT a.id, b.id FROM chars a JOIN chars b ON a.c > b.w AND a.n = b.n WHERE a.id < 12 AND b.id < 60 ORDER BY 1, 2", p.format)
	}
}
