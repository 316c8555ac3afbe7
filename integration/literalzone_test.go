package integration

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

const parsedSchema = `CREATE TABLE moments (id int PRIMARY KEY, tz timestamptz NOT NULL, ts timestamp NOT NULL);
INSERT INTO moments SELECT i, '2023-12-31 00:00:00+00'::timestamptz + i * interval '37 minutes', '2023-12-31'::timestamp + i * interval '37 minutes' FROM generate_series(1, 5000) i`

// TestLiteralsAreReadAtParse prepares statements in one time zone and executes them in another: a
// literal without an offset means what it meant when the server parsed it.
func TestLiteralsAreReadAtParse(t *testing.T) {
	s := privateStack(t, parsedSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	must(t, proxy, "SET pgaccel.mode = 'force'")
	same := func(what string, f func(c *pgconn.PgConn) *pgconn.MultiResultReader) {
		t.Helper()
		var said [2]string
		for i, c := range []*pgconn.PgConn{direct, proxy} {
			r, err := f(c).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range r {
				said[i] += fmt.Sprintf("%q %v ", x.Rows, x.Err)
			}
		}
		if said[0] != said[1] {
			t.Errorf("%s:\n%s, want\n%s", what, said[1], said[0])
		}
	}
	in := func(zone string) {
		must(t, direct, "SET TimeZone = '"+zone+"'")
		must(t, proxy, "SET TimeZone = '"+zone+"'")
	}
	n := 0
	prepare := func(sql string) string {
		n++
		name := fmt.Sprint("s", n)
		for _, c := range []*pgconn.PgConn{direct, proxy} {
			if _, err := c.Prepare(t.Context(), name, sql, nil); err != nil {
				t.Fatal(err)
			}
		}
		return name
	}
	execute := func(name string, before ...string) func(c *pgconn.PgConn) *pgconn.MultiResultReader {
		return func(c *pgconn.PgConn) *pgconn.MultiResultReader {
			b := &pgconn.Batch{}
			for _, sql := range before {
				b.ExecParams(sql, nil, nil, nil, nil)
			}
			b.ExecPrepared(name, nil, nil, nil)
			return c.ExecBatch(t.Context(), b)
		}
	}
	zones := []string{"UTC", "Europe/Berlin", "America/New_York"}
	for i, where := range []string{"tz >= '2024-01-01 00:00:00'", "ts >= timestamptz '2024-01-01 00:00:00' - interval '1 day'", "tz < '2024-02-01'::timestamptz + interval '1 hour'"} {
		sql := "SELECT count(*), sum(id), min(id) FROM moments WHERE " + where
		for _, parsed := range zones {
			for _, executed := range zones {
				what := fmt.Sprintf("%s, parsed in %s, executed in %s", where, parsed, executed)
				in(parsed)
				name := prepare(sql)
				if parsed == "UTC" && i == 0 { // the server does the others
					s.accelerates(t, 1, func() { same(what, execute(name)) })
				}
				in(executed)
				same(what, execute(name))
				same(what+", the zone set in the same batch", execute(name, "SET TimeZone = '"+parsed+"'", "SET TimeZone = '"+executed+"'"))
				in(parsed)
				if parsed == "UTC" && i == 0 { // as it was parsed
					s.accelerates(t, 1, func() { same(what+", and back", execute(name)) })
				}
			}
		}
	}
}
