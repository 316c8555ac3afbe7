package integration

import "testing"

// TestFullJoinByMerge: where types have no hash the server merges, which it does by equalities alone; else it has an error, which is the client's.
func TestFullJoinByMerge(t *testing.T) {
	s := privateStack(t, "CREATE TABLE due (id int PRIMARY KEY, m money, b varbit, n int);\nINSERT INTO due SELECT i, i::money, i::bit(12), i % 9 FROM generate_series(1, 2000) i;\nVACUUM ANALYZE;\n")
	for _, on := range []string{"x.m = y.m", "x.b = y.b", "x.m = y.m AND x.n = y.n AND y.n < 5", "x.m = y.m AND x.b = y.b", "x.b = y.b AND true"} {
		s.everyAnswer(t, true, "SELECT count(*), count(x.id), sum(y.id) FROM due x FULL JOIN due y ON "+on)
	}
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, on := range []string{"x.m = y.m AND y.n < 5", "x.b = y.b AND x.n < y.n"} {
		sql := "SELECT count(*) FROM due x FULL JOIN due y ON " + on
		s.forwardsAll(t, func() {
			if got, want := ask(t, proxy, sql, nil), ask(t, direct, sql, nil); got.String() != want.String() || want.err == "" {
				t.Errorf("%s: got %s, want %s", sql, got, want)
			}
		})
	}
}
