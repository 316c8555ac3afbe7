package wah

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"pgaccel/gpu/device"
	"pgaccel/papers/kernels"
	"pgaccel/papers/wahbits"
)

// Bins are compressed bit vectors of the same rows in one device's memory, until Free. Its
// methods may be called from many goroutines, but for Free; queries of the same Bins take
// turns, since they share the memory beside the bins.
type Bins struct {
	ex   device.Executor
	dev  int
	rows int
	n    int // bins

	chunks, tile, tiles int
	threads             int      // of a block of the fused kernel
	begins              []uint64 // of each bin's atoms, one more than bins
	memory              device.Pointer
	atoms, places       device.Pointer
	cut                 cutBins

	mu      sync.Mutex
	modules map[kernel]device.Module
	scratch device.Pointer // for one query
	room    int64          // bytes of it
}

// writeMost is how many bytes one command writes.
const writeMost = 16 << 20

// tileFor is the tile, in chunks, that Upload takes for so many chunks a bin. Large tiles
// have less beside their chunks; small ones are enough for a device to be busy.
func tileFor(chunks, multiprocessors int) int {
	tile := maxTile
	// Eight blocks are what a multiprocessor has at a time.
	for tile > 256 && chunks/tile < 8*multiprocessors {
		tile /= 2
	}
	return tile
}

// threadsFor is how many threads a block of the fused kernel has: its warps share a tile's
// bins, and where tiles are few and small, more warps keep a device busy.
func threadsFor(tile int) int {
	if tile <= 256 {
		return 256
	}
	return 128
}

// uploadBins copies bins to the device, with the places of their tiles (8 bytes for a bin and
// tile). All have the same rows; there is one at least.
func uploadBins(ctx context.Context, ex device.Executor, dev int, bins []*wahbits.Bitmap) (*Bins, error) {
	return uploadTiled(ctx, ex, dev, bins, 0)
}

// uploadTiled is uploadBins with a tile of so many chunks, a power of two from 64 to 1,024; 0
// is tileFor's.
func uploadTiled(ctx context.Context, ex device.Executor, dev int, bins []*wahbits.Bitmap, tile int) (*Bins, error) {
	atoms := make([][]uint64, len(bins))
	for i, b := range bins {
		if b.Len() != bins[0].Len() {
			return nil, fmt.Errorf("wah: bins of %d and %d rows", bins[0].Len(), b.Len())
		}
		atoms[i] = b.Atoms()
	}
	if len(bins) == 0 {
		return nil, errors.New("wah: no bins")
	}
	return upload(ctx, ex, dev, bins[0].Len(), atoms, tile)
}

// uploadWords is uploadBins of bitmaps as they are stored (wahbits.Bitmap.Words). What is not
// a bitmap is an error, before anything reaches the device.
func uploadWords(ctx context.Context, ex device.Executor, dev int, blocks [][]uint64) (*Bins, error) {
	bins := make([]*wahbits.Bitmap, len(blocks))
	for i, words := range blocks {
		b, n, err := wahbits.ParseWords(words)
		if err == nil && n != len(words) {
			err = fmt.Errorf("%d words after the bitmap", len(words)-n)
		}
		if err != nil {
			return nil, fmt.Errorf("wah: bin %d: %w", i, err)
		}
		bins[i] = b
	}
	return uploadBins(ctx, ex, dev, bins)
}

func upload(ctx context.Context, ex device.Executor, dev, rows int, atoms [][]uint64, tile int) (*Bins, error) {
	devices := ex.Devices()
	if dev < 0 || dev >= len(devices) {
		return nil, fmt.Errorf("wah: device %d of %d", dev, len(devices))
	}
	cutTile := tile
	if tile == 0 {
		tile, cutTile = tileFor(rows/chunkBits, devices[dev].SMs), cutTileFor(rows/chunkBits, devices[dev].SMs)
	}
	l, err := newLayout(rows, atoms, tile)
	if err != nil {
		return nil, fmt.Errorf("wah: %w", err)
	}
	b := &Bins{ex: ex, dev: dev, rows: rows, n: len(atoms), chunks: l.chunks, tile: l.tile, tiles: l.tiles, threads: threadsFor(tile),
		begins: l.begins, modules: make(map[kernel]device.Module)}
	atomBytes := align(8 * int64(len(l.atoms)))
	if b.memory, err = ex.Alloc(dev, atomBytes+align(8*int64(len(l.places)))); err != nil {
		return nil, err
	}
	b.atoms, b.places = b.memory, b.memory+device.Pointer(atomBytes)
	if err = b.write(ctx, b.atoms, l.atoms); err == nil {
		err = b.write(ctx, b.places, l.places)
	}
	if err == nil {
		err = b.uploadCut(ctx, atoms, cutTile)
	}
	if err != nil {
		return nil, errors.Join(err, b.Free())
	}
	return b, nil
}

// write copies words to the device.
func (b *Bins) write(ctx context.Context, dst device.Pointer, words []uint64) error {
	for part := range slices.Chunk(words, writeMost/8) {
		batch := &device.Batch{Stream: device.Streams - 1, Commands: []device.Command{
			{Op: device.OpWrite, Dst: dst, Data: wordBytes(part)},
		}}
		if _, err := b.ex.Run(ctx, b.dev, batch); err != nil {
			return err
		}
		dst += device.Pointer(8 * len(part))
	}
	return nil
}

// Free gives the device's memory back. No query may run.
func (b *Bins) Free() error {
	err := errors.Join(b.freeScratch(), b.freeCut())
	if b.memory != 0 {
		err = errors.Join(err, b.ex.Free(b.dev, b.memory))
		b.memory = 0
	}
	return err
}

// FreeScratch gives back what the latest query needed beside the bins: of strategies that
// decompress, 12 bytes and more for each chunk of each bin.
func (b *Bins) FreeScratch() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.freeScratch()
}

func (b *Bins) freeScratch() error {
	if b.scratch == 0 {
		return nil
	}
	p := b.scratch
	b.scratch, b.room = 0, 0
	return b.ex.Free(b.dev, p)
}

// Len is the number of rows.
func (b *Bins) Len() int { return b.rows }

// Bins is how many there are.
func (b *Bins) Bins() int { return b.n }

// Tile is the chunks of a tile.
func (b *Bins) Tile() int { return b.tile }

// CompressedBytes is the size of the atoms of bins lo to hi-1.
func (b *Bins) CompressedBytes(lo, hi int) int64 { return 8 * int64(b.begins[hi]-b.begins[lo]) }

// kernel is a file of kernels and, of the fused ones, how it is compiled.
type kernel struct {
	file string
	shape
}

// module compiles one of the kernels' files, or finds it compiled. b.mu is held.
func (b *Bins) module(ctx context.Context, k kernel) (device.Module, error) {
	if m, ok := b.modules[k]; ok {
		return m, nil
	}
	m, err := b.ex.Compile(ctx, b.dev, source(k))
	if err == nil {
		b.modules[k] = m
	}
	return m, err
}

// The files of kernels.
const (
	scanFile   = "scan"
	wahFile    = "wah"
	reduceFile = "wah_reduce"
	fusedFile  = "wah_fused"
	cutFile    = "wah_cut"
	warpsFile  = "wah_warps"
)

// Source is the translation unit of a file of kernels, without its ending: "wah_fused" is
// compiled for a tile of so many chunks and blocks of so many threads, others are the same
// for all.
func Source(file string, tile, threads int) device.Source {
	return source(kernel{file, shape{tile: tile, threads: threads}})
}

func source(k kernel) device.Source {
	s := device.Source{Name: k.file, Code: fmt.Sprintf("#include %q\n", k.file+".cuh"), Headers: kernels.Headers()}
	if k.tile > 0 {
		s.Defines = []string{"WAH_TILE=" + strconv.Itoa(k.tile), "WAH_FUSED_THREADS=" + strconv.Itoa(k.threads)}
	}
	if k.ahead > 0 {
		s.Defines = append(s.Defines, "WAH_AHEAD="+strconv.Itoa(k.ahead))
	}
	if k.wide > 0 {
		s.Defines = append(s.Defines, "WAH_WIDE="+strconv.Itoa(k.wide))
	}
	return s
}

// align is what a part of an allocation takes.
func align(bytes int64) int64 { return (bytes + 255) &^ 255 }

func wordBytes(words []uint64) []byte {
	p := make([]byte, 0, 8*len(words))
	for _, w := range words {
		p = binary.LittleEndian.AppendUint64(p, w)
	}
	return p
}

func bytesWords(p []byte) []uint64 {
	words := make([]uint64, len(p)/8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(p[8*i:])
	}
	return words
}
