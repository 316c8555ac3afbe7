package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// momentsSchema has moments from two years ago until next year, and nulls.
const momentsSchema = `CREATE TABLE moments (id int PRIMARY KEY, d date, ts timestamp, tz timestamptz, n int NOT NULL, x numeric(10,2), name text NOT NULL);
INSERT INTO moments SELECT i, CASE WHEN i % 17 > 0 THEN current_date - i % 1100 + 300 END, CASE WHEN i % 19 > 0 THEN localtimestamp - make_interval(hours => i % 26000 - 6000) END,
 CASE WHEN i % 23 > 0 THEN date_trunc('hour', now()) - make_interval(hours => i % 26000 - 6000) END, i % 100, i % 1000 / 4.0, 'name ' || i % 10 FROM generate_series(1, 7000) i`

// momentQueries are answered in every session; utcMoments in those in UTC.
var (
	momentQueries = []string{
		"SELECT count(*), sum(n) FROM moments WHERE tz >= now() - interval '7 days'",
		"SELECT count(*), sum(x) FROM moments WHERE tz > current_timestamp - '30 days'::interval AND tz <= CURRENT_TIMESTAMP(0)",
		"SELECT count(*) FROM moments WHERE d >= current_date - 30",
		"SELECT count(*) FROM moments WHERE d >= current_date - interval '1 month'",
		"SELECT count(*) FROM moments WHERE d < now()",
		"SELECT count(*), min(d), max(d) FROM moments WHERE now() - interval '90 days' <= d AND d <= transaction_timestamp()",
		"SELECT count(*) FROM moments WHERE d BETWEEN date_trunc('month', now()) - interval '3 months' AND date_trunc('month', now())",
		"SELECT count(*) FROM moments WHERE NOT (d > localtimestamp)",
		"SELECT count(*) FROM moments WHERE ts >= localtimestamp - interval '7 days'",
		"SELECT count(*) FROM moments WHERE ts >= date_trunc('month', localtimestamp) AND ts < date_trunc('month', localtimestamp) + interval '1 month'",
		"SELECT count(*) FROM moments WHERE ts >= (now() AT TIME ZONE 'UTC') - make_interval(days => 7)",
		"SELECT count(*) FROM moments WHERE d = (now() AT TIME ZONE 'America/New_York')::date",
		"SELECT count(*) FROM moments WHERE d = now()::date OR d = current_date - 1",
		"SELECT count(*) FROM moments WHERE tz >= date_trunc('month', now()) - 3 * interval '1 month'",
		"SELECT count(*) FROM moments WHERE tz >= date_trunc('week', now(), 'Asia/Kathmandu')",
		"SELECT count(*) FROM moments WHERE tz >= date_trunc('day', current_date) - interval '1 day'",
		"SELECT count(*) FROM moments WHERE extract(year from d) = extract(year from now())",
		"SELECT count(*) FROM moments WHERE extract(year from d) = extract(year from current_date) - 1 AND extract(month from d) <= date_part('month', current_date)",
		"SELECT current_date - d AS age, count(*) FROM moments WHERE d > current_date - 10 GROUP BY 1 ORDER BY 1",
		"SELECT current_date, now(), localtimestamp(3), current_timestamp, count(*) FROM moments",
		"SELECT extract(epoch from now()), extract(year from now()), date_part('epoch', localtimestamp), count(*) FROM moments",
		"SELECT date_trunc('month', now()) AS m, name, sum(x) FROM moments GROUP BY date_trunc('month', now()), name ORDER BY 2",
		"SELECT to_char(now(), 'YYYY-MM') || '/' || name AS m, count(*) FROM moments GROUP BY 1 ORDER BY count(*) DESC, min(id)",
		"SELECT id, tz FROM moments WHERE tz < now() ORDER BY tz DESC, id LIMIT 5",
		"SELECT CASE WHEN d < current_date - 365 THEN 'old' WHEN d < current_date THEN 'new' ELSE 'coming' END AS c, count(*) FROM moments GROUP BY 1 ORDER BY 2, min(id)",
		"SELECT count(*) FILTER (WHERE tz >= now() - interval '1 hour' * 24), count(*) FILTER (WHERE tz < now() - (interval '1 day' + interval '2:30')) FROM moments",
		"SELECT count(*) FROM moments WHERE tz >= '2024-01-01 00:00:00.000 +00:00'::timestamptz",
		"SELECT count(*) FROM moments WHERE tz >= timestamp '2024-01-01' AT TIME ZONE 'Europe/Berlin'",
		"SELECT count(*) FROM moments WHERE d >= to_date('2024-01', 'YYYY-MM') AND tz < to_timestamp('2030-02-01 10:00', 'YYYY-MM-DD HH24:MI') AND tz > to_timestamp(1700000000)",
		"SELECT count(*) FROM moments WHERE name <> current_setting('TimeZone') AND n > length(current_setting('DateStyle'))",
		"SELECT version(), count(*) FROM moments",
		"SELECT count(*) FROM moments WHERE n IN (extract(day from now())::int, extract(month from now())::int)",
		"SELECT count(*) FROM moments m JOIN (SELECT DISTINCT n FROM moments WHERE d >= current_date - 5) x ON m.n = x.n WHERE m.tz >= now() - interval '90 days'",
		"WITH bounds AS (SELECT date_trunc('month', now()) AS lo, now() AS hi) SELECT count(*) FROM moments, bounds WHERE tz >= lo AND tz < hi",
		"SELECT count(*) FROM moments WHERE now() > '2020-01-01 00:00:00+00'::timestamptz AND tz < now()",
		"SELECT count(*) FROM moments WHERE d > (SELECT max(d) - 30 FROM moments WHERE tz < now())",
		"SELECT sum(x * (current_date - d)), avg(current_date - d) FROM moments",
		// Moments beside dates and timestamps.
		"SELECT count(*) FROM moments WHERE tz >= current_date - 7 AND tz < current_date + interval '1 day'",
		"SELECT count(*), sum(n) FROM moments WHERE localtimestamp > tz OR tz = date '2025-01-01'",
		"SELECT count(*) FROM moments WHERE tz >= timestamp '2025-03-30 02:30' AND tz <> timestamp '2025-10-26 02:30'",
		"SELECT count(*) FROM moments WHERE d <= '2025-05-01 00:00:00+00'::timestamptz",
		"SELECT count(*), sum(n) FROM moments WHERE ts >= '2025-05-01 00:00:00+00'::timestamptz",
		"SELECT n, count(*) FROM moments WHERE '2025-05-01 12:00:00+02'::timestamptz < ts AND ts <= '2026-01-01 00:00:00+00'::timestamptz GROUP BY n ORDER BY n",
		"SELECT id, ts < '2026-01-01 00:00:00+00'::timestamptz FROM moments WHERE id < 50 ORDER BY 1",
		"SELECT count(*) FILTER (WHERE ts = '2026-01-01 00:00:00+00'::timestamptz), count(*) FILTER (WHERE NOT ts <> '2025-05-01 00:00:00+00'::timestamptz) FROM moments",
		"SELECT count(*) FROM moments WHERE ts < to_timestamp(1750000000)",
	}
	// nowMoments are bounds of timestamps by the clock. In the hours when clocks have been changed they are the
	// server's.
	nowMoments = []string{"now()", "now() - interval '7 days'", "date_trunc('day', now()) - interval '3 months'", "current_timestamp + interval '1 hour'"}
	utcMoments = []string{
		"SELECT g, count(tz) FROM generate_series(date_trunc('day', now()) - interval '9 days', now(), interval '1 hour') g LEFT JOIN moments ON tz = g GROUP BY g ORDER BY g",
	}
)

// momentParameters are statements with parameters in such constants, and values.
var momentParameters = [][]string{
	{"SELECT count(*), sum(n) FROM moments WHERE tz >= now() - $1::interval", "7 days"},
	{"SELECT count(*) FROM moments WHERE d >= current_date - $1::int AND n < $2", "30", "50"},
	{"SELECT count(*) FROM moments WHERE n < $1 AND tz >= now() - make_interval(days => $2, hours => $3)", "50", "7", "-3"},
	{"SELECT count(*) FROM moments WHERE tz BETWEEN $1::timestamptz AND $1::timestamptz + $2::interval", "2026-01-01 00:00:00+00", "6 months"},
	{"SELECT count(*) FROM moments WHERE d >= date_trunc('month', $1::date) AND name <> $2", "2026-02-03", "name 1"},
	{"SELECT count(*) FROM moments WHERE ts > now() AT TIME ZONE $1::text", "Europe/Berlin"},
	{"SELECT to_char(now() - $1::interval, $2::text), count(*) FROM moments", "P1Y2M", "DD Mon YYYY"},
	{"SELECT count(*), sum(n) FROM moments WHERE ts >= $1::timestamptz", "2025-05-01 00:00:00+00"},
	{"SELECT count(*), sum(n) FROM moments WHERE ts < $1::timestamptz - $2::interval AND tz > $3::timestamp", "2026-05-01 00:00:00+00", "1 month", "2025-03-30 02:30:00"},
}

// inTransaction asks a statement in one transaction of pgaccel's and of the server's, so that now() is
// the same, and compares the answers.
func (s *stack) inTransaction(t *testing.T, conn *pgconn.PgConn, accelerated bool, sql string, format []int16, params ...string) {
	t.Helper()
	mode := func(m string) { ask(t, conn, "SET LOCAL pgaccel.mode = "+m, nil) }
	ask(t, conn, "BEGIN", nil)
	defer ask(t, conn, "ROLLBACK", nil)
	var got answer
	if accelerated {
		s.accelerates(t, 1, func() { got = ask(t, conn, sql, format, params...) })
	} else {
		s.forwardsAll(t, func() { got = ask(t, conn, sql, format, params...) })
	}
	if got.err != "" {
		ask(t, conn, "ROLLBACK", nil)
	}
	mode("off")
	want := ask(t, conn, sql, format, params...)
	if got.String() != want.String() {
		t.Errorf("%s, formats %v: got %.1000s\nwant %.1000s", sql, format, got, want)
	}
	if t.Failed() {
		t.Fatal(sql)
	}
}

// TestServerConstants compares what is made of now() and other constants of the server's.
func TestServerConstants(t *testing.T) {
	s := privateStack(t, momentsSchema)
	settings := []string{"SET TimeZone = 'UTC'; SET DateStyle = 'ISO, MDY'",
		"SET TimeZone = 'Europe/Berlin'; SET DateStyle = 'ISO, DMY'; SET IntervalStyle = 'sql_standard'",
		"SET TimeZone = 'America/New_York'; SET IntervalStyle = 'iso_8601'", "SET TimeZone = 'Asia/Kathmandu'; SET IntervalStyle = 'postgres_verbose'"}
	for _, set := range settings {
		t.Run(set, func(t *testing.T) {
			conn := connect(t, s.proxy.url("postgres"))
			for one := range strings.SplitSeq(set, "; ") {
				ask(t, conn, one, nil)
			}
			for _, sql := range momentQueries {
				for _, format := range [][]int16{nil, {0}, {1}} {
					s.inTransaction(t, conn, true, sql, format)
				}
			}
			for _, q := range momentParameters {
				for _, format := range [][]int16{{0}, {1}} {
					s.inTransaction(t, conn, true, q[0], format, q[1:]...)
				}
			}
			for _, bound := range nowMoments {
				steady := ask(t, conn, "SELECT extract(timezone FROM m - interval '2 days') = extract(timezone FROM m + interval '2 days') FROM (SELECT "+bound+" AS m) x", nil)
				if strings.Join(steady.rows, "") != `"t"|` {
					t.Log("the clocks have been changed: ", bound, steady)
					continue
				}
				for _, format := range [][]int16{nil, {0}, {1}} {
					s.inTransaction(t, conn, true, "SELECT count(*), sum(n), max(ts) FROM moments WHERE ts <= "+bound, format)
				}
			}
			for _, sql := range utcMoments {
				s.inTransaction(t, conn, strings.Contains(set, "UTC"), sql, nil)
			}
		})
	}
}

// TestServerConstantsMoment asserts of which moment now() is: of the transaction's begin in a block, else
// between the statement's request and its answer.
func TestServerConstantsMoment(t *testing.T) {
	s := privateStack(t, momentsSchema)
	conn := connect(t, s.proxy.url("postgres"))
	one := func(sql string, format []int16) string {
		t.Helper()
		a := ask(t, conn, sql, format)
		if a.err != "" || len(a.rows) != 1 {
			t.Fatal(sql, a)
		}
		return a.rows[0]
	}
	const statement = "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') FROM moments WHERE tz < now() LIMIT 1"
	moment := strings.NewReplacer(" FROM moments WHERE tz < now() LIMIT 1", "", "now()", "clock_timestamp()").Replace(statement)
	formats := [][]int16{nil, {0}, {1}}
	for _, level := range []string{"READ COMMITTED", "REPEATABLE READ"} {
		for _, format := range formats {
			ask(t, conn, "BEGIN ISOLATION LEVEL "+level, nil)
			begun := one(strings.TrimSuffix(statement, " FROM moments WHERE tz < now() LIMIT 1"), format)
			for range 2 {
				one("SELECT pg_sleep(0.02)", nil)
				s.accelerates(t, 1, func() {
					if got := one(statement, format); got != begun {
						t.Errorf("%s, %v: now() is %s, the transaction's %s", level, format, got, begun)
					}
				})
			}
			ask(t, conn, "COMMIT", nil)
		}
	}
	for _, format := range formats {
		before := one(moment, format)
		for range 3 {
			s.accelerates(t, 1, func() {
				got := one(statement, format)
				after := one(moment, format)
				if got < before || got > after {
					t.Errorf("%v: now() is %s, asked between %s and %s", format, got, before, after)
				}
				before = after
			})
		}
	}
	// A prepared statement has another moment each time, and another day in another zone.
	ctx := t.Context()
	if _, err := conn.Prepare(ctx, "twice", strings.Replace(statement, "SELECT ", "SELECT date_trunc('day', now())::text, current_setting('TimeZone'), ", 1), nil); err != nil {
		t.Fatal(err)
	}
	last := ""
	for _, zone := range []string{"UTC", "Asia/Kathmandu", "America/New_York"} {
		one("SELECT set_config('TimeZone', '"+zone+"', false)", nil)
		s.accelerates(t, 1, func() {
			res := conn.ExecPrepared(ctx, "twice", nil, nil, nil).Read()
			day := one("SELECT date_trunc('day', now())::text", nil)
			if res.Err != nil || len(res.Rows) != 1 || !strings.Contains(day, string(res.Rows[0][0])) || string(res.Rows[0][1]) != zone || string(res.Rows[0][2]) <= last {
				t.Fatalf("%s: %s behind %s, day %s: %v", zone, res.Rows, last, day, res.Err)
			}
			last = string(res.Rows[0][2])
		})
	}
}

// TestServerConstantsFail has errors in constants, those that the statement has and those of arms that
// no row takes: all are the server's to report.
func TestServerConstantsFail(t *testing.T) {
	s := privateStack(t, momentsSchema+`;
CREATE ROLE nobody LOGIN;
GRANT SELECT ON moments TO nobody`)
	direct, proxied := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	failing := []string{
		"SELECT count(*) FROM moments WHERE tz > now() + interval '1000000 years'",
		"SELECT count(*) FROM moments WHERE n > extract(year from now()) / 0",
		"SELECT count(*) FROM moments WHERE ts > now() AT TIME ZONE 'Nowhere'",
		"SELECT count(*) FROM moments WHERE n > current_setting('no.such')::int",
		"SELECT count(*) FROM moments WHERE n = current_setting('TimeZone')::int",
		"SELECT sum(CASE WHEN n < 0 THEN extract(year from now() + interval '1000000 years') ELSE n END) FROM moments",
		"SELECT count(*) FROM moments WHERE n < 0 AND tz < now() - interval '1000000 years'",
		"SELECT count(*) FROM moments WHERE name <> coalesce(current_setting('no.such', true), 'none')",
	}
	for _, sql := range failing {
		for _, format := range [][]int16{nil, {0}, {1}} {
			for range 2 { // the second time without a try
				for _, block := range []bool{false, true} {
					s.forwardsAll(t, func() {
						var answers [2]string
						for i, conn := range []*pgconn.PgConn{direct, proxied} {
							if block {
								ask(t, conn, "BEGIN", nil)
							}
							answers[i] = ask(t, conn, sql, format).String()
							if block {
								answers[i] += ask(t, conn, "SELECT 1", format).String() + ask(t, conn, "COMMIT", nil).String()
							}
						}
						if answers[0] != answers[1] {
							t.Errorf("%s, %v, in a block %v: got %s\nwant %s", sql, format, block, answers[1], answers[0])
						}
					})
				}
			}
		}
		s.inTransaction(t, proxied, true, "SELECT count(*) FROM moments WHERE tz > now() - interval '7 days'", nil)
	}
	// A parameter that is an error, one without a value, and one that another type is declared for.
	for _, q := range [][]string{{"SELECT count(*) FROM moments WHERE tz > now() - $1::interval", "1000000 years"},
		{"SELECT count(*) FROM moments WHERE tz > now() - $1::interval", "none"}, {"SELECT count(*) FROM moments WHERE ts > now() AT TIME ZONE $1::text", "Nowhere"}} {
		s.forwardsAll(t, func() {
			if got, want := ask(t, proxied, q[0], []int16{0}, q[1]), ask(t, direct, q[0], []int16{0}, q[1]); got.String() != want.String() || got.err == "" {
				t.Errorf("%s: got %s\nwant %s", q, got, want)
			}
		})
	}
	declared := func(conn *pgconn.PgConn, oid uint32, value []byte) string {
		res := conn.ExecParams(t.Context(), "SELECT count(*) FROM moments WHERE tz > now() - $1::text::interval", [][]byte{value}, []uint32{oid}, nil, nil).Read()
		return fmt.Sprint(res.Rows, res.Err)
	}
	for _, oid := range []uint32{0, 25, 1186, 23, 705} {
		for _, value := range [][]byte{[]byte("12"), nil} {
			if got, want := declared(proxied, oid, value), declared(direct, oid, value); got != want {
				t.Errorf("declared as %d: got %s, want %s", oid, got, want)
			}
		}
	}
	// In a batch, behind which the transaction ends.
	batch := &pgconn.Batch{}
	batch.ExecParams("SELECT count(*) FROM moments WHERE tz > now() - interval '7 days'", nil, nil, nil, nil)
	batch.ExecParams("SELECT count(*) FROM moments WHERE tz > now() + interval '100 years' * 100000", nil, nil, nil, nil)
	res, err := proxied.ExecBatch(t.Context(), batch).ReadAll()
	if err == nil || len(res) == 0 || res[0].Err != nil {
		t.Errorf("a batch: %v, %v", res, err)
	}
	// Who may not call a function gets the server's error, and goes on.
	ask(t, direct, "REVOKE EXECUTE ON FUNCTION pg_catalog.now() FROM PUBLIC", nil)
	nobody, nobodyDirect := connect(t, s.proxy.url("nobody")), connect(t, s.direct.url("nobody"))
	for _, format := range [][]int16{nil, {0}} {
		const sql = "SELECT count(*) FROM moments WHERE tz > now()"
		if got, want := ask(t, nobody, sql, format), ask(t, nobodyDirect, sql, format); got.String() != want.String() || got.err == "" {
			t.Errorf("got %s\nwant %s", got, want)
		}
		s.inTransaction(t, nobody, true, "SELECT count(*) FROM moments WHERE tz > CURRENT_TIMESTAMP", format)
	}
	ask(t, direct, "GRANT EXECUTE ON FUNCTION pg_catalog.now() TO PUBLIC", nil)
	// A function of somebody's in the place of a built-in one.
	ask(t, direct, "CREATE SCHEMA own", nil)
	ask(t, direct, "CREATE FUNCTION own.now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT timestamptz ''2020-01-01 00:00+00'''", nil)
	ask(t, proxied, "SET search_path = own, public, pg_catalog", nil)
	s.inTransaction(t, proxied, false, "SELECT now(), count(*) FROM public.moments WHERE tz > now()", nil)
	s.inTransaction(t, proxied, false, "SELECT statement_timestamp() > now(), count(*) FROM public.moments", nil)
}
