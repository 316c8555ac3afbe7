package integration

import "testing"

// TestComputedTextOrder orders text that no column's dictionary holds, under collations of which only
// the server knows the order: it ranks the texts, and the rows are given here.
func TestComputedTextOrder(t *testing.T) {
	s := privateStack(t, `
CREATE TABLE words (id int PRIMARY KEY, a text COLLATE "en-x-icu", b text COLLATE "en-x-icu", c char(6) COLLATE "en-x-icu", d text COLLATE "de-x-icu", n int NOT NULL);
INSERT INTO words SELECT i, (ARRAY['zebra','Äpfel','apfel','Apfel','éclair','a b','a-b','ab','_x','10','9',NULL,'','ß','ss','z'])[i % 16 + 1],
	(ARRAY['Zebra','äpfel','b','B','ä'])[i % 5 + 1] || i % 3, (ARRAY['x','X y','ä',NULL])[i % 4 + 1], (ARRAY['Ö','o','p','oe'])[i % 4 + 1], i % 7
FROM generate_series(1, 3000) i;
VACUUM ANALYZE;
`)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	if _, err := proxy.Exec(t.Context(), "SET pgaccel.mode = 'force'").ReadAll(); err != nil {
		t.Fatal(err)
	}
	for i, sql := range []string{
		`SELECT a, count(*) FROM words GROUP BY a ORDER BY a`,
		`SELECT substring(a, 1, 1) x, count(*) FROM words GROUP BY 1 ORDER BY 1`,
		`SELECT substring(a, 1, 1) x, count(*) FROM words GROUP BY 1 ORDER BY 1 DESC NULLS LAST LIMIT 4`,
		`SELECT CASE WHEN n > 3 THEN a ELSE b END x, count(*), sum(n) FROM words GROUP BY 1 ORDER BY 1`,
		`SELECT coalesce(a, b) x, n FROM words WHERE id < 300 ORDER BY coalesce(a, b) DESC, n, id`,
		`SELECT coalesce(a, b) x, id FROM words ORDER BY coalesce(a, b), id LIMIT 20 OFFSET 7`,
		`SELECT * FROM (SELECT a x, count(*) c FROM words GROUP BY a UNION ALL SELECT b, count(*) FROM words GROUP BY b) s ORDER BY x, c`,
		`SELECT a FROM words UNION SELECT b FROM words ORDER BY 1`,
		`SELECT DISTINCT a, d FROM words ORDER BY a, d DESC`,
		`SELECT a, count(*) FROM words GROUP BY a ORDER BY a COLLATE "C"`,
		`SELECT x, r FROM (SELECT x, rank() OVER (ORDER BY x) r FROM (SELECT coalesce(a, b) x FROM words) s) q WHERE r < 900 ORDER BY r, x`,
		`SELECT x, count(*) OVER (PARTITION BY x ORDER BY y), y FROM (SELECT substring(a, 1, 2) x, substring(b, 1, 3) y FROM words GROUP BY 1, 2) s ORDER BY 1, 3`,
		`SELECT coalesce(a, b) x FROM words WHERE id < 0 ORDER BY 1`,
		`SELECT v.column1, count(*) FROM words w JOIN (VALUES ('Äpfel'), ('zebra'), ('apfel')) v ON v.column1 = w.a COLLATE "C" GROUP BY 1 ORDER BY 1`,
	} {
		p := protocols[i%len(protocols)]
		want := ask(t, direct, sql, p.format)
		if want.err != "" {
			t.Fatalf("%s\nthe server itself: %s", sql, want.err)
		}
		s.accelerates(t, 1, func() {
			if got := ask(t, proxy, sql, p.format); got.String() != want.String() {
				t.Errorf("%s\n%s", sql, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		})
	}
	t.Log(reasons(t, s))
}
