package proxy

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// loopThread is the thread of a loop, which stays on it: the kernel knows threads, and one
// that has scanned a table has had more than its share when a byte comes. It may be changed
// by itself only.
type loopThread struct {
	attr    unix.SchedAttr // as it was started
	settled bool           // no other slice is asked for
	short   bool           // its slice is
}

// sharedSlice is what the loop asks for at a time, in nanoseconds, while queries execute: the
// least that the kernel gives. Since Linux 6.12 who asks for less at a time is due sooner, and
// not given more in all (EEVDF; sched(7), sched_setattr(2)); kernels before it do as they did.
const sharedSlice = 100_000

// newLoopThread names the calling thread, as top -H shows it.
func newLoopThread() (t loopThread) {
	name := [16]byte{0: 'l', 'o', 'o', 'p'}
	unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
	attr, err := unix.SchedGetAttr(0, 0)
	if t.settled = err != nil || attr.Policy != unix.SCHED_NORMAL; !t.settled {
		t.attr = *attr
	}
	return t
}

// share asks for short slices where others compute, and else for what the kernel gives by
// itself, with which more bytes are moved at a time.
func (t *loopThread) share(computing bool) {
	if t.settled || t.short == computing {
		return
	}
	t.short = computing
	attr := t.attr
	attr.Flags, attr.Runtime = 0, 0
	if computing {
		attr.Runtime = sharedSlice
	}
	t.settled = unix.SchedSetAttr(0, &attr, 0) != nil
}
