package proxy

import (
	"net"
	"testing"
	"time"

	"pgaccel/engine"
)

// TestHalfClose: a client that sends no more still gets what it has asked for.
func TestHalfClose(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		for _, d := range []engine.Decider{nil, newFake()} {
			c := mustConnect(t, startProxy(t, d, change).Addr().String(), "")
			c.send(query("select pg_sleep(0.05), 5"), query("select generate_series(1, 100000)"))
			c.Conn.(*net.TCPConn).CloseWrite()
			wantTypes(t, c.until('Z'), "TDCZ")
			got := c.until(endOfConnection)
			if n := len(rows(got)); n != 100000 || got[len(got)-1].typ != endOfConnection {
				t.Errorf("%d rows, then %v", n, got[len(got)-1])
			}
			c.Close()
		}
	})
}

// TestHalfCloseWhileComputing: nor is the answer lost, or what was sent behind it, where the end
// comes while a query executes here, or is about to.
func TestHalfCloseWhileComputing(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		for _, early := range []bool{false, true} {
			f := newFake()
			st := f.add(candidateSQL, candidate(numbers(7)))
			st.block = make(chan struct{})
			c := mustConnect(t, startProxy(t, f, change).Addr().String(), "")
			c.send(query(candidateSQL), query("select 5"), parse("", candidateSQL), bind("", "", nil), execute("", 0), syncing())
			if !early {
				waitFor(t, "the execution", func() bool { return st.executions.Load() == 1 })
			}
			c.Conn.(*net.TCPConn).CloseWrite()
			waitFor(t, "the execution", func() bool { return st.executions.Load() == 1 })
			time.Sleep(20 * time.Millisecond) // so that the end has come, in all likelihood
			close(st.block)
			got := c.until(endOfConnection)
			wantRows(t, got, "7", "5", "7")
			if got[len(got)-1].typ != endOfConnection {
				t.Errorf("the end: %v", got[len(got)-1])
			}
			c.Close()
		}
	})
}
