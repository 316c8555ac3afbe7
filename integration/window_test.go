package integration

import (
	"strings"
	"testing"
)

const windowSchema = `
CREATE TABLE reading (id int PRIMARY KEY, g int NOT NULL, s smallint, i int, b bigint, n numeric(10,2), f float8, r real, d date, t timestamp, z timestamptz, c time, x text, ok boolean);
INSERT INTO reading SELECT i, i % 7, (i * 37 % 101 - 50)::smallint, nullif(i * 7919 % 1009, 5), (i::bigint * 2654435761) % 1000003, (i * 31 % 5003)::numeric / 100 - 20,
	(i * 7919 % 1009)::float8 / 7, (i * 31 % 211)::real / 3, date '2024-01-01' + i * 13 % 400, timestamp '2024-01-31' + i * 17 % 3000 * interval '1 hour 7 minutes',
	timestamptz '2024-01-31 12:00+00' + i * 19 % 3000 * interval '3 hours', time '00:00' + i * 23 % 1000 * interval '61 seconds', 'w' || i * 11 % 97, i % 3 = 0
FROM generate_series(1, 1500) i;
UPDATE reading SET s = NULL, n = NULL, f = NULL, d = NULL, t = NULL, z = NULL, c = NULL, x = NULL, ok = NULL WHERE id % 29 = 3;
UPDATE reading SET f = 'NaN' WHERE id % 400 = 11;
UPDATE reading SET f = 'infinity', d = 'infinity', t = 'infinity' WHERE id % 400 = 12;
UPDATE reading SET f = '-infinity', d = '-infinity', t = '-infinity' WHERE id % 400 = 13;
UPDATE reading SET b = 9223372036854775807 WHERE id = 14;
VACUUM ANALYZE;
`

// windowQueries are windows of which every row has one answer, in the order of id.
var windowQueries = []string{
	"sum(i) OVER w, avg(i) OVER w, count(i) OVER w, min(x) OVER w, max(x) OVER w, bool_and(ok) OVER w, bit_xor(i) OVER w FROM reading WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN 5 PRECEDING AND 2 FOLLOWING)",
	"sum(n) OVER w, avg(n) OVER w, min(n) OVER w, max(n) OVER w, stddev(n) OVER w, var_pop(i) OVER w FROM reading WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)",
	"sum(v) OVER w, avg(v) OVER w, min(v) OVER w, max(v) OVER w FROM (SELECT id, g, n / (g + 1) AS v FROM reading) q WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
	"sum(s) OVER w, sum(i) OVER w, sum(b % 1000) OVER w, avg(b) OVER w, avg(s) OVER w FROM reading WINDOW w AS (ORDER BY id ROWS BETWEEN CURRENT ROW AND 9 FOLLOWING EXCLUDE CURRENT ROW)",
	"sum(r::float8) OVER w, avg(r) OVER w, stddev(r) OVER w, min(r) OVER w, max(r) OVER w FROM reading WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN 6 PRECEDING AND 1 PRECEDING)",
	"sum(f) FILTER (WHERE f < 99) OVER w, avg(f) FILTER (WHERE f < 99) OVER w, min(f) OVER w, max(f) OVER w, variance(f) FILTER (WHERE id % 400 NOT IN (11, 12, 13)) OVER w FROM reading WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN 4 PRECEDING AND 4 FOLLOWING EXCLUDE CURRENT ROW)",
	"sum(f) FILTER (WHERE id % 400 NOT IN (11, 12, 13)) OVER (ORDER BY id), avg(f) FILTER (WHERE id % 400 NOT IN (11, 12, 13)) OVER (ORDER BY id DESC ROWS UNBOUNDED PRECEDING), sum(r::float8 / 3) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) FROM reading",
	"count(*) OVER w, sum(b % 1000) OVER w, max(n) FILTER (WHERE ok) OVER w FROM reading WINDOW w AS (ORDER BY i RANGE BETWEEN 10 PRECEDING AND 5 FOLLOWING)",
	"count(*) OVER w, sum(b % 1000) OVER w FROM reading WINDOW w AS (PARTITION BY g ORDER BY s DESC RANGE BETWEEN 3 PRECEDING AND 20::bigint FOLLOWING EXCLUDE TIES)",
	"count(*) OVER (ORDER BY b RANGE BETWEEN 9223372036854775807 PRECEDING AND 100 PRECEDING), count(*) OVER (ORDER BY b DESC RANGE BETWEEN 5000 FOLLOWING AND 9223372036854775000 FOLLOWING) FROM reading",
	"count(*) OVER w, sum(i) OVER w FROM reading WINDOW w AS (ORDER BY n NULLS FIRST RANGE BETWEEN 1.255 PRECEDING AND 0.5 FOLLOWING EXCLUDE GROUP)",
	"count(*) OVER w, sum(i) OVER w FROM reading WINDOW w AS (ORDER BY n DESC RANGE BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING)",
	"count(*) OVER (ORDER BY f RANGE BETWEEN 1.5 PRECEDING AND 3 FOLLOWING), count(*) OVER (ORDER BY f DESC NULLS LAST RANGE BETWEEN 1000000000000 PRECEDING AND 1 FOLLOWING), count(*) OVER (ORDER BY r RANGE BETWEEN 0.1 PRECEDING AND '0.34' FOLLOWING) FROM reading",
	"count(*) OVER (ORDER BY f RANGE BETWEEN 0 PRECEDING AND 0 FOLLOWING EXCLUDE CURRENT ROW), count(*) OVER (ORDER BY f RANGE BETWEEN 2 FOLLOWING AND 5 FOLLOWING) FROM reading",
	"count(*) OVER (ORDER BY d RANGE BETWEEN '7 days' PRECEDING AND interval '1 month' FOLLOWING), sum(i) OVER (PARTITION BY g ORDER BY d DESC RANGE BETWEEN interval '3 days' PRECEDING AND CURRENT ROW) FROM reading",
	"count(*) OVER (ORDER BY t RANGE BETWEEN '1 month' PRECEDING AND '90 minutes' FOLLOWING), sum(i) OVER (ORDER BY t DESC NULLS LAST RANGE BETWEEN '1 year 2 days' PRECEDING AND '1 day' PRECEDING EXCLUDE TIES) FROM reading",
	"count(*) OVER (ORDER BY z RANGE BETWEEN '1 month' PRECEDING AND '1 day' FOLLOWING), sum(i) OVER (ORDER BY z RANGE BETWEEN CURRENT ROW AND '36 hours' FOLLOWING) FROM reading",
	"count(*) OVER (ORDER BY c RANGE BETWEEN '10 minutes' PRECEDING AND '1 hour' FOLLOWING), count(*) OVER (ORDER BY c DESC RANGE BETWEEN '20 hours' FOLLOWING AND '30 hours' FOLLOWING) FROM reading",
	"count(*) OVER w, sum(n) OVER w, max(x) OVER w FROM reading WINDOW w AS (PARTITION BY g ORDER BY s GROUPS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP)",
	"count(*) OVER w, sum(n) OVER w FROM reading WINDOW w AS (ORDER BY g DESC GROUPS BETWEEN 1 FOLLOWING AND 3 FOLLOWING)",
	"count(*) OVER w, sum(n) OVER w FROM reading WINDOW w AS (ORDER BY s GROUPS BETWEEN UNBOUNDED PRECEDING AND 4 PRECEDING EXCLUDE TIES)",
	"first_value(x) OVER w, last_value(n) OVER w, nth_value(i, 3) OVER w, nth_value(x, g) OVER w FROM reading WHERE g > 0 WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN 2 PRECEDING AND 3 FOLLOWING EXCLUDE CURRENT ROW)",
	"first_value(s) OVER w, last_value(s) OVER w, nth_value(s, 9) OVER w FROM reading WINDOW w AS (ORDER BY s GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES)",
	"first_value(s) OVER w, last_value(s) OVER w, nth_value(s, 20) OVER w FROM reading WINDOW w AS (ORDER BY s DESC RANGE BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE GROUP)",
	"nth_value(i, 4) OVER (ORDER BY id), nth_value(x, 2) OVER (PARTITION BY g ORDER BY id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM reading",
	"lag(x, g, 'none') OVER (ORDER BY id), lead(n, g - 3, 0.5) OVER (PARTITION BY g ORDER BY id), lag(i, nullif(g, 2)) OVER (ORDER BY id), lead(x, 2, x) OVER (PARTITION BY ok ORDER BY id), ntile(nullif(g, 0)) OVER (PARTITION BY g ORDER BY id) FROM reading",
	"sum(i) OVER (w ORDER BY id), count(*) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING), max(x) OVER (v ROWS 2 PRECEDING), min(x) OVER v FROM reading WINDOW w AS (PARTITION BY g), v AS (w ORDER BY id DESC)",
	"a, b, c, m, k FROM (SELECT g AS id, string_agg(x, ',' ORDER BY id) a, string_agg(DISTINCT x, '' ORDER BY x DESC) b, string_agg(DISTINCT x, '-') FILTER (WHERE ok) c, mode() WITHIN GROUP (ORDER BY s) m, mode() WITHIN GROUP (ORDER BY x DESC) k, count(*) FROM reading GROUP BY g) q",
	"a, m, l, n FROM (SELECT s AS id, string_agg(x || i, ';' ORDER BY d DESC, id) a, mode() WITHIN GROUP (ORDER BY d) m, mode() WITHIN GROUP (ORDER BY f) FILTER (WHERE g > 2) l, length(string_agg(x, NULL ORDER BY id)) n FROM reading GROUP BY s HAVING max(i) > 900) q",
	"o FROM (SELECT 1 AS id, string_agg(a, ' / ' ORDER BY g) o FROM (SELECT g, string_agg(DISTINCT x, ',') a FROM reading GROUP BY g) p) q",
	"a, m FROM (SELECT 1 AS id, string_agg(x, ',' ORDER BY id) a, mode() WITHIN GROUP (ORDER BY n) m FROM reading WHERE id < 0) q",
	"p FROM (SELECT id, i, lag(i) OVER (PARTITION BY g ORDER BY id) AS p FROM reading) q WHERE p IS NULL OR i - p > 300",
	"z - p FROM (SELECT id, z, g, lag(z) OVER (PARTITION BY g ORDER BY id) AS p FROM reading) q WHERE z - p > interval '3 days' AND g / (1 + abs(extract(day FROM p)::int)) < 2 AND z + interval '1 day' > p",
	"p, ok FROM (SELECT id, i, ok, sum(s) OVER (PARTITION BY g ORDER BY id) AS p FROM reading) q WHERE i / (p * 2 + 1) > 3 AND p > 5",
	"row_number() OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING), rank() OVER (ORDER BY s RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING) FROM reading",
}

// TestWindows compares windows of all forms under each protocol; the last ones have parameters.
func TestWindows(t *testing.T) {
	s := privateStack(t, windowSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	must(t, proxy, "SET pgaccel.mode = 'force'")
	must(t, proxy, "SET TimeZone = 'UTC'")
	must(t, direct, "SET TimeZone = 'UTC'")
	compare := func(sql string, format []int16, values ...string) {
		t.Helper()
		want := ask(t, direct, sql, format, values...)
		if want.err != "" {
			t.Errorf("%s\nthe server itself: %s", sql, want.err)
			return
		}
		s.accelerates(t, 1, func() {
			if got := ask(t, proxy, sql, format, values...); got.String() != want.String() {
				t.Errorf("%s (%v)\n%s", sql, format, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		})
	}
	for _, of := range windowQueries {
		sql := "SELECT id, " + of
		if !strings.Contains(sql, "ORDER BY id LIMIT") {
			sql += " ORDER BY id"
		}
		for _, p := range protocols {
			compare(sql, p.format)
		}
	}
	for sql, values := range map[string][]string{
		"SELECT id, sum(i) OVER (ORDER BY id ROWS BETWEEN $1 PRECEDING AND $2 + 1 FOLLOWING) FROM reading ORDER BY id":                             {"3", "1"},
		"SELECT id, count(*) OVER (ORDER BY s GROUPS BETWEEN $1 PRECEDING AND CURRENT ROW) FROM reading ORDER BY id":                               {"2"},
		"SELECT id, count(*) OVER (ORDER BY n RANGE BETWEEN $1 PRECEDING AND $2::numeric FOLLOWING) FROM reading ORDER BY id":                      {"1.25", "0.755"},
		"SELECT id, count(*) OVER (ORDER BY i RANGE BETWEEN $1 PRECEDING AND 1 FOLLOWING), lag(i, $2) OVER (ORDER BY id) FROM reading ORDER BY id": {"7", "2"},
	} {
		for _, p := range protocols[1:] {
			compare(sql, p.format, values...)
		}
	}
	t.Log(reasons(t, s))
	// What is an error is the server's to report, and what is not known here its to answer.
	for _, sql := range []string{
		"SELECT sum(i) OVER (ORDER BY id ROWS -1 PRECEDING) FROM reading",
		"SELECT sum(i) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND NULL FOLLOWING) FROM reading",
		"SELECT sum(i) OVER (ORDER BY id ROWS 2 - 3 PRECEDING) FROM reading WHERE id < 0",
		"SELECT row_number() OVER (ORDER BY id GROUPS 2 - 3 PRECEDING) FROM reading",
		"SELECT count(*) OVER (ORDER BY f RANGE -0.5 PRECEDING) FROM reading",
		"SELECT count(*) OVER (ORDER BY d RANGE '-1 day' PRECEDING) FROM reading",
		"SELECT count(*) OVER (ORDER BY d RANGE '8000 years' PRECEDING) FROM reading",
		"SELECT nth_value(i, 0) OVER (ORDER BY id) FROM reading",
		"SELECT id FROM (SELECT id, i, g, min(g) OVER (PARTITION BY g ORDER BY id) AS p FROM reading) q WHERE p > 0 AND i / p > 3",
		"SELECT ntile(g) OVER (ORDER BY id) FROM reading WHERE g = 0",
		"SELECT count(*) OVER (ORDER BY t RANGE '1.5 days' PRECEDING) FROM reading ORDER BY t",
		"SELECT sum(f) OVER (PARTITION BY g) FROM reading WHERE id < 9 ORDER BY id",
		"SELECT sum(r) OVER (ORDER BY id) FROM reading ORDER BY id",
		"SELECT count(*) OVER (ORDER BY g ROWS 2 PRECEDING), id FROM reading ORDER BY id",
		"SELECT sum(f) OVER (ORDER BY id ROWS 3 PRECEDING) FROM reading ORDER BY id", // infinity less infinity
		"SELECT string_agg(x, ',') FROM reading WHERE id < 9",
		"SELECT string_agg(x, ',' ORDER BY g) FROM reading",
		"SELECT string_agg(x, x ORDER BY id) FROM reading",
		"SELECT g, string_agg(x, ',' ORDER BY id) FROM reading GROUP BY ROLLUP (g) ORDER BY g",
		"SELECT string_agg(DISTINCT x, ',' ORDER BY id) FROM reading",
		"SELECT string_agg(DISTINCT id::text, ',' ORDER BY id) FROM reading",
		"SELECT mode() WITHIN GROUP (ORDER BY g, id) FROM reading",
	} {
		for _, p := range protocols {
			s.forwardsAll(t, func() {
				if got, want := ask(t, proxy, sql, p.format), ask(t, direct, sql, p.format); got.String() != want.String() || got.err != want.err {
					t.Errorf("%s (%s): %s %s, want %s", sql, p.name, firstDifference([]byte(got.String()), []byte(want.String())), got.err, want.err)
				}
			})
		}
	}
}
