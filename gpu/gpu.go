package gpu

import (
	"context"
	"errors"
	"time"

	"pgaccel/gpu/program"
)

// Runner computes queries on a device. Manager is one; tests have others.
type Runner interface {
	// Limits says what a query may need. ok is false while there is no device that works.
	Limits() (l Limits, ok bool)
	// Run computes q. ErrCompiling, ErrBusy and *device.Fault mean that the CPU is to answer;
	// a Result with Fault or Full set means the same for this query.
	Run(ctx context.Context, q *program.Query, opt RunOptions) (*program.Result, Stats, error)
}

// Limits bounds what one block of a kernel has.
type Limits struct {
	SharedBytes int   // dynamic shared memory
	Memory      int64 // bytes of device memory that queries share
}

// RunOptions says how long a query may wait.
type RunOptions struct {
	// Wait has the query wait for its kernel to be compiled and for a busy device, as one
	// for which a device was demanded does. Else it gets ErrCompiling or ErrBusy.
	Wait bool
	// Prepare has the query's kernels begin to be compiled, and no more: the result is nil. With Ahead no execution
	// needs them yet: they are compiled one after the other, while none waits for another.
	Prepare, Ahead bool
	// Prewarm has the query's columns be brought, and the strings that its Bits match, where there is room that nothing
	// has to leave (else ErrNoRoom), and no more: the result is nil.
	Prewarm bool
	// Caller is whom the query is for (a connection, say): callers that wait get turns
	// one after the other, however many queries each has. 0: one of its own.
	Caller uint64

	began time.Time // the host, with this query
}

// compiling is how long kernels may be compiled.
func (o *RunOptions) compiling() time.Duration {
	if o.Wait {
		return anyWait
	}
	return loadWait
}

// Blocking returns a Runner whose kernels are waited for, and turns at it, whatever queries say.
func Blocking(r Runner) Runner { return blocking{r} }

type blocking struct{ Runner }

func (p blocking) Run(ctx context.Context, q *program.Query, opt RunOptions) (*program.Result, Stats, error) {
	opt.Wait = true
	return p.Runner.Run(ctx, q, opt)
}

// Stats is what a query cost.
type Stats struct {
	Device      string        // "cuda:0", "emu:0"; several are separated by commas
	Compile     time.Duration // waited for kernels to be compiled, or loaded
	Copy        float64       // milliseconds on the device in which it did not compute: before, or for want of what streams through
	Kernel      float64       // milliseconds on the device, copies excluded
	BytesCopied int64         // host to device
	BytesRead   int64         // of columns, as encoded on the device
	Indexed     int           // segments of which bitmap indexes said which rows to look at
	Times       Times
}

// Add adds those of a query that was computed after another one.
func (s *Stats) Add(o Stats) {
	s.Device = o.Device
	s.Compile += o.Compile
	s.Copy += o.Copy
	s.Kernel += o.Kernel
	s.BytesCopied += o.BytesCopied
	s.BytesRead += o.BytesRead
	s.Indexed += o.Indexed
	s.Times.Add(o.Times)
}

// Errors that leave a query to the CPU.
var (
	ErrCompiling = errors.New("the kernel is being compiled")
	ErrBusy      = errors.New("the device is busy")
	// ErrNoRoom is of RunOptions.Prewarm.
	ErrNoRoom = errors.New("the device has no room")
)
