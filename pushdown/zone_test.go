package pushdown

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
)

// hardZones change their clocks by an hour, half an hour, twenty minutes, a day, west and east of Greenwich, at
// midnight, in Ramadan, for a while twice a year by two, or never.
var hardZones = []string{"UTC", "Europe/Berlin", "Europe/London", "Europe/Dublin", "Europe/Lisbon", "Europe/Moscow", "America/New_York", "America/St_Johns",
	"America/Sao_Paulo", "America/Havana", "America/Caracas", "America/Godthab", "America/Juneau", "Australia/Lord_Howe", "Australia/Adelaide",
	"Asia/Kathmandu", "Asia/Pyongyang", "Asia/Tehran", "Asia/Gaza", "Asia/Amman", "Asia/Manila", "Asia/Riyadh", "Africa/Casablanca", "Africa/Monrovia", "Africa/Cairo",
	"Pacific/Apia", "Pacific/Kwajalein", "Pacific/Kiritimati", "Pacific/Norfolk", "Antarctica/Troll", "Antarctica/Casey"}

// changes are the moments at which a zone's clocks change, in seconds since 1970, and its offsets before and after.
func changes(zone string) (list [][3]int64) {
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil
	}
	end := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)
	for at := time.Date(1800, 1, 1, 0, 0, 0, 0, time.UTC).In(location); ; {
		_, next := at.ZoneBounds()
		if next.IsZero() || next.After(end) {
			return list
		}
		_, before := next.Add(-time.Second).Zone()
		_, after := next.Zone()
		if before != after {
			list = append(list, [3]int64{next.Unix(), int64(before), int64(after)})
		}
		at = next
	}
}

// TestLocalTimestamp compares, around each change of a zone's clocks, timestamps with a moment and with what
// stands for it, in a server. ZONES=all does so with all zones.
func TestLocalTimestamp(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	pg, err := pgserver.Start(ctx, pgserver.Options{Settings: map[string]string{"jit": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Stop()
	conn, err := pgconn.Connect(ctx, pg.URL("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	ask := func(sql string) [][][]byte {
		t.Helper()
		results, err := conn.Exec(ctx, sql).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return results[len(results)-1].Rows
	}
	ask("CREATE TABLE changes (at bigint, before int, after int)")
	zones := hardZones
	if os.Getenv("ZONES") == "all" {
		zones = nil
		for _, row := range ask("SELECT name FROM pg_timezone_names WHERE name NOT LIKE 'posix%' ORDER BY 1") {
			zones = append(zones, string(row[0]))
		}
	}
	known := 0
	for _, zone := range zones {
		var rows bytes.Buffer
		for _, c := range append(changes(zone), [3]int64{0, 0, 0}) {
			fmt.Fprintf(&rows, "%d\t%d\t%d\n", c[0], c[1], c[2])
		}
		ask("TRUNCATE changes; SET TimeZone = '" + zone + "'")
		if _, err := conn.CopyFrom(ctx, &rows, "COPY changes FROM STDIN"); err != nil {
			t.Fatal(err)
		}
		// The moments, and for each what stands for it; timestamps around the change by both clocks, and around
		// what stands for the moment.
		got := ask(`WITH s AS MATERIALIZED (SELECT at, before, after, to_timestamp(at) AS t, abs(after - before) AS d FROM changes),
 m AS MATERIALIZED (SELECT s.*, t + make_interval(secs => by) AS m FROM s, LATERAL (SELECT DISTINCT unnest(ARRAY[-200000, -86400, -d - 1, -d, -d + 1, -d / 2, -1, -0.000001, 0, 0.000001, 1, d / 2, d - 0.000001, d, d + 1, 7200, 86400, 93600, 93601, 200000]) AS by) AS b
   UNION ALL SELECT 0, 0, 0, now(), 0, unnest(ARRAY['infinity', '-infinity', '4713-12-01 00:00:00+00 BC', '0044-03-15 12:00+00 BC', '0001-01-01 00:00+00', '294270-01-01 00:00+00']::timestamptz[])),
 b AS MATERIALIZED (SELECT m.*, ` + localSQL("m.m") + ` AS l FROM m),
 x AS (SELECT m, l, unnest(ARRAY[l, l - interval '1 us', l + interval '1 us', l - interval '1 hour', l + interval '1 hour', l - interval '1 day', l + interval '1 day', 'infinity', '-infinity',
   w + make_interval(secs => before), w + make_interval(secs => before - 0.000001), w + make_interval(secs => after), w + make_interval(secs => after - 0.000001), w + make_interval(secs => (before + after) / 2),
   w + make_interval(secs => least(before, after) - 1800), w + make_interval(secs => greatest(before, after) + 1800), w + make_interval(secs => 2 * before - after), w + make_interval(secs => 2 * after - before)]) AS x
   FROM (SELECT b.*, timezone('UTC', t) AS w FROM b WHERE l IS NOT NULL) AS b)
SELECT (SELECT count(*) FROM b WHERE l IS NOT NULL), (SELECT count(*) FROM b WHERE l IS NULL AND NOT (m >= t - make_interval(secs => d) AND m < t + make_interval(secs => d))),
 count(*) FILTER (WHERE (x < m) <> (x < l) OR (x <= m) <> (x <= l) OR (x = m) <> (x = l)), min(m::text || ' ' || l || ' ' || x) FILTER (WHERE (x < m) <> (x < l) OR (x <= m) <> (x <= l) OR (x = m) <> (x = l)) FROM x`)
		var stands, without, wrong int
		fmt.Sscan(string(got[0][0]), &stands)
		fmt.Sscan(string(got[0][1]), &without)
		fmt.Sscan(string(got[0][2]), &wrong)
		if known += stands; wrong > 0 {
			t.Errorf("%s: %d comparisons are wrong: %s", zone, wrong, got[0][3])
		}
		if without > 0 {
			t.Logf("%s: nothing stands for %d moments that are far from a change", zone, without)
		}
	}
	if known < 10000 {
		t.Errorf("of %d moments only something is said", known)
	}
	if strings.Contains(localSQL("now()"), "%!") {
		t.Error("a format is wrong")
	}
}
