package processors

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// queriesSlice is how long a thread of queries runs at a time, in nanoseconds: longer than what
// the kernel gives by itself, at most 3 ms.
const queriesSlice = 6_000_000

// LongSlices asks for longer slices of time for the threads of this process, and those that
// they start. Since Linux 6.12 who has a shorter one (Postgres' processes, clients, event
// loops) runs at once when it wakes up, and need not wait until a query's slice is over
// (EEVDF's PREEMPT_SHORT; sched(7), sched_setattr(2)); nobody is given more or less in all.
// Kernels before it do as they did, and so do threads with another policy than the default.
func LongSlices() {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if attr, err := unix.SchedGetAttr(id, 0); err == nil && attr.Policy == unix.SCHED_NORMAL {
			attr.Flags, attr.Runtime = 0, queriesSlice
			_ = unix.SchedSetAttr(id, attr, 0)
		}
	}
}
