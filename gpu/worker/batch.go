package worker

import (
	"fmt"
	"strings"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/internal/bulk"
)

// stagingBytes is a half of the pinned memory of a stream, through which go OpWrite's and
// OpRead's data and what of a shared file could not be pinned. While the device copies from
// or to one half the other is filled or emptied.
const stagingBytes = 8 << 20

// stagingAlign keeps copies on the boundaries that the bus likes.
const stagingAlign = 256

// runner executes the batches of one stream, one after the other.
type runner struct {
	e      *executor
	d      *execDevice
	s      stream
	turn   chan struct{} // has room while no batch runs
	halves [2]half
	at     int // the half that is in use
	gather gatherer
}

// half is one half of a stream's staging memory.
type half struct {
	mem    []byte // nil before the first use
	used   int    // bytes that queued commands read or write
	reads  []pendingRead
	queued bool // the other half is in use since: the stream's event has this half's number
}

// pendingRead is data that lies in staging memory once the stream has come so far.
type pendingRead struct{ to, from []byte }

// finish copies what was read to where it belongs, after the stream has come so far.
func (h *half) finish() {
	for _, p := range h.reads {
		copy(p.to, p.from)
	}
	h.drop()
}

func (h *half) drop() {
	clear(h.reads)
	h.reads, h.used, h.queued = h.reads[:0], 0, false
}

// resolved is an OpLaunch with its function found.
type resolved struct {
	module   *module
	function uintptr
}

// sides are the runners of a batch by Command.Side; nil where it has no commands for one.
type sides [1 + device.CopyStreams]*runner

// run executes a batch.
func (r *runner) run(b *device.Batch, all sides) (*device.Reply, error) {
	began := time.Now()
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
	err = r.queue(b, all, launches, reply, &marks)
	reply.Enqueue = time.Since(began)
	// What was queued before an error ends before its memory is used for something else. Copies
	// end first, while this thread may sleep; it looks for the end of the kernels after them.
	var waited error
	for i := range all {
		if s := all[(i+1)%len(all)]; s != nil {
			if w := s.flush(); waited == nil {
				waited = w
			}
		}
	}
	if err == nil && waited != nil {
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

func (r *runner) queue(b *device.Batch, all sides, launches []resolved, reply *device.Reply, marks *int) error {
	var recorded [device.Events]stream
	for i := range b.Commands {
		c := &b.Commands[i]
		r := all[c.Side]
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
			err = r.copyShared(f, c.Pieces)
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
			data := bulk.Bytes(int(c.Bytes))
			reply.Data = append(reply.Data, data)
			err = r.read(data, c.Src)
		case device.OpMark:
			err = r.s.mark(*marks)
			*marks++
		case device.OpRecord:
			err = r.s.record(int(c.Event))
			recorded[c.Event] = r.s
		case device.OpAwait:
			err = r.s.await(recorded[c.Event], int(c.Event))
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
	h := &r.halves[r.at]
	if h.mem == nil {
		b, err := r.d.d.pinned(stagingBytes)
		if err != nil {
			return nil, err
		}
		h.mem = b
	}
	if h.used == len(h.mem) {
		if err := r.turnOver(); err != nil {
			return nil, err
		}
		return r.stage(n)
	}
	n = min(n, len(h.mem)-h.used)
	b := h.mem[h.used : h.used+n]
	h.used = min((h.used+n+stagingAlign-1)&^(stagingAlign-1), len(h.mem))
	return b, nil
}

// stageWhole is stage for n bytes at once, at most stagingBytes.
func (r *runner) stageWhole(n int) ([]byte, error) {
	if h := &r.halves[r.at]; h.mem != nil && len(h.mem)-h.used < n {
		if err := r.turnOver(); err != nil {
			return nil, err
		}
	}
	return r.stage(n)
}

// turnOver goes on with the other half of the staging memory, when it is free.
func (r *runner) turnOver() error {
	if err := r.s.note(r.at); err != nil {
		return err
	}
	r.halves[r.at].queued = true
	r.at = 1 - r.at
	h := &r.halves[r.at]
	if !h.queued {
		return nil
	}
	if err := r.s.reach(r.at); err != nil {
		return err
	}
	h.finish()
	return nil
}

// stagePart is the most that a write or read has in one copy: the device copies a part
// while the next is brought.
const stagePart = stagingBytes / 4

func (r *runner) write(dst device.Pointer, data []byte) error {
	for len(data) > 0 {
		b, err := r.stage(min(len(data), stagePart))
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
		if done, err := r.readSmall(b, src); err != nil {
			return err
		} else if !done {
			if err := r.s.toHost(b, src); err != nil {
				return err
			}
		}
		h := &r.halves[r.at]
		h.reads = append(h.reads, pendingRead{data[:len(b)], b})
		data, src = data[len(b):], src+device.Pointer(len(b))
	}
	return nil
}

// flush waits for all that was queued, and empties the staging memory.
func (r *runner) flush() error {
	// The older half is emptied while the device still fills the other.
	if h := &r.halves[1-r.at]; h.queued && len(h.reads) > 0 && r.s.reach(1-r.at) == nil {
		h.finish()
	}
	err := r.s.wait()
	for i := range r.halves {
		if err == nil {
			r.halves[i].finish()
		} else {
			r.halves[i].drop()
		}
	}
	return err
}
