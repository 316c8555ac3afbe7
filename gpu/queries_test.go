package gpu

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"pgaccel/compress"
	"pgaccel/gpu/program"
	"pgaccel/plan"
)

var lastID atomic.Uint64

func newID() uint64 { return lastID.Add(1) }

// memory is a file whose pages columns lie in, as the store's is.
type memory struct {
	f    *os.File
	mem  []byte
	used int
}

func newMemory(t testing.TB, bytes int) *memory {
	f, err := os.CreateTemp(t.TempDir(), "columns")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(int64(bytes)); err != nil {
		t.Fatal(err)
	}
	mem, err := syscall.Mmap(int(f.Fd()), 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Munmap(mem)
		_ = f.Close()
	})
	return &memory{f: f, mem: mem}
}

func (m *memory) offset(b []byte) (int64, bool) {
	at, base := uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(unsafe.Pointer(unsafe.SliceData(m.mem)))
	if at < base || at+uintptr(len(b)) > base+uintptr(len(m.mem)) {
		return 0, false
	}
	return int64(at - base), true
}

// words returns room, in the file while there is some. nil is a store without one.
func (m *memory) words(n int) []uint32 {
	if m == nil || m.used+4*n > len(m.mem) {
		return make([]uint32, n)
	}
	w := unsafe.Slice((*uint32)(unsafe.Pointer(&m.mem[m.used])), n)
	m.used += (4*n + 63) &^ 63
	return w
}

// Columns of the test's tables: their bounds are those of every segment, so that widths,
// which are part of a kernel's shape, are few.
type testColumn struct {
	lo, hi   int64
	nullable bool
	unique   bool // row numbers
}

var factColumns = []testColumn{
	{lo: 0, hi: 99},                       // 0: a digit
	{lo: 1000, hi: 1000 + 1<<17 - 1},      // 1
	{lo: -50, hi: 50, nullable: true},     // 2
	{lo: 1 << 40, hi: 1<<40 + 1<<36},      // 3: wide
	{lo: 0, hi: 1499},                     // 4: key of the dimension
	{lo: 7, hi: 7},                        // 5: constant
	{lo: -1 << 62, hi: 1 << 62},           // 6: 63 bits or 64
	{lo: 0, hi: 2999, nullable: false},    // 7: key of the host's lookup
	{lo: 20, hi: 20 + 63, nullable: true}, // 8: of sets
}

var dimensionColumns = []testColumn{
	{lo: 0, hi: 1499, unique: true}, // 0: key
	{lo: 0, hi: 24},                 // 1: group
	{lo: 0, hi: 4, nullable: true},  // 2: filter
}

// testTable is a table that changes: versions share segments.
type testTable struct {
	columns  []testColumn
	segments []program.Segment // with all columns
	id       uint64
	mem      *memory
	rows     int // so far: of unique columns
}

func newTable(r *rand.Rand, mem *memory, columns []testColumn, rows ...int) *testTable {
	t := &testTable{columns: columns, mem: mem}
	for _, n := range rows {
		t.add(r, n)
	}
	return t
}

func (t *testTable) add(r *rand.Rand, rows int) {
	s := program.Segment{ID: uint64(len(t.segments) + 1), Rows: rows}
	for _, c := range t.columns {
		values := make([]int64, rows)
		for i := range values {
			switch {
			case c.unique:
				values[i] = int64(t.rows + i)
			case r.IntN(8) == 0 && i > 0:
				values[i] = values[i-1]
			default:
				values[i] = c.lo + int64(r.Uint64N(uint64(c.hi-c.lo)+1))
			}
		}
		col := program.SegmentColumn{ID: newID(), Min: c.lo, Max: c.hi}
		if c.nullable {
			col.Nulls = make([]uint64, (rows+63)/64)
			for i := range rows {
				if r.IntN(5) == 0 {
					col.Nulls[i/64] |= 1 << (i % 64)
					values[i] = c.lo
				}
			}
		}
		if r.IntN(4) == 0 {
			plain := compress.Words(compress.Plain(values))
			col.Words = t.mem.words(len(plain))
			copy(col.Words, plain)
		} else {
			col.Words = compress.Words(compress.Encode(values, t.mem.words))
		}
		s.Columns = append(s.Columns, col)
	}
	t.rows += rows
	t.segments = append(t.segments, s)
	t.id = newID()
}

// change deletes rows, appends a segment, or replaces the last.
func (t *testTable) change(r *rand.Rand) {
	t.segments = slices.Clone(t.segments)
	switch r.IntN(3) {
	case 0:
		s := &t.segments[r.IntN(len(t.segments))]
		live := make([]uint64, (s.Rows+63)/64)
		for i := range live {
			live[i] = r.Uint64() | r.Uint64()
		}
		if n := s.Rows % 64; n > 0 {
			live[len(live)-1] &= 1<<n - 1
		}
		s.Live, s.LiveID = live, newID()
	case 1:
		t.add(r, 1+r.IntN(1500))
	case 2:
		last := t.segments[len(t.segments)-1]
		t.segments = t.segments[:len(t.segments)-1]
		t.rows -= last.Rows
		t.add(r, last.Rows)
	}
	t.id = newID()
}

// of returns the segments with some columns.
func (t *testTable) of(columns ...int) []program.Segment {
	segments := slices.Clone(t.segments)
	for i := range segments {
		all := segments[i].Columns
		segments[i].Columns = nil
		for _, c := range columns {
			segments[i].Columns = append(segments[i].Columns, all[c])
		}
	}
	return segments
}

func columnsOf(columns []testColumn, which ...int) (out []program.Column) {
	for _, c := range which {
		out = append(out, program.Column{Wide: uint64(columns[c].hi-columns[c].lo) > 1<<32-1, Nullable: columns[c].nullable})
	}
	return out
}

func columnNode(columns []testColumn, index, column int) program.Node {
	c := columns[column]
	return program.Node{Op: program.OpColumn, Index: index, Nullable: c.nullable, Wide: c.hi > 1<<31-1 || c.lo < -1<<31}
}

// Shapes of queries; their data differs with r.
var testShapes = []func(r *rand.Rand, fact, dim *testTable) *program.Query{single, shared, joined, bitmap, hashed, hostLookup, rowsOnly, twice, distinct, distinctWide, pairs}

func randomRange(r *rand.Rand, c testColumn) program.Range {
	lo := c.lo + int64(r.Uint64N(uint64(c.hi-c.lo)/2+1))
	return program.Range{Lo: lo, Hi: lo + int64(r.Uint64N(uint64(c.hi-c.lo)/2+1))}
}

// single sums over ranges, without groups.
func single(r *rand.Rand, fact, _ *testTable) *program.Query {
	p := &program.Program{
		Columns: columnsOf(factColumns, 1, 2, 6, 5),
		Nodes: []program.Node{columnNode(factColumns, 0, 1), columnNode(factColumns, 1, 2), columnNode(factColumns, 2, 6), columnNode(factColumns, 3, 5),
			{Op: plan.OpMul, Args: []int{0, 3}, Wide: true}},
		Steps: []program.Step{{Kind: program.StepRange, Node: 0, Permille: 500}},
		Sink: program.Sink{Place: program.PlaceSingle, Accs: []program.Acc{
			{Kind: program.AccSum, Arg: 4, Filter: -1}, {Kind: program.AccCount, Arg: 1, Filter: -1}, {Kind: program.AccMin, Arg: 1, Filter: -1},
			{Kind: program.AccSum128, Arg: 2, Filter: -1}, {Kind: program.AccMax, Arg: 2, Filter: -1}}},
	}
	return &program.Query{Program: p, Segments: fact.of(1, 2, 6, 5), TableID: fact.id, Ranges: []program.Range{randomRange(r, factColumns[1])}, Groups: 1}
}

// rowsOnly counts live rows: it reads no column.
func rowsOnly(_ *rand.Rand, fact, _ *testTable) *program.Query {
	p := &program.Program{Sink: program.Sink{Place: program.PlaceSingle, Accs: []program.Acc{{Kind: program.AccRows, Arg: -1, Filter: -1}}}}
	return &program.Query{Program: p, Segments: fact.of(), TableID: fact.id, Groups: 1}
}

// twice reads a column as two.
func twice(_ *rand.Rand, fact, _ *testTable) *program.Query {
	p := &program.Program{
		Columns: columnsOf(factColumns, 1, 1),
		Nodes:   []program.Node{columnNode(factColumns, 0, 1), columnNode(factColumns, 1, 1)},
		Sink:    program.Sink{Place: program.PlaceSingle, Accs: []program.Acc{{Kind: program.AccSum, Arg: 0, Filter: -1}, {Kind: program.AccMax, Arg: 1, Filter: -1}}},
	}
	return &program.Query{Program: p, Segments: fact.of(1, 1), TableID: fact.id, Groups: 1}
}

// shared groups by a small column, in shared memory.
func shared(r *rand.Rand, fact, _ *testTable) *program.Query {
	p := &program.Program{
		Columns: columnsOf(factColumns, 0, 3, 2),
		Nodes:   []program.Node{columnNode(factColumns, 0, 0), columnNode(factColumns, 1, 3), columnNode(factColumns, 2, 2)},
		Steps:   []program.Step{{Kind: program.StepRange, Node: 1, Permille: 500}},
		Sink: program.Sink{Place: program.PlaceShared, Digits: []program.Digit{{Node: 0}}, Accs: []program.Acc{
			{Kind: program.AccSum, Arg: 1, Filter: -1}, {Kind: program.AccSum, Arg: 2, Filter: -1}, {Kind: program.AccMax, Arg: 2, Filter: -1}}},
	}
	return &program.Query{Program: p, Segments: fact.of(0, 3, 2), TableID: fact.id, Ranges: []program.Range{randomRange(r, factColumns[3])},
		Digits: []program.DigitData{{Lo: 0, Stride: 1}}, Groups: 100}
}

// joined builds a lookup of the dimension and groups by what it finds.
func joined(r *rand.Rand, fact, dim *testTable) *program.Query {
	build := &program.Query{
		Program: &program.Program{
			Columns: columnsOf(dimensionColumns, 0, 1, 2),
			Nodes:   []program.Node{columnNode(dimensionColumns, 0, 0), columnNode(dimensionColumns, 1, 1), columnNode(dimensionColumns, 2, 2)},
			Steps:   []program.Step{{Kind: program.StepRange, Node: 2, Permille: 500}},
			Sink:    program.Sink{Kind: program.SinkBuild, Build: program.Lookup16, Key: 0, Digits: []program.Digit{{Node: 1}}},
		},
		Segments: dim.of(0, 1, 2), TableID: dim.id, Ranges: []program.Range{{Lo: int64(r.IntN(3)), Hi: 4}},
		Digits: []program.DigitData{{Lo: 0, Stride: 1}}, BuildLo: 0, BuildSize: 1500,
	}
	p := &program.Program{
		Columns: columnsOf(factColumns, 4, 1),
		Lookups: []program.Lookup{{Kind: program.Lookup16, Key: 0}},
		Nodes:   []program.Node{columnNode(factColumns, 0, 4), columnNode(factColumns, 1, 1), {Op: program.OpEntry, Index: 0}},
		Steps:   []program.Step{{Kind: program.StepProbe, Index: 0, Permille: 500}},
		Sink: program.Sink{Place: program.PlaceGlobal, Digits: []program.Digit{{Node: 2}}, Accs: []program.Acc{
			{Kind: program.AccSum, Arg: 1, Filter: -1}, {Kind: program.AccMin, Arg: 1, Filter: -1}}},
	}
	q := &program.Query{Program: p, Segments: fact.of(4, 1), TableID: fact.id, Digits: []program.DigitData{{Lo: 0, Stride: 1}}, Groups: 25,
		Lookups: []program.LookupData{{Lo: 0, Size: 1500, Build: build}}}
	if r.IntN(3) > 0 { // the same filter of the same dimension is the same lookup
		q.Lookups[0].ID = dim.id<<32 | uint64(build.Ranges[0].Lo+1)<<24
	}
	return q
}

// bitmap marks rows.
func bitmap(r *rand.Rand, fact, _ *testTable) *program.Query {
	p := &program.Program{
		Columns: columnsOf(factColumns, 8, 0),
		Nodes: []program.Node{columnNode(factColumns, 0, 8), columnNode(factColumns, 1, 0), {Op: program.OpConst, Index: 0},
			{Op: plan.OpLt, Args: []int{1, 2}}},
		Steps: []program.Step{{Kind: program.StepBits, Node: 0, Permille: 500}, {Kind: program.StepFilter, Node: 3, Permille: 500}},
		Sink:  program.Sink{Kind: program.SinkBitmap},
	}
	q := &program.Query{Program: p, Segments: fact.of(8, 0), TableID: fact.id, Constants: []int64{int64(r.IntN(100))},
		Bits: []program.Bits{{Set: compress.Set{Lo: 20, Size: 64, Bits: []uint64{r.Uint64()}}}}}
	if r.IntN(2) == 0 {
		q.Bits[0].ID = newID()
	}
	return q
}

// hashed groups by numbers that are not dense.
func hashed(r *rand.Rand, fact, _ *testTable) *program.Query {
	p := &program.Program{
		Columns: columnsOf(factColumns, 0, 1),
		Nodes:   []program.Node{columnNode(factColumns, 0, 0), columnNode(factColumns, 1, 1)},
		Steps:   []program.Step{{Kind: program.StepRange, Node: 1, Permille: 250}},
		Sink: program.Sink{Place: program.PlaceHash, Digits: []program.Digit{{Node: 0}}, Accs: []program.Acc{
			{Kind: program.AccSum, Arg: 1, Filter: -1}}},
	}
	return &program.Query{Program: p, Segments: fact.of(0, 1), TableID: fact.id, Ranges: []program.Range{randomRange(r, factColumns[1])},
		Digits: []program.DigitData{{Lo: 0, Stride: 1 << 40}}, Groups: 100 << 40, Expect: 100}
}

// distinct counts distinct values by group: few, so that small memories have room for them.
func distinct(r *rand.Rand, fact, _ *testTable) *program.Query {
	p := &program.Program{
		Columns: columnsOf(factColumns, 0, 8, 1),
		Nodes:   []program.Node{columnNode(factColumns, 0, 0), columnNode(factColumns, 1, 8), columnNode(factColumns, 2, 1), {Op: plan.OpIsNull, Args: []int{1}}},
		Steps:   []program.Step{{Kind: program.StepRange, Node: 2, Permille: 250}},
		Sink:    program.Sink{Place: program.PlaceHash, Digits: []program.Digit{{Node: 0}, {Node: 3}}, Distinct: true, Counted: true},
	}
	return &program.Query{Program: p, Segments: fact.of(0, 8, 1), TableID: fact.id, Ranges: []program.Range{randomRange(r, factColumns[1])},
		Digits: []program.DigitData{{Lo: 0, Stride: 1}, {Lo: 0, Stride: 100}}, Groups: 200, Expect: 200, Counted: 100}
}

// firstCounts asks for the numbers of distinct that have the most values.
func firstCounts(r *rand.Rand, fact, dim *testTable) *program.Query {
	q := distinct(r, fact, dim)
	p := *q.Program
	p.Sink.Top, p.Sink.TopDesc, p.Sink.TopBy = true, true, -1
	p.Sink.TopThen = program.TopThen(r.IntN(2))
	q.Program, q.Top, q.TopDigit = &p, 1+r.Uint64N(40), program.DigitPlace{Stride: 1, Card: 100}
	return q
}

// distinctWide is distinct of values in a prefix.
func distinctWide(r *rand.Rand, fact, _ *testTable) *program.Query {
	q := pairs(r, fact, nil)
	p := *q.Program
	p.Sink.Distinct, p.Sink.Counted, p.Sink.Accs = true, true, nil
	q.Program, q.Counted = &p, 2
	return q
}

// first asks for the first groups of pairs, by their sums. The codes of groups take some memory.
func first(r *rand.Rand, fact, dim *testTable) *program.Query {
	q := pairs(r, fact, dim)
	p := *q.Program
	p.Sink.Top, p.Sink.TopDesc = true, true
	q.Program, q.Top = &p, 1+r.Uint64N(40)
	return q
}

// pairs groups by numbers that have a prefix.
func pairs(r *rand.Rand, fact, _ *testTable) *program.Query {
	p := &program.Program{
		Columns: columnsOf(factColumns, 0, 2, 1),
		Nodes: []program.Node{columnNode(factColumns, 0, 0), columnNode(factColumns, 1, 2), columnNode(factColumns, 2, 1),
			{Op: plan.OpIsNull, Args: []int{1}}},
		Steps: []program.Step{{Kind: program.StepRange, Node: 2, Permille: 250}},
		Sink: program.Sink{Place: program.PlaceHash, Prefix: 1, Digits: []program.Digit{{Node: 0}, {Node: 3}}, Accs: []program.Acc{
			{Kind: program.AccSum, Arg: 2, Filter: -1}}},
	}
	return &program.Query{Program: p, Segments: fact.of(0, 2, 1), TableID: fact.id, Ranges: []program.Range{randomRange(r, factColumns[1])},
		Digits: []program.DigitData{{Lo: -1 << 50, Stride: 1}, {Lo: 0, Stride: 1}}, Expect: 200}
}

// hostLookup has a lookup, a table and a set of the host's.
func hostLookup(r *rand.Rand, fact, _ *testTable) *program.Query {
	p := &program.Program{
		Columns: columnsOf(factColumns, 7, 0, 8),
		Lookups: []program.Lookup{{Kind: program.Lookup8, Key: 0, Outs: []program.Out{{Wide: true}, {Nullable: true}}}},
		Tables:  []program.Table{{}},
		Nodes: []program.Node{columnNode(factColumns, 0, 7), columnNode(factColumns, 1, 0), columnNode(factColumns, 2, 8),
			{Op: program.OpOut, Index: 0, Out: 0, Wide: true}, {Op: program.OpOut, Index: 0, Out: 1, Nullable: true},
			{Op: program.OpTable, Index: 0, Args: []int{1}}, {Op: plan.OpIn, Index: 0, Args: []int{2}, Nullable: true}},
		Steps: []program.Step{{Kind: program.StepProbe, Index: 0, Permille: 500}, {Kind: program.StepFilter, Node: 6, Permille: 500}},
		Sink: program.Sink{Place: program.PlaceShared, Digits: []program.Digit{{Node: 5}}, Accs: []program.Acc{
			{Kind: program.AccSum, Arg: 3, Filter: -1}, {Kind: program.AccSum, Arg: 4, Filter: -1}}},
	}
	l := program.LookupData{Lo: 0, Size: 3000, E8: make([]uint8, 3000)}
	for i := range l.E8 {
		if l.E8[i] = uint8(r.IntN(200)); r.IntN(3) == 0 {
			l.E8[i] = 255
		}
	}
	l.Outs = []program.OutData{{Values: make([]int64, 200)}, {Values: make([]int64, 200), Nulls: make([]uint8, 200)}}
	for i := range 200 {
		l.Outs[0].Values[i] = int64(r.Uint64() >> 20)
		l.Outs[1].Values[i] = int64(r.IntN(1000))
		l.Outs[1].Nulls[i] = uint8(r.IntN(2))
	}
	if r.IntN(2) == 0 { // the same entries, of a table that the device makes
		keys, entries := []int64{}, []uint32{}
		for i, e := range l.E8 {
			if e != 255 {
				keys, entries = append(keys, int64(i)), append(entries, uint32(e))
			}
		}
		p.Lookups[0].Kind, l.Lo, l.Size, l.E8, l.Keys, l.Entries = program.LookupHash, 0, 0, nil, keys, entries
	}
	table := program.TableData{Lo: 0, Values: make([]int64, 100)}
	for i := range table.Values {
		table.Values[i] = int64(r.IntN(10))
	}
	if l.Keys == nil && r.IntN(2) == 0 {
		l.ID, table.ID = newID(), newID()
	}
	set := []int64{}
	for v := int64(20); v < 84; v++ {
		if r.IntN(2) == 0 {
			set = append(set, v)
		}
	}
	for len(set) < 30 {
		set = append(set, 1000+int64(len(set)))
	}
	return &program.Query{Program: p, Segments: fact.of(7, 0, 8), TableID: fact.id, Lookups: []program.LookupData{l},
		Tables: []program.TableData{table}, Sets: [][]int64{set}, Digits: []program.DigitData{{Lo: 0, Stride: 1}}, Groups: 10}
}

// sameResult compares results, whose groups are in no order.
func sameResult(p *program.Program, got, want *program.Result) error {
	if got.Fault != want.Fault || got.Full != want.Full {
		return fmt.Errorf("fault %v, full %v; not %v, %v", got.Fault, got.Full, want.Fault, want.Full)
	}
	if !slices.EqualFunc(got.Bitmaps, want.Bitmaps, slices.Equal) {
		return fmt.Errorf("bitmaps %x, not %x", got.Bitmaps, want.Bitmaps)
	}
	lines := func(r *program.Result) []string {
		out := make([]string, len(r.Numbers))
		for g := range r.Numbers {
			out[g] = fmt.Sprint(r.Numbers[g], r.Rows[g])
			if r.Prefix != nil {
				out[g] += fmt.Sprint(" of ", r.Prefix[g])
			}
			for _, a := range r.Accs {
				if out[g] += fmt.Sprint(" ", a.V[g]); a.Hi != nil {
					out[g] += fmt.Sprint(":", a.Hi[g])
				}
			}
		}
		sort.Strings(out)
		return out
	}
	g, w := lines(got), lines(want)
	if !slices.Equal(g, w) {
		return fmt.Errorf("%d groups\n%s\nnot %d\n%s", len(g), strings.Join(g[:min(len(g), 5)], "\n"), len(w), strings.Join(w[:min(len(w), 5)], "\n"))
	}
	return nil
}
