package subprocess

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

var starter = sync.OnceValue(func() chan func() {
	start := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range start {
			f()
		}
	}()
	return start
})

// Start starts a program that gets a signal when this process ends. The kernel sends it when the thread
// ends that has started the program, which threads of a Go program do at any time (a goroutine that is
// locked to one ends it): all are started from one that lasts.
func Start(cmd *exec.Cmd, atEnd syscall.Signal) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = atEnd
	err := make(chan error)
	starter() <- func() { err <- cmd.Start() }
	return <-err
}
