package integration

import (
	"strings"
	"testing"
)

// TestAggregatesInAnyOrder: ORDER BY inside of an aggregate whose value is the same in any order.
func TestAggregatesInAnyOrder(t *testing.T) {
	s := privateStack(t, "CREATE ROLE narrow LOGIN;"+strings.ReplaceAll(arraySchema, "VACUUM ANALYZE;", "GRANT SELECT (g, i) ON item TO narrow"))
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	same := func(sql string) answer {
		t.Helper()
		want, got := ask(t, direct, sql, nil), ask(t, proxy, sql, nil)
		if got.String() != want.String() {
			t.Errorf("%s: %s", sql, firstDifference([]byte(got.String()), []byte(want.String())))
		}
		return want
	}
	for _, sql := range []string{
		"SELECT g, count(x ORDER BY id), sum(i ORDER BY id DESC), sum(n ORDER BY x NULLS FIRST, id), avg(b ORDER BY f), min(d ORDER BY z), max(t ORDER BY s) FROM item GROUP BY g ORDER BY g",
		"SELECT g, count(DISTINCT x ORDER BY x DESC), sum(DISTINCT i ORDER BY i), bool_and(ok ORDER BY id), bit_or(s ORDER BY i), stddev(n ORDER BY g, id), max(z ORDER BY lower(x)) FROM item GROUP BY ROLLUP (g) ORDER BY g",
		"SELECT sum(i ORDER BY id) FILTER (WHERE ok), count(f ORDER BY f), min(n ORDER BY 1) FROM item WHERE id < 100",
		"SELECT sum(i ORDER BY id), sum(i) FROM item WHERE id < 0",
	} {
		s.accelerates(t, 1, func() { same(sql) })
	}
	s.forwardsAll(t, func() {
		for _, sql := range []string{
			"SELECT sum(f ORDER BY id), avg(r ORDER BY id) FROM item", // added up in that order
			"SELECT max(x ORDER BY id) FROM item", "SELECT min(w ORDER BY id) FROM item",
			"SELECT sum(i ORDER BY 1 / (id - 5)) FROM item", // an error
			"SELECT sum(i ORDER BY (SELECT max(g) FROM item)) FROM item",
			"SELECT sum(DISTINCT i ORDER BY id) FROM item", // an error
			"SELECT lower(x ORDER BY id) FROM item",
		} {
			same(sql)
		}
	})
	guest := connect(t, s.proxy.url("narrow"))
	s.accelerates(t, 1, func() { ask(t, guest, "SELECT sum(i ORDER BY g) FROM item", nil) })
	s.forwardsAll(t, func() {
		if a := ask(t, guest, "SELECT sum(i ORDER BY id) FROM item", nil); a.err == "" {
			t.Error("a role orders by a column that it may not read")
		}
	})
}
