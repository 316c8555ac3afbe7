//go:build !linux

package replica

import "time"

func shortSleep(d time.Duration) { time.Sleep(d) }
