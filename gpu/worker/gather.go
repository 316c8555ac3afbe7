package worker

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"pgaccel/gpu/device"
)

// gatherCode is the kernel that copies many small pieces of host memory.
//
//go:embed gather.cu
var gatherCode string

const (
	gatherFunction = "pgaccel_gather"
	gatherThreads  = 512
	// As few as fill the bus, of 16 warps of 4 KiB each (an H200: 3). What waits for the bus
	// beyond that has others wait for memory, too: with 16 blocks kernels beside took three times as long.
	gatherBlocks = 4

	// gatherMax is the size of a piece from which on a copy of its own is as fast: one costs
	// 2 to 5 us whatever its size, which is 100 to 250 KiB of the bus' time.
	gatherMax = 1 << 20
	// gatherFrom is the number of small pieces in a row from which on a launch is cheaper.
	gatherFrom = 4
	// gatherUnits is the most that one launch copies.
	gatherUnits = 8192
	// gatherEarly is launched without waiting for more where the next piece is not pinned yet.
	gatherEarly = 1 << 20

	unitBytes  = 24 // of a unit as the kernel reads it
	unitLarge  = 16 << 10
	unitSmall  = 4 << 10
	unitsSmall = 8 << 20 // bytes in all below which units are small, so that all warps have some
)

// copyWay says how OpCopyShared copies pinned parts.
type copyWay int32

const (
	copyAuto   copyWay = iota // by gather where there are many small ones
	copySingle                // each by a copy of its own
	copyGather                // all by gather
)

// UseCopies has OpCopyShared copy in one way: "copy" is one of the driver's copies for each
// piece, "gather" a kernel for all pieces, "gather 8" one of so many blocks, "" what is best for
// them. It is for measurements; selftest finds it by this signature. It fails where a device
// cannot do it.
func (e *executor) UseCopies(way string) error {
	w, blocks := copyAuto, 0
	switch kind, number, counted := strings.Cut(way, " "); {
	case way == "":
	case way == "copy":
		w = copySingle
	case kind == "gather":
		w = copyGather
		if counted {
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 {
				return fmt.Errorf("copies by %q are not known", way)
			}
			blocks = n
		}
	default:
		return fmt.Errorf("copies by %q are not known", way)
	}
	e.background.Wait() // for the kernel
	for i, d := range e.devices {
		if w == copyGather && (d.gather.Load() == nil || !d.d.gathers()) {
			return fmt.Errorf("device %d does not gather", i)
		}
	}
	e.copies.Store(int32(w))
	e.blocks.Store(int32(blocks))
	return nil
}

// loadGather compiles the kernel, or takes it from the cache. Until it is there, and where it
// cannot be, pieces are copied one by one.
func (e *executor) loadGather(number int) {
	d := e.devices[number]
	m, err := e.Compile(context.Background(), number, device.Source{Name: "gather", Code: gatherCode})
	var loaded *module
	if err == nil {
		loaded, err = d.modules.acquire(m) // and never released: it stays loaded
	}
	var f uintptr
	if err == nil {
		f, err = d.modules.function(loaded, gatherFunction, 0)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "small pieces of shared memory are copied one by one: %v\n", err)
		return
	}
	d.gather.Store(&f)
}

// readMax is the size up to which a kernel brings back what is read: the wait of a copy
// engine for the kernels before it costs more than reading so much.
const readMax = 4 << 10

// readSmall queues a kernel's copy to pinned memory. It returns false where there is none.
func (r *runner) readSmall(pinned []byte, src device.Pointer) (bool, error) {
	f := r.d.gather.Load()
	if f == nil || len(pinned) > readMax || !r.d.d.gathers() || copyWay(r.e.copies.Load()) == copySingle {
		return false, nil
	}
	var params [40]byte
	binary.LittleEndian.PutUint64(params[8:], 1)
	binary.LittleEndian.PutUint64(params[16:], uint64(src))
	binary.LittleEndian.PutUint64(params[24:], uint64(uintptr(unsafe.Pointer(&pinned[0]))))
	binary.LittleEndian.PutUint64(params[32:], uint64(len(pinned)))
	return true, r.s.launch(*f, [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 0, params[:])
}

// unit is what a warp copies at a time: to a device's address from one of this process.
type unit struct{ from, to, bytes uint64 }

// gatherer collects units for the next launch.
type gatherer struct {
	function uintptr
	units    []unit
	bytes    int // of units
	cut      int // a unit's size
}

// copyShared queues the copies of pieces of a shared file.
func (r *runner) copyShared(f *sharedFile, pieces []device.Piece) error {
	pieces = merged(pieces)
	f.prepare(pieces)
	var g *gatherer
	if function := r.d.gather.Load(); function != nil && r.d.d.gathers() {
		g = r.plan(pieces, *function)
	}
	single := func(p part) error {
		if p.pinned {
			return r.s.toDevice(p.dst, p.mem)
		}
		return r.write(p.dst, p.mem)
	}
	if g == nil {
		return f.parts(pieces, single, nil)
	}
	all := copyWay(r.e.copies.Load()) == copyGather
	err := f.parts(pieces, func(p part) error {
		if !p.pinned || !all && len(p.mem) >= gatherMax {
			return single(p)
		}
		g.add(p)
		if len(g.units) < gatherUnits {
			return nil
		}
		return r.launchGather(g)
	}, func() error {
		if g.bytes < gatherEarly {
			return nil
		}
		return r.launchGather(g)
	})
	if err != nil {
		return err
	}
	return r.launchGather(g)
}

// plan returns a gatherer for pieces, nil where copies of their own are as good.
func (r *runner) plan(pieces []device.Piece, function uintptr) *gatherer {
	small, bytes := 0, int64(0)
	for _, p := range pieces {
		if p.Bytes < gatherMax {
			small++
		}
		bytes += p.Bytes
	}
	way := copyWay(r.e.copies.Load())
	if way == copySingle || way == copyAuto && small < gatherFrom {
		return nil
	}
	r.gather.function, r.gather.units, r.gather.bytes, r.gather.cut = function, r.gather.units[:0], 0, unitLarge
	if bytes < unitsSmall {
		r.gather.cut = unitSmall
	}
	return &r.gather
}

// merged joins pieces that follow each other both in the file and on the device. It
// returns pieces itself where there are none.
func merged(pieces []device.Piece) []device.Piece {
	follows := func(a, b device.Piece) bool {
		return a.Bytes >= 0 && b.Bytes >= 0 && a.Offset+a.Bytes == b.Offset && a.Dst+device.Pointer(a.Bytes) == b.Dst
	}
	n := 0
	for i := 1; i < len(pieces); i++ {
		if follows(pieces[i-1], pieces[i]) {
			n++
		}
	}
	if n == 0 {
		return pieces
	}
	out := make([]device.Piece, 0, len(pieces)-n)
	for i, p := range pieces {
		if i > 0 && follows(out[len(out)-1], p) {
			out[len(out)-1].Bytes += p.Bytes
		} else {
			out = append(out, p)
		}
	}
	return out
}

// add cuts a part into units, at multiples of their size in this process' memory: what is
// read over the bus begins at lines of it.
func (g *gatherer) add(p part) {
	from, to := uint64(uintptr(unsafe.Pointer(&p.mem[0]))), uint64(p.dst)
	cut := uint64(g.cut)
	g.bytes += len(p.mem)
	for left := uint64(len(p.mem)); left > 0; {
		n := min(left, cut-from%cut)
		g.units = append(g.units, unit{from, to, n})
		from, to, left = from+n, to+n, left-n
	}
}

// launchGather queues the copies of the units that were added.
func (r *runner) launchGather(g *gatherer) error {
	for len(g.units) > 0 {
		n := min(len(g.units), gatherUnits)
		list, err := r.stageWhole(n * unitBytes)
		if err != nil {
			return err
		}
		for i, u := range g.units[:n] {
			b := list[i*unitBytes:]
			binary.LittleEndian.PutUint64(b, u.from)
			binary.LittleEndian.PutUint64(b[8:], u.to)
			binary.LittleEndian.PutUint64(b[16:], u.bytes)
		}
		var params [40]byte
		binary.LittleEndian.PutUint64(params[:], uint64(uintptr(unsafe.Pointer(&list[0]))))
		binary.LittleEndian.PutUint64(params[8:], uint64(n))
		most := int(r.e.blocks.Load())
		if most == 0 {
			most = gatherBlocks
		}
		blocks := min(most, (n*32+gatherThreads-1)/gatherThreads)
		if err := r.s.launch(g.function, [3]uint32{uint32(blocks), 1, 1}, [3]uint32{gatherThreads, 1, 1}, 0, params[:]); err != nil {
			return err
		}
		g.units = append(g.units[:0], g.units[n:]...)
	}
	g.bytes = 0
	return nil
}
