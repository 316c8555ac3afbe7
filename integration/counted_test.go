package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const countedSchema = `CREATE TABLE sale (id int NOT NULL, day date NOT NULL, amount int NOT NULL, note text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE sale_2024 PARTITION OF sale FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE sale_2025 PARTITION OF sale FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
INSERT INTO sale SELECT i, date '2024-01-01' + i % 700, i % 97, 'n' || i % 5 FROM generate_series(1, 20000) i;
CREATE VIEW days AS SELECT day, sum(amount) AS total FROM sale GROUP BY day;
CREATE TABLE sink (n bigint, s bigint);
INSERT INTO sink VALUES (1, 1);
VACUUM ANALYZE;`

// TestEveryStatementIsListed: pgaccel.queries has statements of all kinds, by who answered them. Those that pgaccel has
// nothing to do with are there where they take the server 5 ms or more.
func TestEveryStatementIsListed(t *testing.T) {
	s := privateStack(t, countedSchema, "--accelerate", "public.sale")
	conn, monitor := connect(t, s.proxy.url("postgres")), connect(t, s.proxy.url("postgres"))
	must(t, conn, "SET pgaccel.mode = 'force'")
	for _, c := range []struct{ before, sql, listed, route string }{
		{"", "SELECT count(*), max(total) FROM days", "", "accelerated"},
		{"", "TABLE days", "", "accelerated"},
		{"", "SELECT exp(count(*) / 1e4) AS part FROM sale", "", "partial"},
		{"", "VALUES ((SELECT count(*) FROM sale))", "", "partial"},
		{"", "SELECT count(*), sum(amount), pg_sleep(0.02) FROM sale_2024", "", "forwarded"},
		{"", "SELECT random() < 2, count(*) FROM sale GROUP BY 1", "", "partial forwarded"},
		{"", "COPY (SELECT note, count(*) FROM sale GROUP BY note) TO STDOUT", "SELECT note, count(*) FROM sale GROUP BY note", "accelerated"},
		{"", "CREATE TABLE made AS SELECT note, count(*) FROM sale GROUP BY note", "", "partial"},
		{"", "SELECT note INTO made2 FROM sale WHERE amount = 9", "", "forwarded"},
		{"", "INSERT INTO sink SELECT count(*), sum(amount) FROM sale", "", "partial"},
		{"", "INSERT INTO sink SELECT s, n FROM sink, pg_sleep(0.02)", "", "forwarded"},
		{"", "WITH x AS (INSERT INTO sink SELECT 1, sum(amount) FROM sale RETURNING n) SELECT * FROM x", "", "forwarded"},
		{"", "UPDATE sink SET n = (SELECT count(*) FROM sale), s = 5 FROM pg_sleep(0.02)", "", "forwarded"},
		{"", "MERGE INTO sink USING (SELECT count(*) AS c FROM sale, pg_sleep(0.02)) q ON n = c WHEN NOT MATCHED THEN INSERT VALUES (c, c)", "", "forwarded"},
		{"", "DELETE FROM sink WHERE pg_sleep(0.02) IS NULL OR n < (SELECT count(*) FROM sale)", "", "forwarded"},
		{"BEGIN", "DECLARE d CURSOR FOR SELECT note, sum(amount) FROM sale GROUP BY note", "SELECT note, sum(amount) FROM sale GROUP BY note", "accelerated"},
	} {
		for _, p := range protocols {
			if p.format != nil && (strings.HasPrefix(c.sql, "COPY") || strings.Contains(c.sql, "made")) {
				continue
			}
			if c.before != "" {
				must(t, conn, c.before)
			}
			if a := ask(t, conn, c.sql, p.format); a.err != "" {
				t.Fatalf("%s: %s", c.sql, a)
			}
			if c.before != "" {
				must(t, conn, "FETCH ALL FROM d")
				must(t, conn, "COMMIT")
			}
		}
		like := c.listed
		if like == "" {
			like = c.sql
		}
		for _, constant := range []string{"1e4", "0.02", "= 9", "= 5", "SELECT 1,", "< 2"} {
			like = strings.ReplaceAll(like, constant, strings.TrimRight(constant, "0123456789.e,")+"%")
		}
		get := fmt.Sprintf("SELECT route, calls > 0 FROM pgaccel.queries WHERE query LIKE '%s' AND calls = accelerated + partial + forwarded", strings.ReplaceAll(like, "'", "''"))
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) { // what is relayed is looked at behind its end
			a := ask(t, monitor, get, nil)
			if len(a.rows) == 1 && strings.Contains(a.rows[0], `"t"`) && strings.Contains(c.route, strings.Trim(strings.Split(a.rows[0], "|")[0], `"`)) {
				break
			}
			if c.route == "forwarded" && !strings.Contains(c.sql, "made") { // not each is looked at
				ask(t, conn, c.sql, nil)
			}
			if time.Now().After(end) {
				t.Errorf("%s: %s; want %s; all: %s", c.sql, a, c.route, ask(t, monitor, "SELECT query, route FROM pgaccel.queries", nil))
				break
			}
		}
	}
}
