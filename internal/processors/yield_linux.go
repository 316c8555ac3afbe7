package processors

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ShortSlices asks for slices as long as a Turn for the threads of this process, and those that
// they start: since Linux 6.12 who yields forfeits what is left of its slice, which is nothing
// then, so that queries have their share of a core (EEVDF; sched(7), sched_setattr(2)).
// Kernels before it do as they did, and so do threads with another policy than the default.
func ShortSlices() {
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
			attr.Flags, attr.Runtime = 0, uint64(turn)
			_ = unix.SchedSetAttr(id, attr, 0)
		}
	}
}

// yield lets other threads run that wait for this one's core. The runtime is not told: it would
// give the processor to another goroutine, which computes as well.
func yield() { _, _ = unix.RawSyscallNoError(unix.SYS_SCHED_YIELD, 0, 0, 0) }
