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
// tile, bin after bin (kernels/wah_cut.cuh); and which bins are ones all over a tile, once more
// (kernels/wah_warps.cuh).
type cutLayout struct {
	tile, tiles int
	atoms       []uint64
	places      []uint64 // one for each bin, tile after tile, and one more
	masks       []uint64 // ceil(bins/64) for each tile: bit i%64 of word i/64 where bin i is ones
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
	words := ceil(len(bins), 64)
	l.masks = make([]uint64, l.tiles*words)
	at := uint64(0)
	for i, p := range l.places {
		n := p &^ placeOnes
		if p != n {
			t, bin := i/len(bins), i%len(bins)
			l.masks[t*words+bin/64] |= 1 << (bin % 64)
		}
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
	ahead   int // steps that a warp has on their way; 0 is the kernel's own
	// warps is whether tiles are warps' and not blocks': the kernel is wah_warps.
	warps bool
	wide  int // of warps: a step is so many times 64 atoms, as it is of blocks; 0 is the kernel's own
}

// cutBins are the bins as Cut wants them, in device memory.
type cutBins struct {
	tile, tiles          int
	begins               []uint64
	memory               device.Pointer
	atoms, places, masks device.Pointer
	words                int   // of masks, for each tile
	forced               shape // of all queries, instead of shapeFor's
	blocks               int   // of a grid of warps, instead of as many as a device holds
}

// residentWarps is how many warps of a fused kernel a multiprocessor holds: of 64 registers a
// thread.
const residentWarps = 32

// cutTileFor is the tile, in chunks, at which bins are cut for Cut: the shortest of which a device
// holds all at a time, if warps have one each, or 512 chunks.
func cutTileFor(chunks, multiprocessors int) int {
	tile := 64
	for tile < 512 && ceil(chunks, tile) > residentWarps*multiprocessors {
		tile *= 2
	}
	return tile
}

// shapeFor is the shape for a query that reads so many atoms of all tiles: a tile is a warp's where
// that has little to do for it. It was chosen from what shapes took for the benchmark's sets on an
// H200, as they are and repeated.
func (c *cutBins) shapeFor(atoms uint64) shape {
	if c.forced.tile != 0 {
		return c.forced
	}
	s := shape{tile: c.tile, threads: 128, ahead: 4}
	most := 4 * uint64(c.tile)
	if c.tile <= 64 {
		// Tiles are few: the densest one is what a query waits for.
		most = 100
	}
	if atoms < most*uint64(c.tiles) {
		s.ahead, s.wide, s.warps = 2, 2, true
		if c.tile <= 64 {
			s.threads = 64
		}
	}
	return s
}

// grid is how many blocks a kernel of warps has: all that a device holds at a time, if there are
// tiles for them, and more only where counts of 32 bits demand it.
func (c *cutBins) grid(s shape, info device.Info) int {
	warps := s.threads / 32
	held := residentWarps / warps
	if block := int64(12*s.tile*warps + 1024); info.SharedPerSM > 0 { // a block has 1 KB of the device's own
		held = min(held, int(int64(info.SharedPerSM)/block))
	}
	blocks := max(held, 1) * max(info.SMs, 1)
	if c.blocks > 0 {
		blocks = c.blocks
	}
	const most = 1 << 32 / (maxTile * chunkBits) // tiles that 32 bits can count
	return max(min(blocks, ceil(c.tiles, warps)), ceil(c.tiles, most*warps))
}

// uploadCut copies bins, cut at tiles of so many chunks, in place of those that were so before.
// No query may run.
func (b *Bins) uploadCut(ctx context.Context, atoms [][]uint64, tile int) error {
	if err := b.freeCut(); err != nil {
		return err
	}
	l := newCutLayout(b.chunks, atoms, tile)
	c := cutBins{tile: tile, tiles: l.tiles, begins: l.begins, words: ceil(len(atoms), 64)}
	atomBytes, placeBytes := align(8*int64(len(l.atoms))), align(8*int64(len(l.places)))
	var err error
	if c.memory, err = b.ex.Alloc(b.dev, atomBytes+placeBytes+align(8*int64(len(l.masks)))); err != nil {
		return err
	}
	c.atoms, c.places = c.memory, c.memory+device.Pointer(atomBytes)
	c.masks = c.places + device.Pointer(placeBytes)
	b.cut = c
	for _, part := range []struct {
		at    device.Pointer
		words []uint64
	}{{c.atoms, l.atoms}, {c.places, l.places}, {c.masks, l.masks}} {
		if err = b.write(ctx, part.at, part.words); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bins) freeCut() error {
	p := b.cut.memory
	b.cut = cutBins{}
	if p == 0 {
		return nil
	}
	return b.ex.Free(b.dev, p)
}
