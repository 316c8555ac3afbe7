package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pgaccel/wire"
)

func TestParseConfig(t *testing.T) {
	f := func(url string, want ...string) {
		t.Helper()
		c, err := ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range c.Endpoints {
			s := e.Network + " " + e.Address
			switch {
			case e.TLS == nil:
			case e.TLS.InsecureSkipVerify && e.TLS.VerifyPeerCertificate == nil && e.TLS.VerifyConnection == nil:
				s += " TLS"
			default:
				s += " TLS verified"
			}
			got = append(got, s)
		}
		if strings.Join(got, "; ") != strings.Join(want, "; ") {
			t.Errorf("%s: %v, want %v", url, got, want)
		}
	}
	f("postgres://me@db:5433/x?sslmode=disable", "tcp db:5433")
	f("postgres://me@db/x?sslmode=require", "tcp db:5432 TLS")
	f("postgres://me@db/x?sslmode=prefer", "tcp db:5432 TLS", "tcp db:5432")
	f("postgres://me@db/x?sslmode=allow", "tcp db:5432", "tcp db:5432 TLS")
	f("postgres://me@db/x?sslmode=verify-full", "tcp db:5432 TLS verified")
	f("host=/run/pg port=5444 sslmode=require", "unix /run/pg/.s.PGSQL.5444")
	f("postgres://me@a:1,b:2/x?sslmode=disable", "tcp a:1", "tcp b:2")
	if _, err := ParseConfig("postgres://me@db/x?sslmode=perhaps"); err == nil {
		t.Error("an unknown sslmode was taken")
	}
}

// serve answers one connection.
func serve(t *testing.T, f func(net.Conn)) Endpoint {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return Endpoint{Network: "tcp", Address: l.Addr().String()}
}

func TestTLSIsNotGivenUp(t *testing.T) {
	for name, answer := range map[string]string{"refused": "N", "an error": "E", "closed": "", "plaintext behind S": "Sxxxxxxxxxxxxxxxxxxx"} {
		t.Run(name, func(t *testing.T) {
			e := serve(t, func(c net.Conn) {
				io.ReadFull(c, make([]byte, 8))
				io.WriteString(c, answer)
			})
			e.TLS = &tls.Config{InsecureSkipVerify: true}
			c := Config{Endpoints: []Endpoint{e}, ConnectTimeout: 5 * time.Second}
			conn, _, err := c.Dial(context.Background(), Client{})
			if err == nil {
				conn.Close()
				t.Fatal("connected")
			}
			if name == "refused" && !errors.Is(err, errRefusedTLS) {
				t.Error(err)
			}
		})
	}
}

func TestDialGoesOn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := Endpoint{Network: "tcp", Address: l.Addr().String()}
	l.Close()
	here := serve(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	c := Config{Endpoints: []Endpoint{nobody, here}}
	conn, e, err := c.Dial(context.Background(), Client{})
	if err != nil || e.Address != here.Address {
		t.Fatalf("%v, %v", e, err)
	}
	conn.Close()
	c.Endpoints = c.Endpoints[:1]
	if _, _, err := c.Dial(context.Background(), Client{}); err == nil || !strings.Contains(err.Error(), nobody.Address) {
		t.Errorf("error %v does not name the endpoint", err)
	}
	c.Endpoints = nil
	if _, _, err := c.Dial(context.Background(), Client{}); err == nil {
		t.Error("connected to nothing")
	}
}

func TestDialTimesOut(t *testing.T) {
	release := make(chan struct{})
	e := serve(t, func(c net.Conn) { <-release })
	defer close(release)
	e.TLS = &tls.Config{InsecureSkipVerify: true}
	c := Config{Endpoints: []Endpoint{e}, ConnectTimeout: 50 * time.Millisecond}
	if _, _, err := c.Dial(context.Background(), Client{}); err == nil {
		t.Error("connected to a server that says nothing")
	}
}

// TestEachAddressHasItsTime: where a name has several addresses, one that says nothing does
// not keep Dial from the next, and the endpoint returned, where a cancel request goes to,
// has the address that answered.
func TestEachAddressHasItsTime(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	silent := serve(t, func(net.Conn) { <-release })
	_, port, err := net.SplitHostPort(silent.Address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			io.ReadFull(conn, make([]byte, 8))
			io.WriteString(conn, "N")
			defer conn.Close()
		}
	}()
	defer func(f func(context.Context, string) ([]string, error)) { lookupHost = f }(lookupHost)
	lookupHost = func(_ context.Context, host string) ([]string, error) {
		if host != "db.example" {
			return nil, errors.New("no such host")
		}
		return []string{"127.0.0.1", "127.0.0.2"}, nil
	}
	c, err := ParseConfig("postgres://me@db.example:" + port + "/x?sslmode=prefer")
	if err != nil {
		t.Fatal(err)
	}
	c.ConnectTimeout = 500 * time.Millisecond
	conn, e, err := c.Dial(context.Background(), Client{TLS: true})
	if err != nil || e.Address != "127.0.0.2:"+port {
		t.Fatalf("%v, %v", e, err)
	}
	conn.Close()
	c.Endpoints[0].Address, c.Endpoints[1].Address = "nowhere.example:1", "nowhere.example:1"
	if _, _, err := c.Dial(context.Background(), Client{}); err == nil || err.Error() != "nowhere.example:1: no such host" {
		t.Error(err)
	}
}

// TestSilentAddressIsWaitedForOnce: the address of a name that answered last is tried first,
// as long as it answers; the others follow in their order.
func TestSilentAddressIsWaitedForOnce(t *testing.T) {
	var tried [3]atomic.Int32
	var listeners [3]net.Listener
	port := "0"
	for i := range listeners {
		l, err := net.Listen("tcp", net.JoinHostPort([]string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}[i], port))
		if err != nil {
			t.Fatal(err)
		}
		listeners[i] = l
		_, port, _ = net.SplitHostPort(l.Addr().String())
		done := make(chan struct{})
		t.Cleanup(func() { l.Close(); <-done })
		go func() {
			defer close(done)
			for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
				defer conn.Close()
				if tried[i].Add(1); i > 0 {
					io.WriteString(conn, "N")
				}
			}
		}()
	}
	defer func(f func(context.Context, string) ([]string, error)) { lookupHost = f }(lookupHost)
	lookupHost = func(context.Context, string) ([]string, error) {
		return []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}, nil
	}
	c, err := ParseConfig("postgres://me@db.example:" + port + "/x?sslmode=prefer")
	if err != nil {
		t.Fatal(err)
	}
	c.ConnectTimeout = time.Second
	dial := func(c Config, want string, counts ...int32) {
		t.Helper()
		conn, e, err := c.Dial(context.Background(), Client{TLS: true})
		if err != nil || e.Address != net.JoinHostPort(want, port) {
			t.Fatalf("%v, %v", e, err)
		}
		conn.Close()
		for i, n := range counts {
			if got := tried[i].Load(); got != n {
				t.Errorf("address %d was tried %d times, want %d", i, got, n)
			}
		}
	}
	dial(c, "127.0.0.2", 1, 1, 0)
	dial(c, "127.0.0.2", 1, 2, 0) // each session has a copy of the configuration
	listeners[1].Close()
	dial(c, "127.0.0.3", 2, 2, 1)
	dial(c, "127.0.0.3", 2, 2, 2)
}

// TestSilentHostIsWaitedForOnce: a host of the URL that does not answer is tried behind the
// others until a probe, one at a time, has found that it does. One that refuses keeps its place.
func TestSilentHostIsWaitedForOnce(t *testing.T) {
	type server struct {
		net.Listener
		tried   atomic.Int32
		answers chan struct{} // closed: connections are answered, also those that wait
	}
	var servers [3]*server
	var hosts []string
	ended := make(chan struct{})
	for i := range servers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := &server{Listener: l, answers: make(chan struct{})}
		servers[i] = s
		hosts = append(hosts, l.Addr().String())
		var wg sync.WaitGroup
		t.Cleanup(func() { l.Close(); wg.Wait() })
		wg.Go(func() {
			for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
				s.tried.Add(1)
				wg.Go(func() {
					defer conn.Close()
					select {
					case <-s.answers:
						io.WriteString(conn, "N")
						io.Copy(io.Discard, conn)
					case <-ended:
					}
				})
			}
		})
	}
	t.Cleanup(func() { close(ended) })
	c, err := ParseConfig("postgres://me@" + strings.Join(hosts, ",") + "/x?sslmode=prefer&target_session_attrs=read-write")
	if err != nil {
		t.Fatal(err)
	}
	dial := func(c Config, want int) {
		t.Helper()
		conn, e, err := c.Dial(context.Background(), Client{TLS: true})
		if err != nil || e.Address != hosts[want] {
			t.Fatalf("%v, %v, want host %d", e, err, want)
		}
		conn.Close()
	}
	eventually := func(what string, f func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	c.ConnectTimeout = time.Hour
	ctx, cancel := context.WithCancel(context.Background())
	cancelled := make(chan struct{})
	go func() { defer close(cancelled); c.Dial(ctx, Client{TLS: true}) }()
	eventually("nobody waits", func() bool { return servers[0].tried.Load() == 1 })
	cancel()
	<-cancelled
	if c.silent.contains(hosts[0]) {
		t.Error("a session that goes while it waits says something of the host")
	}
	close(servers[1].answers)
	close(servers[2].answers)
	c.ConnectTimeout = time.Second
	dial(c, 1)
	c.ConnectTimeout = time.Hour // nobody waits from here on; each session has a copy of the configuration
	for range 3 {
		dial(c, 1)
	}
	eventually("no probe", func() bool { return servers[0].tried.Load() == 3 })
	servers[1].Close() // refuses
	dial(c, 2)
	if n := servers[0].tried.Load(); n != 3 {
		t.Errorf("%d attempts, want a session that went, one that waited, and one probe", n)
	}
	close(servers[0].answers)
	eventually("the probe's answer is not heeded", func() bool { return !c.silent.contains(hosts[0]) })
	dial(c, 0)
	// With all of them silent, each is tried still.
	c.silent.set(hosts[0], true)
	c.silent.set(hosts[2], true)
	dial(c, 0)
}

// TestCancelWaits: the request is delivered whole, and the end of the server's
// connection waited for.
func TestCancelWaits(t *testing.T) {
	packet := wire.AppendStartup(nil, wire.CancelRequestCode, make([]byte, 40))
	got := make(chan string, 1)
	closed := false
	e := serve(t, func(c net.Conn) {
		b := make([]byte, len(packet))
		io.ReadFull(c, b)
		time.Sleep(50 * time.Millisecond)
		closed = true
		got <- string(b)
	})
	c := Config{Endpoints: []Endpoint{e}}
	for _, at := range []Endpoint{e, {}} {
		closed = false
		if err := c.Cancel(context.Background(), at, packet); err != nil {
			t.Fatal(err)
		}
		if b := <-got; b != string(packet) || !closed {
			t.Errorf("got %q, closed %v", b, closed)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := c.Cancel(ctx, e, packet); err == nil {
		t.Error("no error though the time was over")
	}
	<-got
}

// TestRefusedTLSGoesOn: the connection on which a server has refused TLS goes on in
// the clear where that is allowed (sslmode=prefer), as with libpq.
func TestRefusedTLSGoesOn(t *testing.T) {
	var accepted atomic.Int32
	e := serve(t, func(c net.Conn) {
		accepted.Add(1)
		io.ReadFull(c, make([]byte, 8))
		io.WriteString(c, "N")
		io.Copy(c, c)
	})
	c, err := ParseConfig("postgres://me@" + e.Address + "/x?sslmode=prefer")
	if err != nil {
		t.Fatal(err)
	}
	conn, at, err := c.Dial(context.Background(), Client{TLS: true})
	if err != nil || at.TLS != nil {
		t.Fatalf("%v, %v", at, err)
	}
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 5)
	if _, err := io.ReadFull(conn, b); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	conn.Close()
	if n := accepted.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestRefusedConnectIsTriedOnce: who refuses the connection is not asked again
// without TLS.
func TestRefusedConnectIsTriedOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	c, err := ParseConfig("postgres://me@" + l.Addr().String() + "/x?sslmode=prefer")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = c.Dial(context.Background(), Client{})
	want := l.Addr().String() + ": connect: connection refused"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	// Of several servers each is named, in one line.
	c.Endpoints = append(c.Endpoints, Endpoint{Network: "unix", Address: "/nonexistent/.s.PGSQL.1"}, c.Endpoints[0])
	_, _, err = c.Dial(context.Background(), Client{})
	if err == nil || err.Error() != want+"; /nonexistent/.s.PGSQL.1: connect: no such file or directory" || !errors.Is(err, syscall.ENOENT) {
		t.Errorf("%v", err)
	}
}
