package device

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Kind says what executes.
type Kind string

// The kinds, as pgaccel.device, --device and metrics spell them.
const (
	CUDA     Kind = "cuda"
	Emulator Kind = "emu"
)

// Info describes one device.
type Info struct {
	Kind           Kind
	Name           string // "NVIDIA H200"
	Arch           string // "sm_90"; "emu"
	Driver         string // version of the driver and of the compiler, for people and caches
	SMs            int    // multiprocessors
	ThreadsPerSM   int
	SharedPerBlock int   // bytes that a block can have (opt-in)
	SharedPerSM    int   // bytes
	L2             int64 // bytes
	Memory         int64 // bytes in all
	Free           int64 // bytes free when the executor started
}

// Pointer is an address in a device's memory. 0 is none.
type Pointer uint64

// Module is a compiled source on one device.
type Module uint64

// File is a memory file that was shared.
type File uint32

// ShareChunk is the unit, in bytes of the file, in which shared files are mapped and pinned.
const ShareChunk = 64 << 20

// Source is a translation unit.
type Source struct {
	Name    string            // for messages and file names: letters, digits, _
	Code    string            // CUDA C++ as kernels/pgaccel.cuh describes it
	Headers map[string]string // what it may include, by name: kernels.Headers()
	Defines []string          // "NAME=VALUE"
}

// Executor runs kernels. Its methods may be called from many goroutines at once.
// Errors are *Fault, or those of the context; after a Fault of kind Lost every later call
// fails, and all memory and modules are gone.
type Executor interface {
	Devices() []Info
	// Share makes a memory file's pages readable for OpCopyShared. The file may grow later.
	// From then on no page may be punched out of the file: its pages are pinned, those that
	// it has now in the background and others when something of their ShareChunk is copied,
	// and a new page in a hole would not be seen.
	Share(f *os.File) (File, error)
	// Alloc returns device memory, aligned to 256 bytes, with any content.
	Alloc(dev int, bytes int64) (Pointer, error)
	Free(dev int, p Pointer) error
	// Compile returns the module of a source, from its cache where it has it. It takes
	// from milliseconds to seconds, beside running batches.
	Compile(ctx context.Context, dev int, s Source) (Module, error)
	// Run executes a batch and waits for its end. Once it has begun a batch is not
	// interrupted: where ctx ends before, Run returns ctx's error after the batch's end.
	Run(ctx context.Context, dev int, b *Batch) (*Reply, error)
	Close() error
}

// Streams is the number of streams of a device: 0 .. Streams-1. By convention the last
// CopyStreams are for copies to the device, which go before kernels: two, so that one copy
// begins while another ends.
const Streams, CopyStreams = 8, 2

// Events is the number of events of a batch: 0 .. Events-1.
const Events = 64

// Batch is a list of commands for one stream, or for copy streams besides that run beside it but
// where one awaits the other. Executed one after the other, as they stand, they do the same: which
// is how executors do that have nothing to gain.
type Batch struct {
	Stream   int
	Commands []Command
}

// StreamOf is the stream of a command's Side.
func (b *Batch) StreamOf(side uint8) int {
	if side == 0 {
		return b.Stream
	}
	return Streams - int(side)
}

// Check returns the streams of a batch in ascending order, or what is wrong with them or with its
// events.
func (b *Batch) Check() (streams []int, err error) {
	var recorded [Events]bool
	var used [Streams]bool
	wrong := func(format string, args ...any) ([]int, error) {
		return nil, &Fault{Call: "batch", Text: fmt.Sprintf(format, args...)}
	}
	if b.Stream < 0 || b.Stream >= Streams {
		return wrong("there is no stream %d", b.Stream)
	}
	used[b.Stream] = true
	for i := range b.Commands {
		c := &b.Commands[i]
		if c.Side > 0 {
			if c.Side > CopyStreams || b.StreamOf(c.Side) == b.Stream {
				return wrong("there is no copy stream %d beside stream %d", c.Side, b.Stream)
			}
			used[b.StreamOf(c.Side)] = true
		}
		switch c.Op {
		case OpMark:
			if c.Side > 0 {
				return wrong("a mark on a copy stream")
			}
		case OpRecord, OpAwait:
			if c.Event >= Events {
				return wrong("there is no event %d", c.Event)
			}
			if c.Op == OpAwait && !recorded[c.Event] {
				return wrong("event %d is awaited before it is recorded", c.Event)
			}
			recorded[c.Event] = true
		}
	}
	for s, is := range used {
		if is {
			streams = append(streams, s)
		}
	}
	return streams, nil
}

// Op says what a Command does.
type Op uint8

// The commands, with the fields of Command that they use.
const (
	OpInvalid    Op = iota
	OpLaunch        // Module, Function, Grid, Block, Shared, Params
	OpCopyShared    // File, Pieces: from a memory file to the device
	OpWrite         // Dst, Data: to the device
	OpCopy          // Dst, Src, Bytes: within the device
	OpFill          // Dst, Value, Bytes (a multiple of 4): 32-bit words
	OpRead          // Src, Bytes: into Reply.Data, in the order of commands
	OpMark          // a point in time of Batch.Stream: Reply.Millis has the times between two marks
	OpRecord        // Event: it is what is queued so far on the command's stream
	OpAwait         // Event, recorded before: what follows on the command's stream comes after it
)

// Command is one step of a batch.
type Command struct {
	Op       Op
	Side     uint8  // 0: on Batch.Stream; 1 .. CopyStreams: on one of the copy streams
	Event    uint32 // of the batch
	Module   Module
	Function string
	Grid     [3]uint32 // blocks
	Block    [3]uint32 // threads
	Shared   uint32    // bytes of dynamic shared memory
	Params   []byte    // the kernel's one parameter
	File     File
	Pieces   []Piece
	Dst, Src Pointer
	Bytes    uint64
	Value    uint32
	Data     []byte
}

// Piece is a part of a memory file, and where it goes.
type Piece struct {
	Offset, Bytes int64
	Dst           Pointer
}

// Reply is what a batch brings back.
type Reply struct {
	Data   [][]byte  // of each OpRead
	Memory []byte    // that Data lies in, which package bulk may have once nobody reads it; nil: nobody may
	Millis []float64 // between each OpMark and the one before it, measured on the device
	// On the host: Enqueue is until the device had all commands, 0 where they are executed as they stand. Took is
	// from the request to this reply, 0 where that is a call.
	Enqueue, Took time.Duration
}

// FaultKind classes failures by what can be done about them.
type FaultKind uint8

// The kinds of faults.
const (
	FaultOther       FaultKind = iota
	FaultMemory                // out of device memory: evict, or let the CPU answer
	FaultCompile               // a source that does not compile: a bug, never retried
	FaultLaunch                // a kernel could not be started (resources, arguments)
	FaultLost                  // the device or the process is gone, or nothing on it can be trusted
	FaultUnavailable           // there is no device, or none now
)

var faultNames = [...]string{"device error", "out of device memory", "compilation failed", "launch failed", "device lost", "no device"}

// String returns the kind for people and as a metric's label.
func (k FaultKind) String() string { return faultNames[k] }

// Fault is a failure of a device.
type Fault struct {
	Kind FaultKind
	Call string // what failed: "cuMemAlloc", "nvrtcCompileProgram", "kernel scan_3f2a"
	Text string // what it said
}

// Error implements error.
func (f *Fault) Error() string {
	if f.Call == "" {
		return fmt.Sprintf("%v: %s", f.Kind, f.Text)
	}
	return fmt.Sprintf("%v: %s: %s", f.Kind, f.Call, f.Text)
}

// KindOf returns the kind of the Fault that err carries, FaultOther for other errors.
func KindOf(err error) FaultKind {
	var f *Fault
	if errors.As(err, &f) {
		return f.Kind
	}
	return FaultOther
}
