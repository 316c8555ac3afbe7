package cube

import (
	"context"
	"encoding/binary"
	"errors"

	"pgaccel/gpu/device"
)

// writeBytes bounds the data of one OpWrite: larger images go in several.
const writeBytes = 16 << 20

// memory is device memory that is given back together.
type memory struct {
	ex  device.Executor
	dev int
	all []device.Pointer
}

// alloc returns at least one byte of memory.
func (m *memory) alloc(bytes int64) (device.Pointer, error) {
	p, err := m.ex.Alloc(m.dev, max(bytes, 1))
	if err == nil {
		m.all = append(m.all, p)
	}
	return p, err
}

// free gives everything back.
func (m *memory) free() error {
	var errs []error
	for _, p := range m.all {
		errs = append(errs, m.ex.Free(m.dev, p))
	}
	m.all = nil
	return errors.Join(errs...)
}

// put allocates memory and writes an image there.
func (m *memory) put(ctx context.Context, image []byte) (device.Pointer, error) {
	p, err := m.alloc(int64(len(image)))
	if err != nil {
		return 0, err
	}
	for at := 0; at < len(image); at += writeBytes {
		b := &device.Batch{Commands: []device.Command{{Op: device.OpWrite, Dst: p + device.Pointer(at), Data: image[at:min(at+writeBytes, len(image))]}}}
		if _, err := m.ex.Run(ctx, m.dev, b); err != nil {
			return 0, err
		}
	}
	return p, nil
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
