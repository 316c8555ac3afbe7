package proxy

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// TestSettingsAreAskedForOnce: a portal that is read on asks the server for its settings once
// after what may have changed them, and not again, be it for a setting that the server never
// reports or has not reported yet.
func TestSettingsAreAskedForOnce(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		var mu sync.Mutex
		var sent strings.Builder
		pass := func(dst, src net.Conn) {
			io.Copy(dst, src)
			dst.(*net.TCPConn).CloseWrite()
		}
		note := func(dst, src net.Conn) {
			for buf := make([]byte, 4096); ; {
				n, err := src.Read(buf)
				mu.Lock()
				sent.Write(buf[:n])
				mu.Unlock()
				if dst.Write(buf[:n]); err != nil {
					dst.(*net.TCPConn).CloseWrite()
					return
				}
			}
		}
		asked := func() int {
			mu.Lock()
			defer mu.Unlock()
			return strings.Count(sent.String(), writingSettings[0])
		}
		f := newFake()
		f.add(candidateSQL, candidate(numbers(make([]int64, 100)...)))
		c := mustConnect(t, startProxy(t, f, change, forwarding(t, note, pass)).Addr().String(), "")
		defer c.Close()
		c.exchange(query("begin"))
		wantTypes(t, c.exchange(parse("a", candidateSQL), bind("p", "a", nil), execute("p", 1), syncing()), "12DsZ")
		part := execute("p", 1)
		for _, step := range []struct {
			name     string
			messages []byte
			types    string
			asked    int
		}{
			{"nothing has happened", join(part, part, syncing()), "DsDsZ", 0},
			{"a setting that is not reported", query("set extra_float_digits = 3"), "CZ", 0},
			{"the next part", join(part, syncing()), "DsZ", 1},
			{"further parts", join(part, part, syncing()), "DsDsZ", 0},
			{"a setting that is reported later", join(parse("", "set timezone = 'Asia/Tokyo'"), bind("", "", nil), execute("", 0), part, part, syncing()), "12CDsDsSZ", 1},
			{"it has been reported", join(part, syncing()), "DsZ", 1},
			{"and again", join(part, part, syncing()), "DsDsZ", 0},
			{"a part of a statement", join(parse("", "select set_config('extra_float_digits', '2', true) from generate_series(1, 2)"), bind("", "", nil), execute("", 1), syncing()), "12DsZ", 0},
			{"after that", join(part, part, syncing()), "DsDsZ", 1},
			{"a function", raw('F', "\x00\x00\x00\xb1\x00\x01\x00\x00\x00\x02\x00\x00\x00\x012\x00\x00\x00\x013\x00\x00"), "VZ", 0},
			{"after the function", join(part, part, syncing()), "DsDsZ", 1},
		} {
			before := asked()
			c.send(step.messages)
			wantTypes(t, c.until('Z'), step.types)
			if n := asked() - before; n != step.asked {
				t.Errorf("%s: the settings were asked for %d times, want %d", step.name, n, step.asked)
			}
		}
	})
}
