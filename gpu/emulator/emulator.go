//go:build linux && cgo

package emulator

// #cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
// #cgo LDFLAGS: -ldl -lpthread
// #include <stdlib.h>
// #include "runtime.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"pgaccel/gpu/device"
)

// Emulator is a device.Executor. Its devices share their OS threads.
type Emulator struct {
	opt      Options
	compiler *compiler
	dir      string
	ownDir   bool
	pool     *C.pgemu_pool
	lost     atomic.Pointer[device.Fault]
	running  sync.RWMutex // Run holds it shared: Close and Free of nothing that runs
	closed   bool

	mu      sync.Mutex
	devices []*memory
	files   []*os.File
	modules map[string]*module // by hash
	byID    []*module
}

// module is a loaded shared object.
type module struct {
	id    device.Module
	ready sync.Mutex // held while it is being compiled
	c     *C.pgemu_module
}

// New starts an emulator.
func New(opt Options) (*Emulator, error) {
	opt.defaults(runtime.NumCPU())
	compiler, err := findCompiler()
	if err != nil {
		return nil, err
	}
	e := &Emulator{opt: opt, compiler: compiler, dir: opt.Dir, modules: make(map[string]*module)}
	if e.dir == "" {
		if e.dir, err = os.MkdirTemp("", "pgaccel-emulator-"); err != nil {
			return nil, fault(device.FaultUnavailable, "emulator", err.Error())
		}
		e.ownDir = true
	} else if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return nil, fault(device.FaultUnavailable, "emulator", err.Error())
	}
	if e.dir, err = filepath.Abs(e.dir); err != nil { // a path without a slash would be searched for
		return nil, fault(device.FaultUnavailable, "emulator", err.Error())
	}
	for range opt.Devices {
		e.devices = append(e.devices, newMemory(opt.Memory))
	}
	var text *C.char
	if e.pool = C.pgemu_open(C.int(opt.Workers), sharedPerBlock, &text); e.pool == nil {
		return nil, fault(device.FaultUnavailable, "emulator", goText(text))
	}
	return e, nil
}

func goText(text *C.char) string {
	defer C.free(unsafe.Pointer(text))
	return C.GoString(text)
}

// Devices implements device.Executor.
func (e *Emulator) Devices() []device.Info {
	infos := make([]device.Info, e.opt.Devices)
	for i := range infos {
		infos[i] = device.Info{
			Kind: device.Emulator, Name: "pgaccel block emulator", Arch: "emu", Driver: e.compiler.version,
			SMs: e.opt.SMs, ThreadsPerSM: 2048, SharedPerBlock: sharedPerBlock, SharedPerSM: sharedPerSM,
			L2: 1 << 20, Memory: e.opt.Memory, Free: e.opt.Memory,
		}
	}
	return infos
}

// check returns why nothing can be done on a device.
func (e *Emulator) check(call string, dev int) error {
	if lost := e.lost.Load(); lost != nil {
		return lost
	}
	if e.closed {
		return fault(device.FaultLost, call, "the emulator was closed")
	}
	if dev < 0 || dev >= len(e.devices) {
		return fault(device.FaultOther, call, fmt.Sprintf("there is no device %d", dev))
	}
	return nil
}

// Share implements device.Executor.
func (e *Emulator) Share(f *os.File) (device.File, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.check("share", 0); err != nil {
		return 0, err
	}
	own, err := duplicate(f)
	if err != nil {
		return 0, fault(device.FaultOther, "share", err.Error())
	}
	e.files = append(e.files, own)
	return device.File(len(e.files)), nil
}

// Alloc implements device.Executor.
func (e *Emulator) Alloc(dev int, bytes int64) (device.Pointer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.check("alloc", dev); err != nil {
		return 0, err
	}
	if e.opt.FailAlloc != nil && e.opt.FailAlloc(bytes) {
		return 0, fault(device.FaultMemory, "alloc", fmt.Sprintf("%d bytes: a failure that was asked for", bytes))
	}
	return e.devices[dev].alloc(bytes)
}

// Free implements device.Executor.
func (e *Emulator) Free(dev int, p device.Pointer) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.check("free", dev); err != nil {
		return err
	}
	err := e.devices[dev].free(p)
	if device.KindOf(err) == device.FaultLost {
		e.lose(err)
	}
	return err
}

// lose has everything fail from now on.
func (e *Emulator) lose(err error) {
	var f *device.Fault
	if errors.As(err, &f) {
		e.lost.CompareAndSwap(nil, f)
	}
}

// Compile implements device.Executor.
func (e *Emulator) Compile(ctx context.Context, dev int, s device.Source) (device.Module, error) {
	hash := e.compiler.hash(s)
	e.mu.Lock()
	if err := e.check("compile", dev); err != nil {
		e.mu.Unlock()
		return 0, err
	}
	m := e.modules[hash]
	if m == nil {
		m = &module{id: device.Module(len(e.byID) + 1)}
		e.modules[hash] = m
		e.byID = append(e.byID, m)
	}
	e.mu.Unlock()

	m.ready.Lock()
	defer m.ready.Unlock()
	if m.c != nil {
		return m.id, nil
	}
	path := filepath.Join(e.dir, hash+".so")
	if err := e.compiler.compile(ctx, s, path); err != nil {
		return 0, err
	}
	if err := keepSource(s, hash); err != nil {
		return 0, err
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var text *C.char
	c := C.pgemu_load(name, &text)
	if c == nil {
		return 0, fault(device.FaultOther, "dlopen "+s.Name, goText(text))
	}
	e.mu.Lock()
	m.c = c
	e.mu.Unlock()
	return m.id, nil
}

// Run implements device.Executor.
func (e *Emulator) Run(ctx context.Context, dev int, b *device.Batch) (*device.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.running.RLock()
	defer e.running.RUnlock()
	e.mu.Lock()
	err := e.check("run", dev)
	e.mu.Unlock()
	if err != nil {
		return nil, err
	}
	streams, err := b.Check()
	if err != nil {
		return nil, err
	}
	for _, s := range streams { // in ascending order: no two batches wait for each other
		stream := &e.devices[dev].streams[s]
		stream.Lock()
		defer stream.Unlock()
	}
	if e.opt.Delay > 0 {
		time.Sleep(e.opt.Delay)
	}
	reply := &device.Reply{}
	var mark time.Time
	for i := range b.Commands {
		if lost := e.lost.Load(); lost != nil {
			return nil, lost
		}
		c := &b.Commands[i]
		switch c.Op {
		case device.OpRecord, device.OpAwait:
			continue // commands are executed as they stand
		case device.OpMark:
			now := time.Now()
			if !mark.IsZero() {
				reply.Millis = append(reply.Millis, float64(now.Sub(mark).Nanoseconds())/1e6)
			}
			mark = now
			continue
		}
		if err := e.do(dev, c, reply); err != nil {
			if device.KindOf(err) == device.FaultLost {
				e.lose(err)
			}
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return reply, nil
}

// do executes one command.
func (e *Emulator) do(dev int, c *device.Command, reply *device.Reply) error {
	span := func(call string, p device.Pointer, bytes uint64) ([]byte, error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.devices[dev].span(call, p, bytes)
	}
	switch c.Op {
	case device.OpLaunch:
		if err := e.launch(c); err != nil {
			return err
		}
		e.mu.Lock()
		text := e.devices[dev].overrun()
		e.mu.Unlock()
		if text != "" { // it, or one that ran beside it
			return fault(device.FaultLost, "kernel "+c.Function, text)
		}
	case device.OpCopyShared:
		e.mu.Lock()
		if c.File == 0 || int(c.File) > len(e.files) {
			e.mu.Unlock()
			return fault(device.FaultOther, "copy shared", fmt.Sprintf("there is no file %d", c.File))
		}
		f := e.files[c.File-1]
		e.mu.Unlock()
		for _, p := range c.Pieces {
			if p.Bytes < 0 || p.Offset < 0 {
				return fault(device.FaultOther, "copy shared", "a piece with a negative offset or length")
			}
			to, err := span("copy shared", p.Dst, uint64(p.Bytes))
			if err != nil {
				return err
			}
			if n, err := f.ReadAt(to, p.Offset); n < len(to) {
				return fault(device.FaultOther, "copy shared", fmt.Sprintf("%d bytes at offset %d of file %d: %v", p.Bytes, p.Offset, c.File, err))
			}
		}
	case device.OpWrite:
		to, err := span("write", c.Dst, uint64(len(c.Data)))
		if err != nil {
			return err
		}
		copy(to, c.Data)
	case device.OpCopy:
		to, err := span("copy", c.Dst, c.Bytes)
		if err != nil {
			return err
		}
		from, err := span("copy", c.Src, c.Bytes)
		if err != nil {
			return err
		}
		copy(to, from)
	case device.OpFill:
		to, err := span("fill", c.Dst, c.Bytes)
		if err != nil {
			return err
		}
		if c.Bytes%4 != 0 || c.Dst%4 != 0 {
			return fault(device.FaultOther, "fill", "not of whole words")
		}
		fill(to, c.Value)
	case device.OpRead:
		from, err := span("read", c.Src, c.Bytes)
		if err != nil {
			return err
		}
		reply.Data = append(reply.Data, slices.Clone(from))
	default:
		return fault(device.FaultOther, "run", fmt.Sprintf("there is no operation %d", c.Op))
	}
	return nil
}

// launch runs a kernel.
func (e *Emulator) launch(c *device.Command) error {
	call := "kernel " + c.Function
	e.mu.Lock()
	var m *C.pgemu_module
	if c.Module > 0 && int(c.Module) <= len(e.byID) {
		m = e.byID[c.Module-1].c
	}
	e.mu.Unlock()
	if m == nil {
		return fault(device.FaultLaunch, call, fmt.Sprintf("there is no module %d", c.Module))
	}
	name := C.CString(c.Function)
	defer C.free(unsafe.Pointer(name))
	k := C.pgemu_find(m, name)
	if k == nil {
		return fault(device.FaultLaunch, call, "the module has no such kernel")
	}
	if e.opt.FailLaunch != nil && e.opt.FailLaunch(c.Function) {
		return fault(device.FaultLaunch, call, "a failure that was asked for")
	}
	if want := (int(k.params) + 7) &^ 7; len(c.Params) != want {
		return fault(device.FaultLaunch, call, fmt.Sprintf("its parameter has %d bytes, and %d were given", want, len(c.Params)))
	}
	params := make([]uint64, max(1, (len(c.Params)+7)/8)) // aligned
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&params[0])), len(params)*8), c.Params)
	grid := C.pgemu_dim{C.uint(c.Grid[0]), C.uint(c.Grid[1]), C.uint(c.Grid[2])}
	block := C.pgemu_dim{C.uint(c.Block[0]), C.uint(c.Block[1]), C.uint(c.Block[2])}
	var f C.pgemu_fault
	C.pgemu_run(e.pool, k, grid, block, C.uint(c.Shared), unsafe.Pointer(&params[0]), C.long(e.opt.Limit.Milliseconds()), &f)
	if f.kind == C.PGEMU_OK {
		return nil
	}
	return e.describe(&f)
}

// describe makes a fault of what the runtime noted.
func (e *Emulator) describe(f *C.pgemu_fault) error {
	call := "kernel " + C.GoString(f.kernel)
	text := C.GoString(&f.text[0])
	kind := device.FaultLaunch
	switch f.kind {
	case C.PGEMU_CRASH:
		kind = device.FaultLost
		if text == "" {
			text = e.crash(f)
		}
	case C.PGEMU_LIMIT:
		kind = device.FaultLost
		text = fmt.Sprintf("ran longer than %v", e.opt.Limit)
	}
	if f.kind != C.PGEMU_CHILD || f.pc != 0 {
		text += fmt.Sprintf("; block (%d,%d,%d), thread (%d,%d,%d)",
			f.block.x, f.block.y, f.block.z, f.thread.x, f.thread.y, f.thread.z)
	}
	var offset C.uintptr_t
	if object := C.pgemu_where(f.pc, &offset); object != nil {
		if f.kind != C.PGEMU_CRASH && offset > 0 {
			offset-- // from where the call returns into the call
		}
		if at := line(C.GoString(object), uint64(offset)); at != "" {
			text += ", at " + at
		}
	}
	return fault(kind, call, text)
}

// crash says what a signal means.
func (e *Emulator) crash(f *C.pgemu_fault) string {
	switch int32(f.signal) {
	case sigill, sigtrap:
		if !dividesTrap {
			return "an index outside of its array, a pointer that is not aligned, a shift by too much, or a division by zero"
		}
		return "an index outside of its array, a pointer that is not aligned, or a shift by too much"
	case sigfpe:
		return "a division by zero"
	}
	address := uint64(f.address)
	e.mu.Lock()
	defer e.mu.Unlock()
	for dev, m := range e.devices {
		if text := m.near(address); text != "" {
			if len(e.devices) > 1 {
				text += fmt.Sprintf(" of device %d", dev)
			}
			return "an access outside of its memory, at " + text
		}
	}
	return fmt.Sprintf("an access outside of its memory, at %#x", address)
}

// Close implements device.Executor. It waits for batches that run.
func (e *Emulator) Close() error {
	e.running.Lock()
	defer e.running.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	C.pgemu_close(e.pool)
	for _, m := range e.devices {
		m.close()
	}
	for _, f := range e.files {
		f.Close()
	}
	if e.ownDir {
		return os.RemoveAll(e.dir)
	}
	return nil
}
