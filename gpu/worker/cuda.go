//go:build cuda

package worker

/*
#include <cuda.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <sched.h>

// What gorgonia.org/cu lacks, or has only with allocations for each call.

static CUresult pgaccel_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                               unsigned shared, CUstream s, void *params, size_t bytes) {
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
	return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, s, NULL, bytes ? extra : NULL);
}

// Queries are shorter than a sleep and a wake: look for a while, then sleep. e, where s is
// NULL, is looked at instead of the stream.
static CUresult pgaccel_look(CUstream s, CUevent e, long spin_ns) {
	struct timespec begin, now;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0;; i++) {
		CUresult r = s ? cuStreamQuery(s) : cuEventQuery(e);
		if (r != CUDA_ERROR_NOT_READY)
			return r;
		if (i % 16 != 15)
			continue;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec > spin_ns)
			return r;
		// Not at once: where others want the core a yield takes longer than a small kernel.
		if (i > 256)
			sched_yield();
	}
}

static CUresult pgaccel_reach(CUevent e, long spin_ns) {
	CUresult r = pgaccel_look(NULL, e, spin_ns);
	return r == CUDA_ERROR_NOT_READY ? cuEventSynchronize(e) : r;
}

static CUresult pgaccel_wait(CUstream s, CUevent e, long spin_ns) {
	CUresult r = pgaccel_look(s, e, spin_ns);
	if (r != CUDA_ERROR_NOT_READY)
		return r;
	r = cuEventRecord(e, s);
	if (r == CUDA_SUCCESS)
		r = cuEventSynchronize(e);
	// The stream's own answer: an event says nothing of what failed after it.
	return r == CUDA_SUCCESS ? cuStreamSynchronize(s) : r;
}

static CUresult pgaccel_register(void *p, size_t n, int readOnly) {
	return cuMemHostRegister(p, n, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | (readOnly ? CU_MEMHOSTREGISTER_READ_ONLY : 0));
}

static const char *pgaccel_name(CUresult r) {
	const char *name = NULL;
	if (cuGetErrorName(r, &name) != CUDA_SUCCESS || !name)
		return "an unknown CUresult";
	return name;
}
*/
import "C"

import (
	"fmt"
	"reflect"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"pgaccel/gpu/device"
)

// spin is how long a stream is watched before its thread sleeps.
const spin = 2 * time.Millisecond

// result returns a failed call's error.
func result(call string, r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return &callError{call: call, code: int(r), name: C.GoString(C.pgaccel_name(r))}
}

// cuError returns an error of gorgonia.org/cu, whose type is its own, as ours.
func cuError(call string, err error) error {
	if err == nil {
		return nil
	}
	if v := reflect.ValueOf(err); v.Kind() == reflect.Int {
		return result(call, C.CUresult(v.Int()))
	}
	return &callError{call: call, code: int(C.CUDA_ERROR_UNKNOWN), name: err.Error()}
}

// cudaDriver is one device: its primary context.
type cudaDriver struct {
	dev      cu.Device
	ctx      cu.CUContext
	about    device.Info
	bus      string
	readOnly bool // mappings that cannot be written can be registered

	hostPointers atomic.Bool // registered memory has the same address on the device
}

var (
	_ driver = (*cudaDriver)(nil)
	_ stream = (*cudaStream)(nil)
)

// openCUDA returns the devices, in the driver's order. Package cu has initialised the driver.
func openCUDA(nvrtc string) ([]driver, error) {
	n, err := cu.NumDevices()
	if err != nil {
		return nil, cuError("cuDeviceGetCount", err)
	}
	if n == 0 {
		return nil, &callError{call: "cuDeviceGetCount", code: 100, name: "CUDA_ERROR_NO_DEVICE"}
	}
	var all []driver
	for i := range n {
		d, err := openDevice(i, nvrtc)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

func openDevice(i int, nvrtc string) (*cudaDriver, error) {
	dev, err := cu.GetDevice(i)
	if err != nil {
		return nil, cuError("cuDeviceGet", err)
	}
	d := &cudaDriver{dev: dev}
	if err := cuError("cuDevicePrimaryCtxSetFlags", dev.SetPrimaryCtxFlags(cu.SchedBlockingSync)); err != nil {
		return nil, err
	}
	if d.ctx, err = dev.RetainPrimaryCtx(); err != nil {
		return nil, cuError("cuDevicePrimaryCtxRetain", err)
	}
	name, err := deviceName(dev)
	if err != nil {
		return nil, err
	}
	bus := make([]byte, 32)
	if err := result("cuDeviceGetPCIBusId", C.cuDeviceGetPCIBusId((*C.char)(unsafe.Pointer(&bus[0])), C.int(len(bus)), C.CUdevice(dev))); err != nil {
		return nil, err
	}
	d.bus = C.GoString((*C.char)(unsafe.Pointer(&bus[0])))
	attribute := func(a C.CUdevice_attribute) int {
		var v C.int
		if err == nil {
			err = result("cuDeviceGetAttribute", C.cuDeviceGetAttribute(&v, a, C.CUdevice(dev)))
		}
		return int(v)
	}
	d.about = device.Info{
		Kind:           device.CUDA,
		Name:           name,
		Arch:           fmt.Sprintf("sm_%d%d", attribute(C.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), attribute(C.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)),
		Driver:         fmt.Sprintf("CUDA %d.%d, %s", cu.Version()/1000, cu.Version()%1000/10, nvrtc),
		SMs:            attribute(C.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
		ThreadsPerSM:   attribute(C.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
		SharedPerBlock: attribute(C.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
		SharedPerSM:    attribute(C.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
		L2:             int64(attribute(C.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)),
	}
	d.readOnly = attribute(C.CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED) != 0
	d.hostPointers.Store(attribute(C.CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) != 0 &&
		attribute(C.CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM) != 0)
	if err != nil {
		return nil, err
	}
	err = d.do(func() error {
		// Rows that filters leave are read one by one. Fetching more than the sector of 32
		// bytes that is asked for costs such queries 5 to 8 % on an H200. Only a hint.
		_ = C.cuCtxSetLimit(C.CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 32)
		free, total, err := cu.MemInfo()
		d.about.Free, d.about.Memory = free, total
		return cuError("cuMemGetInfo", err)
	})
	return d, err
}

// deviceName is cu.Device.Name without its C string of no length.
func deviceName(dev cu.Device) (string, error) {
	b := make([]byte, 256)
	if err := result("cuDeviceGetName", C.cuDeviceGetName((*C.char)(unsafe.Pointer(&b[0])), C.int(len(b)), C.CUdevice(dev))); err != nil {
		return "", err
	}
	return C.GoString((*C.char)(unsafe.Pointer(&b[0]))), nil
}

// do calls f with the device's context on the thread, which has the one that it had before, if any, afterwards: a batch of one device has
// memory registered by another, and goes on with its own streams and events.
func (d *cudaDriver) do(f func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := cu.CurrentContext()
	if err != nil {
		return cuError("cuCtxGetCurrent", err)
	}
	if before != d.ctx {
		if err := cuError("cuCtxSetCurrent", cu.SetCurrentContext(d.ctx)); err != nil {
			return err
		}
		var none cu.CUContext
		if before != none {
			defer func() {
				if restored := cuError("cuCtxSetCurrent", cu.SetCurrentContext(before)); err == nil {
					err = restored
				}
			}()
		}
	}
	return f()
}

func (d *cudaDriver) info() device.Info { return d.about }

func (d *cudaDriver) gathers() bool { return d.hostPointers.Load() }

func (d *cudaDriver) alloc(bytes int64) (p device.Pointer, err error) {
	err = d.do(func() error {
		v, err := cu.MemAlloc(bytes)
		p = device.Pointer(v)
		return cuError("cuMemAlloc", err)
	})
	return p, err
}

func (d *cudaDriver) free(p device.Pointer) error {
	return d.do(func() error { return cuError("cuMemFree", cu.MemFree(cu.DevicePtr(p))) })
}

func (d *cudaDriver) pinned(bytes int) (b []byte, err error) {
	err = d.do(func() error {
		var p unsafe.Pointer
		if err := result("cuMemHostAlloc", C.cuMemHostAlloc(&p, C.size_t(bytes), C.CU_MEMHOSTALLOC_PORTABLE)); err != nil {
			return err
		}
		b = unsafe.Slice((*byte)(p), bytes)
		return nil
	})
	return b, err
}

func (d *cudaDriver) register(b []byte) error {
	readOnly := C.int(0)
	if d.readOnly {
		readOnly = 1
	}
	return d.do(func() error {
		if err := result("cuMemHostRegister", C.pgaccel_register(unsafe.Pointer(&b[0]), C.size_t(len(b)), readOnly)); err != nil {
			return err
		}
		var p C.CUdeviceptr
		if C.cuMemHostGetDevicePointer(&p, unsafe.Pointer(&b[0]), 0) != C.CUDA_SUCCESS || uintptr(p) != uintptr(unsafe.Pointer(&b[0])) {
			d.hostPointers.Store(false)
		}
		return nil
	})
}

func (d *cudaDriver) load(image []byte) (module uintptr, err error) {
	err = d.do(func() error {
		m, err := cu.LoadData(string(image)) // which copies it, and ends it with a zero byte as PTX needs
		module = *(*uintptr)(unsafe.Pointer(&m))
		return cuError("cuModuleLoadData", err)
	})
	return module, err
}

func (d *cudaDriver) unload(module uintptr) error {
	return d.do(func() error { return cuError("cuModuleUnload", cuModule(module).Unload()) })
}

// cuModule is the module of a handle: cu keeps the field to itself.
func cuModule(handle uintptr) (m cu.Module) {
	*(*uintptr)(unsafe.Pointer(&m)) = handle
	return m
}

func (d *cudaDriver) function(module uintptr, name string) (function uintptr, err error) {
	err = d.do(func() error {
		f, err := cuModule(module).Function(name)
		function = *(*uintptr)(unsafe.Pointer(&f))
		return cuError("cuModuleGetFunction", err)
	})
	return function, err
}

func (d *cudaDriver) allowShared(function uintptr, bytes uint32) error {
	return d.do(func() error {
		return result("cuFuncSetAttribute", C.cuFuncSetAttribute(cFunction(function), C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(bytes)))
	})
}

// cFunction is a handle as C has it: a pointer of the driver's, never one of Go's.
func cFunction(handle uintptr) C.CUfunction { return *(*C.CUfunction)(unsafe.Pointer(&handle)) }

// cudaStream is a stream and its events.
type cudaStream struct {
	s      cu.Stream
	c      C.CUstream
	end    C.CUevent // sleeps until it
	notes  []C.CUevent
	events []C.CUevent // of batches that have two streams
	marks  []cu.Event
}

func (d *cudaDriver) stream(urgent bool) (stream, error) {
	least, greatest, err := cu.StreamPriorityRange()
	if err != nil {
		return nil, cuError("cuCtxGetStreamPriorityRange", err)
	}
	priority := least
	if urgent {
		priority = greatest // the smaller number; the same where there are no priorities
	}
	s, err := cu.MakeStreamWithPriority(priority, cu.NonBlocking)
	if err != nil {
		return nil, cuError("cuStreamCreateWithPriority", err)
	}
	st := &cudaStream{s: s, c: C.CUstream(unsafe.Pointer(s.C()))}
	return st, result("cuEventCreate", C.cuEventCreate(&st.end, C.CU_EVENT_BLOCKING_SYNC|C.CU_EVENT_DISABLE_TIMING))
}

func (s *cudaStream) launch(function uintptr, grid, block [3]uint32, shared uint32, params []byte) error {
	var p unsafe.Pointer
	if len(params) > 0 {
		p = unsafe.Pointer(&params[0]) // the driver copies it before it returns
	}
	return result("cuLaunchKernel", C.pgaccel_launch(cFunction(function),
		C.uint(grid[0]), C.uint(grid[1]), C.uint(grid[2]), C.uint(block[0]), C.uint(block[1]), C.uint(block[2]),
		C.uint(shared), s.c, p, C.size_t(len(params))))
}

func (s *cudaStream) toDevice(dst device.Pointer, pinned []byte) error {
	return result("cuMemcpyHtoDAsync", C.cuMemcpyHtoDAsync(C.CUdeviceptr(dst), unsafe.Pointer(&pinned[0]), C.size_t(len(pinned)), s.c))
}

func (s *cudaStream) toHost(pinned []byte, src device.Pointer) error {
	return result("cuMemcpyDtoHAsync", C.cuMemcpyDtoHAsync(unsafe.Pointer(&pinned[0]), C.CUdeviceptr(src), C.size_t(len(pinned)), s.c))
}

func (s *cudaStream) copy(dst, src device.Pointer, bytes uint64) error {
	return cuError("cuMemcpyDtoDAsync", cu.MemcpyDtoDAsync(cu.DevicePtr(dst), cu.DevicePtr(src), int64(bytes), s.s))
}

func (s *cudaStream) fill(dst device.Pointer, value uint32, words uint64) error {
	return result("cuMemsetD32Async", C.cuMemsetD32Async(C.CUdeviceptr(dst), C.uint(value), C.size_t(words), s.c))
}

func (s *cudaStream) note(i int) error {
	return s.recordOne(&s.notes, i, C.CU_EVENT_BLOCKING_SYNC)
}

// recordOne records an event of a list, which has no times and is made where it is not there yet.
func (s *cudaStream) recordOne(list *[]C.CUevent, i int, flags C.uint) error {
	for len(*list) <= i {
		var e C.CUevent
		if err := result("cuEventCreate", C.cuEventCreate(&e, flags|C.CU_EVENT_DISABLE_TIMING)); err != nil {
			return err
		}
		*list = append(*list, e)
	}
	return result("cuEventRecord", C.cuEventRecord((*list)[i], s.c))
}

func (s *cudaStream) reach(i int) error {
	return result("cuEventSynchronize", C.pgaccel_reach(s.notes[i], C.long(spin)))
}

func (s *cudaStream) record(i int) error {
	return s.recordOne(&s.events, i, C.CU_EVENT_DEFAULT)
}

func (s *cudaStream) await(from stream, i int) error {
	return result("cuStreamWaitEvent", C.cuStreamWaitEvent(s.c, from.(*cudaStream).events[i], 0))
}

func (s *cudaStream) mark(i int) error {
	for len(s.marks) <= i {
		e, err := cu.MakeEvent(cu.DefaultEvent)
		if err != nil {
			return cuError("cuEventCreate", err)
		}
		s.marks = append(s.marks, e)
	}
	return cuError("cuEventRecord", s.marks[i].Record(s.s))
}

func (s *cudaStream) wait() error {
	return result("cuStreamSynchronize", C.pgaccel_wait(s.c, s.end, C.long(spin)))
}

func (s *cudaStream) millis(i int) (float64, error) {
	ms, err := s.marks[i-1].Elapsed(s.marks[i])
	return ms, cuError("cuEventElapsedTime", err)
}
