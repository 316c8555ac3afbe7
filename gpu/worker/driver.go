package worker

import (
	"fmt"

	"pgaccel/gpu/device"
)

// driver is what the executor needs of one device. The build tag cuda has one over
// NVIDIA's driver, tests have one in memory. Calls may come from any goroutine at once.
// Errors are *callError.
type driver interface {
	info() device.Info
	alloc(bytes int64) (device.Pointer, error)
	free(p device.Pointer) error
	// pinned returns memory that a stream copies from and to without a detour.
	pinned(bytes int) ([]byte, error)
	// register pins the pages of a mapping, for all devices of this process.
	register(b []byte) error
	load(image []byte) (uintptr, error)
	unload(module uintptr) error
	function(module uintptr, name string) (uintptr, error)
	// allowShared lets launches of a function have so much dynamic shared memory.
	allowShared(function uintptr, bytes uint32) error
	// gathers says that kernels may read registered and pinned memory by its address here.
	gathers() bool
	// do calls f on a thread that has the device's context, which streams need.
	do(f func() error) error
	// stream makes a stream, within do. One that is urgent has its kernels' blocks begin before
	// waiting ones of other streams, where the device can.
	stream(urgent bool) (stream, error)
}

// stream is a queue of commands of a device, used within do by one goroutine at a time.
type stream interface {
	launch(function uintptr, grid, block [3]uint32, shared uint32, params []byte) error
	toDevice(dst device.Pointer, pinned []byte) error
	toHost(pinned []byte, src device.Pointer) error
	copy(dst, src device.Pointer, bytes uint64) error
	fill(dst device.Pointer, value uint32, words uint64) error
	// note remembers what was queued so far as event i, a small number; reach waits for it.
	note(i int) error
	reach(i int) error
	// record remembers what was queued so far as event i of this stream; await has what is
	// queued here from now on begin after what another stream recorded last as its event i.
	record(i int) error
	await(from stream, i int) error
	// mark records the i-th point in time since the last wait that followed a millis.
	mark(i int) error
	// wait returns when all that was queued is done.
	wait() error
	// millis is the time between marks i-1 and i, after wait.
	millis(i int) (float64, error)
}

// compiler turns sources into images for one architecture. The build tag cuda has one over
// NVRTC, tests have one that needs nothing.
type compiler interface {
	// version names the compiler and its options: a part of the cache's key.
	version(arch string) string
	compile(arch string, s device.Source) ([]byte, error)
}

// callError is a failed call of the driver.
type callError struct {
	call string // "cuMemAlloc"
	code int    // CUresult
	name string // "CUDA_ERROR_OUT_OF_MEMORY"
}

func (e *callError) Error() string { return fmt.Sprintf("%s: %s", e.call, e.name) }

// Results of the driver that say what to do next. They are numbers that never change.
const (
	resultInvalidValue   = 1
	resultOutOfMemory    = 2
	resultNotFound       = 500
	resultIllegalAddress = 700
)

// kindOfResult classes the driver's results. launch says that the call was one that starts
// a kernel, where an invalid value is the caller's grid, block or shared memory.
func kindOfResult(code int, launch bool) device.FaultKind {
	switch code {
	case resultOutOfMemory:
		return device.FaultMemory
	case resultInvalidValue, 9, 98, resultNotFound: // invalid configuration, device function
		if launch {
			return device.FaultLaunch
		}
		return device.FaultOther
	case 701, 720: // out of resources, cooperative launch too large
		return device.FaultLaunch
	case 100, 101: // no device, invalid device
		return device.FaultUnavailable
	case 200, 209, 218, 221, 222, 223: // an image or PTX that the driver does not take
		return device.FaultCompile
	case 3, 4, 46, 201, // not initialised, deinitialised, device unavailable, invalid context
		214, 219, 220, 226, // uncorrectable ECC, graphics context, NVLink, contained
		resultIllegalAddress, 702, 709, 710, // timeout, destroyed context, assertion
		714, 715, 716, 717, 718, 719, 721, // stack, instruction, alignment, address space, PC, launch failed, cluster
		725, 802, 803, 804, 999: // tensor leak, system not ready, mismatch, unknown
		// After these the context answers every call with the same error.
		return device.FaultLost
	}
	return device.FaultOther
}

// faultOf returns the fault that an error of a driver is. what, where it is not empty, is
// what was done at large: "kernel scan_3f2a".
func faultOf(err error, what string, launch bool) error {
	e, ok := err.(*callError)
	if !ok {
		return err
	}
	call := e.call
	if what != "" {
		call = what + ": " + e.call
	}
	return &device.Fault{Kind: kindOfResult(e.code, launch), Call: call, Text: e.name}
}
