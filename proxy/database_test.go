package proxy

import (
	"io"
	"net"
	"slices"
	"testing"

	"pgaccel/engine"
	"pgaccel/upstream"
	"pgaccel/wire"
)

// TestDatabaseByName: the name that a client gives, or its user's, chooses the database, which has another name on its server, and the
// engine.
func TestDatabaseByName(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		first, second := newFake(), newFake()
		first.add(candidateSQL, candidate(numbers(1)))
		st := second.add(candidateSQL, &fakeStatement{route: engine.RouteCandidate, batch: numbers(2)})
		s := startProxy(t, first, change, func(c *Config) {
			c.Databases = map[string]*Database{"by name": {Upstream: c.Default.Upstream, Name: "postgres", Engine: second},
				"postgres2": {Upstream: c.Default.Upstream, Name: "template1"}}
		})
		at := s.Addr().String()
		for _, options := range [][]string{{"user", "postgres", "database", "by name"}, {"user", "postgres", "database", "x", "database", "by name"}} {
			c := connectWith(t, at, startupPacket(wire.Version30, options...))
			defer c.Close()
			before := st.executions.Load()
			wantTypes(t, c.exchange(query(candidateSQL)), "TDCZ")
			if st.executions.Load() != before+1 {
				t.Errorf("%q: not by its engine", options)
			}
			if got := c.exchange(query("select current_database()")); !slices.ContainsFunc(got, func(m message) bool { return m.typ == wire.DataRow && m.body[6:] == "postgres" }) {
				t.Errorf("%q: in %s", options, show(got))
			}
			if list := s.SessionInfos(s.cfg.Databases["by name"]); len(list) == 0 || list[0].Database != "by name" {
				t.Errorf("%v", list)
			}
		}
		if list := s.SessionInfos(s.cfg.Default); len(list) > 0 {
			t.Errorf("the default database has %v", list)
		}
		c := mustConnect(t, at, "")
		defer c.Close()
		if got := c.exchange(query("select current_database()")); !slices.ContainsFunc(got, func(m message) bool { return m.typ == wire.DataRow && m.body[6:] == "postgres" }) {
			t.Errorf("the default is %s", show(got))
		}
		if st.executions.Load() != 2 || len(s.SessionInfos(s.cfg.Default)) != 1 {
			t.Errorf("%d executions", st.executions.Load())
		}
		if got := connectedTo(t, at, "database", "postgres2", "user", "postgres"); got != "template1" {
			t.Errorf("postgres2 is %q", got)
		}
	})
}

func connectedTo(t *testing.T, at string, options ...string) string {
	t.Helper()
	c := connectWith(t, at, startupPacket(wire.Version30, options...))
	defer c.Close()
	for _, m := range c.exchange(query("select current_database()")) {
		if m.typ == wire.DataRow {
			return m.body[6:]
		}
	}
	return ""
}

// TestNoDatabase: without a default, a client that asks for no database that there is is told so, unless it is told first to use TLS.
func TestNoDatabase(t *testing.T) {
	ask := func(s *Server, options ...string) (code string) {
		t.Helper()
		conn := dial(t, s)
		defer conn.Close()
		conn.Write(startupPacket(wire.Version30, options...))
		b, err := io.ReadAll(conn)
		if err != nil || len(b) < 6 || b[0] != wire.ErrorResponse {
			t.Fatalf("%q %v", b, err)
		}
		return string(wire.ErrorField(b[5:], 'C'))
	}
	only := func(c *Config) { c.Databases, c.Default = map[string]*Database{"there": c.Default}, nil }
	s := startProxy(t, nil, only)
	for _, options := range [][]string{{"user", "postgres", "database", "postgres"}, {"user", "postgres"}, {"user", "postgres", "database", "There"}, {"nothing"}} {
		if code := ask(s, options...); code != invalidCatalogName {
			t.Errorf("%q: %s", options, code)
		}
	}
	pair, _, _ := certificate(t)
	required := true
	s = startProxy(t, nil, only, withTLS(pair), func(c *Config) { c.RequireTLS = &required })
	if code := ask(s, "user", "postgres", "database", "nowhere"); code != invalidAuthorization {
		t.Errorf("without TLS: %s", code)
	}
}

// TestCancelOfNobodyGoesToAllServers: the key may be of a session of the process before, on any server.
func TestCancelOfNobodyGoesToAllServers(t *testing.T) {
	got := make(chan string, 4)
	listen := func(name string) upstream.Config {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				b, _ := io.ReadAll(io.LimitReader(conn, 16))
				got <- name + string(b)
				conn.Close()
			}
		}()
		return upstream.Config{Endpoints: []upstream.Endpoint{{Network: "tcp", Address: l.Addr().String()}}}
	}
	first, second := listen("first"), listen("second")
	s := startProxy(t, nil, func(c *Config) {
		c.Default.Upstream = first
		c.Databases = map[string]*Database{"a": {Upstream: first}, "b": {Upstream: second}, "c": {Upstream: second}}
	})
	packet := wire.AppendStartup(nil, wire.CancelRequestCode, []byte{0, 0, 0, 9, 1, 2, 3, 4})
	conn := dial(t, s)
	conn.Write(packet)
	ends(t, conn) // once all have closed theirs
	var all []string
	for len(got) > 0 {
		all = append(all, <-got)
	}
	slices.Sort(all)
	if want := []string{"first" + string(packet), "second" + string(packet)}; !slices.Equal(all, want) {
		t.Errorf("%q", all)
	}
}
