package colstore

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"pgaccel/catalog"
	"pgaccel/compress"
	"pgaccel/vector"
)

// meta describes a table with one column of each storage family and one that is
// not copied.
func meta() *catalog.Table {
	c := vector.TypeOf(vector.Text)
	c.Collation = vector.Collation{OID: 950, Deterministic: true, C: true}
	other := vector.TypeOf(vector.Varchar)
	other.Collation = vector.Collation{OID: 100, Deterministic: true}
	return &catalog.Table{OID: 7, Schema: "public", Name: "t", Columns: []catalog.Column{
		{Name: "i", Type: vector.TypeOf(vector.Int8)},
		{Name: "f", Type: vector.TypeOf(vector.Float8)},
		{Name: "j", Unsupported: "json"},
		{Name: "c", Type: c},
		{Name: "v", Type: other},
	}}
}

// row is one row of meta; nil is null.
type row [5]any

func randomRow(r *rand.Rand) (out row) {
	if r.IntN(10) > 0 {
		out[0] = int64(r.Uint64() >> r.IntN(64))
	}
	switch r.IntN(10) {
	case 0:
	case 1:
		out[1] = math.NaN()
	case 2:
		out[1] = math.Copysign(0, -1)
	default:
		out[1] = r.NormFloat64()
	}
	if r.IntN(3) > 0 {
		out[3] = strings.Repeat("x", r.IntN(12)) + fmt.Sprint(r.IntN(100))
	}
	if r.IntN(300) > 0 {
		out[4] = strings.Repeat("long ", r.IntN(3000)*r.IntN(2)*r.IntN(2))
	}
	return out
}

func put(w *Writer, r row) error {
	for i, v := range r {
		switch v := v.(type) {
		case nil:
			if i != 2 {
				w.Null(i)
			}
		case int64:
			w.Int(i, v)
		case float64:
			w.Int(i, int64(math.Float64bits(v)))
		case string:
			w.Text(i, []byte(v))
		}
	}
	return w.EndRow()
}

// load copies rows with several writers at once, writer k taking the k-th part.
func load(t testing.TB, s *Store, rows []row, writers int) *Table {
	t.Helper()
	l := s.NewLoader(meta())
	var wg sync.WaitGroup
	for k := range writers {
		w := l.NewWriter()
		wg.Go(func() {
			for _, r := range rows[k*len(rows)/writers : (k+1)*len(rows)/writers] {
				if err := put(w, r); err != nil {
					t.Error(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if l.Rows() != int64(len(rows)) {
		t.Errorf("Rows() = %d, want %d", l.Rows(), len(rows))
	}
	table, err := l.Finish()
	if err != nil {
		t.Fatal(err)
	}
	l.Abort() // does nothing now
	return table
}

// TestLoaderClusters: the segments of a column lie side by side, and what is left is given back.
func TestLoaderClusters(t *testing.T) {
	s := New(Options{MemoryLimit: 1 << 30, SegmentRows: 4096})
	defer s.Close()
	r := rand.New(rand.NewPCG(60, 60))
	var rows []row
	for range 40 * 4096 {
		rows = append(rows, randomRow(r))
	}
	table := load(t, s, rows, 2)
	for _, col := range []int{0, 1, 3} { // 3 got its codes at the end, by any goroutine
		var at []uintptr
		size := map[uintptr]uintptr{}
		for _, seg := range table.Segments {
			mem := compress.Bytes(seg.Columns[col].Data)
			p := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
			at, size[p] = append(at, p), uintptr((len(mem)+alignment-1)&^(alignment-1))
		}
		slices.Sort(at)
		apart := 0
		for i := 1; i < len(at); i++ {
			if at[i-1]+size[at[i-1]] != at[i] {
				apart++
			}
		}
		if apart > 3 {
			t.Errorf("column %d: %d of %d segments lie apart", col, apart, len(at))
		}
	}
	table.Release()
	for i, c := range s.arena.chunks {
		if len(c.free) != 1 || c.free[0].size != len(c.mem) {
			t.Errorf("chunk %d is left in %d pieces", i, len(c.free))
		}
	}
}

// check reads a table back value by value and compares nulls and zone maps.
func check(t testing.TB, table *Table, rows []row) {
	t.Helper()
	if table.Rows != int64(len(rows)) {
		t.Fatalf("%d rows, want %d", table.Rows, len(rows))
	}
	at := 0
	for s, seg := range table.Segments {
		if seg.Rows == 0 {
			t.Errorf("segment %d is empty", s)
		}
		for i := range seg.Columns {
			col := &seg.Columns[i]
			if i == 2 {
				if col.Data != nil {
					t.Error("a column that is not copied has data")
				}
				continue
			}
			if col.Data.Len() != seg.Rows {
				t.Fatalf("segment %d column %d: %d rows, want %d", s, i, col.Data.Len(), seg.Rows)
			}
			values := make([]int64, seg.Rows)
			col.Data.Decode(values, 0)
			nulls, lo, hi := 0, int64(math.MaxInt64), int64(math.MinInt64)
			for k, v := range values {
				want := rows[at+k][i]
				null := col.Nulls != nil && col.Nulls[k/64]>>(k%64)&1 == 1
				if null != (want == nil) {
					t.Fatalf("segment %d column %d row %d: null is %v, want %v", s, i, k, null, want)
				}
				if null {
					nulls++
					continue
				}
				switch want := want.(type) {
				case int64:
					if v != want {
						t.Fatalf("segment %d row %d: %d, want %d", s, k, v, want)
					}
				case float64:
					if uint64(v) != math.Float64bits(want) {
						t.Fatalf("segment %d row %d: %x, want %v", s, k, v, want)
					}
					v = vector.FloatKey(v)
				case string:
					d := table.Dicts[i]
					if got := d.At(v); got != want {
						t.Fatalf("segment %d row %d: %q, want %q", s, k, got, want)
					}
					if code, ok := d.Find(want); !ok || code != v {
						t.Fatalf("Find(%q) = %d, %v; want %d", want, code, ok, v)
					}
				}
				lo, hi = min(lo, v), max(hi, v)
			}
			if nulls != col.NullCount || nulls == 0 && col.Nulls != nil {
				t.Errorf("segment %d column %d: NullCount %d, want %d", s, i, col.NullCount, nulls)
			}
			if lo != col.Min || hi != col.Max {
				t.Errorf("segment %d column %d: zone [%d, %d], want [%d, %d]", s, i, col.Min, col.Max, lo, hi)
			}
		}
		at += seg.Rows
	}
	if at != len(rows) {
		t.Fatalf("segments hold %d rows, want %d", at, len(rows))
	}
}

func TestLoad(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 5000} {
		for _, writers := range []int{1, 3} {
			for _, codec := range []compress.Codec{compress.CodecAuto, compress.CodecFOR64, compress.CodecDFOR, compress.CodecRFOR, compress.CodecALP} {
				rows := make([]row, n)
				for i := range rows {
					rows[i] = randomRow(r)
				}
				s := New(Options{SegmentRows: 1024, Codec: codec})
				table := load(t, s, rows, writers)
				check(t, table, rows)
				if used, _ := s.Usage(); used != table.Bytes() {
					t.Errorf("%d bytes in use, the table says %d", used, table.Bytes())
				}
				table.Release()
				if used, _ := s.Usage(); used != 0 {
					t.Errorf("%d bytes in use after Release", used)
				}
				s.Close()
			}
		}
	}
}

// TestManyWritersLoadWhatOneDoes loads rows whose strings are new as often as not, at
// sizes about a segment of each writer's, with many writers and with one: the same rows,
// and where codes follow the strings' order the same codes, whoever added them first.
func TestManyWritersLoadWhatOneDoes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	const writers = 16
	r := rand.New(rand.NewPCG(16, 1))
	for _, n := range []int{0, 1, writers - 1, writers*1024 - 1, writers * 1024, writers*1024 + 1, 50_000} {
		rows := make([]row, n)
		for i := range rows {
			rows[i] = randomRow(r)
			rows[i][3], rows[i][4] = fmt.Sprint("all begin with this ", r.IntN(max(n, 1))), strings.Repeat("s", r.IntN(20))+fmt.Sprint(i/2)
		}
		s := New(Options{SegmentRows: 1024})
		one, many := load(t, s, rows, 1), load(t, s, rows, writers)
		check(t, one, rows)
		check(t, many, rows)
		if a, b := one.Dicts[3], many.Dicts[3]; a.Len() != b.Len() || one.Dicts[4].Len() != many.Dicts[4].Len() {
			t.Errorf("%d rows: %d and %d strings, of one writer %d and %d", n, b.Len(), many.Dicts[4].Len(), a.Len(), one.Dicts[4].Len())
		} else {
			for code := range int64(a.Len()) {
				if a.At(code) != b.At(code) {
					t.Fatalf("%d rows: code %d is %q, of one writer %q", n, code, b.At(code), a.At(code))
				}
			}
		}
		one.Release()
		many.Release()
		if used, _ := s.Usage(); used != 0 {
			t.Errorf("%d bytes in use after Release", used)
		}
		s.Close()
	}
}

// TestNullsOnly: every row null, in every column.
func TestNullsOnly(t *testing.T) {
	s := New(Options{SegmentRows: 1024})
	defer s.Close()
	rows := make([]row, 1500)
	table := load(t, s, rows, 1)
	defer table.Release()
	check(t, table, rows)
	if c := table.Segments[0].Columns[0]; c.Min <= c.Max {
		t.Errorf("zone [%d, %d] of nulls", c.Min, c.Max)
	}
}

// TestMemoryLimit: the limit holds, the error says so, and everything comes back.
func TestMemoryLimit(t *testing.T) {
	const limit = 1 << 20
	s := New(Options{SegmentRows: 1024, MemoryLimit: limit})
	defer s.Close()
	r := rand.New(rand.NewPCG(2, 2))
	for round := range 3 {
		for _, text := range []bool{false, true} {
			l := s.NewLoader(meta())
			w := l.NewWriter()
			var err error
			n := 0
			for ; err == nil; n++ {
				if n > 10e6 {
					t.Fatal("no end of memory")
				}
				next := row{int64(r.Uint64()), r.NormFloat64(), nil, "a", "b"}
				if text {
					next = row{int64(0), 0.0, nil, fmt.Sprint("string ", n), "b"}
				}
				err = put(w, next)
				if used, _ := s.Usage(); used > limit {
					t.Fatalf("%d bytes in use", used)
				}
			}
			var m *MemoryError
			if !errors.As(err, &m) || m.Limit != limit || m.Used+m.Need <= limit {
				t.Fatalf("after %d rows: %v", n, err)
			}
			if err := w.Close(); !errors.As(err, &m) {
				t.Errorf("Close: %v", err)
			}
			if _, err := l.Finish(); !errors.As(err, &m) {
				t.Errorf("Finish: %v", err)
			}
			l.Abort()
			if used, _ := s.Usage(); used != 0 {
				t.Fatalf("round %d: %d bytes in use after Abort", round, used)
			}
		}
	}
	// What was given back can be had again.
	table := load(t, s, []row{{int64(1), 1.0, nil, "x", "y"}}, 1)
	check(t, table, []row{{int64(1), 1.0, nil, "x", "y"}})
	table.Release()
}

// TestRanks: C collations are ranked by bytes, others wait for Postgres.
func TestRanks(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	words := []string{"b", "", "a", "ab", "\xc3\xa9", "Z", "abcdefgh", "abcdefghi", "abcdefg", "a\x00", "12345678z", "12345678a"}
	var rows []row
	for _, w := range words {
		rows = append(rows, row{int64(0), 0.0, nil, w, w})
	}
	table := load(t, s, rows, 2)
	defer table.Release()
	d := table.Dicts[3]
	ranks := d.Ranks()
	if len(ranks) != len(words) || d.Len() != len(words) {
		t.Fatalf("%d ranks for %d strings", len(ranks), d.Len())
	}
	for a := range ranks {
		for b := range ranks {
			if (ranks[a] < ranks[b]) != (d.At(int64(a)) < d.At(int64(b))) {
				t.Errorf("%q and %q have ranks %d and %d", d.At(int64(a)), d.At(int64(b)), ranks[a], ranks[b])
			}
		}
	}
	if _, ok := d.Find("nowhere"); ok {
		t.Error("found what is not there")
	}
	v := table.Dicts[4]
	if v.Ranks() != nil {
		t.Error("ranks of a collation that only Postgres knows")
	}
	v.SetRanks(make([]int32, v.Len()))
	if len(v.Ranks()) != v.Len() {
		t.Error("SetRanks had no effect")
	}
}

// A string of up to shortText bytes is told from every other by its length and key, a
// longer one by its bytes: strings that differ in one byte, at every length.
func TestRecentStrings(t *testing.T) {
	var all [][]byte
	for n := range 2*shortText + 2 {
		b := bytes.Repeat([]byte{'a'}, n)
		all = append(all, b)
		for i := range b {
			for _, v := range []byte{0, 'b', 255} {
				c := bytes.Clone(b)
				c[i] = v
				all = append(all, c)
			}
		}
	}
	for _, a := range all {
		r := recent{key: textKeyOf(a), kept: a}
		for _, b := range all {
			if got, want := r.is(textKeyOf(b), b), bytes.Equal(a, b); got != want {
				t.Fatalf("%q is %q: %v", a, b, got)
			}
		}
	}
	if (&recent{}).is(textKeyOf(nil), nil) {
		t.Error("nothing is remembered, and the empty string is found")
	}
}

func TestZoneOf(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 3, 63, 64, 127, 128, 129, 511, 512, 513} {
		values := make([]int64, n)
		want := emptyZone
		for i := range values {
			values[i] = int64(r.Uint64())
			want.lo, want.hi = min(want.lo, values[i]), max(want.hi, values[i])
		}
		if got := zoneOf(values, nil, false, false); got != want {
			t.Errorf("%d values: %v, want %v", n, got, want)
		}
	}
}
