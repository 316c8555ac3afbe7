package integration

import "testing"

// TestSortUsing sorts by the operators of ASC and DESC, in all places that have an order. By others the server sorts.
func TestSortUsing(t *testing.T) {
	s := privateStack(t, finishSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	compare := func(sql string) {
		t.Helper()
		for _, p := range protocols {
			if want, got := ask(t, direct, sql, p.format), ask(t, proxy, sql, p.format); got.String() != want.String() {
				t.Errorf("%s (%s): %s", sql, p.name, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		}
	}
	for _, column := range []string{"s", "b", "n", "f", "r", "t", "v", "c", "k", "o", "d", "ti", "ts", "tz", "u", "e"} {
		for _, how := range []string{"USING <", "USING >", "USING OPERATOR(pg_catalog.>)", "USING > NULLS LAST", "USING < NULLS FIRST"} {
			sql := "SELECT " + column + ", id FROM every WHERE id < 60 OR id > 9000 ORDER BY " + column + " " + how + ", id USING >"
			s.accelerates(t, len(protocols), func() { compare(sql) })
		}
	}
	for _, sql := range []string{
		"SELECT v, sum(n) FROM every GROUP BY v ORDER BY sum(n) USING >, 1 USING <",
		"SELECT s, count(*) FROM every GROUP BY s ORDER BY 1 USING > LIMIT 3",
		"SELECT DISTINCT s FROM every ORDER BY s USING >",
		"SELECT id, rank() OVER (PARTITION BY s ORDER BY d USING >), sum(b) OVER (ORDER BY id USING > RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) FROM every WHERE id < 50 ORDER BY id",
		"SELECT DISTINCT ON (s) s, id FROM every ORDER BY s USING >, id USING <",
	} {
		s.accelerates(t, len(protocols), func() { compare(sql) })
	}
	s.forwardsAll(t, func() {
		for _, sql := range []string{
			"SELECT v FROM every WHERE id < 50 ORDER BY v USING ~<~, id", "SELECT s FROM every WHERE id < 50 ORDER BY s USING >=", "SELECT s FROM every WHERE id < 50 ORDER BY s USING OPERATOR(public.<)",
			"SELECT j FROM every WHERE id < 50 ORDER BY j USING <, id",
		} {
			compare(sql)
		}
	})
}
