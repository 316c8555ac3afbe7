package integration

import "testing"

// TestPlusInterval adds constant intervals to dates, timestamps and moments of rows, in every zone.
func TestPlusInterval(t *testing.T) {
	s := privateStack(t, hardMoments)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, zone := range corpusZones {
		must(t, direct, "SET TimeZone = '"+zone+"'")
		must(t, proxy, "SET TimeZone = '"+zone+"'")
		for _, c := range []struct {
			sql  string
			here bool
		}{
			{"SELECT id, ts + interval '1 day', ts - interval '1 month', interval '13 months' + ts, ts + interval '90 minutes' FROM hard ORDER BY id", true},
			{"SELECT id, d + interval '1 day', d - interval '1 month', interval '1 year' + d, d - interval '30 seconds' FROM hard ORDER BY id", true},
			{"SELECT id, tz + interval '1 hour', tz - interval '25 hours', interval '10 seconds' + tz FROM hard ORDER BY id", true},
			{"SELECT date_trunc('week', ts + interval '1 day') - interval '1 day' AS w, count(*) FROM hard GROUP BY 1 ORDER BY 1", true},
			{"SELECT count(*) FROM hard WHERE ts + interval '3 days' > timestamp '2024-10-31' AND d + interval '1 month' < date '2025-01-01'", true},
			{"SELECT count(*) FROM hard a JOIN hard b ON a.ts + interval '7 minutes' = b.ts", true},
			{"SELECT max(ts + interval '1 month'), min(d - interval '1 week'), count(DISTINCT tz + interval '36 hours') FROM hard", true},
			{"SELECT id, tz + interval '1 day', tz - interval '1 month' FROM hard ORDER BY id", true},
			{"SELECT id, ts + interval '1 day' FROM harder ORDER BY id", false}, // infinite, or an error
			{"SELECT id, ts - interval '1 day' FROM harder WHERE id = 4", false},
			{"SELECT ts + interval '1 day' * 2 FROM hard ORDER BY id", true},
			{"SELECT ts - interval '-1 day 2:00' FROM hard ORDER BY id", false},
		} {
			for _, p := range protocols {
				want := ask(t, direct, c.sql, p.format)
				check := func() {
					if got := ask(t, proxy, c.sql, p.format); c.here && want.err != "" || got.String() != want.String() {
						t.Errorf("%s in %s (%s): %s%s", c.sql, zone, p.name, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
					}
				}
				if c.here {
					s.accelerates(t, 1, check)
				} else {
					s.forwardsAll(t, check)
				}
			}
		}
	}
	if t.Failed() {
		t.Log(reasons(t, s))
	}
}
