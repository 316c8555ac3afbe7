package worker

import (
	"fmt"
	"runtime"
	"strings"

	"pgaccel/gpu/device"
)

// stagingBytes is the pinned memory of a stream, through which go OpWrite's and OpRead's
// data and what of a shared file could not be pinned.
const stagingBytes = 8 << 20

// stagingAlign keeps copies on the boundaries that the bus likes.
const stagingAlign = 256

// job is a batch on its way through a stream.
type job struct {
	batch *device.Batch
	reply *device.Reply
	err   error
	done  chan struct{}
}

// runner executes the batches of one stream, one after the other.
type runner struct {
	e       *executor
	d       *execDevice
	s       stream
	staging []byte // nil before the first use
	used    int    // bytes of staging that queued commands read or write
	reads   []pendingRead
}

// pendingRead is data that lies in staging memory after the next wait.
type pendingRead struct{ to, from []byte }

// serve is a stream's goroutine: CUDA's context belongs to the thread.
func (d *execDevice) serve(e *executor, jobs <-chan *job, ready chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s, err := d.d.stream()
	ready <- err
	if err != nil {
		return
	}
	r := &runner{e: e, d: d, s: s}
	for j := range jobs {
		if f := e.lost.Load(); f != nil {
			j.err = f
		} else {
			j.reply, j.err = r.run(j.batch)
		}
		close(j.done)
	}
}

// resolved is an OpLaunch with its function found.
type resolved struct {
	module   *module
	function uintptr
}

func (r *runner) run(b *device.Batch) (*device.Reply, error) {
	launches, err := r.resolve(b)
	defer func() {
		for _, l := range launches {
			r.d.modules.release(l.module)
		}
	}()
	if err != nil {
		return nil, err
	}
	reply := &device.Reply{}
	marks := 0
	err = r.queue(b, launches, reply, &marks)
	// What was queued before an error ends before its memory is used for something else.
	if waited := r.flush(); err == nil && waited != nil {
		err = r.e.failed(waited, kernels(b), true)
	}
	if err != nil {
		return nil, err
	}
	for i := 1; i < marks; i++ {
		ms, err := r.s.millis(i)
		if err != nil {
			return nil, r.e.failed(err, "", false)
		}
		reply.Millis = append(reply.Millis, ms)
	}
	return reply, nil
}

// kernels names what may have failed while a batch ran.
func kernels(b *device.Batch) string {
	var names []string
	for i := range b.Commands {
		if c := &b.Commands[i]; c.Op == device.OpLaunch && (len(names) == 0 || names[len(names)-1] != c.Function) {
			names = append(names, c.Function)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "kernel " + names[0]
	}
	return "one of kernels " + strings.Join(names, ", ")
}

// resolve finds the functions of a batch, whose modules stay loaded until they are released.
// Nothing was queued where it fails.
func (r *runner) resolve(b *device.Batch) ([]resolved, error) {
	var launches []resolved
	for i := range b.Commands {
		c := &b.Commands[i]
		if c.Op != device.OpLaunch {
			continue
		}
		m, err := r.d.modules.acquire(c.Module)
		if err != nil {
			return launches, r.e.failed(err, "kernel "+c.Function, true)
		}
		launches = append(launches, resolved{module: m})
		f, err := r.d.modules.function(m, c.Function, c.Shared)
		if err != nil {
			return launches, r.e.failed(err, "kernel "+c.Function, true)
		}
		launches[len(launches)-1].function = f
	}
	return launches, nil
}

func (r *runner) queue(b *device.Batch, launches []resolved, reply *device.Reply, marks *int) error {
	for i := range b.Commands {
		c := &b.Commands[i]
		var err error
		switch c.Op {
		case device.OpLaunch:
			err = r.s.launch(launches[0].function, c.Grid, c.Block, c.Shared, c.Params)
			launches = launches[1:]
			if err != nil {
				return r.e.failed(err, "kernel "+c.Function, true)
			}
		case device.OpCopyShared:
			f := r.e.file(c.File)
			if f == nil {
				return &device.Fault{Call: "copy of a shared file", Text: fmt.Sprintf("there is no file %d", c.File)}
			}
			f.prepare(c.Pieces)
			err = f.parts(c.Pieces, func(p part) error {
				if p.pinned {
					return r.s.toDevice(p.dst, p.mem)
				}
				return r.write(p.dst, p.mem)
			})
		case device.OpWrite:
			err = r.write(c.Dst, c.Data)
		case device.OpCopy:
			if c.Bytes > 0 {
				err = r.s.copy(c.Dst, c.Src, c.Bytes)
			}
		case device.OpFill:
			if c.Bytes%4 != 0 {
				return &device.Fault{Call: "fill", Text: fmt.Sprintf("%d bytes are no whole words", c.Bytes)}
			}
			if c.Bytes > 0 {
				err = r.s.fill(c.Dst, c.Value, c.Bytes/4)
			}
		case device.OpRead:
			if c.Bytes > maxRaw {
				return &device.Fault{Call: "read", Text: fmt.Sprintf("%d bytes", c.Bytes)}
			}
			data := make([]byte, c.Bytes)
			reply.Data = append(reply.Data, data)
			err = r.read(data, c.Src)
		case device.OpMark:
			err = r.s.mark(*marks)
			*marks++
		default:
			return &device.Fault{Text: fmt.Sprintf("there is no command %d", c.Op)}
		}
		if err != nil {
			return r.e.failed(err, "", false)
		}
	}
	return nil
}

// stage returns up to n bytes of staging memory, after waiting for what uses it where
// there is none left.
func (r *runner) stage(n int) ([]byte, error) {
	if r.staging == nil {
		b, err := r.d.d.pinned(stagingBytes)
		if err != nil {
			return nil, err
		}
		r.staging = b
	}
	if r.used == len(r.staging) {
		if err := r.flush(); err != nil {
			return nil, err
		}
	}
	n = min(n, len(r.staging)-r.used)
	b := r.staging[r.used : r.used+n]
	r.used = min((r.used+n+stagingAlign-1)&^(stagingAlign-1), len(r.staging))
	return b, nil
}

func (r *runner) write(dst device.Pointer, data []byte) error {
	for len(data) > 0 {
		b, err := r.stage(len(data))
		if err != nil {
			return err
		}
		copy(b, data)
		if err := r.s.toDevice(dst, b); err != nil {
			return err
		}
		data, dst = data[len(b):], dst+device.Pointer(len(b))
	}
	return nil
}

func (r *runner) read(data []byte, src device.Pointer) error {
	for len(data) > 0 {
		b, err := r.stage(len(data))
		if err != nil {
			return err
		}
		if err := r.s.toHost(b, src); err != nil {
			return err
		}
		r.reads = append(r.reads, pendingRead{data[:len(b)], b})
		data, src = data[len(b):], src+device.Pointer(len(b))
	}
	return nil
}

// flush waits for all that was queued, and empties the staging memory.
func (r *runner) flush() error {
	err := r.s.wait()
	if err == nil {
		for _, p := range r.reads {
			copy(p.to, p.from)
		}
	}
	clear(r.reads)
	r.reads, r.used = r.reads[:0], 0
	return err
}
