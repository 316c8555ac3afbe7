package integration

import (
	"testing"
)

// hardMoments has moments and timestamps around changes of clocks, at the ends of the types, BC and infinite.
const hardMoments = `CREATE TABLE hard (id int PRIMARY KEY, tz timestamptz, ts timestamp, d date);
INSERT INTO hard SELECT i, timestamptz '2024-03-30 00:00+00' + i * interval '7 minutes', timestamp '2024-10-26 00:00' + i * interval '7 minutes', date '2024-01-01' + i FROM generate_series(1, 600) i;
INSERT INTO hard SELECT 1000 + n, v::timestamptz, v::timestamp, left(v, 10)::date FROM unnest(ARRAY['2024-03-31 00:59:59.999999+00','2024-03-31 01:00:00+00','2024-04-06 14:59:59+00','2024-10-06 16:30:00+00',
 '1999-12-31 23:59:59.5+00','0099-02-28 00:00:00+00','1883-11-18 12:03:58+00','9998-12-31 23:59:59+00','1582-10-04 00:00:00+00']) WITH ORDINALITY u(v, n);
INSERT INTO hard VALUES (2000, NULL, NULL, NULL);
CREATE TABLE harder (id int PRIMARY KEY, tz timestamptz, ts timestamp);
INSERT INTO harder VALUES (1, 'infinity', '-infinity'), (2, '0044-03-15 12:00+00 BC', '0044-03-15 12:00 BC'), (3, '294276-12-31 23:59:59.999999+00', '294276-12-31 23:59:59.999999'), (4, '4714-11-24 00:00+00 BC', '4714-11-24 00:00 BC'), (5, NULL, NULL), (6, '12345-01-01 00:00+00', '12345-01-01 00:00');
VACUUM ANALYZE`

// TestInUTC asks for moments in UTC in sessions in any zone, over values that are hard for zones: answered here.
func TestInUTC(t *testing.T) {
	s := privateStack(t, hardMoments)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, zone := range corpusZones {
		must(t, direct, "SET TimeZone = '"+zone+"'")
		must(t, proxy, "SET TimeZone = '"+zone+"'")
		for _, sql := range []string{
			"SELECT id, tz AT TIME ZONE 'UTC', ts AT TIME ZONE 'Etc/UTC' FROM hard ORDER BY id",
			"SELECT id, timezone('utc', tz) FROM harder WHERE tz AT TIME ZONE 'GMT' > '2000-01-01' OR tz IS NULL ORDER BY id",
			"SELECT id, ts AT TIME ZONE 'UTC' FROM harder ORDER BY id",
			"SELECT (tz AT TIME ZONE 'UTC')::date AS d, count(*) FROM hard GROUP BY 1 ORDER BY 1",
			"SELECT date_trunc('hour', tz AT TIME ZONE 'UTC') AS h, count(*), min(ts) FROM hard GROUP BY 1 ORDER BY 1",
			"SELECT date_trunc('day', tz, 'UTC') AS h, count(*) FROM hard GROUP BY 1 ORDER BY 1",
			"SELECT date_part('month', tz AT TIME ZONE 'UTC') AS m, extract(hour FROM tz AT TIME ZONE 'UTC') AS h, count(*) FROM hard GROUP BY 1, 2 ORDER BY 1, 2",
			"SELECT date(ts) AS d, date(tz AT TIME ZONE 'UTC') AS e, count(*) FROM hard GROUP BY 1, 2 ORDER BY 1, 2",
			"SELECT to_char(tz AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') AS c, to_char(ts, 'FMDay, FMMonth FMDD, YYYY HH12:MI AM'), id FROM hard ORDER BY id",
			"SELECT to_char(ts, 'IYYY-\"W\"IW') AS w, count(*) FROM hard GROUP BY 1 ORDER BY 1",
			"SELECT count(*) FROM hard WHERE to_char(ts, 'YYYY-MM') = '2024-10' AND ts AT TIME ZONE 'UTC' < '2024-10-27 00:30+00'",
		} {
			for _, p := range protocols {
				s.accelerates(t, 1, func() {
					want := ask(t, direct, sql, p.format)
					if got := ask(t, proxy, sql, p.format); want.err != "" || len(want.rows) == 0 || got.String() != want.String() {
						t.Errorf("%s in %s (%s): %s%s", sql, zone, p.name, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
					}
				})
			}
		}
		// What is an error, or has another result, is the server's.
		for _, sql := range []string{
			"SELECT id, to_char(ts, 'YYYY-MM-DD') FROM harder ORDER BY id",
			"SELECT date_trunc('hour', tz AT TIME ZONE 'UTC') FROM harder ORDER BY id",
			"SELECT date_trunc('day', tz, 'Nowhere/City') FROM hard",
			"SELECT tz AT TIME ZONE 'Nowhere' FROM hard",
			"SELECT to_char(ts, 'DDth') FROM hard ORDER BY id",
			"SELECT count(*) FROM other.public.hard",
		} {
			for _, p := range protocols {
				want := ask(t, direct, sql, p.format)
				if got := ask(t, proxy, sql, p.format); got.String() != want.String() {
					t.Errorf("%s in %s (%s): %s", sql, zone, p.name, firstDifference([]byte(got.String()), []byte(want.String())))
				}
			}
		}
		s.accelerates(t, 1, func() { ask(t, proxy, "SELECT count(*) FROM postgres.public.hard", nil) })
	}
}
