package proxy

import (
	"fmt"
	"testing"
)

// TestLoopWaits: the loop finds its events in both ways to wait for them, and what
// chooses between them is back at nothing after executions.
func TestLoopWaits(t *testing.T) {
	s := startProxy(t, everything{}, func(c *Config) { c.loops = 1 })
	c, d := mustConnect(t, s.Addr().String(), ""), mustConnect(t, s.Addr().String(), "")
	defer c.Close()
	defer d.Close()
	waitFor(t, "what is under way to end", func() bool { return s.executing.Load() == 0 })
	s.loopMu.Lock()
	l := s.loops[0]
	s.loopMu.Unlock()
	posted := make(chan bool, 1)
	ask := func(n int) {
		t.Helper()
		for _, one := range []*rawClient{c, d} {
			wantRows(t, one.exchange(query(fmt.Sprintf("select %d", n))), fmt.Sprint(n))
		}
		if !l.post(func() { posted <- l.rest != nil }) || !<-posted {
			t.Error("the loop's epoll is not in the runtime's poller")
		}
	}
	for n := range 20 {
		ask(n)
		s.executing.Add(1) // as if a query ran
		ask(n)
		s.executing.Add(-1)
	}
}

// TestExecutionsAreCounted: whatever executes here is over when its client has the
// answer or has gone.
func TestExecutionsAreCounted(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		s := startProxy(t, newFake(), change, func(c *Config) { c.Shadow = 0.5 })
		c := mustConnect(t, s.Addr().String(), "")
		defer c.Close()
		for range 20 {
			c.exchange(query("select region, sum(amount) from sales group by region"))
		}
		waitFor(t, "executions to end", func() bool { return s.executing.Load() == 0 })
	})
}
