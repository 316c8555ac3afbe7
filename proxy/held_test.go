package proxy

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgaccel/upstream"
	"pgaccel/wire"
)

// mute is a server that takes startup packets and whatever follows, and never answers more
// than first.
func mute(t *testing.T, first []byte) upstream.Endpoint {
	return greeting(t, func(conn net.Conn, _ int) { conn.Write(first) })
}

// greeting is a server that greets each connection, the first is 0, and then says nothing; it
// costs no goroutine a connection.
func greeting(t *testing.T, greet func(conn net.Conn, n int)) upstream.Endpoint {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			greet(conn, n)
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return upstream.Endpoint{Network: "tcp", Address: l.Addr().String()}
}

// flood has n clients each begin a message of size bytes and send as much of it as
// pgaccel takes, and returns the growth of the heap in bytes once nothing moves.
func flood(t *testing.T, s *Server, n, size int, startup []byte, begin func(c *rawClient)) int64 {
	t.Helper()
	before := heap()
	body := make([]byte, size)
	for i := range body {
		body[i] = ' '
	}
	clients := make([]*rawClient, n)
	for i := range clients {
		conn, err := dialRaw(s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		c := &rawClient{Conn: conn, t: t}
		c.send(startup)
		begin(c)
		clients[i] = c
	}
	var wrote atomic.Int64
	for _, c := range clients {
		go func() {
			for rest := body; len(rest) > 0; {
				n, err := c.Write(rest[:min(len(rest), 16<<10)])
				wrote.Add(int64(n))
				if rest = rest[n:]; err != nil {
					return
				}
			}
		}()
	}
	// The kernel takes some of it, too: what has come here is all there is once nothing
	// has moved for a while. On a machine too busy for that the test sees less.
	for last, same := int64(-1), 0; same < 20; {
		time.Sleep(50 * time.Millisecond)
		now := wrote.Load()
		if same++; now != last {
			last, same = now, 0
		}
	}
	return heap() - before - int64(size)
}

// TestHeldBeforeAuthentication: a client that has not proved who it is has at most one
// read's bytes here, whatever it sends.
func TestHeldBeforeAuthentication(t *testing.T) {
	const n, size = 100, 900 << 10
	for name, first := range map[string][]byte{
		"no answer":             nil,
		"asked for a password":  raw('R', "\x00\x00\x00\x03"),
		"asked, then answered":  raw('R', "\x00\x00\x00\x0a"+"SCRAM-SHA-256\x00\x00"),
		"an answer in one part": raw('R', "\x00\x00\x00\x05salt")[:6],
	} {
		t.Run(name, func(t *testing.T) {
			forEachModel(t, func(t *testing.T, change func(*Config)) {
				at := mute(t, first)
				s := startProxy(t, newFake(), change, func(c *Config) { c.Default.Upstream = upstream.Config{Endpoints: []upstream.Endpoint{at}} })
				got := flood(t, s, n, size-1000, plainStartup, func(c *rawClient) {
					if name == "asked, then answered" {
						c.until('R')
						c.send(raw('p', "hello"))
					}
					c.send(raw('Q', strings.Repeat(" ", size))[:wire.HeaderLen])
				})
				t.Logf("%d KiB a client", got/n>>10)
				if got/n > 100<<10 {
					t.Errorf("%d bytes held for each of %d clients", got/n, n)
				}
			})
		})
	}
}

// TestHeldOfMessages: messages that have come in part take no more together than the
// budget, and what does not fit is answered all the same.
func TestHeldOfMessages(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		const n, size, limit = 60, 900 << 10, 4 << 20
		s := startProxy(t, everything{}, change, func(c *Config) { c.MessageMemory = limit })
		got := flood(t, s, n, size-wire.HeaderLen-1000, plainStartup, func(c *rawClient) {
			c.until('Z')
			c.send(query("select '" + strings.Repeat(" ", size))[:1000])
		})
		used := s.held.used.Load()
		t.Logf("%d KiB held, %d KiB reserved", got>>10, used>>10)
		if got > limit+n*150<<10 || used > limit || used == 0 {
			t.Errorf("%d bytes held, %d reserved of %d", got, used, limit)
		}
	})
	t.Run("answers", func(t *testing.T) {
		forEachModel(t, func(t *testing.T, change func(*Config)) {
			s := startProxy(t, everything{}, change, func(c *Config) { c.MessageMemory = 1 })
			c := mustConnect(t, s.Addr().String(), "")
			defer c.Close()
			long := strings.Repeat("x", 100<<10)
			wantRows(t, c.exchange(query("select length('"+long+"')")), fmt.Sprint(len(long)))
			wantRows(t, c.exchange(parse("s", "select length($1)"), bind("", "s", []string{long}), execute("", 0), syncing()), fmt.Sprint(len(long)))
			wantRows(t, c.exchange(query("select 1")), "1")
			if n := s.held.used.Load(); n != 0 {
				t.Errorf("%d bytes reserved at rest", n)
			}
		})
	})
	t.Run("given back", func(t *testing.T) {
		forEachModel(t, func(t *testing.T, change func(*Config)) {
			s := startProxy(t, everything{}, change)
			c := mustConnect(t, s.Addr().String(), "")
			c.send(query("select '" + strings.Repeat("x", 500<<10))[:100])
			waitFor(t, "a reservation", func() bool { return s.held.used.Load() > 0 })
			c.Close()
			waitFor(t, "the end of it", func() bool { return s.held.used.Load() == 0 })
		})
	})
}

// TestViolationsBeforeAuthentication: what Postgres does with messages that no client
// may send before it is let in happens here, too.
func TestViolationsBeforeAuthentication(t *testing.T) {
	s, _ := authServer(t)
	up, err := upstream.ParseConfig(fmt.Sprintf("host=127.0.0.1 port=%d user=postgres sslmode=disable", s.Port))
	if err != nil {
		t.Fatal(err)
	}
	direct := fmt.Sprintf("127.0.0.1:%d", s.Port)
	for name, send := range map[string][]byte{
		"a query":                query("select 1"),
		"a long query":           query(strings.Repeat(" ", 200<<10)),
		"the longest password":   raw('p', strings.Repeat("x", 65535-4-1)+"\x00"),
		"a password too long":    raw('p', strings.Repeat("x", 65535-4)+"\x00"),
		"a much longer one":      raw('p', strings.Repeat("x", 5<<20)+"\x00"),
		"a password, then query": append(raw('p', "wrong\x00"), query("select 1")...),
		"terminate":              raw('X', ""),
	} {
		t.Run(name, func(t *testing.T) {
			forEachModel(t, func(t *testing.T, change func(*Config)) {
				p := startProxy(t, everything{}, change, func(c *Config) { c.Default.Upstream = up })
				var answers [2]string
				for i, address := range []string{p.Addr().String(), direct} {
					conn, err := dialRaw(address)
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
					c := &rawClient{Conn: conn, t: t}
					c.send(startupPacket(wire.Version30, "user", "md5user", "database", "postgres"))
					if m := c.next(patience); m.typ != 'R' {
						t.Fatalf("answer %v", m)
					}
					go c.send(send)
					answers[i] = show(mask(c.until(endOfConnection)))
				}
				if answers[0] != answers[1] {
					t.Errorf("through pgaccel:\n%s\ndirect:\n%s", answers[0], answers[1])
				}
			})
		})
	}
}
