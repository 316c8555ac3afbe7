package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const namesSchema = `
CREATE TABLE facts (id int PRIMARY KEY, g int NOT NULL, v bigint NOT NULL, s smallint, n numeric(10,2), t text, w varchar(20), d date, z int);
INSERT INTO facts SELECT i, i % 7, i * 3, i % 13, i / 4.0, 'text ' || i % 5, 'w' || i % 11, date '2020-01-01' + i % 400, nullif(i % 4, 0) FROM generate_series(1, 2000) i;
CREATE SCHEMA other;
CREATE DOMAIN word AS text;
CREATE FUNCTION yes(varchar, word) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION yes(bigint, numeric) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION yes(text, varchar) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION seven(smallint, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 7';
CREATE FUNCTION seven(text, date) RETURNS timestamp LANGUAGE sql IMMUTABLE AS 'SELECT timestamp ''2000-07-07''';
CREATE FUNCTION seven(varchar, varchar) RETURNS varchar LANGUAGE sql IMMUTABLE AS 'SELECT varchar ''seven''';
CREATE FUNCTION seven(bigint) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''seven''';
CREATE FUNCTION yes(numeric, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE AGGREGATE longest(varchar) (SFUNC = seven, STYPE = varchar);
VACUUM ANALYZE;
`

// TestNamesChangeTheirMeaning makes functions, operators, casts and types that are
// preferred to what is built in; creates them under the name, or brings one there.
// After each step, at once, the answers are the server's.
func TestNamesChangeTheirMeaning(t *testing.T) {
	s := privateStack(t, namesSchema)
	direct, proxy, admin := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres")), connect(t, s.direct.url("postgres"))
	oldDirect, oldProxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	const (
		maxWord  = "SELECT g, min(w) FROM facts GROUP BY g ORDER BY g"
		perMonth = "SELECT date_trunc('month', d), count(*) FROM facts GROUP BY 1 ORDER BY 1"
		modulo   = "SELECT sum(mod(s, g + 1)) FROM facts"
		isWord   = "SELECT count(*) FROM facts WHERE w = 'w3'"
		below    = "SELECT count(*) FROM facts WHERE v < 100.5"
		like     = "SELECT count(*) FROM facts WHERE t LIKE 'text 3'"
		above    = "SELECT count(*) FROM facts WHERE n > 100"
		early    = "SELECT count(*) FROM facts WHERE d < '2020-06-01'::date"
	)
	for i, c := range []struct {
		query string
		steps []string
		// differs says which of the steps give the query another answer: of the server's,
		// so that the test shows that the name really was taken.
		differs []bool
	}{
		{maxWord, []string{"ALTER AGGREGATE longest(varchar) RENAME TO min", "ALTER AGGREGATE min(varchar) RENAME TO longest"}, []bool{true, false}},
		{maxWord, []string{"CREATE AGGREGATE other.min(varchar) (SFUNC = seven, STYPE = varchar)", "ALTER AGGREGATE other.min(varchar) SET SCHEMA public", "DROP AGGREGATE min(varchar)"}, []bool{false, true, false}},
		{perMonth, []string{"ALTER FUNCTION seven(text, date) RENAME TO date_trunc", "ALTER FUNCTION date_trunc(text, date) SET SCHEMA other", "ALTER FUNCTION other.date_trunc(text, date) SET SCHEMA public",
			"ALTER FUNCTION date_trunc(text, date) RENAME TO seven"}, []bool{true, false, true, false}},
		{perMonth, []string{"BEGIN; CREATE FUNCTION date_trunc(text, date) RETURNS timestamp LANGUAGE sql AS 'SELECT timestamp ''2000-01-01'''; COMMIT",
			"CREATE OR REPLACE FUNCTION date_trunc(text, date) RETURNS timestamp LANGUAGE sql AS 'SELECT timestamp ''2000-02-01'''", "DROP FUNCTION date_trunc(text, date)"}, []bool{true, true, false}},
		{modulo, []string{"CREATE FUNCTION mod(smallint, int) RETURNS int LANGUAGE sql AS 'SELECT 1'", "DROP FUNCTION mod(smallint, int)", "ALTER FUNCTION seven(smallint, int) RENAME TO mod", "ALTER FUNCTION mod(smallint, int) RENAME TO seven"},
			[]bool{true, false, true, false}},
		{isWord, []string{"CREATE OPERATOR = (FUNCTION = yes, LEFTARG = varchar, RIGHTARG = word)", "ALTER OPERATOR = (varchar, word) SET SCHEMA other", "ALTER OPERATOR other.= (varchar, word) SET SCHEMA public",
			"DROP OPERATOR = (varchar, word)"}, []bool{true, false, true, false}},
		{below, []string{"CREATE OPERATOR other.< (FUNCTION = yes, LEFTARG = bigint, RIGHTARG = numeric)", "ALTER SCHEMA public RENAME TO away; ALTER SCHEMA other RENAME TO public; CREATE TABLE public.facts AS SELECT * FROM away.facts",
			"DROP TABLE public.facts; ALTER SCHEMA public RENAME TO other; ALTER SCHEMA away RENAME TO public", "DROP OPERATOR other.< (bigint, numeric)"}, []bool{false, true, false, false}},
		{below, []string{"CREATE OPERATOR < (FUNCTION = yes, LEFTARG = bigint, RIGHTARG = numeric)", "DROP OPERATOR < (bigint, numeric)"}, []bool{true, false}},
		{like, []string{"CREATE OPERATOR ~~ (FUNCTION = yes, LEFTARG = text, RIGHTARG = varchar)", "DROP OPERATOR ~~ (text, varchar)"}, []bool{false, false}},
		{above, []string{"CREATE OPERATOR > (FUNCTION = yes, LEFTARG = numeric, RIGHTARG = int)", "DROP OPERATOR > (numeric, int)"}, []bool{true, false}},
		{below, []string{"CREATE CAST (bigint AS text) WITH FUNCTION seven(bigint)", "DROP CAST (bigint AS text)"}, []bool{false, false}},
		{early, []string{"CREATE TYPE public.date AS (a int)", "DROP TYPE public.date", "CREATE DOMAIN public.date AS text", "DROP DOMAIN public.date"}, []bool{false, false, false, false}},
	} {
		t.Run(c.query, func(t *testing.T) {
			s.eventually(t, proxy, c.query)
			before := same(t, direct, proxy, c.query)
			name := fmt.Sprint("p", i)
			for _, conn := range []*pgconn.PgConn{direct, proxy} {
				if _, err := conn.Prepare(t.Context(), name, c.query, nil); err != nil {
					t.Fatal(err)
				}
			}
			for k, step := range c.steps {
				for _, conn := range []*pgconn.PgConn{oldDirect, oldProxy} {
					must(t, conn, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT txid_current_snapshot()")
				}
				if a := ask(t, admin, step, nil); a.err != "" {
					t.Fatalf("%s: %s", step, a.err)
				}
				after := same(t, direct, proxy, c.query)
				if c.differs[k] != (fmt.Sprint(after.rows) != fmt.Sprint(before.rows)) {
					t.Errorf("after %s the answer differs: %v", step, !c.differs[k])
				}
				a, b := direct.ExecPrepared(t.Context(), name, nil, nil, nil).Read(), proxy.ExecPrepared(t.Context(), name, nil, nil, nil).Read()
				if fmt.Sprint(a.Rows, a.Err) != fmt.Sprint(b.Rows, b.Err) {
					t.Errorf("prepared, after %s: %s %v, direct %s %v", step, b.Rows, b.Err, a.Rows, a.Err)
				}
				same(t, oldDirect, oldProxy, c.query)
				for _, conn := range []*pgconn.PgConn{oldDirect, oldProxy} {
					must(t, conn, "COMMIT")
				}
			}
		})
	}
	for _, q := range []string{maxWord, perMonth, modulo, isWord, below, like, above, early} {
		s.eventually(t, proxy, q)
		same(t, direct, proxy, q)
	}
}

// TestSessionsOwnNames gives names another meaning for one session: search_path,
// temporary tables, views and types. Both sessions do the same.
func TestSessionsOwnNames(t *testing.T) {
	s := privateStack(t, namesSchema+`
CREATE TABLE other.facts (id int PRIMARY KEY, g int, v bigint, d date, t text, z int);
INSERT INTO other.facts VALUES (1, 1, 1, '2020-01-01', 'x', 1);
CREATE TABLE other.only_there (g int PRIMARY KEY, v bigint);
INSERT INTO other.only_there SELECT i, i FROM generate_series(1, 300) i;
CREATE FUNCTION other.date_trunc(text, date) RETURNS timestamp LANGUAGE sql AS 'SELECT timestamp ''2000-01-01''';
CREATE FUNCTION games() RETURNS bigint LANGUAGE plpgsql SET search_path = other AS 'BEGIN RETURN (SELECT sum(v) FROM facts); END';
CREATE ROLE traveller LOGIN SUPERUSER;
ALTER ROLE traveller SET search_path = other, public`)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	queries := []string{
		"SELECT g, count(*), sum(v) FROM facts GROUP BY g ORDER BY g",
		"SELECT count(*) FROM facts WHERE d < '2020-06-01'::date AND t::text <> 'text 1'",
		"SELECT date_trunc('month', d), count(*) FROM public.facts GROUP BY 1 ORDER BY 1",
		"SELECT count(*) FROM other.facts",
		"SELECT sum(v) FROM only_there",
		"SELECT games(), sum(v) FROM facts",
	}
	names := fmt.Sprint
	for _, conn := range []*pgconn.PgConn{direct, proxy} {
		for i, q := range queries {
			if i != 4 {
				if _, err := conn.Prepare(t.Context(), names("p", i), q, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	// Each session's temporary tables have OIDs of their own, which are in the fields.
	same := func(t *testing.T, q string) {
		t.Helper()
		for _, p := range protocols {
			want, got := ask(t, direct, q, p.format), ask(t, proxy, q, p.format)
			if fmt.Sprint(got.rows, got.tag, got.err) != fmt.Sprint(want.rows, want.tag, want.err) {
				t.Errorf("%s (%s): %s, direct %s", q, p.name, got, want)
			}
		}
	}
	compare := func(t *testing.T) {
		t.Helper()
		for i, q := range queries {
			same(t, q)
			if i == 4 {
				continue
			}
			a, b := direct.ExecPrepared(t.Context(), names("p", i), nil, nil, nil).Read(), proxy.ExecPrepared(t.Context(), names("p", i), nil, nil, nil).Read()
			if fmt.Sprint(a.Rows, a.Err) != fmt.Sprint(b.Rows, b.Err) {
				t.Errorf("prepared %s: %s %v, direct %s %v", q, b.Rows, b.Err, a.Rows, a.Err)
			}
		}
	}
	s.accelerates(t, 6, func() { compare(t) })
	for _, step := range []struct {
		sql         string
		accelerated int // executions of the first query's three
	}{
		{"SET search_path = other, public", 0},
		{"SET search_path = public, other", 3},
		{"SET search_path = 'nowhere'", 0},
		{"SET search_path = ''", 0},
		{"SET search_path = other, pg_catalog, public", 0},
		{"SET search_path = pg_catalog, other, public", 0},
		{"SET search_path = public, pg_temp", 3},
		{`SET search_path = "$user", public`, 3},
		{"BEGIN; SET LOCAL search_path = other", 0},
		{"COMMIT", 3},
		{"SELECT set_config('search_path', 'other', false)", 0},
		{"DO $$BEGIN PERFORM set_config('search_path', 'public', false); END$$", 3},
		{"RESET search_path", 3},
		{"CREATE SCHEMA postgres; CREATE VIEW postgres.facts AS SELECT 1 AS g, 2::bigint AS v, date '2020-01-01' AS d, 'x' AS t, 1 AS z", -1},
		{"DROP SCHEMA postgres CASCADE", -1},
		{"CREATE TEMP TABLE facts AS SELECT 1 AS g, 5::bigint AS v, date '2020-01-01' AS d, 'x' AS t, 1 AS z", 0},
		{"SET search_path = public, pg_temp", 3},
		{"RESET search_path; ALTER TABLE pg_temp.facts RENAME TO something", 3},
		{"ALTER TABLE pg_temp.something RENAME TO facts", 0},
		{"DROP TABLE pg_temp.facts", 3},
		{"CREATE TEMP VIEW facts AS SELECT g, v + 1 AS v, d, t, z FROM public.facts", 0},
		{"DROP VIEW pg_temp.facts", 3},
		{"BEGIN; CREATE TEMP TABLE facts (g int, v bigint, d date, t text, z int) ON COMMIT DROP", 0},
		{"COMMIT", 3},
		{"CREATE TEMP SEQUENCE facts", 0},
		{"DISCARD TEMP", 3},
		{"CREATE TEMP TABLE text (a int)", 0}, // the cast means its row type
		{"DROP TABLE pg_temp.text", 3},
		{"CREATE DOMAIN pg_temp.date AS pg_catalog.date CHECK (VALUE < '1900-01-01')", 0},
		{"DROP DOMAIN pg_temp.date", 3},
		{"CREATE DOMAIN pg_temp.text AS varchar(6)", 0},
		{"DISCARD ALL", 3},
		{"CREATE FUNCTION pg_temp.date_trunc(text, date) RETURNS timestamp LANGUAGE sql AS 'SELECT timestamp ''2000-01-01'''", 3}, // found by its schema only
		{"CREATE TEMP TABLE held AS SELECT g FROM facts; SET SESSION AUTHORIZATION traveller", 3},
		{"SET search_path = other", 0},
		{"RESET SESSION AUTHORIZATION; RESET ALL; DISCARD TEMP", 3},
		{"SET transform_null_equals = on", -1},
		{"SET array_nulls = off; SET transform_null_equals = off", -1},
		{"SET standard_conforming_strings = off; SET escape_string_warning = off", -1},
		{"RESET ALL", 3},
	} {
		// One after the other: both make the same objects.
		if strings.Contains(step.sql, " SCHEMA ") {
			if a := ask(t, direct, step.sql, nil); a.err != "" {
				t.Fatal(step.sql, a.err)
			}
		} else if a, b := ask(t, direct, step.sql, nil), ask(t, proxy, step.sql, nil); a.String() != b.String() || a.err != "" {
			t.Fatalf("%s: %s, direct %s", step.sql, b, a)
		}
		if strings.HasPrefix(step.sql, "DISCARD ALL") {
			for _, conn := range []*pgconn.PgConn{direct, proxy} {
				for i, q := range queries {
					if i != 4 {
						if _, err := conn.Prepare(t.Context(), names("p", i), q, nil); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		}
		t.Run(step.sql, func(t *testing.T) {
			if !strings.HasPrefix(step.sql, "BEGIN") { // an error would end the transaction
				compare(t)
			}
			switch first := func() { same(t, queries[0]); same(t, queries[1]) }; {
			case step.accelerated > 0:
				s.accelerates(t, step.accelerated, first)
			case step.accelerated == 0 && !strings.Contains(step.sql, "DOMAIN") && !strings.Contains(step.sql, "TABLE text"):
				s.forwardsAll(t, first)
			default:
				first()
			}
			for _, q := range []string{"SELECT count(*) FROM facts WHERE z = NULL", "SELECT count(*) FROM facts WHERE NULL <> z", `SELECT count(*) FROM facts WHERE t = ANY ('{"text 1",NULL}') OR t IS NULL`, `SELECT count(*) FROM facts WHERE t = 'text\x201'`, `SELECT count(*) FROM facts WHERE t LIKE 'text\_1'`} {
				if !strings.HasPrefix(step.sql, "BEGIN") {
					same(t, q)
				}
			}
		})
	}
	traveller, travellerDirect := connect(t, s.proxy.url("traveller")), connect(t, s.direct.url("traveller"))
	direct, proxy = travellerDirect, traveller
	for _, q := range queries {
		same(t, q)
	}
}

// TestShadowOfFloatSums: under --shadow 100% what cannot be compared is accelerated, and
// counted as not compared; the rest is answered by Postgres, and compared.
func TestShadowOfFloatSums(t *testing.T) {
	s := privateStack(t, "CREATE TABLE facts (id int PRIMARY KEY, f float8, r real, v bigint);\n"+
		"INSERT INTO facts SELECT g, g / 7.0, g / 3.0, g FROM generate_series(1, 20000) g;\nVACUUM ANALYZE facts", "--shadow", "100%")
	conn := connect(t, s.proxy.url("postgres"))
	for _, block := range []string{"", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"} {
		for _, p := range protocols {
			for sql, compared := range map[string]bool{"SELECT sum(f) FROM facts": false, "SELECT avg(r), count(*) FROM facts": false, "SELECT max(f), sum(v) FROM facts": true} {
				if block != "" {
					ask(t, conn, block, nil)
				}
				verdicts, accelerated := s.metric(t, "pgaccel_shadow_total"), s.queries(t, "accelerated")
				if a := ask(t, conn, sql, p.format); a.err != "" || len(a.rows) != 1 {
					t.Errorf("%s: %s", sql, a)
				}
				if block != "" {
					ask(t, conn, "COMMIT", nil)
				}
				result, want := `result="not compared"`, 1
				if compared {
					result, want = `result="equal"`, 0
				}
				unclear := `result="inconclusive"` // autovacuum has committed between the two answers
				for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
					now := s.metric(t, "pgaccel_shadow_total")
					if now[result] == verdicts[result]+1 || compared && now[unclear] == verdicts[unclear]+1 {
						break
					}
					if time.Now().After(end) {
						t.Fatalf("%s %s (%s): %v, before %v", block, sql, p.name, now, verdicts)
					}
				}
				if got := s.queries(t, "accelerated") - accelerated; got != want {
					t.Errorf("%s %s (%s): accelerated %d times, want %d", block, sql, p.name, got, want)
				}
			}
		}
	}
	if m := s.metric(t, "pgaccel_shadow_total"); m[`result="equal"`] <= m[`result="inconclusive"`] {
		t.Errorf("most comparisons say nothing: %v", m)
	}
}
