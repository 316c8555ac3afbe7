package integration

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// inZones are statements that mean something else in each time zone.
var inZones = []string{
	"SELECT id, tz, ts::timestamptz, tz::timestamp, tz::date, d::timestamptz FROM hard ORDER BY id",
	"SELECT id, tz, ts FROM harder ORDER BY id",
	"SELECT id, tz::timestamp FROM harder WHERE id IN (1, 2, 5, 6) ORDER BY id",
	"SELECT min(tz), max(tz), count(tz) FROM hard",
	"SELECT tz::date, count(*), min(tz) FROM hard GROUP BY 1 ORDER BY 1",
	"SELECT DISTINCT date(tz) FROM hard ORDER BY 1",
	"SELECT date_trunc('minute', tz) AS h, count(*) FROM hard GROUP BY 1 ORDER BY 1",
	"SELECT date_trunc('hour', tz) AS h, count(*), max(tz) FROM hard GROUP BY 1 ORDER BY 1",
	"SELECT date_trunc('day', tz) AS h, count(*) FROM hard GROUP BY 1 ORDER BY 1",
	"SELECT date_trunc('week', tz) AS h, count(*) FROM hard GROUP BY 1 ORDER BY 1",
	"SELECT date_trunc('year', tz) AS h, count(*) FROM hard GROUP BY 1 ORDER BY 1 DESC",
	"SELECT extract(hour FROM tz), extract(dow FROM tz), date_part('doy', tz), count(*) FROM hard GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
	"SELECT extract(year FROM tz), sum(extract(epoch FROM tz)), date_part('isoyear', tz) FROM hard GROUP BY 1, 3 ORDER BY 1, 3",
	"SELECT to_char(tz, 'YYYY-MM-DD HH24:MI:SS.US'), id FROM hard WHERE tz < '9998-01-01' ORDER BY id",
	"SELECT id, tz + interval '1 month', tz - interval '1 day', tz + interval '36 hours', tz - interval '1 year' FROM hard ORDER BY id",
	"SELECT id, tz::text, 'at ' || tz FROM hard ORDER BY id",
	"SELECT count(*), sum(id) FROM hard WHERE tz >= '2024-03-31 02:30:00'",
	"SELECT id FROM hard WHERE tz BETWEEN '2024-03-31 01:30' AND '2024-03-31 03:00' ORDER BY id",
	"SELECT count(*), min(id) FROM hard WHERE tz IN ('2024-03-31 03:00:00', '2024-03-30 00:07', '2024-03-31 01:00:00+00')",
	"SELECT count(*), sum(id) FROM hard WHERE tz::date = '2024-03-31'",
	"SELECT count(*), sum(id) FROM hard WHERE tz::date >= date '2024-03-31' AND tz < timestamptz '2024-04-01'",
	"SELECT count(*) FROM hard WHERE date_trunc('day', tz) = '2024-03-31'",
	"SELECT count(*), sum(id) FROM hard WHERE tz > d OR ts < tz",
	"SELECT count(*) FROM hard WHERE CASE WHEN id % 2 = 0 THEN tz ELSE ts END > '2024-03-31'",
	"SELECT id, coalesce(tz, d) FROM hard ORDER BY id",
	"SELECT count(*), sum(a.id) FROM hard a JOIN hard b ON a.tz = b.ts",
	"SELECT count(*), sum(a.id) FROM hard a JOIN hard b ON a.tz::date = b.d",
	"SELECT id, lag(tz) OVER (ORDER BY tz::date, id) FROM hard ORDER BY id",
	"SELECT d, n FROM (SELECT tz::date AS d, count(*) AS n FROM hard GROUP BY 1) x WHERE n > 5 ORDER BY 1",
	"SELECT date_trunc('day', tz, 'Australia/Lord_Howe'), count(*) FROM hard GROUP BY 1 ORDER BY 1",
	"SELECT id, tz AT TIME ZONE 'America/New_York', ts AT TIME ZONE 'Europe/Berlin', timezone('Asia/Kolkata', tz) FROM hard ORDER BY id",
	"SELECT date_trunc('month', tz AT TIME ZONE 'europe/berlin') AS m, count(*) FROM hard GROUP BY 1 ORDER BY 1",
}

// inZonesBy have parameters that are times of the session's zone.
var inZonesBy = map[string][]string{
	"SELECT count(*), sum(id), min(tz) FROM hard WHERE tz >= $1":                    {"2024-03-31 02:30:00"},
	"SELECT count(*), sum(id) FROM hard WHERE tz BETWEEN $1 AND $2":                 {"2024-03-31", "2024-10-27T02:30:00.5"},
	"SELECT count(*), sum(id) FROM hard WHERE tz < $1 OR tz = $2":                   {"2024-03-31 01:00:00+00", "2024-03-31 03:00"},
	"SELECT id, coalesce(tz, $1) FROM hard WHERE tz > $2::timestamptz ORDER BY id":  {"2024-10-27 02:59:59", "-infinity"},
	"SELECT id FROM hard WHERE tz::date >= $1::timestamptz AND ts > $2 ORDER BY id": {"2024-03-31", "2024-03-31 02:30:00"},
}

// TestInZones asks in sessions in several zones what depends on TimeZone, over moments around changes of clocks.
func TestInZones(t *testing.T) {
	s := privateStack(t, hardMoments)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, zone := range append(slices.Clone(corpusZones), "Pacific/Apia", "Africa/Casablanca", "<+03>-03", "UTC+5") {
		for _, c := range []*pgconn.PgConn{direct, proxy} {
			must(t, c, "SET TimeZone = '"+zone+"'")
		}
		for _, sql := range inZones {
			for _, p := range protocols {
				s.accelerates(t, 1, func() {
					want := ask(t, direct, sql, p.format)
					if got := ask(t, proxy, sql, p.format); want.err != "" || len(want.rows) == 0 || got.String() != want.String() {
						t.Errorf("%s in %s (%s): %s%s", sql, zone, p.name, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
					}
				})
				if t.Failed() {
					t.Fatalf("%s in %s (%s)", sql, zone, p.name)
				}
			}
		}
		for sql, values := range inZonesBy {
			for _, p := range protocols[1:] {
				s.accelerates(t, 1, func() {
					want := ask(t, direct, sql, p.format, values...)
					if got := ask(t, proxy, sql, p.format, values...); want.err != "" || len(want.rows) == 0 || got.String() != want.String() {
						t.Errorf("%s of %q in %s (%s): %s%s", sql, values, zone, p.name, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
					}
				})
			}
		}
		// Of other styles the server knows the abbreviation, and of extreme values the error.
		for _, sql := range []string{"SET DateStyle = 'SQL, DMY'", "SELECT id, tz, ts FROM hard ORDER BY id", "SELECT min(tz)::text FROM hard", "SET DateStyle = 'ISO, MDY'",
			"SELECT tz + interval '1 day' FROM harder ORDER BY id", "SELECT extract(hour FROM tz) FROM harder ORDER BY id", "SELECT tz::date FROM harder ORDER BY id", "SELECT id, tz::date FROM harder WHERE id IN (1, 2, 5, 6) ORDER BY id", "SELECT id FROM harder WHERE tz::date > '2000-01-01' ORDER BY id", "SELECT id FROM harder WHERE date_part('year', tz) < 0 OR extract(month FROM tz) > 5 ORDER BY id", "SELECT date_trunc('day', tz) FROM harder",
			"SELECT tz AT TIME ZONE 'Nowhere/City' FROM hard", "SELECT count(*) FROM hard WHERE tz > '2024-13-01'"} {
			if got, want := ask(t, proxy, sql, nil), ask(t, direct, sql, nil); got.String() != want.String() {
				t.Errorf("%s in %s: %s", sql, zone, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		}
	}
}

// TestZoneOfAnExecution executes prepared statements in other zones than those they were prepared in, and changes
// the zone in transactions: functions are in the zone of the execution, and results are written in that.
func TestZoneOfAnExecution(t *testing.T) {
	s := privateStack(t, hardMoments)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	statements := []string{"SELECT tz::date, count(*), min(tz) FROM hard GROUP BY 1 ORDER BY 1", "SELECT id, tz FROM hard WHERE tz > '2024-03-31 02:30' ORDER BY id", "SELECT max(tz + interval '1 month') FROM hard"}
	for i, sql := range statements {
		for _, c := range []*pgconn.PgConn{direct, proxy} {
			if _, err := c.Prepare(t.Context(), string(rune('a'+i)), sql, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	execute := func(c *pgconn.PgConn, name string) answer {
		var a answer
		a.read(c.ExecPrepared(t.Context(), name, map[string][][]byte{"t": {[]byte("2024-03-31 02:30:00")}}[name], nil, nil))
		return a
	}
	for _, c := range []*pgconn.PgConn{direct, proxy} {
		if _, err := c.Prepare(t.Context(), "t", "SELECT count(*), sum(id), min(tz) FROM hard WHERE tz >= $1", nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []string{"SET TimeZone = 'Europe/Berlin'", "SET TimeZone = 'America/New_York'", "BEGIN ISOLATION LEVEL REPEATABLE READ", "SET LOCAL TimeZone = 'Asia/Kolkata'", "SAVEPOINT x", "SET TimeZone = 'UTC'",
		"ROLLBACK TO x", "SET TIME ZONE INTERVAL '-3:30' HOUR TO MINUTE", "COMMIT", "SET TIME ZONE 2", "RESET TimeZone", "SET TimeZone = 'Australia/Lord_Howe'", "SET DateStyle = German", "SET DateStyle = ISO"} {
		must(t, direct, step)
		must(t, proxy, step)
		for range 3 {
			if got, want := execute(proxy, "t"), execute(direct, "t"); want.err != "" || got.String() != want.String() {
				t.Errorf("of a time of the zone after %s: %s%s", step, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		}
		for i, sql := range statements {
			for range 3 { // the first time, when the next is expected, and then
				if got, want := execute(proxy, string(rune('a'+i))), execute(direct, string(rune('a'+i))); want.err != "" || got.String() != want.String() {
					t.Errorf("%s after %s: %s%s", sql, step, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
				}
				if got, want := ask(t, proxy, sql, nil), ask(t, direct, sql, nil); want.err != "" || got.String() != want.String() {
					t.Errorf("%s after %s, as text: %s%s", sql, step, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
				}
			}
		}
	}
}
