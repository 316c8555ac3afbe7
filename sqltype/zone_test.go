package sqltype

import (
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
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

// zoneSession asks in a session whose TimeZone is the zone.
type zoneSession struct {
	t    *testing.T
	conn *pgconn.PgConn
}

func (s zoneSession) ask(sql string, times []int64) ([]int64, error) {
	list, err := pgtype.NewMap().Encode(pgtype.Int8ArrayOID, pgtype.TextFormatCode, times, nil)
	if err != nil {
		return nil, err
	}
	r := s.conn.ExecParams(s.t.Context(), sql, [][]byte{list}, nil, nil, nil).Read()
	out := make([]int64, len(r.Rows))
	for i, row := range r.Rows {
		if out[i], err = strconv.ParseInt(string(row[0]), 10, 64); err != nil {
			return nil, err
		}
	}
	return out, r.Err
}

func (s zoneSession) Offsets(utc []int64) ([]int64, error) {
	return s.ask("SELECT date_part('timezone', to_timestamp(e + 946684800))::int8 FROM unnest($1::int8[]) WITH ORDINALITY AS u(e, n) ORDER BY n", utc)
}

func (s zoneSession) UTC(local []int64) ([]int64, error) {
	return s.ask("SELECT extract(epoch FROM (timestamp '2000-01-01' + e * interval '1 second')::timestamptz)::int8 - 946684800 FROM unnest($1::int8[]) WITH ORDINALITY AS u(e, n) ORDER BY n", local)
}

// TestZones reads the rules of some zones of the server, and of some that are none of the tz database; those that
// are known must be most of them.
func TestZones(t *testing.T) {
	conn := realPostgres(t)
	names := query(t, conn, "SELECT name FROM pg_timezone_names WHERE name LIKE '%/%' AND abs(hashtext(name)) % 40 = 1 ORDER BY 1")
	if testing.Short() {
		names = nil
	}
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/St_Johns", "Africa/Casablanca", "Pacific/Apia",
		"Antarctica/Troll", "Asia/Kathmandu", "Europe/Dublin", "<+02>-02", "UTC+5", "EST5EDT,M3.2.0/2,M11.1.0/2", "<-03>3:30"} {
		names = append(names, []string{name})
	}
	unknown := 0
	for _, row := range names {
		query(t, conn, "SET timezone = '"+row[0]+"'; SHOW timezone")
		if _, err := AskZone(zoneSession{t, conn}); err != nil {
			unknown++
			t.Logf("%s: %v", row[0], err)
		}
	}
	if unknown > len(names)/12 {
		t.Errorf("the rules of %d zones of %d are not known", unknown, len(names))
	}
}

// oddZone is a server whose clocks are as a function says.
type oddZone struct {
	offset func(utc int64) int64
	utc    func(local int64) int64
}

func (o oddZone) Offsets(utc []int64) ([]int64, error) { return each(utc, o.offset), nil }

func (o oddZone) UTC(local []int64) ([]int64, error) { return each(local, o.utc), nil }

func each(times []int64, f func(int64) int64) []int64 {
	out := make([]int64, len(times))
	for i, t := range times {
		out[i] = f(t)
	}
	return out
}

// TestOddZones: a zone whose clocks are otherwise than is supposed is not known.
func TestOddZones(t *testing.T) {
	at := DayOf(2020, 5, 5) * secondsPerDay
	hour := func(ahead bool) int64 {
		if ahead {
			return 3600
		}
		return 0
	}
	fixed := oddZone{func(int64) int64 { return 3600 }, func(local int64) int64 { return local - 3600 }}
	if z, err := AskZone(fixed); z == nil || err != nil {
		t.Fatalf("a zone that never changes: %v", err)
	}
	put := oddZone{func(utc int64) int64 { return hour(utc >= at+7) }, func(local int64) int64 {
		if local < at+7+3600 { // left out: by the clock before
			return local
		}
		return local - 3600
	}}
	if z, err := AskZone(put); z == nil || err != nil {
		t.Fatalf("clocks that are put forward once: %v", err)
	}
	for name, o := range map[string]oddZone{
		"twice a day":        {func(utc int64) int64 { return hour(utc >= at+7) + hour(utc >= at+4000) }, put.utc},
		"what is left out":   {put.offset, func(local int64) int64 { return local - hour(local >= at+7) }},
		"far away":           {func(utc int64) int64 { return hour(utc > DayOf(5000, 1, 1)*secondsPerDay) }, func(local int64) int64 { return local }},
		"long ago":           {func(utc int64) int64 { return hour(utc < DayOf(-3000, 1, 1)*secondsPerDay) }, func(local int64) int64 { return local }},
		"another local time": {fixed.offset, func(local int64) int64 { return local - 3600 - hour(local > DayOf(9000, 1, 1)*secondsPerDay) }},
		"not like years before": {func(utc int64) int64 {
			return hour(utc > DayOf(2300, 6, 1)*secondsPerDay && utc < DayOf(2300, 8, 1)*secondsPerDay)
		}, func(local int64) int64 { return local }},
	} {
		if z, err := AskZone(o); z != nil || err == nil {
			t.Errorf("%s: known", name)
		}
	}
}
