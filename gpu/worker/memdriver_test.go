package worker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"pgaccel/gpu/device"
)

// memDriver is a driver whose device memory is Go's. Queued commands take effect at the
// next wait, as they may on a device: memory that is used again too early shows.
type memDriver struct {
	mu         sync.Mutex
	memory     map[device.Pointer][]byte
	next       device.Pointer
	loads      int
	loaded     map[uintptr]string
	registered [][]byte
	noRegister bool
	gather     bool
	gathered   int // launches of gather.cu
	failWait   int // CUresult of the next wait that had a launch of "fails"
	shared     map[uintptr]uint32
	loading    func(image string) // is called at each load; nil: nothing is
}

// memBase is the first of a device's addresses: no process has any there, while Go's heap begins
// anywhere below.
const memBase = 1 << 60

func newMemDriver() *memDriver {
	return &memDriver{memory: map[device.Pointer][]byte{}, next: memBase, loaded: map[uintptr]string{}, shared: map[uintptr]uint32{}}
}

func (d *memDriver) info() device.Info {
	return device.Info{Kind: device.CUDA, Name: "memory", Arch: "sm_90", SharedPerBlock: 200 << 10, Memory: 1 << 40}
}

func (d *memDriver) alloc(n int64) (device.Pointer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n > 1<<32 {
		return 0, &callError{"cuMemAlloc", resultOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"}
	}
	p := d.next
	d.next += device.Pointer(n) + 1<<20
	d.memory[p] = make([]byte, n)
	return p, nil
}

func (d *memDriver) free(p device.Pointer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.memory[p] == nil {
		return &callError{"cuMemFree", resultInvalidValue, "CUDA_ERROR_INVALID_VALUE"}
	}
	delete(d.memory, p)
	return nil
}

func (d *memDriver) at(p device.Pointer, n uint64) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	for base, m := range d.memory {
		if base <= p && uint64(p-base)+n <= uint64(len(m)) {
			return m[p-base:][:n]
		}
	}
	panic(fmt.Sprintf("%#x is nowhere", p))
}

func (d *memDriver) pinned(n int) ([]byte, error) { return make([]byte, n), nil }

func (d *memDriver) register(b []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.noRegister {
		return &callError{"cuMemHostRegister", 801, "CUDA_ERROR_NOT_SUPPORTED"}
	}
	d.registered = append(d.registered, b)
	return nil
}

// isRegistered says whether all of b lies in one registration.
func (d *memDriver) isRegistered(b []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := uintptr(unsafe.Pointer(&b[0]))
	for _, r := range d.registered {
		if begin := uintptr(unsafe.Pointer(&r[0])); begin <= at && at+uintptr(len(b)) <= begin+uintptr(len(r)) {
			return true
		}
	}
	return false
}

func (d *memDriver) load(image []byte) (uintptr, error) {
	if d.loading != nil {
		d.loading(string(image))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if bytes.HasPrefix(image, []byte("bad")) {
		return 0, &callError{"cuModuleLoadData", 200, "CUDA_ERROR_INVALID_IMAGE"}
	}
	d.loads++
	d.loaded[uintptr(d.loads)] = string(image)
	return uintptr(d.loads), nil
}

func (d *memDriver) unload(m uintptr) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.loaded[m] == "" {
		panic("a module is unloaded twice")
	}
	delete(d.loaded, m)
	return nil
}

func (d *memDriver) function(m uintptr, name string) (uintptr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.loaded[m] == "" {
		panic("a function of an unloaded module")
	}
	switch name {
	case "none":
		return 0, &callError{"cuModuleGetFunction", resultNotFound, "CUDA_ERROR_NOT_FOUND"}
	case "fails":
		return m<<8 | 1, nil
	case gatherFunction:
		return m<<8 | 2, nil
	}
	return m << 8, nil
}

func (d *memDriver) allowShared(f uintptr, n uint32) error {
	if n > 200<<10 {
		return &callError{"cuFuncSetAttribute", resultInvalidValue, "CUDA_ERROR_INVALID_VALUE"}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shared[f] = n
	return nil
}

func (d *memDriver) gathers() bool { return d.gather }

func (d *memDriver) do(f func() error) error { return f() }

func (d *memDriver) stream(bool) (stream, error) { return &memStream{d: d}, nil }

type memStream struct {
	d      *memDriver
	queued []func()
	done   int // of all that was queued
	notes  [2]int
	events [device.Events]int
	fail   int
}

// end is how much was queued so far.
func (s *memStream) end() int { return s.done + len(s.queued) }

// runTo does what was queued up to there, and what that awaits of other streams.
func (s *memStream) runTo(end int) {
	for s.done < end {
		f := s.queued[0]
		s.queued = s.queued[1:]
		s.done++
		f()
	}
}

func (s *memStream) launch(f uintptr, grid, block [3]uint32, shared uint32, params []byte) error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.d.loaded[f>>8] == "" {
		panic("a launch from an unloaded module")
	}
	const declared = 16 << 10 // by the function itself: without asking, 48 KiB are for both
	if grid[0] == 0 || shared > max(s.d.shared[f], 48<<10-declared) {
		return &callError{"cuLaunchKernel", resultInvalidValue, "CUDA_ERROR_INVALID_VALUE"}
	}
	if f&1 != 0 {
		s.fail = s.d.failWait
	}
	if f&2 != 0 {
		s.d.gathered++
		s.queued = append(s.queued, s.d.gatherUnits(params))
	}
	return nil
}

// gatherUnits does what gather.cu does.
func (d *memDriver) gatherUnits(params []byte) func() {
	at := func(p, n uint64) []byte {
		if p >= memBase {
			return d.at(device.Pointer(p), n)
		}
		return unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), n)
	}
	units := []unit{*(*unit)(unsafe.Pointer(&params[16]))}
	if list := *(*unsafe.Pointer)(unsafe.Pointer(&params[0])); list != nil {
		units = unsafe.Slice((*unit)(list), binary.LittleEndian.Uint64(params[8:]))
	}
	return func() {
		for _, u := range units {
			copy(at(u.to, u.bytes), at(u.from, u.bytes))
		}
	}
}

func (s *memStream) toDevice(dst device.Pointer, pinned []byte) error {
	to := s.d.at(dst, uint64(len(pinned)))
	s.queued = append(s.queued, func() { copy(to, pinned) })
	return nil
}

func (s *memStream) toHost(pinned []byte, src device.Pointer) error {
	from := s.d.at(src, uint64(len(pinned)))
	s.queued = append(s.queued, func() { copy(pinned, from) })
	return nil
}

func (s *memStream) copy(dst, src device.Pointer, n uint64) error {
	to, from := s.d.at(dst, n), s.d.at(src, n)
	s.queued = append(s.queued, func() { copy(to, from) })
	return nil
}

func (s *memStream) fill(dst device.Pointer, value uint32, words uint64) error {
	to := s.d.at(dst, 4*words)
	s.queued = append(s.queued, func() {
		for i := range to {
			to[i] = byte(value >> (8 * (i % 4)))
		}
	})
	return nil
}

func (s *memStream) note(i int) error {
	s.notes[i] = s.end()
	return nil
}

func (s *memStream) reach(i int) error {
	s.runTo(s.notes[i])
	return nil
}

func (s *memStream) record(i int) error {
	s.events[i] = s.end()
	return nil
}

func (s *memStream) await(from stream, i int) error {
	other := from.(*memStream)
	end := other.events[i] // of now: it may be recorded again
	s.queued = append(s.queued, func() { other.runTo(end) })
	return nil
}

func (s *memStream) mark(int) error { return nil }

func (s *memStream) wait() error {
	s.runTo(s.end())
	if s.fail != 0 {
		return &callError{"cuStreamSynchronize", s.fail, "CUDA_ERROR_ILLEGAL_ADDRESS"}
	}
	return nil
}

func (s *memStream) millis(i int) (float64, error) { return float64(i), nil }

// memCompiler's image is the source's code.
type memCompiler struct {
	compiled atomic.Int32
	block    chan struct{}
}

func (c *memCompiler) version(arch string) string { return "mem 1 " + arch }

func (c *memCompiler) compile(arch string, s device.Source) ([]byte, error) {
	c.compiled.Add(1)
	if c.block != nil {
		<-c.block
	}
	if s.Code == "#error" {
		return nil, &device.Fault{Kind: device.FaultCompile, Call: "mem", Text: "#error"}
	}
	return []byte(s.Code), nil
}

func newTestExecutor(t *testing.T, d *memDriver, images cache) (*executor, *memCompiler) {
	t.Helper()
	c := &memCompiler{}
	e, err := newExecutor([]driver{d}, c, images)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e, c
}
