package integration

import "testing"

// domainSchema has domains over types of each kind, over one another, and over what is not held.
const domainSchema = `
CREATE DOMAIN cents AS bigint CHECK (VALUE >= 0); CREATE DOMAIN price AS numeric(10,2); CREATE DOMAIN cheap AS price CHECK (VALUE < 100000);
CREATE DOMAIN word AS text NOT NULL DEFAULT ''; CREATE DOMAIN short AS varchar(12) COLLATE "C"; CREATE DOMAIN code AS char(4); CREATE DOMAIN day AS date;
CREATE DOMAIN seen AS timestamptz(3); CREATE DOMAIN real8 AS float8; CREATE DOMAIN flag AS boolean; CREATE DOMAIN key AS uuid; CREATE DOMAIN doc AS jsonb; CREATE DOMAIN tiny AS smallint;
CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN feeling AS mood; CREATE DOMAIN list AS int[]; CREATE DOMAIN bits AS regclass;
CREATE TABLE sold (id key PRIMARY KEY, n int, c cents, p price, q cheap, w word, s short, k code, d day, z seen, f real8, b flag, j doc, t tiny, m feeling, l list, v bits);
CREATE TABLE codes (k code PRIMARY KEY, name word);
CREATE VIEW dear AS SELECT id, n, p, w FROM sold WHERE p > 30;
INSERT INTO sold SELECT md5(i::text)::uuid, i, i % 97, i / 7.0, CASE WHEN i % 5 > 0 THEN i / 3.0 END, 'word ' || i % 13, 's' || i % 11, 'c' || i % 9, '2024-01-01'::date + i % 60, '2024-01-01Z'::timestamptz + i * interval '1 hour',
	i / 4.0, i % 3 = 0, jsonb_build_object('a', i % 5, 'b', 'x'), i % 100, 'glad', ARRAY[i, 2], 'pg_class' FROM generate_series(1, 2000) i;
INSERT INTO codes SELECT 'c' || i, 'name ' || i FROM generate_series(0, 6) i;
VACUUM ANALYZE;`

// domainAnswered are statements over domainSchema that are accelerated.
var domainAnswered = []string{
	"SELECT id, n, c, p, q, w, s, k, d, z, f, b, j, t FROM sold ORDER BY n",
	"SELECT w, count(*), sum(c), sum(p), avg(q), min(d), max(z), min(s), max(w), min(k) FROM sold GROUP BY w ORDER BY w",
	"SELECT s, k, count(*) FROM sold GROUP BY s, k ORDER BY s DESC, k",
	"SELECT count(*) FROM sold WHERE c = 5 AND p > 10.5 OR q <= 3", "SELECT count(*) FROM sold WHERE w = 'word 3' OR s > 's3' OR k = 'c1'",
	"SELECT count(*) FROM sold WHERE k IN ('c1  ', 'c2') AND w LIKE 'word%' AND s NOT IN ('s1', 's2')", "SELECT count(*) FROM sold WHERE d BETWEEN '2024-01-05' AND '2024-02-01'", "SELECT count(*) FROM sold WHERE b AND NOT (b IS NOT TRUE) AND t < 50",
	"SELECT c + 1, c * c, c + n, c % 7, p + q, p * 2, round(p, 1), f / 2, t + t, d + 3, d - '2024-01-01'::date, -c FROM sold ORDER BY n",
	"SELECT length(w), upper(w), w || 'x', s || 'y', k || '!', substr(w, 2), length(k) FROM sold ORDER BY n", "SELECT c::text, p::int, p::numeric(6,1), d::timestamp FROM sold ORDER BY n",
	"SELECT t::float8, p::text FROM sold ORDER BY n", "SELECT s::text, w::varchar, c::int FROM sold ORDER BY n",
	"SELECT j -> 'a', j ->> 'b', j ? 'a', jsonb_typeof(j), j['a'] FROM sold WHERE j @> '{\"a\": 1}' ORDER BY n",
	"SELECT extract(year FROM d), date_trunc('month', z AT TIME ZONE 'UTC'), count(*) FROM sold GROUP BY 1, 2 ORDER BY 1, 2",
	"SELECT coalesce(q, p), coalesce(q, 0), nullif(c, 5), greatest(p, q), CASE WHEN b THEN w ELSE w || 'x' END, CASE k WHEN 'c1' THEN c END, coalesce(w, 'none') FROM sold ORDER BY n",
	"SELECT name, count(*), sum(p) FROM sold JOIN codes USING (k) GROUP BY name ORDER BY name", "SELECT c.k, count(n) FROM codes c LEFT JOIN sold s ON s.k = c.k GROUP BY 1 ORDER BY 1",
	"SELECT count(*) FROM sold a JOIN sold b ON a.c = b.t AND a.p = b.q", "SELECT count(DISTINCT w), count(DISTINCT p), count(q) FROM sold",
	"SELECT DISTINCT s, b FROM sold ORDER BY 1, 2", "SELECT p FROM sold UNION SELECT q FROM sold ORDER BY 1 LIMIT 50", "SELECT c FROM sold EXCEPT SELECT n FROM sold WHERE n < 50 ORDER BY 1",
	"SELECT n, sum(c) OVER (PARTITION BY w ORDER BY n), lag(p) OVER (ORDER BY n), first_value(w) OVER (PARTITION BY s ORDER BY n) FROM sold ORDER BY n",
	"SELECT w, sum(p) FROM dear GROUP BY w ORDER BY w", "SELECT string_agg(w, ',' ORDER BY n), percentile_disc(0.5) WITHIN GROUP (ORDER BY p), mode() WITHIN GROUP (ORDER BY c) FROM sold WHERE n < 50",
	"SELECT count(*) FROM sold WHERE id = 'c4ca4238-a0b9-2382-0dcc-509a6f75849b' OR c = ANY ('{1,2}'::bigint[])", "SELECT n FROM sold WHERE w > 'word 3' AND p > (SELECT avg(q) FROM sold) ORDER BY w, n DESC LIMIT 20",
}

// domainForwarded are those where the domain itself shows, and columns that are not held.
var domainForwarded = []string{
	"SELECT pg_typeof(c), count(*) FROM sold GROUP BY 1", "SELECT pg_typeof(max(w)) FROM sold", "SELECT pg_typeof(x.c) FROM (SELECT c FROM sold ORDER BY n LIMIT 1) x", "SELECT count(*) FROM sold WHERE c = 5::cents", "SELECT n::cents FROM sold ORDER BY 1",
	"SELECT ARRAY[c] FROM sold ORDER BY n LIMIT 5", "SELECT array_agg(c ORDER BY n) FROM sold WHERE n < 9", "SELECT count(m) FROM sold", "SELECT n, l FROM sold ORDER BY n", "SELECT n, v FROM sold ORDER BY n", "SELECT -1::cents FROM sold",
}

// TestDomain takes domains through the copy, the stream, plans and results.
func TestDomain(t *testing.T) {
	s := privateStack(t, domainSchema)
	direct, proxied := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	compare := func(t *testing.T) {
		for _, sql := range domainAnswered {
			s.everyAnswer(t, true, sql)
		}
		s.everyAnswer(t, true, "SELECT count(*), sum(p) FROM sold WHERE c = $1 OR k = $2 OR p > $3", "7", "c3", "20.5")
		for _, sql := range domainForwarded {
			s.everyAnswer(t, false, sql)
		}
	}
	exec := func(sql string) {
		t.Helper()
		if a := ask(t, direct, sql, nil); a.err != "" {
			t.Fatal(a)
		}
	}
	t.Run("copied", compare)
	for _, sql := range []string{"UPDATE sold SET c = c + 1, p = p / 2, k = 'd' || n % 5, w = w || '!' WHERE n % 7 = 0", "UPDATE sold SET id = md5(id::text)::uuid, q = NULL WHERE n % 11 = 0", "DELETE FROM sold WHERE n % 13 = 0",
		"INSERT INTO sold SELECT md5('x' || i)::uuid, i, 3, i / 9.0, NULL, 'é' || i, 'z', '', '1999-12-31', NULL, 'NaN', NULL, NULL, NULL, NULL, NULL, NULL FROM generate_series(3000, 3100) i", "UPDATE codes SET k = 'd1' WHERE k = 'c1'"} {
		exec(sql)
	}
	t.Run("streamed", compare)
	exec("ALTER DOMAIN cents DROP CONSTRAINT cents_check; ALTER DOMAIN cents RENAME TO pennies; ALTER DOMAIN price ADD CONSTRAINT few CHECK (VALUE < 1000000); UPDATE sold SET c = -5 WHERE n % 17 = 0")
	for _, sql := range domainAnswered {
		s.everyAnswer(t, true, sql)
	}
	// What is made of a column has its domain.
	for _, sql := range []string{"CREATE TEMP TABLE made AS SELECT c, w, max(p) AS p FROM sold GROUP BY c, w", "SELECT format_type(atttypid, atttypmod), attnum FROM pg_attribute WHERE attrelid = 'made'::regclass AND attnum > 0 ORDER BY attnum"} {
		if got, want := ask(t, proxied, sql, nil), ask(t, direct, sql, nil); got.String() != want.String() {
			t.Errorf("%s: got %s, want %s", sql, got, want)
		}
	}
	// What somebody makes for a domain is preferred to what is built in.
	exec("CREATE FUNCTION same(short, short) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true'; CREATE FUNCTION upper(short) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT 'mine'$$")
	s.everyAnswer(t, false, "SELECT upper(s), count(*) FROM sold GROUP BY 1 ORDER BY 1")
	exec("CREATE OPERATOR = (FUNCTION = same, LEFTARG = short, RIGHTARG = short)")
	s.everyAnswer(t, false, "SELECT count(*) FROM sold WHERE s = 's1'")
}
