package replica

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// relay stands between pgaccel and a server: it can lead to another server, cut the
// connections, and hold up what the server says.
type relay struct {
	listener net.Listener
	port     int
	target   atomic.Int64

	mu    sync.Mutex
	conns map[net.Conn]bool
	flow  sync.RWMutex // held while nothing may pass
}

func newRelay(t testing.TB, port int) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, port: l.Addr().(*net.TCPAddr).Port, conns: map[net.Conn]bool{}}
	r.to(port)
	go r.serve()
	t.Cleanup(func() { l.Close(); r.cut() })
	return r
}

func (r *relay) url() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", r.port)
}

func (r *relay) to(port int) { r.target.Store(int64(port)) }

func (r *relay) serve() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", r.target.Load()))
		if err != nil {
			c.Close()
			continue
		}
		r.mu.Lock()
		r.conns[c], r.conns[up] = true, true
		r.mu.Unlock()
		pass := func(to, from net.Conn, held bool) {
			b := make([]byte, 32<<10)
			for {
				n, err := from.Read(b)
				if held {
					r.flow.RLock()
				}
				if n > 0 {
					if _, werr := to.Write(b[:n]); werr != nil {
						err = io.EOF
					}
				}
				if held {
					r.flow.RUnlock()
				}
				if err != nil {
					break
				}
			}
			to.Close()
			from.Close()
		}
		go pass(up, c, false)
		go pass(c, up, true)
	}
}

// cut closes all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		c.Close()
	}
	clear(r.conns)
}

func (r *relay) stall(on bool) {
	if on {
		r.flow.Lock()
	} else {
		r.flow.Unlock()
	}
}
