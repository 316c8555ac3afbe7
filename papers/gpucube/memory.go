package gpucube

import (
	"context"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"sync"

	"pgaccel/gpu/device"
)

// writeBytes bounds the data of one OpWrite: larger images go in several.
const writeBytes = 16 << 20

// pool keeps device memory that queries gave back, for the next ones: an allocation takes
// longer than most queries run.
type pool struct {
	ex   device.Executor
	dev  int
	most int64 // bytes that are kept

	mu   sync.Mutex
	kept map[int64][]device.Pointer // by bytes
	held int64
}

// block is a piece of device memory.
type block struct {
	at    device.Pointer
	bytes int64
}

// roomFor rounds a size up to one of four in each power of two, so that memory of one query
// fits another.
func roomFor(bytes int64) int64 {
	step := max(int64(1)<<bits.Len64(uint64(max(bytes, 1)-1))/8, 256)
	return (max(bytes, 1) + step - 1) / step * step
}

// get returns a block of at least so many bytes, with any content.
func (p *pool) get(bytes int64) (block, error) {
	bytes = roomFor(bytes)
	p.mu.Lock()
	if kept := p.kept[bytes]; len(kept) > 0 {
		at := kept[len(kept)-1]
		p.kept[bytes] = kept[:len(kept)-1]
		p.held -= bytes
		p.mu.Unlock()
		return block{at, bytes}, nil
	}
	p.mu.Unlock()
	at, err := p.ex.Alloc(p.dev, bytes)
	if device.KindOf(err) == device.FaultMemory {
		if err := p.trim(); err != nil {
			return block{}, err
		}
		at, err = p.ex.Alloc(p.dev, bytes)
	}
	return block{at, bytes}, err
}

// put takes a block back.
func (p *pool) put(b block) error {
	p.mu.Lock()
	if p.held+b.bytes > p.most {
		p.mu.Unlock()
		return p.ex.Free(p.dev, b.at)
	}
	defer p.mu.Unlock()
	p.held += b.bytes
	p.kept[b.bytes] = append(p.kept[b.bytes], b.at)
	return nil
}

// trim gives what is kept back to the device.
func (p *pool) trim() error {
	p.mu.Lock()
	kept := p.kept
	p.kept, p.held = map[int64][]device.Pointer{}, 0
	p.mu.Unlock()
	var errs []error
	for _, all := range kept {
		for _, at := range all {
			errs = append(errs, p.ex.Free(p.dev, at))
		}
	}
	return errors.Join(errs...)
}

// memory is what a query has of the pool, given back together.
type memory struct {
	*pool
	all     []block
	pending []device.Command // writes that the next batch begins with
}

// alloc returns at least one byte of memory.
func (m *memory) alloc(bytes int64) (device.Pointer, error) {
	b, err := m.get(bytes)
	if err != nil {
		return 0, err
	}
	m.all = append(m.all, b)
	return b.at, nil
}

// release gives one piece back.
func (m *memory) release(at device.Pointer) error {
	for i, b := range m.all {
		if b.at == at {
			m.all = slices.Delete(m.all, i, i+1)
			return m.put(b)
		}
	}
	return nil
}

// free gives everything back.
func (m *memory) free() error {
	var errs []error
	for _, b := range m.all {
		errs = append(errs, m.put(b))
	}
	m.all, m.pending = nil, nil
	return errors.Join(errs...)
}

// write reserves memory for an image, which the next batch writes there.
func (m *memory) write(image []byte) (device.Pointer, error) {
	p, err := m.alloc(int64(len(image)))
	if err != nil {
		return 0, err
	}
	for at := 0; at < len(image); at += writeBytes {
		m.pending = append(m.pending, device.Command{Op: device.OpWrite, Dst: p + device.Pointer(at), Data: image[at:min(at+writeBytes, len(image))]})
	}
	return p, nil
}

// run executes a batch after what is pending.
func (m *memory) run(ctx context.Context, commands []device.Command) (*device.Reply, error) {
	r, err := m.ex.Run(ctx, m.dev, &device.Batch{Commands: slices.Concat(m.pending, commands)})
	if err == nil {
		m.pending = nil
	}
	return r, err
}

// image collects arrays that go to the device in one piece.
type image struct{ b []byte }

// align pads to a line, so that arrays begin as Alloc's memory does.
func (m *image) align() int64 {
	for len(m.b)%128 != 0 {
		m.b = append(m.b, 0)
	}
	return int64(len(m.b))
}

func (m *image) u32(values []uint32) int64 {
	at := m.align()
	for _, v := range values {
		m.b = binary.LittleEndian.AppendUint32(m.b, v)
	}
	return at
}

func (m *image) u64(values []uint64) int64 {
	at := m.align()
	for _, v := range values {
		m.b = binary.LittleEndian.AppendUint64(m.b, v)
	}
	return at
}

func (m *image) i64(values []int64) int64 {
	at := m.align()
	for _, v := range values {
		m.b = binary.LittleEndian.AppendUint64(m.b, uint64(v))
	}
	return at
}
