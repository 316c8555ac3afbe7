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
	r := &twoPumps{srv: s, s: sess, at: at}
	r.changed.L = &r.mu
	r.side[fromClient].conn, r.side[fromServer].conn = client, server
	r.run()
}

// The sides of a session.
const (
	fromClient = iota
	fromServer
)

// twoPumps drives a session with two goroutines, one reading each side. It is what TLS
// needs (crypto/tls blocks), and the plain reference for the event loop.
type twoPumps struct {
	srv *Server
	at  upstream.Endpoint

	mu      sync.Mutex
	changed sync.Cond // held bytes were taken, a queue was written, or the end
	s       *session
	side    [2]struct {
		conn  net.Conn
		held  []byte   // read from this side, not yet taken by the session
		read  int64    // bytes
		busy  bool     // somebody writes to this side
		queue [][]byte // to be written to this side by whoever is busy
		size  int      // of queue
	}
	sender    bool // somebody is sending an answer
	running   sync.WaitGroup
	closed    bool
	idleCheck idleCheck
	key       string
}

const (
	smallRead = 4 << 10
	largeRead = 32 << 10
	// heldLimit bounds what is read ahead of a session that cannot take it, and the
	// queue of a side that does not read.
	heldLimit = 64 << 10
)

func (r *twoPumps) run() {
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
	r.running.Wait()
	if r.key != "" {
		r.srv.unregister(r.key, r)
	}
	r.srv.observer.SessionClosed(r.side[fromClient].read, r.side[fromServer].read)
}

// close ends both connections. Both pumps end by that.
func (r *twoPumps) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail()
}

// terminate implements terminator.
func (r *twoPumps) terminate() {
	// Not in the server's wait group: that may be waited for, and be empty, by now. A session
	// that is not closed has its own count there.
	go func() {
		defer r.recovered()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.closed {
			return
		}
		r.srv.cancelRunning(r.s, r.at)
		r.s.terminate()
		r.settle()
	}()
}

// closeWhenIdle implements idleCloser.
func (r *twoPumps) closeWhenIdle() {
	go func() { // as terminate
		defer r.recovered()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.closed {
			return
		}
		client, server := &r.side[fromClient], &r.side[fromServer]
		rests := r.s.isIdle() && !r.sender && !client.busy && !server.busy && len(client.held)+len(server.held) == 0
		if r.idleCheck.stillIdle(rests, client.read) {
			r.s.terminate()
			r.settle()
		}
	}()
}

// fail is close with the lock held.
func (r *twoPumps) fail() {
	if r.closed {
		return
	}
	r.closed = true
	r.s.end()
	r.side[fromClient].conn.Close()
	r.side[fromServer].conn.Close()
	r.changed.Broadcast()
}

// recovered ends the session, not the process, on a panic.
func (r *twoPumps) recovered() {
	if p := recover(); p != nil {
		r.srv.log.Error("session panicked", "panic", p, "stack", string(debug.Stack()))
		r.close()
	}
}

// pump reads one side until its end.
func (r *twoPumps) pump(from int) {
	defer r.recovered()
	side := &r.side[from]
	small := make([]byte, smallRead)
	buf := small
	for {
		n, err := side.conn.Read(buf)
		if !r.arrived(from, buf[:n], err) {
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

// arrived deals with what one read brought. It reports whether to go on reading.
func (r *twoPumps) arrived(from int, b []byte, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	side := &r.side[from]
	side.read += int64(len(b))
	if r.closed {
		return false // meanwhile: what a session that has ended would take, nobody gives back
	}
	if len(b) > 0 {
		r.feed(from, b)
	}
	if !r.s.blocked() {
		r.changed.Broadcast() // for ended
	}
	if err != nil {
		r.ended(from, err)
		return false
	}
	for !r.closed && r.stuck(from) && len(side.held) > r.s.readAhead() {
		r.changed.Wait()
	}
	return !r.closed
}

// stuck says that what is held of a side waits for an event other than more bytes.
func (r *twoPumps) stuck(from int) bool { return from == fromClient && r.s.blocked() }

// feed gives the session bytes of a side and deals with what comes of it. The lock
// is held, and given up while writing.
func (r *twoPumps) feed(from int, b []byte) {
	side := &r.side[from]
	held := len(side.held) > 0
	if held {
		side.held = append(side.held, b...)
		b, side.held = side.held, nil
	}
	var used int
	if from == fromClient {
		used = r.s.client(b)
	} else {
		used = r.s.server(b)
	}
	switch {
	case used == len(b):
	case held && used == 0:
		side.held = b
	default:
		side.held = append([]byte(nil), b[used:]...)
	}
	r.settle()
}

// settle does what the session wants done until it waits for bytes. The lock is
// held, and given up while writing.
func (r *twoPumps) settle() {
	for !r.closed {
		// Before the gate is sent: its answer may be here, and dealt with, when flush returns.
		if a := r.s.takeSpeculation(); a != nil {
			r.srv.executing.Add(1)
			r.running.Go(func() {
				defer r.srv.executing.Add(-1)
				a.Run()
			})
		}
		r.flush()
		if r.closed {
			return // meanwhile: nothing is begun for a session that has ended
		}
		if r.s.toldTerminated {
			for r.side[fromClient].busy && !r.closed {
				r.changed.Wait()
			}
			r.fail()
			return
		}
		if r.s.broken {
			r.srv.log.Error("own messages in a stream that cannot be followed, closing the session")
			r.s.ends(endBroken)
			r.fail()
			return
		}
		if p := r.s.takePlanning(); p != nil {
			p.planned(p.run()) // nobody else waits for it
		}
		r.srv.compute(r.s.takeChecks())
		if x := r.s.takeExecution(); x != nil {
			r.running.Add(1)
			r.srv.executing.Add(1)
			go r.execute(x)
		}
		if r.s.sending() {
			if r.sender {
				return // another goroutine is at it
			}
			r.sender = true
			buf := make([]byte, 0, moreBytes+moreBytes/4)
			for r.s.sending() && !r.closed {
				buf = r.s.more(buf[:0])
				r.s.toClient.add(buf)
				r.flush()
				r.s.written()
			}
			r.sender = false
			continue
		}
		held := r.side[fromClient].held
		if len(held) == 0 || r.s.blocked() {
			return
		}
		used := r.s.client(held)
		if used == 0 {
			if r.s.blocked() { // something was asked before the message
				continue
			}
			return
		}
		r.side[fromClient].held = nil
		if used < len(held) {
			r.side[fromClient].held = append([]byte(nil), held[used:]...)
		}
		r.changed.Broadcast()
	}
}

// execute runs an execution and gives the session its outcome.
func (r *twoPumps) execute(x *execution) {
	defer r.running.Done()
	defer r.srv.executing.Add(-1)
	defer r.recovered()
	batch, err := x.run()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.executed(x, batch, err)
	r.settle()
}

// flush writes what the session has put out. The lock is held, and given up while
// writing. What goes to one side keeps its order, because whoever finds a side busy
// leaves copies to the one who is at it.
func (r *twoPumps) flush() {
	if r.key == "" && r.s.key != nil {
		r.key = string(r.s.key)
		r.srv.register(r.key, target{r, r.at, r.s.database, r.s.info, r.side[fromClient].conn.RemoteAddr()}, r.s.unasked)
		r.s.log.authorized(r.s)
	}
	var parts [2][][]byte
	parts[fromClient], parts[fromServer] = r.s.toClient.parts, r.s.toServer.parts
	r.s.toServer.parts, r.s.toClient.parts = nil, nil
	var mine [2]bool
	for to := range parts {
		side := &r.side[to]
		if len(parts[to]) == 0 || r.closed {
			continue
		}
		if mine[to] = !side.busy; mine[to] {
			side.busy = true
			continue
		}
		// The parts refer to the caller's buffer, which is read into again.
		for _, p := range parts[to] {
			side.queue = append(side.queue, append([]byte(nil), p...))
			side.size += len(p)
		}
	}
	for to := range parts {
		if mine[to] {
			r.write(to, parts[to])
		}
	}
	for to := range parts {
		for len(parts[to]) > 0 && !mine[to] && r.side[to].size > heldLimit && r.side[to].busy && !r.closed {
			r.changed.Wait()
		}
	}
}

// write writes parts to a side that the caller has made busy, and what others leave
// there meanwhile.
func (r *twoPumps) write(to int, parts [][]byte) {
	side := &r.side[to]
	for len(parts) > 0 && !r.closed {
		if err := r.unlocked(side.conn, parts); err != nil {
			r.writeFailed(to)
			break
		}
		parts, side.queue, side.size = side.queue, nil, 0
		r.changed.Broadcast()
	}
	side.busy = false
	r.changed.Broadcast()
}

// unlocked writes with the lock given up.
func (r *twoPumps) unlocked(conn net.Conn, parts [][]byte) error {
	r.mu.Unlock()
	defer r.mu.Lock()
	if len(parts) == 1 {
		_, err := conn.Write(parts[0])
		return err
	}
	bufs := net.Buffers(parts)
	_, err := bufs.WriteTo(conn)
	return err
}

// writeFailed deals with a side that takes no more. What the server has said before
// it closed must still reach the client: its reader finds the end by itself.
func (r *twoPumps) writeFailed(to int) {
	if to == fromClient {
		r.s.ends(endClient)
		r.fail()
	}
}

// ended deals with the end of a side's bytes. The server sees a client's end after
// everything that came before it, and decides what becomes of the session. A client that sends no
// more may still read: it has the answers to what it has sent.
func (r *twoPumps) ended(from int, err error) {
	if from == fromServer {
		r.s.ends(endServer)
		// Nothing more will come; what is written has been taken by the kernel.
		for r.side[fromClient].busy && !r.closed {
			r.changed.Wait()
		}
		r.fail()
		return
	}
	r.s.ends(endClient)
	if !errors.Is(err, io.EOF) {
		r.fail()
		return
	}
	for (r.side[fromServer].busy || r.s.blocked()) && !r.closed {
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
func (r *twoPumps) cancelExecution() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.s.cancel()
}
