package program

import (
	"cmp"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"slices"
	"testing"

	"pgaccel/compress"
	"pgaccel/gpu/device"
	"pgaccel/gpu/emulator"
)

// onDevice runs queries as package gpu does, without keeping anything.
type onDevice struct {
	t    *testing.T
	e    *emulator.Emulator
	info device.Info
	all  []device.Pointer
}

func newDevice(t *testing.T) *onDevice {
	t.Helper()
	e, err := emulator.New(emulator.Options{SMs: 2, Memory: 4 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return &onDevice{t: t, e: e, info: e.Devices()[0]}
}

func (d *onDevice) alloc(bytes int64) device.Pointer {
	d.t.Helper()
	p, err := d.e.Alloc(0, max(bytes, 16))
	if err != nil {
		d.t.Fatal(err)
	}
	d.all = append(d.all, p)
	return p
}

func (d *onDevice) free() {
	for _, p := range d.all {
		d.e.Free(0, p)
	}
	d.all = nil
}

func (d *onDevice) run(c ...device.Command) *device.Reply {
	d.t.Helper()
	r, err := d.e.Run(context.Background(), 0, &device.Batch{Commands: c})
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

// upload brings bytes to the device.
func (d *onDevice) upload(b []byte) device.Pointer {
	d.t.Helper()
	p := d.alloc(int64(len(b)))
	if len(b) > 0 {
		d.run(device.Command{Op: device.OpWrite, Dst: p, Data: b})
	}
	return p
}

func bytesOf(words []uint32) (b []byte) {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

func (d *onDevice) bitmap(words []uint64) device.Pointer {
	d.t.Helper()
	if words == nil {
		return 0
	}
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return d.upload(b)
}

// buffers brings a query's data to the device.
func (d *onDevice) buffers(q *Query, t *Tuning) *Buffers {
	d.t.Helper()
	b := &Buffers{}
	var heads []byte
	columns := make([][]byte, len(q.Program.Columns))
	for i := range q.Segments {
		s := &q.Segments[i]
		heads = AppendSegmentHead(heads, d.bitmap(s.Live), s.Rows)
		for j := range s.Columns {
			c := &s.Columns[j]
			f := LaneFormatOf(c)
			if t.Widths != nil && t.Widths[j] >= 0 {
				f.Width = uint32(t.Widths[j])
			}
			column, err := compress.Parse(aligned(c.Words))
			if err != nil {
				d.t.Fatal(err)
			}
			values := make([]int64, s.Rows)
			column.Decode(values, 0)
			words := make([]uint32, LaneWords(s.Rows, f.Width))
			packLanes(words, values, f)
			at := device.Pointer(0)
			if f.Width > 0 {
				at = d.upload(bytesOf(words))
			}
			columns[j] = AppendColumnSegment(columns[j], at, d.bitmap(c.Nulls), f)
		}
	}
	b.Heads = d.upload(heads)
	for _, c := range columns {
		b.Columns = append(b.Columns, d.upload(c))
	}
	for i := range q.Bits {
		b.Bits = append(b.Bits, d.upload(AppendBits(nil, &q.Bits[i])))
	}
	for _, s := range q.Sets {
		b.Sets = append(b.Sets, d.upload(AppendSet(nil, s)))
	}
	for i := range q.Tables {
		b.Tables = append(b.Tables, d.upload(AppendTable(nil, q.Program.Tables[i], &q.Tables[i])))
	}
	for i := range q.Lookups {
		l := &q.Program.Lookups[i]
		if build := q.Lookups[i].Build; build != nil {
			_, built := d.compute(build, TuningFor(build, &d.info), 1)
			b.Lookups = append(b.Lookups, built)
		} else if data := &q.Lookups[i]; data.Keys != nil {
			b.Lookups = append(b.Lookups, d.hash(data))
		} else {
			b.Lookups = append(b.Lookups, d.upload(AppendLookup(nil, l, &q.Lookups[i])))
		}
		b.Outs = append(b.Outs, d.upload(AppendOuts(nil, l, &q.Lookups[i])))
	}
	if q.Sink.Kind == SinkBuild {
		b.Built = d.alloc(BuiltBytes(q))
	}
	return b
}

// hash has the device make a table.
func (d *onDevice) hash(data *LookupData) device.Pointer {
	d.t.Helper()
	source := TranscodeSource()
	m, err := d.e.Compile(context.Background(), 0, source)
	if err != nil {
		d.t.Fatal(err)
	}
	keys, entries, to := d.upload(AppendSet(nil, data.Keys)), device.Pointer(0), d.alloc(HashBytes(data))
	if data.Entries != nil {
		entries = d.upload(AppendList(nil, data.Entries))
	}
	d.run(Clear(nil, m, []Region{HashRegion(data, to)}, d.info.SMs)...)
	d.run(BuildHash(m, data, keys, entries, to, d.info.SMs))
	return to
}

// compute runs a query in some launches.
func (d *onDevice) compute(q *Query, t Tuning, launches int) (*Result, device.Pointer) {
	d.t.Helper()
	g, err := Generate(q.Program, t)
	if err != nil {
		d.t.Fatal(err)
	}
	m, err := d.e.Compile(context.Background(), 0, g.Source)
	if err != nil {
		d.t.Fatalf("%v\n%s", err, g.Source.Code)
	}
	b := d.buffers(q, &t)
	list := Surviving(q)
	b.Scratch = d.alloc(g.ScratchBytes(q, len(list)))
	c := g.Prepare(nil, q, b)
	for part := range slices.Chunk(list, max((len(list)+launches-1)/launches, 1)) {
		c = g.ScanSegments(c, q, m, b, part, d.info.SMs)
	}
	c = g.Finish(c, q, m, b, d.info.SMs)
	first := d.run(c...).Data[0]
	var rest []byte
	if more, ok := g.Rest(q, b, first); ok {
		rest = d.run(more).Data[0]
	}
	r, err := g.Parse(q, first, rest)
	if err != nil {
		d.t.Fatal(err)
	}
	return r, b.Built
}

// sorted brings a result's groups into one order.
func sorted(p *Program, r *Result) *Result {
	order := make([]int, len(r.Numbers))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		c := cmp.Compare(r.Numbers[a], r.Numbers[b])
		if r.Prefix != nil {
			c = cmp.Or(c, cmp.Compare(r.Prefix[a], r.Prefix[b]))
		}
		return c
	})
	out := &Result{Fault: r.Fault, Full: r.Full, Bitmaps: r.Bitmaps, Accs: make([]Values, len(r.Accs))}
	for k, g := range order {
		out.Numbers, out.Rows = append(out.Numbers, r.Numbers[g]), append(out.Rows, r.Rows[g])
		if r.Prefix != nil {
			out.Prefix = append(out.Prefix, r.Prefix[g])
		}
		for i, a := range p.Sink.Accs {
			out.Accs[i].Grow(a.Kind, k+1)
			out.Accs[i].Merge(a.Kind, k, &r.Accs[i], g)
		}
	}
	return out
}

// differ says how two results differ; "" where they do not.
func differ(p *Program, got, want *Result) string {
	if got.Fault != want.Fault || got.Full != want.Full {
		return fmt.Sprintf("fault %v, full %v; want fault %v, full %v", got.Fault, got.Full, want.Fault, want.Full)
	}
	if got.Fault || got.Full {
		return ""
	}
	got, want = sorted(p, got), sorted(p, want)
	if !slices.Equal(got.Numbers, want.Numbers) {
		return fmt.Sprintf("%d groups %v; want %d: %v", len(got.Numbers), cut(got.Numbers), len(want.Numbers), cut(want.Numbers))
	}
	if !slices.Equal(got.Prefix, want.Prefix) {
		return fmt.Sprintf("prefixes %v; want %v", cut(got.Prefix), cut(want.Prefix))
	}
	if !slices.Equal(got.Rows, want.Rows) {
		return fmt.Sprintf("rows %v; want %v", cut(got.Rows), cut(want.Rows))
	}
	for i := range want.Accs {
		if !slices.Equal(got.Accs[i].V, want.Accs[i].V) || !slices.Equal(got.Accs[i].Hi, want.Accs[i].Hi) {
			return fmt.Sprintf("accumulator %d: %v; want %v", i, cut(got.Accs[i].V), cut(want.Accs[i].V))
		}
	}
	for i := range want.Bitmaps {
		if !slices.Equal(got.Bitmaps[i], want.Bitmaps[i]) {
			return fmt.Sprintf("segment %d: bitmap %x; want %x", i, cut(got.Bitmaps[i]), cut(want.Bitmaps[i]))
		}
	}
	return ""
}

func cut[T any](v []T) []T { return v[:min(len(v), 12)] }

// randomTuning is one of those that a device might have.
func randomTuning(q *Query, seed uint64) Tuning {
	t := Tuning{Threads: []int{32, 64, 128}[seed%3], BlocksPerSM: 1 + int(seed%2), Positions: []int{1, 2, 4, 8}[seed/3%4],
		Queue: seed%4 != 1, Dense: int(seed / 5 % 4), TableBytes: int(seed%2) * 4096}
	if seed%4 != 0 { // one width for a column in all segments
		for c := range q.Program.Columns {
			width := int8(-1)
			if (seed+uint64(c))%5 != 0 {
				for i := range q.Segments {
					width = max(width, int8(LaneFormatOf(&q.Segments[i].Columns[c]).Width))
				}
			}
			t.Widths = append(t.Widths, width)
		}
	}
	for i := range q.Lookups {
		t.StageLookups = append(t.StageLookups, q.Program.Lookups[i].Kind != LookupHash && (seed+uint64(i))%2 == 0)
	}
	for i := range q.Lookups {
		t.WindowLookups = append(t.WindowLookups, (seed/3+uint64(i))%2 == 0)
	}
	t.Carries, t.Together, t.Rows = seed%5 != 0, seed%11 < 6, int(seed/2%3)
	for i := range q.Bits {
		t.StageBits = append(t.StageBits, (seed+uint64(i))%2 == 1)
	}
	return t
}

// TestRandomPrograms compares generated kernels with Reference.
func TestRandomPrograms(t *testing.T) {
	d := newDevice(t)
	faults, groups, many, rows := 0, 0, 0, int64(0)
	for seed := range uint64(programs()) {
		q := randomQuery(seed, edgeLengths)
		want, err := Reference(q)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		tuning := randomTuning(q, seed)
		if seed%3 == 2 {
			tuning = TuningFor(q, &d.info, tuning.Widths...)
		}
		got, built := d.compute(q, tuning, 1+int(seed%3))
		if text := differ(q.Program, got, want); text != "" {
			g, _ := Generate(q.Program, tuning)
			t.Fatalf("seed %d: %s\n%+v\n%s", seed, text, *q.Program, g.Source.Code)
		}
		if q.Sink.Kind == SinkBuild && !want.Fault {
			have := d.run(device.Command{Op: device.OpRead, Src: built, Bytes: uint64(BuiltBytes(q))}).Data[0]
			if wanted := AppendLookup(nil, &Lookup{Kind: q.Sink.Build}, want.Lookup); !slices.Equal(have[:len(wanted)-16], wanted[:len(wanted)-16]) {
				t.Fatalf("seed %d: another lookup was built", seed)
			}
		}
		faults += int(number(want.Fault))
		groups += len(want.Numbers)
		if lookup, _ := q.many(); lookup >= 0 {
			many++
		}
		for _, n := range want.Rows {
			rows += n
		}
		d.free()
	}
	t.Logf("%d faults, %d groups of %d rows, %d joins that multiply", faults, groups, rows, many)
	if n := programs(); n > 20 && faults == 0 || faults > n/2 || groups < n || rows < int64(n) || many == 0 {
		t.Errorf("%d faults, %d groups of %d rows, %d joins that multiply in %d programs: not much was tested", faults, groups, rows, many, n)
	}
}

var seeds = flag.Int("seeds", 0, "random programs; 0: a few")

// programs is how many random programs are tested.
func programs() int {
	if *seeds > 0 {
		return *seeds
	}
	if testing.Short() {
		return 12
	}
	return 30
}
