package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pgaccel/engine"
	"pgaccel/upstream"
	"pgaccel/wire"
)

// wantTerminated reads to the end of a connection, whose last message is FATAL 57P01.
func wantTerminated(t *testing.T, name string, c *rawClient) {
	t.Helper()
	list := c.until(endOfConnection)
	if len(list) < 2 || list[len(list)-2].typ != 'E' || string(wire.ErrorField([]byte(list[len(list)-2].body), 'C')) != "57P01" {
		t.Errorf("%s: the end is %s", name, show(list[max(0, len(list)-3):]))
	}
}

// TestDrain: each session ends once it is at rest, and no sooner; those that do not rest go
// on until the limit.
func TestDrain(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		s, end := startEnding(t, everything{engine.RouteCandidate}, change)
		open := func() *rawClient {
			c := mustConnect(t, s.Addr().String(), "")
			t.Cleanup(func() { c.Close() })
			return c
		}
		resting, inBlock, inBatch, running, copying, half, busy, stuck := open(), open(), open(), open(), open(), open(), open(), open()
		early, err := dialRaw(s.Addr().String()) // it has said nothing yet
		if err != nil {
			t.Fatal(err)
		}
		defer early.Close()
		resting.exchange(query("select 1"))
		inBlock.exchange(query("begin"))
		inBatch.send(parse("", "select 7"), flushing())
		inBatch.until('1')
		running.send(query("select pg_sleep(3)"))
		copying.exchange(query("create temp table c (a int)"))
		copying.send(query("copy c from stdin"))
		copying.until('G')
		whole := query("select 'half'")
		half.send(whole[:9])
		stuck.exchange(query("begin"))
		var stop atomic.Bool
		var statements int
		var loop sync.WaitGroup
		loop.Go(func() {
			for !stop.Load() {
				if list := busy.exchange(query("select 1")); list[len(list)-1].typ != 'Z' {
					t.Errorf("a busy session, after %d statements: %s", statements, show(list))
					return
				}
				statements++
			}
		})
		ctx, cancel := context.WithCancel(context.Background())
		drained := make(chan error, 1)
		go func() { drained <- s.Drain(ctx) }()
		wantTerminated(t, "at rest", resting)
		if c, err := dialRaw(s.Addr().String()); err == nil {
			c.Close()
			t.Error("a connection is accepted while the server is drained")
		}
		if list := running.until('Z'); list[len(list)-1].typ != 'Z' {
			t.Errorf("the end of a statement: %s", show(list))
		}
		wantTerminated(t, "after a statement", running)
		for name, c := range map[string]*rawClient{"a block": inBlock, "a batch": inBatch, "a copy": copying, "half a message": half} {
			if m := c.next(2 * idleInterval); m.typ != nothingCame {
				t.Errorf("%s: %s", name, m)
			}
		}
		late := &rawClient{Conn: early, t: t}
		late.send(startupPacket(wire.Version30, "user", "postgres", "database", "postgres"))
		late.until('Z')
		wantTerminated(t, "one that was in its handshake", late)
		inBlock.exchange(query("commit"))
		inBatch.send(syncing())
		inBatch.until('Z')
		copying.exchange(raw('c', ""))
		half.exchange(whole[9:])
		for name, c := range map[string]*rawClient{"after a block": inBlock, "after a batch": inBatch, "after a copy": copying, "after a message": half} {
			wantTerminated(t, name, c)
		}
		stop.Store(true)
		loop.Wait()
		if statements < 100 {
			t.Errorf("a busy session had %d statements", statements)
		}
		wantTerminated(t, "no longer busy", busy)
		select {
		case err := <-drained:
			t.Errorf("drained with a session in a block: %v", err)
		default:
		}
		cancel()
		if err := <-drained; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if list := stuck.exchange(query("select 1")); list[len(list)-1].typ != 'Z' {
			t.Errorf("after the limit, before the end: %s", show(list))
		}
		end()
		wantTerminated(t, "at the limit", stuck)
	})
}

// TestDrainEmpty: a server without clients is drained at once, one whose last client leaves as
// soon as it has.
func TestDrainEmpty(t *testing.T) {
	s, end := startEnding(t, nil, func(*Config) {})
	c := mustConnect(t, s.Addr().String(), "")
	time.AfterFunc(20*time.Millisecond, func() { c.send(raw('X', "")); c.Close() })
	if err := s.Drain(context.Background()); err != nil {
		t.Error(err)
	}
	end()
}

// TestExchange: a second server takes over the address, TCP or a Unix socket, while clients
// connect, work and leave. None sees an error.
func TestExchange(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("listeners are handed over by abstract Unix sockets, which are Linux'")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for network, address := range map[string]string{"tcp": l.Addr().String(), "unix": filepath.Join(t.TempDir(), "socket")} {
		t.Run(network, func(t *testing.T) {
			reuse := func(c *Config) { c.Listen, c.ReusePort = []string{address}, true }
			old, end := startEnding(t, everything{engine.RouteCandidate}, reuse)
			var stop atomic.Bool
			var sessions atomic.Int64
			var clients sync.WaitGroup
			for range 4 {
				clients.Go(func() {
					for !stop.Load() && !t.Failed() {
						if err := oneSession(network, address); err != nil {
							t.Error(err)
						}
						sessions.Add(1)
					}
				})
			}
			for range 3 { // 1 takes over from 0, 2 from 1, 3 from 2
				next, endNext := startEnding(t, everything{engine.RouteCandidate}, reuse)
				before := sessions.Load()
				waitFor(t, "sessions with both", func() bool { return sessions.Load() > before+20 || t.Failed() })
				if err := old.Drain(t.Context()); err != nil {
					t.Error(err)
				}
				end()
				before = sessions.Load()
				waitFor(t, "sessions with the new one", func() bool { return sessions.Load() > before+20 || t.Failed() })
				old, end = next, endNext
			}
			stop.Store(true)
			clients.Wait()
			t.Logf("%d sessions", sessions.Load())
			end()
			if _, err := net.Dial(network, address); !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.ENOENT) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// oneSession connects, asks and leaves.
func oneSession(network, address string) error {
	conn, err := net.DialTimeout(network, address, patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	c := &rawClient{Conn: conn}
	c.send(startupPacket(wire.Version30, "user", "postgres", "database", "postgres"))
	list := c.until('Z')
	for range 5 {
		if last := list[len(list)-1]; last.typ != 'Z' {
			return fmt.Errorf("%s", show(list))
		}
		list = c.exchange(query("select 1"))
	}
	c.send(raw('X', ""))
	return nil
}

// TestPortInUse: without ReusePort nobody listens beside somebody else.
func TestPortInUse(t *testing.T) {
	s := startProxy(t, nil)
	socket := filepath.Join(t.TempDir(), "socket")
	startProxy(t, nil, func(c *Config) { c.Listen = []string{socket} })
	up, err := upstream.ParseConfig(postgres.URL("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{s.Addr().String(), socket} {
		if _, err := Listen(context.Background(), Config{Listen: []string{address}, Default: &Database{Upstream: up}, Logger: slog.New(slog.DiscardHandler)}); err == nil {
			t.Errorf("%s: no error", address)
		}
	}
}

// TestExchangeThatFails: a process that cannot listen everywhere leaves the Unix socket of the one before.
func TestExchangeThatFails(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	taken := startProxy(t, nil).Addr().String()
	startProxy(t, nil, func(c *Config) { c.Listen, c.ReusePort = []string{socket}, true })
	up, err := upstream.ParseConfig(postgres.URL("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), Config{Listen: []string{socket, taken}, ReusePort: true, Default: &Database{Upstream: up}, Logger: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("no error")
	}
	if err := oneSession("unix", socket); err != nil {
		t.Error(err)
	}
}
