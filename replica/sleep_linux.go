package replica

import (
	"syscall"
	"time"
)

// shortSleep sleeps for less than a millisecond, which is the least that the runtime's
// own timers do where nothing else happens.
func shortSleep(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	syscall.Nanosleep(&t, nil)
}
