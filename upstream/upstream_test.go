package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
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
			conn, _, err := c.Dial(context.Background())
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
	conn, e, err := c.Dial(context.Background())
	if err != nil || e.Address != here.Address {
		t.Fatalf("%v, %v", e, err)
	}
	conn.Close()
	c.Endpoints = c.Endpoints[:1]
	if _, _, err := c.Dial(context.Background()); err == nil || !strings.Contains(err.Error(), nobody.Address) {
		t.Errorf("error %v does not name the endpoint", err)
	}
	c.Endpoints = nil
	if _, _, err := c.Dial(context.Background()); err == nil {
		t.Error("connected to nothing")
	}
}

func TestDialTimesOut(t *testing.T) {
	release := make(chan struct{})
	e := serve(t, func(c net.Conn) { <-release })
	defer close(release)
	e.TLS = &tls.Config{InsecureSkipVerify: true}
	c := Config{Endpoints: []Endpoint{e}, ConnectTimeout: 50 * time.Millisecond}
	if _, _, err := c.Dial(context.Background()); err == nil {
		t.Error("connected to a server that says nothing")
	}
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
