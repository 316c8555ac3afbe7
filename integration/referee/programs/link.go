package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// linkFault is what happens to bytes on a link.
type linkFault struct {
	delay time.Duration // added to every read
	rate  int           // bytes a second, 0 for no limit
	hold  bool          // nothing passes; connections stay open
}

// link is a TCP relay between pgaccel and the server. It can delay, throttle, hold
// back and cut what passes, apart for replication connections and all others. It
// survives restarts of the server, whose port may change.
type link struct {
	listener net.Listener
	target   func() string

	mu     sync.Mutex
	rand   *rand.Rand
	closed bool
	pipes  map[*pipe]bool
	state  map[bool]linkFault // by pipe.stream
	change chan struct{}      // closed when state changes
}

// pipe is one connection on both sides of the link.
type pipe struct {
	near, far net.Conn
	stream    bool // replication
	cutAfter  int  // bytes from the server until it breaks, -1 for never
}

func newLink(target func() string, seed uint64) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener: listener, target: target, rand: rand.New(rand.NewPCG(seed, 77)), pipes: map[*pipe]bool{},
		state: map[bool]linkFault{}, change: make(chan struct{})}
	go l.serve()
	return l, nil
}

func (l *link) port() int { return l.listener.Addr().(*net.TCPAddr).Port }

func (l *link) close() {
	l.listener.Close()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cut(func(*pipe) bool { return true }, false)
}

func (l *link) serve() {
	for {
		c, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.open(c)
	}
}

// open relays a new connection after a look at its first message, which says
// whether it is for replication.
func (l *link) open(near net.Conn) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(near, head); err != nil {
		near.Close()
		return
	}
	size := binary.BigEndian.Uint32(head)
	if size < 8 || size > 10000 {
		near.Close()
		return
	}
	first := append(head, make([]byte, size-4)...)
	if _, err := io.ReadFull(near, first[4:]); err != nil {
		near.Close()
		return
	}
	far, err := net.Dial("tcp", l.target())
	if err != nil {
		near.Close()
		return
	}
	p := &pipe{near: near, far: far, stream: bytes.Contains(first, []byte("\x00replication\x00")), cutAfter: -1}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		near.Close()
		far.Close()
		return
	}
	l.pipes[p] = true
	l.mu.Unlock()
	if _, err := far.Write(first); err != nil {
		l.drop(p)
		return
	}
	go l.pump(p, near, far, false)
	l.pump(p, far, near, true)
}

// pump relays one direction until an end is closed, then closes both.
func (l *link) pump(p *pipe, from, to net.Conn, fromServer bool) {
	defer l.drop(p)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			rest := buf[:n]
			if !l.wait(p, n) {
				return
			}
			if fromServer {
				rest = l.clipped(p, rest)
			}
			if _, err := to.Write(rest); err != nil || len(rest) < n {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// clipped returns the part of b that still passes.
func (l *link) clipped(p *pipe, b []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.cutAfter < 0 {
		return b
	}
	if p.cutAfter < len(b) {
		return b[:p.cutAfter]
	}
	p.cutAfter -= len(b)
	return b
}

// wait holds bytes back as its fault says; false means that the pipe is gone.
func (l *link) wait(p *pipe, n int) bool {
	for {
		l.mu.Lock()
		state, change, alive := l.state[p.stream], l.change, l.pipes[p]
		l.mu.Unlock()
		if !alive {
			return false
		}
		if !state.hold {
			if state.delay > 0 {
				time.Sleep(state.delay)
			}
			if state.rate > 0 {
				time.Sleep(time.Duration(n) * time.Second / time.Duration(state.rate))
			}
			return true
		}
		<-change
	}
}

// set changes the fault of replication connections or for all others.
func (l *link) set(stream bool, w linkFault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state[stream] = w
	close(l.change)
	l.change = make(chan struct{})
}

// heal ends all faults.
func (l *link) heal() {
	l.set(true, linkFault{})
	l.set(false, linkFault{})
}

// cut breaks the connections that match: at once, or in the middle of what the
// server sends next.
func (l *link) cut(match func(*pipe) bool, within bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for p := range l.pipes {
		if !match(p) {
			continue
		}
		n++
		if within {
			p.cutAfter = l.rand.IntN(300)
			continue
		}
		delete(l.pipes, p)
		if tcp, ok := p.near.(*net.TCPConn); ok && l.rand.IntN(2) == 0 {
			tcp.SetLinger(0) // reset instead of an orderly end
		}
		p.near.Close()
		p.far.Close()
	}
	close(l.change) // those held back see that they are gone
	l.change = make(chan struct{})
	return n
}

func (l *link) drop(p *pipe) {
	l.mu.Lock()
	delete(l.pipes, p)
	l.mu.Unlock()
	p.near.Close()
	p.far.Close()
}
