package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"pgaccel/engine"
	"pgaccel/upstream"
	"pgaccel/wire"
)

// cancel sends a cancel request and waits until it is closed without an answer.
func cancel(t testing.TB, address string, key []byte, behind ...byte) {
	t.Helper()
	conn, err := dialRaw(address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Write(append(wire.AppendStartup(nil, wire.CancelRequestCode, key), behind...))
	conn.SetReadDeadline(time.Now().Add(patience))
	b, err := io.ReadAll(conn)
	if len(b) != 0 || err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("answer to a cancel request: %q, %v", b, err)
	}
}

func wantCode(t *testing.T, m message, code string) {
	t.Helper()
	if got := string(wire.ErrorField([]byte(m.body), 'C')); m.typ != 'E' || got != code {
		t.Fatalf("%v, want error %s", m, code)
	}
}

func isActive(t *testing.T, pid uint32) func() bool { return activity(t, pid, "state = 'active'") }

// sleeps says whether a session is in pg_sleep: past the gate, which makes it active, too.
func sleeps(t *testing.T, pid uint32) func() bool { return activity(t, pid, "wait_event = 'PgSleep'") }

func activity(t *testing.T, pid uint32, what string) func() bool {
	c := mustConnect(t, postgresAddress(), "")
	t.Cleanup(func() { c.Close() })
	return func() bool {
		r := rows(c.exchange(query(fmt.Sprintf("select %s from pg_stat_activity where pid = %d", what, pid))))
		return len(r) == 1 && r[0] == "t"
	}
}

func TestW08CancelUpstream(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		s := startProxy(t, everything{engine.RouteCandidate}, change)
		c := mustConnect(t, s.Addr().String(), "")
		defer c.Close()
		asleep := sleeps(t, c.pid())
		for _, m := range [][][]byte{g(query("select pg_sleep(30)")), g(parse("", "select pg_sleep(30)"), bind("", "", nil), execute("", 0), syncing())} {
			c.send(m...)
			waitFor(t, "the query", asleep)
			cancel(t, s.Addr().String(), c.key())
			got := without(c.until('Z'), "12T")
			wantTypes(t, got, "EZ")
			wantCode(t, got[0], "57014")
			wantRows(t, c.exchange(query("select 3")), "3")
		}
	})
}

// TestW08CancelExecution stops an execution of our own; the transaction must be as
// if Postgres had run the query.
func TestW08CancelExecution(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		st := f.add(candidateSQL, &fakeStatement{route: engine.RouteCandidate, batch: numbers(7), block: make(chan struct{})})
		f.add("BEGIN;"+candidateSQL, &fakeStatement{route: engine.RouteSplit, prefix: "BEGIN;", last: candidateSQL, lastSt: st})
		s := startProxy(t, f, change)
		ext := g(parse("", candidateSQL), bind("", "", nil), execute("", 0), parse("", "select 9"), bind("", "", nil), execute("", 0), syncing())
		for name, sc := range map[string]struct {
			before string
			m      [][]byte
			want   string
			status string
		}{
			"simple":              {"select 1", g(query(candidateSQL)), "EZ", "I"},
			"simple, in block":    {"begin", g(query(candidateSQL)), "EZ", "E"},
			"with BEGIN":          {"select 1", g(query("BEGIN;" + candidateSQL)), "CEZ", "E"},
			"extended":            {"select 1", ext, "12EZ", "I"},
			"extended, in block":  {"begin", ext, "12EZ", "E"},
			"as a powerless role": {"set role pg_monitor; begin", g(query(candidateSQL)), "EZ", "E"},
		} {
			t.Run(name, func(t *testing.T) {
				c := mustConnect(t, s.Addr().String(), "")
				defer c.Close()
				if sc.before == "set role pg_monitor; begin" {
					c.exchange(query("set role pg_monitor"))
					c.exchange(query("begin"))
				} else {
					c.exchange(query(sc.before))
				}
				n := st.executions.Load()
				c.send(sc.m...)
				waitFor(t, "the execution", func() bool { return st.executions.Load() > n })
				cancel(t, s.Addr().String(), c.key())
				got := c.until('Z')
				wantTypes(t, got, sc.want)
				e, z := got[len(got)-2], got[len(got)-1]
				wantCode(t, e, "57014")
				if m := string(wire.ErrorField([]byte(e.body), 'M')); m != "canceling statement due to user request" || z.body != sc.status {
					t.Errorf("message %q, status %q", m, z.body)
				}
				c.exchange(query("rollback"))
				wantRows(t, c.exchange(query("select 3")), "3")
			})
		}
	})
}

func TestW08CancelWhileIdle(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		s := startProxy(t, everything{engine.RouteCandidate}, change)
		c := mustConnect(t, s.Addr().String(), "")
		defer c.Close()
		for range 20 {
			cancel(t, s.Addr().String(), c.key())
			wantTypes(t, c.exchange(parse("", "select 1"), bind("", "", nil), execute("", 0), syncing()), "12DCZ")
			cancel(t, s.Addr().String(), c.key())
			wantTypes(t, c.exchange(query("select 1")), "TDCZ")
		}
		// A key that is almost right.
		wrong := append([]byte(nil), c.key()...)
		wrong[7] ^= 1
		c.send(query("select pg_sleep(0.2)"))
		cancel(t, s.Addr().String(), wrong)
		wantTypes(t, c.until('Z'), "TDCZ")
	})
}

// TestCancelsHitTheirOwner sends cancels at random moments, into the gate too: only
// the owner's query may end by them, and nothing else may be seen of them.
func TestCancelsHitTheirOwner(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		f.add(candidateSQL, candidate(numbers(7)))
		s := startProxy(t, f, change)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for i := range 4 {
			c := mustConnect(t, s.Addr().String(), "")
			victim := i%2 == 0
			if victim {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for {
						select {
						case <-stop:
							return
						default:
							cancel(t, s.Addr().String(), c.key())
						}
					}
				}()
			}
			wg.Add(1)
			go func() {
				defer wg.Done()
				defer c.Close()
				for n := range 300 {
					var got []message
					if n%2 == 0 {
						got = c.exchange(query(candidateSQL))
					} else {
						got = without(c.exchange(parse("", candidateSQL), bind("", "", nil), execute("", 0), syncing()), "12")
					}
					last := got[len(got)-1]
					ok := rows(got) != nil && rows(got)[0] == "7" || victim && len(got) >= 2 && got[len(got)-2].typ == 'E' &&
						string(wire.ErrorField([]byte(got[len(got)-2].body), 'C')) == "57014"
					if !ok || last.typ != 'Z' || last.body != "I" {
						t.Errorf("victim %v: %s", victim, show(got))
						return
					}
				}
				if i == 0 {
					close(stop)
				}
			}()
		}
		wg.Wait()
	})
}

func TestW09CancelSockets(t *testing.T) {
	pair, _, _ := certificate(t)
	s := startProxy(t, nil, withTLS(pair))
	c := mustConnect(t, s.Addr().String(), "")
	defer c.Close()
	sleep := func() {
		c.send(query("select pg_sleep(30)"))
		waitFor(t, "the query", sleeps(t, c.pid()))
	}
	sleep()
	cancel(t, s.Addr().String(), c.key(), raw('X', "")...) // as Go clients do
	wantTypes(t, without(c.until('Z'), "T"), "EZ")
	sleep()
	conn := dial(t, s)
	ask(t, conn, wire.SSLRequestCode)
	secured := tlsClient(conn)
	secured.Write(wire.AppendStartup(nil, wire.CancelRequestCode, c.key()))
	conn.SetReadDeadline(time.Now().Add(patience))
	if b, _ := io.ReadAll(secured); len(b) != 0 {
		t.Errorf("answer %q", b)
	}
	wantTypes(t, without(c.until('Z'), "T"), "EZ")
}

// TestW09CancelWaitsForTheServer: the client's cancel socket stays open until the
// server has closed its own.
func TestW09CancelWaitsForTheServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan []byte, 1)
	release := make(chan struct{})
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		b := make([]byte, 8+40)
		io.ReadFull(conn, b)
		got <- b
		<-release
		conn.Close()
	}()
	s := startProxy(t, nil, func(c *Config) {
		c.Default.Upstream = upstream.Config{Endpoints: []upstream.Endpoint{{Network: "tcp", Address: l.Addr().String()}}}
	})
	key := append([]byte{0, 0, 0, 9}, make([]byte, 36)...) // as long as protocol 3.2 may have them
	packet := wire.AppendStartup(nil, wire.CancelRequestCode, key)
	conn := dial(t, s)
	conn.Write(packet)
	if b := <-got; string(b) != string(packet) {
		t.Errorf("the server got %q", b)
	}
	conn.SetReadDeadline(time.Now().Add(silence))
	if _, err := conn.Read(make([]byte, 1)); !isTimeout(err) {
		t.Errorf("closed before the server: %v", err)
	}
	close(release)
	ends(t, conn)
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// TestW10CancelBySQL: pg_terminate_backend ends an execution of our own with the
// server's FATAL.
func TestW10TerminateBySQL(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		st := f.add(candidateSQL, &fakeStatement{route: engine.RouteCandidate, batch: numbers(7), block: make(chan struct{})})
		c := mustConnect(t, startProxy(t, f, change).Addr().String(), "")
		defer c.Close()
		other := mustConnect(t, postgresAddress(), "")
		defer other.Close()
		c.send(query(candidateSQL))
		waitFor(t, "the execution", func() bool { return st.executions.Load() == 1 })
		other.exchange(query(fmt.Sprintf("select pg_terminate_backend(%d)", c.pid())))
		got := c.until(endOfConnection)
		wantTypes(t, got, "EEOF")
		wantCode(t, got[0], "57P01")
	})
}

// TestClientsLeave closes clients at every kind of moment; the server's sessions must
// go too, and what they had open.
func TestClientsLeave(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		st := f.add(candidateSQL, &fakeStatement{route: engine.RouteCandidate, batch: numbers(7), block: make(chan struct{})})
		big := f.add("select 1 as accel_big", candidate(numbers(make([]int64, 1_000_000)...)))
		s := startProxy(t, f, change)
		watch := mustConnect(t, postgresAddress(), "")
		defer watch.Close()
		for name, m := range map[string][][]byte{
			"idle":            nil,
			"in transaction":  g(query("begin; create table never (a int)")),
			"half a message":  {query("select 1")[:7]},
			"half a header":   {{'Q', 0}},
			"amid rows":       g(query("select generate_series(1, 3000000)")),
			"while executing": g(query(candidateSQL)),
			"amid our rows":   g(query("select 1 as accel_big")),
			"amid a batch":    g(parse("", candidateSQL), bind("", "", nil), execute("", 0), query("select 1")),
		} {
			for _, reset := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/reset=%v", name, reset), func(t *testing.T) {
					c := mustConnect(t, s.Addr().String(), "")
					executions, bigs := st.executions.Load(), big.executions.Load()
					c.send(m...)
					switch name {
					case "while executing", "amid a batch":
						waitFor(t, "the execution", func() bool { return st.executions.Load() > executions })
					case "amid our rows":
						waitFor(t, "the execution", func() bool { return big.executions.Load() > bigs })
					case "amid rows":
						c.next(patience)
					}
					pid := c.pid()
					if reset {
						c.Conn.(*net.TCPConn).SetLinger(0)
					}
					c.Close()
					if name == "while executing" && !reset {
						// The client may have ended its side only: it has its answer, as from a server.
						st.block <- struct{}{}
					}
					waitFor(t, "the server's session to end", func() bool {
						return len(rows(watch.exchange(query(fmt.Sprintf("select 1 from pg_stat_activity where pid = %d", pid))))) == 0
					})
				})
			}
		}
		wantRows(t, watch.exchange(query("select to_regclass('never') is null")), "t")
		waitFor(t, "all sessions to end", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.open == 0 && len(s.sessions) == 0 })
	})
}

// TestPanicsEndTheirSession: a bug met by one session costs that session only.
func TestPanicsEndTheirSession(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		s := startProxy(t, panicking{newFake()}, change)
		other := mustConnect(t, s.Addr().String(), "")
		defer other.Close()
		c := mustConnect(t, s.Addr().String(), "")
		defer c.Close()
		wantTypes(t, c.exchange(query("select 'panic'")), "EOF")
		wantRows(t, other.exchange(query("select 1")), "1")
	})
}

type panicking struct{ *fake }

func (p panicking) Mentions(sql []byte) bool {
	if strings.Contains(string(sql), "panic") {
		panic("a bug")
	}
	return false
}

// TestBackPressure: neither side may make pgaccel hold what the other does not take.
func TestBackPressure(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		for _, d := range []engine.Decider{nil, newFake()} {
			s := startProxy(t, d, change)
			c := mustConnect(t, s.Addr().String(), "")
			n := 300_000
			c.send(query(fmt.Sprintf("select repeat('x', 100) from generate_series(1, %d)", n)))
			c.next(patience)
			active := isActive(t, c.pid())
			before := heap()
			time.Sleep(silence) // not reading
			if !active() {
				t.Error("the server could send everything")
			}
			if grown := heap() - before; grown > 4<<20 {
				t.Errorf("%d bytes of heap while the client does not read", grown)
			}
			if got := len(rows(c.until('Z'))); got != n && got != n-1 {
				t.Errorf("%d rows", got)
			}
			c.Close()
		}
	})
}

// TestCancelBehindAnswers: a cancel request that comes while pgaccel asks something before
// it relays a statement, and that finds the server idle, is for that statement; one that has
// ended an earlier statement is not.
func TestCancelBehindAnswers(t *testing.T) {
	const viewSQL, slowSQL = "select name from accel", "select slow()"
	view := [][]byte{parse("", viewSQL), bind("", "", nil), execute("", 0), syncing()}
	slow := [][]byte{parse("", slowSQL), bind("", "", nil), execute("", 0), syncing()}
	asked := [][]byte{parse("", candidateSQL), bind("", "", nil), execute("", 0), syncing()}
	for _, c := range []struct {
		name   string
		asked  [][]byte
		denied bool // the session's role may not cancel itself
		want   string
	}{
		{"a Query over the schema", g(query(viewSQL)), false, "E(57014)ZI "},
		{"a Bind over the schema", view, false, "1E(57014)ZI "},
		{"a Query, role denied", g(query(viewSQL)), true, "E(57014)ZI "},
		{"a Bind, role denied", view, true, "1E(57014)ZI "},
		{"a Bind behind a statement that was hit", cat(slow, view), false, "12E(57014)ZI 12DCZI "},
		{"a candidate behind a statement that was hit", cat(slow, asked), false, "12E(57014)ZI 12DCZI "},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fakeOf(candidateSQL, candidate(numbers(1)))
			f.add(viewSQL, viewing("select $1::text as name", 1, "rows"))
			b := newBench(f)
			p := &scripted{status: 'I', statements: map[string]string{}, portals: map[string]string{}}
			p.fails = func(typ byte, sql string) string {
				switch {
				case sql == cancelSQL && c.denied:
					return "42501"
				case sql == cancelSQL, sql == slowSQL && typ == wire.Execute:
					return "57014"
				}
				return ""
			}
			b.feed(t, fromServer, startAnswers, 1<<20)
			asked := false
			got := p.converse(t, b, func([]byte) {
				if !asked {
					asked = true
					if b.s.cancel() {
						t.Error("the server is not asked")
					}
				}
			}, c.asked...)
			if got != c.want {
				t.Errorf("the client got %s, want %s; the server ran %q", got, c.want, p.ran)
			}
			if got := p.converse(t, b, nil, query(candidateSQL)); got != "TDCZI " {
				t.Errorf("afterwards: %s", got)
			}
			if b.s.opaque || b.s.local != nil || b.s.asking != nil || b.s.queue.len() != 0 {
				t.Error("the session is lost, or waits")
			}
			b.s.end()
		})
	}
}
