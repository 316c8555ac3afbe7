package cube

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// executors lists every algorithm with each of its choices.
func executors[N Number]() map[string]func(context.Context, *Cube[N], Query) ([]Result[N], error) {
	all := map[string]func(context.Context, *Cube[N], Query) ([]Result[N], error){}
	named := func(name string, f Executor[N], opt Options) {
		all[name] = func(ctx context.Context, c *Cube[N], q Query) ([]Result[N], error) { return f(ctx, c, q, opt) }
	}
	named("SourceBased", SourceBased[N], Options{})
	for _, workers := range []int{1, 3} {
		named(fmt.Sprint("TargetBased ", workers), TargetBased[N], Options{Workers: workers})
		named(fmt.Sprint("Aggregate ", workers), Aggregate[N], Options{Workers: workers})
		named(fmt.Sprint("sparse ", workers), sparseAggregate[N], Options{Workers: workers})
		for pre := range PreaggregateWorker + 1 {
			for _, functions := range []int{1, 4, 33} {
				o := Options{Workers: workers, Preaggregation: pre, HashFunctions: functions, Prefilter: functions == 4}
				named(fmt.Sprintf("ParallelSourceBased %+v", o), ParallelSourceBased[N], o)
				o.FixedGrid = functions == 33
				o.SyncEvery = functions % 3
				named(fmt.Sprintf("DynamicParallelism %+v", o), DynamicParallelism[N], o)
			}
		}
	}
	return all
}

// sparseAggregate is Aggregate with its hash tables, whatever the size.
func sparseAggregate[N Number](ctx context.Context, c *Cube[N], q Query, opt Options) ([]Result[N], error) {
	opt = opt.normal()
	return each(c, q, func(m *aggregationMap[N]) (Result[N], error) {
		f := &factored[N]{ctx: ctx, m: m, opt: &opt, dims: make([]classes, len(m.dims))}
		for d := range m.dims {
			if f.dims[d] = m.classify(d); len(f.dims[d].first) == 0 {
				return Result[N]{}, nil
			}
		}
		return f.sparse()
	})
}

func same[N Number](a, b []Result[N]) bool {
	return slices.EqualFunc(a, b, func(x, y Result[N]) bool {
		return slices.Equal(x.Targets, y.Targets) && slices.Equal(x.Values, y.Values)
	})
}

// agree compares all executors with the reference.
func agree[N Number](t *testing.T, c *Cube[N], q Query) {
	t.Helper()
	want, err := reference(t.Context(), c, q, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range executors[N]() {
		got, err := f(t.Context(), c, q)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !same(got, want) {
			t.Fatalf("%s:\n%v\nwant\n%v", name, got, want)
		}
	}
}

// randomCube makes a small cube with n cells at most, and a query over it. Weights and
// values are whole numbers, so that doubles are exact too. scaled gives fixed-point
// weights decimals.
func randomCube[N Number](r *rand.Rand, n int, scaled bool) (*Cube[N], Query, error) {
	dims := make([]Dimension[N], 1+r.IntN(4))
	bases := make([][]int, len(dims))
	for d := range dims {
		dims[d].Name = fmt.Sprint("dimension ", d)
		if scaled && !isFloat[N]() {
			dims[d].Scale = r.IntN(2)
		}
		for e := range 1 + r.IntN(12) {
			var children []Child[N]
			if e > 0 && r.IntN(3) > 0 {
				for range 1 + r.IntN(4) {
					children = append(children, Child[N]{r.IntN(e), N(r.IntN(7) - 2)})
				}
			} else {
				bases[d] = append(bases[d], e)
			}
			dims[d].Elements = append(dims[d].Elements, Element[N]{Name: fmt.Sprint("element ", e), Children: children})
		}
	}
	cells := Cells[N]{Paths: make([][]uint32, len(dims))}
	seen := map[string]bool{}
	for range n {
		path := make([]uint32, len(dims))
		for d := range path {
			path[d] = uint32(bases[d][r.IntN(len(bases[d]))])
		}
		if seen[fmt.Sprint(path)] {
			continue
		}
		seen[fmt.Sprint(path)] = true
		for d, e := range path {
			cells.Paths[d] = append(cells.Paths[d], e)
		}
		cells.Values = append(cells.Values, N(r.IntN(2001)-1000))
	}
	q := make(Query, 1+r.IntN(3))
	for i := range q {
		for d := range dims {
			k := r.IntN(min(5, len(dims[d].Elements)) + 1)
			q[i] = append(q[i], r.Perm(len(dims[d].Elements))[:k])
		}
	}
	c, err := New(dims, cells, 0)
	return c, q, err
}

func TestExecutorsAgree(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		f, q, err := randomCube[float64](r, r.IntN(300), false)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, f, q)
		i, q, err := randomCube[int64](r, r.IntN(300), true)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, i, q)
	}
}

func FuzzExecutors(f *testing.F) {
	f.Add(uint64(1), uint16(0))
	f.Add(uint64(7), uint16(129))
	f.Fuzz(func(t *testing.T, seed uint64, n uint16) {
		r := rand.New(rand.NewPCG(seed, 2))
		c, q, err := randomCube[int64](r, int(n%512), seed%2 == 0)
		switch {
		case errors.Is(err, errRange): // weights through many levels, each with decimals
			return
		case err != nil:
			t.Fatal(err)
		}
		if _, err := reference(t.Context(), c, q, Options{}); errors.Is(err, errRange) {
			for name, f := range executors[int64]() {
				if _, err := f(t.Context(), c, q); !errors.Is(err, errRange) {
					t.Fatalf("%s: error %v, want %v", name, err, errRange)
				}
			}
			return
		}
		agree(t, c, q)
	})
}

// line is a cube of n cells over two dimensions of which every place is filled: rows,
// and a narrow one with a consolidated element above it.
func line(n int) (*Cube[int64], error) {
	rows := Dimension[int64]{Name: "rows"}
	all := Element[int64]{Name: "all"}
	cells := Cells[int64]{Paths: make([][]uint32, 2)}
	for i := range (n + 2) / 3 {
		rows.Elements = append(rows.Elements, Element[int64]{})
		all.Children = append(all.Children, Child[int64]{i, int64(i % 5)})
	}
	if len(all.Children) == 0 {
		rows.Elements = append(rows.Elements, Element[int64]{})
	}
	rows.Elements = append(rows.Elements, all)
	parts := Dimension[int64]{Name: "parts", Elements: []Element[int64]{{}, {}, {}, {Children: []Child[int64]{{0, 1}, {1, -2}, {0, 4}}}}}
	for i := range n {
		cells.Paths[0] = append(cells.Paths[0], uint32(i/3))
		cells.Paths[1] = append(cells.Paths[1], uint32(i%3))
		cells.Values = append(cells.Values, int64(i))
	}
	return New([]Dimension[int64]{rows, parts}, cells, 0)
}

// TestEdgeLengths meets the sizes of warps, blocks, pages, tiles and morsels.
func TestEdgeLengths(t *testing.T) {
	for _, n := range []int{0, 1, 2, 31, 32, 33, 63, 64, 127, 128, 129, 511, 512, 513, 767, 768, 769, 1023, 1024, 1025, 3071, 3073} {
		c, err := line(n)
		if err != nil {
			t.Fatal(n, err)
		}
		last := len(c.dims[0].Elements) - 1
		agree(t, c, Query{{{last}, {3}}, {{0, last}, {1, 3, 2}}, {{last}, {}}})
	}
	for _, n := range []int{pageCells - 1, pageCells, pageCells + 1, morselCells, 2*morselCells + 1} {
		c, err := line(n)
		if err != nil {
			t.Fatal(n, err)
		}
		last := len(c.dims[0].Elements) - 1
		q := Query{{{last, last - 1, 5}, {3, 0}}}
		want, err := SourceBased(t.Context(), c, q, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range executors[int64]() {
			got, err := f(t.Context(), c, q)
			if err != nil || !same(got, want) {
				t.Fatalf("%d cells, %s: %v %v, want %v", n, name, got, err, want)
			}
		}
	}
}

// TestWeightsOverSeveralPaths adds up the paths from one base element, by hand.
func TestWeightsOverSeveralPaths(t *testing.T) {
	// top = 2*a + 3*mid, mid = a - b: a reaches top twice, 2 + 3 = 5, b with -3.
	d := Dimension[int64]{Name: "d", Elements: []Element[int64]{{Name: "a"}, {Name: "b"},
		{Name: "mid", Children: []Child[int64]{{0, 1}, {1, -1}}}, {Name: "top", Children: []Child[int64]{{0, 2}, {2, 3}}}}}
	c, err := New([]Dimension[int64]{d}, Cells[int64]{Paths: [][]uint32{{1, 0}}, Values: []int64{10, 100}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range executors[int64]() {
		got, err := f(t.Context(), c, Query{{{3, 1}}})
		if err != nil || !same(got, []Result[int64]{{[]uint64{0, 1}, []int64{470, 10}}}) {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	// With one decimal: top = 0.2*a + 0.3*mid, two edges deep: 10 * -0.3*0.1... in hundredths.
	d.Scale = 1
	if c, err = New([]Dimension[int64]{d}, Cells[int64]{Paths: [][]uint32{{1, 0}}, Values: []int64{10, 100}}, 0); err != nil {
		t.Fatal(err)
	}
	if got, err := Aggregate(t.Context(), c, Query{{{3, 1}}}, Options{}); err != nil || c.ResultScale() != 2 ||
		!same(got, []Result[int64]{{[]uint64{0, 1}, []int64{100*(2*10+3) - 3*10, 1000}}}) {
		t.Error(got, err, c.ResultScale())
	}
}

func TestWhatMakesNoSense(t *testing.T) {
	base := Element[int64]{Name: "base"}
	over := func(k ...Child[int64]) Element[int64] { return Element[int64]{Name: "over", Children: k} }
	one := func(e ...Element[int64]) []Dimension[int64] { return []Dimension[int64]{{Name: "d", Elements: e}} }
	bad := func(dims []Dimension[int64], cells Cells[int64], scale int) {
		t.Helper()
		if _, err := New(dims, cells, scale); err == nil {
			t.Error("no error")
		}
	}
	none := Cells[int64]{Paths: [][]uint32{nil}}
	bad(nil, Cells[int64]{}, 0)
	bad(one(), none, 0)
	bad(one(base), none, -1)
	bad(one(base), none, 19)
	bad(one(base, over(Child[int64]{2, 1})), none, 0)
	bad(one(base, over(Child[int64]{-1, 1})), none, 0)
	bad(one(base, over(Child[int64]{1, 1})), none, 0)
	bad(one(over(Child[int64]{1, 1}), over(Child[int64]{0, 1})), none, 0)
	bad(one(base), Cells[int64]{Paths: [][]uint32{{1}}, Values: []int64{1}}, 0)
	bad(one(base, over(Child[int64]{0, 1})), Cells[int64]{Paths: [][]uint32{{1}}, Values: []int64{1}}, 0)
	bad(one(base), Cells[int64]{Paths: [][]uint32{{0, 0}}, Values: []int64{1, 2}}, 0)
	bad(one(base), Cells[int64]{Paths: [][]uint32{{0}}, Values: []int64{1, 2}}, 0)
	if _, err := New([]Dimension[float64]{{Elements: []Element[float64]{{}}}}, Cells[float64]{Paths: [][]uint32{{0}}, Values: []float64{math.NaN()}}, 0); err == nil {
		t.Error("NaN is no value")
	}
	if _, err := New(one(base, over(Child[int64]{0, math.MaxInt64}), over(Child[int64]{1, 2})), none, 0); !errors.Is(err, errRange) {
		t.Error(err)
	}
	c, err := New(one(base, over(Child[int64]{0, 1 << 40})), Cells[int64]{Paths: [][]uint32{{0}}, Values: []int64{1 << 30}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range executors[int64]() {
		if _, err := f(t.Context(), c, Query{{{1}}}); !errors.Is(err, errRange) {
			t.Errorf("%s: %v", name, err)
		}
		for _, q := range []Query{{{}}, {{{2}}}, {{{-1}}}, {{{0, 0}}}, {{{0}, {0}}}} {
			if _, err := f(t.Context(), c, q); err == nil {
				t.Errorf("%s answers %v", name, q)
			}
		}
	}
}

func TestCancelled(t *testing.T) {
	c, err := line(2 * morselCells)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	last := len(c.dims[0].Elements) - 1
	for name, f := range executors[int64]() {
		if _, err := f(ctx, c, Query{{upTo(last + 1), {3}}}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	c, err := line(3 * 4096)
	if err != nil {
		t.Fatal(err)
	}
	q := Query{{upTo(len(c.dims[0].Elements)), upTo(4)}}
	for name, f := range map[string]Executor[int64]{"SourceBased": SourceBased[int64], "TargetBased": TargetBased[int64], "Aggregate": Aggregate[int64],
		"ParallelSourceBased": ParallelSourceBased[int64], "DynamicParallelism": DynamicParallelism[int64], "sparse": sparseAggregate[int64]} {
		for _, pre := range []Preaggregation{PreaggregateNone, PreaggregateWorker} {
			if _, err := f(t.Context(), c, q, Options{MemoryLimit: 1 << 15, Preaggregation: pre}); !errors.Is(err, errMemory) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
