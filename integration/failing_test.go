package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

const failingSchema = `CREATE TABLE t (id int PRIMARY KEY, a int, b int, c int, k int);
INSERT INTO t VALUES (1, 1, 0, 1, 1), (2, 1, 1, 9, 2), (3, 5, 2, 8, 2), (4, 7, 0, 0, 3);
CREATE TABLE e (k int PRIMARY KEY, n int); INSERT INTO e VALUES (2, 20), (9, 90);
CREATE TABLE moments (id int PRIMARY KEY, ts timestamp, tz timestamptz);
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
		want, wantErr := direct.Exec(t.Context(), sql).ReadAll()
		got, gotErr := proxy.Exec(t.Context(), sql).ReadAll()
		switch {
		case wantErr != nil:
			fails++
			if gotErr == nil || code(gotErr) != code(wantErr) {
				t.Errorf("%s: %v, want %v", sql, gotErr, wantErr)
			}
		case gotErr == nil:
			answered++
			if g, w := fmt.Sprintf("%q", got[0].Rows), fmt.Sprintf("%q", want[0].Rows); g != w {
				t.Errorf("%s: %s, want %s", sql, g, w)
			}
		case code(gotErr) != "22012": // computed where the server does not: forwarded but for the mode
			t.Errorf("%s: %v", sql, gotErr)
		}
	}
	if fails < 15 || answered < 5 {
		t.Errorf("%d statements fail, %d are answered", fails, answered)
	}
}

func code(err error) string {
	if e, ok := err.(*pgconn.PgError); ok {
		return e.Code
	}
	return ""
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
				want, wantErr := direct.Exec(t.Context(), sql).ReadAll()
				got, gotErr := proxy.Exec(t.Context(), sql).ReadAll()
				if wantErr != nil || gotErr != nil {
					t.Fatal(wantErr, gotErr)
				}
				if g, w := fmt.Sprintf("%q", got[0].Rows), fmt.Sprintf("%q", want[0].Rows); g != w {
					t.Errorf("%s in %s: %s, want %s", sql, zone, g, w)
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
