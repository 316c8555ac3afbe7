package wah

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgaccel/bitmapidx"
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
		var bins []*bitmapidx.Bitmap
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
		atoms, plain = append(atoms, repeatAtoms(x.Atoms(), rows/63, 5)), append(plain, repeatWords(bitmapidx.Decomp(x.Atoms(), 301)[:300], 5))
	}
	if _, err := newLayout(5*300*63, atoms, 64); err != nil {
		t.Fatal(err)
	}
	for i, name := range shapeNames() {
		if !slices.Equal(bitmapidx.Decomp(atoms[i], 5*300), plain[i]) {
			t.Errorf("%s: other rows", name)
		}
	}
}
