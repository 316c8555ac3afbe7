package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestHTTPConnectionsEnd: a connection at rest is closed, and so is one with endless
// headers.
func TestHTTPConnectionsEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }), 10*time.Millisecond)
	go s.Serve(l)
	defer s.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	r := bufio.NewReader(conn)
	answer, err := http.ReadResponse(r, nil)
	if err != nil || answer.StatusCode != 200 {
		t.Fatalf("%v, %v", answer, err)
	}
	if body, _ := io.ReadAll(answer.Body); string(body) != "ok" {
		t.Errorf("body %q", body)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("a connection at rest: %v", err)
	}
	if conn, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", strings.Repeat("x", 64<<10))
	if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("64 KiB of headers: %s", answer.Status)
	}
	if httpIdle <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= 0 {
		t.Error("a request or an answer may take for ever")
	}
}
