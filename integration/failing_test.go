package integration

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

const failingSchema = `CREATE TABLE t (id int PRIMARY KEY, a int, b int, c int, k int);
INSERT INTO t VALUES (1, 1, 0, 1, 1), (2, 1, 1, 9, 2), (3, 5, 2, 8, 2), (4, 7, 0, 0, 3);
CREATE TABLE e (k int PRIMARY KEY, n int); INSERT INTO e VALUES (2, 20), (9, 90);
CREATE TABLE t2 (id int PRIMARY KEY); INSERT INTO t2 SELECT generate_series(1, 400);
CREATE TABLE t3 (id int PRIMARY KEY); INSERT INTO t3 SELECT generate_series(1, 40);
CREATE TABLE moments (id int PRIMARY KEY, ts timestamp, tz timestamptz);
CREATE TABLE edge (id int PRIMARY KEY, ts timestamp NOT NULL, tz timestamptz NOT NULL, f float8 NOT NULL);
INSERT INTO edge VALUES (1, '4714-11-24 00:00 BC', '4714-11-24 00:00+00 BC', 1e308), (2, '294276-12-31 23:59:59', '294276-12-31 23:59:59+00', 1e308);
INSERT INTO moments SELECT g, timestamp '2024-01-01' + g * interval '7 hours', timestamptz '2024-01-01 00:00+00' + g * interval '7 hours' FROM generate_series(1, 500) g`

// failing are statements in which an expression fails for some rows. Which of them the server computes
// it for depends on where it stands: within a subquery that it does not pull up, for all of these.
var failing = []string{
	"SELECT x FROM (SELECT a/b x, c FROM t ORDER BY c DESC LIMIT 3) s WHERE c > 5",
	"SELECT x FROM (SELECT a/b x, row_number() OVER (ORDER BY c) rn FROM t) s WHERE rn > 2",
	"SELECT x FROM (SELECT a/b x, row_number() OVER (ORDER BY c) rn FROM t) s WHERE rn > 2 AND x > 0",
	"SELECT x FROM (SELECT a/b x, c, min(id) OVER (PARTITION BY k) FROM t) s WHERE c > 5",
	"SELECT x FROM (SELECT a/b x, sum(c) OVER (PARTITION BY k) sc, k FROM t) s WHERE k = 2",
	"SELECT x, n FROM (SELECT k, a/b x, count(*) FROM t GROUP BY k, a, b) s JOIN e ON e.k = s.k",
	"SELECT x, n FROM (SELECT k, a/b x, row_number() OVER (ORDER BY c) rn FROM t) s JOIN e ON e.k = s.k",
	"SELECT x, n FROM (SELECT k, a/b x FROM t ORDER BY c LIMIT 4) s JOIN e ON e.k = s.k",
	"SELECT n, x FROM (SELECT y.k, y.x FROM (SELECT k, max(a)/min(b) x FROM t GROUP BY k) y) s JOIN e ON e.k = s.k",
	"SELECT x FROM (SELECT a/b x, count(*) n FROM t GROUP BY a, b) s WHERE n > 5",
	"SELECT x FROM (SELECT max(a)/min(b) x, k, count(*) n FROM t GROUP BY k) s WHERE n > 1",
	"SELECT x FROM (SELECT max(a)/min(b) x, k, count(*) n FROM t GROUP BY k) s WHERE k = 2",
	"SELECT x FROM (SELECT k, max(a)/min(b) x FROM t GROUP BY k) s WHERE k IN (SELECT k FROM e)",
	"SELECT n, x FROM e LEFT JOIN (SELECT k, max(a)/min(b) x FROM t GROUP BY k) s ON s.k = e.k ORDER BY 1",
	"SELECT n FROM e LEFT JOIN (SELECT k, max(a)/min(b) x FROM t GROUP BY k) s ON s.k = e.k ORDER BY 1",
	"SELECT x FROM (SELECT DISTINCT a/b x, k FROM t) s WHERE k = 2 ORDER BY 1",
	"SELECT x, n FROM (SELECT DISTINCT ON (k) a/b x, k FROM t ORDER BY k, id) s JOIN e ON e.k = s.k",
	"SELECT x FROM (SELECT DISTINCT ON (k) a/b x, k, c FROM t ORDER BY k, c DESC) s WHERE c > 8",
	"SELECT x FROM (SELECT a/b x, k FROM t UNION ALL SELECT a, k FROM t) s WHERE k = 2 ORDER BY 1",
	"SELECT x FROM (SELECT a/b x, k FROM t UNION SELECT a, k FROM t) s WHERE k = 2 ORDER BY 1",
	"SELECT n, x FROM e LEFT JOIN (SELECT k, a/b x, row_number() OVER (PARTITION BY k ORDER BY c) rn FROM t) s ON e.k = s.k AND rn = 1 ORDER BY 1",
	"SELECT n FROM e WHERE k IN (SELECT k FROM (SELECT k, a/b x, row_number() OVER (PARTITION BY k ORDER BY c) rn FROM t) s WHERE rn = 1 AND x >= 0)",
	"WITH s AS MATERIALIZED (SELECT k, a/b x, c FROM t) SELECT x FROM s WHERE k = 2",
	"WITH s AS MATERIALIZED (SELECT k, a/b x, c FROM t) SELECT c FROM s WHERE k = 2 ORDER BY 1",
	"SELECT t.c FROM t LEFT JOIN generate_series(-9, 14) s (v) ON t.c / t.b = s.v",
	"SELECT t.c FROM t LEFT JOIN e ON t.c / t.b = e.k ORDER BY 1",
	"select exists (select max(10/b) from t)",
	"select k from e where exists (select max(10/b) from t) order by 1",
	"select k from e where not exists (select max(10/b) from t) order by 1",
	"select x from (select id,10/b x from t offset 0) z where id<>1 and id<>4 order by 1",
	"select x from (select id,10/b x from t limit all) z where id<>1 and id<>4 order by 1",
	"select x from (select id,10/b x from t order by id offset 1) z where id<>4 order by 1",
	"select x from (select id,10/b x,rank() over (order by a) r from t) z where r=3",
	"select z.x from e join (select distinct k,10/b x from t) z on e.k=z.k",
	"select z.x from e join (select k,max(10/b) x from t group by k) z on e.k=z.k",
	"select z.x from e left join (select k,max(10/b) x from t group by k) z on e.k=z.k order by 1",
	"select id from t full join e on t.a<e.n order by 1",
	"select id from t full join e on t.k=5 order by 1",
	"select id from t full join e on t.k=e.k and t.a < e.n order by 1",
	"select id from t full join e on true order by 1",
	"select id from t full join e on t.k=e.k or t.id=e.k order by 1",
	"select id from t full join e on t.k is not distinct from e.k order by 1",
	"select exists (select 1 from t full join e on t.a<e.n)",
	"select id,x from (select id, 10/b x from t order by id limit 2) z join e on e.k = z.id",
	"select e.k from e where e.n in (select id+x from (select id,10/b x from t offset 0) y)",
	"select (select count(*) from (select id,10/b x from t offset 0) y where id = 2)",
	"with z as (select id,10/b x from t offset 0) select x from z where id = 2",
	"select 1 from (select 10/b x from t offset 7) z",
	"select x from (select id,10/b x from t union all select 1,1 offset 0) z where id = 2",
	"select x from (select id,10/b x from t union all select 1,1 limit all) z where id = 2",
	"select x from (select distinct a/b x, k from t) s where k = 2",
	"select n, x from e left join (select k, a/b x, row_number() over (partition by k order by c) rn from t) s on e.k = s.k and rn = 1",
	"select n from e where k in (select k from (select k, a/b x, row_number() over (partition by k order by c) rn from t) s where rn=1 and x >= 0)",
	"select n, x from e left join (select k, max(a)/min(b) x from t group by k) s on s.k = e.k",
	"select n from e left join (select k, max(a)/min(b) x from t group by k) s on s.k = e.k",
	"select z.x from t3 a join (select distinct id,1/(id-5) x from t2) z on a.id=z.id where a.id>10 limit 0",
	"select count(z.x) from t3 a join (select distinct id,1/(id-5) x from t2) z on a.id=z.id where a.id>10",
	"select count(z.x) from t3 a join (select id,max(1/(id-5)) x from t2 group by id) z on a.id=z.id where a.id>10",
	"select count(z.x) from t3 a left join (select id,max(1/(id-5)) x from t2 group by id) z on a.id=z.id where a.id>10",
	"select count(z.x) from t3 a join (select id,max(1/(id-5)) x from t2 group by id) z on a.id=z.id where a.id=10",
	"select count(z.x) from t3 a left join (select id,1/(max(id)-5) x from t2 group by id) z on a.id=z.id where a.id>10",
	"select count(*) from t3 a where exists (select 1 from (select id,1/(max(id)-5) x from t2 group by id) z where z.id = a.id and z.x = 0 ) and a.id > 10",
	// What is left out may still be computed by the server.
	"select exists (select count(*) from t where a = (select n from e))",
	"select k from e where exists (select max((select n from e)) from t)",
	"select k from e where exists (select count(*) from t where a = (select id from t2 x where x.id > e.k))",
	"select k from e where exists (select count(*) from t where id in (select (select n from e) from e))",
	"select k from e where not exists (select count(*) from t where a in (select k from e where n = (select n from e)))",
	"select k from e where exists (select count(*) from (select sum(f) s from edge) x where s > 0)",
	"select exists (select sum(f) from edge)",
	"select exists (select avg(f) from edge)",
	"select exists (select sum(f) over () from edge)",
	"select exists (select 10/b, count(*) from t group by b)",
	"select exists (select 10/b from t group by b having count(*) > 0)",
	"select exists (select 10/b from t where b = 0 offset 0)",
	"select exists (select 10/b, rank() over (order by id) from t)",
	"select exists (select 10/b from t where b = 0 union all select 1)",
	"select exists (select count(*) from t group by b order by 10/b)",
	"select exists (select rank() over (order by id) from t order by 10/b)",
	"select exists (select b from t group by b having count(*) > 0 order by 10/min(b))",
	"select exists (select 10/b from t)",
	"select exists (select count(*), id from t group by id)",
	"with x as materialized (select max(10/b) from t) select exists (select 1 from x)",
	"with x as materialized (select sum(f) from edge) select exists (select 1 from x)",
	"select 1 from e where 7 in (select k from t group by k having sum(10/b) > 1)",
	"select 1 from e where 7 = any (select k from (select k, max(10/b) m from t group by k) s where m > 4)",
	"select 1 from e where 7 > any (select k from t group by k having sum(10/b) > 1)",
	"select 1 from e where not (7 in (select k from t group by k having sum(10/b) > 1)) or k = 1",
	"select count(ts at time zone 'Asia/Kolkata') from edge",
	"select count(ts at time zone 'America/New_York') from edge",
	"select count(tz at time zone 'Asia/Kolkata') from edge",
	"select count(ts + interval '1 month') from edge",
	"select count(ts - interval '1 month') from edge",
	"select count(date_bin('15 minutes', ts, timestamp '2001-01-01')) from edge",
	"SELECT x FROM (SELECT a/nullif(b, 0) x, row_number() OVER (ORDER BY c) rn FROM t) s WHERE rn > 2 ORDER BY 1",
	"SELECT x, n FROM (SELECT k, a * 2 x, count(*) FROM t GROUP BY k, a) s JOIN e ON e.k = s.k ORDER BY 1",
}

// TestFailingOutputs: what the server fails for fails, too, when it is asked to be accelerated. Where the
// server leaves an expression out, it is forwarded, or likewise left out.
func TestFailingOutputs(t *testing.T) {
	s := privateStack(t, failingSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	must(t, proxy, "SET pgaccel.mode = 'force'")
	fails, answered := 0, 0
	for _, sql := range failing {
		want, got := ask(t, direct, sql, nil), ask(t, proxy, sql, nil)
		switch {
		case want.code != "":
			fails++
			if got.code != want.code {
				t.Errorf("%s: %v, want %v", sql, got, want)
			}
		case got.err == "":
			answered++
			if got.String() != want.String() {
				t.Errorf("%s: %v, want %v", sql, got, want)
			}
		case got.code != "22012" && got.code != "21000": // forwarded, and computed by the server elsewhere
			t.Errorf("%s: %v", sql, got)
		}
	}
	if fails < 15 || answered < 5 {
		t.Errorf("%d statements fail, %d are answered", fails, answered)
	}
}

// TestNamedUTC: UTC is the name of a time zone, but from PostgreSQL 18 on first an abbreviation of the
// session's own.
func TestNamedUTC(t *testing.T) {
	s := privateStack(t, failingSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, zone := range []string{"UTC", "Europe/Berlin", "Etc/GMT+5", "UTC+5", "GMT-3", "<UTC>-4", "utc+5", "ABC3UTC"} {
		for _, c := range []*pgconn.PgConn{direct, proxy} {
			must(t, c, "SET TimeZone = '"+zone+"'")
		}
		for _, of := range []string{"sum(id)", "min(ts AT TIME ZONE 'UTC')", "max(tz AT TIME ZONE 'UTC')", "min(ts AT TIME ZONE 'gmt')", "max(tz AT TIME ZONE 'Etc/UTC')", "max(date_trunc('day', tz, 'UTC'))"} {
			sql := "SELECT " + of + ", count(*) FROM moments"
			ask := func() {
				if got, want := ask(t, proxy, sql, nil), ask(t, direct, sql, nil); want.err != "" || got.String() != want.String() {
					t.Errorf("%s in %s: %v, want %v", sql, zone, got, want)
				}
			}
			if zone == "UTC" || zone == "Europe/Berlin" && !strings.Contains(of, "ts AT") {
				s.accelerates(t, 1, ask)
			} else {
				ask()
			}
		}
	}
}
