package bitmapidx

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// columns are kinds of columns; each returns n values and nulls.
var columns = map[string]func(rng *rand.Rand, n int) ([]int64, []uint64){
	"one value": func(rng *rand.Rand, n int) ([]int64, []uint64) { return column(n, func(int) int64 { return 42 }), nil },
	"two values": func(rng *rand.Rand, n int) ([]int64, []uint64) {
		return column(n, func(int) int64 { return rng.Int64N(2) }), nil
	},
	"all null": func(rng *rand.Rand, n int) ([]int64, []uint64) {
		return column(n, func(i int) int64 { return int64(i) }), someNull(rng, n, 1)
	},
	"status": func(rng *rand.Rand, n int) ([]int64, []uint64) {
		return column(n, func(int) int64 { return []int64{200, 404, 500, 503}[rng.IntN(4)] }), someNull(rng, n, 0.1)
	},
	"sorted": func(rng *rand.Rand, n int) ([]int64, []uint64) {
		return column(n, func(i int) int64 { return int64(i) * 1000003 }), nil
	},
	"uniform": func(rng *rand.Rand, n int) ([]int64, []uint64) {
		return column(n, func(int) int64 { return rng.Int64N(1000) - 500 }), someNull(rng, n, 0.5)
	},
	"all 64 bits": func(rng *rand.Rand, n int) ([]int64, []uint64) {
		return column(n, func(int) int64 { return int64(rng.Uint64()) }), nil
	},
	"extremes": func(rng *rand.Rand, n int) ([]int64, []uint64) {
		return column(n, func(int) int64 { return []int64{math.MinInt64, math.MaxInt64, 0, rng.Int64()}[rng.IntN(4)] }), someNull(rng, n, 0.01)
	},
	"heavy": func(rng *rand.Rand, n int) ([]int64, []uint64) {
		return column(n, func(int) int64 {
			if rng.IntN(3) != 0 {
				return 77
			}
			return rng.Int64N(100000)
		}), nil
	},
	"clustered": func(rng *rand.Rand, n int) ([]int64, []uint64) {
		v := int64(0)
		return column(n, func(int) int64 {
			if rng.IntN(200) == 0 {
				v = rng.Int64N(300)
			}
			return v
		}), someNull(rng, n, 0.001)
	},
}

func column(n int, value func(i int) int64) []int64 {
	values := make([]int64, n)
	for i := range values {
		values[i] = value(i)
	}
	return values
}

func someNull(rng *rand.Rand, n int, p float64) []uint64 {
	nulls := make([]uint64, n/64) // shorter than the column, as it may be
	for i := range n / 64 * 64 {
		if rng.Float64() < p {
			nulls[i>>6] |= 1 << (i & 63)
		}
	}
	return nulls
}

func ones(words []uint64) (n int) {
	for _, w := range words {
		n += bits.OnesCount64(w)
	}
	return n
}

// exact reports whether every bin holds one value.
func exact(x *Index) bool {
	return !slices.ContainsFunc(x.bins, func(b bin) bool { return b.lo != b.hi })
}

// checkRows compares what a query says with the column: what passes qualifies or is a
// candidate, and every row that qualifies passes.
func checkRows(t *testing.T, what string, values []int64, nulls []uint64, passing, maybe []uint64, want func(v int64) bool) {
	t.Helper()
	for i, v := range values {
		is := !isNull(nulls, i) && want(v)
		passes, candidate := isNull(passing, i), isNull(maybe, i)
		if is && !passes || passes && !is && !candidate || candidate && (isNull(nulls, i) || !passes) {
			t.Fatalf("%s: row %d of value %d (null %v): passes %v, maybe %v", what, i, v, isNull(nulls, i), passes, candidate)
		}
	}
	if n := len(values); n&63 != 0 && passing[n>>6]>>(n&63) != 0 {
		t.Fatalf("%s: rows past the last one pass", what)
	}
}

func checkIndex(t *testing.T, what string, rng *rand.Rand, values []int64, nulls []uint64, x *Index) {
	t.Helper()
	rows := make([]uint64, (len(values)+63)/64)
	or(rows, x.nulls)
	for i := range values {
		if isNull(rows, i) != isNull(nulls, i) {
			t.Fatalf("%s: row %d is null: %v", what, i, isNull(rows, i))
		}
	}
	for i := range rows {
		rows[i] = rng.Uint64() // what was there does not matter
	}
	some := []int64{0, 1, -1, 42, 200, 404, math.MinInt64, math.MaxInt64}
	for range min(12, len(values)) {
		some = append(some, values[rng.IntN(len(values))])
	}
	for range max(3, min(40, 1<<16/(len(values)+1))) {
		lo, hi := some[rng.IntN(len(some))], some[rng.IntN(len(some))]
		if rng.IntN(8) == 0 {
			lo, hi = math.MinInt64, math.MaxInt64
		}
		inside := func(v int64) bool { return lo <= v && v <= hi }
		maybe := x.Range(rows, lo, hi)
		w := fmt.Sprintf("%s, %d to %d", what, lo, hi)
		checkRows(t, w, values, nulls, rows, maybe, inside)
		if cost := x.Cost(lo, hi); cost.Candidates != ones(maybe) || maybe != nil && ones(maybe) == 0 {
			t.Fatalf("%s: %d candidates, not %d", w, cost.Candidates, ones(maybe))
		}
		list := some[:rng.IntN(len(some))]
		maybe = x.In(rows, list)
		checkRows(t, what+", IN", values, nulls, rows, maybe, func(v int64) bool { return slices.Contains(list, v) })
		if exact(x) && maybe != nil {
			t.Fatalf("%s: candidates of an exact index", what)
		}
	}
}

func TestIndex(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	for _, n := range []int{0, 1, 62, 63, 64, 127, 128, 129, 511, 512, 513, 5000, 65536, 3*65536 + 1} {
		if testing.Short() && n > 5000 {
			continue
		}
		for name, make := range columns {
			values, nulls := make(rng, n)
			for _, o := range []options{usual, {1, 1}, {3, 7}, {5000, 5000}} {
				if n > 5000 && o != usual {
					continue
				}
				checkIndex(t, fmt.Sprintf("%s, %d rows, %+v", name, n, o), rng, values, nulls, build(values, nulls, o, nil))
			}
		}
	}
}

func TestBinsOfValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 20))
	values, nulls := columns["status"](rng, 10_000)
	x := Build(values, nulls, nil)
	if x.Bins() != 4 || !exact(x) {
		t.Errorf("four values: %d bins, exact %v", x.Bins(), exact(x))
	}
	if lo, hi, ok := x.Bounds(); lo != 200 || hi != 503 || !ok {
		t.Errorf("bounds %d to %d, %v", lo, hi, ok)
	}
	values, _ = columns["heavy"](rng, 65536)
	x = Build(values, nil, nil)
	rows := make([]uint64, 1024)
	if maybe := x.Range(rows, 77, 77); maybe != nil || ones(rows) < 40000 {
		t.Errorf("a value of two rows in three has no bin of its own: %d", ones(rows))
	}
	if x.Bins() > 2*32+1 {
		t.Errorf("%d bins", x.Bins())
	}
	values, _ = columns["all 64 bits"](rng, 65536)
	x = Build(values, nil, nil)
	for i := range x.Bins() {
		if n := x.bins[i].rows; n < 65536/32/3 || n > 65536/32*3 {
			t.Errorf("bin %d of %d has %d rows: that is not equi-depth", i, x.Bins(), n)
		}
	}
}

func TestIndexOutOfMemory(t *testing.T) {
	if Build([]int64{1, 2, 3}, nil, func(int) []uint64 { return nil }) != nil {
		t.Error("an index without memory")
	}
}

func TestProfile(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for _, n := range []int{0, 1, 63, 64, 126, 127, 5000, 65536} {
		for name, make := range columns {
			for _, o := range []options{usual, {2, 5}} {
				values, nulls := make(rng, n)
				p, x := Profiled(values, nulls), build(values, nulls, o, nil)
				null := slices.Repeat([]uint64{0}, (n+63)/64)
				or(null, x.nulls)
				if got, want := p.shape(o), (shape{x.Bins(), exact(x), x.atoms}); got != want {
					t.Errorf("%s, %d rows, %+v: %+v, want %+v", name, n, o, got, want)
				}
				if p.Rows != n || p.Nulls != ones(null) || p.Distinct < x.Bins() || exact(x) && p.Distinct != x.Bins() {
					t.Errorf("%s, %d rows: %d nulls and %d values in %d bins", name, n, p.Nulls, p.Distinct, x.Bins())
				}
				if o == usual && p.Bytes() != x.Bytes() {
					t.Errorf("%s, %d rows: %d bytes, not %d", name, n, p.Bytes(), x.Bytes())
				}
			}
		}
	}
}

func TestWorth(t *testing.T) {
	rng := rand.New(rand.NewPCG(27, 28))
	const n = 65536
	for name, want := range map[string]bool{"one value": true, "all null": true, "two values": false, "status": false, "uniform": false, "all 64 bits": false, "clustered": false, "sorted": true} {
		values, nulls := columns[name](rng, n)
		p := Profiled(values, nulls)
		if got := p.Worth(n / 8); got != want {
			t.Errorf("%s: %v beside a bit a value: %+v", name, got, p.shape(usual))
		}
	}
	// Two thousand rows a value, as of a table that was loaded shop after shop.
	shops := column(n, func(i int) int64 { return int64(i / 2000 * 37 % 64) })
	if p := Profiled(shops, nil); !p.Worth(n * 5 / 8) {
		t.Errorf("an index of clustered values is not worth it: %+v", p.shape(usual))
	}
	if Profiled(nil, nil).Worth(0) {
		t.Error("an index of no rows is worth it")
	}
}

func FuzzIndexRange(f *testing.F) {
	f.Add([]byte{1, 2, 3, 250}, int64(1), int64(3), uint8(2), uint8(2))
	f.Add([]byte{}, int64(0), int64(0), uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, lo, hi int64, equality, ranges uint8) {
		var values []int64
		var nulls []uint64
		for i, d := range data {
			if i&63 == 0 {
				nulls = append(nulls, 0)
			}
			v := int64(int8(d))
			switch d & 7 {
			case 7:
				nulls[i>>6] |= 1 << (i & 63)
			case 6:
				v = lo + v
			case 5:
				v = hi - v
			}
			for range 1 + int(d&1)*int(d) {
				values = append(values, v)
			}
		}
		x := build(values, nulls, options{max(int(equality), 1), max(int(ranges), 1)}, nil)
		rows := make([]uint64, (len(values)+63)/64)
		maybe := x.Range(rows, lo, hi)
		checkRows(t, "range", values, nulls, rows, maybe, func(v int64) bool { return lo <= v && v <= hi })
		list := []int64{lo, hi, 0, lo}
		maybe = x.In(rows, list)
		checkRows(t, "IN", values, nulls, rows, maybe, func(v int64) bool { return slices.Contains(list, v) })
	})
}

// TestWords reads an index of its words alone.
func TestWords(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	for name, make := range columns {
		for _, n := range []int{0, 1, 63, 64, 126, 127, 1000, 4099} {
			values, nulls := make(rng, n)
			x := build(values, nulls, options{1 + rng.IntN(9), 1 + rng.IntN(9)}, nil)
			words := x.Words()
			bins := int(words[0])
			if bins != x.Bins() || len(words) != directoryWords(bins)+x.atoms {
				t.Fatalf("%s, %d rows: %d words, %d bins, not %d", name, n, len(words), bins, x.Bins())
			}
			ends, atoms := words[1+2*bins:2+3*bins], words[directoryWords(bins):]
			from := uint64(0)
			for i, end := range ends {
				rows := make64(n)
				or(rows, atoms[from:end])
				from = end
				for row, v := range values {
					in := isNull(nulls, row)
					if i < bins {
						in = !in && int64(words[1+i]) <= v && v <= int64(words[1+bins+i])
					}
					if in != isNull(rows, row) {
						t.Fatalf("%s, %d rows: row %d in bin %d: %v", name, n, row, i, !in)
					}
				}
			}
			for i := range x.bins {
				tiles := map[int]bool{}
				for row, v := range values {
					if !isNull(nulls, row) && x.bins[i].lo <= v && v <= x.bins[i].hi {
						tiles[row/tileRows] = true
					}
				}
				if len(tiles) != x.bins[i].tiles {
					t.Errorf("%s, %d rows: bin %d has rows of %d tiles, want %d", name, n, i, x.bins[i].tiles, len(tiles))
				}
			}
			if int(from) != x.atoms {
				t.Errorf("%s, %d rows: %d of %d atoms belong to a bin", name, n, from, x.atoms)
			}
		}
	}
}

func make64(rows int) []uint64 { return make([]uint64, (rows+63)/64) }

// isNull is bit i of nulls, words past whose end are 0.
func isNull(nulls []uint64, i int) bool { return i>>6 < len(nulls) && nulls[i>>6]>>(i&63)&1 != 0 }
