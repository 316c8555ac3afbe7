package proxy

import (
	"errors"
	"net"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"

	"pgaccel/upstream"
)

// endpoint is one socket of a session.
type endpoint struct {
	fd      int
	mask    uint32 // what epoll waits for
	in      bool   // registered with epoll
	events  *eventSession
	side    int
	held    []byte // read from it, not yet taken by the session
	pending []byte // to be written to it
	again   bool   // what has been read is not all that is there
	eof     bool   // it will send no more
	broken  bool   // it takes no more
	read    int64  // bytes
}

// eventSession is a session on a loop.
type eventSession struct {
	loop      *loop
	srv       *Server
	s         *session
	at        upstream.Endpoint
	client    net.Addr
	end       [2]endpoint
	key       string
	shut      bool // the server has been told that the client sends no more
	queued    bool // in the loop's line of sessions that send answers
	closed    bool
	idleCheck idleCheck
	onEnd     func()
}

// driveEvents hands a session to a loop. It reports false where that cannot be, and
// has touched nothing then.
func (s *Server) driveEvents(sess *session, client, server net.Conn, at upstream.Endpoint, ended func()) bool {
	if s.cfg.goroutines {
		return false
	}
	l := s.nextLoop()
	if l == nil {
		return false
	}
	cfd, err := takeDescriptor(client)
	if err != nil {
		return false
	}
	sfd, err := takeDescriptor(server)
	if err != nil {
		unix.Close(cfd)
		return false
	}
	e := &eventSession{loop: l, srv: s, s: sess, at: at, client: client.RemoteAddr()}
	e.end[fromClient] = endpoint{fd: cfd, events: e, side: fromClient}
	e.end[fromServer] = endpoint{fd: sfd, events: e, side: fromServer}
	if !l.post(func() { e.begin(ended) }) {
		unix.Close(cfd)
		unix.Close(sfd)
		return false
	}
	client.Close()
	server.Close()
	return true
}

// takeDescriptor duplicates a connection's descriptor, so that Go's own poller loses
// sight of it once the connection is closed.
func takeDescriptor(conn net.Conn) (fd int, err error) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return 0, errors.New("no descriptor")
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return 0, err
	}
	fd = -1
	cerr := rc.Control(func(orig uintptr) { fd, err = unix.FcntlInt(orig, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(err, cerr)
}

// begin runs on the loop.
func (e *eventSession) begin(ended func()) {
	e.onEnd = ended
	for i := range e.end {
		end := &e.end[i]
		for len(e.loop.ends) <= end.fd {
			e.loop.ends = append(e.loop.ends, nil)
		}
		e.loop.ends[end.fd] = end
	}
	e.srv.track(e)
	e.arm()
}

// close implements closer.
func (e *eventSession) close() { e.loop.post(e.fail) }

// terminate implements terminator.
func (e *eventSession) terminate() {
	e.loop.post(func() {
		if e.closed {
			return
		}
		e.guarded(func() {
			e.srv.cancelRunning(e.s, e.at)
			e.s.terminate()
			e.settle()
		})
	})
}

// closeWhenIdle implements idleCloser.
func (e *eventSession) closeWhenIdle() {
	e.loop.post(func() {
		if e.closed {
			return
		}
		e.guarded(func() {
			client, server := &e.end[fromClient], &e.end[fromServer]
			rests := e.s.isIdle() && len(client.held)+len(client.pending)+len(server.held)+len(server.pending) == 0
			if e.idleCheck.stillIdle(rests, client.read) {
				e.s.terminate()
				e.settle()
			}
		})
	})
}

// part ends the session once the client has taken the last word. Bytes of its that
// nobody has read would have the kernel reset the connection, and the word be lost.
func (e *eventSession) part() {
	for range partReads {
		if n, errno := recv(e.end[fromClient].fd, e.loop.buf); n == 0 || errno != 0 {
			break
		}
	}
	e.fail()
}

// partReads bounds what is read of a client that is told to leave, in loopBuffer.
const partReads = 64

// fail ends the session. The sockets close with what the kernel has taken.
func (e *eventSession) fail() {
	if e.closed {
		return
	}
	e.closed = true
	e.s.end()
	for i := range e.end {
		end := &e.end[i]
		e.loop.ends[end.fd] = nil
		unix.Close(end.fd) // leaves epoll with it
		end.held, end.pending = nil, nil
	}
	if e.key != "" {
		e.srv.unregister(e.key, e)
	}
	e.srv.untrack(e)
	e.srv.observer.SessionClosed(e.end[fromClient].read, e.end[fromServer].read)
	e.onEnd()
}

// cancelExecution implements driver.
func (e *eventSession) cancelExecution() bool {
	answer := make(chan bool, 1)
	if !e.loop.post(func() {
		ok := !e.closed && e.s.cancel()
		answer <- ok
		if ok {
			e.guarded(e.settle)
		}
	}) {
		return false
	}
	select {
	case ok := <-answer:
		return ok
	case <-e.loop.done:
		return false
	}
}

// guarded runs f; a panic in it ends this session only.
func (e *eventSession) guarded(f func()) {
	defer func() {
		if p := recover(); p != nil {
			e.srv.log.Error("session panicked", "panic", p, "stack", string(debug.Stack()))
			e.s.ends(endBroken)
			e.fail()
		}
	}()
	f()
}

func (e *eventSession) handle(end *endpoint, events uint32) {
	defer func() {
		if p := recover(); p != nil {
			e.srv.log.Error("session panicked", "panic", p, "stack", string(debug.Stack()))
			e.s.ends(endBroken)
			e.fail()
		}
	}()
	if events&unix.EPOLLOUT != 0 {
		e.drain(end)
	}
	if events&unix.EPOLLIN != 0 && end.mask&unix.EPOLLIN != 0 {
		e.receive(end, events&unix.EPOLLRDHUP != 0)
	} else if events&(unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		e.hungUp(end)
	}
	e.settle()
}

// hungUp deals with a socket that is closed in both directions while nothing is
// read from it. epoll cannot be told not to say so, but to forget the socket.
func (e *eventSession) hungUp(end *endpoint) {
	if end.side == fromServer {
		// Its last words are read once the client has taken what is pending.
		e.forget(end)
		return
	}
	// What it has sent is still read, as soon as the server takes it.
	if end.eof {
		end.broken = len(end.pending) > 0
	}
	e.forget(end)
}

func (e *eventSession) forget(end *endpoint) {
	if end.in {
		unix.EpollCtl(e.loop.epoll, unix.EPOLL_CTL_DEL, end.fd, nil)
		end.in, end.mask = false, 0
	}
}

// receive reads once and gives it to the session. A read that does not fill the buffer has
// taken all (epoll(7)) but the end, which last says is there; where there is more, epoll is
// asked to say so again.
func (e *eventSession) receive(end *endpoint, last bool) {
	if e.closed {
		return
	}
	n, errno := recv(end.fd, e.loop.buf)
	if n == len(e.loop.buf) || n > 0 && last || errno == unix.EINTR {
		end.again = true
	}
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return
	case errno != 0 || n == 0:
		e.ended(end, errno)
		return
	}
	end.read += int64(n)
	b := e.loop.buf[:n]
	held := len(end.held) > 0
	if held {
		end.held = append(end.held, b...)
		b = end.held
	}
	var used int
	if end.side == fromClient {
		used = e.s.client(b)
	} else {
		used = e.s.server(b)
	}
	e.flush()
	switch {
	case used == len(b):
		end.held = nil
	case !held:
		end.held = append([]byte(nil), b[used:]...)
	case used > 0:
		end.held = append([]byte(nil), b[used:]...)
	}
}

// ended deals with the end of a side's bytes. A client that sends no more may still read: it
// has the answers to what it has sent, as from a server.
func (e *eventSession) ended(end *endpoint, errno syscall.Errno) {
	end.eof = true
	if end.side == fromClient {
		e.s.ends(endClient)
	} else {
		e.s.ends(endServer)
	}
	if end.side == fromClient && errno != 0 {
		e.fail()
	}
}

// settle does what the session wants done until it waits for bytes, and then waits
// for the right ones.
func (e *eventSession) settle() {
	for !e.closed {
		e.flush()
		if e.key == "" && e.s.key != nil {
			e.key = string(e.s.key)
			e.srv.register(e.key, target{e, e.at, e.s.database, e.s.info, e.client}, e.s.unasked)
			e.s.log.authorized(e.s)
		}
		if e.s.broken {
			e.srv.log.Error("own messages in a stream that cannot be followed, closing the session")
			e.s.ends(endBroken)
			e.fail()
			return
		}
		if p := e.s.takePlanning(); p != nil {
			e.srv.goroutines.run(func() { e.plan(p) })
		}
		e.srv.compute(e.s.takeChecks())
		if a := e.s.takeSpeculation(); a != nil {
			e.srv.executing.Add(1)
			e.srv.goroutines.run(func() {
				defer e.srv.executing.Add(-1)
				a.Run()
			})
		}
		if x := e.s.takeExecution(); x != nil {
			e.srv.executing.Add(1)
			e.srv.goroutines.run(func() { e.execute(x) })
		}
		client := &e.end[fromClient]
		if e.s.sending() && !client.broken {
			if !e.sendSome() {
				break
			}
			continue
		}
		if len(client.held) == 0 || e.s.blocked() || len(e.end[fromServer].pending) > 0 {
			break
		}
		held := client.held
		used := e.s.client(held)
		e.flush() // a message that waits may have had something asked before it
		if used == 0 {
			if e.s.blocked() {
				continue
			}
			break
		}
		client.held = nil
		if used < len(held) {
			client.held = append([]byte(nil), held[used:]...)
		}
	}
	e.arm()
}

// sendSome writes a piece of an answer; the next has its turn when what came for the other
// sessions has been dealt with. It reports whether the answer is at its end.
func (e *eventSession) sendSome() bool {
	if len(e.end[fromClient].pending) > 0 {
		return false
	}
	e.s.toClient.add(e.s.more(e.loop.buf[:0]))
	e.flush()
	e.s.written()
	return !e.s.sending()
}

// sendNext writes the next piece of an answer.
func (e *eventSession) sendNext() {
	e.queued = false
	e.guarded(e.settle)
}

func (e *eventSession) plan(p *planning) {
	st, err := p.run()
	e.loop.post(func() {
		if !e.closed {
			e.guarded(func() {
				p.planned(st, err)
				e.settle()
			})
		}
	})
}

func (e *eventSession) execute(x *execution) {
	defer e.srv.executing.Add(-1)
	batch, err := x.run()
	posted := e.loop.post(func() {
		if e.closed {
			batch.Release()
			return
		}
		e.guarded(func() {
			e.s.executed(x, batch, err)
			e.settle()
		})
	})
	if !posted {
		batch.Release()
	}
}

// flush writes what the session has put out; what a socket does not take is kept,
// and its source not read until it is gone.
func (e *eventSession) flush() {
	if parts := e.s.toServer.parts; len(parts) > 0 {
		e.write(&e.end[fromServer], parts)
		clear(parts)
		e.s.toServer.parts = parts[:0]
	}
	if parts := e.s.toClient.parts; len(parts) > 0 {
		e.write(&e.end[fromClient], parts)
		clear(parts)
		e.s.toClient.parts = parts[:0]
	}
}

func (e *eventSession) write(end *endpoint, parts [][]byte) {
	if end.broken {
		return
	}
	if len(parts) > 1 && len(end.pending) == 0 {
		total := 0
		for _, p := range parts {
			total += len(p)
		}
		if total <= joinLimit {
			b := e.loop.join[:0]
			for _, p := range parts {
				b = append(b, p...)
			}
			e.writeOne(end, b)
			return
		}
	}
	for _, p := range parts {
		e.writeOne(end, p)
	}
}

func (e *eventSession) writeOne(end *endpoint, p []byte) {
	for len(p) > 0 && len(end.pending) == 0 && !end.broken {
		n, errno := send(end.fd, p)
		switch errno {
		case 0:
			p = p[n:]
		case unix.EINTR:
		case unix.EAGAIN:
			end.pending = append(end.pending, p...)
			return
		default:
			end.broken = true
		}
	}
	if !end.broken {
		end.pending = append(end.pending, p...)
	}
}

// drain writes what is pending.
func (e *eventSession) drain(end *endpoint) {
	done := 0
	for done < len(end.pending) && !end.broken {
		n, errno := send(end.fd, end.pending[done:])
		if errno == unix.EAGAIN {
			break
		}
		if errno != 0 && errno != unix.EINTR {
			end.broken = true
		}
		done += n
	}
	if done == len(end.pending) || end.broken {
		end.pending = nil
		return
	}
	end.pending = append([]byte(nil), end.pending[done:]...)
}

// arm waits for what the session can go on with, or ends it.
func (e *eventSession) arm() {
	if e.closed {
		return
	}
	client, server := &e.end[fromClient], &e.end[fromServer]
	switch {
	case e.s.toldTerminated && len(client.pending) == 0:
		e.part()
		return
	case client.broken:
		// The server finds out as it would with a client of its own.
		e.s.ends(endClient)
		e.fail()
		return
	case server.eof && len(client.pending) == 0:
		e.fail()
		return
	case client.eof && !e.shut && len(server.pending) == 0 && !e.s.blocked():
		e.shut = true
		unix.Shutdown(server.fd, unix.SHUT_WR)
	}
	var in, out uint32
	if !client.eof && !server.broken && len(server.pending) == 0 && (!e.s.blocked() || len(client.held) <= e.s.readAhead()) {
		in = unix.EPOLLIN
	}
	if len(client.pending) > 0 {
		in |= unix.EPOLLOUT
	} else if e.s.sending() && !e.queued {
		e.queued = true
		e.loop.senders = append(e.loop.senders, e)
	}
	if !server.eof && len(client.pending) == 0 {
		out = unix.EPOLLIN
	}
	if len(server.pending) > 0 {
		out |= unix.EPOLLOUT
	}
	e.watch(client, in)
	e.watch(server, out)
}

func (e *eventSession) watch(end *endpoint, mask uint32) {
	if end.mask == mask && end.in && !end.again {
		return
	}
	end.again = false
	if end.eof && mask == 0 {
		e.forget(end)
		return
	}
	op := unix.EPOLL_CTL_MOD
	if !end.in {
		if mask == 0 {
			return
		}
		op = unix.EPOLL_CTL_ADD
	}
	events := mask
	if mask == unix.EPOLLIN {
		// Edge-triggered: else the kernel asks each socket that had something to say a second
		// time, 0.5 us a relayed statement.
		events |= unix.EPOLLRDHUP | unix.EPOLLET
	}
	if err := unix.EpollCtl(e.loop.epoll, op, end.fd, &unix.EpollEvent{Events: events, Fd: int32(end.fd)}); err != nil {
		e.srv.log.Error("epoll_ctl failed, closing the session", "error", err)
		e.fail()
		return
	}
	end.in, end.mask = true, mask
}
