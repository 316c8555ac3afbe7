package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// portalClient speaks the extended protocol message by message.
type portalClient struct {
	t testing.TB
	f *pgproto3.Frontend
}

func newPortalClient(t testing.TB, h *pgconn.HijackedConn) *portalClient {
	return &portalClient{t: t, f: h.Frontend}
}

func (c *portalClient) query(sql string)       { c.f.Send(&pgproto3.Query{String: sql}) }
func (c *portalClient) parse(name, sql string) { c.f.Send(&pgproto3.Parse{Name: name, Query: sql}) }
func (c *portalClient) bind(portal, name string) {
	c.f.Send(&pgproto3.Bind{DestinationPortal: portal, PreparedStatement: name})
}
func (c *portalClient) execute(portal string, rows uint32) {
	c.f.Send(&pgproto3.Execute{Portal: portal, MaxRows: rows})
}
func (c *portalClient) sync() { c.f.Send(&pgproto3.Sync{}) }

// round sends what send writes and returns the answer up to ReadyForQuery.
func (c *portalClient) round(name string, send func()) string {
	c.t.Helper()
	send()
	if err := c.f.Flush(); err != nil {
		c.t.Fatal(err)
	}
	text := name + ":\n"
	for {
		m, err := c.f.Receive()
		if err != nil {
			c.t.Fatal(err)
		}
		switch m := m.(type) {
		case *pgproto3.DataRow:
			text += fmt.Sprintf("row %q\n", m.Values)
		case *pgproto3.CommandComplete:
			text += fmt.Sprintf("complete %s\n", m.CommandTag)
		case *pgproto3.ErrorResponse:
			text += fmt.Sprintf("error %s %s\n", m.Code, m.Message)
		case *pgproto3.ReadyForQuery:
			return text + fmt.Sprintf("ready %c\n", m.TxStatus)
		case *pgproto3.ParameterStatus, *pgproto3.NoticeResponse:
		default:
			text += fmt.Sprintf("%T\n", m)
		}
	}
}

// TestPortalUnderOtherSettings reads a portal on after the client has changed how values are
// written: Postgres writes each row as the settings are when it is sent. What pgaccel cannot
// write ends the statement and its transaction with an error, not with rows of before.
func TestPortalUnderOtherSettings(t *testing.T) {
	s := privateStack(t, `
CREATE TABLE days (id int PRIMARY KEY, d date, ts timestamp, tz timestamptz, x text);
INSERT INTO days SELECT i, date '2001-02-03' + i, timestamp '2001-02-03 04:05:06' + i * interval '1 hour', timestamptz '2001-02-03 04:05:06Z' + i * interval '1 day', 'é' || i
FROM generate_series(1, 5000) i;
ANALYZE days;
`)
	const (
		sql    = "SELECT id, d, ts, tz, x FROM days ORDER BY id"
		floats = "SELECT id, d, tz, id / 3.0::double precision FROM days ORDER BY id"
	)
	transcript := func(tg target, set ...string) (text string) {
		conn := connect(t, tg.url("postgres"))
		must(t, conn, "SET TimeZone = 'UTC'")
		if tg.port == s.proxy.port {
			must(t, conn, "SET pgaccel.mode = 'force'")
			s.eventually(t, conn, sql)
		}
		if err := conn.SyncConn(t.Context()); err != nil {
			t.Fatal(err)
		}
		h, err := conn.Hijack()
		if err != nil {
			t.Fatal(err)
		}
		defer h.Conn.Close()
		f := newPortalClient(t, h)
		text += f.round("begin", func() { f.query("BEGIN") })
		open := func() {
			text += f.round("open", func() {
				f.parse("s", sql)
				f.bind("c", "s")
				f.execute("c", 2)
				f.sync()
			})
		}
		if tg.port == s.proxy.port {
			s.accelerates(t, 1, open)
		} else {
			open()
		}
		for _, q := range set {
			text += f.round(q, func() { f.query(q) })
			text += f.round("more", func() { f.execute("c", 2); f.sync() })
		}
		text += f.round("end", func() { f.query("ROLLBACK") })
		return text + f.round("after", func() { f.bind("", "s"); f.execute("", 1); f.sync() })
	}
	pipelined := func(tg target, set string) string {
		conn := connect(t, tg.url("postgres"))
		must(t, conn, "SET TimeZone = 'UTC'")
		if tg.port == s.proxy.port {
			must(t, conn, "SET pgaccel.mode = 'force'")
		}
		if err := conn.SyncConn(t.Context()); err != nil {
			t.Fatal(err)
		}
		h, err := conn.Hijack()
		if err != nil {
			t.Fatal(err)
		}
		defer h.Conn.Close()
		f := newPortalClient(t, h)
		text := f.round("begin", func() { f.query("BEGIN") })
		text += f.round("open", func() { f.parse("s", floats); f.bind("c", "s"); f.execute("c", 2); f.sync() })
		text += f.round("in one batch", func() {
			f.parse("", set)
			f.bind("", "")
			f.execute("", 0)
			f.execute("c", 2)
			f.sync()
		})
		return text + f.round("end", func() { f.execute("c", 0); f.sync() })
	}
	for _, set := range []string{"SET DateStyle = 'German'", "SELECT set_config('DateStyle', 'SQL, DMY', true)", "SET TimeZone = 'GMT'", "SELECT 1/0", "COMMIT"} {
		want := pipelined(s.direct, set)
		var got string
		s.accelerates(t, 1, func() { got = pipelined(s.proxy, set) })
		if got != want {
			t.Errorf("%q in one batch: %s", set, firstDifference([]byte(got), []byte(want)))
		}
	}
	if got := pipelined(s.proxy, "SET extra_float_digits = 0"); !strings.Contains(got, `error 0A000 pgaccel cannot go on with portal "c"`) {
		t.Errorf("extra_float_digits: %s", got)
	}
	for _, set := range [][]string{
		{"SET DateStyle = 'German'", "SET LOCAL DateStyle = 'SQL, DMY'", "RESET DateStyle"},
		{"SET DateStyle = 'Postgres'; SET TimeZone = 'GMT'", "SET TimeZone = 'UTC'"},
		{"SET client_encoding = 'UTF8'", "SET extra_float_digits = 3"},
	} {
		want := transcript(s.direct, set...)
		if got := transcript(s.proxy, set...); got != want {
			t.Errorf("%q: %s", set, firstDifference([]byte(got), []byte(want)))
		}
	}
	for _, set := range []string{"SET TimeZone = 'Asia/Tokyo'; SET DateStyle = 'German'", "SET client_encoding = 'LATIN1'"} {
		got := transcript(s.proxy, set)
		if !strings.Contains(got, `error 0A000 pgaccel cannot go on with portal "c"`) || !strings.Contains(got, "ready E\nend:\ncomplete ROLLBACK\nready I\n") {
			t.Errorf("%s: %s", set, got)
		}
	}
}
