package wah

import (
	"context"
	"fmt"
	"math"

	"pgaccel/gpu/device"
	"pgaccel/papers/wahbits"
)

// papersMost is the most device memory, in bytes, that Bench lets decompressed columns of
// repeated sets take.
const papersMost = 32 << 30

// copiesFor is how often bins must be repeated for a query of them all to read opt.Large bytes,
// or to read and write almost twice as many; 1 where they do as they are.
func copiesFor(bins []*wahbits.Bitmap, opt Options) int {
	if opt.Large <= 0 || len(bins) == 0 {
		return 1
	}
	read := int64(8)
	for _, b := range bins {
		read += 8 * int64(len(b.Atoms()))
	}
	moved := read + 8*int64(bins[0].Len()/chunkBits)
	return int(max(1, min((opt.Large+read-1)/read, 2*opt.Large/moved)))
}

// rotation is the chunk of a set that a copy of it begins with.
func rotation(chunks, copy int) int { return copy * (chunks*5/8 + 1) % chunks }

// repeatAtoms are a bin's first chunks so many times, each copy rotated, so that no two
// neighbouring tiles are the same.
func repeatAtoms(atoms []uint64, chunks, copies int) []uint64 {
	out := make([]uint64, 0, copies*(len(atoms)+2))
	add := func(a uint64) {
		if last := len(out) - 1; a&fillFlag != 0 && last >= 0 && out[last]>>62 == a>>62 {
			out[last] += a & runMask
			return
		}
		out = append(out, a)
	}
	// part adds chunks from to to-1.
	part := func(from, to int) {
		at := 0
		for _, a := range atoms {
			n := int(atomChunks(a))
			lo, hi := max(at, from), min(at+n, to)
			at += n
			if lo >= hi {
				continue
			}
			if a&fillFlag != 0 {
				a = a&^runMask | uint64(hi-lo)
			}
			add(a)
		}
	}
	for c := range copies {
		r := rotation(chunks, c)
		part(r, chunks)
		part(0, r)
	}
	return out
}

// repeatWords is repeatAtoms of decompressed chunks.
func repeatWords(words []uint64, copies int) []uint64 {
	out := make([]uint64, 0, copies*len(words))
	for c := range copies {
		r := rotation(len(words), c)
		out = append(append(out, words[r:]...), words[:r]...)
	}
	return out
}

// unionWords are the chunks of the union.
func unionWords(bins []*wahbits.Bitmap) []uint64 {
	union := wahbits.OrAll(nil, bins)
	return wahbits.Decomp(union.Atoms(), (union.Len()+chunkBits-1)/chunkBits)
}

// benchLarge measures a set so often repeated that its bytes matter and not the launch. The
// CPU does not answer here but for what answers are compared with.
func benchLarge(ctx context.Context, ex device.Executor, dev int, flush *flusher, name string, bins []*wahbits.Bitmap, opt Options) ([]Row, error) {
	copies, chunks := copiesFor(bins, opt), bins[0].Len()/chunkBits
	if copies == 1 || chunks == 0 {
		return nil, nil
	}
	atoms := make([][]uint64, len(bins))
	each(len(bins), func(i int) { atoms[i] = repeatAtoms(bins[i].Atoms(), chunks, copies) })
	rows := copies * chunks * chunkBits
	name = fmt.Sprintf("%s x %d", name, copies)
	if opt.Progress != nil {
		opt.Progress(name, rows)
	}
	b, err := upload(ctx, ex, dev, rows, atoms, opt.Tile)
	if err != nil {
		return nil, err
	}
	defer b.Free()
	if opt.Threads > 0 {
		b.threads = opt.Threads
	}
	var all []Row
	for _, m := range opt.Bins {
		if m > len(bins) {
			continue
		}
		words := repeatWords(unionWords(bins[:m])[:chunks], copies)
		strategies := []Strategy{Fused, Cut}
		if m == opt.Bins[len(opt.Bins)-1] && 12*int64(m)*int64(b.chunks) <= papersMost {
			strategies = allStrategies()
		}
		row := Row{Set: name, Rows: rows, Bins: m}
		more, err := b.benchQuery(ctx, row, strategies, flush, opt, newAnswers(words, rows))
		if err != nil {
			return nil, err
		}
		if err := b.freeScratch(); err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	more, err := b.benchShapes(ctx, name, atoms, flush, opt, func(m int) *answers {
		return newAnswers(repeatWords(unionWords(bins[:m])[:chunks], copies), rows)
	})
	return append(all, more...), err
}

// benchQuery measures the query of row in all forms.
func (b *Bins) benchQuery(ctx context.Context, row Row, strategies []Strategy, flush *flusher, opt Options, answer *answers) ([]Row, error) {
	m := row.Bins
	row.Tile, row.Compressed, row.Plain = b.tile, b.CompressedBytes(0, m), 8*int64(b.chunks)*int64(m)
	if row.Touch == nil {
		var err error
		if row.Touch, err = b.measureTouch(ctx, flush, opt.Runs); err != nil {
			return nil, err
		}
	}
	var rows []Row
	best, bestReduction := math.Inf(1), math.Inf(1)
	for _, s := range strategies {
		forms := []form{formChunks}
		ours := s == Fused || s == Cut
		if ours {
			forms = []form{formChunks, formRows, formCount}
		}
		for _, f := range forms {
			r := row
			r.Strategy = s.String() + formNames[f]
			r.Result = 8 * int64(b.words(f, b.tiles))
			if f == formCount {
				r.Result /= 2
			}
			r.Floor = 1000 * float64(r.Compressed+r.Result) / opt.Bandwidth
			var err error
			if r.Stats, err = b.measure(ctx, m, s, f, flush, opt.Runs, answer); err != nil {
				return nil, fmt.Errorf("%d bins, %s: %w", m, r.Strategy, err)
			}
			if !ours {
				best, bestReduction = min(best, r.Millis()), min(bestReduction, r.Reduce)
			} else if !math.IsInf(best, 1) {
				r.OverBest, r.OverBestReduction = best/r.Millis(), bestReduction/r.Millis()
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// mostTiles is how many tiles a multiprocessor may get for a shape to be measured at all: blocks for
// more than that take longer than what they do.
const mostTiles = 700

// benchShapes measures Cut compiled in opt.Shapes for the second smallest and the largest query.
func (b *Bins) benchShapes(ctx context.Context, name string, atoms [][]uint64, flush *flusher, opt Options, answer func(m int) *answers) ([]Row, error) {
	var rows []Row
	known := make(map[int]*answers)
	sms := max(b.ex.Devices()[b.dev].SMs, 1)
	for _, s := range opt.Shapes {
		if tiles := ceil(b.chunks, s.Tile); tiles < sms || tiles > mostTiles*sms {
			continue
		}
		if b.cut.forced.tile == 0 || b.cut.tile != s.Tile {
			if err := b.uploadCut(ctx, atoms, s.Tile); err != nil {
				return nil, err
			}
		}
		b.cut.forced = s.shape()
		for _, m := range []int{opt.Bins[min(1, len(opt.Bins)-1)], opt.Bins[len(opt.Bins)-1]} {
			if m > len(atoms) {
				continue
			}
			if known[m] == nil {
				known[m] = answer(m)
			}
			for _, f := range []form{formChunks, formCount} {
				r := Row{Set: name, Rows: b.rows, Bins: m, Tile: s.Tile, Strategy: s.String() + formNames[f],
					Compressed: b.CompressedBytes(0, m), Plain: 8 * int64(b.chunks) * int64(m)}
				if f == formChunks {
					r.Result = 8 * int64(b.chunks)
				}
				r.Floor = 1000 * float64(r.Compressed+r.Result) / opt.Bandwidth
				var err error
				if r.Stats, err = b.measure(ctx, m, Cut, f, flush, opt.Runs, known[m]); err != nil {
					return nil, fmt.Errorf("%d bins, %s: %w", m, r.Strategy, err)
				}
				rows = append(rows, r)
			}
		}
	}
	return rows, nil
}

// Touch is what kernels take that do nothing, in milliseconds, in grids of Fused: what no
// query can be faster than, however few its bytes.
type Touch struct {
	Empty float64 // a launch
	Read  float64 // a word for each block
	Chain float64 // two words, the second after the first, and one written
}

// measureTouch measures kernels that do nothing, as measure does queries.
func (b *Bins) measureTouch(ctx context.Context, flush *flusher, runs int) (*Touch, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	module, err := b.module(ctx, kernel{fusedFile, shape{tile: b.tile, threads: b.threads}})
	if err != nil {
		return nil, err
	}
	at, err := b.allocate(8 * int64(max(b.tiles, 1)))
	if err != nil {
		return nil, err
	}
	stride := b.begins[b.n] / uint64(max(b.tiles, 1))
	t := new(Touch)
	for reads, result := range []*float64{&t.Empty, &t.Read, &t.Chain} {
		p := new(device.Params).Ptr(b.atoms).Ptr(at[0]).U64(stride).U32(uint32(reads))
		q := &query{reduce: []device.Command{launch(module, "wah_touch", max(b.tiles, 1), 1, b.threads, p)}}
		s, err := median(runs, func(int) (Stats, error) {
			reply, err := b.ex.Run(ctx, b.dev, &device.Batch{Commands: append([]device.Command{flush.command()}, q.timed()...)})
			if err != nil {
				return Stats{}, err
			}
			return q.stats(reply.Millis), nil
		})
		if err != nil {
			return nil, err
		}
		*result = s.Millis()
	}
	return t, nil
}
