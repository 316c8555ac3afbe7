package wah

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"pgaccel/papers/wahbits"
)

func TestBench(t *testing.T) {
	ex := emulated(t)
	opt := Options{Sets: []string{"KDD", "linkage"}, Bins: []int{2, 5}, Quick: true, Runs: 1, CPURuns: 1, Cores: []int{1, 2}, Large: 300_000, Shapes: []Shape{{Tile: 128, Threads: 64, Ahead: 1}, {Tile: 128, Threads: 32, Ahead: 3, Warps: true, Wide: 1}}}
	rows, err := Bench(context.Background(), ex, 0, opt)
	if err != nil {
		t.Fatal(err)
	}
	// Two sets, as they are and repeated: two queries each by two strategies in three forms and
	// two shapes in two, and by the four others both and, repeated, the larger one.
	if want := 2 * (2*2*(2*3+2*2) + 3*4); len(rows) != want {
		t.Fatalf("%d rows, want %d", len(rows), want)
	}
	for _, r := range rows {
		if repeated := strings.Contains(r.Set, " x "); repeated || strings.HasPrefix(r.Strategy, "cut ") {
			if r.Millis() <= 0 || r.Floor <= 0 || r.Compressed <= 0 || r.Compressed >= r.Plain || r.Launches == 0 {
				t.Errorf("%+v", r)
			}
			if moved := r.Compressed + 8*int64(r.Rows/chunkBits); repeated && r.Bins == 5 && moved < 300_000 {
				t.Errorf("%s: %d bytes", r.Set, moved)
			}
			continue
		}
		if r.Touch == nil || r.Touch.Empty <= 0 || r.Touch.Read <= 0 || r.Touch.Chain <= 0 {
			t.Errorf("%s: %+v", r.Set, r.Touch)
		}
		if r.Millis() <= 0 || r.Floor <= 0 || len(r.CPU) != 2 || r.Compressed <= 0 || r.Compressed >= r.Plain || r.Launches == 0 {
			t.Errorf("%+v", r)
		}
		if fused := strings.HasPrefix(r.Strategy, "fused"); fused != (r.OverBest > 0) || fused != (r.Decompress == 0) {
			t.Errorf("%+v", r)
		}
	}
	var out bytes.Buffer
	Print(&out, rows)
	for _, want := range []string{"KDD: 153075 rows", "linkage: ", "ideal hybrid", "fused, count", "over the best of four"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if _, err := Bench(context.Background(), ex, 0, Options{Sets: []string{"none"}}); err == nil {
		t.Error("a set that there is not")
	}
	if _, err := Bench(context.Background(), ex, 7, Options{}); err == nil {
		t.Error("a device that is not there")
	}
}

func TestWrongAnswersAreFound(t *testing.T) {
	a := newAnswers(unionWords([]*wahbits.Bitmap{wahbits.Full(200, true)}), 200)
	for f, words := range map[form][]uint64{
		formChunks: {allOnes, allOnes, allOnes, 1<<11 - 1},
		formRows:   {^uint64(0), ^uint64(0), ^uint64(0), 1<<8 - 1},
		formCount:  {200},
	} {
		if err := a.check(words, f); err != nil {
			t.Errorf("form %d: %v", f, err)
		}
		words[len(words)-1] ^= 1
		if err := a.check(words, f); err == nil {
			t.Errorf("form %d: a bit less", f)
		}
	}
}

func TestClusteredIsAPartition(t *testing.T) {
	const rows = 300_000
	n, atoms := 0, 0
	bins := clusteredBitmaps(rows)
	for _, b := range bins {
		n += b.Count()
		atoms += len(b.Atoms())
	}
	if union := wahbits.OrAll(nil, bins); n != rows || union.Count() != rows {
		t.Errorf("%d rows in all bins, %d in their union, of %d", n, union.Count(), rows)
	}
	if atoms > rows/400 {
		t.Errorf("%d atoms are not of clustered rows", atoms)
	}
}

func TestOrShares(t *testing.T) {
	bins := clusteredBitmaps(50_000)
	for _, workers := range []int{1, 2, 3, 16, 100} {
		for _, m := range []int{1, 2, 3, 7, 64} {
			if !orShares(bins[:m], workers).Equal(wahbits.OrAll(nil, bins[:m])) {
				t.Errorf("%d bins on %d cores", m, workers)
			}
		}
	}
}
