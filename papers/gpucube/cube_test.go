package gpucube

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgaccel/gpu/device"
	"pgaccel/gpu/emulator"
	"pgaccel/papers/cube"
)

var shared device.Executor

// TestMain has one device for all tests: kernels are compiled once.
func TestMain(m *testing.M) {
	ex, err := emulator.New(emulator.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = ex
	code := m.Run()
	if err := ex.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// testVariants are all methods with all of their options.
func testVariants() (all []Variant) {
	for _, prefilter := range []bool{false, true} {
		for _, f := range []int{1, 4, 33} {
			for _, s := range []Saving{SaveNone, SaveShared, SaveShuffle} {
				all = append(all, Variant{Method: Source, Prefilter: prefilter, Saving: s, Functions: f})
			}
		}
		for i := range 8 {
			all = append(all, Variant{Method: Children, Prefilter: prefilter, Fixed: i&1 != 0, Sync: i&2 != 0, Saving: Saving(i >> 2 * int(SaveStride)), Functions: 1 + i%3})
		}
		all = append(all, Variant{Method: Queue, Prefilter: prefilter}, Variant{Method: QueueDense, Prefilter: prefilter})
	}
	for m := ClassesRegister; m <= ClassesHash; m++ {
		all = append(all, Variant{Method: m})
	}
	return all
}

// check runs an area in the variants and compares with the sequential algorithm. It
// returns how many were available.
func check[N cube.Number](t *testing.T, u *Cube[N], area cube.Area, variants []Variant) (ran map[Method]int) {
	t.Helper()
	want, err := cube.SourceBased(t.Context(), u.host, cube.Query{area}, cube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	q, err := u.Prepare(t.Context(), area)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}()
	ran = map[Method]int{}
	for _, v := range append(variants, q.Choose()) {
		got, _, err := q.Run(t.Context(), v)
		if errors.Is(err, errUnavailable) && v != q.Choose() {
			continue
		}
		if err != nil {
			t.Fatalf("%v: %v", v, err)
		}
		ran[v.Method]++
		if !slices.Equal(got.Targets, want[0].Targets) || !slices.Equal(got.Values, want[0].Values) {
			t.Fatalf("%v:\n%v %v\nwant\n%v %v", v, got.Targets, got.Values, want[0].Targets, want[0].Values)
		}
	}
	return ran
}

// randomCube makes a cube of n cells at most over so many dimensions, and areas of it.
func randomCube[N cube.Number](t *testing.T, r *rand.Rand, dims, n, elements int) (*cube.Cube[N], cube.Query) {
	t.Helper()
	all := make([]cube.Dimension[N], dims)
	bases := make([][]int, dims)
	for d := range all {
		all[d].Name = fmt.Sprint("dimension ", d)
		for e := range 1 + r.IntN(elements) {
			var children []cube.Child[N]
			if e > 0 && r.IntN(3) > 0 {
				for range 1 + r.IntN(4) {
					w := N(r.IntN(7) - 2)
					if isFloat[N]() {
						w /= 2
					}
					children = append(children, cube.Child[N]{Element: r.IntN(e), Weight: w})
				}
			} else {
				bases[d] = append(bases[d], e)
			}
			all[d].Elements = append(all[d].Elements, cube.Element[N]{Name: fmt.Sprint("element ", e), Children: children})
		}
	}
	cells := cube.Cells[N]{Paths: make([][]uint32, dims)}
	seen := map[string]bool{}
	for range n {
		path := make([]uint32, dims)
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
	q := make(cube.Query, 2)
	for i := range q {
		for d := range all {
			q[i] = append(q[i], r.Perm(len(all[d].Elements))[:r.IntN(min(5, len(all[d].Elements)))+1])
		}
	}
	c, err := cube.New(all, cells, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c, q
}

func upload[N cube.Number](t *testing.T, c *cube.Cube[N]) *Cube[N] {
	t.Helper()
	u, err := uploadCube(t.Context(), shared, 0, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	})
	return u
}

func TestRandomCubes(t *testing.T) {
	ran := map[Method]int{}
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 1))
		f, query := randomCube[float64](t, r, 3, 2500, 30)
		u := upload(t, f)
		for _, area := range query {
			for m, n := range check(t, u, area, testVariants()) {
				ran[m] += n
			}
		}
		i, query := randomCube[int64](t, r, 3, 400, 60)
		v := upload(t, i)
		for _, area := range query {
			for m, n := range check(t, v, area, testVariants()) {
				ran[m] += n
			}
		}
	}
	for m := Source; m <= ClassesHash; m++ {
		if ran[m] == 0 && m != ClassesRegister {
			t.Errorf("%s never ran", methodNames[m])
		}
	}
}
