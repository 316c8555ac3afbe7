package integration

import "testing"

const formsSchema = `
CREATE TABLE a (id int PRIMARY KEY, g int NOT NULL, b bigint NOT NULL, m bigint NOT NULL, f float8, r real, c char(6), d date, t timestamp, x text);
CREATE TABLE o (id int PRIMARY KEY, g int NOT NULL, b bigint NOT NULL, m bigint NOT NULL, f float8, r real, c char(6), d date, t timestamp, x text);
INSERT INTO a SELECT i, i % 17, (i % 50) * 4000000000000007, (i % 7) * 3000000000000011 - 9000000000000000000, nullif(i % 13, 5) / 4.0, (i % 11)::real, 'c' || i % 23, date '2024-01-01' + i % 90, timestamp '2024-01-01' + i % 200 * interval '12 hours', 'w' || i % 31 FROM generate_series(1, 700) i;
INSERT INTO o SELECT i, i % 19, (i % 60) * 4000000000000007, (i % 5) * 3000000000000011 - 9000000000000000000, nullif(i % 9, 4) / 4.0, (i % 8)::real, 'c' || i % 29, date '2024-02-01' + i % 60, timestamp '2024-01-10' + i % 90 * interval '12 hours', 'w' || i % 37 FROM generate_series(1, 500) i;
UPDATE a SET f = 'NaN' WHERE id % 100 = 3;
UPDATE o SET f = 'NaN' WHERE id % 100 = 4;
UPDATE o SET f = 'infinity' WHERE id % 100 = 5;
UPDATE a SET f = '-0' WHERE f = 0;
UPDATE a SET c = E'c1\t' WHERE id % 50 = 7;
UPDATE a SET c = '' WHERE id % 50 = 8;
ANALYZE;
`

// TestFormsOfBlocks: sub-selects, joins and derived tables of forms that are answered here.
func TestFormsOfBlocks(t *testing.T) {
	s := privateStack(t, formsSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	must(t, proxy, "SET pgaccel.mode = 'force'")
	for _, sql := range []string{
		// Floats are found by each other: NaNs, and the two zeros.
		"SELECT count(*), sum(id) FROM a WHERE f IN (SELECT f FROM o)",
		"SELECT count(*), sum(id) FROM a WHERE f NOT IN (SELECT f FROM o WHERE f IS NOT NULL)",
		"SELECT count(*), sum(id) FROM a WHERE f NOT IN (SELECT f FROM o)",
		"SELECT id, f IN (SELECT f FROM o WHERE id < 9) FROM a ORDER BY id",
		"SELECT count(*), sum(a.id + o.id) FROM a JOIN o ON a.f = o.f AND o.id < 60",
		"SELECT count(*), sum(a.id + o.id) FROM a JOIN o ON a.f = o.r",
		"SELECT a.id, o.id FROM a LEFT JOIN o ON o.r = a.f AND o.id < 20 ORDER BY 1, 2",
		"SELECT a.id, o.id FROM a FULL JOIN o ON o.f = a.f AND o.g = a.g ORDER BY 1, 2",
		"SELECT count(*) FROM a WHERE r > ALL (SELECT f FROM o WHERE o.g = a.g AND f < 1)",
		"SELECT count(*) FROM a WHERE r < ANY (SELECT f FROM o)",
		"SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM o WHERE o.g = a.g AND o.f > a.f)",
		"SELECT id, (SELECT max(id) FROM o WHERE o.r = a.r) FROM a ORDER BY id",
		// A constant is looked for.
		"SELECT count(*) FROM a WHERE 5 NOT IN (SELECT g FROM o WHERE id < 4)",
		"SELECT count(*) FROM a WHERE 5 IN (SELECT g FROM o)",
		"SELECT count(*), 99 IN (SELECT nullif(g, 3) FROM o) FROM a GROUP BY 2",
		"SELECT count(*) FROM a WHERE 0.5 = ANY (SELECT f FROM o) AND 7 > ALL (SELECT g FROM o WHERE g < 7)",
		// Keys of several columns whose values 64 bits do not hold together.
		"SELECT count(*), sum(a.id + o.id) FROM a JOIN o ON a.b = o.b AND a.m = o.m",
		"SELECT count(*), sum(a.id + o.id) FROM a JOIN o ON a.b = o.b AND a.m = o.m AND a.f = o.f",
		"SELECT a.id, o.id FROM a LEFT JOIN o ON a.b = o.b AND a.m = o.m AND o.x = a.x ORDER BY 1, 2",
		"SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM o WHERE o.b = a.b AND o.m = a.m AND o.f = a.f)",
		"SELECT count(*) FROM a WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.b = a.b AND o.m = a.m AND o.id < 0)",
		"SELECT id, (SELECT sum(o.id) FROM o WHERE o.b = a.b AND o.m = a.m) FROM a ORDER BY id",
		// The order of char(n) counts no trailing blanks.
		"SELECT count(*), min(id) FROM a WHERE c < 'c1'",
		"SELECT count(*), min(id) FROM a WHERE c >= 'c1   '",
		"SELECT count(*) FROM a WHERE c BETWEEN 'c1' AND 'c2' OR c > 'c9        '",
		"SELECT count(*) FROM a JOIN o ON a.g = o.g AND a.c < o.c",
		"SELECT id, rank() OVER (ORDER BY c) FROM a ORDER BY id",
		// Conditions that may fail, over what yields rows otherwise than by a table.
		"SELECT count(*) FROM a FULL JOIN o ON a.id = o.id WHERE o.d = o.t",
		"SELECT count(*) FROM a LEFT JOIN (SELECT id, d, t FROM o WHERE g > 3) o ON a.id = o.id WHERE o.d < o.t",
		"SELECT count(*) FROM (SELECT id, d, t FROM a WHERE g > 3 UNION ALL SELECT id, d, t FROM o) u WHERE u.d < u.t",
		"SELECT count(*) FROM (SELECT d, t, row_number() OVER (PARTITION BY g ORDER BY id) AS n FROM a) u WHERE u.d < u.t AND n < 5",
		"SELECT count(*) FROM (SELECT DISTINCT ON (d, t) d, t, id FROM a ORDER BY d, t, id) u WHERE u.d < u.t",
		"SELECT count(*) FROM a LEFT JOIN (SELECT g, count(*) + max(g) AS n FROM o GROUP BY g) o ON a.g = o.g WHERE o.n + 1 > 5",
		// A sub-select that GROUP BY has, too.
		"SELECT (SELECT max(o.id) FROM o WHERE o.g = a.g), count(*) FROM a GROUP BY (SELECT max(o.id) FROM o WHERE o.g = a.g) ORDER BY 1",
		"SELECT g + (SELECT min(g) FROM o), count(*) FROM a GROUP BY g + (SELECT min(g) FROM o) HAVING count(*) > 3 ORDER BY 1",
		"SELECT (SELECT max(o.id) FROM o WHERE o.g = a.g) IS NULL, count(*) FROM a GROUP BY (SELECT max(o.id) FROM o WHERE o.g = a.g) ORDER BY (SELECT max(o.id) FROM o WHERE o.g = a.g)",
		// Aggregates of sub-selects in sub-selects.
		"SELECT id FROM a WHERE g = (SELECT max((SELECT min(g) FROM a)) FROM o WHERE o.g = a.g) ORDER BY 1",
		"SELECT id, (SELECT sum((SELECT max(i.id) FROM a i WHERE i.g = o.g)) FROM o WHERE o.g = a.g) FROM a ORDER BY id",
		// A WITH query that nothing reads.
		"WITH w AS (SELECT 1 / 0 FROM o) SELECT count(*) FROM a",
		"WITH w AS MATERIALIZED (SELECT id FROM o), v AS (SELECT g FROM o) SELECT count(*) FROM a WHERE g IN (SELECT g FROM v)",
	} {
		for _, p := range protocols {
			want := ask(t, direct, sql, p.format)
			if want.err != "" {
				t.Errorf("%s\nthe server itself: %s", sql, want.err)
				break
			}
			s.accelerates(t, 1, func() {
				if got := ask(t, proxy, sql, p.format); got.String() != want.String() {
					t.Errorf("%s (%s)\n%s", sql, p.name, firstDifference([]byte(got.String()), []byte(want.String())))
				}
			})
		}
	}
	// Where a condition fails for a row that another one removes, the server decides.
	for _, sql := range []string{
		"SELECT count(*) FROM (SELECT id, g FROM a WHERE g <> 5 UNION ALL SELECT id, g FROM o WHERE g <> 5) u WHERE 10 / (g - 5) > 1",
		"SELECT count(*) FROM a LEFT JOIN (SELECT id, g FROM o WHERE g <> 5) o ON a.id = o.id WHERE 10 / (o.g - 5) > 1",
		"SELECT count(*) FROM (SELECT g, row_number() OVER (PARTITION BY g ORDER BY id) AS n FROM a WHERE g <> 5) u WHERE 10 / (g - 5) > 1",
	} {
		s.forwardsAll(t, func() {
			if got, want := ask(t, proxy, sql, nil), ask(t, direct, sql, nil); got.String() != want.String() || got.err != want.err {
				t.Errorf("%s: %s %s, want %s", sql, got.String(), got.err, want.err)
			}
		})
	}
}
