package wah

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"

	"pgaccel/gpu/device"
)

// Stats is what a query cost on the device.
type Stats struct {
	Launches     int
	Decompress   float64 // milliseconds of Algorithms 1 and 2; 0 of Fused
	Reduce       float64 // milliseconds of the reduction, or of Fused's kernel
	BytesRead    int64   // of device memory, by the algorithm: caches may save some
	BytesWritten int64
}

// Millis is the time of all.
func (s Stats) Millis() float64 { return s.Decompress + s.Reduce }

// form is what the fused kernel writes: bits of WahFused.form.
type form uint32

const (
	formChunks form = 1 << iota
	formRows
	formCount
)

// Or returns the union of bins lo to hi-1 as chunks: bit i of word c is row 63c+i, and bit
// 63 is 0, as wahbits.FromChunks takes them. An empty range has no rows.
func (b *Bins) Or(ctx context.Context, lo, hi int, s Strategy) ([]uint64, Stats, error) {
	return b.query(ctx, lo, hi, s, formChunks)
}

// OrRows returns the union of bins lo to hi-1 as a bitmap of 64 rows a word, by Fused or Cut.
func (b *Bins) OrRows(ctx context.Context, lo, hi int, s Strategy) ([]uint64, Stats, error) {
	if s != Fused && s != Cut {
		return nil, Stats{}, fmt.Errorf("wah: %v writes chunks only", s)
	}
	return b.query(ctx, lo, hi, s, formRows)
}

// Count returns how many rows the union of bins lo to hi-1 has, by Fused or Cut; no row of it
// is written.
func (b *Bins) Count(ctx context.Context, lo, hi int, s Strategy) (int, Stats, error) {
	if s != Fused && s != Cut {
		return 0, Stats{}, fmt.Errorf("wah: %v writes chunks only", s)
	}
	words, stats, err := b.query(ctx, lo, hi, s, formCount)
	if err != nil {
		return 0, stats, err
	}
	n := 0
	for _, w := range words {
		n += int(w)
	}
	return n, stats, nil
}

func (b *Bins) query(ctx context.Context, lo, hi int, s Strategy, f form) ([]uint64, Stats, error) {
	if lo < 0 || hi < lo || hi > b.n {
		return nil, Stats{}, fmt.Errorf("wah: bins %d to %d of %d", lo, hi, b.n)
	}
	if b.chunks == 0 || lo == hi {
		return make([]uint64, b.words(f, b.tiles)), Stats{}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.prepare(ctx, lo, hi, s, f)
	if err != nil {
		return nil, Stats{}, err
	}
	commands := append(q.writes, q.timed()...)
	commands = append(commands, device.Command{Op: device.OpRead, Src: q.result, Bytes: q.resultBytes})
	reply, err := b.ex.Run(ctx, b.dev, &device.Batch{Commands: commands})
	if err != nil {
		return nil, Stats{}, err
	}
	if len(reply.Data) != 1 || uint64(len(reply.Data[0])) != q.resultBytes {
		return nil, Stats{}, &device.Fault{Call: "wah", Text: "the result is not whole"}
	}
	words := b.decode(reply.Data[0], f)
	return words, q.stats(reply.Millis), nil
}

// words is how many words a result of so many tiles has.
func (b *Bins) words(f form, tiles int) int {
	switch f {
	case formRows:
		return (b.rows + 63) / 64
	case formCount:
		return tiles
	}
	return b.chunks
}

// decode makes words of what the device wrote.
func (b *Bins) decode(p []byte, f form) []uint64 {
	if f != formCount {
		return bytesWords(p)
	}
	words := make([]uint64, len(p)/4)
	for i := range words {
		words[i] = uint64(binary.LittleEndian.Uint32(p[4*i:]))
	}
	return words
}

// query is a query as commands.
type query struct {
	writes      []device.Command // tables, before all
	decompress  []device.Command
	reduce      []device.Command
	result      device.Pointer
	resultBytes uint64
	cost        Stats
}

// timed are the commands between marks: two times where columns are decompressed, else one.
func (q *query) timed() []device.Command {
	mark := device.Command{Op: device.OpMark}
	commands := []device.Command{mark}
	if len(q.decompress) > 0 {
		commands = append(append(commands, q.decompress...), mark)
	}
	return append(append(commands, q.reduce...), mark)
}

// stats are the query's, given the times between the marks of timed, which come last.
func (q *query) stats(millis []float64) Stats {
	s := q.cost
	if n := len(millis); n > 0 {
		s.Reduce = millis[n-1]
		if len(q.decompress) > 0 && n > 1 {
			s.Decompress = millis[n-2]
		}
	}
	for _, c := range append(append([]device.Command(nil), q.decompress...), q.reduce...) {
		if c.Op == device.OpLaunch {
			s.Launches++
		}
	}
	return s
}

// prepare compiles kernels, makes room and lists the commands. b.mu is held until the
// batch has run.
func (b *Bins) prepare(ctx context.Context, lo, hi int, s Strategy, f form) (*query, error) {
	switch s {
	case Fused:
		k := kernel{fusedFile, shape{tile: b.tile, threads: b.threads}}
		return b.fused(ctx, lo, hi, f, k, b.tiles, b.atoms, b.places, b.begins)
	case Cut:
		c := &b.cut
		k := kernel{cutFile, c.shapeFor(c.begins[hi] - c.begins[lo])}
		if k.warps {
			k.file = warpsFile
		}
		return b.fused(ctx, lo, hi, f, k, c.tiles, c.atoms, c.places, c.begins)
	}
	if uint(s) >= uint(strategies) {
		return nil, fmt.Errorf("wah: there is no %v", s)
	}
	if m := hi - lo; m > 2*blockThreads && (s == ROA || s == IdealHybrid) {
		return nil, fmt.Errorf("wah: %v takes %d bins at most, not %d: a thread of a block has two", s, 2*blockThreads, m)
	}
	return b.papers(ctx, lo, hi, s)
}

// allocate makes room for parts of so many bytes, and returns where each is. The parts of
// the query before are no more.
func (b *Bins) allocate(parts ...int64) ([]device.Pointer, error) {
	total := int64(0)
	for _, n := range parts {
		total += align(n)
	}
	if total > b.room {
		if err := b.freeScratch(); err != nil {
			return nil, err
		}
		p, err := b.ex.Alloc(b.dev, total)
		if err != nil {
			return nil, err
		}
		b.scratch, b.room = p, total
	}
	at := b.scratch
	pointers := make([]device.Pointer, len(parts))
	for i, n := range parts {
		pointers[i] = at
		at += device.Pointer(align(n))
	}
	return pointers, nil
}

// fused lists the one command of Fused or Cut, whose kernel has its file's name.
func (b *Bins) fused(ctx context.Context, lo, hi int, f form, k kernel, tiles int, atoms, places device.Pointer, begins []uint64) (*query, error) {
	module, err := b.module(ctx, k)
	if err != nil {
		return nil, err
	}
	grid, counts := tiles, tiles
	if k.warps {
		grid = b.cut.grid(k.shape, b.ex.Devices()[b.dev])
		counts = grid * k.threads / 32
	}
	size := uint64(8 * b.words(f, counts))
	if f == formCount {
		size /= 2
	}
	at, err := b.allocate(int64(size))
	if err != nil {
		return nil, err
	}
	q := &query{result: at[0], resultBytes: size}
	var atChunks, atRows, atCounts device.Pointer
	switch f {
	case formChunks:
		atChunks = q.result
	case formRows:
		atRows = q.result
	case formCount:
		atCounts = q.result
	}
	params := new(device.Params).Ptr(atoms).Ptr(places).Ptr(atChunks).Ptr(atRows).Ptr(atCounts).
		U64(uint64(b.chunks)).U64(uint64((b.rows + 63) / 64)).
		U32(uint32(b.n)).U32(uint32(lo)).U32(uint32(hi - lo)).U32(uint32(f))
	perTile := int64(hi - lo)
	if k.warps {
		params.Ptr(b.cut.masks).U32(uint32(b.cut.words)).U32(uint32(tiles))
		perTile = 2 + int64((hi-1)/64-lo/64+1)
	}
	q.reduce = []device.Command{launch(module, k.file, grid, 1, k.threads, params)}
	q.cost.BytesRead = 8*int64(begins[hi]-begins[lo]) + 8*int64(tiles)*perTile
	q.cost.BytesWritten = int64(size)
	return q, nil
}

// launch is a command of a two-dimensional grid.
func launch(m device.Module, function string, x, y, threads int, p *device.Params) device.Command {
	return device.Command{Op: device.OpLaunch, Module: m, Function: function, Grid: [3]uint32{uint32(x), uint32(y), 1},
		Block: [3]uint32{uint32(threads), 1, 1}, Params: p.Bytes()}
}

// The papers' blocks, as papers/kernels/wah.cuh and scan.cuh have them.
const (
	blockThreads = 1024
	scanThreads  = 256
	scanPart     = 2048
	// A tile of the hybrid has k = 8 columns of threads and j = 128 rows: it spans 16
	// columns, so that a query of 64 has the second round that the papers measure.
	hybridSpan = 16
)

// papers lists the commands of the four strategies that decompress.
func (b *Bins) papers(ctx context.Context, lo, hi int, s Strategy) (*query, error) {
	var modules [3]device.Module
	for i, file := range []string{scanFile, wahFile, reduceFile} {
		var err error
		if modules[i], err = b.module(ctx, kernel{file: file}); err != nil {
			return nil, err
		}
	}
	m, n := hi-lo, b.chunks
	begins, words := make([]uint64, m+1), make([]uint64, m+1)
	longest := 0
	for c := range begins {
		begins[c] = b.begins[lo+c] - b.begins[lo]
		words[c] = uint64(c * n)
		if c > 0 {
			longest = max(longest, int(begins[c]-begins[c-1]))
		}
	}
	atoms := int(begins[m])
	atomParts, wordParts := ceil(longest, scanPart), ceil(n, scanPart)
	tables := int64(8 * (m + 1))
	at, err := b.allocate(tables, tables, 4*int64(atoms), 4*int64(m)*int64(max(atomParts, wordParts)), 4*int64(m)*int64(n), 8*int64(m)*int64(n))
	if err != nil {
		return nil, err
	}
	atBegins, atWords, points, sums, index, data := at[0], at[1], at[2], at[3], at[4], at[5]
	q := &query{result: data, resultBytes: 8 * uint64(n)}
	q.writes = []device.Command{
		{Op: device.OpWrite, Dst: atBegins, Data: wordBytes(begins)},
		{Op: device.OpWrite, Dst: atWords, Data: wordBytes(words)},
	}
	first := b.atoms + device.Pointer(8*b.begins[lo])
	columns := func() *device.Params {
		return new(device.Params).Ptr(first).Ptr(atBegins).Ptr(points).Ptr(index).Ptr(data).U64(uint64(n)).U64(uint64(atoms))
	}
	scan := func(values, begins device.Pointer, parts int) {
		for _, f := range []string{"scan_sums", "scan_offsets", "scan_values"} {
			p := new(device.Params).Ptr(values).Ptr(begins).Ptr(sums).U32(uint32(parts))
			x := parts
			if f == "scan_offsets" {
				x = 1
			}
			q.decompress = append(q.decompress, launch(modules[0], f, x, m, scanThreads, p))
		}
	}
	step := func(f string, x, y int) {
		q.decompress = append(q.decompress, launch(modules[1], f, x, y, blockThreads, columns()))
	}
	// Algorithm 1: Algorithm 2 for all columns at once.
	step("wah_decomp_sizes", ceil(atoms, blockThreads), 1)
	scan(points, atBegins, atomParts)
	q.decompress = append(q.decompress, device.Command{Op: device.OpFill, Dst: index, Bytes: 4 * uint64(m) * uint64(n)})
	step("wah_end_points", ceil(longest, blockThreads), m)
	scan(index, atWords, wordParts)
	step("wah_decomp_words", ceil(n, blockThreads), m)

	mn := int64(m) * int64(n)
	q.cost.BytesRead = (2*8+3*4)*int64(atoms) + 3*4*mn
	q.cost.BytesWritten = (2*4+4)*int64(atoms) + (4+4+8)*mn
	b.reduction(q, modules[2], s, m)
	return q, nil
}

// reduction adds the commands of Algorithms 3 to 6 for m columns of q.result.
func (b *Bins) reduction(q *query, module device.Module, s Strategy, m int) {
	n := b.chunks
	add := func(f string, x, y, threads, columns, stride, span, rows int) {
		p := new(device.Params).Ptr(q.result).U64(uint64(n)).U32(uint32(columns)).U32(uint32(stride)).U32(uint32(span)).U32(uint32(rows))
		q.reduce = append(q.reduce, launch(module, f, x, y, threads, p))
	}
	vector := 8 * int64(n)
	switch s {
	case COA:
		for m > 1 {
			half := (m + 1) / 2
			add("wah_coa", ceil(n, blockThreads), m-half, blockThreads, m, 1, 0, 0)
			q.cost.BytesRead += 2 * vector * int64(m-half)
			q.cost.BytesWritten += vector * int64(m-half)
			m = half
		}
	case ROA:
		add("wah_roa", n, 1, ceil((m+1)/2, 32)*32, m, 1, 0, 0)
		q.cost.BytesRead += vector * int64(m)
		q.cost.BytesWritten += vector
	case Hybrid:
		for stride := 1; ; stride *= hybridSpan {
			tiles := ceil(m, hybridSpan)
			add("wah_hybrid", ceil(n, 2*blockThreads/hybridSpan), tiles, blockThreads, m, stride, hybridSpan, 2*blockThreads/hybridSpan)
			q.cost.BytesRead += vector * int64(m)
			q.cost.BytesWritten += vector * int64(tiles)
			if m = tiles; m == 1 {
				return
			}
		}
	case IdealHybrid:
		k := 1 << bits.Len(uint((m+1)/2-1)) // a power of two, so that k * j is 1,024
		add("wah_hybrid", ceil(n, blockThreads/k), 1, blockThreads, m, 1, m, blockThreads/k)
		q.cost.BytesRead += vector * int64(m)
		q.cost.BytesWritten += vector
	}
}

func ceil(n, d int) int { return (n + d - 1) / d }
