package gpu

import (
	"math/rand/v2"
	"testing"

	"pgaccel/gpu/emulator"
	"pgaccel/gpu/program"
)

// TestImageColumns: what is kept of a column serves queries that have it in another place:
// the first one brings a part of it, the second one, with its columns the other way round,
// the rest.
func TestImageColumns(t *testing.T) {
	m := newManager(t, Options{}, newEmulator(t, emulator.Options{}))
	r := rand.New(rand.NewPCG(3, 3))
	fact := &testTable{}
	for i := range 4 {
		// The segments' first columns do not overlap, so that a range excludes some.
		fact.columns = []testColumn{{lo: int64(1000 * i), hi: int64(1000*i + 999)}, {lo: 0, hi: 1 << 20}, {lo: -7, hi: 7}}
		fact.add(r, 700+100*i)
	}
	whole := []testColumn{{lo: 0, hi: 3999}, {lo: 0, hi: 1 << 20}, {lo: -7, hi: 7}}
	sums := func(lo, hi int64, columns ...int) *program.Query {
		p := &program.Program{Columns: columnsOf(whole, columns...)}
		for i, c := range columns {
			p.Nodes = append(p.Nodes, columnNode(whole, i, c))
			if c == 0 {
				p.Steps = []program.Step{{Kind: program.StepRange, Node: i}}
			}
			p.Sink.Accs = append(p.Sink.Accs, program.Acc{Kind: program.AccSum, Arg: i, Filter: -1})
		}
		return &program.Query{Program: p, Segments: fact.of(columns...), TableID: fact.id, Ranges: []program.Range{{Lo: lo, Hi: hi}}, Groups: 1}
	}
	for _, q := range []*program.Query{
		sums(1200, 1800, 2, 1, 0),
		sums(0, 3999, 0, 2, 1),
		sums(0, 1500, 1, 0),
		sums(0, 3999, 0, 1),
		sums(0, 3999, 2, 0),
	} {
		if err := compare(m, q); err != nil {
			t.Error(err)
		}
	}
	if err := m.idle(); err != nil {
		t.Error(err)
	}
}
