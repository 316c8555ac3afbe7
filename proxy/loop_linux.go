package proxy

import (
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"pgaccel/internal/processors"
)

// loop drives the sessions whose both legs are in the clear: one thread waits for
// all their sockets and moves bytes with non-blocking system calls. Between a client
// and its server stand no goroutine, no wake-up of another thread, and no buffer but
// the loop's own, so that a session at rest costs little more than its two sockets.
//
// Everything of a session happens on the loop's goroutine, except for executions,
// which post their outcome.
type loop struct {
	srv   *Server
	epoll int
	rest  syscall.RawConn // of epoll, to wait for it without a thread; nil where that cannot be
	file  *os.File        // owns epoll
	wake  int             // eventfd
	ends  []*endpoint     // by descriptor
	buf   []byte          // of reads, and of answers on their way out
	join  []byte          // small parts are joined into one write

	mu     sync.Mutex
	posted []func()
	ended  bool
	done   chan struct{}
}

const (
	loopBuffer = 64 << 10
	joinLimit  = 16 << 10
	// sendRounds is how many pieces of an answer one turn may write before the other
	// sessions have theirs.
	sendRounds = 8
)

func newLoop(srv *Server) (*loop, error) {
	l := &loop{srv: srv, buf: make([]byte, loopBuffer), join: make([]byte, 0, joinLimit), done: make(chan struct{})}
	var err error
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	unix.SetNonblock(l.epoll, true) // else NewFile does not register it with Go's poller
	l.file = os.NewFile(uintptr(l.epoll), "epoll")
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		l.file.Close()
		return nil, err
	}
	if err = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, l.wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(l.wake)}); err != nil {
		l.file.Close()
		unix.Close(l.wake)
		return nil, err
	}
	if l.rest, err = l.file.SyscallConn(); err != nil {
		l.rest = nil
	}
	return l, nil
}

// post has f run on the loop's goroutine. It reports false where the loop has ended.
func (l *loop) post(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false // and its descriptors may be somebody else's by now
	}
	l.posted = append(l.posted, f)
	if len(l.posted) == 1 {
		unix.Write(l.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
	return true
}

// stop ends the loop. Its sessions must have ended.
func (l *loop) stop() {
	l.post(func() {
		l.mu.Lock()
		l.ended = true
		l.mu.Unlock()
	})
	<-l.done
}

func (l *loop) run() {
	defer close(l.done)
	events := make([]unix.EpollEvent, 128)
	for {
		n := l.wait(events)
		posted := false
		for i := range n {
			fd := int(events[i].Fd)
			if fd == l.wake {
				posted = true
			} else if end := l.ends[fd]; end != nil {
				end.events.handle(end, events[i].Events)
			}
		}
		// Only now may sessions begin: one that ended above has left its descriptors'
		// numbers to be used again, while events of its own may follow in this turn.
		if posted && l.runPosted() {
			l.file.Close()
			unix.Close(l.wake)
			return
		}
	}
}

// wait returns the number of events that are there, at least one unless a signal came.
//
// A goroutine that blocks in a system call costs more than the call: the runtime's
// monitor runs every 20 us for a while after it has taken the processor from it, and
// wakes another thread. Measured with 16 clients on 2 cores, half of all context
// switches were of that kind, and a relayed transaction took 26 us of processor time
// instead of 21. Parked in the runtime's poller, the loop costs nothing of that.
//
// While queries execute here it blocks in the system call all the same: the runtime asks its
// poller only when a processor has nothing to run, or every 10 ms, where a thread that
// returns from a call is in the queue at once.
func (l *loop) wait(events []unix.EpollEvent) int {
	n := 0
	if l.rest != nil && l.srv.executing.Load() == 0 {
		err := l.rest.Read(func(uintptr) bool {
			n = l.ready(events)
			return n > 0
		})
		if err == nil {
			return n
		}
		l.rest = nil // not pollable here
	}
	n, err := unix.EpollWait(l.epoll, events, -1)
	if err != nil && err != unix.EINTR {
		panic("BUG: epoll_wait: " + err.Error())
	}
	return max(n, 0)
}

// ready returns the number of events that are there now.
func (l *loop) ready(events []unix.EpollEvent) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	if errno == unix.EINTR {
		return 0
	} else if errno != 0 {
		panic("BUG: epoll_wait: " + errno.Error())
	}
	return int(n)
}

func (l *loop) runPosted() (ended bool) {
	var drain [8]byte
	unix.Read(l.wake, drain[:])
	l.mu.Lock()
	list := l.posted
	l.posted = nil
	l.mu.Unlock()
	for _, f := range list {
		f()
	}
	return l.ended
}

func (s *Server) nextLoop() *loop {
	s.loopMu.Lock()
	defer s.loopMu.Unlock()
	if s.ctx.Err() != nil {
		return nil
	}
	if len(s.loops) < s.loopCount() {
		l, err := newLoop(s)
		if err != nil {
			s.log.Warn("no event loop, using goroutines", "error", err)
			return nil
		}
		s.loops = append(s.loops, l)
		go l.run()
		return l
	}
	s.turn++
	return s.loops[s.turn%len(s.loops)]
}

func (s *Server) loopCount() int {
	if s.cfg.loops > 0 {
		return s.cfg.loops
	}
	return processors.Loops()
}

// stopLoops ends the loops once no session is left.
func (s *Server) stopLoops() {
	s.loopMu.Lock()
	list := s.loops
	s.loops = nil
	s.loopMu.Unlock()
	for _, l := range list {
		l.stop()
	}
}

// recv and send do not block, so that the scheduler need not be told of them.

func recv(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

func send(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
