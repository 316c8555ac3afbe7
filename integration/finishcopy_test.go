package integration

import (
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// TestPostgresFinishesCopies: COPY ... TO STDOUT of a SELECT that PostgreSQL finishes sends what the server sends, byte for byte, in all
// formats and protocols, in a block, and with errors.
func TestPostgresFinishesCopies(t *testing.T) {
	s := privateStack(t, copySchema+"; CREATE SCHEMA away; CREATE TABLE away.known (note text, says text); INSERT INTO away.known VALUES ('nosuch', 'a'), (NULL, 'b'); INSERT INTO away.known SELECT DISTINCT note, 'c' FROM sales WHERE id < 9")
	direct, proxy := hijacked(t, s.direct, "postgres"), hijacked(t, s.proxy, "postgres")
	inBlock := false
	extended := func(sql string) func(*portalClient) {
		return func(c *portalClient) {
			c.parse("", sql)
			c.f.Send(&pgproto3.Describe{ObjectType: 'S'})
			c.f.Send(&pgproto3.Bind{ResultFormatCodes: []int16{1}})
			c.execute("", 3)
			if !inBlock {
				c.execute("", 0) // of what has run, which fails
			}
			c.sync()
		}
	}
	compare := func(name string, f func(c *portalClient)) {
		t.Helper()
		want := direct.copies(func() { f(direct) })
		if got := proxy.copies(func() { f(proxy) }); got != want {
			t.Errorf("%s: %s", name, firstDifference([]byte(got), []byte(want)))
		}
	}
	both := func(sql string) {
		t.Helper()
		compare(sql, func(c *portalClient) { c.query(sql) })
		compare(sql+" extended", extended(sql))
	}
	for _, block := range []bool{false, true} {
		if inBlock = block; block {
			compare("begin", func(c *portalClient) { c.query("BEGIN") })
		}
		for _, source := range []string{"(SELECT id, quote_literal(note) AS note, day FROM sales WHERE id < 100 ORDER BY id)",
			"(SELECT exp(count(*) - count(*)) AS id, note FROM sales WHERE id < 0 GROUP BY note)"} {
			for _, options := range copyOptions {
				s.finishesSoon(t, func() { both("COPY " + source + " TO STDOUT " + options) })
			}
		}
		s.finishesSoon(t, func() {
			both("COPY (SELECT k.says, count(*), sum(s.id) FROM sales s JOIN away.known k ON k.note = s.note GROUP BY 1 ORDER BY 1) TO STDOUT CSV HEADER")
		})
		both("COPY (SELECT id, repeat(quote_literal(note), 1000) FROM sales WHERE id < 800 ORDER BY id) TO STDOUT") // more than is held
		both("COPY (SELECT note, 1 / (count(*) - count(*)) + ln(count(*)) FROM sales GROUP BY note) TO STDOUT")
		if block {
			compare("rollback", func(c *portalClient) { c.query("ROLLBACK") })
		}
	}
}
