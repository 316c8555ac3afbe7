package gpu

import (
	"math/rand/v2"
	"testing"

	"pgaccel/bitmapidx"
	"pgaccel/compress"
	"pgaccel/gpu/emulator"
	"pgaccel/gpu/program"
)

// indexes are those of the tests' columns, by ID.
type indexes map[uint64]*testIndex

type testIndex struct {
	*bitmapidx.Index
	id uint64
}

// of returns the index of a column.
func (all indexes) of(c *program.SegmentColumn, rows int) *testIndex {
	if x := all[c.ID]; x != nil {
		return x
	}
	column, err := compress.Parse(c.Words)
	if err != nil {
		panic(err)
	}
	values := make([]int64, rows)
	column.Decode(values, 0)
	x := &testIndex{Index: bitmapidx.Build(values, c.Nulls, nil), id: newID()}
	all[c.ID] = x
	return x
}

// use has indexes of some segments answer the query's ranges of columns. Now and then they are of a new version, and one
// that was there has gone, or comes back.
func (all indexes) use(r *rand.Rand, q *program.Query, versions map[uint64]*testVersion) {
	x := &program.Indexed{}
	for _, s := range q.Steps {
		n := &q.Nodes[s.Node]
		if s.Kind != program.StepRange || n.Op != program.OpColumn {
			continue
		}
		v := versions[q.Segments[0].Columns[n.Index].ID]
		if v == nil || len(v.lacks) != len(q.Segments) || r.IntN(4) == 0 {
			v = &testVersion{id: newID(), lacks: make([]bool, len(q.Segments))}
			some := 2 + r.IntN(7) // one in so many segments has no index
			for i := range v.lacks {
				v.lacks[i] = r.IntN(some) == 0
			}
			versions[q.Segments[0].Columns[n.Index].ID] = v
		}
		x.Terms = append(x.Terms, program.IndexTerm{Column: len(x.Columns), Kind: s.Kind, Index: s.Index})
		x.Columns = append(x.Columns, program.IndexedColumn{Column: n.Index, Version: v.id, Of: func(i int) (uint64, []uint64) {
			if v.lacks[i] {
				return 0, nil
			}
			index := all.of(&q.Segments[i].Columns[n.Index], q.Segments[i].Rows)
			return index.id, index.Words()
		}})
	}
	if len(x.Terms) > 0 {
		q.Indexed = x
	}
}

// testVersion is which segments lack an index of a column.
type testVersion struct {
	id    uint64
	lacks []bool
}

// fewColumns are columns of few values, each of which has a bin, and one of many.
var fewColumns = []testColumn{{lo: -3, hi: 20, nullable: true}, {lo: 100, hi: 130}, {lo: 1000, hi: 1000 + 1<<17 - 1}}

// ofFew sums over ranges of columns of few values; ranges of one of them, too.
func ofFew(r *rand.Rand, few *testTable) *program.Query {
	p := &program.Program{
		Columns: columnsOf(fewColumns, 0, 1, 2),
		Nodes:   []program.Node{columnNode(fewColumns, 0, 0), columnNode(fewColumns, 1, 1), columnNode(fewColumns, 2, 2)},
		Steps:   []program.Step{{Kind: program.StepRange, Node: 0, Index: 0, Permille: 500}, {Kind: program.StepRange, Node: 1, Index: 1, Permille: 500}},
		Sink:    program.Sink{Place: program.PlaceSingle, Accs: []program.Acc{{Kind: program.AccSum, Arg: 2, Filter: -1}, {Kind: program.AccMin, Arg: 0, Filter: -1}}},
	}
	if r.IntN(2) == 0 { // no column but those of the ranges
		p.Sink.Accs = []program.Acc{{Kind: program.AccRows, Arg: -1, Filter: -1}}
	}
	return &program.Query{Program: p, Segments: few.of(0, 1, 2), TableID: few.id, Ranges: []program.Range{randomRange(r, fewColumns[0]), randomRange(r, fewColumns[1])}, Groups: 1}
}

// TestIndexedQueries has indexes say which rows to look at: the answers are the same.
func TestIndexedQueries(t *testing.T) {
	for _, test := range []struct {
		name string
		opt  Options
		emu  emulator.Options
	}{
		{"resident", Options{Memory: 64 << 20, pieces: true}, emulator.Options{}},
		{"eviction", Options{Memory: 700 << 10, chunk: 16 << 10}, emulator.Options{}},
		{"two devices", Options{Memory: 64 << 20, Share: true}, emulator.Options{Devices: 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(8, uint64(len(test.name))))
			mem := newMemory(t, 4<<20)
			test.opt.File, test.opt.Offset = mem.f, mem.offset
			m := newManager(t, test.opt, newEmulator(t, test.emu))
			fact, dim := testTables(r, mem)
			few := newTable(r, mem, fewColumns, edgeRows...)
			all, versions := indexes{}, map[uint64]*testVersion{}
			narrowed := 0
			for i := range 40 {
				if r.IntN(6) == 0 {
					fact.change(r)
					few.change(r)
				}
				q := ofFew(r, few)
				if r.IntN(2) == 0 {
					q = []func(r *rand.Rand, fact, dim *testTable) *program.Query{single, shared, joined, hashed}[r.IntN(4)](r, fact, dim)
				}
				want, err := program.Reference(q)
				if err != nil {
					t.Fatal(err)
				}
				all.use(r, q, versions)
				if r.IntN(6) == 0 {
					q.TableID = 0
				}
				for _, on := range []func(q *program.Query) (*program.Result, Stats, error){
					func(q *program.Query) (*program.Result, Stats, error) {
						r, err := program.Reference(q)
						return r, Stats{}, err
					},
					func(q *program.Query) (*program.Result, Stats, error) {
						return m.Run(t.Context(), q, RunOptions{Wait: true})
					},
				} {
					got, stats, err := on(q)
					if err == nil {
						err = sameResult(q.Program, got, want)
					}
					if err != nil {
						t.Fatalf("query %d: %v", i, err)
					}
					narrowed += stats.Indexed
				}
				if err := m.idle(); err != nil {
					t.Fatalf("after query %d: %v", i, err)
				}
			}
			kept := int64(0)
			for _, s := range m.Status() {
				kept += s.Kept[itemNames[itemIndex]]
			}
			if narrowed < 40 || kept == 0 {
				t.Errorf("%d segments were narrowed, %d bytes are kept", narrowed, kept)
			}
		})
	}
}
