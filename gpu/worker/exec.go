package worker

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/singleflight"
	"golang.org/x/sys/unix"

	"pgaccel/gpu/device"
)

// modulesLoaded bounds each device's modules: the driver keeps their code in device memory.
const modulesLoaded = 512

// compilesMax is how many compilations run at once: each keeps a core busy, and the others are
// for queries, which the processor answers meanwhile.
func compilesMax() int { return min(max(runtime.GOMAXPROCS(0)/4, 2), 8) }

// executor is a device.Executor over drivers.
type executor struct {
	devices  []*execDevice
	infos    []device.Info
	compiler compiler
	cache    cache
	flight   singleflight.Group
	compiles chan struct{}

	mu    sync.Mutex
	files []*sharedFile // number-1

	lost   atomic.Pointer[device.Fault]
	copies atomic.Int32 // a copyWay
	blocks atomic.Int32 // of a gather's launch; 0 is gatherBlocks

	background sync.WaitGroup // what began without being asked for
	closing    chan struct{}
}

// execDevice is one device with its streams.
type execDevice struct {
	d       driver
	arch    string
	modules *modules
	streams [device.Streams]*runner
	gather  atomic.Pointer[uintptr] // the kernel of gather.cu; nil where it is not there
}

var _ device.Executor = (*executor)(nil)

// newExecutor makes the streams of each device.
func newExecutor(drivers []driver, c compiler, images cache) (*executor, error) {
	e := &executor{compiler: c, cache: images, compiles: make(chan struct{}, compilesMax()), closing: make(chan struct{})}
	for _, d := range drivers {
		dev := &execDevice{d: d, arch: d.info().Arch, modules: newModules(d, modulesLoaded)}
		for i := range dev.streams {
			r := &runner{e: e, d: dev, turn: make(chan struct{}, 1)}
			// Copies are what others wait for, and a gather's few blocks take a kernel little.
			urgent := i >= device.Streams-device.CopyStreams
			if err := d.do(func() (err error) { r.s, err = d.stream(urgent); return err }); err != nil {
				return nil, faultOf(err, "", false)
			}
			dev.streams[i] = r
		}
		e.devices = append(e.devices, dev)
		e.infos = append(e.infos, d.info())
	}
	for i, d := range e.devices {
		if d.d.gathers() {
			e.background.Go(func() { e.loadGather(i) })
		}
	}
	return e, nil
}

// Devices implements device.Executor.
func (e *executor) Devices() []device.Info { return e.infos }

// check returns the device with a number, or why no call can be made.
func (e *executor) check(dev int) (*execDevice, error) {
	if f := e.lost.Load(); f != nil {
		return nil, f
	}
	if dev < 0 || dev >= len(e.devices) {
		return nil, &device.Fault{Text: fmt.Sprintf("there is no device %d", dev)}
	}
	return e.devices[dev], nil
}

// failed returns an error as a fault. One of kind Lost is every later call's, too.
func (e *executor) failed(err error, what string, launch bool) error {
	err = faultOf(err, what, launch)
	if f, ok := err.(*device.Fault); ok && f.Kind == device.FaultLost {
		e.lost.CompareAndSwap(nil, f)
	}
	return err
}

// Share implements device.Executor. f may be closed afterwards.
func (e *executor) Share(f *os.File) (device.File, error) {
	if fault := e.lost.Load(); fault != nil {
		return 0, fault
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return 0, &device.Fault{Call: "dup", Text: err.Error()}
	}
	f = os.NewFile(uintptr(fd), f.Name())
	e.mu.Lock()
	defer e.mu.Unlock()
	register := func([]byte) error { return nil }
	if len(e.devices) > 0 {
		register = e.devices[0].d.register
	}
	shared := newSharedFile(f, register)
	e.files = append(e.files, shared)
	limit := int64(0)
	for _, info := range e.infos {
		limit += info.Memory
	}
	e.background.Go(func() { shared.prepareAll(limit, e.closing) })
	return device.File(len(e.files)), nil
}

func (e *executor) file(n device.File) *sharedFile {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n == 0 || int(n) > len(e.files) {
		return nil
	}
	return e.files[n-1]
}

// Alloc implements device.Executor.
func (e *executor) Alloc(dev int, bytes int64) (device.Pointer, error) {
	d, err := e.check(dev)
	if err != nil {
		return 0, err
	}
	if bytes <= 0 {
		return 0, &device.Fault{Call: "cuMemAlloc", Text: fmt.Sprintf("%d bytes", bytes)}
	}
	p, err := d.d.alloc(bytes)
	if err != nil {
		return 0, e.failed(err, "", false)
	}
	return p, nil
}

// Free implements device.Executor.
func (e *executor) Free(dev int, p device.Pointer) error {
	d, err := e.check(dev)
	if err != nil {
		return err
	}
	if err := d.d.free(p); err != nil {
		return e.failed(err, "", false)
	}
	return nil
}

// Compile implements device.Executor. Those who ask for the same source wait for one
// compilation, which goes on where they give up.
func (e *executor) Compile(ctx context.Context, dev int, s device.Source) (device.Module, error) {
	d, err := e.check(dev)
	if err != nil {
		return 0, err
	}
	key := sourceKey(s, d.arch, e.compiler.version(d.arch))
	if m := d.modules.lookup(key); m != 0 {
		return m, nil
	}
	done := e.flight.DoChan(fmt.Sprint(dev, key), func() (any, error) {
		m, err := e.load(d, key, s)
		return m, err
	})
	select {
	case r := <-done:
		m, _ := r.Val.(device.Module)
		return m, r.Err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (e *executor) load(d *execDevice, key string, s device.Source) (device.Module, error) {
	if image := e.cache.get(key); image != nil {
		// An image that the driver no longer takes is compiled again below.
		m, err := d.modules.add(key, s.Name, image)
		if err == nil {
			return m, nil
		}
		if err := e.failed(err, "", false); device.KindOf(err) != device.FaultCompile {
			return 0, err
		}
	}
	e.compiles <- struct{}{}
	image, err := e.compiler.compile(d.arch, s)
	<-e.compiles
	if err != nil {
		return 0, e.failed(err, "source "+s.Name, false)
	}
	m, err := d.modules.add(key, s.Name, image)
	if err != nil {
		return 0, e.failed(err, "source "+s.Name, false)
	}
	if err := e.cache.put(key, image); err != nil {
		fmt.Fprintf(os.Stderr, "cache: %v\n", err)
	}
	return m, nil
}

// Run implements device.Executor.
func (e *executor) Run(ctx context.Context, dev int, b *device.Batch) (*device.Reply, error) {
	d, err := e.check(dev)
	if err != nil {
		return nil, err
	}
	streams, err := b.Check()
	if err != nil {
		return nil, err
	}
	// In ascending order: no two batches wait for each other.
	for _, s := range streams {
		r := d.streams[s]
		select {
		case r.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		defer func() { <-r.turn }()
	}
	var all sides
	for side := range all {
		if s := b.StreamOf(uint8(side)); slices.Contains(streams, s) && (side == 0 || s != b.Stream) {
			all[side] = d.streams[s]
		}
	}
	// On this goroutine: handing a batch to another, which has its thread, and back took
	// longer than a small query's kernel.
	var reply *device.Reply
	err = d.d.do(func() (err error) {
		if f := e.lost.Load(); f != nil {
			return f
		}
		reply, err = all[0].run(b, all)
		return err
	})
	if err != nil {
		return nil, e.failed(err, "", false)
	}
	return reply, ctx.Err()
}

// Close implements device.Executor. No call may be running. Contexts and memory end
// with the process.
func (e *executor) Close() error {
	close(e.closing)
	e.background.Wait()
	e.devices = nil
	for _, f := range e.files {
		f.close()
	}
	e.files = nil
	return nil
}
