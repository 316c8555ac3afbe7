package processors

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// sliceOf is the slice of the calling thread, 0 where the kernel keeps none.
func sliceOf(t *testing.T) uint64 {
	t.Helper()
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return attr.Runtime
}

// Threads that were there have short slices, and those that start later, of whichever thread.
func TestShortSlices(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := sliceOf(t)
	ShortSlices()
	want := uint64(turn)
	if before == 0 {
		want = 0 // before Linux 6.12
	} else if before < want {
		t.Fatalf("%d ns by itself, no more than %d", before, want)
	}
	if got := sliceOf(t); got != want {
		t.Errorf("this thread: %d ns, want %d", got, want)
	}
	started, all := make(chan uint64), make(chan struct{})
	for range 8 { // more threads than there can have been
		go func() {
			runtime.LockOSThread()
			started <- sliceOf(t)
			<-all
		}()
	}
	for range 8 {
		if got := <-started; got != want {
			t.Errorf("another thread: %d ns, want %d", got, want)
		}
	}
	close(all)
}
