package wah

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/papers/wahbits"
	"pgaccel/papers/wahdata"
)

// Options say what Bench measures. The zero value is what the papers do.
type Options struct {
	Sets  []string // of "KDD", "linkage", "BPA", "Zipf" and "clustered"; all by default
	Bins  []int    // bins of the queries, ascending; 4, 8, 16, 32, 64
	Scale int      // the sets have so many times their rows; 1
	Quick bool     // the sets are short, for a look at whether all works
	Tile  int      // chunks; 0 is tileFor's
	// Threads of a block of Fused: 32, 64, 128 or 256; 0 is 256 where the tile has 256 chunks or
	// less, else 128.
	Threads int
	Runs    int   // on the device, of which the median counts; 11
	Cores   []int // of the CPU; 1, 2, 4, 8, 16, as far as there are so many
	// CPURuns is how often the CPU answers, of which the median counts; 5. Once more is
	// not measured.
	CPURuns int
	// Bandwidth of the device's memory in bytes a second, for the floor; 4.2e12.
	Bandwidth float64
	// Large is how many bytes the largest query of a set is to read, or half of what it is to read
	// and write: bins are repeated until it does, and measured once more, as "KDD x 64". 100 MB by
	// default; less than 0: they are not.
	Large int64
	// Shapes are ways to compile Cut's kernel, measured beside its own.
	Shapes []Shape
	// Progress is called before each set.
	Progress func(set string, rows int)
}

func (o *Options) defaults() {
	if len(o.Sets) == 0 {
		o.Sets = []string{"KDD", "linkage", "BPA", "Zipf", clustered}
	}
	if len(o.Bins) == 0 {
		o.Bins = []int{4, 8, 16, 32, 64}
	}
	o.Scale = max(o.Scale, 1)
	if o.Runs <= 0 {
		o.Runs = 11
	}
	if len(o.Cores) == 0 {
		for c := 1; c <= min(16, runtime.GOMAXPROCS(0)); c *= 2 {
			o.Cores = append(o.Cores, c)
		}
	}
	if o.CPURuns <= 0 {
		o.CPURuns = 5
	}
	if o.Bandwidth <= 0 {
		o.Bandwidth = 4.2e12
	}
	if o.Large == 0 {
		o.Large = 100e6
	}
}

// Shape is how Cut's kernel is compiled: the chunks of a tile, the threads of a block, and the
// steps of 64 atoms that a warp has on their way; and whether tiles are warps' and not blocks', and
// how many times 64 atoms a step has there.
type Shape struct {
	Tile, Threads, Ahead int
	Warps                bool
	Wide                 int
}

func (s Shape) shape() shape {
	return shape{tile: s.Tile, threads: s.Threads, ahead: s.Ahead, warps: s.Warps, wide: s.Wide}
}

// String is the name of its measurements: "cut 512/128/2w2" is of warps, and of steps of 128 atoms.
func (s Shape) String() string {
	text := fmt.Sprintf("cut %d/%d/%d", s.Tile, s.Threads, s.Ahead)
	if s.Warps {
		text += fmt.Sprintf("w%d", s.Wide)
	}
	return text
}

// Compared are the shapes from which Cut chooses, and such as were best before.
func Compared() []Shape {
	return []Shape{
		{Tile: 64, Threads: 64, Ahead: 4}, {Tile: 64, Threads: 128, Ahead: 4}, {Tile: 64, Threads: 64, Ahead: 2, Warps: true, Wide: 2},
		{Tile: 128, Threads: 128, Ahead: 4}, {Tile: 128, Threads: 128, Ahead: 2, Warps: true, Wide: 2},
		{Tile: 256, Threads: 128, Ahead: 4}, {Tile: 256, Threads: 256, Ahead: 4}, {Tile: 256, Threads: 128, Ahead: 2, Warps: true, Wide: 2},
		{Tile: 512, Threads: 128, Ahead: 4}, {Tile: 512, Threads: 128, Ahead: 2, Warps: true, Wide: 2},
		{Tile: 1024, Threads: 128, Ahead: 4},
	}
}

// Row is one measurement.
type Row struct {
	Set        string
	Rows, Bins int
	Tile       int // chunks
	// Strategy is a Strategy's name, or "fused, rows" for a bitmap of 64 rows a word, or
	// "fused, count" where only the number of rows is wanted.
	Strategy   string
	Compressed int64 // bytes of the bins' atoms
	Plain      int64 // bytes of the bins, decompressed
	Result     int64 // bytes of the result
	Stats
	// Floor is the milliseconds that it takes to read the atoms and to write the result.
	Floor float64
	Touch *Touch // kernels of the set's grid that do nothing
	CPU   []CPUTime
	// OverBest is, of rows of Fused and Cut, by how much it is faster than the best of the four
	// others, their decompression included; OverBestReduction, without it.
	OverBest, OverBestReduction float64
}

// CPUTime is what wahbits needs for the same answer, compressed.
type CPUTime struct {
	Cores  int
	Method string // the fastest with so many cores
	Millis float64
	// Published is the milliseconds of the papers' parallel CPU method, the column-oriented
	// reduction of compressed pairs.
	Published float64
}

// clustered is a set of our own: one attribute of 64 bins, as of a table that is loaded in
// nearly sorted order. Runs of rows have one value, 4,000 rows on average.
const (
	clustered     = "clustered"
	clusteredRows = 120_000_000
	clusteredBins = 64
	clusteredRun  = 4000
)

// Bench measures range queries on a device, and the same queries on the CPU. Each answer is
// compared with the CPU's, word by word. Before each run the device's cache is emptied of
// what the query reads.
func Bench(ctx context.Context, ex device.Executor, dev int, opt Options) ([]Row, error) {
	opt.defaults()
	devices := ex.Devices()
	if dev < 0 || dev >= len(devices) {
		return nil, fmt.Errorf("wah: device %d of %d", dev, len(devices))
	}
	flush, err := newFlusher(ctx, ex, dev, devices[dev])
	if err != nil {
		return nil, err
	}
	defer flush.free()
	var rows []Row
	for _, name := range opt.Sets {
		bins, n, err := dataSet(name, opt)
		if err != nil {
			return nil, err
		}
		if opt.Progress != nil {
			opt.Progress(name, n)
		}
		more, err := benchSet(ctx, ex, dev, flush, name, bins, opt)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", name, err)
		}
		rows = append(rows, more...)
		if more, err = benchLarge(ctx, ex, dev, flush, name, bins, opt); err != nil {
			return rows, fmt.Errorf("%s, repeated: %w", name, err)
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// dataSet returns as many bins as the largest query has, in random order, and their rows.
func dataSet(name string, opt Options) ([]*wahbits.Bitmap, int, error) {
	most := slices.Max(opt.Bins)
	if name == clustered {
		rows := clusteredRows * opt.Scale
		if opt.Quick {
			rows /= 32
		}
		bins := clusteredBitmaps(rows)
		return bins[:min(most, len(bins))], rows, nil
	}
	for _, s := range wahdata.Sets(opt.Quick) {
		if s.Name == name {
			s.Rows *= opt.Scale
			return s.Bitmaps(s.Pick(most)), s.Rows, nil
		}
	}
	return nil, 0, fmt.Errorf("wah: there is no set %q", name)
}

func clusteredBitmaps(rows int) []*wahbits.Bitmap {
	rng := rand.New(rand.NewPCG(20, 19))
	builders := make([]wahbits.Builder, clusteredBins)
	for at := 0; at < rows; {
		n := min(1+int(rng.ExpFloat64()*clusteredRun), rows-at)
		b := &builders[rng.IntN(clusteredBins)]
		b.AppendRun(false, at-b.Len())
		b.AppendRun(true, n)
		at += n
	}
	bins := make([]*wahbits.Bitmap, clusteredBins)
	for i := range builders {
		builders[i].AppendRun(false, rows-builders[i].Len())
		bins[i] = builders[i].Finish(nil)
	}
	return bins
}

func benchSet(ctx context.Context, ex device.Executor, dev int, flush *flusher, name string, bins []*wahbits.Bitmap, opt Options) ([]Row, error) {
	b, err := uploadTiled(ctx, ex, dev, bins, opt.Tile)
	if err != nil {
		return nil, err
	}
	defer b.Free()
	if opt.Threads > 0 {
		b.threads = opt.Threads
	}
	touch, err := b.measureTouch(ctx, flush, opt.Runs)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, m := range opt.Bins {
		if m > len(bins) {
			continue
		}
		query := bins[:m]
		answer := wahbits.OrAll(nil, query)
		cpu, err := benchCPU(ctx, query, answer, opt)
		if err != nil {
			return nil, err
		}
		row := Row{Set: name, Rows: b.rows, Bins: m, CPU: cpu, Touch: touch}
		more, err := b.benchQuery(ctx, row, allStrategies(), flush, opt, newAnswers(unionWords(query), b.rows))
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	var atoms [][]uint64
	for _, x := range bins {
		atoms = append(atoms, x.Atoms())
	}
	more, err := b.benchShapes(ctx, name, atoms, flush, opt, func(m int) *answers { return newAnswers(unionWords(bins[:m]), b.rows) })
	return append(rows, more...), err
}

var formNames = map[form]string{formChunks: "", formRows: ", rows", formCount: ", count"}

// measure returns the median cost of bins 0 to m-1 and checks the answer.
func (b *Bins) measure(ctx context.Context, m int, s Strategy, f form, flush *flusher, runs int, answer *answers) (Stats, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.chunks == 0 || m == 0 {
		return Stats{}, nil
	}
	return median(runs, func(run int) (Stats, error) {
		q, err := b.prepare(ctx, 0, m, s, f)
		if err != nil {
			return Stats{}, err
		}
		commands := append(q.writes, flush.command())
		commands = append(commands, q.timed()...)
		if run == 0 {
			commands = append(commands, device.Command{Op: device.OpRead, Src: q.result, Bytes: q.resultBytes})
		}
		reply, err := b.ex.Run(ctx, b.dev, &device.Batch{Commands: commands})
		if err != nil {
			return Stats{}, err
		}
		if run == 0 {
			if err := answer.check(b.decode(reply.Data[0], f), f); err != nil {
				return Stats{}, err
			}
		}
		return q.stats(reply.Millis), nil
	})
}

// median runs f so often, and twice before, and returns the median of its costs.
func median(runs int, f func(run int) (Stats, error)) (Stats, error) {
	var all []Stats
	const warm = 2
	for run := range runs + warm {
		s, err := f(run)
		if err != nil {
			return Stats{}, err
		}
		if run >= warm {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(x, y Stats) int { return cmp.Compare(x.Millis(), y.Millis()) })
	return all[len(all)/2], nil
}

// answers are a query's, in all forms, made when they are asked for.
type answers struct {
	chunks []uint64
	rows   int
	dense  []uint64
}

func newAnswers(chunks []uint64, rows int) *answers { return &answers{chunks: chunks, rows: rows} }

// check compares what a device wrote.
func (a *answers) check(words []uint64, f form) error {
	var want []uint64
	switch f {
	case formChunks:
		want = a.chunks
	case formRows:
		if a.dense == nil {
			a.dense = make([]uint64, (a.rows+63)/64)
			wahbits.FromChunks(a.chunks, a.rows).Dense(a.dense, 0, a.rows)
		}
		want = a.dense
	case formCount:
		var got, set uint64
		for _, w := range words {
			got += w
		}
		for _, w := range a.chunks {
			set += uint64(bits.OnesCount64(w))
		}
		words, want = []uint64{got}, []uint64{set}
	}
	if !slices.Equal(words, want) {
		return fmt.Errorf("the device's answer is not the CPU's")
	}
	return nil
}

// benchCPU answers the query with each method and number of cores.
func benchCPU(ctx context.Context, bins []*wahbits.Bitmap, answer *wahbits.Bitmap, opt Options) ([]CPUTime, error) {
	methods := []struct {
		name string
		f    func(workers int) *wahbits.Bitmap
	}{
		{wahbits.ColumnReduction.String(), func(w int) *wahbits.Bitmap { return wahbits.ColumnReduction.Union(bins, w) }},
		{wahbits.Iterative.String(), func(w int) *wahbits.Bitmap { return wahbits.Iterative.Union(bins, w) }},
		{wahbits.Fused.String(), func(w int) *wahbits.Bitmap { return orShares(bins, w) }},
	}
	var times []CPUTime
	for _, cores := range opt.Cores {
		t := CPUTime{Cores: cores}
		for i, method := range methods {
			var samples []time.Duration
			for run := range opt.CPURuns + 1 {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				start := time.Now()
				got := method.f(cores)
				if took := time.Since(start); run > 0 {
					samples = append(samples, took)
				}
				if !got.Equal(answer) {
					return nil, fmt.Errorf("CPU, %s on %d cores: other rows", method.name, cores)
				}
			}
			slices.Sort(samples)
			millis := float64(samples[len(samples)/2]) / float64(time.Millisecond)
			if i == 0 {
				t.Published = millis
			}
			if i == 0 || millis < t.Millis {
				t.Method, t.Millis = method.name, millis
			}
		}
		times = append(times, t)
	}
	return times, nil
}

// orShares is wahbits' fused union on several cores: of shares of the bins, then of their
// unions.
func orShares(bins []*wahbits.Bitmap, workers int) *wahbits.Bitmap {
	workers = min(workers, len(bins)/2)
	if workers < 2 {
		return wahbits.OrAll(nil, bins)
	}
	shares := make([]*wahbits.Bitmap, workers)
	var wg sync.WaitGroup
	for w := range shares {
		wg.Go(func() { shares[w] = wahbits.OrAll(nil, bins[w*len(bins)/workers:(w+1)*len(bins)/workers]) })
	}
	wg.Wait()
	return wahbits.OrAll(nil, shares)
}

// flusher empties the second-level cache of a device by reading zeros.
type flusher struct {
	ex     device.Executor
	dev    int
	module device.Module
	memory device.Pointer
	words  int64
	blocks int
}

func newFlusher(ctx context.Context, ex device.Executor, dev int, info device.Info) (*flusher, error) {
	f := &flusher{ex: ex, dev: dev, words: max(2*info.L2, 1<<20) / 8, blocks: 2 * max(info.SMs, 1)}
	var err error
	if f.module, err = ex.Compile(ctx, dev, Source(fusedFile, maxTile, threadsFor(maxTile))); err != nil {
		return nil, err
	}
	if f.memory, err = ex.Alloc(dev, 8*f.words); err != nil {
		return nil, err
	}
	fill := device.Command{Op: device.OpFill, Dst: f.memory, Bytes: uint64(8 * f.words)}
	if _, err := ex.Run(ctx, dev, &device.Batch{Commands: []device.Command{fill}}); err != nil {
		f.free()
		return nil, err
	}
	return f, nil
}

func (f *flusher) command() device.Command {
	return launch(f.module, "wah_flush", f.blocks, 1, blockThreads, new(device.Params).Ptr(f.memory).U64(uint64(f.words)))
}

// free gives the memory back; a device that fails here has failed before.
func (f *flusher) free() { _ = f.ex.Free(f.dev, f.memory) }
