package processors

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// lookFor is how long who has ended a piece of work looks for the next one before it waits:
	// a query's phases follow each other closely.
	lookFor = 30 * time.Microsecond
	// waitFor is how long it waits before it ends.
	waitFor = 10 * time.Second
)

// Operations of futex(2), among the threads of one process.
const (
	futexWait = 0 | 128
	futexWake = 1 | 128
)

// pool is the goroutines that run what Start is given. Go's scheduler wakes threads one after the other: each
// wakes the next once it has found something to run, which takes some 50 us where it means to
// wake a virtual machine's processor, so that the last of 16 begins after most of a short query.
// These goroutines wait in the kernel, which wakes all that are wanted at once.
type pool struct {
	mu      sync.Mutex
	jobs    []func()
	looking int // goroutines that will take a job soon: they look for one, or are on their way
	waiting int // in the kernel, and nobody has woken them
	woken   int // of those that waited: as many as have been woken and have not gone on
	ready   atomic.Int32
	word    uint32 // changes when some are woken
}

var helpers pool

// Start runs f on n other goroutines, as soon as there are processors for them.
func Start(n int, f func()) { helpers.start(n, f) }

func (s *pool) start(n int, f func()) {
	if n <= 0 {
		return
	}
	s.mu.Lock()
	for range n {
		s.jobs = append(s.jobs, f)
	}
	s.ready.Store(int32(len(s.jobs)))
	missing := max(len(s.jobs)-s.looking, 0)
	wake := min(missing, s.waiting)
	s.waiting -= wake
	s.woken += wake
	s.looking += missing
	if wake > 0 {
		atomic.AddUint32(&s.word, 1)
	}
	s.mu.Unlock()
	if wake > 0 {
		s.futex(futexWake, uint32(wake), nil)
	}
	for range missing - wake {
		go s.run()
	}
}

// run takes jobs until there have been none for long.
func (s *pool) run() {
	s.mu.Lock()
	for {
		s.looking--
		for len(s.jobs) > 0 {
			f := s.jobs[0]
			s.jobs[0] = nil
			s.jobs = s.jobs[1:]
			s.ready.Store(int32(len(s.jobs)))
			s.mu.Unlock()
			f()
			s.mu.Lock()
		}
		s.looking++
		s.mu.Unlock()
		for began := time.Now(); s.ready.Load() == 0 && time.Since(began) < lookFor; {
		}
		s.mu.Lock()
		if len(s.jobs) > 0 {
			continue
		}
		s.looking--
		if !s.wait() {
			s.mu.Unlock()
			return
		}
	}
}

// wait waits until somebody has jobs; false where nobody had for long. The lock is held, but
// not while it waits.
func (s *pool) wait() bool {
	began := time.Now()
	for {
		s.waiting++
		seen := atomic.LoadUint32(&s.word)
		s.mu.Unlock()
		s.futex(futexWait, seen, &unix.Timespec{Sec: int64(waitFor / time.Second)})
		s.mu.Lock()
		// Whoever returns first takes the place of one that was woken, itself or not: as many go on.
		if s.woken > 0 {
			s.woken--
			return true
		}
		s.waiting--
		if time.Since(began) >= waitFor {
			return false
		}
	}
}

func (s *pool) futex(op int, value uint32, timeout *unix.Timespec) {
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&s.word)), uintptr(op), uintptr(value), uintptr(unsafe.Pointer(timeout)), 0, 0)
}
