package integration

import "testing"

// TestIntervalsThatPrintApart: groups of intervals of any fields, and their extremes, where equal ones are spelled alike, and where they are not;
// and parameters that are intervals of any fields.
func TestIntervalsThatPrintApart(t *testing.T) {
	s := privateStack(t, "CREATE TABLE spell (id int PRIMARY KEY, alike interval, apart interval, short interval, at timestamp);\n"+
		"INSERT INTO spell SELECT i, CASE WHEN i % 9 > 0 THEN interval '1 mon' * (i % 5) + interval '30:00' * (i % 3) END, (ARRAY['30 days', '1 mon', '720:00', '2 days'])[i % 4 + 1]::interval, interval '1 hour' * (i % 60), timestamp '2024-01-01' + interval '1 hour' * i FROM generate_series(1, 3000) i;\nVACUUM ANALYZE;\n")
	for _, sql := range []string{
		"SELECT alike, count(*) FROM spell GROUP BY alike ORDER BY alike", "SELECT DISTINCT alike FROM spell ORDER BY alike DESC", "SELECT alike, apart, count(*) FROM spell WHERE apart = '2 days' GROUP BY 1, 2 ORDER BY 1",
		"SELECT min(alike), max(alike), count(DISTINCT alike), count(DISTINCT apart) FROM spell", "SELECT id % 7, min(apart), max(alike) FILTER (WHERE id > 99) FROM spell GROUP BY 1 ORDER BY 1", "SELECT alike + '1 day', sum(id) FROM spell GROUP BY alike ORDER BY 2",
		"SELECT s.id, g.n FROM spell s JOIN (SELECT alike, count(*) AS n FROM spell GROUP BY alike) g ON g.alike = s.alike ORDER BY 1", "SELECT count(*) FROM spell GROUP BY apart ORDER BY apart", "SELECT id FROM spell WHERE alike IS DISTINCT FROM apart ORDER BY id",
		"SELECT -alike, count(*) FROM spell GROUP BY 1 ORDER BY 1", "SELECT count(*) FROM spell WHERE apart = 'P1M' OR alike = '@ 1 mon 30 hours' OR short >= '1-0'",
	} {
		s.everyAnswer(t, true, sql)
	}
	for _, p := range []string{"24:00:00", "1 day", "1 mon", "P30D", "@ 2 days ago", "1 2:00:00", "-30 days", "720:00:00"} {
		s.everyAnswer(t, true, "SELECT id FROM spell WHERE apart = $1 OR alike > $1 ORDER BY id", p)
		s.everyAnswer(t, true, "SELECT count(*) FROM spell WHERE at - timestamp '2024-01-01' > $1 AND short <= $1", p)
	}
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, c := range []struct{ sql, param string }{
		{"SELECT apart, count(*) FROM spell GROUP BY apart ORDER BY apart", ""}, {"SELECT DISTINCT apart FROM spell ORDER BY apart", ""}, {"SELECT max(apart) FROM spell", ""}, {"SELECT alike, count(*) FROM spell GROUP BY ROLLUP (alike) ORDER BY 1", ""},
		{"SELECT count(*) FROM spell WHERE short > $1", "-1 day 02:00"}, {"SELECT count(*) FROM spell WHERE short < $1", "178000000 years"}, {"SELECT sum(DISTINCT alike) FROM spell", ""},
	} {
		var params []string
		if c.param != "" {
			params = []string{c.param}
		}
		s.forwardsAll(t, func() {
			if got, want := ask(t, proxy, c.sql, []int16{0}, params...), ask(t, direct, c.sql, []int16{0}, params...); got.String() != want.String() {
				t.Errorf("%s: %s", c.sql, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		})
	}
	if t.Failed() {
		t.Log(reasons(t, s))
	}
}
