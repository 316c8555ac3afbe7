package compress

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// words64 allocates as an arena would: aligned, and full of dirt.
func words64(n int) []uint32 {
	w := make([]uint64, n/2+1)
	for i := range w {
		w[i] = 0xdddddddddddddddd
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(&w[0])), 2*len(w))[:n:n]
}

var lengths = []int{0, 1, 31, 32, 33, 63, 64, 127, 128, 129, 511, 512, 513, 1024, 1025, 4096 + 77}

// data yields columns of every kind that could upset a codec, by name.
func data(n int, r *rand.Rand, yield func(name string, values []int64)) {
	v := make([]int64, n)
	fill := func(name string, f func(i int) int64) {
		for i := range v {
			v[i] = f(i)
		}
		yield(name, v)
	}
	for w := range 65 {
		if n > 33 && w%5 > 0 {
			continue
		}
		mask := uint64(1)<<w - 1
		fill(fmt.Sprint("width ", w), func(int) int64 { return int64(r.Uint64() & mask) })
		fill(fmt.Sprint("negative width ", w), func(int) int64 { return -int64(r.Uint64() & mask) })
		fill(fmt.Sprint("mixed widths to ", w), func(i int) int64 {
			return int64(r.Uint64() & mask >> (uint(i/32*7) % 64))
		})
	}
	fill("constant", func(int) int64 { return -7 })
	fill("extremes", func(i int) int64 { return []int64{math.MinInt64, math.MaxInt64, 0, -1}[r.IntN(4)] })
	fill("int32 extremes", func(i int) int64 { return []int64{math.MinInt32, math.MaxInt32, 0, -1}[r.IntN(4)] })
	fill("beyond int32", func(i int) int64 { return math.MaxInt32 + int64(i) })
	fill("sorted", func(i int) int64 { return int64(i / 4) })
	fill("far sorted", func(i int) int64 { return 1<<40 + int64(i)*1e6 })
	fill("dates", func(i int) int64 {
		return 19920101 + int64(r.IntN(7))*10000 + int64(r.IntN(12))*100 + int64(r.IntN(28))
	})
	fill("few far", func(i int) int64 { return int64(r.IntN(50)) * 123456789012345 })
	fill("few at the ends", func(i int) int64 { return math.MaxInt64 - int64(r.IntN(3))*math.MaxInt64 })
	fill("ids", func(i int) int64 { return 1e6 + int64(i) })
	fill("nearly sorted", func(i int) int64 { return 7e14 + int64(i)*1000 + int64(r.IntN(1e6)) })
	fill("runs", func(i int) int64 {
		if i > 0 && r.IntN(4) > 0 {
			return v[i-1]
		}
		return int64(r.IntN(1e5))
	})
	fill("long runs", func(i int) int64 {
		if i > 0 && r.IntN(300) > 0 {
			return v[i-1]
		}
		return int64(r.Uint64())
	})
	fill("prices", func(i int) int64 { return int64(math.Float64bits(float64(r.IntN(1e6)-3e5) / 100)) })
	fill("latencies", func(i int) int64 {
		if r.IntN(60) == 0 {
			return strangeFloats[r.IntN(len(strangeFloats))]
		}
		return int64(math.Float64bits(math.Round(math.Exp(r.NormFloat64()+4)*1000) / 1000))
	})
	fill("strange floats", func(i int) int64 { return strangeFloats[r.IntN(len(strangeFloats))] })
	fill("floats", func(i int) int64 { return int64(math.Float64bits(r.NormFloat64())) })
}

// strangeFloats are the bits of floats that are not what they are equal to, if any.
var strangeFloats = []int64{math.MinInt64 /* -0 */, 0x7ff0000000000000, -0x10000000000000, 0x7ff8000000000001, 0x7ff0000000000001, -1, 1,
	0x000fffffffffffff, 0x7fefffffffffffff, -0x7fefffffffffffff, 0x3fb999999999999a, 0x3fb999999999999b, 0x4340000000000001, 0}

var allCodecs = []Codec{CodecAuto, CodecPlain, CodecConstant, CodecFOR, CodecFOR64, CodecLookup, CodecDFOR, CodecRFOR,
	CodecDFOR64, CodecRFOR64, CodecALP}

// TestCodecs compares every operation of every codec with the reference and with
// the values that went in.
func TestCodecs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[Codec]int{}
	for _, n := range lengths {
		if testing.Short() && n > 1025 {
			continue
		}
		data(n, r, func(name string, values []int64) {
			kept := slices.Clone(values)
			for _, codec := range allCodecs {
				c := EncodeAs(codec, values, words64)
				seen[c.Codec()]++
				parsed, err := ParseBytes(Bytes(c))
				if err != nil {
					t.Fatalf("%d rows, %s, %v: %v", n, name, codec, err)
				}
				checkColumn(t, parsed, kept, r)
				if t.Failed() {
					t.Fatalf("%d rows, %s, %v", n, name, codec)
				}
			}
			if !slices.Equal(values, kept) {
				t.Fatal("Encode changed its input")
			}
		})
	}
	for _, codec := range allCodecs[1:] {
		if seen[codec] == 0 {
			t.Errorf("no column came out as %v", codec)
		}
	}
}

func checkColumn(t *testing.T, c Column, values []int64, r *rand.Rand) {
	t.Helper()
	n := len(values)
	if c.Len() != n || c.Bytes() != 4*len(Words(c)) {
		t.Fatalf("Len %d, Bytes %d; want %d, %d", c.Len(), c.Bytes(), n, 4*len(Words(c)))
	}
	step := 1
	if n > 129 { // the reference of a delta reads all before it
		step = 1 + r.IntN(30)
	}
	for i := 0; i < n; i += step {
		if got := decodeReference(Words(c), i); got != values[i] {
			t.Errorf("%v: reference of row %d is %d, want %d", c.Codec(), i, got, values[i])
		}
	}
	if distinct, codes, ok := codesOf(c); ok != (c.Codec() == CodecLookup) {
		t.Errorf("%v: codesOf says %v", c.Codec(), ok)
	} else if ok {
		of := make([]int64, n)
		codes.Decode(of, 0)
		for i, v := range values {
			if distinct[of[i]] != v {
				t.Errorf("row %d: code %d stands for %d, want %d", i, of[i], distinct[of[i]], v)
			}
		}
		if !slices.IsSorted(distinct) {
			t.Error("distinct values do not ascend")
		}
	}
	// Decode from every block start, to several ends.
	dst := make([]int64, n+1)
	step = blockRows
	if n > 1024 {
		step *= 5
	}
	for start := 0; start < n; start += step {
		for _, rows := range []int{0, 1, 31, 32, 33, 64, 127, 128, 129, 256, 1000, n - start} {
			if start+rows > n {
				continue
			}
			got := dst[:rows]
			dst[rows] = 0x5555
			c.Decode(got, start)
			if !slices.Equal(got, values[start:start+rows]) {
				t.Errorf("%v: Decode(%d rows from %d) differs", c.Codec(), rows, start)
			}
			if dst[rows] != 0x5555 {
				t.Errorf("%v: Decode wrote past %d rows", c.Codec(), rows)
			}
			if rows == 0 {
				continue
			}
			lo, hi := c.Bounds(start, rows)
			if slices.Min(got) < lo || slices.Max(got) > hi {
				t.Errorf("%v: Bounds(%d, %d) = %d, %d", c.Codec(), start, rows, lo, hi)
			}
			checkAggregates(t, c, values, start, rows, r)
			checkGather(t, c, values, start, rows, r)
			checkFilter(t, c, values, start, rows, r)
		}
	}
}

func checkGather(t *testing.T, c Column, values []int64, start, rows int, r *rand.Rand) {
	t.Helper()
	var sel []uint16
	step := 1 + r.IntN(40)
	for i := r.IntN(step); i < rows; i += 1 + r.IntN(step) {
		sel = append(sel, uint16(i))
	}
	got := make([]int64, len(sel))
	c.Gather(got, start, sel)
	for i, s := range sel {
		if want := values[start+int(s)]; got[i] != want {
			t.Errorf("%v: Gather of row %d+%d is %d, want %d", c.Codec(), start, s, got[i], want)
		}
	}
}

func checkFilter(t *testing.T, c Column, values []int64, start, rows int, r *rand.Rand) {
	t.Helper()
	pick := func() int64 {
		v := values[start+r.IntN(rows)]
		switch r.IntN(8) {
		case 0:
			return math.MinInt64
		case 1:
			return math.MaxInt64
		case 2:
			return v + 1 // may wrap: any bound is legal
		case 3:
			return v - 1
		case 4:
			return int64(r.Uint64())
		}
		return v
	}
	for range 4 {
		lo, hi := pick(), pick()
		if r.IntN(8) > 0 {
			lo, hi = min(lo, hi), max(lo, hi)
		}
		before := make([]uint64, (rows+63)/64+1)
		for i := range before {
			switch r.IntN(4) {
			case 0:
				before[i] = r.Uint64()
			case 1:
				before[i] = r.Uint64() << 32
			default:
				before[i] = math.MaxUint64
			}
		}
		mask := slices.Clone(before)
		c.FilterRange(mask[:len(mask)-1], start, rows, lo, hi)
		for i := range rows {
			was := before[i/64]>>(i%64)&1 == 1
			v := values[start+i]
			if want := was && v >= lo && v <= hi; mask[i/64]>>(i%64)&1 == 1 != want {
				t.Errorf("%v: FilterRange(%d, %d, %d, %d): row %d = %d, was %v, is %v",
					c.Codec(), start, rows, lo, hi, i, v, was, !want)
			}
		}
	}
}

// TestPack compares the packing of whole miniblocks with that of value after value, at
// all widths, and sees that it writes no word too many.
func TestPack(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for w := uint(0); w <= 64; w++ {
		for _, ref := range []int64{0, -5, math.MinInt64, math.MaxInt64 - 3} {
			for _, n := range []int{1, miniRows - 1, miniRows} {
				top := uint64(1)<<w - 1
				values := make([]int64, n)
				for i := range values {
					values[i] = int64(uint64(ref) + r.Uint64()&top)
				}
				values[0], values[n-1] = int64(uint64(ref)+top), int64(uint64(ref)+top)
				want, got := make([]uint32, w+1), make([]uint32, w+1)
				want[w], got[w] = 0xdeadbeef, 0xdeadbeef
				packPlain(want[:w], values, ref, w)
				pack(got[:w], values, ref, w)
				if !slices.Equal(got, want) {
					t.Fatalf("width %d, %d values from %d: %x, want %x", w, n, ref, got, want)
				}
			}
		}
	}
}

// TestInside compares the generated filters with one comparison after the other:
// every pair of bounds of narrow widths, random ones of wide.
func TestInside(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for w := uint(1); w <= 64; w++ {
		top := uint64(1)<<w - 1
		var values [miniRows]int64
		packed := words64(int(w) + 2)
		f := func(lo, hi uint64) {
			for i := range values {
				if values[i] = int64(r.Uint64() & top); r.IntN(4) == 0 {
					values[i] = int64([]uint64{lo, hi, lo - 1, hi + 1, 0, top}[r.IntN(6)] & top)
				}
			}
			pack(packed[:w], values[:], 0, w)
			got := inside(w, packed, lo, hi)
			for i, v := range values {
				if want := uint64(v) >= lo && uint64(v) <= hi; got>>i&1 == 1 != want {
					t.Fatalf("width %d: %d within [%d, %d] is %v", w, v, lo, hi, !want)
				}
			}
		}
		for n := range uint64(1) << min(2*w, 12) {
			lo, hi := n&top, n>>w&top
			if w > 6 {
				lo, hi = r.Uint64()&top, r.Uint64()&top
			}
			if lo <= hi && !(lo == 0 && hi == top) { // the caller deals with "all"
				f(lo, hi)
			}
		}
	}
}

// TestLayout pins the bytes of the paper's format: they are read by devices and
// from disk.
func TestLayout(t *testing.T) {
	values := make([]int64, 130)
	for i := range values {
		values[i] = 99 + int64(i%4) // 2 bits
	}
	values[40] = 99 + 15 // second miniblock: 4 bits
	values[128], values[129] = 1000, 1001
	w := Words(EncodeAs(CodecFOR, values, words64))
	want := []uint32{
		0x50470103, 130, uint32(len(w)), 128, 4, 0, 0, 0, // header
		0, 12, 15, // block starts
		99, 0x02020402, 0xe4e4e4e4, 0xe4e4e4e4, // 32 times 0 1 2 3
		0x32103210, 0x3210321f, 0x32103210, 0x32103210,
		0xe4e4e4e4, 0xe4e4e4e4, 0xe4e4e4e4, 0xe4e4e4e4,
		1000, 0x00000001, 0x00000002,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // tail
	}
	if !slices.Equal(w, want) {
		t.Errorf("got  %x\nwant %x", w, want)
	}
	// 64 bits: the reference takes two words.
	for i := range values {
		values[i] += 1 << 40
	}
	w = Words(EncodeAs(CodecFOR64, values, words64))
	if got := w[11:15]; !slices.Equal(got, []uint32{99, 256, 0x02020402, 0xe4e4e4e4}) {
		t.Errorf("FOR64 block begins with %x", got)
	}
}

// TestChooser states which codec wins where.
func TestChooser(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	f := func(want Codec, value func(i int) int64) {
		t.Helper()
		v := make([]int64, 65536)
		for i := range v {
			v[i] = value(i)
		}
		c := Encode(v, words64)
		if c.Codec() != want {
			t.Errorf("got %v, want %v (%d bytes)", c.Codec(), want, c.Bytes())
		}
		for _, codec := range allCodecs {
			// What another saves must be less than decoding it would cost.
			other := EncodeAs(codec, v, words64)
			if cost := deltaCostBits * len(v) / 8; float64(other.Bytes()) < 0.85*float64(c.Bytes()) && other.Bytes()+cost < c.Bytes() {
				t.Errorf("%v: %d bytes, but %v: %d", c.Codec(), c.Bytes(), other.Codec(), other.Bytes())
			}
		}
	}
	f(CodecConstant, func(int) int64 { return 5 })
	f(CodecFOR, func(int) int64 { return int64(r.IntN(50)) })
	f(CodecFOR, func(int) int64 { return int64(r.IntN(200000)) })
	f(CodecFOR64, func(i int) int64 { return 1<<50 + int64(r.IntN(1e6)) })
	f(CodecDFOR, func(i int) int64 { return int64(i) })
	f(CodecDFOR64, func(i int) int64 { return 1<<50 + int64(i) })
	f(CodecDFOR64, func(i int) int64 { return 7e14 + int64(i)*3e6 + int64(r.IntN(2e6)) }) // nearly sorted timestamps
	run := int64(0)
	inRuns := func(value func() int64) func(int) int64 {
		return func(i int) int64 {
			if i%4 == 0 {
				run = value()
			}
			return run
		}
	}
	f(CodecRFOR, inRuns(func() int64 { return int64(r.IntN(3e5)) }))
	f(CodecRFOR, inRuns(func() int64 { return run + 1 + int64(r.IntN(8)/7*24) }))  // sorted keys of orders
	f(CodecRFOR, inRuns(func() int64 { return 19920101 + int64(r.IntN(2400))*9 })) // dates of orders
	f(CodecRFOR64, inRuns(func() int64 { return 1<<50 + int64(r.IntN(3e7)) }))
	f(CodecFOR, inRuns(func() int64 { return int64(r.IntN(5)) })) // short already: runs would not pay
	f(CodecLookup, func(int) int64 {
		return 19920101 + int64(r.IntN(7))*10000 + int64(r.IntN(12))*100 + int64(r.IntN(28))
	})
	f(CodecPlain, func(int) int64 { return int64(math.Float64bits(r.NormFloat64())) })
	if c := Encode(make([]int64, 5), func(int) []uint32 { return nil }); c != nil {
		t.Errorf("without memory: %v", c)
	}
}

// TestPlain: a column over values that lie elsewhere reads as an encoded one, and is
// stored as one.
func TestPlain(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 127, 128, 129, 1025} {
		values := make([]int64, n)
		for i := range values {
			values[i] = int64(i) * 0x123456789abcdef
		}
		c := Plain(values)
		want := EncodeAs(CodecPlain, values, func(words int) []uint32 { return make([]uint32, words) })
		if c.Len() != n || c.Bytes() != want.Bytes() || c.Codec() != CodecPlain {
			t.Errorf("%d rows: %d of %d bytes, %v", n, c.Len(), c.Bytes(), c.Codec())
		}
		stored, err := Parse(Words(c))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []Column{c, want, stored} {
			got := make([]int64, n)
			x.Decode(got, 0)
			if !slices.Equal(got, values) {
				t.Errorf("%d rows come back as others", n)
			}
		}
	}
}

// codesOf returns, for a Lookup column, its distinct values in ascending order and
// the column of positions in them; ok is false for others. Work that depends on
// the value alone, such as a join, can then be done once for each distinct value
// of a segment. The slice is the caller's.
func codesOf(c Column) (values []int64, codes Column, ok bool) {
	l, ok := c.(*lookupColumn)
	if !ok {
		return nil, nil, false
	}
	values = make([]int64, l.size())
	for i := range values {
		values[i] = l.value(i)
	}
	return values, l.codes, true
}
