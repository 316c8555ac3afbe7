package gpucube

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/papers/cube"
)

// TestBench runs the thesis' queries on small cubes: every variant that there is answers
// as the sequential algorithm does, or Bench fails.
func TestBench(t *testing.T) {
	variants := []Variant{{Method: Source, Prefilter: true, Saving: SaveShuffle, Functions: 28},
		{Method: Children, Prefilter: true, Saving: SaveStride, Functions: 4, Sync: true}}
	for m := Queue; m <= ClassesHash; m++ {
		variants = append(variants, Variant{Method: m})
	}
	rows, err := Bench(t.Context(), shared, 0, Options{BikerCells: 600, MachinesCells: 600, BaselineCells: 500, Rounds: 1, Limit: time.Hour, Variants: variants})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		t.Log(r)
		if r.Variant.Method == ClassesShared && (r.Unavailable != "" || r.Targets == 0) {
			t.Errorf("%v", r)
		}
	}
	all := Summarize(rows)
	if len(all) != 6 {
		t.Errorf("%d summaries of 6 queries", len(all))
	}
	for _, s := range all {
		if s.Chosen == nil || s.Best == nil || s.Ours == nil || s.BestThesis == nil || s.WorstThesis == nil || !strings.Contains(s.String(), "ours") {
			t.Errorf("%v lacks a row: %+v", s, s)
		}
	}
}

// counting is an executor that counts, and fails when a kernel is launched.
type counting struct {
	device.Executor
	mu     sync.Mutex
	allocs int
	runs   int
	faults map[string]*device.Fault // by kernel
	lost   *device.Fault            // what every call says from then on
	millis func(run int) float64    // of each batch with marks
}

func (e *counting) Alloc(dev int, bytes int64) (device.Pointer, error) {
	e.mu.Lock()
	e.allocs++
	e.mu.Unlock()
	return e.Executor.Alloc(dev, bytes)
}

func (e *counting) Run(ctx context.Context, dev int, b *device.Batch) (*device.Reply, error) {
	e.mu.Lock()
	e.runs++
	run := e.runs
	for _, c := range b.Commands {
		if f := e.faults[c.Function]; f != nil && c.Op == device.OpLaunch && e.lost == nil {
			if f.Kind == device.FaultLost {
				e.lost = f
			}
			e.mu.Unlock()
			return nil, f
		}
	}
	lost := e.lost
	e.mu.Unlock()
	if lost != nil {
		return nil, lost
	}
	r, err := e.Executor.Run(ctx, dev, b)
	if err == nil && e.millis != nil && len(r.Millis) > 0 {
		r.Millis = []float64{e.millis(run)}
	}
	return r, err
}

// TestBenchFaults: a variant whose kernel fails has a row of one line; where the device is
// lost the rows so far come with one error.
func TestBenchFaults(t *testing.T) {
	ex := &counting{Executor: shared, faults: map[string]*device.Fault{
		"cube_queue":       {Kind: device.FaultLaunch, Call: "kernel cube_queue", Text: "an illegal address\nat a line"},
		"cube_source_none": {Kind: device.FaultLost, Call: "cuStreamSynchronize", Text: "gone"},
	}}
	variants := []Variant{{Method: Children}, {Method: Source}, {Method: ClassesShared}, {Method: Queue}}
	rows, err := Bench(t.Context(), ex, 0, Options{BikerCells: 600, MachinesCells: 600, BaselineCells: 500, Rounds: 1, Limit: time.Hour, Variants: variants})
	if device.KindOf(err) != device.FaultLost || strings.Count(err.Error(), "gone") != 1 || !strings.Contains(err.Error(), "B1 by source/f1") {
		t.Errorf("%v", err)
	}
	counts := map[Method]int{}
	for _, r := range rows {
		counts[r.Variant.Method]++
		switch r.Variant.Method {
		case ClassesShared:
			if r.Unavailable != "" || r.DeviceMillis <= 0 {
				t.Errorf("%v", r)
			}
		case Queue, Source:
			if r.Unavailable == "" || strings.Contains(r.String(), "\n") {
				t.Errorf("%v", r)
			}
		}
	}
	if counts[ClassesShared] != 6 || counts[Queue] != 6 || counts[Source] != 1 || counts[Children] != 0 {
		t.Errorf("rows by method: %v", counts)
	}
}

// TestKeptMemory: what ran before needs no more memory, and one batch.
func TestKeptMemory(t *testing.T) {
	ex := &counting{Executor: shared}
	dims := []cube.Dimension[int64]{tall[int64]("a", 3, 1), tall[int64]("b", 400, 1, 2), tall[int64]("c", 7, -1, 1)}
	u, err := uploadCube(t.Context(), ex, 0, grid(t, dims, 3000, 2500, func(i int) int64 { return int64(i % 50) }))
	if err != nil {
		t.Fatal(err)
	}
	query := cube.Query{{{0, 3, 1}, {400, 7, 8}, {7}}}
	for _, v := range append(some(), Variant{Method: ClassesShared}) {
		for round := range 3 {
			allocs, runs := ex.allocs, ex.runs
			if _, _, err := u.Run(t.Context(), query, v); err != nil {
				t.Fatalf("%v: %v", v, err)
			}
			if round > 0 && (ex.allocs != allocs || ex.runs != runs+1) {
				t.Errorf("%v: %d allocations, %d batches", v, ex.allocs-allocs, ex.runs-runs)
			}
		}
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
}

func TestRoomFor(t *testing.T) {
	last := int64(0)
	for bytes := int64(0); bytes < 1<<14; bytes++ {
		got := roomFor(bytes)
		if got < max(bytes, 1) || got > bytes*5/4+256 || got < last || roomFor(got) != got {
			t.Fatalf("room of %d for %d, %d for one less", got, bytes, last)
		}
		last = got
	}
}

// TestTune: the fastest variant is chosen, and chosen again for queries of the same shape.
func TestTune(t *testing.T) {
	ex := &counting{Executor: shared, millis: func(run int) float64 { return 1e6 / float64(run) }}
	dims := []cube.Dimension[int64]{tall[int64]("a", 3, 1), tall[int64]("b", 400, 1, 2), tall[int64]("c", 7, -1, 1)}
	u, err := uploadCube(t.Context(), large{ex}, 0, grid(t, dims, 3000, 2500, func(i int) int64 { return int64(i % 50) }))
	if err != nil {
		t.Fatal(err)
	}
	var chosen Variant
	for i, area := range []cube.Area{{{3}, {400}, {7}}, {{3}, {400}, {7}}, {{0}, {1}, {2, 3}}} {
		q, err := u.Prepare(t.Context(), area)
		if err != nil {
			t.Fatal(err)
		}
		runs := ex.runs
		v, err := q.Tune(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case i == 0:
			tried := 0
			for tried < tuneVariants && q.candidates()[tried].us < tuneWithin*q.candidates()[0].us {
				tried++
			}
			if tried < 2 || v != q.candidates()[tried-1].Variant { // later ones are faster
				t.Errorf("chose %v of %v, %d tried", v, q.candidates(), tried)
			}
			chosen = v
		case i == 1 && (v != chosen || ex.runs != runs || q.Choose() != chosen):
			t.Errorf("%v and %v, %d runs: not what was found before, %v", v, q.Choose(), ex.runs-runs, chosen)
		case i == 2 && ex.runs == runs:
			t.Error("another shape, and nothing was measured")
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
}

// TestParts: a part of a cube is the cube of these cells.
func TestParts(t *testing.T) {
	dims := []cube.Dimension[int64]{tall[int64]("a", 3, 1), tall[int64]("b", 400, 1, 2), tall[int64]("c", 7, -1, 1)}
	host := grid(t, dims, 5000, 2500, func(i int) int64 { return int64(i) << 28 })
	u := upload(t, host)
	area := cube.Area{{0, 3, 1}, {400, 7, 8}, {7}}
	q, err := u.Prepare(t.Context(), area)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range [][2]int{{0, 2}, {1, 2}, {3, 2}, {4, 1}} {
		from, to := p[0]*vectorCells, min((p[0]+p[1])*vectorCells, 5000)
		cells := cube.Cells[int64]{Values: host.Cells().Values[from:to]}
		for _, path := range host.Cells().Paths {
			cells.Paths = append(cells.Paths, path[from:to])
		}
		part, err := cube.New(dims, cells, 0)
		if err != nil {
			t.Fatal(err)
		}
		want, err := cube.SourceBased(t.Context(), part, cube.Query{area}, cube.Options{})
		if err != nil {
			t.Fatal(err)
		}
		q.c = u.part(p[0], p[1])
		for _, v := range append(some(), Variant{Method: ClassesShared}) {
			got, _, err := q.Run(t.Context(), v)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Targets, want[0].Targets) || !slices.Equal(got.Values, want[0].Values) {
				t.Errorf("%v of vectors %d: another answer", v, p)
			}
		}
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
}
