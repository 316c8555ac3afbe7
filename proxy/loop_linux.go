package proxy

import (
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
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
	wake  int         // eventfd
	ends  []*endpoint // by descriptor
	buf   []byte      // of reads, and of answers on their way out
	join  []byte      // small parts are joined into one write

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
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(l.epoll)
		return nil, err
	}
	if err = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, l.wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(l.wake)}); err != nil {
		unix.Close(l.epoll)
		unix.Close(l.wake)
		return nil, err
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
		n, err := unix.EpollWait(l.epoll, events, -1)
		if err != nil && err != unix.EINTR {
			panic("BUG: epoll_wait: " + err.Error())
		}
		posted := false
		for i := range max(n, 0) {
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
			unix.Close(l.epoll)
			unix.Close(l.wake)
			return
		}
	}
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
	return (runtime.GOMAXPROCS(0) + 1) / 2 // the other half is for Postgres, or for queries
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
