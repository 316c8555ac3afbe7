package wah

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgaccel/gpu/device"
	"pgaccel/papers/wahbits"
)

// lengths are rows: around chunks, tiles of 64 chunks and words.
var lengths = []int{0, 1, 31, 32, 33, 62, 63, 64, 125, 126, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025,
	63*63 - 1, 63 * 63, 63*63 + 1, 63*64 - 1, 63 * 64, 63*64 + 1, 63*65 - 1, 63 * 65, 63*128 - 1, 63 * 128, 63*128 + 1,
	5*63*64 - 1, 5 * 63 * 64, 5*63*64 + 1, 3*63*64 + 63*17 + 5}

// shapes are kinds of bit vectors.
var shapes = map[string]func(rng *rand.Rand, b *wahbits.Builder, rows int){
	"zeros": func(_ *rand.Rand, b *wahbits.Builder, rows int) { b.AppendRun(false, rows) },
	"ones":  func(_ *rand.Rand, b *wahbits.Builder, rows int) { b.AppendRun(true, rows) },
	"literals": func(rng *rand.Rand, b *wahbits.Builder, rows int) {
		for range rows {
			b.AppendBit(rng.IntN(2) == 0)
		}
	},
	"sparse": func(rng *rand.Rand, b *wahbits.Builder, rows int) {
		for row := rng.IntN(400); row < rows; row += 1 + rng.IntN(400) {
			b.Add(row)
		}
	},
	"alternating chunks": func(_ *rand.Rand, b *wahbits.Builder, rows int) {
		for b.Len() < rows {
			b.AppendRun(b.Len()/63%2 == 0, min(63, rows-b.Len()))
		}
	},
	"fill, literal": func(_ *rand.Rand, b *wahbits.Builder, rows int) {
		for row := 70; row < rows; row += 126 {
			b.Add(row)
		}
	},
	"long fills": func(rng *rand.Rand, b *wahbits.Builder, rows int) {
		for set := rng.IntN(2) == 0; b.Len() < rows; set = !set {
			b.AppendRun(set, min(1+rng.IntN(3*63*64), rows-b.Len()))
		}
	},
	"mixed": func(rng *rand.Rand, b *wahbits.Builder, rows int) {
		for b.Len() < rows {
			n := min(1+rng.IntN(63*20), rows-b.Len())
			if kind := rng.IntN(4); kind < 2 {
				b.AppendRun(kind == 0, n)
			} else {
				for range n {
					b.AppendBit(rng.IntN(2*kind) == 0)
				}
			}
		}
	},
	"last row": func(_ *rand.Rand, b *wahbits.Builder, rows int) {
		if rows > 0 {
			b.Add(rows - 1)
		}
	},
	"one at a tile's edge": func(_ *rand.Rand, b *wahbits.Builder, rows int) {
		if rows > 63*64 {
			b.Add(63*64 - 1)
			b.Add(63 * 64)
		}
	},
}

func shapeNames() []string {
	var names []string
	for name := range shapes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func shaped(name string, rng *rand.Rand, rows int) *wahbits.Bitmap {
	var b wahbits.Builder
	shapes[name](rng, &b, rows)
	b.AppendRun(false, rows-b.Len())
	return b.Finish(nil)
}

// chunksOf is the union in chunks, by wahbits.
func chunksOf(rows int, bins []*wahbits.Bitmap) []uint64 {
	if len(bins) == 0 {
		return make([]uint64, (rows+62)/63)
	}
	return wahbits.Decomp(wahbits.OrAll(nil, bins).Atoms(), (rows+62)/63)
}

// orPlaces is the fused kernel's answer, told plainly.
func orPlaces(l *layout, bins, lo, hi int) ([]uint64, error) {
	out := make([]uint64, l.tiles*l.tile)
	for t := range l.tiles {
		tile := out[t*l.tile : (t+1)*l.tile]
		for _, p := range l.places[t*bins+lo : t*bins+hi] {
			n := int(p>>placeAtoms&1023) + 1
			if n == 1 {
				for i := range tile {
					if p == placeOfOne {
						tile[i] = allOnes
					} else if p != placeOfZero {
						return nil, fmt.Errorf("tile %d: place %#x", t, p)
					}
				}
				continue
			}
			at := 0
			for i := range n {
				a := l.atoms[int(p>>placeFirst)+i]
				length := int(atomChunks(a))
				if i == 0 {
					length = int(p>>placeHead&1023) + 1
				} else if i == n-1 {
					length = int(p>>placeTail&1023) + 1
				}
				if a&fillFlag == 0 {
					tile[at] |= a
				} else if a&fillOnes != 0 {
					for j := range length {
						tile[at+j] = allOnes
					}
				}
				at += length
			}
			if at != l.tile {
				return nil, fmt.Errorf("tile %d: atoms of %d chunks", t, at)
			}
		}
	}
	return out[:l.chunks], nil
}

func TestPlaces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, rows := range lengths {
		for _, tile := range []int{64, 128, 1024} {
			var bins []*wahbits.Bitmap
			var atoms [][]uint64
			for _, name := range shapeNames() {
				b := shaped(name, rng, rows)
				bins, atoms = append(bins, b), append(atoms, b.Atoms())
			}
			l, err := newLayout(rows, atoms, tile)
			if err != nil {
				t.Fatal(err)
			}
			for lo := range bins {
				for _, hi := range []int{lo, lo + 1, len(bins)} {
					got, err := orPlaces(l, len(bins), lo, hi)
					if err != nil {
						t.Fatalf("%d rows, tiles of %d, bins %v: %v", rows, tile, shapeNames()[lo:hi], err)
					}
					if !slices.Equal(got, chunksOf(rows, bins[lo:hi])) {
						t.Fatalf("%d rows, tiles of %d, bins %v: other words", rows, tile, shapeNames()[lo:hi])
					}
				}
			}
		}
	}
}

// malformed are streams of 130 rows that are not bitmaps, and what is said of them.
var malformed = map[string][]uint64{
	"atoms of 2 chunks for 130 rows":           {fillFlag | 2},
	"atom 0 of 4 chunks at chunk 0 of 3":       {fillFlag | 4},
	"atom 1 of 0 chunks":                       {fillFlag | 1, fillFlag | fillOnes, fillFlag | 2},
	"atom 0 of 4611686018427387903 chunks":     {fillFlag | runMask},
	"atom 1 is a literal that should":          {1, 0, 1},
	"atom 0 is a literal that should":          {allOnes, 1, 1},
	"atoms 0 and 1 should be one fill":         {fillFlag | 1, fillFlag | 2},
	"bits past row 130":                        {1, 2, 1 << 4},
	"bits past row 130 (fill)":                 {fillFlag | fillOnes | 3},
	"atoms of 0 chunks for 130 rows":           {},
	"atom 3 of 1 chunks at chunk 3 of 3":       {1, 2, 3, 4},
	"atoms of 1 chunks for 130 rows (literal)": {5},
}

func TestMalformedIsNotLaidOut(t *testing.T) {
	for want, atoms := range malformed {
		want, _, _ = strings.Cut(want, " (")
		if _, err := newLayout(130, [][]uint64{{fillFlag | 3}, atoms}, 64); err == nil || !strings.HasPrefix(err.Error(), "bin 1: "+want) {
			t.Errorf("%#x: %v, want %q", atoms, err, want)
		}
	}
	for _, tile := range []int{0, 1, 32, 65, 96, 2048, -64} {
		if _, err := newLayout(130, nil, tile); err == nil {
			t.Errorf("tile of %d chunks", tile)
		}
	}
}

// untouched is an executor that nothing may reach.
type untouched struct {
	device.Executor
	t *testing.T
}

func (u untouched) Devices() []device.Info { return []device.Info{{SMs: 1}} }
func (u untouched) Alloc(int, int64) (device.Pointer, error) {
	u.t.Error("memory for what is no bitmap")
	return 0, &device.Fault{Kind: device.FaultMemory}
}

func TestMalformedIsNotUploaded(t *testing.T) {
	for _, atoms := range malformed {
		words := append([]uint64{130, uint64(len(atoms))}, atoms...)
		words = append(words, make([]uint64, (len(atoms)+63)/64)...)
		if _, err := uploadWords(context.Background(), untouched{t: t}, 0, [][]uint64{words}); err == nil {
			t.Errorf("%#x is uploaded", atoms)
		}
	}
	good := wahbits.Full(130, true).Store(nil).Words()
	for n := range len(good) {
		if _, err := uploadWords(context.Background(), untouched{t: t}, 0, [][]uint64{good[:n]}); err == nil {
			t.Errorf("%d words of %d are uploaded", n, len(good))
		}
	}
	if _, err := uploadWords(context.Background(), untouched{t: t}, 0, [][]uint64{append(slices.Clone(good), 0)}); err == nil {
		t.Error("a word too many is uploaded")
	}
	if _, err := uploadBins(context.Background(), untouched{t: t}, 0, []*wahbits.Bitmap{wahbits.Full(1, true), wahbits.Full(2, true)}); err == nil {
		t.Error("bins of 1 and 2 rows")
	}
	if _, err := uploadBins(context.Background(), untouched{t: t}, 0, nil); err == nil {
		t.Error("no bins")
	}
	if _, err := uploadBins(context.Background(), untouched{t: t}, 1, []*wahbits.Bitmap{wahbits.Full(1, true)}); err == nil {
		t.Error("a device that is not there")
	}
}

// FuzzLayout takes any words as atoms: they are laid out so that the places give the bit
// vector, or not at all.
func FuzzLayout(f *testing.F) {
	for _, atoms := range malformed {
		f.Add(uint16(130), uint8(0), wordBytes(atoms))
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for i, name := range shapeNames() {
		for _, rows := range []int{1, 63, 64, 63*64 + 1, 9000} {
			f.Add(uint16(rows), uint8(i), wordBytes(shaped(name, rng, rows).Atoms()))
		}
	}
	f.Fuzz(func(t *testing.T, rows uint16, tile uint8, data []byte) {
		atoms := make([]uint64, len(data)/8)
		for i := range atoms {
			atoms[i] = binary.LittleEndian.Uint64(data[8*i:])
		}
		l, err := newLayout(int(rows), [][]uint64{atoms, atoms}, 64<<(tile%5))
		// The block of a stored bitmap is the judge.
		block := append([]uint64{uint64(rows), uint64(len(atoms))}, atoms...)
		directory, chunk := make([]uint64, (len(atoms)+63)/64), uint64(0)
		for i, a := range atoms {
			if i%32 == 0 {
				directory[i/64] |= chunk & (1<<32 - 1) << (i / 32 % 2 * 32)
			}
			chunk += atomChunks(a)
		}
		_, _, parseErr := wahbits.ParseWords(append(block, directory...))
		if (err == nil) != (parseErr == nil) {
			t.Fatalf("%v, but wahbits says %v", err, parseErr)
		}
		if err != nil {
			return
		}
		got, err := orPlaces(l, 2, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, wahbits.Decomp(atoms, l.chunks)) {
			t.Fatal("other words")
		}
	})
}
