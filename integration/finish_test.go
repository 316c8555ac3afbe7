package integration

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// finishSchema has a column of each kind that goes to the server as an array.
const finishSchema = `CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE every (id int PRIMARY KEY, s smallint, b bigint, n numeric(12,2), f double precision, r real, t text, v varchar(12), c char(5), k text COLLATE "C",
 o boolean, d date, ti time, ts timestamp(3), tz timestamptz, u uuid, j jsonb, e mood, ia int[], ta text[]);
INSERT INTO every SELECT i, i % 7, i * 10000000000, (i % 50) / 4.0, CASE i % 9 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' WHEN 2 THEN '-0' ELSE i / 7.0 END,
 i / 3.0, 'x''"\' || i % 11 || ' ä', 'v' || i % 5, 'c' || i % 3, chr(65 + i % 30), i % 4 = 0, date '2024-01-01' + i, time '00:00' + i * interval '77 seconds', timestamp '2024-01-01' + i * interval '1.0015 hours',
 timestamptz '2024-03-30 00:00+00' + i * interval '13 minutes', md5((i % 6)::text)::uuid, jsonb_build_object('a', i % 4, 'b', ARRAY[1.0, 2]), (enum_range(NULL::mood))[1 + i % 3], ARRAY[i % 3, NULL], ARRAY['a,"', NULL, 'NULL']
 FROM generate_series(1, 3000) i;
INSERT INTO every (id) VALUES (9001);
CREATE TABLE nothing (id int PRIMARY KEY, x numeric(10,2));
CREATE TABLE named (id int PRIMARY KEY, c1 int, c2 int, pgaccel_rows int);
INSERT INTO named SELECT i, i % 5, i * 7 % 11, i % 2 FROM generate_series(1, 300) i;
CREATE FUNCTION twice(numeric) RETURNS numeric LANGUAGE sql AS 'SELECT $1 * 2';
CREATE SEQUENCE counted;
VACUUM ANALYZE`

// inPart are statements that PostgreSQL finishes.
var inPart = []string{
	"SELECT s, exp(sum(n) / 10000) FROM every GROUP BY s ORDER BY s",
	"SELECT s, ln(sum(n)) AS l FROM every WHERE id > 5 GROUP BY s HAVING ln(count(*)) > 1 ORDER BY l DESC LIMIT 3",
	"SELECT quote_literal(c), count(*), sum(s), min(d), max(ts), bool_or(o), avg(n), count(DISTINCT v) FROM every WHERE id < 500 GROUP BY 1 ORDER BY 1",
	"SELECT ln(count(*)), sum(n) FROM every",
	"SELECT ln(count(*) + 1), sum(x) FROM nothing",
	"SELECT id, exp(x) FROM nothing",
	"SELECT x, power(count(*), 2) FROM nothing GROUP BY x",
	"SELECT id, quote_nullable(t), s, b, n, f, r, v, c, k, o, d, ti, ts, tz, u, j, e, ia FROM every WHERE id < 30 OR id > 9000 ORDER BY id",
	"SELECT to_json(e), to_json(c), to_json(n), to_json(tz), to_json(u), to_json(ia), to_json(k) FROM every WHERE id BETWEEN 20 AND 40 ORDER BY id",
	"SELECT id, k, quote_literal(k) FROM every WHERE id < 60 ORDER BY k, id",
	"SELECT quote_literal(t) AS q, count(*), sum(s), sum(n), avg(s), avg(n), sum(b), avg(b), min(d), max(k), bool_and(o), count(DISTINCT v) FROM every GROUP BY q ORDER BY q",
	"SELECT json_agg(t) FROM (SELECT t, id FROM every WHERE id < 20 ORDER BY id) q",
	"SELECT DISTINCT v, quote_literal(v) FROM every WHERE id < 100 ORDER BY v, 2",
	"SELECT quote_literal(f::text), count(*) FROM every WHERE id < 90 GROUP BY 1 ORDER BY 1",
	"SELECT quote_literal(v) AS q, exp(s) FROM every WHERE id < 100 ORDER BY q, 2 LIMIT 7 OFFSET 2",
	"WITH RECURSIVE b AS (SELECT s AS c, count(*) AS n FROM every GROUP BY 1), r(c, n, depth) AS (SELECT c, n, 1 FROM b UNION ALL SELECT c, n, depth + 1 FROM r WHERE depth < 3) SELECT * FROM r ORDER BY 1, 3",
	"SELECT json_agg(q) FROM (SELECT v, sum(n) AS total, max(tz) AS last, min(e) AS least FROM every GROUP BY v ORDER BY v) q",
	"SELECT id, generate_series(1, s) FROM every WHERE id < 20 ORDER BY id, 2",
	"SELECT id, exp(s) FROM every ORDER BY id DESC LIMIT 5 OFFSET 2",
	"SELECT s, exp(max(s)) FROM every GROUP BY s ORDER BY count(*) DESC, s LIMIT 4",
	"SELECT current_user, xmlelement(name v, v) FROM every WHERE id < 4 ORDER BY id",
	"SELECT count(*), ln(count(*)) FROM every WHERE e = 'ok' AND tz > now() - interval '100 years'",
	"SELECT c2, exp(c1) FROM named ORDER BY c1, c2, id LIMIT 7",
	"SELECT c2 AS c1, c1 AS c2, exp(count(*)) FROM named GROUP BY c1, c2 ORDER BY c1, c2 LIMIT 5",
	"SELECT 2, c2, exp(sum(c1) / 10) FROM named GROUP BY c2 ORDER BY 1, 2 LIMIT 3",
	"SELECT quote_literal(v) AS q, avg(s)::int4, 100 * avg(s), avg(n) - avg(b), -avg(s) FROM every GROUP BY 1 ORDER BY 1",
	"SELECT to_json(q) FROM (SELECT exp(s), ARRAY[s], EXISTS (SELECT 1), (SELECT 1), (SELECT 1 AS x), row(s), xmlelement(name a), s::int, vc.f FROM every, (SELECT 1 AS f) vc WHERE id < 5) q ORDER BY s",
}

// TestPostgresFinishes compares them in every protocol, in and outside of a transaction block, in sessions with settings.
func TestPostgresFinishes(t *testing.T) {
	s := privateStack(t, finishSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	settings := []string{"", "SET DateStyle = 'SQL, DMY'", "SET IntervalStyle = 'iso_8601'", "SET TimeZone = 'Europe/Berlin'", "SET extra_float_digits = 0"}
	for i, set := range settings {
		if set != "" {
			must(t, direct, set)
			must(t, proxy, set)
		}
		for _, block := range []bool{false, true} {
			if block {
				must(t, direct, "BEGIN")
				must(t, proxy, "BEGIN")
			}
			for _, sql := range inPart {
				for _, p := range protocols {
					want := ask(t, direct, sql, p.format)
					compare := func() {
						if got := ask(t, proxy, sql, p.format); want.err != "" || got.String() != want.String() {
							t.Errorf("%s (%s, %s, block %t): %s%s", sql, p.name, set, block, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
						}
					}
					if i < 2 {
						s.inPart(t, 1, compare)
					} else {
						compare()
					}
				}
				if t.Failed() {
					t.Fatal(sql, reasons(t, s))
				}
			}
			if block {
				must(t, direct, "COMMIT")
				must(t, proxy, "COMMIT")
			}
		}
	}
}

// TestPostgresFinishesWithParameters has parameters in both parts, of which some have no place in one.
func TestPostgresFinishesWithParameters(t *testing.T) {
	s := privateStack(t, finishSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, c := range []struct {
		sql    string
		params []string
	}{
		{"SELECT s, exp(sum(n) / $1) FROM every WHERE id > $2 GROUP BY s ORDER BY s", []string{"5000", "17"}},
		{"SELECT s, exp(sum(n) / 5000) FROM every WHERE id > $1 GROUP BY s ORDER BY s", []string{"17"}},
		{"SELECT s, quote_literal(v || $1) FROM every WHERE id < 9 ORDER BY id", []string{"ö'"}},
		{"SELECT quote_literal(v), max(d) FROM every WHERE d < $1 AND e = $2 GROUP BY 1 ORDER BY 1", []string{"2024-01-20", "ok"}},
	} {
		for _, format := range [][]int16{{0}, {1}} {
			want := ask(t, direct, c.sql, format, c.params...)
			s.inPart(t, 1, func() {
				if got := ask(t, proxy, c.sql, format, c.params...); want.err != "" || got.String() != want.String() {
					t.Errorf("%s: %s%s", c.sql, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
				}
			})
		}
	}
}

// TestPostgresFinishesWithErrors has statements whose rest fails: in a block that fails as it does without pgaccel, and what
// comes behind it runs as it would.
func TestPostgresFinishesWithErrors(t *testing.T) {
	s := privateStack(t, finishSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	same := func(sql string, format []int16) {
		t.Helper()
		want, got := ask(t, direct, sql, format), ask(t, proxy, sql, format)
		if got.String() != want.String() {
			t.Errorf("%s: %s", sql, firstDifference([]byte(got.String()), []byte(want.String())))
		}
	}
	for _, p := range protocols {
		for _, sql := range []string{
			"SELECT s, ln(count(*) - count(*)) FROM every GROUP BY s", "SELECT ln(s) FROM every WHERE id < 100",
			"SELECT quote_literal(v), 1 / (count(*) - count(*)) FROM every GROUP BY 1", "SELECT v, nosuch(s) FROM every", "SELECT v, ln(e) FROM every",
		} {
			same(sql, p.format)
			same("SELECT count(*) FROM every", p.format)
			same("BEGIN", nil)
			same(sql, p.format)
			same("SELECT count(*) FROM every", p.format)
			same("ROLLBACK", nil)
			same("BEGIN; SAVEPOINT a", nil)
			same(sql, p.format)
			same("ROLLBACK TO a; SELECT count(*) FROM every; COMMIT", nil)
		}
	}
}

// TestPostgresFinishesNot are statements whose rest would not be the same thing: they are forwarded.
func TestPostgresFinishesNot(t *testing.T) {
	s := privateStack(t, finishSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	must(t, direct, "CREATE TABLE other (x int); INSERT INTO other VALUES (1)")
	for _, sql := range []string{
		"SELECT s, twice(sum(n)) FROM every GROUP BY s ORDER BY s",
		"SELECT s, nextval('counted') > 0 FROM every GROUP BY s ORDER BY s",
		"SELECT s, exp(sum(n) / 10000), (SELECT count(*) FROM other) FROM every GROUP BY s ORDER BY s",
		"SELECT count(*), ln(count(*)) FROM every WHERE tz > now() - interval '100 years' AND ln(extract(epoch FROM now())) > 0",
		"SELECT ln(s + 1) FROM every WHERE id < 10 FOR UPDATE",
		// What depends on the order of rows, or on which of equal values stands for them.
		"SELECT v, json_agg(s ORDER BY id) FROM every WHERE id < 40 GROUP BY v ORDER BY v",
		"SELECT json_agg(s) FROM every WHERE id < 40",
		"SELECT DISTINCT v, exp(s) FROM every WHERE id < 100 ORDER BY v, 2",
		"SELECT exp(s) FROM every WHERE id < 100 GROUP BY exp(s) ORDER BY 1",
		"SELECT v FROM every WHERE quote_literal(v) > 'a' AND id < 200 UNION SELECT 'none' ORDER BY 1",
		// Grouping sets that are ordered.
		"SELECT quote_literal(v), e, grouping(e), sum(count(*)) OVER (ORDER BY quote_literal(v), e) FROM every GROUP BY ROLLUP (1, 2) ORDER BY 1, 2, 3",
		"SELECT (s = 2) = false, count(*) FROM every WHERE id < 90 GROUP BY CUBE ((s = 2)) ORDER BY 2, 1",
		"SELECT named.c1, c1, quote_literal(c2::text), count(*) FROM named GROUP BY CUBE (named.c1, quote_literal(c2::text)) ORDER BY 1, 2, 3, 4",
		// Conditions that may fail for rows that others leave out.
		"SELECT count(*), sum(s) FROM every WHERE ln(s) > 1 AND s > 2",
		"SELECT count(*), sum(s) FROM every WHERE quote_literal(v) = '''v1''' AND s > 2",
		// Keys that PostgreSQL may take for one, and text that the parser's library writes without parentheses that matter.
		"SELECT to_json(s >= 1::float8)::text, count(*) FROM every WHERE id < 90 GROUP BY CUBE ((s::float8)), s ORDER BY 2, 1",
		"SELECT s, s::smallint AS x, quote_literal(v), count(*) FROM every WHERE id < 90 GROUP BY CUBE (s, x), 3 ORDER BY 1, 2, 3, 4",
		"SELECT quote_literal(v), (NOT o) IS NULL FROM every WHERE id < 20 ORDER BY id",
		"SELECT quote_literal(v), count(*) FILTER (WHERE ((s IN (1, 2)) > true) BETWEEN true AND false) FROM every GROUP BY 1 ORDER BY 1",
		"SELECT count(*), least(c, 'c1') FROM every WHERE id < 30 GROUP BY least(c, 'c1') ORDER BY 2",
		"SELECT c, corr(s, id), regr_slope(s, id) FROM every WHERE id < 500 GROUP BY c ORDER BY c",
		"SELECT DISTINCT ON (v) v, exp(s) FROM every WHERE id < 100 ORDER BY v, s DESC, id",
		"SELECT j, count(*) FROM every WHERE id < 90 GROUP BY j ORDER BY 1",
		"SELECT exp(s), row_number() OVER (ORDER BY exp(s)) FROM every WHERE id < 9 ORDER BY 1, 2",
		"SELECT exp(s), sum(exp(s)) OVER () FROM every WHERE id < 9 ORDER BY 1",
		"SELECT exp(s) FROM every WHERE exp(s) > 0 AND id < 9 LIMIT 2",
		"SELECT 'a  ' FROM every WHERE id = 1 UNION SELECT quote_literal('a')::char(5) ORDER BY 1",
		"SELECT c1, c1 AS g, quote_literal(c2::text), count(*) FROM named GROUP BY ROLLUP (c1, g), quote_literal(c2::text) ORDER BY 1, 2, 3, 4",
		"SELECT pgaccel_rows, exp(c1) FROM named WHERE id < 9 ORDER BY pgaccel_rows, id",
		"SELECT f FROM (SELECT ln(s) AS f, id FROM every OFFSET 0) q WHERE id = 3",
		"SELECT ln(id + s) FROM every", // of too many rows
	} {
		for _, p := range protocols {
			before := s.queries(t, "partial")
			want, got := ask(t, direct, sql, p.format), ask(t, proxy, sql, p.format)
			if got.String() != want.String() {
				t.Errorf("%s: %s", sql, firstDifference([]byte(got.String()), []byte(want.String())))
			}
			if sql != "SELECT ln(id + s) FROM every" && s.queries(t, "partial") != before {
				t.Errorf("%s: PostgreSQL has finished it", sql)
			}
		}
	}
	// A function that somebody makes is seen by the next execution.
	sql := "SELECT s, exp(sum(n) / 10000) FROM every GROUP BY s ORDER BY s"
	s.inPart(t, 1, func() { ask(t, proxy, sql, nil) })
	must(t, direct, "CREATE FUNCTION public.exp(numeric) RETURNS numeric LANGUAGE sql AS 'SELECT 1.0'")
	s.forwardsAll(t, func() {
		before := s.queries(t, "partial")
		want, got := ask(t, direct, sql, nil), ask(t, proxy, sql, nil)
		if got.String() != want.String() || s.queries(t, "partial") != before {
			t.Errorf("with a function of that name: %s", firstDifference([]byte(got.String()), []byte(want.String())))
		}
	})
}

// TestPostgresWrites has tables made of, and filled with, what is computed here: as without pgaccel, definitions included.
func TestPostgresWrites(t *testing.T) {
	s := privateStack(t, finishSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for i, write := range []string{
		"CREATE TABLE made AS SELECT v, c, e, k, max(n) AS n, sum(n) AS total, count(*), min(tz) AS tz, max(ts) AS ts FROM every GROUP BY 1, 2, 3, 4",
		"CREATE TABLE made AS SELECT id, s, b, n, f, r, t, v, c, k, o, d, ti, ts, tz, u, j, e, ia, exp(s) AS x FROM every WHERE id < 50",
		"CREATE TABLE made (a, b) AS WITH x AS (SELECT s, count(*) AS n FROM every GROUP BY s) SELECT s, n FROM x WHERE n > 10",
		"CREATE TABLE made (s int, total numeric(20,1)); INSERT INTO made VALUES (1, 2)",
		"INSERT INTO made SELECT s, sum(n) FROM every GROUP BY s",
		"INSERT INTO made (total) SELECT ln(count(*)) FROM every GROUP BY s",
		"CREATE TABLE IF NOT EXISTS made AS SELECT count(*) FROM every",
	} {
		if !strings.HasPrefix(write, "INSERT") && !strings.Contains(write, "IF NOT") {
			must(t, direct, "DROP TABLE IF EXISTS made")
		}
		if strings.Contains(write, "; INSERT") {
			must(t, direct, write)
			continue
		}
		image := func(conn *pgconn.PgConn) string {
			must(t, conn, "BEGIN")
			a := ask(t, conn, write, nil)
			rows := ask(t, conn, "SELECT m::text FROM made m ORDER BY 1", nil)
			columns := ask(t, conn, "SELECT attname, format_type(atttypid, atttypmod), attcollation FROM pg_attribute WHERE attrelid = 'made'::regclass AND attnum > 0 ORDER BY attnum", nil)
			must(t, conn, "ROLLBACK")
			return a.String() + rows.String() + columns.String()
		}
		want := image(direct)
		s.inPart(t, 1, func() {
			if got := image(proxy); got != want {
				t.Errorf("%d %s: %s", i, write, firstDifference([]byte(got), []byte(want)))
			}
		})
		s.inPart(t, 1, func() { ask(t, proxy, write, nil) }) // outside of a block
	}
	for _, sql := range []string{
		"CREATE TABLE made AS SELECT count(*) FROM every", "INSERT INTO made SELECT s, 1000000000000000000000 FROM every WHERE id < 9", "INSERT INTO made SELECT v FROM every WHERE id < 5",
		"BEGIN READ ONLY", "INSERT INTO made SELECT s, sum(n) FROM every GROUP BY s", "ROLLBACK",
		"INSERT INTO made SELECT s, sum(n) FROM every GROUP BY s RETURNING s", "SELECT count(*), sum(total) FROM made",
	} {
		want, got := ask(t, direct, sql, nil), ask(t, proxy, sql, nil)
		if strings.Contains(sql, "RETURNING") {
			continue // in any order
		}
		if sql == "SELECT count(*), sum(total) FROM made" {
			if got.String() != want.String() {
				t.Errorf("%s: %s, want %s", sql, got, want)
			}
			continue
		}
		if got.String() != want.String() {
			t.Errorf("%s: %s", sql, firstDifference([]byte(got.String()), []byte(want.String())))
		}
	}
}

// TestPostgresFinishesCancelled cancels the rest while the server runs it.
func TestPostgresFinishesCancelled(t *testing.T) {
	s := privateStack(t, finishSchema)
	proxy := connect(t, s.proxy.url("postgres"))
	// The rest takes minutes.
	sql := "SELECT count(*) FROM (SELECT quote_literal(v), generate_series(1, 300000000) FROM every WHERE id < 3) q"
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := proxy.Exec(ctx, sql).ReadAll()
		done <- err
	}()
	time.Sleep(500 * time.Millisecond)
	if err := proxy.CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := <-done
	cancel()
	if err == nil || !strings.Contains(err.Error(), "57014") {
		t.Fatalf("cancelled: %v", err)
	}
	if a := ask(t, proxy, "SELECT count(*) FROM every", nil); a.err != "" || len(a.rows) != 1 {
		t.Errorf("behind it: %s", a)
	}
}

// TestPostgresFinishesNoCollations: of arrays of text the collation of the elements is not known, by which the rest may sort.
func TestPostgresFinishesNoCollations(t *testing.T) {
	s := privateStack(t, `CREATE TABLE sorted (id int PRIMARY KEY, k text COLLATE "und-x-icu", ka text[] COLLATE "und-x-icu");
INSERT INTO sorted VALUES (1, 'abc', '{b,B,a}'), (2, 'ABC', '{Z,a}'), (3, 'äbc', '{}'), (4, 'bbc', NULL)`)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, sql := range []string{
		"SELECT * FROM unnest((SELECT array_agg(k ORDER BY k) FROM sorted)) ORDER BY 1",
		"SELECT id, x FROM sorted, unnest(ka) x ORDER BY x, id", "SELECT max(x) FROM sorted, unnest(ka) x", "SELECT id, unnest(ka) FROM sorted ORDER BY 2, 1",
		"SELECT id, ka < ARRAY['b'], quote_literal(k) FROM sorted ORDER BY id", "SELECT quote_literal(k), count(*) FROM sorted GROUP BY k ORDER BY k",
	} {
		if want, got := ask(t, direct, sql, nil), ask(t, proxy, sql, nil); want.err != "" || got.String() != want.String() {
			t.Errorf("%s: %s%s", sql, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
		}
	}
}

// TestPostgresWritesOnce has a trigger that warns of each row, and a column with a sequence: the client hears of each row once, and
// each takes one number, also where the statement fails.
func TestPostgresWritesOnce(t *testing.T) {
	s := privateStack(t, finishSchema+`;
CREATE TABLE filled (s int CHECK (s < 6), n numeric, number serial);
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE NOTICE 'row %', NEW.s; RETURN NEW; END$$;
CREATE TRIGGER tell BEFORE INSERT ON filled FOR EACH ROW EXECUTE FUNCTION tell()`)
	noticing := func(tg target) (*pgconn.PgConn, *[]string) {
		config, err := pgconn.ParseConfig(tg.url("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		heard := &[]string{}
		config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { *heard = append(*heard, n.Message) }
		conn, err := pgconn.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.Background()) })
		return conn, heard
	}
	direct, wanted := noticing(s.direct)
	proxy, heard := noticing(s.proxy)
	admin := connect(t, s.direct.url("postgres"))
	must(t, admin, "SELECT nextval('filled_number_seq')")
	number := regexp.MustCompile(`, \d+\)`) // of the sequence, in a failing row
	for _, sql := range []string{
		"INSERT INTO filled (s, n) SELECT s, sum(n) FROM every WHERE s < 4 AND id < 60 GROUP BY s ORDER BY s",
		"INSERT INTO filled (s, n) SELECT s, sum(n) FROM every WHERE id < 60 GROUP BY s ORDER BY s",
		"SELECT count(*), sum(n) FROM filled",
	} {
		for _, block := range []bool{false, true} {
			*wanted, *heard = nil, nil
			if block {
				must(t, direct, "BEGIN")
				must(t, proxy, "BEGIN")
			}
			var last [3]int
			var want, got answer
			for i, step := range []func(){func() {}, func() { want = ask(t, direct, sql, nil) }, func() { got = ask(t, proxy, sql, nil) }} {
				step()
				fmt.Sscanf(ask(t, admin, "SELECT last_value FROM filled_number_seq", nil).rows[0], `"%d"|`, &last[i])
			}
			if last[2]-last[1] != last[1]-last[0] {
				t.Errorf("%s: takes %d numbers, want %d", sql, last[2]-last[1], last[1]-last[0])
			}
			got.err, want.err = number.ReplaceAllString(got.err, ""), number.ReplaceAllString(want.err, "")
			if got.String() != want.String() || !slices.Equal(*heard, *wanted) {
				t.Errorf("%s: %q, want %q: %s", sql, *heard, *wanted, firstDifference([]byte(got.String()), []byte(want.String())))
			}
			if block {
				must(t, direct, "ROLLBACK")
				must(t, proxy, "ROLLBACK")
			}
			must(t, direct, "DELETE FROM filled")
		}
	}
}
