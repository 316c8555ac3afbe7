package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pgaccel/upstream"
	"pgaccel/wire"
)

// TestStartupTimeout: a client that does not get as far as a startup packet is not
// waited for, whatever it has sent.
func TestStartupTimeout(t *testing.T) {
	pair, _, _ := certificate(t)
	s := startProxy(t, nil, withTLS(pair), func(c *Config) { c.startup = 300 * time.Millisecond })
	for name, begin := range map[string]func(net.Conn){
		"nothing":          func(net.Conn) {},
		"half a packet":    func(c net.Conn) { c.Write(plainStartup[:10]) },
		"GSSENCRequest":    func(c net.Conn) { ask(t, c, wire.GSSENCRequestCode) },
		"no TLS handshake": func(c net.Conn) { ask(t, c, wire.SSLRequestCode) },
		"TLS, no startup": func(c net.Conn) {
			ask(t, c, wire.SSLRequestCode)
			if err := tls.Client(c, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}).Handshake(); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, s)
			begin(conn)
			conn.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.Copy(io.Discard, conn); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("still there: %v", err)
			}
		})
	}
	// A session is not bound by it.
	c := mustConnect(t, s.Addr().String(), "")
	defer c.Close()
	time.Sleep(400 * time.Millisecond)
	wantRows(t, c.exchange(query("select 1")), "1")
}

// TestServersTimeouts: the server's authentication_timeout and idle_session_timeout
// reach clients as they do directly.
func TestServersTimeouts(t *testing.T) {
	server, _ := authServer(t)
	address := fmt.Sprintf("127.0.0.1:%d", server.Port)
	admin := mustConnect(t, address, "")
	defer admin.Close()
	admin.exchange(query("alter system set authentication_timeout = '1s'"))
	admin.exchange(query("select pg_reload_conf()"))
	waitFor(t, "the setting", func() bool {
		c := mustConnect(t, address, "")
		defer c.Close()
		return rows(c.exchange(query("show authentication_timeout")))[0] == "1s"
	})
	up, err := upstream.ParseConfig("host=127.0.0.1 user=postgres sslmode=disable port=" + fmt.Sprint(server.Port))
	if err != nil {
		t.Fatal(err)
	}
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		s := startProxy(t, everything{}, change, func(c *Config) { c.Default.Upstream = up })
		for name, f := range map[string]func(string) []message{
			"authentication_timeout": func(address string) []message {
				conn, err := dialRaw(address)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				c := &rawClient{Conn: conn, t: t}
				c.send(startupPacket(wire.Version30, "user", "scramuser", "database", "postgres"))
				return c.until(endOfConnection)
			},
			"idle_session_timeout": func(address string) []message {
				c := mustConnect(t, address, "-c idle_session_timeout=200")
				defer c.Close()
				return c.until(endOfConnection)
			},
		} {
			got, want := show(mask(f(s.Addr().String()))), show(mask(f(address)))
			if got != want || !strings.HasSuffix(got, "EOF\n") || name == "idle_session_timeout" && !strings.Contains(got, "57P05") {
				t.Errorf("%s: through pgaccel:\n%s\ndirect:\n%s", name, got, want)
			}
		}
	})
}

// TestKeepalive: both legs of a session are probed by TCP, so that a peer that has gone
// without a word ends it.
func TestKeepalive(t *testing.T) {
	s := startProxy(t, everything{})
	c := mustConnect(t, s.Addr().String(), "")
	defer c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := 0
	for d := range s.all {
		e, ok := d.(*eventSession)
		if !ok {
			continue
		}
		for i := range e.end {
			seen++
			on, err := unix.GetsockoptInt(e.end[i].fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE)
			idle, err2 := unix.GetsockoptInt(e.end[i].fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
			if err != nil || err2 != nil || on == 0 || idle > 7200 {
				t.Errorf("side %d: on %d, idle %d s, %v, %v", i, on, idle, err, err2)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d sockets seen", seen)
	}
}
