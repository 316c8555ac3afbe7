package gpu

import (
	"context"
	"os"
	"sync/atomic"
	"testing"

	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
	"pgaccel/plan"
)

// null is an executor that does nothing at once: what is left is the host's share.
type null struct{ next atomic.Uint64 }

func (n *null) Devices() []device.Info {
	return []device.Info{{Kind: device.CUDA, Name: "null", Arch: "sm_90", SMs: 132, ThreadsPerSM: 2048, SharedPerBlock: 227 << 10, Memory: 100 << 30, Free: 100 << 30}}
}
func (n *null) Share(*os.File) (device.File, error) { return 1, nil }
func (n *null) Alloc(_ int, bytes int64) (device.Pointer, error) {
	return device.Pointer(n.next.Add(uint64(roundUp(bytes)))), nil
}
func (n *null) Free(int, device.Pointer) error { return nil }
func (n *null) Compile(context.Context, int, device.Source) (device.Module, error) {
	return device.Module(n.next.Add(1)), nil
}
func (n *null) Close() error { return nil }
func (n *null) Run(_ context.Context, _ int, b *device.Batch) (*device.Reply, error) {
	r := &device.Reply{}
	for i := range b.Commands {
		if c := &b.Commands[i]; c.Op == device.OpRead {
			r.Data = append(r.Data, make([]byte, c.Bytes))
		}
	}
	return r, nil
}

// starQuery is like Q4.1 of the star schema benchmark at scale factor 20: 1831 segments,
// six columns, four lookups that are kept, groups by two digits.
func starQuery(segments int, table uint64) *program.Query {
	words := make([]uint32, 65536*16/32)
	p := &program.Program{Sink: program.Sink{Place: program.PlaceShared, Digits: []program.Digit{{Node: 6}, {Node: 7}}, Accs: []program.Acc{{Kind: program.AccSum, Arg: 8, Filter: -1}}}}
	q := &program.Query{Program: p, TableID: table, Groups: 175, Digits: []program.DigitData{{Stride: 1}, {Stride: 7}}}
	for c := range 6 {
		p.Columns = append(p.Columns, program.Column{})
		p.Nodes = append(p.Nodes, program.Node{Op: program.OpColumn, Index: c})
	}
	p.Nodes = append(p.Nodes, program.Node{Op: program.OpEntry, Index: 0}, program.Node{Op: program.OpEntry, Index: 3}, program.Node{Op: plan.OpSub, Args: []int{4, 5}})
	for l := range 4 {
		kind := program.LookupBits
		if l == 0 || l == 3 {
			kind = program.Lookup8
		}
		p.Lookups = append(p.Lookups, program.Lookup{Kind: kind, Key: l})
		p.Steps = append(p.Steps, program.Step{Kind: program.StepProbe, Index: l, Permille: 250})
		q.Lookups = append(q.Lookups, program.LookupData{Lo: 0, Size: 40000, ID: newID(), Bits: make([]uint64, 625), E8: make([]uint8, 40000)})
	}
	for i := range segments {
		s := program.Segment{ID: uint64(i + 1), Rows: 65536}
		for range 6 {
			s.Columns = append(s.Columns, program.SegmentColumn{ID: newID(), Words: words, Min: 0, Max: 39999})
		}
		q.Segments = append(q.Segments, s)
	}
	return q
}

func benchmarkRun(b *testing.B, q *program.Query, before func(i int)) {
	m := newManager(b, Options{}, &null{})
	ctx := context.Background()
	if _, _, err := m.Run(ctx, q, RunOptions{Wait: true}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if before != nil {
			before(i)
		}
		if _, _, err := m.Run(ctx, q, RunOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRun is the host's share of a query whose columns are all there.
func BenchmarkRun(b *testing.B) { benchmarkRun(b, starQuery(1831, newID()), nil) }

// BenchmarkRunUnnamed has a table without a name: every segment is looked for.
func BenchmarkRunUnnamed(b *testing.B) { benchmarkRun(b, starQuery(1831, 0), nil) }

// BenchmarkRunVersion has a new version of the table for every query, with one new segment.
func BenchmarkRunVersion(b *testing.B) {
	q := starQuery(1831, newID())
	benchmarkRun(b, q, func(int) {
		q.TableID = newID()
		last := &q.Segments[len(q.Segments)-1]
		for c := range last.Columns {
			last.Columns[c].ID = newID()
		}
	})
}

// BenchmarkRunStreamed has columns that do not fit: a quarter of them is kept.
func BenchmarkRunStreamed(b *testing.B) {
	q := starQuery(1831, newID())
	bytes := int64(0)
	for c := range q.Columns {
		bytes += formatOf(q, c, 0).bytes
	}
	// Columns lie in the shared file, in no order.
	offsets := int64(0)
	file := newMemory(b, 1<<12)
	m := newManager(b, Options{Memory: bytes / 4, File: file.f, Offset: func([]byte) (int64, bool) {
		offsets = (offsets + 1<<30) % (20<<30 + 1<<17)
		return offsets, true
	}}, &null{})
	ctx := context.Background()
	for range 3 {
		if _, _, err := m.Run(ctx, q, RunOptions{Wait: true}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := m.Run(ctx, q, RunOptions{Wait: true}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(m.Status()[0].BytesCopied)/float64(b.N)/1e6, "MB-copied")
}

// BenchmarkRunStreamedInTurns has queries in turns that read some columns of a table that does not
// fit: another one each time.
func BenchmarkRunStreamedInTurns(b *testing.B) {
	const segments = 1831
	all := make([][]program.SegmentColumn, segments)
	words := make([]uint32, 65536*16/32)
	for i := range all {
		for range 9 {
			all[i] = append(all[i], program.SegmentColumn{ID: newID(), Words: words, Min: 0, Max: 39999})
		}
	}
	table := newID()
	var queries []*program.Query
	var bytes int64
	for k := range 4 {
		q := starQuery(segments, table)
		for i := range q.Segments {
			for c := range q.Segments[i].Columns {
				q.Segments[i].Columns[c] = all[i][(k*2+c)%9]
			}
		}
		queries = append(queries, q)
	}
	for c := range queries[0].Columns {
		bytes += formatOf(queries[0], c, 0).bytes
	}
	offsets := int64(0)
	file := newMemory(b, 1<<12)
	m := newManager(b, Options{Memory: bytes * 9 / 6 / 4, File: file.f, Offset: func([]byte) (int64, bool) {
		offsets = (offsets + 1<<30) % (20<<30 + 1<<17)
		return offsets, true
	}}, &null{})
	ctx := context.Background()
	i := 0
	run := func() {
		if _, _, err := m.Run(ctx, queries[i%len(queries)], RunOptions{Wait: true}); err != nil {
			b.Fatal(err)
		}
		i++
	}
	for range 3 * len(queries) {
		run()
	}
	before := m.Status()[0].BytesCopied
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		run()
		n++
	}
	b.ReportMetric(float64(m.Status()[0].BytesCopied-before)/float64(n)/1e6, "MB-copied")
	b.ReportMetric(float64(bytes)/1e6, "MB-read")
}
