package bench

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestQueued has a client send what nobody reads.
func TestQueued(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := c.Write(make([]byte, 1234)); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for range 100 {
		lines = queued(l.Addr().String())
		if len(lines) == 2 && slices.ContainsFunc(lines, func(s string) bool { return strings.HasSuffix(s, ": 0 bytes to be sent, 1234 to be read") }) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%q", lines)
}
