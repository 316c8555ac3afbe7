package proxy

import (
	"errors"
	"io"
	"net"
	"runtime/debug"
	"sync"

	"pgaccel/upstream"
)

// drive runs a session up to its end.
func (s *Server) drive(sess *session, client, server net.Conn, at upstream.Endpoint) {
	r := &relay{srv: s, s: sess, at: at}
	r.changed.L = &r.mu
	r.side[fromClient].conn, r.side[fromServer].conn = client, server
	r.run()
}

// The sides of a relay.
const (
	fromClient = iota
	fromServer
)

// relay drives a session with two goroutines, one reading each side. It is what TLS
// needs (crypto/tls blocks), and the plain reference for the event loop.
type relay struct {
	srv *Server
	at  upstream.Endpoint

	mu      sync.Mutex
	changed sync.Cond // held bytes were taken, a queue was written, or the end
	s       *session
	side    [2]struct {
		conn  net.Conn
		held  []byte // read from this side, not yet taken by the session
		read  int64  // bytes
		eof   bool
		busy  bool     // somebody writes to this side
		queue [][]byte // to be written to this side by whoever is busy
		size  int      // of queue
	}
	closed bool
	key    string
}

const (
	smallRead = 4 << 10
	largeRead = 32 << 10
	// heldLimit bounds what is read ahead of a session that cannot take it, and the
	// queue of a side that does not read.
	heldLimit = 64 << 10
)

func (r *relay) run() {
	r.srv.track(r)
	defer r.srv.untrack(r)
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		r.pump(fromServer)
	}()
	r.pump(fromClient)
	wg.Wait()
	r.close()
	if r.key != "" {
		r.srv.unregister(r.key, r)
	}
	r.srv.observer.SessionClosed(r.side[fromClient].read, r.side[fromServer].read)
}

// close ends both connections. Both pumps end by that.
func (r *relay) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail()
}

// fail is close with the lock held.
func (r *relay) fail() {
	if r.closed {
		return
	}
	r.closed = true
	r.side[fromClient].conn.Close()
	r.side[fromServer].conn.Close()
	r.changed.Broadcast()
}

// pump reads one side until its end.
func (r *relay) pump(from int) {
	defer func() {
		if p := recover(); p != nil {
			r.srv.log.Error("session panicked", "panic", p, "stack", string(debug.Stack()))
			r.close()
		}
	}()
	side := &r.side[from]
	small := make([]byte, smallRead)
	buf := small
	for {
		n, err := side.conn.Read(buf)
		r.mu.Lock()
		side.read += int64(n)
		if n > 0 {
			r.feed(from, buf[:n])
		}
		if err != nil {
			r.ended(from, err)
			r.mu.Unlock()
			return
		}
		for len(side.held) > heldLimit && !r.closed && r.stuck(from) {
			r.changed.Wait()
		}
		closed := r.closed
		r.mu.Unlock()
		if closed {
			return
		}
		// A connection at rest keeps a small buffer only.
		if n == len(buf) && n < largeRead {
			buf = make([]byte, largeRead)
		} else if n < smallRead {
			buf = small
		}
	}
}

// stuck says that what is held of a side waits for an event other than more bytes.
func (r *relay) stuck(from int) bool { return from == fromClient && r.s.blocked() }

// feed gives the session bytes of a side and writes what comes of it. The lock is
// held, and given up while writing.
func (r *relay) feed(from int, b []byte) {
	side := &r.side[from]
	if len(side.held) > 0 {
		side.held = append(side.held, b...)
		b, side.held = side.held, nil
	}
	var used int
	if from == fromClient {
		used = r.s.client(b)
	} else {
		used = r.s.server(b)
	}
	if used < len(b) {
		side.held = append([]byte(nil), b[used:]...)
	}
	r.flush()
}

// flush writes what the session has put out. The lock is held, and given up while
// writing.
func (r *relay) flush() {
	if r.key == "" && r.s.key != nil {
		r.key = string(r.s.key)
		r.srv.register(r.key, target{r, r.at})
	}
	toServer, toClient := r.s.toServer.parts, r.s.toClient.parts
	r.s.toServer.parts, r.s.toClient.parts = nil, nil
	r.send(fromServer, toServer)
	r.send(fromClient, toClient)
}

// send writes parts to a side, behind what others write to it.
func (r *relay) send(to int, parts [][]byte) {
	side := &r.side[to]
	if len(parts) == 0 || r.closed {
		return
	}
	if side.busy {
		// The parts refer to the caller's buffer, which is read into again.
		for _, p := range parts {
			side.queue = append(side.queue, append([]byte(nil), p...))
			side.size += len(p)
		}
		for side.size > heldLimit && side.busy && !r.closed {
			r.changed.Wait()
		}
		return
	}
	side.busy = true
	for len(parts) > 0 && !r.closed {
		r.mu.Unlock()
		var err error
		if len(parts) == 1 {
			_, err = side.conn.Write(parts[0])
		} else {
			bufs := net.Buffers(parts)
			_, err = bufs.WriteTo(side.conn)
		}
		r.mu.Lock()
		if err != nil {
			r.writeFailed(to)
			break
		}
		parts, side.queue, side.size = side.queue, nil, 0
		r.changed.Broadcast()
	}
	side.busy = false
	r.changed.Broadcast()
}

// writeFailed deals with a side that takes no more. What the server has said before
// it closed must still reach the client: its reader finds the end by itself.
func (r *relay) writeFailed(to int) {
	if to == fromClient {
		r.fail()
	}
}

// ended deals with the end of a side's bytes. The server sees a client's end after
// everything that came before it, and decides what becomes of the session.
func (r *relay) ended(from int, err error) {
	if from == fromServer {
		// Nothing more will come; what is written has been taken by the kernel.
		for r.side[fromClient].busy && !r.closed {
			r.changed.Wait()
		}
		r.fail()
		return
	}
	r.side[fromClient].eof = true
	if !errors.Is(err, io.EOF) {
		r.fail()
		return
	}
	for r.side[fromServer].busy && !r.closed {
		r.changed.Wait()
	}
	if r.closed {
		return
	}
	if half, ok := r.side[fromServer].conn.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	} else {
		r.fail()
	}
}

// cancelExecution implements driver.
func (r *relay) cancelExecution() bool { return false }
