package console

import (
	"net/http/httptest"
	"testing"
	"time"
)

// TestLimiter: each address has failuresMax attempts.
func TestLimiter(t *testing.T) {
	l := newLimiter()
	for i := range failuresMax {
		if !l.take("a") {
			t.Fatalf("attempt %d is refused", i)
		}
	}
	if l.take("a") || !l.take("b") {
		t.Error("one address does not have failuresMax attempts")
	}
	l.giveBack("a")
	if !l.take("a") || l.take("a") {
		t.Error("an attempt that was given back counts, or more than one")
	}
}

// TestSource: one machine's addresses of IPv6 are one source, IPv4's are one each.
func TestSource(t *testing.T) {
	for from, want := range map[string]string{"192.0.2.7:80": "192.0.2.7", "[::ffff:192.0.2.7]:80": "192.0.2.7", "[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64", "[fe80::1%eth0]:80": "fe80::/64", "@": ""} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = from
		if got := source(r); got != want {
			t.Errorf("%s: %q, want %q", from, got, want)
		}
	}
}

// TestExpired: a login ends when nothing has asked by it for a while, and after its longest time whatever asks.
func TestExpired(t *testing.T) {
	began := time.Unix(1e9, 0)
	for _, c := range []struct {
		used, now time.Duration
		want      bool
	}{{0, 0, false}, {0, sessionIdle, false}, {0, sessionIdle + 1, true}, {sessionLife, sessionLife, false}, {sessionLife, sessionLife + 1, true}} {
		s := session{began: began, used: began.Add(c.used)}
		if got := s.expired(began.Add(c.now)); got != c.want {
			t.Errorf("used after %v, expired after %v: %v", c.used, c.now, got)
		}
	}
}
