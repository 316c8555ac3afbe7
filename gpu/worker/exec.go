package worker

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/singleflight"
	"golang.org/x/sys/unix"

	"pgaccel/gpu/device"
)

// Limits of the executor.
const (
	modulesLoaded = 512 // per device; the driver keeps each one's code in device memory
	compilesMax   = 2   // at once: a compilation keeps one core busy
)

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

	lost atomic.Pointer[device.Fault]
}

// execDevice is one device with its streams.
type execDevice struct {
	d       driver
	arch    string
	modules *modules
	queues  [device.Streams]chan *job
	ended   sync.WaitGroup
}

var _ device.Executor = (*executor)(nil)

// newExecutor starts a goroutine for each stream of each device.
func newExecutor(drivers []driver, c compiler, images cache) (*executor, error) {
	e := &executor{compiler: c, cache: images, compiles: make(chan struct{}, compilesMax)}
	for _, d := range drivers {
		dev := &execDevice{d: d, arch: d.info().Arch, modules: newModules(d, modulesLoaded)}
		e.devices = append(e.devices, dev)
		e.infos = append(e.infos, d.info())
		for i := range dev.queues {
			dev.queues[i] = make(chan *job)
			ready := make(chan error)
			dev.ended.Go(func() { dev.serve(e, dev.queues[i], ready) })
			if err := <-ready; err != nil {
				close(dev.queues[i])
				for j := range i {
					close(dev.queues[j])
				}
				e.devices = e.devices[:len(e.devices)-1]
				_ = e.Close()
				return nil, faultOf(err, "", false)
			}
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
	e.files = append(e.files, newSharedFile(f, register))
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
	if b.Stream < 0 || b.Stream >= device.Streams {
		return nil, &device.Fault{Text: fmt.Sprintf("there is no stream %d", b.Stream)}
	}
	j := &job{batch: b, done: make(chan struct{})}
	select {
	case d.queues[b.Stream] <- j:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	<-j.done
	if j.err != nil {
		return nil, j.err
	}
	return j.reply, ctx.Err()
}

// Close implements device.Executor. No call may be running. Contexts and memory end
// with the process.
func (e *executor) Close() error {
	for _, d := range e.devices {
		for _, q := range d.queues {
			close(q)
		}
		d.ended.Wait()
	}
	e.devices = nil
	for _, f := range e.files {
		f.close()
	}
	e.files = nil
	return nil
}
