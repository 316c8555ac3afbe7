package integration

import (
	"strings"
	"testing"
)

// ofIntervals are statements over differences of timestamps, those with moments where no zone matters.
var ofIntervals = []string{
	"SELECT id, ts - timestamp '2024-03-31 02:30:00.5', timestamp '2024-03-31' - ts FROM hard ORDER BY id",
	"SELECT id, tz - timestamptz '2024-03-31 02:30+00', timestamptz '2024-10-27 00:30:00.000001+00' - tz FROM hard ORDER BY id",
	"SELECT a.id, b.id, b.ts - a.ts, b.tz - a.tz, b.ts - a.d FROM hard a JOIN hard b ON b.id = a.id + 1 ORDER BY 1, 2",
	"SELECT ts - d, count(*) FROM hard GROUP BY 1 ORDER BY 1",
	"SELECT DISTINCT tz - timestamptz '2024-03-31 00:00+00' AS x FROM hard ORDER BY x DESC NULLS LAST",
	"SELECT min(ts - d), max(ts - d), count(ts - d), count(DISTINCT ts - d) FROM hard",
	"SELECT id FROM hard WHERE ts - d > interval '36 hours' ORDER BY id",
	"SELECT id FROM hard WHERE ts - d < '1 month' OR ts - d > '1 year 2 mons' ORDER BY id",
	"SELECT id FROM hard WHERE ts - d BETWEEN '-1 day' AND interval '24:00' ORDER BY id",
	"SELECT id FROM hard WHERE ts - d IN ('1 day', interval '2 hours', '00:00') OR ts - d IS NOT DISTINCT FROM '90 minutes' ORDER BY id",
	"SELECT count(*) FROM hard a WHERE ts - d = tz - timestamptz '2024-03-30 00:14+00' OR ts - d < tz - timestamptz '2024-03-30 01:24+00'",
	"SELECT id, extract(epoch FROM ts - d), extract(day FROM ts - d), extract(hour FROM ts - d), extract(minute FROM ts - d), extract(second FROM ts - d), extract(milliseconds FROM ts - d), extract(microseconds FROM ts - d), extract(month FROM ts - d), extract(year FROM ts - d), extract(quarter FROM ts - d) FROM hard ORDER BY id",
	"SELECT id, date_part('epoch', ts - d), date_part('day', ts - d), date_part('hour', ts - d), date_part('second', ts - d), date_part('milliseconds', ts - d) FROM hard ORDER BY id",
	"SELECT avg(extract(epoch FROM ts - d) / 3600), sum(extract(epoch FROM tz - timestamptz '2020-01-01 00:00+00')) FROM hard",
	"SELECT date_trunc('hour', ts - d) AS x, count(*) FROM hard GROUP BY 1 ORDER BY 1",
	"SELECT date_trunc('day', d - ts), date_trunc('minute', d - ts), date_trunc('month', d - ts) FROM hard ORDER BY id",
	"SELECT id, ts - lag(ts) OVER (ORDER BY id), lead(tz) OVER (ORDER BY id) - tz FROM hard ORDER BY id",
	"SELECT id FROM (SELECT id, tz - lag(tz) OVER (ORDER BY id) AS gap FROM hard) g WHERE gap > '30 minutes' ORDER BY id",
	"SELECT id, coalesce(ts - d, interval '0 seconds'), CASE WHEN ts - d > '1 day' THEN ts - d ELSE interval '-1 days -02:00' END, nullif(ts - d, '1 day') FROM hard ORDER BY id",
	"SELECT id, (ts - d)::text, 'in ' || (ts - d)::text FROM hard ORDER BY id",
	"SELECT id, ts + (ts - d), d + (ts - d), (ts - d) + ts, ts - (ts - d) FROM hard ORDER BY id",
	"SELECT id, date_trunc('hour', ts) + interval '15 minutes' * floor(extract(minute FROM ts) / 15), ts - 2.5 * interval '7 seconds' FROM hard ORDER BY id",
	"SELECT date_trunc('minute', tz) - interval '1 minute' * (extract(minute FROM tz)::int % 5) AS x, count(*) FROM hard GROUP BY 1 ORDER BY 1",
	"SELECT id, date_trunc('day', ts) + (-extract(dow FROM ts) * interval '1 day'), d + id * interval '1 day 02:00' FROM hard ORDER BY id",
	"SELECT date_bin('15 minutes', ts, timestamp '0001-01-01') AS x, count(*) FROM hard GROUP BY 1 ORDER BY 1",
	"SELECT id, date_bin(interval '7 days', tz, timestamptz '0098-01-01 00:00+00'), date_bin('1 hour', ts, d) FROM hard WHERE ts >= d ORDER BY id",
	"SELECT id, extract(year FROM age(ts, timestamp '2001-02-28 12:00')), extract(month FROM age(d, ts)), extract(day FROM age(ts, d)), extract(epoch FROM age(ts, '2020-01-31 23:59')) FROM hard ORDER BY id",
	"SELECT id, date_part('year', age(ts, timestamp '1999-12-31 23:59:59.5')), date_part('day', age(d, ts)), date_part('epoch', age(ts, timestamp '2020-02-29 01:02:03.4')) FROM hard ORDER BY id",
	"SELECT a.id, extract(year FROM age(a.d, b.d)) * 12 + extract(month FROM age(a.d, b.d)), extract(day FROM age(a.d, b.d)) FROM hard a JOIN hard b ON b.id = a.id + 3 ORDER BY 1",
	"SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY ts - d) FROM hard",
}

// TestIntervals compares them in every zone and protocol.
func TestIntervals(t *testing.T) {
	s := privateStack(t, hardMoments)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, zone := range corpusZones {
		must(t, direct, "SET TimeZone = '"+zone+"'")
		must(t, proxy, "SET TimeZone = '"+zone+"'")
		for _, sql := range ofIntervals {
			for _, p := range protocols {
				want := ask(t, direct, sql, p.format)
				s.accelerates(t, 1, func() {
					if got := ask(t, proxy, sql, p.format); want.err != "" || got.String() != want.String() {
						t.Errorf("%s in %s (%s): %s%s", sql, zone, p.name, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
					}
				})
			}
			if t.Failed() {
				t.Errorf("%s in %s", sql, zone)
			}
		}
	}
	if t.Failed() {
		t.Log(reasons(t, s))
	}
}

// TestIntervalsLeftToPostgres are those that are forwarded: what a zone, a setting or a release decides.
func TestIntervalsLeftToPostgres(t *testing.T) {
	s := privateStack(t, hardMoments)
	for _, sql := range []string{ // what 64 bits do not hold is not
		"SELECT avg(ts - d), sum(ts - d) FROM hard",
		"SELECT id, ts - d > interval '12 hours' * 3 FROM hard ORDER BY id",
		"SELECT id, (ts - d) * 2, (ts - d) / 3, -(ts - d), (ts - d) + (ts - d) FROM hard ORDER BY id",
		"SELECT id, ts + interval '1 day' * 0.5, ts + interval '1 month' * id FROM hard ORDER BY id",
	} {
		s.everyAnswer(t, true, sql)
	}
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	step := ""
	for _, sql := range []string{
		"SELECT id, age(ts, d) FROM hard ORDER BY id",
		"SELECT id, ts - timestamp '2024-01-01' FROM harder ORDER BY id",
		"SELECT id, coalesce(ts - d, interval '36 hours'), coalesce(ts - d, '1 month') FROM hard ORDER BY id",
		"SELECT id, extract(quarter FROM age(ts, d)) FROM hard ORDER BY id",
		"SELECT id, date_bin('1 month', ts, timestamp '2001-01-01') FROM hard",
		"SELECT id, date_bin('1 hour', date_trunc('hour', ts), timestamp '2101-01-01') FROM hard ORDER BY id",
		"SELECT id, ts - d FROM hard WHERE ts - d > '-1 day 02:00' ORDER BY id",
		"SET TimeZone = 'Europe/Berlin'",
		"SELECT id, tz + (ts - d) FROM hard ORDER BY id",
		"SELECT id, tz + id * interval '1 day' FROM hard ORDER BY id",
		"SELECT id, extract(day FROM age(tz, timestamptz '2024-01-01 00:00+00')) FROM hard ORDER BY id",
		"SET IntervalStyle = 'iso_8601'",
		"SELECT id, ts - d FROM hard ORDER BY id",
		"SELECT id, (ts - d)::text FROM hard ORDER BY id",
		"SET IntervalStyle = 'sql_standard'",
		"SELECT max(ts - d) FROM hard",
		"SELECT id FROM hard WHERE ts - d > $1",
		"SET IntervalStyle = 'postgres_verbose'",
		"SELECT min((ts - d)::text) FROM hard",
	} {
		if strings.HasPrefix(sql, "SET") {
			must(t, direct, sql)
			must(t, proxy, sql)
			step = " after " + sql
			continue
		}
		var params []string
		var format []int16
		if strings.Contains(sql, "$1") {
			params, format = []string{"-1 0:00:01"}, []int16{0}
		}
		s.forwardsAll(t, func() {
			if got, want := ask(t, proxy, sql, format, params...), ask(t, direct, sql, format, params...); got.String() != want.String() {
				t.Errorf("%s%s: %s", sql, step, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		})
	}
	if t.Failed() {
		t.Log(reasons(t, s))
	}
}

// TestIntervalParameters binds intervals of every form: equal ones find the same rows, whoever answers.
func TestIntervalParameters(t *testing.T) {
	s := privateStack(t, hardMoments)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	const sql = "SELECT id, ts - d FROM hard WHERE ts - d >= $1 ORDER BY id"
	for _, c := range []struct {
		value string
		here  bool
	}{{"1 day", true}, {"02:00:00", true}, {"1 day 02:30:00.5", true}, {"-1 days -00:00:01", true}, {"90 minutes", true}, {"24:00:00", true}, {"1 mon", true}, {"P1D", true}, {"-1 day 02:00", false}, {"1.5 hours", false}} {
		check := func() {
			if got, want := ask(t, proxy, sql, []int16{1}, c.value), ask(t, direct, sql, []int16{1}, c.value); want.err != "" || got.String() != want.String() {
				t.Errorf("%q: %s%s", c.value, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		}
		if c.here {
			s.accelerates(t, 1, check)
		} else {
			s.forwardsAll(t, check)
		}
	}
	if t.Failed() {
		t.Log(reasons(t, s))
	}
}
