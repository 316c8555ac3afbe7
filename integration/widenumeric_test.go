package integration

import "testing"

const wideNumericSchema = `
CREATE TABLE rates (k numeric PRIMARY KEY, name text);
CREATE TABLE sums (id int PRIMARY KEY, g int NOT NULL, n numeric, w numeric(30,6), h numeric(5,-2), r numeric(12,2), i int);
CREATE TABLE loose (id int, n numeric, t text);
ALTER TABLE loose REPLICA IDENTITY FULL;
CREATE TABLE many (id int PRIMARY KEY, n numeric);
INSERT INTO many SELECT i, i * 1.5 FROM generate_series(1, 140000) i;
CREATE TABLE special (id int PRIMARY KEY, n numeric, w numeric(40,2));
CREATE TABLE tied (id int PRIMARY KEY, n numeric, m numeric);
INSERT INTO tied VALUES (1, 1.5, 1.50), (2, 1.50, 1.5), (3, 0, 0.0), (4, 0.000, 2), (5, 2, 2.0), (6, NULL, 1), (7, 10, 10.000);
INSERT INTO rates SELECT (i / 4.0)::numeric(20,2), 'rate ' || i % 7 FROM generate_series(-100, 300) i;
INSERT INTO sums SELECT i, i % 13, CASE WHEN i % 11 > 0 THEN CASE i % 3 WHEN 0 THEN (i % 97)::numeric WHEN 1 THEN (i % 89 + 0.5)::numeric(20,1) ELSE (i % 400 - 100.25)::numeric(20,2) END END,
	CASE WHEN i % 7 > 0 THEN (i % 120) * 1234567890123.456789 - 3 END, (i * 137) % 99999, (i % 150) / 4.0, i % 100 FROM generate_series(1, 3000) i;
INSERT INTO loose SELECT i % 50, CASE WHEN i % 5 > 0 THEN ((i % 40) / 8.0)::numeric(20,3) END, 'x' || i % 3 FROM generate_series(1, 500) i;
INSERT INTO special SELECT i, i * 1.50, i / 3.0 FROM generate_series(1, 500) i;`

// TestWideNumeric asks of numeric columns whose values need not fit 64 bits: of any scale, and of a wide one.
// Rows are found by a key of such a type, or by all of their values, when they change.
func TestWideNumeric(t *testing.T) {
	s := privateStack(t, wideNumericSchema)
	direct := connect(t, s.direct.url("postgres"))
	change := func(list ...string) {
		t.Helper()
		for _, sql := range list {
			if a := ask(t, direct, sql, nil); a.err != "" {
				t.Fatal(a)
			}
		}
	}
	change("UPDATE rates SET name = 'changed' WHERE name = 'rate 3'", "UPDATE rates SET k = k + 1000.00 WHERE name = 'rate 4'", "DELETE FROM rates WHERE name = 'rate 5'", "UPDATE sums SET n = n + 1 WHERE id % 17 = 0",
		"INSERT INTO sums SELECT 5000 + i, i, 12345678901234567890.5 * i, 0.000001, 100, 1, i FROM generate_series(1, 50) i", "DELETE FROM loose WHERE n = 0.25", "UPDATE loose SET t = 'y' WHERE n = 1.5")
	for _, sql := range []string{
		"SELECT * FROM rates ORDER BY k",
		"SELECT id, n, w, h, r FROM sums ORDER BY id",
		"SELECT id, n FROM sums ORDER BY n DESC NULLS LAST, id LIMIT 60",
		"SELECT n, w FROM sums WHERE n = 7",
		"SELECT count(*), count(n), sum(n), avg(n), sum(w), avg(w), sum(h), max(w), min(h) FROM sums",
		"SELECT g, sum(n), avg(w), count(*) FILTER (WHERE n > 3.75) FROM sums GROUP BY g ORDER BY g",
		"SELECT w, count(*) FROM sums GROUP BY w ORDER BY w",
		"SELECT h, count(*), sum(n) FROM sums GROUP BY h ORDER BY 1 DESC LIMIT 30",
		"SELECT DISTINCT w FROM sums ORDER BY 1 LIMIT 50",
		"SELECT count(DISTINCT w), sum(DISTINCT w) FROM sums",
		"SELECT count(*) FROM sums WHERE n = 10.5", "SELECT count(*) FROM sums WHERE n = 10.500000", "SELECT count(*) FROM sums WHERE n < 10", "SELECT count(*) FROM sums WHERE n > -0.25000000000000000000000000001",
		"SELECT count(*) FROM sums WHERE n BETWEEN 3 AND 40.25", "SELECT count(*) FROM sums WHERE n IN (1, 2.5, 3.00, 79.75, 4, 5, 6, 7, 8)", "SELECT count(*) FROM sums WHERE n <> 10.5 AND w IS NOT NULL", "SELECT count(*) FROM sums WHERE n IS DISTINCT FROM 10.5",
		"SELECT count(*) FROM sums WHERE n > 1e30", "SELECT count(*) FROM sums WHERE w > 123456789012345678901234567890.5", "SELECT count(*) FROM sums WHERE w <= 12345678901231.567889",
		"SELECT count(*) FROM sums WHERE n = i", "SELECT count(*) FROM sums WHERE n > r", "SELECT count(*) FROM sums WHERE n < w", "SELECT count(*) FROM sums WHERE h >= n",
		"SELECT id, n + 1, n - r, n * 2.50, n * w, -n, n / 4, n % 3 FROM sums WHERE id <= 300 ORDER BY id",
		"SELECT id, round(n, 1), round(n), trunc(n), abs(n), ceil(n), floor(n), sign(n) FROM sums WHERE id < 500 ORDER BY id",
		"SELECT id, n::int, n::float8, n::text, n::numeric(12,3), w::text FROM sums WHERE id < 500 ORDER BY id",
		"SELECT id, coalesce(n, 0), CASE WHEN g > 5 THEN n ELSE r END FROM sums ORDER BY id LIMIT 200",
		"SELECT sum(n * i), sum(n + w), avg(n - 1), sum(w * 1.5) FROM sums",
		"SELECT round(n), count(*) FROM sums WHERE id < 5000 GROUP BY 1 ORDER BY 1",
		"SELECT n > 5, count(*) FROM sums GROUP BY 1 ORDER BY 1",
		"SELECT r.k, count(*), sum(s.i) FROM rates r JOIN sums s ON s.n = r.k GROUP BY r.k ORDER BY r.k",
		"SELECT s.id, s.n, r.k, r.name FROM sums s LEFT JOIN rates r ON r.k = s.n ORDER BY s.id LIMIT 500",
		"SELECT count(*) FROM sums a JOIN sums b ON a.n = b.n WHERE a.id < 300",
		"SELECT count(*) FROM sums s JOIN loose l ON l.n = s.n",
		"SELECT count(*) FROM sums s WHERE EXISTS (SELECT 1 FROM rates r WHERE r.k = s.n AND r.name = 'changed')",
		"SELECT count(*) FROM sums s WHERE s.n NOT IN (SELECT k FROM rates)",
		"SELECT id, row_number() OVER (PARTITION BY w ORDER BY id), sum(n) OVER (PARTITION BY g) FROM sums ORDER BY id LIMIT 300",
		"SELECT id, rank() OVER (ORDER BY n) FROM sums ORDER BY id LIMIT 300",
		"SELECT x.g, max(x.s) FROM (SELECT g, i, sum(w) AS s FROM sums GROUP BY g, i) x GROUP BY x.g ORDER BY 1",
		"SELECT id, n, t FROM loose ORDER BY id, n, t",
		"SELECT t, sum(n), count(*) FROM loose GROUP BY t ORDER BY t",
		"SELECT * FROM tied ORDER BY id", "SELECT n, id FROM tied ORDER BY n, id", "SELECT count(*) FROM tied WHERE n = 1.5", "SELECT id FROM tied WHERE n = m ORDER BY id", "SELECT a.id, b.id, a.n, b.m FROM tied a JOIN tied b ON a.n = b.m ORDER BY 1, 2",
		"SELECT a.id, b.id, a.n::text FROM tied a LEFT JOIN tied b ON a.n = b.n ORDER BY 1, 2", "SELECT sum(n), sum(m), avg(n) FROM tied", "SELECT id, n::text FROM tied WHERE n IN (0.0, 2.00, 1.5) ORDER BY id", "SELECT id, rank() OVER (ORDER BY n DESC), sum(n) OVER (ORDER BY n) FROM tied ORDER BY id",
		"SELECT x.n, y.n, y.id FROM tied x JOIN (SELECT n, id FROM tied) y ON x.n = y.n WHERE x.n::text = '1.5' ORDER BY 3",
		"SELECT count(*), sum(n), max(w), min(w) FROM special",
	} {
		s.everyAnswer(t, true, sql)
	}
	s.everyAnswer(t, true, "SELECT count(*), sum(n) FROM sums WHERE n = $1", "10.50")
	s.everyAnswer(t, true, "SELECT count(*), sum(n) FROM sums WHERE n > $1 AND w < $2", "10.50", "99999999999999.5")
	for _, sql := range []string{ // which of equal values is shown is the server's choice
		"SELECT n, count(*) FROM tied GROUP BY n ORDER BY n", "SELECT DISTINCT n FROM tied ORDER BY 1", "SELECT max(n) FROM tied", "SELECT count(DISTINCT n) FROM tied"} {
		s.everyAnswer(t, false, sql)
	}
	// What is no decimal is held, and forwards only who reads it.
	change("INSERT INTO special VALUES (1000, 'NaN', 0), (1001, 'Infinity', 1), (1002, 1e60, 2), (1003, '-Infinity', 3)")
	s.everyAnswer(t, true, "SELECT count(*), sum(w) FROM special")
	s.everyAnswer(t, false, "SELECT sum(n) FROM special")
	s.everyAnswer(t, false, "SELECT id, n FROM special ORDER BY n")
	change("DELETE FROM special WHERE n = 'NaN'", "UPDATE special SET w = -1 WHERE n = 'Infinity'", "UPDATE special SET n = 2.5 WHERE n > 1e59 OR n < -1e59")
	s.everyAnswer(t, true, "SELECT count(*), sum(w) FROM special")
}

// TestManyNumerics asks of a column with so many different values that it is left to PostgreSQL.
func TestManyNumerics(t *testing.T) {
	s := privateStack(t, wideNumericSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, sql := range []string{"SELECT sum(n), count(n) FROM many", "SELECT count(*) FROM many WHERE n > 7"} {
		s.forwardsAll(t, func() {
			if got, want := ask(t, proxy, sql, nil), ask(t, direct, sql, nil); got.String() != want.String() {
				t.Errorf("%s: %s", sql, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		})
	}
	s.accelerates(t, 1, func() { ask(t, proxy, "SELECT count(*), max(id) FROM many", nil) })
}
