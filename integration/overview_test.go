package integration

import (
	"strings"
	"testing"
	"time"
)

const overviewSchema = `
CREATE TABLE sale (id int PRIMARY KEY, shop int NOT NULL, day date NOT NULL, at timestamp, kind varchar(10), code char(4), note text, price numeric(10,2) NOT NULL, many int, doc varbit);
CREATE TABLE shop (id int PRIMARY KEY, city text NOT NULL, open bool NOT NULL);
INSERT INTO sale SELECT i, i % 30, date '2020-01-01' + i % 700, timestamp '2020-01-01' + i * interval '1 hour', (ARRAY['web','desk','phone'])[1 + i % 3], 'c' || i % 7,
 CASE WHEN i % 5 > 0 THEN 'note ' || i % 40 END, i % 900 / 7.0, nullif(i % 11, 4), '101' FROM generate_series(1, 6000) i;
INSERT INTO shop SELECT i, 'city ' || i % 8, i % 4 > 0 FROM generate_series(0, 24) i;
CREATE SCHEMA mart;
CREATE VIEW plain AS SELECT * FROM sale;
CREATE VIEW renamed(a, b, c) AS SELECT id, price * many, substring(note, 3) FROM sale WHERE kind IN ('web', 'desk') AND code <> 'c3';
CREATE VIEW mart.joined AS SELECT s.*, h.city, h.open FROM sale s LEFT JOIN shop h ON h.id = s.shop;
CREATE VIEW mart.monthly AS SELECT date_trunc('month', day)::date AS month, city, count(*) AS n, sum(price) AS total, avg(price) AS mean, min(note) AS least
 FROM mart.joined WHERE open IS NOT FALSE GROUP BY 1, 2;
CREATE VIEW best AS WITH t AS (SELECT shop, sum(price) AS total FROM sale GROUP BY shop) SELECT h.city, t.total, rank() OVER (ORDER BY t.total DESC) AS place FROM t JOIN shop h ON h.id = t.shop;
CREATE VIEW everything AS SELECT id, 'sale' AS what FROM sale WHERE many > 5 UNION ALL SELECT id, 'shop' FROM shop;
CREATE VIEW years AS SELECT EXTRACT(year FROM day) AS year, CASE WHEN price BETWEEN 10 AND 50 THEN 'mid' WHEN note LIKE 'note 1%' THEN 'one' ELSE kind END AS class,
 coalesce(note, 'none') AS note, many::bigint / 2 AS half, price::int AS whole FROM sale WHERE day >= '2020-03-01' AND NOT (note IS NULL AND many IS NULL);
CREATE VIEW lonely AS SELECT h.* FROM shop h WHERE NOT EXISTS (SELECT 1 FROM sale s WHERE s.shop = h.id AND s.kind = 'web');
CREATE VIEW barrier WITH (security_barrier) AS SELECT id, price FROM sale WHERE shop = 3;
ANALYZE;
`

// overviewQueries are over views of overviewSchema, each accelerated.
var overviewQueries = []string{
	"SELECT count(*), sum(price), min(day) FROM plain WHERE kind = 'web'",
	"SELECT shop, count(*), max(note) FROM plain GROUP BY shop ORDER BY 1",
	"SELECT p.kind, sum(p.price) FROM public.plain p WHERE p.day > '2020-06-01' GROUP BY p.kind ORDER BY 1",
	"SELECT plain.kind, count(*) FROM plain GROUP BY plain.kind ORDER BY 1",
	"SELECT a, b, c FROM renamed ORDER BY a LIMIT 20",
	"SELECT x, count(*), sum(y) FROM renamed AS r(z, y, x) GROUP BY x ORDER BY 1 NULLS FIRST",
	"SELECT city, count(*), count(open), sum(price) FROM mart.joined GROUP BY city ORDER BY city",
	"SELECT count(*) FROM mart.joined WHERE city IS NULL",
	"SELECT * FROM mart.monthly ORDER BY month, city",
	"SELECT city, max(total), sum(n) FROM mart.monthly WHERE month >= '2021-01-01' GROUP BY city ORDER BY 2 DESC, 1",
	"SELECT * FROM best WHERE place <= 5 ORDER BY place, city",
	"SELECT what, count(*), sum(id) FROM everything GROUP BY what ORDER BY what",
	"SELECT year, class, count(*), min(note), sum(half), sum(whole) FROM years GROUP BY year, class ORDER BY 1, 2",
	"SELECT id, city FROM lonely ORDER BY id",
	"SELECT count(*) FROM plain a JOIN plain b ON a.id = b.id JOIN shop h ON h.id = b.shop WHERE h.open",
	"SELECT count(*) FROM sale WHERE shop IN (SELECT id FROM lonely) OR id IN (SELECT a FROM renamed)",
	"WITH sale AS (SELECT 1 AS id) SELECT count(*) FROM plain, sale WHERE plain.id > 5",
	"SELECT (SELECT count(*) FROM everything), (SELECT max(total) FROM mart.monthly), count(*) FROM sale",
}

// TestViewsOfTables: views are answered as what they select, those over views too, in each protocol.
func TestViewsOfTables(t *testing.T) {
	s := privateStack(t, overviewSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	must(t, proxy, "SET pgaccel.mode = 'force'")
	for _, sql := range overviewQueries {
		for _, p := range protocols {
			s.accelerates(t, 1, func() {
				want := ask(t, direct, sql, p.format)
				if got := ask(t, proxy, sql, p.format); want.err != "" || got.String() != want.String() {
					t.Errorf("%s (%s): %s%s", sql, p.name, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
				}
			})
		}
	}
	if t.Failed() {
		t.Log(ask(t, proxy, "SELECT query, reason, detail, also FROM pgaccel.queries WHERE reason <> ''", nil))
	}
	s.forwardsAll(t, func() { ask(t, proxy, "SELECT count(*), sum(price) FROM barrier", nil) })
}

// TestViewsChange: a view that is replaced, renamed, or whose tables are, means what it means to the
// server at each moment, and is answered again soon.
func TestViewsChange(t *testing.T) {
	s := privateStack(t, overviewSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	must(t, proxy, "SET pgaccel.mode = 'force'")
	same := func(after, sql string) {
		t.Helper()
		got, want := ask(t, proxy, sql, nil), ask(t, direct, sql, nil)
		if got.String() != want.String() {
			t.Errorf("after %s: %s: %s instead of %s", after, sql, got, want)
		}
	}
	again := func(after, sql string) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			before := s.queries(t, "accelerated")
			if same(after, sql); s.queries(t, "accelerated") > before {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("after %s: %s is not answered: %s", after, sql, ask(t, proxy, "SELECT query, reason, detail FROM pgaccel.queries ORDER BY last_used DESC LIMIT 3", nil))
			}
		}
	}
	const monthly, total = "SELECT count(*), sum(total) FROM mart.monthly", "SELECT count(*), sum(b) FROM renamed"
	again("the start", monthly)
	again("the start", total)
	for _, c := range []struct{ ddl, sql string }{
		{"CREATE OR REPLACE VIEW renamed(a, b, c) AS SELECT id, price * many + 1, substring(note, 3) FROM sale WHERE kind = 'web'", total},
		{"CREATE OR REPLACE VIEW mart.joined AS SELECT s.*, h.city, h.open FROM sale s JOIN shop h ON h.id = s.shop WHERE h.open", monthly},
		{"CREATE VIEW fresh AS SELECT shop, sum(price) AS p FROM plain GROUP BY shop", "SELECT sum(p) FROM fresh"},
		{"ALTER VIEW fresh RENAME TO older", "SELECT sum(p) FROM older"},
		{"ALTER VIEW older RENAME COLUMN p TO q", "SELECT sum(q) FROM older"},
		{"CREATE TABLE other (LIKE sale INCLUDING ALL); INSERT INTO other SELECT * FROM sale WHERE id < 100; ALTER TABLE sale RENAME TO gone; ALTER TABLE other RENAME TO sale", total},
		{"ALTER TABLE gone RENAME COLUMN many TO few; ALTER TABLE gone ADD many int DEFAULT 3", total},
		{"CREATE SCHEMA next; ALTER VIEW older SET SCHEMA next", "SELECT sum(q) FROM next.older"},
		{"ALTER SCHEMA mart RENAME TO was", "SELECT count(*), sum(total) FROM was.monthly"},
		{"ALTER VIEW renamed SET (security_invoker = true)", total},
		{"CREATE VIEW mine WITH (security_invoker = true) AS SELECT * FROM renamed", "SELECT count(*), sum(b) FROM mine"},
		{"DROP VIEW mine; CREATE TABLE mine (a int PRIMARY KEY, b int); INSERT INTO mine VALUES (1, 2)", "SELECT count(*), sum(b) FROM mine"},
	} {
		must(t, direct, c.ddl)
		same(c.ddl, c.sql) // at once, whoever answers
		again(c.ddl, c.sql)
	}
	must(t, direct, "DROP TABLE mine; CREATE VIEW mine AS SELECT 1 AS a, 3 AS b")
	same("a view of no table", "SELECT count(*), sum(b) FROM mine")

	// In REPEATABLE READ rows are of the snapshot, definitions of now.
	must(t, proxy, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	must(t, proxy, "SELECT count(*) FROM shop")
	must(t, direct, "CREATE OR REPLACE VIEW renamed(a, b, c) AS SELECT id, price * few + 2, substring(note, 3) FROM gone")
	want := ask(t, direct, total, nil).String()
	if got := ask(t, proxy, total, nil).String(); got != want || strings.Contains(got, "ERROR") {
		t.Errorf("in REPEATABLE READ: %s instead of %s", got, want)
	}
	must(t, proxy, "COMMIT")
}

// TestViewsUnderLock: whoever holds a lock on a view, or on what one reads, longer than catalog reads
// wait for any lock keeps nothing but those views from being answered.
func TestViewsUnderLock(t *testing.T) {
	s := privateStack(t, overviewSchema)
	holder, direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	must(t, proxy, "SET pgaccel.mode = 'force'")
	const table, view = "SELECT count(*), max(city) FROM shop", "SELECT count(*), sum(b) FROM renamed"
	s.eventually(t, proxy, view)
	must(t, holder, "BEGIN; CREATE OR REPLACE VIEW renamed(a, b, c) AS SELECT id, price * 1, note FROM sale; LOCK TABLE sale IN ACCESS EXCLUSIVE MODE")
	for i, end := 0, time.Now().Add(12*time.Second); time.Now().Before(end); i++ {
		if i%10 == 0 {
			must(t, direct, "GRANT SELECT ON shop TO PUBLIC") // another definition
			s.eventually(t, proxy, table)
		}
		s.accelerates(t, 1, func() { ask(t, proxy, table, nil) })
		time.Sleep(100 * time.Millisecond)
	}
	must(t, holder, "COMMIT")
	s.eventually(t, proxy, view)
	if got, want := ask(t, proxy, view, nil).String(), ask(t, direct, view, nil).String(); got != want {
		t.Errorf("%s instead of %s", got, want)
	}
}
