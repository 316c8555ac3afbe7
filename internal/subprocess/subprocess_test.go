package subprocess

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// TestThreadsEnd: the program outlives the threads that end in the meantime.
func TestThreadsEnd(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var started error
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread() // it ends with the goroutine
		started = Start(cmd, syscall.SIGKILL)
	})
	wg.Wait()
	if started != nil {
		t.Fatal(started)
	}
	for range 100 {
		wg.Go(func() { runtime.LockOSThread() })
	}
	wg.Wait()
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("cat: %v", err)
	}
}
