package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLoopWaits: the loop finds its events in every way to wait for them, and has short
// slices while queries execute.
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
	// slice asks the kernel; one before 6.12 does not tell.
	slice := func() bool {
		attr, err := unix.SchedGetAttr(0, 0)
		if err == nil && attr.Runtime == 0 {
			return l.thread.short
		}
		return err == nil && attr.Runtime == sharedSlice
	}
	ask := func(n int, computing bool) {
		t.Helper()
		for _, one := range []*rawClient{c, d} {
			wantRows(t, one.exchange(query(fmt.Sprintf("select %d", n))), fmt.Sprint(n))
		}
		if !l.post(func() { posted <- l.thread.fixed || l.thread.short == computing && slice() == computing }) || !<-posted {
			t.Errorf("short slices while executions run, %v: not so", computing)
		}
	}
	for _, keeps := range []bool{true, false} {
		if !l.post(func() { l.keeps = keeps; posted <- true }) || !<-posted {
			t.Fatal("the loop has ended")
		}
		for n := range 20 {
			ask(n, false)
			s.executing.Add(1) // as if a query ran
			ask(n, true)
			s.executing.Add(-1)
		}
	}
}

// TestWaitingLoopLetsGo: a loop that waits for events without the runtime's knowledge stops for
// the garbage collector, and blocks in a call that the runtime knows of where nothing comes.
func TestWaitingLoopLetsGo(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(3, runtime.NumCPU())))
	s := startProxy(t, everything{}, func(c *Config) { c.loops = 1 })
	c := mustConnect(t, s.Addr().String(), "")
	defer c.Close()
	s.loopMu.Lock()
	l := s.loops[0]
	s.loopMu.Unlock()
	keeps := make(chan bool, 1)
	if !l.post(func() { keeps <- l.keeps }) || !<-keeps {
		t.Fatal("the loop does not keep its processor")
	}
	buf := make([]byte, 1<<20)
	for n := range 50 {
		wantRows(t, c.exchange(query(fmt.Sprintf("select %d", n))), fmt.Sprint(n))
		runtime.GC()
		runtime.Stack(buf, true)
	}
	waitFor(t, "the loop to block", func() bool {
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "pgaccel/proxy.(*loop).wait") {
				return strings.Contains(g, "[syscall")
			}
		}
		return false
	})
	wantRows(t, c.exchange(query("select 7")), "7")
}

// TestReadsWhatIsThere: epoll tells once that bytes have come; a message is read to its end
// whatever its length is in buffers, and what stands before the end of a connection, too.
func TestReadsWhatIsThere(t *testing.T) {
	s := startProxy(t, everything{}, func(c *Config) { c.loops = 1 })
	c := mustConnect(t, s.Addr().String(), "")
	defer c.Close()
	around := len(query("select length('')"))
	for _, total := range []int{loopBuffer - 1, loopBuffer, loopBuffer + 1, 2 * loopBuffer, 3*loopBuffer - 1, 16 * loopBuffer} {
		n := total - around
		wantRows(t, c.exchange(query("select length('"+strings.Repeat("x", n)+"')")), fmt.Sprint(n))
		wantRows(t, c.exchange(query(fmt.Sprintf("select length(repeat('x', %d))", n))), fmt.Sprint(n))
		answer := c.exchange(query(fmt.Sprintf("select repeat('x', %d)", n)))
		wantRows(t, answer, strings.Repeat("x", n))
	}
	for range 50 {
		last := mustConnect(t, s.Addr().String(), "")
		last.Write(query("select 5"))
		if err := last.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		last.Conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		got, err := io.ReadAll(last.Conn)
		if err != nil || !bytes.Contains(got, []byte("SELECT 1")) {
			t.Fatalf("the answer before the end: %q, %v", got, err)
		}
		last.Close()
	}
}

// TestLoopsLeaveProcessors: where there is no processor but the loops' own, or the runtime
// does not send signals, they do not keep them.
func TestLoopsLeaveProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	t.Setenv("GODEBUG", "")
	if !keepsProcessors(2) || keepsProcessors(3) {
		t.Error("processors are not counted")
	}
	t.Setenv("GODEBUG", "asyncpreemptoff=1")
	if keepsProcessors(1) {
		t.Error("kept without signals")
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
