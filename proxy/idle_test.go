package proxy

import (
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"pgaccel/upstream"
	"pgaccel/wire"
)

// idleServer lets everybody in and then says nothing; it costs no goroutine a
// connection, so that what a test measures is pgaccel's.
func idleServer(t *testing.T) upstream.Endpoint {
	return greeting(t, func(conn net.Conn, n int) {
		head := make([]byte, 8)
		io.ReadFull(conn, head)
		if size, err := wire.StartupLength(head); err == nil {
			io.ReadFull(conn, make([]byte, size-8))
		}
		key := "\x00\x00\x00\x00" + string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
		conn.Write(join(raw('R', "\x00\x00\x00\x00"), raw('S', "client_encoding\x00UTF8\x00"), raw('S', "DateStyle\x00ISO, MDY\x00"),
			raw('S', "TimeZone\x00UTC\x00"), raw('K', key), raw('Z', "I")))
	})
}

// TestManyIdleConnections opens 2,000 sessions. The bound on memory includes the
// test's own clients and server, which are in the same process.
func TestManyIdleConnections(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		at := idleServer(t)
		s := startProxy(t, newFake(), change, func(c *Config) { c.Default.Upstream = upstream.Config{Endpoints: []upstream.Endpoint{at}} })
		const n = 2000
		before, goroutines, rss := inUse(), runtime.NumGoroutine(), residentBytes(t)
		clients := make([]net.Conn, n)
		for i := range clients {
			c := mustConnect(t, s.Addr().String(), "")
			clients[i] = c.Conn
			if i%100 == 0 {
				runtime.GC()
			}
		}
		waitFor(t, "the handshakes to end", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.sessions) == n })
		each := (inUse() - before) / n
		t.Logf("%d bytes of heap and stacks a connection, %d goroutines, %d bytes resident a connection", each, runtime.NumGoroutine()-goroutines, (residentBytes(t)-rss)/n)
		if each > 50<<10 {
			t.Errorf("%d bytes a connection", each)
		}
		for _, c := range clients {
			c.Close()
		}
	})
}

func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func residentBytes(t *testing.T) int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
