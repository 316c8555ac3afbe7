package gpucube

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgaccel/gpu/device"
	"pgaccel/papers/cube"
)

// tall makes a dimension of n base elements below one of the given weights in turns.
func tall[N cube.Number](name string, n int, weights ...N) cube.Dimension[N] {
	d := cube.Dimension[N]{Name: name}
	var all []cube.Child[N]
	for i := range n {
		d.Elements = append(d.Elements, cube.Element[N]{Name: fmt.Sprint(name, i)})
		all = append(all, cube.Child[N]{Element: i, Weight: weights[i%len(weights)]})
	}
	d.Elements = append(d.Elements, cube.Element[N]{Name: "all", Children: all})
	return d
}

// grid makes a cube of n cells: the first dimension changes every run cells, the last one
// every cell.
func grid[N cube.Number](t *testing.T, dims []cube.Dimension[N], n, run int, value func(i int) N) *cube.Cube[N] {
	t.Helper()
	cells := cube.Cells[N]{Paths: make([][]uint32, len(dims))}
	inner := 0
	for inner < len(dims[2].Elements) && len(dims[2].Elements[inner].Children) == 0 {
		inner++
	}
	for i := range n {
		cells.Paths[0] = append(cells.Paths[0], uint32(i/run))
		cells.Paths[1] = append(cells.Paths[1], uint32(i%run/inner))
		cells.Paths[2] = append(cells.Paths[2], uint32(i%run%inner))
		cells.Values = append(cells.Values, value(i))
	}
	c, err := cube.New(dims, cells, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// some are variants of each kind.
func some() []Variant {
	return []Variant{{Method: Source, Saving: SaveShared, Functions: 3}, {Method: Source, Prefilter: true, Saving: SaveShuffle},
		{Method: Children, Prefilter: true, Saving: SaveStride, Sync: true}, {Method: Queue}, {Method: QueueDense, Prefilter: true}, {Method: ClassesHash}}
}

func TestEdgeSizes(t *testing.T) {
	for _, n := range []int{0, 1, 31, 32, 33, 63, 64, 127, 128, 129, 511, 512, 513, 767, 768, 769, 1023, 1024, 1025, 2047, 2049, 5000} {
		dims := []cube.Dimension[int64]{tall[int64]("a", 3, 1), tall[int64]("b", 400, 1, 2), tall[int64]("c", 7, -1, 1)}
		c := grid(t, dims, n, 2500, func(i int) int64 { return int64(i % 50) })
		u := upload(t, c)
		variants := some()
		if n == 1 || n >= 1023 {
			variants = append(variants, Variant{Method: ClassesShared})
		}
		check(t, u, cube.Area{{0, 3, 1}, {400, 7, 8}, {7}}, variants)
	}
}

// TestShapes are the extremes: one target, all cells to one cell, none that survive, all
// with many targets.
func TestShapes(t *testing.T) {
	many := tall[int64]("c", 7, 1)
	for i := range 60 { // elements above all others, with weights of their own
		var children []cube.Child[int64]
		for e := range 7 {
			children = append(children, cube.Child[int64]{Element: e, Weight: int64((i+1)*(e+2)%11 - 5)})
		}
		many.Elements = append(many.Elements, cube.Element[int64]{Name: fmt.Sprint("many", i), Children: children})
	}
	dims := []cube.Dimension[int64]{tall[int64]("a", 3, 1), tall[int64]("b", 40, 1), many}
	all := make([]int, 61)
	for i := range all {
		all[i] = 7 + i
	}
	cells := cube.Cells[int64]{Paths: make([][]uint32, 3)}
	for i := range 700 { // component 6 and plant 2 have no cells
		cells.Paths[0] = append(cells.Paths[0], uint32(i/350))
		cells.Paths[1] = append(cells.Paths[1], uint32(i%350/10))
		cells.Paths[2] = append(cells.Paths[2], uint32(i%6))
		cells.Values = append(cells.Values, int64(i%9-4))
	}
	seen := map[string]bool{}
	kept := cube.Cells[int64]{Paths: make([][]uint32, 3)}
	for i := range cells.Values {
		key := fmt.Sprint(cells.Paths[0][i], cells.Paths[1][i], cells.Paths[2][i])
		if seen[key] {
			continue
		}
		seen[key] = true
		for d := range kept.Paths {
			kept.Paths[d] = append(kept.Paths[d], cells.Paths[d][i])
		}
		kept.Values = append(kept.Values, cells.Values[i])
	}
	c, err := cube.New(dims, kept, 0)
	if err != nil {
		t.Fatal(err)
	}
	u := upload(t, c)
	for name, area := range map[string]cube.Area{
		"one target":    {{3}, {40}, {7}},
		"many targets":  {{3, 0}, {40}, all},
		"no survivors":  {{2}, {40}, {7}},
		"empty list":    {{3}, {}, {7}},
		"half a target": {{3}, {39}, {6, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			ran := check(t, u, area, append(some(), Variant{Method: ClassesRegister}, Variant{Method: ClassesShared}, Variant{Method: ClassesGlobal}))
			if name == "one target" && ran[ClassesRegister] == 0 {
				t.Error("one combination of classes, and no sum in registers")
			}
		})
	}
}

// TestScans are generated scans: wide values and factors, tables of all widths, zones.
func TestScans(t *testing.T) {
	classes := []Variant{{Method: ClassesShared}, {Method: ClassesGlobal}, {Method: ClassesRegister}, {Method: Queue}}
	for name, value := range map[string]func(i int) int64{
		"narrow":           func(i int) int64 { return int64(1 + i%1000) },
		"constant":         func(int) int64 { return -7 },
		"windows of one":   func(i int) int64 { return int64(i%2*240_000) - 120_000 },
		"31 bits":          func(i int) int64 { return int64(i%3)<<30 - 1<<30 },
		"wider than words": func(i int) int64 { return int64(i%5) * math.MaxInt32 * 1000 },
		"both signs":       func(i int) int64 { return int64(i%2*2-1) * (int64(i) << 33) },
	} {
		t.Run(name, func(t *testing.T) {
			a, b, c := tall[int64]("a", 5, 1), tall[int64]("b", 2600, 3, 1, -2), tall[int64]("c", 5, 1, 2)
			for i := range 20 { // cities
				var children []cube.Child[int64]
				for e := i; e < 2500; e += 20 {
					children = append(children, cube.Child[int64]{Element: e, Weight: 1})
				}
				b.Elements = append(b.Elements, cube.Element[int64]{Name: fmt.Sprint("city ", i), Children: children})
			}
			// 12000 cells a run: vectors within one run, and two between.
			u := upload(t, grid(t, []cube.Dimension[int64]{a, b, c}, 26_000, 12_000, value))
			cities := []int{2601, 2605, 2620, 17, 2610}
			check(t, u, cube.Area{{5, 1}, cities, {5}}, classes)
			if name == "narrow" {
				check(t, u, cube.Area{{5}, {2600}, {5}}, classes)
				check(t, u, cube.Area{{0, 2}, {3, 2600, 1000}, {1, 5, 3}}, classes)
			}
		})
	}
}

func TestGrownTables(t *testing.T) {
	dims := []cube.Dimension[int64]{tall[int64]("a", 3, 1), tall[int64]("b", 900, 1), tall[int64]("c", 3, 1)}
	u := upload(t, grid(t, dims, 2400, 900, func(i int) int64 { return int64(i) }))
	area := cube.Area{{0, 1, 2}, nil, {0, 1, 2}}
	for e := range 900 {
		area[1] = append(area[1], e)
	}
	want, err := cube.SourceBased(t.Context(), u.host, cube.Query{area}, cube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []Variant{{Method: Source, Functions: 2}, {Method: Children}, {Method: Queue}, {Method: ClassesHash}} {
		q, err := u.Prepare(t.Context(), area)
		if err != nil {
			t.Fatal(err)
		}
		q.firstSlots = 1024
		for round := range 2 {
			got, stats, err := q.Run(t.Context(), v)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Targets, want[0].Targets) || !slices.Equal(got.Values, want[0].Values) {
				t.Errorf("%v: another answer", v)
			}
			if round == 0 != (stats.Retries > 0) {
				t.Errorf("%v: %d retries in round %d", v, stats.Retries, round)
			}
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInexact(t *testing.T) {
	dims := func() []cube.Dimension[float64] {
		return []cube.Dimension[float64]{tall("a", 3, 1.0), tall("b", 9, 0.25), tall("c", 3, 1.0)}
	}
	for _, c := range []struct {
		value float64
		ok    bool
	}{{0.1, false}, {1e300, false}, {0.125, true}, {1 << 40, true}, {1 << 52, false}, {-0.5, true}} {
		host := grid(t, dims(), 20, 9, func(int) float64 { return c.value })
		u, err := uploadCube(t.Context(), shared, 0, host)
		if err == nil {
			_, _, err = u.Run(t.Context(), cube.Query{{{3}, {9}, {3}}}, Variant{Method: Queue})
			if err := u.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if c.ok && err != nil || !c.ok && !errors.Is(err, errInexact) {
			t.Errorf("%g: %v", c.value, err)
		}
	}
}

// noChildren is an executor without the device runtime that launches need, and counts memory.
type noChildren struct {
	device.Executor
	mu   sync.Mutex
	held map[device.Pointer]bool
}

func (e *noChildren) Compile(ctx context.Context, dev int, s device.Source) (device.Module, error) {
	if slices.ContainsFunc(s.Defines, func(d string) bool { return strings.HasPrefix(d, "PGACCEL_CDP") }) {
		return 0, &device.Fault{Kind: device.FaultCompile, Call: "cuLinkAddFile", Text: "libcudadevrt.a is not there"}
	}
	return e.Executor.Compile(ctx, dev, s)
}

func (e *noChildren) Alloc(dev int, bytes int64) (device.Pointer, error) {
	p, err := e.Executor.Alloc(dev, bytes)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		e.held[p] = true
	}
	return p, err
}

func (e *noChildren) Free(dev int, p device.Pointer) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.held, p)
	return e.Executor.Free(dev, p)
}

func TestWithoutDeviceRuntime(t *testing.T) {
	ex := &noChildren{Executor: shared, held: map[device.Pointer]bool{}}
	dims := []cube.Dimension[int64]{tall[int64]("a", 3, 1), tall[int64]("b", 9, 1), tall[int64]("c", 3, 1)}
	u, err := uploadCube(t.Context(), ex, 0, grid(t, dims, 20, 9, func(i int) int64 { return int64(i) }))
	if err != nil {
		t.Fatal(err)
	}
	query := cube.Query{{{3}, {9}, {3}}}
	for range 2 {
		if _, _, err := u.Run(t.Context(), query, Variant{Method: Children}); !errors.Is(err, errUnavailable) || !strings.Contains(err.Error(), "libcudadevrt.a is not there") {
			t.Errorf("%v, not why there are no children", err)
		}
	}
	for _, v := range []Variant{{Method: Queue}, {Method: ClassesShared}} {
		if _, _, err := u.Run(t.Context(), query, v); err != nil {
			t.Errorf("%v: %v", v, err)
		}
	}
	if err := u.Close(); err != nil || len(ex.held) > 0 {
		t.Errorf("%v; %d allocations are left", err, len(ex.held))
	}
}

func TestVariantNames(t *testing.T) {
	for _, v := range append(Variants(), testVariants()...) {
		got, err := parseVariant(v.String())
		v.Functions = max(v.Functions, 1)
		if got.Functions = max(got.Functions, 1); err != nil || v.Method <= QueueDense && got.String() != v.String() || got.Method != v.Method {
			t.Errorf("%v: %+v, %v", v, got, err)
		}
	}
	for _, name := range []string{"", "source", "source/f0", "cdp/f4/sync", "classes", "queue/f1", "source/sync/f1"} {
		if v, err := parseVariant(name); err == nil {
			t.Errorf("%q is %+v", name, v)
		}
	}
}

// large is an executor that says its devices are as large as an H200.
type large struct{ device.Executor }

func (h large) Devices() []device.Info {
	return []device.Info{{Kind: device.CUDA, SMs: 132, ThreadsPerSM: 2048, SharedPerBlock: 227 << 10, SharedPerSM: 228 << 10}}
}

// TestChoose has no clock: it checks what no measurement could turn around.
func TestChoose(t *testing.T) {
	for _, c := range []struct {
		make func(int) (*cube.Sample, error)
		full int
		want []Method
	}{
		{cube.Biker, cube.BikerCells, []Method{ClassesRegister, ClassesShared, ClassesShared}},
		{cube.Machines, cube.MachinesCells, []Method{ClassesRegister, ClassesShared, ClassesShared}},
	} {
		s, err := c.make(2_000_000)
		if err != nil {
			t.Fatal(err)
		}
		u, err := uploadCube(t.Context(), large{shared}, 0, s.Cube)
		if err != nil {
			t.Fatal(err)
		}
		for i, sq := range s.Queries {
			q, err := u.Prepare(t.Context(), sq.Area)
			if err != nil {
				t.Fatal(err)
			}
			if got := q.Choose(); got.Method != c.want[i] {
				t.Errorf("%s: %v", sq.Name, got)
			}
			if share := float64(sq.Relevant) / float64(c.full); math.Abs(q.Sample.Relevant-share) > 0.1 {
				t.Errorf("%s: a sample of %.3f relevant cells, all have %.3f", sq.Name, q.Sample.Relevant, share)
			}
			if err := q.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := u.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
