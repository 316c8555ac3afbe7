package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestReasonsSayWhatIsTheCase: pgaccel.queries says why a statement was forwarded, what
// about it, and where in its text that begins, to who may see the text.
func TestReasonsSayWhatIsTheCase(t *testing.T) {
	s := privateStack(t, `
CREATE TABLE small (id int PRIMARY KEY, v int);
INSERT INTO small SELECT g, g FROM generate_series(1, 10000) g;
CREATE TABLE large (id int PRIMARY KEY, v text);
INSERT INTO large SELECT g, md5(g::text) || md5((g + 1)::text) || md5((g + 2)::text) FROM generate_series(1, 60000) g;
CREATE MATERIALIZED VIEW seen AS SELECT * FROM small;
CREATE SCHEMA closed;
CREATE TABLE closed.t (id int PRIMARY KEY);
CREATE ROLE guest LOGIN;
CREATE ROLE reader LOGIN;
GRANT SELECT ON small TO reader`, "--memory", "4MiB", "--accelerate", "public.*,closed.*")
	conn := connect(t, s.proxy.url("postgres"))
	for end := time.Now().Add(60 * time.Second); ask(t, conn, "SELECT state FROM pgaccel.tables WHERE name = 'public.large'", nil).column() != "refused"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the large table is not refused")
		}
	}
	for _, c := range []struct{ role, before, sql, reason, detail, place string }{
		{"postgres", "", "SELECT count(*) FROM large", "table refused", "public.large: ", ""},
		{"postgres", "", "SELECT (SELECT count(*) FROM small i WHERE i.v / o.v > o.id) AS n FROM small o", "unsupported shape", "a sub-select as a value", "(SELECT count(*)"},
		{"postgres", "", "SELECT 'small' AS word", "no accelerated table", "no FROM", ""},
		{"postgres", "", "SELECT count(*) AS n FROM seen, small", "no accelerated table", "seen is not among the tables that --accelerate chooses, and no view over them", "seen, small"},
		{"postgres", "", "SELECT v, array_agg(v) OVER () AS place FROM small", "unsupported function", "window function array_agg()", "array_agg(v)"},
		{"postgres", "CREATE TEMP TABLE small (id int, v int)", "SELECT max(v) FROM small", "other table meant", `"small" is a temporary table, or one of another schema of search_path, in this session`, ""},
		{"postgres", "SET search_path = closed", "SELECT min(v) AS least FROM small", "result description", "the server refused the statement when it was described", ""},
		{"postgres", "SET pgaccel.mode = 'auto'", "SELECT v AS one FROM small WHERE id = 5", "cheap anyway", "one row by a unique key, which an index of the server finds as fast; SET pgaccel.mode = 'force' takes it all the same", ""},
		{"guest", "", "SELECT sum(v) AS total FROM small", "privilege", `no SELECT on "small", or on a column of it that the statement names`, ""},
		{"guest", "", "SELECT count(id) AS ids FROM closed.t", "result description", "the server refused the statement when it was described", ""},
	} {
		session := connect(t, s.proxy.url(c.role))
		if c.before != "" {
			ask(t, session, c.before, nil)
		}
		s.forwardsAll(t, func() { ask(t, session, c.sql, nil) })
		// The constants are out of the text.
		like := strings.ReplaceAll(strings.ReplaceAll(c.sql, "'small'", "%"), " = 5", " = %")
		a := ask(t, conn, fmt.Sprintf("SELECT coalesce(substr(query, position, %d), '') || ': ' || reason || ' | ' || coalesce(detail, '') FROM pgaccel.queries WHERE query LIKE '%s' ORDER BY last_used DESC LIMIT 1",
			max(1, len(c.place)), like), nil)
		if len(a.rows) != 1 || !strings.HasPrefix(strings.ReplaceAll(a.rows[0], `\"`, `"`), `"`+c.place+": "+c.reason+" | "+c.detail) {
			t.Errorf("%s as %s: %s", c.sql, c.role, a)
		}
		session.Close(t.Context())
	}
	if a := ask(t, conn, "SELECT query, forwarded, round(forwarded_total_ms), forwarded_mean_ms FROM pgaccel.queries WHERE forwarded > 0 AND reason NOT IN ('result description', 'privilege') AND NOT (forwarded_mean_ms > 0 AND forwarded_total_ms >= forwarded_mean_ms)", nil); len(a.rows) > 0 || a.err != "" {
		t.Errorf("forwarded executions without a time: %s", a)
	}
	if a := ask(t, connect(t, s.proxy.url("reader")), "SELECT count(*) FILTER (WHERE detail IS NOT NULL OR position IS NOT NULL), count(*) > 5 FROM pgaccel.queries", nil); len(a.rows) != 1 || a.rows[0] != `"0"|"t"|` {
		t.Errorf("details are shown to who may not see texts: %s", a)
	}
}
