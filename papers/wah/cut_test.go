package wah

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgaccel/gpu/device"
	"pgaccel/papers/wahbits"
)

// orCut is Cut's answer, told plainly: each tile's atoms of bins lo to hi-1 are one range.
func orCut(l *cutLayout, chunks, bins, lo, hi int) []uint64 {
	out := make([]uint64, l.tiles*l.tile)
	for t := range l.tiles {
		tile := out[t*l.tile : (t+1)*l.tile]
		at := 0
		for _, a := range l.atoms[l.places[t*bins+lo]&^placeOnes : l.places[t*bins+hi]&^placeOnes] {
			switch n := int(atomChunks(a)); {
			case a&fillFlag == 0:
				tile[at%l.tile] |= a
				at++
			default:
				for range n {
					if a&fillOnes != 0 {
						tile[at%l.tile] = allOnes
					}
					at++
				}
			}
		}
		if at%l.tile != 0 {
			return nil // bins of another number of chunks
		}
		for _, p := range l.places[t*bins+lo : t*bins+hi] {
			if p&placeOnes != 0 {
				for i := range tile {
					tile[i] = allOnes
				}
			}
		}
	}
	return out[:chunks]
}

func TestCutLayout(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for _, rows := range []int{1, 62, 63, 64, 63*64 - 1, 63 * 64, 63*64 + 1, 3*63*256 + 17, 63 * 1024 * 2} {
		var bins []*wahbits.Bitmap
		var atoms [][]uint64
		for _, name := range shapeNames() {
			x := shaped(name, rng, rows)
			bins, atoms = append(bins, x), append(atoms, x.Atoms())
		}
		for _, tile := range []int{64, 256, 1024} {
			l := newCutLayout((rows+62)/63, atoms, tile)
			if n := l.begins[len(bins)]; n != uint64(len(l.atoms)) || n != l.places[len(l.places)-1] {
				t.Fatalf("%d rows, tiles of %d: %d atoms, %d by bins, %d by places", rows, tile, len(l.atoms), n, l.places[len(l.places)-1])
			}
			for lo := range bins {
				for _, hi := range []int{lo + 1, len(bins)} {
					if !slices.Equal(orCut(l, (rows+62)/63, len(bins), lo, hi), chunksOf(rows, bins[lo:hi])) {
						t.Fatalf("%d rows, tiles of %d, bins %d to %d: other rows", rows, tile, lo, hi)
					}
				}
			}
		}
	}
}

// Bins that are repeated are those of repeated rows, and such as a device takes.
func TestRepeated(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 34))
	const rows = 63*300 + 40
	var atoms, plain [][]uint64
	for _, name := range shapeNames() {
		x := shaped(name, rng, rows)
		atoms, plain = append(atoms, repeatAtoms(x.Atoms(), rows/63, 5)), append(plain, repeatWords(wahbits.Decomp(x.Atoms(), 301)[:300], 5))
	}
	if _, err := newLayout(5*300*63, atoms, 64); err != nil {
		t.Fatal(err)
	}
	for i, name := range shapeNames() {
		if !slices.Equal(wahbits.Decomp(atoms[i], 5*300), plain[i]) {
			t.Errorf("%s: other rows", name)
		}
	}
}

// checkWarps compares wah_warps with wahbits, all forms, in a grid so small that warps have many tiles.
func checkWarps(t *testing.T, b *Bins, bins []*wahbits.Bitmap, lo, hi int) {
	t.Helper()
	defer func(c cutBins) { b.cut.forced, b.cut.blocks = c.forced, c.blocks }(b.cut)
	for _, s := range []struct{ threads, ahead, blocks, wide int }{{32, 1, 1, 2}, {64, 4, 2, 1}} {
		b.cut.forced, b.cut.blocks = shape{tile: b.cut.tile, threads: s.threads, ahead: s.ahead, warps: true, wide: s.wide}, s.blocks
		checkUnion(t, b, bins, lo, hi, Cut)
	}
}

// More tiles than a warp asks for at a time, with some that are ones and some without atoms
// between others, at all lengths about the borders of chunks and tiles.
func TestWarpsOfManyTiles(t *testing.T) {
	ex := emulated(t)
	rng := rand.New(rand.NewPCG(41, 42))
	for _, rows := range []int{1, 63*64 - 1, 63*64 + 1, 70 * 63 * 64, 67*63*64 + 63*17 + 5} {
		var bins []*wahbits.Bitmap
		for i := range 70 {
			name := []string{"sparse", "last row", "one at a tile's edge", "zeros", "long fills", "fill, literal"}[i%6]
			if i%7 > 0 && i%6 != 4 {
				name = "zeros"
			}
			bins = append(bins, shaped(name, rng, rows))
		}
		b := uploaded(t, ex, bins, 64)
		checkWarps(t, b, bins, 0, 4)
		checkWarps(t, b, bins, 3, 5)
		checkWarps(t, b, bins, 5, 70)
		checkWarps(t, b, bins, 63, 66)
	}
}

func TestGridOfWarps(t *testing.T) {
	info := device.Info{SMs: 132, SharedPerSM: 228 << 10}
	for _, c := range []struct {
		tiles, tile, threads int
		want                 int
	}{{1, 256, 128, 1}, {4*1056 - 3, 256, 128, 1056}, {1 << 20, 256, 128, 8 * 132}, {1 << 20, 1024, 64, 9 * 132}, {1 << 20, 512, 32, 32 * 132}} {
		b := cutBins{tiles: c.tiles}
		if got := b.grid(shape{tile: c.tile, threads: c.threads, warps: true}, info); got != c.want {
			t.Errorf("%+v: %d blocks", c, got)
		}
	}
	one := cutBins{tiles: 1 << 20, blocks: 1}
	if got := one.grid(shape{tile: 1024, threads: 32, warps: true}, info); got*66_576 < 1<<20 {
		t.Errorf("%d warps cannot count 2^20 tiles", got)
	}
}

// Shapes are those that measurements say: sparse tiles are warps', and dense ones blocks'.
func TestShapesOfQueries(t *testing.T) {
	for _, c := range []struct {
		chunks      int
		atoms       uint64
		tile, warps int
	}{
		{0, 0, 64, 0},
		{77_753, 19_000, 64, 2}, {77_753, 166_000, 64, 0}, // KDD, 8 and 64 bins
		{115_458, 141_000, 64, 2},                                   // BPA, 64
		{507_937, 1_707_000, 128, 4}, {507_937, 28_000_000, 128, 0}, // Zipf, 4 and 64
		{5_909_152, 12_600_000, 512, 4}, {22_857_132, 1_400_000, 512, 4}, {22_857_132, 200_000_000, 512, 0},
	} {
		tile := cutTileFor(c.chunks, 132)
		b := cutBins{tile: tile, tiles: ceil(c.chunks, tile)}
		s := b.shapeFor(c.atoms)
		if tile != c.tile || s.tile != tile || s.warps != (c.warps > 0) || s.warps && s.threads != 32*c.warps {
			t.Errorf("%+v: tiles of %d, %+v", c, tile, s)
		}
	}
}
