package wah

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgaccel/gpu/device"
	"pgaccel/gpu/emulator"
	"pgaccel/papers/wahbits"
)

func emulated(t testing.TB) device.Executor {
	t.Helper()
	e, err := emulator.New(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// checkUnion compares every way to answer with wahbits.
func checkUnion(t *testing.T, b *Bins, bins []*wahbits.Bitmap, lo, hi int, strategies ...Strategy) {
	t.Helper()
	ctx := context.Background()
	rows := b.Len()
	want := chunksOf(rows, bins[lo:hi])
	if slices.Contains(strategies, Fused) && !slices.Contains(strategies, Cut) {
		strategies = append(slices.Clone(strategies), Cut)
	}
	for _, s := range strategies {
		got, stats, err := b.Or(ctx, lo, hi, s)
		if err != nil {
			t.Fatalf("%d rows, bins %d to %d, %v: %v", rows, lo, hi, s, err)
		}
		if !slices.Equal(got, want) {
			at := 0
			for at < len(got) && at < len(want) && got[at] == want[at] {
				at++
			}
			t.Fatalf("%d rows, bins %d to %d, %v: %d words for %d, chunk %d of other rows", rows, lo, hi, s, len(got), len(want), at)
		}
		if s == Fused && stats.Launches > 1 {
			t.Fatalf("fused: %d launches", stats.Launches)
		}
	}
	union := wahbits.FromChunks(want, rows)
	dense := make([]uint64, (rows+63)/64)
	union.Dense(dense, 0, rows)
	for _, s := range []Strategy{Fused, Cut} {
		if !slices.Contains(strategies, s) {
			continue
		}
		count, _, err := b.Count(ctx, lo, hi, s)
		if err != nil || count != union.Count() {
			t.Fatalf("%d rows, bins %d to %d, %v: %d counted, want %d: %v", rows, lo, hi, s, count, union.Count(), err)
		}
		bitmap, _, err := b.OrRows(ctx, lo, hi, s)
		if err != nil || !slices.Equal(bitmap, dense) {
			t.Fatalf("%d rows, bins %d to %d, %v: another bitmap of rows: %v", rows, lo, hi, s, err)
		}
	}
}

func uploaded(t *testing.T, ex device.Executor, bins []*wahbits.Bitmap, tile int) *Bins {
	t.Helper()
	b, err := uploadTiled(context.Background(), ex, 0, bins, tile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Free(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestLengths(t *testing.T) {
	ex := emulated(t)
	rng := rand.New(rand.NewPCG(5, 6))
	for _, rows := range lengths {
		var bins []*wahbits.Bitmap
		for _, name := range []string{"zeros", "sparse", "alternating chunks", "fill, literal", "literals", "long fills", "mixed", "last row", "one at a tile's edge"} {
			bins = append(bins, shaped(name, rng, rows))
		}
		b := uploaded(t, ex, bins, 64)
		checkUnion(t, b, bins, 0, len(bins), allStrategies()...)
		checkUnion(t, b, bins, 2, 2, allStrategies()...)
		checkUnion(t, b, bins, 3, 4, allStrategies()...)
		checkWarps(t, b, bins, 0, len(bins))
		b.cut.forced = shape{tile: b.cut.tile, threads: 64, ahead: 4}
		checkUnion(t, b, bins, 0, len(bins), Cut)
		if err := b.FreeScratch(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestShapes(t *testing.T) {
	ex := emulated(t)
	rng := rand.New(rand.NewPCG(7, 8))
	const rows = 4*63*64 + 700
	for _, name := range shapeNames() {
		t.Run(name, func(t *testing.T) {
			bins := []*wahbits.Bitmap{shaped(name, rng, rows), shaped("sparse", rng, rows), shaped(name, rng, rows)}
			for _, tile := range []int{64, 256, 1024} {
				b := uploaded(t, ex, bins, tile)
				checkUnion(t, b, bins, 0, 1, Fused)
				checkUnion(t, b, bins, 0, 3, Fused, COA)
				checkWarps(t, b, bins, 0, 3)
			}
		})
	}
}

func TestNumbersOfBins(t *testing.T) {
	ex := emulated(t)
	rng := rand.New(rand.NewPCG(9, 10))
	const rows = 2*63*64 + 65
	var bins []*wahbits.Bitmap
	for i := range 300 {
		names := []string{"sparse", "fill, literal", "mixed", "last row", "zeros"}
		name := names[i%len(names)]
		if name == "mixed" && i > 20 {
			name = "sparse"
		}
		bins = append(bins, shaped(name, rng, rows))
	}
	b := uploaded(t, ex, bins, 128)
	for _, m := range []int{1, 2, 3, 5, 16, 17, 33, 64} {
		lo := rng.IntN(len(bins) - m)
		checkUnion(t, b, bins, lo, lo+m, allStrategies()...)
	}
	for _, m := range []int{127, 128, 129, 256, 257, 300} {
		checkUnion(t, b, bins, len(bins)-m, len(bins), Fused)
	}
	checkUnion(t, b, bins, 0, 300, Hybrid)
}

func TestThreads(t *testing.T) {
	ex := emulated(t)
	rng := rand.New(rand.NewPCG(18, 19))
	const rows = 2*63*64 + 65
	var bins []*wahbits.Bitmap
	for i := range 270 {
		bins = append(bins, shaped([]string{"sparse", "fill, literal", "last row", "one at a tile's edge"}[i%4], rng, rows))
	}
	bins[3] = shaped("mixed", rng, rows)
	for _, threads := range []int{32, 64, 256} {
		b := uploaded(t, ex, bins, 64)
		b.threads, b.cut.forced = threads, shape{tile: b.cut.tile, threads: threads, ahead: 4}
		for _, m := range []int{1, 5, 65, 256, 270} {
			checkUnion(t, b, bins, 0, m, Fused)
		}
	}
}

// Each bin has another number of atoms in the first tile, of which the last one is a fill that
// goes on in the second.
func TestFillsThatLeaveATile(t *testing.T) {
	ex := emulated(t)
	const tile = 256
	var bins []*wahbits.Bitmap
	for n := range tile - 1 {
		var b wahbits.Builder
		for range n {
			b.AppendRun(true, 1+n%62)
			b.AppendRun(false, 62-n%62)
		}
		// Of all fills only the last one may hide what others have in the wrong place. None is
		// longer than its part of the first tile by a whole number of tiles.
		b.AppendRun(n == tile-2, 63*(tile-n+1+n%5))
		b.AppendRun(true, 1)
		b.AppendRun(false, 3*63*tile-b.Len())
		bins = append(bins, b.Finish(nil))
	}
	for _, threads := range []int{32, 128} {
		b := uploaded(t, ex, bins, tile)
		b.threads, b.cut.forced = threads, shape{tile: b.cut.tile, threads: threads, ahead: 4}
		for lo := 0; lo < len(bins); lo += 17 {
			checkUnion(t, b, bins, lo, min(lo+34, len(bins)), Fused)
			checkUnion(t, b, bins, lo, lo+1, Fused)
		}
		for lo := range bins[1:] {
			if n := (lo + 1) % 64; n < 2 || n > 62 { // atoms that end with a step of 64, or about there
				checkUnion(t, b, bins, lo, lo+2, Fused)
			}
		}
	}
}

// Runs of ones, many in 32 atoms, of several bins beside each other and over each other.
func TestManyRunsOfOnes(t *testing.T) {
	ex := emulated(t)
	rng := rand.New(rand.NewPCG(23, 24))
	const rows = 2*63*256 + 63*11
	var bins []*wahbits.Bitmap
	for i := range 24 {
		var b wahbits.Builder
		for b.Len() < rows {
			for _, set := range []bool{false, true} {
				b.AppendRun(set, min(63*(1+rng.IntN(1+i)), rows-b.Len()))
			}
		}
		if rows%63 != 0 {
			t.Fatal("the last chunk is to be a fill")
		}
		bins = append(bins, b.Finish(nil))
	}
	for _, tile := range []int{64, 256, 1024} {
		for _, threads := range []int{32, 128, 256} {
			b := uploaded(t, ex, bins, tile)
			b.threads, b.cut.forced = threads, shape{tile: b.cut.tile, threads: threads, ahead: 4}
			for lo := rng.IntN(3); lo < len(bins); lo += 3 {
				checkUnion(t, b, bins, lo, min(lo+1+rng.IntN(3), len(bins)), Fused)
				if threads == 128 && lo%2 == 0 {
					checkWarps(t, b, bins, lo, min(lo+1+rng.IntN(3), len(bins)))
				}
			}
		}
	}
}

// Ones in a later round of columns, too, end a tile.
func TestOnesEndATile(t *testing.T) {
	ex := emulated(t)
	rng := rand.New(rand.NewPCG(11, 12))
	const rows = 3*63*64 + 40
	var bins []*wahbits.Bitmap
	for range 200 {
		bins = append(bins, shaped("sparse", rng, rows))
	}
	var ones wahbits.Builder
	ones.AppendRun(false, 63*64-5)
	ones.AppendRun(true, 63*64+10)
	ones.AppendRun(false, rows-ones.Len())
	bins[170] = ones.Finish(nil)
	b := uploaded(t, ex, bins, 64)
	checkUnion(t, b, bins, 0, 200, Fused)
	checkUnion(t, b, bins, 170, 171, Fused)
}

// Random sets of bins are compared whole.
func TestRandom(t *testing.T) {
	ex := emulated(t)
	names := shapeNames()
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 13))
		rows := 1 + rng.IntN(4*63*64)
		var bins []*wahbits.Bitmap
		for range 1 + rng.IntN(40) {
			name := names[rng.IntN(len(names))]
			if name == "ones" || name == "long fills" {
				name = "mixed"
			}
			bins = append(bins, shaped(name, rng, rows))
		}
		b := uploaded(t, ex, bins, 64<<rng.IntN(5))
		lo := rng.IntN(len(bins))
		checkUnion(t, b, bins, lo, lo+1+rng.IntN(len(bins)-lo), Fused, Strategy(rng.IntN(int(Fused))))
	}
}

func TestStoredWords(t *testing.T) {
	ex := emulated(t)
	x := shaped("mixed", rand.New(rand.NewPCG(14, 15)), 70_000)
	b, err := uploadWords(context.Background(), ex, 0, [][]uint64{x.Store(nil).Words()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free()
	checkUnion(t, b, []*wahbits.Bitmap{x}, 0, 1, Fused)
	if b.Bins() != 1 || b.CompressedBytes(0, 1) != int64(8*len(x.Atoms())) {
		t.Errorf("%d bins of %d bytes", b.Bins(), b.CompressedBytes(0, 1))
	}
}

func TestErrors(t *testing.T) {
	full := false
	ex, err := emulator.New(emulator.Options{FailAlloc: func(int64) bool { return full }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ex.Close() })
	ctx := context.Background()
	bins := []*wahbits.Bitmap{wahbits.Full(100, true), wahbits.Full(100, false)}
	b := uploaded(t, ex, bins, 0)
	for _, r := range [][2]int{{-1, 1}, {1, 0}, {0, 3}} {
		if _, _, err := b.Or(ctx, r[0], r[1], Fused); err == nil {
			t.Errorf("bins %d to %d", r[0], r[1])
		}
	}
	if _, _, err := b.Or(ctx, 0, 1, strategies); err == nil {
		t.Error("a strategy that there is not")
	}
	full = true
	if _, _, err := b.Or(ctx, 0, 2, COA); device.KindOf(err) != device.FaultMemory {
		t.Errorf("no memory for columns: %v", err)
	}
	if _, err := uploadBins(ctx, ex, 0, bins); device.KindOf(err) != device.FaultMemory {
		t.Errorf("no memory for bins: %v", err)
	}
	full = false
	checkUnion(t, b, bins, 0, 2, allStrategies()...)
}

func TestTooManyBinsForABlock(t *testing.T) {
	ex := emulated(t)
	bins := slices.Repeat([]*wahbits.Bitmap{shaped("sparse", rand.New(rand.NewPCG(16, 17)), 200)}, 2049)
	b := uploaded(t, ex, bins, 64)
	for _, s := range []Strategy{ROA, IdealHybrid} {
		if _, _, err := b.Or(context.Background(), 0, 2049, s); err == nil || !strings.Contains(err.Error(), "2048 bins at most") {
			t.Errorf("%v: %v", s, err)
		}
	}
	checkUnion(t, b, bins, 1, 2049, IdealHybrid, Fused)
}

func TestStrategyNames(t *testing.T) {
	for _, s := range allStrategies() {
		if got, err := parseStrategy(s.String()); err != nil || got != s {
			t.Errorf("%v: %v, %v", s, got, err)
		}
	}
	if _, err := parseStrategy("best"); err == nil {
		t.Error("best is no strategy")
	}
	if got := fmt.Sprint(strategies); got != "Strategy(6)" {
		t.Error(got)
	}
}

func TestTileFor(t *testing.T) {
	for _, c := range []struct{ chunks, tile int }{{0, 256}, {77_753, 256}, {132 * 8 * 256, 256}, {132 * 8 * 512, 512}, {132*8*1024 - 1, 512}, {132 * 8 * 1024, 1024}, {1 << 30, 1024}} {
		if got := tileFor(c.chunks, 132); got != c.tile {
			t.Errorf("%d chunks: tile of %d, want %d", c.chunks, got, c.tile)
		}
	}
}
