package integration

import "testing"

// TestLooseText compares text of nondeterministic collations, under which 'a' and 'A' are equal: the server
// says which texts are. What shows one of several is the server's to answer.
func TestLooseText(t *testing.T) {
	s := privateStack(t, `
CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE words (id int PRIMARY KEY, a text COLLATE ci, b varchar(9) COLLATE ci, c char(6) COLLATE ci, p text, n int NOT NULL, u text COLLATE ci);
INSERT INTO words SELECT i, (ARRAY['zebra','Zebra','apfel','Apfel','APFEL','a b','straße','STRASSE','_x','10',NULL,'','ä','Ä','z',E'e\u0301'])[i % 16 + 1],
	(ARRAY['Zebra','äpfel','b','B','É','x'])[i % 6 + 1], (ARRAY['x','X','äb',NULL,'ÄB'])[i % 5 + 1], (ARRAY['zebra','B'])[i % 2 + 1], i % 7, (ARRAY['one','two','Three',NULL])[i % 4 + 1]
FROM generate_series(1, 3000) i;
VACUUM ANALYZE;
`)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	if _, err := proxy.Exec(t.Context(), "SET pgaccel.mode = 'force'").ReadAll(); err != nil {
		t.Fatal(err)
	}
	check := func(i int, sql string, accelerated bool) {
		t.Helper()
		p := protocols[i%len(protocols)]
		want := ask(t, direct, sql, p.format)
		least := 0
		if accelerated {
			if least = 1; want.err != "" {
				t.Fatalf("%s\nthe server itself: %s", sql, want.err)
			}
		}
		before := int(s.queries(t, "accelerated"))
		got := ask(t, proxy, sql, p.format)
		if got.String() != want.String() {
			t.Errorf("%s\n%s", sql, firstDifference([]byte(got.String()), []byte(want.String())))
		}
		if n := int(s.queries(t, "accelerated")) - before; n != least {
			t.Errorf("%s: %d executions were accelerated, want %d\n%s", sql, n, least, reasons(t, s))
		}
	}
	for i, sql := range []string{
		`SELECT id, a, b, c FROM words WHERE id < 40 ORDER BY id`,
		`SELECT count(a), count(*) FILTER (WHERE a IS NULL), sum(length(b)), max(octet_length(a || c)) FROM words`,
		`SELECT count(*) FROM words WHERE a = 'ZEBRA'`,
		`SELECT id FROM words WHERE a <> 'Strasse' AND b = 'B' ORDER BY id`,
		`SELECT id FROM words WHERE a IN ('apfel', 'Z', 'é', 'none') ORDER BY id`,
		`SELECT count(*) FROM words WHERE a NOT IN ('apfel', 'Z') OR a IS NOT DISTINCT FROM NULL`,
		`SELECT count(*) FROM words WHERE a = b`,
		`SELECT count(*) FROM words WHERE c = 'X' OR c = 'äB   '`,
		`SELECT count(*) FROM words WHERE a || 'X' = 'zebrax' AND 'ZeB' = left(a, 3)`,
		`SELECT count(*) FROM words WHERE a < b`,
		`SELECT count(*) FROM words WHERE a <= 'APFEL' AND a >= 'a B'`,
		`SELECT count(*) FROM words WHERE a BETWEEN 'ä' AND 'Straße'`,
		`SELECT count(*), count(DISTINCT v.id) FROM words v JOIN words w ON v.a = w.b WHERE w.id < 100`,
		`SELECT count(*) FROM words v LEFT JOIN (SELECT id, c FROM words WHERE id < 9) w ON v.c = w.c AND v.id = w.id`,
		`SELECT count(*) FROM words v WHERE EXISTS (SELECT 1 FROM words w WHERE w.b = v.a AND w.n = v.n)`,
		`SELECT count(*) FROM words WHERE a NOT IN (SELECT b FROM words)`,
		`SELECT CASE a WHEN 'zebra' THEN 1 WHEN 'APFEL' THEN 2 ELSE 3 END x, count(*) FROM words GROUP BY 1 ORDER BY 1`,
		`SELECT n, count(nullif(a, 'APFEL')) FROM words GROUP BY n ORDER BY n`,
		`SELECT rank() OVER (ORDER BY a), dense_rank() OVER (PARTITION BY a ORDER BY b), id FROM words ORDER BY id`,
		`SELECT id, count(*) OVER (PARTITION BY c) FROM words ORDER BY id`,
		`SELECT count(*) FROM (SELECT a FROM words ORDER BY a LIMIT 5) s`,
		`SELECT a = 'zebra', count(*) FROM words GROUP BY a = 'zebra' ORDER BY 1`,
		`SELECT count(DISTINCT a), count(DISTINCT c) FILTER (WHERE n > 2) FROM words`,
		`SELECT n, count(DISTINCT b || 'x') FROM words GROUP BY n ORDER BY n`,
		`SELECT min(a), max(u), percentile_disc(0.3) WITHIN GROUP (ORDER BY u) FROM words`,
		`SELECT n, min(u || 'y'), max(u || b) FILTER (WHERE id < 0) FROM words GROUP BY n ORDER BY n`,
		// Groups: no two of these texts are equal.
		`SELECT u, count(*) FROM words GROUP BY u ORDER BY u`,
		`SELECT DISTINCT u, n FROM words ORDER BY u DESC, n`,
		`SELECT a, count(*) FROM words WHERE id % 16 IN (0, 2, 5, 8) GROUP BY a ORDER BY a`,
		`SELECT u FROM words UNION SELECT u || 'x' FROM words ORDER BY 1`,
		`SELECT u FROM words EXCEPT SELECT 'one' ORDER BY 1`,
		`SELECT u FROM words INTERSECT ALL SELECT u FROM words WHERE n = 3 ORDER BY 1`,
		`SELECT u, n, count(*) FROM words GROUP BY ROLLUP (u, n) ORDER BY u, n`,
		`SELECT a COLLATE "C" x, count(*) FROM words GROUP BY 1 ORDER BY 1`,
		`SELECT min(a COLLATE "C"), count(DISTINCT a COLLATE "C") FROM words WHERE a COLLATE "C" = 'zebra' OR a COLLATE "C" LIKE 'A%'`,
	} {
		check(i, sql, true)
	}
	for i, sql := range []string{
		`SELECT count(*) FROM (SELECT a FROM words GROUP BY a) s`,
		`SELECT count(*) FROM (SELECT b FROM words UNION SELECT 'X') s`,
		`SELECT count(*) FROM (SELECT u FROM words INTERSECT SELECT 'ONE') s`,
		`SELECT count(*) FROM (SELECT 'X' UNION SELECT b FROM words) s`,
		`SELECT count(*) FROM (SELECT v FROM (VALUES ('X'), ('zebra')) s (v) UNION SELECT b FROM words) s`,
		`SELECT count(*) FROM (SELECT x FROM (SELECT 'X' x UNION ALL SELECT b FROM words) r GROUP BY x) s`,
		`SELECT length(min(a)) FROM words WHERE a > 'ab'`,
		`SELECT length(max(a || 'x')) FROM words WHERE a < 'B' AND a > 'aa'`,
		`SELECT count(*) FROM words WHERE a LIKE 'a%'`,
		`SELECT count(*) FROM words WHERE replace(a, 'p', 'q') = 'x'`,
	} {
		check(i, sql, false)
	}
	t.Log(reasons(t, s))
}
