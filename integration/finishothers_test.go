package integration

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// othersSchema has tables that are copied, and others.
const othersSchema = `CREATE TABLE sold (id int PRIMARY KEY, region int, shop text, day date, x numeric(12,2), n bigint, f float8, note text);
INSERT INTO sold SELECT i, nullif(i % 12, 3), 'shop ' || i % 5, date '2024-01-01' + i % 60, (i % 400) / 4.0, i * 3, i / 7.0, CASE WHEN i % 3 > 0 THEN 'note ' || i % 4 END FROM generate_series(1, 20000) i;
CREATE TABLE item (id int PRIMARY KEY, kind text);
INSERT INTO item SELECT i, 'kind ' || i % 3 FROM generate_series(0, 11) i;
CREATE SCHEMA away;
CREATE TABLE away.region (id int, name text, rate numeric, weight float8, active boolean, opened date, loose text);
INSERT INTO away.region SELECT i, 'region ' || i % 4, i / 2.0, i / 3.0, i % 3 > 0, date '2024-01-01' + i, 'x' FROM generate_series(0, 9) i;
INSERT INTO away.region VALUES (4, 'second', 1.50, 1, true, '2024-01-20', 'y'), (NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE away.shop (shop text, city text);
INSERT INTO away.shop VALUES ('shop 1', 'A'), ('shop 2', 'B'), ('shop 2', 'C'), ('shop 9', 'D');
CREATE VIEW away.seen AS SELECT * FROM away.region;
CREATE SEQUENCE away.counted;
CREATE VIEW away.counting AS SELECT nextval('away.counted') AS id;
CREATE TABLE away.guarded (id int, name text);
INSERT INTO away.guarded VALUES (1, 'one'), (2, 'two');
ALTER TABLE away.guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY odd ON away.guarded USING (id % 2 = 1);
CREATE EXTENSION citext; CREATE TYPE pair AS (a int, b text);
CREATE TABLE away.made (id int, name text, c citext, p pair, q pair[]);
INSERT INTO away.made SELECT i, 'made ' || i % 3, 'C' || i, (i, 'x')::pair, ARRAY[(i, 'y')::pair] FROM generate_series(0, 9) i;
CREATE TABLE away.parent (id int, name text);
CREATE TABLE away.child () INHERITS (away.parent);
CREATE ROLE poor LOGIN;
GRANT USAGE ON SCHEMA away TO poor;
GRANT SELECT ON sold, item, away.shop, away.guarded TO poor;
VACUUM ANALYZE`

// overOthers are statements of which PostgreSQL joins what is computed here with tables that are not copied.
var overOthers = []string{
	"SELECT l.name, sum(s.x), count(*), avg(s.x), min(s.day), max(s.n) FROM sold s JOIN away.region l ON l.id = s.region WHERE s.day > '2024-01-10' GROUP BY l.name ORDER BY l.name",
	"SELECT name, sum(x) FROM sold, away.region l WHERE l.id = region AND active GROUP BY name ORDER BY 2 DESC, 1 LIMIT 3",
	"SELECT l.city, count(*), sum(n) FROM sold s LEFT JOIN away.shop l ON l.shop = s.shop WHERE s.id > 100 GROUP BY 1 ORDER BY 1 NULLS FIRST",
	"SELECT count(*), sum(s.n), avg(s.n), max(s.x) FROM sold s JOIN away.region l ON s.region = l.id WHERE l.name IN ('region 1', 'second') OR l.opened < s.day",
	"SELECT count(*), sum(s.n) FROM sold s JOIN away.region l ON s.region = l.id WHERE l.name = 'nosuch'",
	"SELECT date_trunc('month', s.day) AS month, l.name, sum(s.x) FROM sold s JOIN away.region l ON l.id = s.region GROUP BY month, l.name ORDER BY 1, 2",
	"SELECT i.kind, r.name, p.city, sum(s.x) FROM sold s JOIN away.region r ON r.id = s.region JOIN item i ON i.id = s.region JOIN away.shop p ON p.shop = s.shop WHERE i.kind <> 'kind 1' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
	"SELECT s.id, s.shop, l.name FROM sold s JOIN away.region l ON l.id = s.region WHERE s.id < 60 ORDER BY s.id, l.name",
	"SELECT s.id, l.weight * 2, l.loose FROM sold s LEFT JOIN away.region l ON l.id = s.region AND l.active WHERE s.id < 60 ORDER BY s.id, 2",
	"WITH t AS (SELECT region, sum(x) AS total, count(*) AS c FROM sold GROUP BY region) SELECT l.name, t.total, t.c * l.rate FROM t JOIN away.region l ON l.id = t.region ORDER BY t.region, l.name",
	"SELECT l.name, q.total FROM away.region l LEFT JOIN (SELECT region, sum(x) AS total FROM sold GROUP BY 1) q ON q.region = l.id ORDER BY l.id, l.name",
	"SELECT * FROM away.shop WHERE shop IN (SELECT shop FROM sold WHERE id < 500) ORDER BY city",
	"SELECT l.name FROM away.region l WHERE EXISTS (SELECT 1 FROM (SELECT region FROM sold WHERE n > 59000) q WHERE q.region = l.id) ORDER BY 1, l.opened",
	"SELECT name, (SELECT sum(x) FROM sold) FROM away.region WHERE id = 4 ORDER BY name",
	"SELECT l.name, count(DISTINCT s.shop), count(*) FROM sold s JOIN away.region l ON l.id = s.region GROUP BY l.name HAVING sum(s.n) > 1000 ORDER BY l.name",
	"SELECT DISTINCT l.name, s.shop FROM sold s JOIN away.region l ON l.id = s.region WHERE s.id < 200 ORDER BY 1, 2",
	"SELECT * FROM (SELECT l.name, s.shop, sum(s.x) AS x, grouping(l.name) AS g FROM sold s JOIN away.region l ON l.id = s.region GROUP BY ROLLUP (l.name, s.shop)) q ORDER BY g, name, shop",
	"SELECT l.name, sum(s.n), rank() OVER (ORDER BY sum(s.n) DESC) FROM sold s JOIN away.region l ON l.id = s.region GROUP BY l.name ORDER BY 3, 1",
	"SELECT l.name, count(*) FROM sold s JOIN away.region l ON l.id = s.region GROUP BY l.name ORDER BY upper(l.name)",
	"SELECT l.name, sum(s.x), count(*) FROM sold s JOIN away.made l ON l.id = s.region GROUP BY l.name ORDER BY l.name",
	"SELECT l.name, q.total FROM away.made l JOIN (SELECT region AS id, sum(x) AS total FROM sold GROUP BY 1) q USING (id) ORDER BY l.id",
	"SELECT s.region, count(*) FILTER (WHERE s.x > 50), bool_or(s.note IS NULL) FROM sold s LEFT JOIN away.region l ON l.id = s.region WHERE l.id IS NULL GROUP BY 1 ORDER BY 1",
}

// notOverOthers are statements whose rest might do something, or not be the same: they are forwarded.
var notOverOthers = []string{
	"SELECT l.rate, count(*) FROM sold s JOIN away.region l ON l.id = s.region GROUP BY l.rate ORDER BY 1",
	"SELECT l.name, sum(s.n) FROM sold s JOIN away.seen l ON l.id = s.region GROUP BY 1 ORDER BY 1",
	"SELECT l.name, count(*) FROM sold s JOIN away.parent l ON l.id = s.region GROUP BY 1 ORDER BY 1",
	"SELECT l.relname, count(*) FROM sold s JOIN pg_class l ON l.oid = s.region::oid GROUP BY 1 ORDER BY 1",
	"SELECT l.name, count(*) FROM sold s JOIN away.region l ON l.id = s.region AND 1 / l.id > 0 WHERE l.id > 0 GROUP BY 1 ORDER BY 1",
	"SELECT l.name, sum(s.f) FROM sold s JOIN away.region l ON l.id = s.region WHERE s.id < 10 GROUP BY 1 ORDER BY 1",
	"SELECT sum(s.n * l.weight) FROM sold s JOIN away.region l ON l.id = s.region WHERE s.id < 2",
	"SELECT s.id, l.name FROM sold s JOIN away.region l ON l.id = s.region WHERE s.id < 5 ORDER BY 1, 2 FOR UPDATE OF l",
	"SELECT l.name, count(*) FROM sold s JOIN away.region l USING (id) GROUP BY 1 ORDER BY 1",
	"SELECT l.name, count(*) FROM sold s FULL JOIN away.region l ON l.id = s.region GROUP BY 1 ORDER BY 1",
	"SELECT l.c, q.total FROM away.made l JOIN (SELECT region, sum(x) AS total FROM sold GROUP BY 1) q ON q.region = l.id ORDER BY l.c",
	"SELECT l.*, q.total FROM away.made l JOIN (SELECT region, sum(x) AS total FROM sold GROUP BY 1) q ON q.region = l.id ORDER BY 1",
	"SELECT DISTINCT * FROM away.made WHERE id IN (SELECT region FROM sold WHERE n < 300)",
	"SELECT l.z, q.total FROM away.made l (id, y, z) JOIN (SELECT region, sum(x) AS total FROM sold GROUP BY 1) q ON q.region = l.id ORDER BY l.id",
	"SELECT id, q.total FROM away.made l JOIN (SELECT region AS id, 'C1'::text AS c, sum(x) AS total FROM sold GROUP BY 1) q USING (id, c) ORDER BY l.id",
	"SELECT l.name, q.total FROM away.made l NATURAL JOIN (SELECT region AS id, 'C1'::text AS c, sum(x) AS total FROM sold GROUP BY 1) q ORDER BY l.id",
	"SELECT (l.p).a, q.total FROM away.made l JOIN (SELECT region, sum(x) AS total FROM sold GROUP BY 1) q ON q.region = l.id ORDER BY 1",
	"SELECT l.name FROM away.region l JOIN away.shop ON true ORDER BY l.id, city",
	"WITH t AS (SELECT count(*) AS c FROM sold), w AS (INSERT INTO away.child VALUES (1, 'a') RETURNING id) SELECT c, w.id FROM t, w",
	"SELECT id, count(*) FROM sold s, away.region l WHERE l.id = s.region GROUP BY id ORDER BY 1", // ambiguous
}

func othersStack(t *testing.T) (s *stack, direct, proxy *pgconn.PgConn) {
	s = privateStack(t, othersSchema)
	return s, connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
}

// TestPostgresJoinsOthers compares them in every protocol, in and outside of transaction blocks.
func TestPostgresJoinsOthers(t *testing.T) {
	s, direct, proxy := othersStack(t)
	for _, block := range []string{"", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"} {
		if block != "" {
			must(t, direct, block)
			must(t, proxy, block)
		}
		for _, sql := range overOthers {
			for _, p := range protocols {
				want := ask(t, direct, sql, p.format)
				s.finishesSoon(t, func() {
					if got := ask(t, proxy, sql, p.format); want.err != "" || got.String() != want.String() {
						t.Errorf("%s (%s, %s): %s%s", sql, p.name, block, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
					}
				})
			}
			if t.Failed() {
				t.Fatal(sql, reasons(t, s))
			}
		}
		if block != "" {
			must(t, direct, "COMMIT")
			must(t, proxy, "COMMIT")
		}
	}
}

// TestPostgresJoinsOthersNot has statements that are forwarded.
func TestPostgresJoinsOthersNot(t *testing.T) {
	s, direct, proxy := othersStack(t)
	for _, sql := range notOverOthers {
		for _, p := range protocols {
			before := s.queries(t, "partial")
			want, got := ask(t, direct, sql, p.format), ask(t, proxy, sql, p.format)
			if got.String() != want.String() {
				t.Errorf("%s: %s", sql, firstDifference([]byte(got.String()), []byte(want.String())))
			}
			if s.queries(t, "partial") != before {
				t.Errorf("%s: PostgreSQL has finished it", sql)
			}
		}
	}
	// Nothing is done twice.
	sql := "SELECT l.id, q.c FROM away.counting l, (SELECT count(*) AS c FROM sold) q"
	must(t, direct, "SELECT setval('away.counted', 10)")
	if got := ask(t, proxy, sql, nil); len(got.rows) != 1 || got.rows[0] != `"11"|"20000"|` {
		t.Errorf("a view that counts: %s", got)
	}
}

// finishesSoon runs f until PostgreSQL finishes a statement in it: others may commit amid one, as autovacuum does.
func (s *stack) finishesSoon(t *testing.T, f func()) {
	t.Helper()
	before := s.queries(t, "partial")
	for range 40 {
		if f(); s.queries(t, "partial") != before || t.Failed() {
			return
		}
		time.Sleep(250 * time.Millisecond)
	}
	t.Errorf("PostgreSQL has finished none: %v", reasons(t, s))
}

// TestPostgresJoinsOthersAsOfNow has changes, of the own transaction and of others, to both sides.
func TestPostgresJoinsOthersAsOfNow(t *testing.T) {
	s, direct, proxy := othersStack(t)
	sql := "SELECT l.city, sum(s.n), count(*) FROM sold s JOIN away.shop l ON l.shop = s.shop GROUP BY l.city ORDER BY 1"
	same := func(where string) {
		t.Helper()
		for _, p := range protocols {
			want, got := ask(t, direct, sql, p.format), ask(t, proxy, sql, p.format)
			if want.err != "" || got.err != "" || !slices.Equal(got.rows, want.rows) { // columns of temporary tables are of two
				t.Errorf("%s: %s, want %s", where, got, want)
			}
		}
	}
	forwarded := func(where string) {
		t.Helper()
		before := s.queries(t, "partial")
		if same(where); s.queries(t, "partial") != before {
			t.Errorf("%s: PostgreSQL has finished it", where)
		}
	}
	for i, change := range []string{"UPDATE away.shop SET city = 'E' WHERE city = 'A'", "INSERT INTO sold (id, shop, n) VALUES (30001, 'shop 9', 7)"} {
		s.finishesSoon(t, func() { same("before") })
		must(t, direct, change)
		s.finishesSoon(t, func() { same("behind " + change) })
		// The own transaction's are in no column: both make them, and see nothing of each other's.
		for _, conn := range []*pgconn.PgConn{direct, proxy} {
			must(t, conn, "BEGIN")
			must(t, conn, []string{"INSERT INTO away.shop VALUES ('shop 3', 'own')", "INSERT INTO sold (id, shop) VALUES (30002 + pg_backend_pid(), 'shop 2')"}[i])
		}
		forwarded("own changes")
		must(t, direct, "ROLLBACK")
		must(t, proxy, "ROLLBACK")
	}
	// An old snapshot is of both sides.
	must(t, proxy, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	want := ask(t, proxy, sql, nil)
	must(t, direct, "UPDATE away.shop SET city = 'F' WHERE city = 'E'; DELETE FROM sold WHERE id < 100")
	s.finishesSoon(t, func() {
		if got := ask(t, proxy, sql, nil); got.String() != want.String() {
			t.Errorf("an old snapshot: %s", firstDifference([]byte(got.String()), []byte(want.String())))
		}
	})
	must(t, proxy, "COMMIT")
	s.finishesSoon(t, func() { same("behind it") })
	// A temporary table of the name, and one that has become a view.
	for _, conn := range []*pgconn.PgConn{direct, proxy} {
		must(t, conn, "CREATE TEMP TABLE shop AS SELECT * FROM away.shop WHERE city <> 'B'")
	}
	sql = "SELECT l.city, sum(s.n), count(*) FROM sold s JOIN shop l ON l.shop = s.shop GROUP BY l.city ORDER BY 1"
	s.finishesSoon(t, func() { same("a temporary table") })
	sql = "SELECT city, sum(n) FROM sold s JOIN away.shop l ON l.shop = s.shop GROUP BY city ORDER BY 1"
	s.finishesSoon(t, func() { same("names without tables") })
	must(t, direct, "ALTER TABLE away.shop ADD COLUMN n int")
	for _, p := range protocols {
		if want, got := ask(t, direct, sql, p.format), ask(t, proxy, sql, p.format); want.err == "" || got.String() != want.String() {
			t.Errorf("an ambiguous name: %s, want %s", got, want)
		}
	}
}

// TestPostgresJoinsOthersRights has roles that may not read one side, or not all rows, and rests that fail.
func TestPostgresJoinsOthersRights(t *testing.T) {
	s := privateStack(t, othersSchema)
	direct, proxy := connect(t, s.direct.url("poor")), connect(t, s.proxy.url("poor"))
	for _, block := range []bool{false, true} {
		for _, c := range []struct {
			sql  string
			part int
		}{
			{"SELECT l.name, sum(s.x) FROM sold s JOIN away.region l ON l.id = s.region GROUP BY 1 ORDER BY 1", 0},
			{"SELECT l.name, count(*) FROM sold s JOIN away.guarded l ON l.id = s.region GROUP BY 1 ORDER BY 1", 0},
			{"SELECT l.city, exp(count(*) - 90000) / (count(*) - count(*)) FROM sold s JOIN away.shop l ON l.shop = s.shop GROUP BY 1 ORDER BY 1", 0},
			{"SELECT l.city, nosuch(l.city) FROM sold s JOIN away.shop l ON l.shop = s.shop GROUP BY 1 ORDER BY 1", 0},
			{"SELECT l.city, sum(s.x) FROM sold s JOIN away.shop l ON l.shop = s.shop GROUP BY 1 ORDER BY 1", 1},
		} {
			for _, p := range protocols {
				if block {
					must(t, direct, "BEGIN; SAVEPOINT a")
					must(t, proxy, "BEGIN; SAVEPOINT a")
				}
				before := s.queries(t, "partial")
				want, got := ask(t, direct, c.sql, p.format), ask(t, proxy, c.sql, p.format)
				if got.String() != want.String() {
					t.Errorf("%s (%s, block %t): %s", c.sql, p.name, block, firstDifference([]byte(got.String()), []byte(want.String())))
				}
				if n := int(s.queries(t, "partial") - before); n > c.part {
					t.Errorf("%s (%s, block %t): %d in part %s", c.sql, p.name, block, n, reasons(t, s))
				}
				if block {
					for _, sql := range []string{"ROLLBACK TO a; SELECT count(*) FROM sold", "ROLLBACK"} {
						if want, got := ask(t, direct, sql, nil), ask(t, proxy, sql, nil); got.String() != want.String() {
							t.Errorf("behind it: %s, want %s", got, want)
						}
					}
				}
			}
		}
	}
}

// TestPostgresJoinsOthersAmidCommits changes both sides at once, so that each moment but one in which others have committed between the
// gate and the rest shows: what is returned is always of one of them.
func TestPostgresJoinsOthersAmidCommits(t *testing.T) {
	s, direct, proxy := othersStack(t)
	must(t, direct, "CREATE TABLE away.level (id int, n bigint); INSERT INTO away.level SELECT 1, sum(n) FROM sold")
	sql := "SELECT l.n - q.n FROM away.level l, (SELECT sum(n) AS n FROM sold) q"
	done := make(chan error)
	go func() {
		for range 400 {
			if _, err := direct.Exec(t.Context(), "BEGIN; UPDATE sold SET n = n + 5 WHERE id = 7; UPDATE away.level SET n = n + 5; COMMIT").ReadAll(); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		for _, p := range protocols[:2] {
			if got := ask(t, proxy, sql, p.format); len(got.rows) != 1 || got.rows[0] != `"0"|` {
				t.Fatalf("%s: %s", p.name, got)
			}
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			s.finishesSoon(t, func() { ask(t, proxy, sql, nil) })
			return
		default:
		}
	}
}

// TestPostgresJoinsOthersHeld has results that are more than is held back.
func TestPostgresJoinsOthersHeld(t *testing.T) {
	s, direct, proxy := othersStack(t)
	for _, sql := range []string{
		"SELECT s.id, repeat(l.city, 500) FROM sold s JOIN away.shop l ON l.shop = s.shop WHERE s.id < 1500 ORDER BY s.id, 2",
		"SELECT s.id FROM sold s, away.region l, away.region m WHERE s.id < 1500 ORDER BY 1",
	} {
		for _, p := range protocols {
			before := s.queries(t, "partial")
			want, got := ask(t, direct, sql, p.format), ask(t, proxy, sql, p.format)
			if want.err != "" || got.String() != want.String() || s.queries(t, "partial") != before {
				t.Errorf("%s: %s%s", sql, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		}
	}
}

// TestPostgresJoinsOthersNames has names that are quoted, under settings in which strings are read otherwise: PostgreSQL warns of none.
func TestPostgresJoinsOthersNames(t *testing.T) {
	s := privateStack(t, othersSchema+`;
CREATE SCHEMA "a\'b";
CREATE TABLE "a\'b"."c ""\" AS SELECT shop, city AS "d\'", 'é' || city AS "select" FROM away.shop`)
	direct := connect(t, s.direct.url("postgres"))
	config, err := pgconn.ParseConfig(s.proxy.url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { t.Errorf("a notice: %s", n.Message) }
	proxy, err := pgconn.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close(context.Background()) })
	sql := `SELECT l."d\'", l."select" AS "E\", sum(s.n) FROM sold s JOIN "a\'b"."c ""\" l ON l.shop = s.shop GROUP BY "d\'", l."select" ORDER BY 1`
	for _, set := range []string{"SET standard_conforming_strings = off", "SET backslash_quote = off", "SET standard_conforming_strings = on"} {
		must(t, direct, set)
		must(t, proxy, set)
		for _, p := range protocols {
			if want, got := ask(t, direct, sql, p.format), ask(t, proxy, sql, p.format); want.err != "" || got.String() != want.String() {
				t.Errorf("%s: %s: %s, want %s", set, p.name, got, want)
			}
		}
	}
	if s.queries(t, "partial") == 0 {
		t.Errorf("PostgreSQL has finished none: %v", reasons(t, s))
	}
}

// TestPostgresFinishesNoCalls has calls of functions that somebody has made and that nothing shows: columns that are none, and functions
// of rows and types that are preferred to those built in. PostgreSQL runs each once.
func TestPostgresFinishesNoCalls(t *testing.T) {
	s := privateStack(t, othersSchema+`;
CREATE TYPE away.pair AS (a int, b int);
CREATE TABLE away.paired (id int, p away.pair);
INSERT INTO away.paired VALUES (1, (1, 2));
CREATE FUNCTION away.calls(away.region) RETURNS bigint LANGUAGE sql AS $$SELECT nextval('away.counted')$$;
CREATE FUNCTION away.calls(text) RETURNS bigint LANGUAGE sql AS $$SELECT nextval('away.counted')$$;
CREATE FUNCTION away.called(record) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RETURN nextval('away.counted'); END$$;
CREATE FUNCTION away.quote_nullable(away.region) RETURNS bigint LANGUAGE sql AS $$SELECT nextval('away.counted')$$;
CREATE FUNCTION away.quote_nullable(away.pair) RETURNS bigint LANGUAGE sql AS $$SELECT nextval('away.counted')$$;
CREATE FUNCTION away."Odd, ""name"(record) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RETURN nextval('away.counted'); END$$;
ALTER DATABASE postgres SET search_path = public, away`)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, sql := range []string{
		"SELECT l.calls, %s FROM away.region l, (SELECT sum(n) AS c FROM sold) q WHERE l.id = 1",
		"SELECT (l).calls, %s FROM away.region l, (SELECT sum(n) AS c FROM sold) q WHERE l.id = 1",
		"SELECT away.region.calls, %s FROM away.region, (SELECT sum(n) AS c FROM sold) q WHERE id = 1",
		"SELECT quote_nullable(l), %s FROM away.region l, (SELECT sum(n) AS c FROM sold) q WHERE l.id = 1",
		"SELECT quote_nullable(l.*), %s FROM away.region l, (SELECT sum(n) AS c FROM sold) q WHERE l.id = 1",
		"SELECT quote_nullable(l.p), %s FROM away.paired l, (SELECT sum(n) AS c FROM sold) q WHERE l.id = 1",
		"SELECT quote_nullable(region), %s FROM away.region, (SELECT sum(n) AS c FROM sold) q WHERE id = 1",
		"SELECT count(l.calls), %s FROM sold s JOIN away.region l ON l.id = s.region, (SELECT 2 AS c) q WHERE s.id < 20",
		"SELECT q.called, quote_nullable(q.c), %s FROM (SELECT sum(n) AS c FROM sold) q",
		`SELECT q."Odd, ""name", quote_nullable(q.c), %s FROM (SELECT sum(n) AS c FROM sold) q`,
		"SELECT (s.note).calls, quote_nullable(s.note), %s FROM sold s, (SELECT 0 AS c) q GROUP BY s.note, q.c ORDER BY 2",
		"WITH q AS (SELECT sum(n) AS c FROM sold) SELECT q.called, quote_nullable(q.c), %s FROM q",
	} {
		for _, fails := range []string{"1", "1 / (q.c - q.c)"} {
			sql := strings.Replace(sql, "%s", fails, 1)
			for _, p := range protocols {
				var counted [2]string
				var answers [2]answer
				for i, conn := range []*pgconn.PgConn{direct, proxy} {
					must(t, direct, "ALTER SEQUENCE away.counted RESTART")
					answers[i] = ask(t, conn, sql, p.format)
					counted[i] = ask(t, direct, "SELECT last_value, is_called FROM away.counted", nil).String()
				}
				if answers[1].String() != answers[0].String() || counted[1] != counted[0] {
					t.Errorf("%s (%s): %s, %s: %s, want %s", sql, p.name, firstDifference([]byte(answers[1].String()), []byte(answers[0].String())), sql, counted[1], counted[0])
				}
			}
		}
	}
}
