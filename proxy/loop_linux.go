package proxy

import (
	"os"
	"runtime"
	"slices"
	"strings"
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
	srv    *Server
	epoll  int
	thread loopThread  // its own
	wake   int         // eventfd
	keeps  bool        // its processor while it waits
	ends   []*endpoint // by descriptor
	// senders have more of an answer to write. One writes a piece at a time, between two looks at
	// the sockets: a small statement waits for one piece, not for one of each.
	senders []*eventSession
	buf     []byte // of reads, and of answers on their way out
	join    []byte // small parts are joined into one write

	mu     sync.Mutex
	posted []func()
	ended  bool
	done   chan struct{}
}

const (
	loopBuffer = 64 << 10
	joinLimit  = 16 << 10
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
		l.close()
		return nil, err
	}
	l.keeps = keepsProcessors(srv.loopCount())
	return l, nil
}

// close closes the loop's own descriptors.
func (l *loop) close() {
	unix.Close(l.epoll)
	unix.Close(l.wake)
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
	runtime.LockOSThread()
	l.thread = newLoopThread()
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
			l.close()
			return
		}
		if len(l.senders) > 0 {
			e := l.senders[0]
			l.senders = slices.Delete(l.senders, 0, 1)
			e.sendNext()
		}
	}
}

// wait returns the number of events that are there, none where a signal came.
//
// A goroutine that blocks in a system call which the runtime knows of costs more than the
// call: the runtime's monitor runs every 20 us for a while after it has taken the processor
// from it, and wakes another thread. One that parks in the runtime's poller is woken up by
// another thread, which asks for work first. So the loop keeps its processor while there is
// something to do, and blocks where nothing comes.
func (l *loop) wait(events []unix.EpollEvent) int {
	l.thread.share(l.srv.executing.Load() > 0)
	if len(l.senders) > 0 {
		return l.ready(events, 0)
	}
	if l.keeps {
		if n := l.keep(events); n > 0 {
			return n
		}
	}
	return l.block(events)
}

// keep waits in a call that the runtime does not know of, as recv and send: to it the goroutine
// runs, and has its processor. internal/processors has one for each loop. It returns none where
// nothing has come for a while.
//
// That does not hold up the runtime: where it wants to stop a goroutine, for the garbage
// collector or because it has run for 10 ms, it sends the thread a signal, again until it is
// heard, and no epoll_wait outlasts a signal (signal(7)). A timeout instead would have the
// kernel set up a timer for each call.
func (l *loop) keep(events []unix.EpollEvent) int {
	for range 2 {
		if n := l.ready(events, -1); n > 0 {
			return n
		}
		runtime.Gosched() // stop here, if that is what the signal was for
	}
	return 0
}

// block is epoll_wait as a call that the runtime knows of.
func (l *loop) block(events []unix.EpollEvent) int {
	n, err := unix.EpollWait(l.epoll, events, -1)
	if err != nil && err != unix.EINTR {
		panic("BUG: epoll_wait: " + err.Error())
	}
	return max(n, 0)
}

// keepsProcessors reports whether loops may keep their processors while they wait: others are
// left, and the runtime sends signals.
func keepsProcessors(loops int) bool {
	return runtime.GOMAXPROCS(0) > loops && !strings.Contains(os.Getenv("GODEBUG"), "asyncpreemptoff")
}

// ready is epoll_wait as a call that the runtime does not know of. It waits so many milliseconds
// at most, without end where timeout is negative.
func (l *loop) ready(events []unix.EpollEvent, timeout int) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(timeout), 0, 0)
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
