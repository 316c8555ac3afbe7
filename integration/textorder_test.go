package integration

import "testing"

// TestComputedTextOrder orders and compares text that no column's dictionary holds, under collations of which only
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
		// Comparisons: with a constant that no row has, of two columns, of computed text.
		`SELECT count(*), min(a), max(a) FROM words WHERE a < 'b'`,
		`SELECT id FROM words WHERE a BETWEEN 'apfelmus' AND 'y' AND b >= 'ä' ORDER BY id`,
		`SELECT count(*) FROM words WHERE a < b`,
		`SELECT n, count(*) FILTER (WHERE a || b < b || 'k') FROM words GROUP BY n ORDER BY n`,
		`SELECT id FROM words WHERE replace(a, 'p', 'Q') > 'AQ' AND substring(b, 2) <= 'b1' ORDER BY id`,
		`SELECT count(*) FROM words WHERE CASE WHEN a < 'b' THEN a || 'q' > b ELSE coalesce(b, '') < 'q' || a END`,
		`SELECT count(*) FROM words WHERE c < 'x y' AND c > 'a'`,
		`SELECT count(*) FROM words v JOIN words w ON v.id = w.id AND v.a > w.b`,
		`SELECT n, min(a) < max(b), min(a || b) < 'a b' FROM words GROUP BY n HAVING max(a || 'x') > min(b) ORDER BY n`,
		`SELECT 'a-b'::text COLLATE "C" < 'ab', n FROM words WHERE id = 7`,
		// The first and the last of computed text.
		`SELECT n, min(a || b), max(b || a) FILTER (WHERE id % 3 = 0) FROM words GROUP BY n ORDER BY n`,
		`SELECT min(replace(a, 'p', 'Q')), max(replace(b, 'B', 'ñ')), min(substring(a, 2)), min(a || n) FILTER (WHERE id < 0) FROM words`,
		`SELECT n % 2, n, min(a || b), max(a || b), percentile_disc(0.4) WITHIN GROUP (ORDER BY a || b) FROM words GROUP BY ROLLUP (n % 2, n) ORDER BY 1, 2`,
		`SELECT id, max(coalesce(a, b)) OVER (PARTITION BY n ORDER BY id) FROM words ORDER BY id LIMIT 50`,
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
