package pgserver

import (
	"os/exec"
	"runtime"
	"sync"
)

var (
	lasting     = make(chan func())
	lastingOnce sync.Once
)

// startOnLastingThread starts cmd from an OS thread that lives as long as the
// process.
func startOnLastingThread(cmd *exec.Cmd) error {
	lastingOnce.Do(func() {
		go func() {
			runtime.LockOSThread()
			for f := range lasting {
				f()
			}
		}()
	})
	err := make(chan error)
	lasting <- func() { err <- cmd.Start() }
	return <-err
}
