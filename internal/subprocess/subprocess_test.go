package subprocess

import (
	"io"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// TestThreadsEnd starts programs from goroutines whose threads end with them: the programs go on.
func TestThreadsEnd(t *testing.T) {
	var cmds [20]*exec.Cmd
	var ins [20]io.WriteCloser
	var errs [20]error
	var wg sync.WaitGroup
	for i := range cmds {
		cmds[i] = exec.Command("cat")
		if ins[i], errs[i] = cmds[i].StdinPipe(); errs[i] != nil {
			t.Fatal(errs[i])
		}
		wg.Go(func() {
			runtime.LockOSThread()
			errs[i] = Start(cmds[i], syscall.SIGKILL)
		})
	}
	wg.Wait()
	for i, cmd := range cmds {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		ins[i].Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("cat: %v", err)
		}
	}
}
