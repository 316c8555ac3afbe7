package sqltype

import (
	"strings"
	"testing"
)

// TestUTCAbbreviation asks the server for all zones that are UTC today, and what each
// prints from before there were time zones to after 2038.
func TestUTCAbbreviation(t *testing.T) {
	conn := realPostgres(t)
	known := 0
	for _, row := range query(t, conn, "SELECT name FROM pg_timezone_names WHERE utc_offset = '0'") {
		name := row[0]
		// It is found in any case, and shown in its own.
		shown := query(t, conn, "SET datestyle = 'SQL, MDY'; SET timezone = '"+strings.ToUpper(name)+"'; SHOW timezone")[0][0]
		if shown != name && !strings.EqualFold(name, "localtime") {
			t.Errorf("timezone %s is shown as %s", strings.ToUpper(name), shown)
		}
		printed := query(t, conn, "SELECT string_agg(DISTINCT split_part(t::text, ' ', 3), ','), bool_and(t::timestamp = t AT TIME ZONE 'UTC') "+
			"FROM generate_series('1800-01-01 00:00Z'::timestamptz, '2050-01-01 00:00Z', '15 days') t")[0]
		abbreviation, ok := UTCAbbreviation(name)
		if ok {
			known++
		}
		switch {
		case ok && (printed[1] != "t" || printed[0] != abbreviation):
			t.Errorf("%s prints %s (UTC: %s), not %s", name, printed[0], printed[1], abbreviation)
		case !ok && printed[1] == "t" && (printed[0] == "UTC" || printed[0] == "GMT") && !host(name):
			t.Errorf("%s is UTC at all times and prints %s, but is not known", name, printed[0])
		}
	}
	if known != 18 {
		t.Errorf("the server has %d of the 18 names", known)
	}
	for _, name := range []string{"", "utc", "<+00>-00", "Factory", "Etc/GMT-1", "Europe/London", "posix/UTC", "right/UTC"} {
		if _, ok := UTCAbbreviation(name); ok {
			t.Errorf("%s was taken", name)
		}
	}
}

// host reports whether the name means what the host's administrator makes of it, or is
// the copy of a zone that only some hosts have.
func host(name string) bool {
	return name == "localtime" || name == "posixrules" || strings.HasPrefix(name, "posix/")
}
