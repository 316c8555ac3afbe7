package gpucube

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"pgaccel/gpu/device"
	"pgaccel/papers/cube"
)

// vectorCells are the cells of a vector, lanes those of a position in it.
const (
	vectorCells = 1024
	lanes       = 32
)

// maxDims bounds the dimensions of cubes on the device: kernels' parameters have 4 KiB.
const maxDims = 24

// Cube is a cube on a device. Any number of goroutines may use it until Close.
type Cube[N cube.Number] struct {
	mem     memory
	pool    *pool // of queries; columns have their memory to themselves
	info    device.Info
	host    *cube.Cube[N]
	cells   int
	vectors int
	dims    []dimension
	low     column // values less base
	high    column // their upper half
	base    int64
	most    int64  // the largest value
	absSum  uint64 // sum of the values' magnitudes
	shift   int    // values are integers times 2^-shift

	modules *sync.Map // of module's key: device.Module or error
	choices *sync.Map // of Query.shape: Variant
}

// column is a packed column.
type column struct {
	at    device.Pointer
	width int
}

// dimension is a dimension's codes.
type dimension struct {
	column
	elements []uint32 // by code
	zones    device.Pointer
	steady   float64  // share of the vectors with one code only
	codes    []uint32 // by element; 0 for those without cells, too
}

// uploadCube copies a cube to a device. Errors: errInexact, those of the executor and of ctx,
// or that the cube has more cells or dimensions than kernels count.
func uploadCube[N cube.Number](ctx context.Context, ex device.Executor, dev int, c *cube.Cube[N]) (*Cube[N], error) {
	if c.Len() >= math.MaxUint32-vectorCells || len(c.Dimensions()) > maxDims {
		return nil, fmt.Errorf("gpucube: %d cells, %d dimensions", c.Len(), len(c.Dimensions()))
	}
	cells := c.Cells()
	values, shift, err := fixed(cells.Values)
	if err != nil {
		return nil, err
	}
	info := ex.Devices()[dev]
	queries := &pool{ex: ex, dev: dev, most: max(info.Memory/4, 256<<20), kept: map[int64][]device.Pointer{}}
	u := &Cube[N]{mem: memory{pool: &pool{ex: ex, dev: dev}}, pool: queries, info: info, host: c, cells: c.Len(),
		vectors: (c.Len() + vectorCells - 1) / vectorCells, shift: shift, modules: &sync.Map{}, choices: &sync.Map{}}
	if err := u.upload(ctx, cells.Paths, values); err != nil {
		_ = u.mem.free() // the first error is the one to tell
		return nil, err
	}
	return u, nil
}

func (u *Cube[N]) upload(ctx context.Context, paths [][]uint32, values []int64) error {
	if len(values) > 0 {
		u.base, u.most = slices.Min(values), slices.Max(values)
	}
	for _, v := range values {
		if u.absSum += magnitude(v); u.absSum > math.MaxInt64 {
			return errInexact // papers/cube refuses such sums, too
		}
	}
	width := bits.Len64(uint64(u.most) - uint64(u.base))
	var err error
	if u.low, err = u.pack(ctx, min(width, 32), func(i int) uint32 { return uint32(uint64(values[i]) - uint64(u.base)) }); err != nil {
		return err
	}
	if u.high, err = u.pack(ctx, max(width-32, 0), func(i int) uint32 { return uint32((uint64(values[i]) - uint64(u.base)) >> 32) }); err != nil {
		return err
	}
	for d, dim := range u.host.Dimensions() {
		codes := make([]uint32, len(dim.Elements))
		for _, e := range paths[d] {
			codes[e] = 1
		}
		k := dimension{codes: codes}
		for e, used := range codes {
			if used != 0 {
				codes[e] = uint32(len(k.elements))
				k.elements = append(k.elements, uint32(e))
			}
		}
		if k.column, err = u.pack(ctx, bits.Len(uint(max(len(k.elements)-1, 0))), func(i int) uint32 { return codes[paths[d][i]] }); err != nil {
			return err
		}
		zones := make([]byte, 8*u.vectors)
		var steady atomic.Int64
		spread(u.vectors, func(v int) {
			part := paths[d][v*vectorCells : min((v+1)*vectorCells, u.cells)]
			low, high := codes[slices.Min(part)], codes[slices.Max(part)]
			if low == high {
				steady.Add(1)
			}
			binary.LittleEndian.PutUint32(zones[8*v:], low)
			binary.LittleEndian.PutUint32(zones[8*v+4:], high)
		})
		k.steady = float64(steady.Load()) / float64(max(u.vectors, 1))
		if k.zones, err = u.mem.write(zones); err != nil {
			return err
		}
		if _, err := u.mem.run(ctx, nil); err != nil {
			return err
		}
		u.dims = append(u.dims, k)
	}
	return nil
}

// packVectors are the vectors that are packed and sent at a time.
const packVectors = 1 << 14

// pack makes a column. Positions beyond the last cell are 0.
func (u *Cube[N]) pack(ctx context.Context, width int, value func(i int) uint32) (column, error) {
	if width == 0 || u.cells == 0 {
		return column{}, nil
	}
	bytes := width * lanes * 4 // of a vector
	at, err := u.mem.alloc(int64(u.vectors) * int64(bytes))
	if err != nil {
		return column{}, err
	}
	buffer := make([]byte, min(packVectors, u.vectors)*bytes)
	for first := 0; first < u.vectors; first += packVectors {
		n := min(packVectors, u.vectors-first)
		clear(buffer)
		spread(n, func(v int) {
			packVector(buffer[v*bytes:][:bytes], width, (first+v)*vectorCells, min((first+v+1)*vectorCells, u.cells), value)
		})
		for from := 0; from < n*bytes; from += writeBytes {
			write := device.Command{Op: device.OpWrite, Dst: at + device.Pointer(first*bytes+from), Data: buffer[from:min(from+writeBytes, n*bytes)]}
			if _, err := u.mem.run(ctx, []device.Command{write}); err != nil {
				return column{}, err
			}
		}
	}
	return column{at, width}, nil
}

// spread calls f for 0 to n-1 on all processors.
func spread(n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	const part = 64
	for range min((n+part-1)/part, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for from := int(next.Add(part)) - part; from < n; from = int(next.Add(part)) - part {
				for i := from; i < min(from+part, n); i++ {
					f(i)
				}
			}
		})
	}
	wg.Wait()
}

// packVector packs the cells [from, to) into zeros.
func packVector(out []byte, width, from, to int, value func(i int) uint32) {
	var words [33][lanes]uint32
	for i := from; i < to; i++ {
		lane, bit := (i-from)%lanes, (i-from)/lanes*width
		v := uint64(value(i)) << (bit % 32)
		words[bit/32][lane] |= uint32(v)
		words[bit/32+1][lane] |= uint32(v >> 32)
	}
	for w := range width {
		for lane, v := range words[w] {
			binary.LittleEndian.PutUint32(out[(w*lanes+lane)*4:], v)
		}
	}
}

// part is the cube of some vectors, in the same memory.
func (u *Cube[N]) part(first, vectors int) *Cube[N] {
	p := *u
	p.vectors, p.cells = vectors, min(vectors*vectorCells, u.cells-first*vectorCells)
	move := func(c *column) { c.at += device.Pointer(first * c.width * lanes * 4) }
	move(&p.low)
	move(&p.high)
	p.dims = slices.Clone(u.dims)
	for d := range p.dims {
		move(&p.dims[d].column)
		p.dims[d].zones += device.Pointer(8 * first)
	}
	return &p
}

// Close gives the device's memory back. Prepared queries must have been closed.
func (u *Cube[N]) Close() error { return errors.Join(u.mem.free(), u.pool.trim()) }

// Bytes returns the device memory of the columns.
func (u *Cube[N]) Bytes() int64 {
	bits := u.low.width + u.high.width
	for _, d := range u.dims {
		bits += d.width
	}
	return int64(u.vectors) * vectorCells / 8 * int64(bits)
}
