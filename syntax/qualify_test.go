package syntax

import "testing"

func TestQualified(t *testing.T) {
	f := func(sql, want string) {
		t.Helper()
		got, err := Parse(sql).Qualified(map[string]string{"t": "shop", "Two words": "A b"})
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s\n%s, want\n%s", sql, got, want)
		}
	}
	f("SELECT 1", "SELECT 1")
	f("SELECT t.a, count(*) FROM t WHERE b = $1 GROUP BY 1", "SELECT t.a, count(*) FROM shop.t WHERE b = $1 GROUP BY 1")
	f(`SELECT * FROM t x JOIN "Two words" USING (a), other.t, u`, `SELECT * FROM shop.t x JOIN "A b"."Two words" USING (a), other.t, u`)
	f("SELECT (SELECT max(a) FROM t) FROM u WHERE EXISTS (SELECT FROM t WHERE t.a = u.a)", "SELECT (SELECT max(a) FROM shop.t) FROM u WHERE EXISTS (SELECT FROM shop.t WHERE t.a = u.a)")
	f("WITH w AS (SELECT a FROM t) SELECT a FROM w UNION SELECT a FROM t", "WITH w AS (SELECT a FROM shop.t) SELECT a FROM w UNION SELECT a FROM shop.t")
	f("WITH t AS (SELECT 1 AS a) SELECT a FROM t", "error")
	f("SELECT 1; SELECT 2", "error")
	f("INSERT INTO t SELECT 1", "error")
	f("SELEC", "error")
}
