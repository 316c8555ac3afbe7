package proxy

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// loopThread is the thread of a loop, which stays on it: the kernel knows threads, and one
// that has scanned a table has had more than its share when a byte comes. It may be changed
// by itself only.
type loopThread struct {
	attr  unix.SchedAttr // its policy and nice value
	fixed bool           // its slice cannot be set
	short bool           // it is sharedSlice
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
	if t.fixed = err != nil || attr.Policy != unix.SCHED_NORMAL; !t.fixed {
		t.attr = *attr
		t.ask(0) // it may be started by a thread of queries (processors.ShortSlices)
	}
	return t
}

// ask asks for a slice of so many nanoseconds, 0 for what the kernel gives by itself.
func (t *loopThread) ask(slice uint64) {
	t.attr.Flags, t.attr.Runtime = 0, slice
	t.fixed = unix.SchedSetAttr(0, &t.attr, 0) != nil
}

// share asks for short slices where others compute, and else for what the kernel gives by
// itself, with which more bytes are moved at a time.
func (t *loopThread) share(computing bool) {
	if t.fixed || t.short == computing {
		return
	}
	t.short = computing
	if computing {
		t.ask(sharedSlice)
	} else {
		t.ask(0)
	}
}
