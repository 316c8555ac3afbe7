package bitmapidx

import (
	"fmt"
	"math"
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

func bitOf(words []uint64, i int) bool {
	return i>>6 < len(words) && words[i>>6]>>(i&63)&1 != 0
}

// checkRows compares what a query says with the column: every sure row qualifies,
// every row that qualifies is sure or a candidate, no row is both.
func checkRows(t *testing.T, what string, values []int64, nulls []uint64, sure, maybe *Bitmap, want func(v int64) bool) {
	t.Helper()
	certainly, perhaps := denseOf(sure), make([]uint64, len(values)/64+1)
	if maybe != nil {
		perhaps = denseOf(maybe)
	}
	for i, v := range values {
		is := !bitOf(nulls, i) && want(v)
		certain, candidate := bitOf(certainly, i), bitOf(perhaps, i)
		if certain && !is || is && !certain && !candidate || certain && candidate || candidate && bitOf(nulls, i) {
			t.Fatalf("%s: row %d of value %d (null %v): sure %v, maybe %v", what, i, v, bitOf(nulls, i), certain, candidate)
		}
	}
}

func checkIndex(t *testing.T, what string, rng *rand.Rand, values []int64, nulls []uint64, x *Index) {
	t.Helper()
	parsed, err := parse(x.Words())
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	x = parsed
	null := make([]bool, len(values))
	notNull, nullCount := make([]bool, len(values)), 0
	for i := range values {
		null[i], notNull[i] = bitOf(nulls, i), !bitOf(nulls, i)
		if null[i] {
			nullCount++
		}
	}
	sameBits(t, what+", nulls", x.Nulls(), null)
	sameBits(t, what+", not nulls", x.NotNulls(), notNull)
	if x.NullCount() != nullCount || x.Len() != len(values) {
		t.Fatalf("%s: %d nulls in %d rows", what, x.NullCount(), x.Len())
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
		sure, maybe := x.Range(lo, hi)
		w := fmt.Sprintf("%s, %d to %d", what, lo, hi)
		checkRows(t, w, values, nulls, sure, maybe, inside)
		n, exact := x.Count(lo, hi)
		if n != sure.Count() || exact != (maybe == nil) || maybe != nil && maybe.Empty() {
			t.Fatalf("%s: Count is %d, %v, of %d sure rows", w, n, exact, sure.Count())
		}
		cost := x.Cost(lo, hi)
		if candidates := 0; maybe != nil {
			candidates = maybe.Count()
			if cost.Candidates != candidates {
				t.Fatalf("%s: %d candidates, not %d", w, cost.Candidates, candidates)
			}
		} else if cost.Candidates != 0 {
			t.Fatalf("%s: %d candidates, not none", w, cost.Candidates)
		}
		if cost.Sure != n {
			t.Fatalf("%s: cost says %d rows, not %d", w, cost.Sure, n)
		}
		list := some[:rng.IntN(len(some))]
		sure, maybe = x.In(list)
		checkRows(t, what+", IN", values, nulls, sure, maybe, func(v int64) bool { return slices.Contains(list, v) })
		if x.Exact() && maybe != nil {
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
			for _, o := range []Options{{}, {EqualityBins: 1, RangeBins: 1}, {EqualityBins: 3, RangeBins: 7}, {EqualityBins: 5000, RangeBins: 5000}} {
				if n > 5000 && o.EqualityBins > 0 {
					continue
				}
				checkIndex(t, fmt.Sprintf("%s, %d rows, %+v", name, n, o), rng, values, nulls, Build(values, nulls, o, nil))
			}
		}
	}
}

func TestBinsOfValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 20))
	values, nulls := columns["status"](rng, 10_000)
	x := Build(values, nulls, Options{}, nil)
	if x.Bins() != 4 || !x.Exact() {
		t.Errorf("four values: %d bins, exact %v", x.Bins(), x.Exact())
	}
	if lo, hi, ok := x.Bounds(); lo != 200 || hi != 503 || !ok {
		t.Errorf("bounds %d to %d, %v", lo, hi, ok)
	}
	values, _ = columns["heavy"](rng, 65536)
	x = Build(values, nil, Options{}, nil)
	if n, exact := x.Count(77, 77); !exact || n < 40000 {
		t.Errorf("a value of two rows in three has no bin of its own: %d, %v", n, exact)
	}
	if x.Bins() > 2*32+1 {
		t.Errorf("%d bins", x.Bins())
	}
	values, _ = columns["all 64 bits"](rng, 65536)
	x = Build(values, nil, Options{}, nil)
	for i := range x.Bins() {
		if _, _, rows := x.Bin(i); rows.Count() < 65536/32/3 || rows.Count() > 65536/32*3 {
			t.Errorf("bin %d of %d has %d rows: that is not equi-depth", i, x.Bins(), rows.Count())
		}
	}
}

func TestIndexOutOfMemory(t *testing.T) {
	if Build([]int64{1, 2, 3}, nil, Options{}, func(int) []uint64 { return nil }) != nil {
		t.Error("an index without memory")
	}
}

func TestParseIndexRejects(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	values, nulls := columns["status"](rng, 300)
	good := Build(values, nulls, Options{}, nil).Words()
	accepted := 0
	for i := range good {
		for bit := range 64 {
			bad := slices.Clone(good)
			bad[i] ^= 1 << bit
			x, err := parse(bad)
			if err != nil {
				continue
			}
			// Other limits of a bin are another good index; every other word is tied.
			if entry := (i - indexHeader) % binWords; i < indexHeader || i >= indexHeader+4*binWords || entry > 1 {
				t.Errorf("bit %d of word %d changed: %d bins", bit, i, x.Bins())
			}
			accepted++
		}
	}
	if accepted == 0 {
		t.Error("limits of bins never change")
	}
	for n := range good {
		if _, err := parse(good[:n:n]); err == nil {
			t.Errorf("%d of %d words: no error", n, len(good))
		}
	}
}

func TestProfile(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for _, n := range []int{0, 1, 63, 64, 126, 127, 5000, 65536} {
		for name, make := range columns {
			for _, o := range []Options{{}, {EqualityBins: 2, RangeBins: 5}} {
				values, nulls := make(rng, n)
				p, x := Profiled(values, nulls), Build(values, nulls, o, nil)
				atoms := 0
				for i := range x.Bins() {
					_, _, rows := x.Bin(i)
					atoms += len(rows.Atoms())
				}
				if x.NullCount() > 0 {
					atoms += len(x.Nulls().Atoms())
				}
				if got, want := p.Shape(o), (Shape{x.Bins(), x.Exact(), atoms}); got != want {
					t.Errorf("%s, %d rows, %+v: %+v, want %+v", name, n, o, got, want)
				}
				if p.Rows != n || p.Nulls != x.NullCount() || p.Distinct < x.Bins() || x.Exact() && p.Distinct != x.Bins() {
					t.Errorf("%s, %d rows: %d nulls and %d values in %d bins", name, n, p.Nulls, p.Distinct, x.Bins())
				}
				if d := p.Bytes(o) - x.Bytes(); d*d > (8*x.Bins()+8)*(8*x.Bins()+8) {
					t.Errorf("%s, %d rows: %d bytes, not %d", name, n, p.Bytes(o), x.Bytes())
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
		if got := p.Worth(Options{}, n/8); got != want {
			t.Errorf("%s: %v beside a bit a value: %+v", name, got, p.Shape(Options{}))
		}
	}
	// Two thousand rows a value, as of a table that was loaded shop after shop.
	shops := column(n, func(i int) int64 { return int64(i / 2000 * 37 % 64) })
	if p := Profiled(shops, nil); !p.Worth(Options{}, n*5/8) {
		t.Errorf("an index of clustered values is not worth it: %+v", p.Shape(Options{}))
	}
	if Profiled(nil, nil).Worth(Options{}, 0) {
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
		o := Options{EqualityBins: int(equality), RangeBins: int(ranges)}
		x, err := parse(Build(values, nulls, o, nil).Words())
		if err != nil {
			t.Fatal(err)
		}
		sure, maybe := x.Range(lo, hi)
		checkRows(t, "range", values, nulls, sure, maybe, func(v int64) bool { return lo <= v && v <= hi })
		if n, exact := x.Count(lo, hi); n != sure.Count() || exact != (maybe == nil) {
			t.Fatalf("Count is %d, %v, of %d", n, exact, sure.Count())
		}
		list := []int64{lo, hi, 0, lo}
		sure, maybe = x.In(list)
		checkRows(t, "IN", values, nulls, sure, maybe, func(v int64) bool { return slices.Contains(list, v) })
	})
}

func FuzzParse(f *testing.F) {
	rng := rand.New(rand.NewPCG(25, 26))
	for _, make := range columns {
		values, nulls := make(rng, 200)
		f.Add(wordBytes(Build(values, nulls, Options{EqualityBins: 4, RangeBins: 4}, nil).Words()))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := parse(bytesWords(data))
		if err != nil {
			return
		}
		sum := x.NullCount()
		for i := range x.Bins() {
			_, _, rows := x.Bin(i)
			sum += rows.Count()
		}
		lo, hi, _ := x.Bounds()
		if n, exact := x.Count(lo, hi); sum != x.Len() || n+x.NullCount() != sum || !exact {
			t.Fatalf("%d rows in bins, %d of all values, %d nulls, %d in all", sum, n, x.NullCount(), x.Len())
		}
	})
}
