package wah

import (
	"context"
	"runtime"
	"sync"

	"pgaccel/gpu/device"
)

// placeOnes marks, among cutLayout.places, a bin that is ones all over a tile.
const placeOnes = uint64(1) << 63

// cutLayout is what Cut reads: atoms cut at the borders of tiles, tile after tile and, in a
// tile, bin after bin (kernels/wah_cut.cuh).
type cutLayout struct {
	tile, tiles int
	atoms       []uint64
	places      []uint64 // one for each bin, tile after tile, and one more
	begins      []uint64 // atoms of bins before each, one more than bins
}

// newCutLayout cuts bins that newLayout took. It takes as many cores as there are.
func newCutLayout(chunks int, bins [][]uint64, tile int) *cutLayout {
	l := &cutLayout{tile: tile, tiles: (chunks + tile - 1) / tile, begins: make([]uint64, len(bins)+1)}
	l.places = make([]uint64, l.tiles*len(bins)+1)
	each(len(bins), func(i int) {
		n := uint64(0)
		l.cut(bins[i], func(t int, atoms []uint64, ones bool) {
			p := uint64(len(atoms))
			n += p
			if ones {
				p = placeOnes
			}
			l.places[t*len(bins)+i] = p
		})
		l.begins[i+1] = n
	})
	for i := range bins {
		l.begins[i+1] += l.begins[i]
	}
	at := uint64(0)
	for i, p := range l.places {
		n := p &^ placeOnes
		l.places[i] = at | p&placeOnes
		at += n
	}
	l.atoms = make([]uint64, at)
	each(len(bins), func(i int) {
		l.cut(bins[i], func(t int, atoms []uint64, _ bool) {
			copy(l.atoms[l.places[t*len(bins)+i]&^placeOnes:], atoms)
		})
	})
	return l
}

// cut calls visit with each tile of a bin: its atoms, which are visit's until it returns, and
// whether it is all ones. A tile that is one fill has no atoms.
func (l *cutLayout) cut(bin []uint64, visit func(t int, atoms []uint64, ones bool)) {
	part := make([]uint64, 0, l.tile)
	i, used := 0, uint64(0) // an atom, and how many of its chunks are before the tile
	for t := range l.tiles {
		part = part[:0]
		for left := uint64(l.tile); left > 0; {
			if i == len(bin) { // past the end
				if last := len(part) - 1; last >= 0 && part[last]>>62 == 2 {
					part[last] += left
				} else {
					part = append(part, fillFlag|left)
				}
				break
			}
			n := atomChunks(bin[i])
			take := min(n-used, left)
			if bin[i]&fillFlag == 0 {
				part = append(part, bin[i])
			} else {
				part = append(part, bin[i]&^runMask|take)
			}
			left -= take
			if used += take; used == n {
				i, used = i+1, 0
			}
		}
		if len(part) == 1 {
			visit(t, nil, part[0]&fillOnes != 0)
		} else {
			visit(t, part, false)
		}
	}
}

// each calls f with 0 to n-1, on as many cores as there are.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			f(i)
			<-slots
		})
	}
	wg.Wait()
}

// shape is how a fused kernel is compiled.
type shape struct {
	tile    int // chunks
	threads int // of a block
	ahead   int // steps of 64 atoms that a warp has on their way; 0 is the kernel's own
}

// cutBins are the bins as Cut wants them, in device memory.
type cutBins struct {
	shape
	tiles         int
	begins        []uint64
	memory        device.Pointer
	atoms, places device.Pointer
}

// cutShape is how Cut is compiled for so many chunks a bin: of the shapes of 64 to 1,024 chunks
// and 32 to 256 threads, the one that is best, or nearly so, for 64 bins of the benchmark's sets
// on an H200, short and repeated.
func cutShape(chunks, multiprocessors int) shape {
	tile := TileFor(chunks, multiprocessors)
	return shape{tile: tile, threads: threadsFor(tile), ahead: 4}
}

// uploadCut copies bins, cut at tiles of s, in place of those that were so before. No query
// may run.
func (b *Bins) uploadCut(ctx context.Context, atoms [][]uint64, s shape) error {
	if err := b.freeCut(); err != nil {
		return err
	}
	l := newCutLayout(b.chunks, atoms, s.tile)
	c := cutBins{shape: s, tiles: l.tiles, begins: l.begins}
	atomBytes := align(8 * int64(len(l.atoms)))
	var err error
	if c.memory, err = b.ex.Alloc(b.dev, atomBytes+align(8*int64(len(l.places)))); err != nil {
		return err
	}
	c.atoms, c.places = c.memory, c.memory+device.Pointer(atomBytes)
	b.cut = c
	if err = b.write(ctx, c.atoms, l.atoms); err == nil {
		err = b.write(ctx, c.places, l.places)
	}
	return err
}

func (b *Bins) freeCut() error {
	p := b.cut.memory
	b.cut = cutBins{}
	if p == 0 {
		return nil
	}
	return b.ex.Free(b.dev, p)
}
