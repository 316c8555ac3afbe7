package program

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"pgaccel/gpu/device"
	"pgaccel/internal/bulk"
	"pgaccel/internal/processors"
)

// Generated is a Program's kernel.
type Generated struct {
	// Source has the entry points Scan, Collect and, with Sink.Counted, Count, with Sink.Top Rank and Bound, with
	// TopThen Ties and TiesBound; what it
	// is called, and they are, ends with a hash of it.
	Source                                             device.Source
	Scan, Collect, Count, Rank, Bound, Ties, TiesBound string

	p      *Program
	t      Tuning
	places places
	params []param
	// usual is about the size in bytes, without the head, of results that were gathered: so
	// much the next Finish reads, lest what is missing be asked for. 0: none yet.
	usual atomic.Int64
}

// paramsMax is the most bytes of a kernel's parameter.
const paramsMax = 4096 - 64

// Generate makes the kernel of a program. It fails for programs that Validate refuses, and
// for those that need more than a kernel's parameter can hold.
func Generate(p *Program, t Tuning) (*Generated, error) {
	if err := validate(p); err != nil {
		return nil, err
	}
	if t.Threads < 32 || t.Threads > 1024 || t.Threads%32 != 0 || t.BlocksPerSM < 1 ||
		bits.OnesCount(uint(t.Positions)) != 1 || t.Positions > laneRows {
		return nil, fmt.Errorf("%d blocks of %d threads, %d positions", t.BlocksPerSM, t.Threads, t.Positions)
	}
	if err := p.checkOrder(t.Order); err != nil {
		return nil, err
	}
	if p.Sink.Kind == SinkBuild {
		t = buildTuning(t)
	}
	if many, _ := p.many(); many >= 0 { // who gathers rows has them multiply
		t.Queue, t.Rows = true, 1
	}
	g := &generator{p: p, t: t, known: map[string]bool{}}
	g.param("const uint32_t *", "list", func(a *arguments) uint64 {
		if a.all {
			return 0
		}
		return uint64(a.b.Scratch) + uint64(a.l.list)
	})
	g.param("const SegmentHead *", "heads", func(a *arguments) uint64 { return uint64(a.b.Heads + a.first*SegmentHeadBytes) })
	g.param("ResultHead *", "head", func(a *arguments) uint64 {
		if a.b.Faults != 0 {
			return uint64(a.b.Faults)
		}
		return uint64(a.b.Scratch) + uint64(a.l.head)
	})
	if t.Indexed {
		g.param("const uint32_t *", "alive", func(a *arguments) uint64 { return uint64(a.b.Alive) })
	}
	g.param("uint32_t", "units", func(a *arguments) uint64 { return uint64(a.segments) << a.l.shift >> a.ofUnit })
	g.param("uint32_t", "shift", func(a *arguments) uint64 { return uint64(a.l.shift) })
	switch p.Sink.Kind {
	case SinkGroups:
		g.param("uint64_t *", "table", func(a *arguments) uint64 { return uint64(a.b.Scratch) + uint64(a.l.table) })
		g.param("uint64_t", "slots", func(a *arguments) uint64 { return a.l.slots })
		g.param("uint64_t *", "result", func(a *arguments) uint64 { return uint64(a.b.Scratch) + uint64(a.l.result) })
		if p.Sink.Counted {
			g.param("uint64_t *", "counts", func(a *arguments) uint64 { return uint64(a.b.Scratch) + uint64(a.l.counts) })
			g.param("uint64_t", "numbers", func(a *arguments) uint64 { return a.l.numbers })
		}
		if p.Sink.Top {
			g.param("uint64_t *", "codes", func(a *arguments) uint64 { return uint64(a.b.Scratch) + uint64(a.l.codes) })
			g.param("uint64_t", "top", func(a *arguments) uint64 { return a.q.Top })
		}
		if p.Sink.TopThen != TopAll {
			g.param("uint64_t", "top_stride", func(a *arguments) uint64 { return a.q.TopDigit.Stride })
			g.param("uint64_t", "top_card", func(a *arguments) uint64 { return a.q.TopDigit.Card })
		}
		for i := range p.Sink.Having {
			g.param("int64_t", fmt.Sprintf("having%d_lo", i), func(a *arguments) uint64 { return uint64(a.q.Having[i].Lo) })
			g.param("int64_t", fmt.Sprintf("having%d_hi", i), func(a *arguments) uint64 { return uint64(a.q.Having[i].Hi) })
		}
		if p.Sink.Place == PlaceHash {
			g.param("uint64_t *", "keys", func(a *arguments) uint64 { return uint64(a.b.Scratch) + uint64(a.l.keys) })
		}
	case SinkBitmap:
		g.param("uint32_t *", "bitmap", func(a *arguments) uint64 {
			return uint64(a.b.Scratch) + uint64(a.l.result) + uint64(a.first)<<a.l.shift*(VectorRows/8)
		})
		g.param("uint64_t", "bitmap_words", func(a *arguments) uint64 { return uint64(a.l.resultBytes / 8) })
		g.param("uint64_t *", "words", func(a *arguments) uint64 { return uint64(a.b.Scratch) + uint64(a.l.words) })
		g.param("uint64_t", "words_max", func(a *arguments) uint64 { return uint64(a.l.wordsMax) })
	}
	g.indent = 1
	if p.Sink.Kind == SinkBuild {
		g.scanBuild()
	} else {
		g.scan()
	}
	type kernel struct {
		name  string
		lines []string
	}
	var others []kernel // each of blocks of collectThreads
	scan := g.lines
	for _, k := range []struct {
		name string
		emit func()
	}{{"collect", g.collect}, {"count", g.count}, {"rank", g.rank}, {"bound", g.bound}, {"ties", g.ties}, {"ties_bound", g.tiesBound}} {
		g.lines = nil
		if k.emit(); len(g.lines) > 0 || k.name == "collect" {
			others = append(others, kernel{k.name, g.lines})
		}
	}

	size := 8 * len(g.params)
	if size > paramsMax {
		return nil, fmt.Errorf("a kernel with %d bytes of parameters", size)
	}
	code := func(suffix string) string {
		var b strings.Builder
		b.WriteString("#include \"values.cuh\"\n#include \"groups.cuh\"\n\nstruct Params {\n")
		for _, m := range g.params {
			space := " "
			if strings.HasSuffix(m.ctype, "*") {
				space = ""
			}
			fmt.Fprintf(&b, "\t%s%s%s;\n", m.ctype, space, m.name)
		}
		fmt.Fprintf(&b, "};\n\nPGACCEL_KERNEL(scan%s, Params, p, %d, %d)\n{\n%s\n}\n", suffix, t.Threads, t.BlocksPerSM, strings.Join(scan, "\n"))
		for _, k := range others {
			fmt.Fprintf(&b, "\nPGACCEL_KERNEL(%s%s, Params, p, %d, 1)\n{\n%s\n}\n", k.name, suffix, collectThreads, strings.Join(k.lines, "\n"))
		}
		return b.String()
	}
	sum := sha256.Sum256([]byte(code("")))
	suffix := "_" + hex.EncodeToString(sum[:8]) // kernels are told apart by it
	return &Generated{
		Source: ScanSource("scan"+suffix, code(suffix)),
		Scan:   "scan" + suffix, Collect: "collect" + suffix, Count: "count" + suffix, Rank: "rank" + suffix, Bound: "bound" + suffix,
		Ties: "ties" + suffix, TiesBound: "ties_bound" + suffix,
		p: p, t: t, places: p.places(), params: g.params,
	}, nil
}

// ScanSource is the source of a generated kernel, by its name and its code.
func ScanSource(name, code string) device.Source {
	return device.Source{Name: name, Code: code, Headers: headers("pgaccel.cuh", "lanes.cuh", "hash.cuh", "values.cuh", "groups.cuh")}
}

// HeadersVersion is a hash of what generated kernels include.
var HeadersVersion = sync.OnceValue(func() string {
	h := sha256.New()
	all := ScanSource("", "").Headers
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(h, "%s %d\n%s", name, len(all[name]), all[name])
	}
	return hex.EncodeToString(h.Sum(nil))
})

// collectThreads is the size of a block of all kernels but Scan; TOP_THREADS of kernels/groups.cuh.
const collectThreads = 256

// Buffers are the places in device memory of what a query's kernels read and write. All are
// aligned to 16 bytes at least. Buffers that would be empty still have 16 bytes.
type Buffers struct {
	Heads   device.Pointer   // descriptors of all segments: AppendSegmentHead
	Columns []device.Pointer // of each of Program.Columns in all segments: AppendColumnSegment
	Bits    []device.Pointer // AppendBits of each of Query.Bits
	Sets    []device.Pointer // AppendSet of each of Query.Sets
	Tables  []device.Pointer // AppendTable of each
	Lookups []device.Pointer // AppendLookup of each, or what a SinkBuild left in Built
	Outs    []device.Pointer // AppendOuts of each lookup
	Built   device.Pointer   // SinkBuild: BuiltBytes(q), which become the lookup
	Scratch device.Pointer   // ScratchBytes, of any content: groups, list, result
	// Alive is Narrowing.Alive where Heads are what Narrow leaves, of at most AliveSegments; 0: all vectors are looked at.
	Alive device.Pointer
	// Faults is the Head of another query that is to have a fault where this has one; Finish
	// then has nothing to read. For a SinkBuild and the query that it is for. 0: none.
	Faults device.Pointer
}

// Head is where the kernels of q note a fault: what Prepare clears, and Buffers.Faults of what
// runs between Prepare and Finish.
func (g *Generated) Head(q *Query, b *Buffers) device.Pointer {
	l := g.layout(q)
	return b.Scratch + device.Pointer(l.head)
}

// ScratchBytes is the size of Buffers.Scratch for q over as many of its segments.
func (g *Generated) ScratchBytes(q *Query, segments int) int64 {
	l := g.layout(q)
	return l.list + int64(segments)*4 + 256
}

// SharedBytes is the shared memory of a block: q can run where it is at most
// device.Info.SharedPerBlock.
func (g *Generated) SharedBytes(q *Query) int64 {
	l := g.layout(q)
	static := int64(g.places.global * 32 * 8) // flushSingle's
	if g.t.Queue {
		static += int64(g.t.Threads / 32 * queueRows * 4)
	}
	return l.shared + static
}

// Regions appends what is to be cleared first: parts of scratch, and Built.
func (g *Generated) Regions(list []Region, q *Query, b *Buffers) []Region {
	l := g.layout(q)
	region := func(at device.Pointer, bytes int64, value uint32) {
		if bytes > 0 {
			list = append(list, Region{at, uint64(bytes), value})
		}
	}
	sink := &g.p.Sink
	if sink.Kind == SinkGroups && sink.Place == PlaceHash {
		region(b.Scratch+device.Pointer(l.keys), l.keyBytes, ^uint32(0))
	}
	clear := l.tableBytes + headBytes
	if sink.Kind == SinkBitmap {
		clear = l.result + l.resultBytes - l.head
	}
	if b.Faults == 0 {
		region(b.Scratch+device.Pointer(l.head-l.tableBytes), clear, 0)
	}
	if sink.Kind == SinkBuild {
		bitmap := bitmapBytes(q.BuildSize)
		region(b.Built, bitmap, 0)
		region(b.Built+device.Pointer(bitmap), BuiltBytes(q)-bitmap, ^uint32(0))
	}
	return list
}

// Prepare appends the commands that come first: they clear Regions.
func (g *Generated) Prepare(c []device.Command, q *Query, b *Buffers) []device.Command {
	for _, r := range g.Regions(nil, q, b) {
		c = append(c, r.fill())
	}
	return c
}

// listMax is the most segments of a launch: a row's number has 16 bits for its segment's.
const listMax = 1 << 16

// A warp takes up to 1<<unitMax vectors of a segment at a time, as long as each warp has
// unitsLeast turns: else some would wait for others in the end.
const unitMax, unitsLeast = 2, 6

// ScanSegments appends the commands that compute the rows of some segments, which list has as
// positions in the arrays of b.Heads and b.Columns, ascending; of SinkBitmap they are
// positions in q.Segments, too. sms is device.Info.SMs. It can be called again with other
// segments, and other Heads and Columns, for tables that stream through; Scratch and Built
// stay the same.
func (g *Generated) ScanSegments(c []device.Command, q *Query, m device.Module, b *Buffers, list []uint32, sms int) []device.Command {
	l := g.layout(q)
	launch := func(a *arguments, grid uint32) {
		c = append(c,
			device.Command{Op: device.OpLaunch, Module: m, Function: g.Scan,
				Grid: [3]uint32{grid, 1, 1}, Block: [3]uint32{uint32(g.t.Threads), 1, 1}, Shared: uint32(l.shared),
				Params: packParams(g.params, a)})
	}
	if b.Alive != 0 {
		grid := uint32(sms * g.t.BlocksPerSM)
		launch(&arguments{q: q, b: b, l: l, segments: len(list), ofBlock: 1, ofWarp: grid, all: true}, grid)
		return c
	}
	for len(list) > 0 {
		first := list[0] &^ (listMax - 1)
		n := 0
		isAll := true
		for n < len(list) && list[n] < first+listMax {
			isAll = isAll && list[n] == first+uint32(n)
			n++
		}
		var data []byte
		if !isAll {
			data = make([]byte, 0, 4*n)
			for _, segment := range list[:n] {
				data = binary.LittleEndian.AppendUint32(data, segment-first)
			}
		}
		list = list[n:]
		units := uint32(n) << l.shift
		warps := uint32(g.t.Threads / 32)
		a := arguments{q: q, b: b, l: l, first: device.Pointer(first), segments: n, ofBlock: warps, ofWarp: 1, all: isAll}
		for a.ofUnit < min(uint32(l.shift), unitMax) && units/2 >= uint32(sms*g.t.BlocksPerSM)*warps*unitsLeast {
			units, a.ofUnit = units/2, a.ofUnit+1
		}
		grid := min(uint32(sms*g.t.BlocksPerSM), units)
		if units < grid*warps {
			a.ofBlock, a.ofWarp = 1, grid
		}
		if !a.all {
			c = append(c, device.Command{Op: device.OpWrite, Dst: b.Scratch + device.Pointer(l.list), Data: data})
		}
		if g.p.Sink.Kind == SinkBuild {
			c = append(c, g.buildLaunch(m, &a))
			continue
		}
		launch(&a, grid)
	}
	return c
}

// direct reports whether the table itself is read, which saves a launch: where it is small.
func (g *Generated) direct(l *layout) bool {
	return g.p.Sink.Kind == SinkGroups && g.p.Sink.Place != PlaceHash && l.tableBytes <= directBytes && !g.p.Sink.Counted
}

// Finish appends the commands that gather and read the result's first part: none where b has
// Faults.
func (g *Generated) Finish(c []device.Command, q *Query, m device.Module, b *Buffers, sms int) []device.Command {
	if b.Faults != 0 {
		return c
	}
	l := g.layout(q)
	at, read := l.head, headBytes+l.resultBytes
	switch {
	case g.direct(&l):
		at, read = l.table, l.tableBytes+headBytes
	case g.p.Sink.Kind == SinkGroups || l.wordsMax > 0:
		read = min(read, g.ahead())
		launch := func(function string, slots uint64) {
			grid := min(uint64(sms)*4, (slots+collectThreads-1)/collectThreads)
			c = append(c, device.Command{Op: device.OpLaunch, Module: m, Function: function,
				Grid: [3]uint32{uint32(max(grid, 1)), 1, 1}, Block: [3]uint32{collectThreads, 1, 1},
				Params: packParams(g.params, &arguments{q: q, b: b, l: l})})
		}
		if g.p.Sink.Counted {
			launch(g.Count, l.slots)
		}
		if g.p.Sink.Top && q.Top > 0 {
			launch(g.Rank, l.numbers)
			launch(g.Bound, 1)
			if g.p.Sink.TopThen != TopAll {
				launch(g.Ties, l.numbers)
				launch(g.TiesBound, 1)
			}
		}
		launch(g.Collect, max(l.numbers, uint64(l.resultBytes/8)))
	}
	return append(c, device.Command{Op: device.OpRead, Src: b.Scratch + device.Pointer(at), Bytes: uint64(read)})
}

// ahead is what Finish reads of a result that is gathered.
func (g *Generated) ahead() int64 {
	usual := g.usual.Load()
	if usual == 0 {
		return firstBytes
	}
	spare := min(usual/8, spareBytes) &^ 15
	return headBytes + max(usual+spare, leastBytes-headBytes)
}

// learn notes the size of a result: the largest counts, others make it forgotten bit by bit.
func (g *Generated) learn(bytes int64) {
	if was := g.usual.Load(); bytes < was {
		bytes = was - (was-bytes)/4&^15
	}
	g.usual.Store(max(bytes, 16))
}

// head is a result's ResultHead.
type head struct {
	fault, full bool
	count       int
}

// open splits the first part of a result: its head, and what follows, or comes before, it.
func (g *Generated) open(l *layout, first []byte) (h head, data []byte, err error) {
	at := int64(0)
	if g.direct(l) {
		at = l.tableBytes
	}
	if int64(len(first)) < at+headBytes {
		return h, nil, fmt.Errorf("a result of %d bytes", len(first))
	}
	word := func(i int64) uint64 { return binary.LittleEndian.Uint64(first[at+8*i:]) }
	h = head{word(0) != 0, word(1) != 0, int(word(2))}
	if g.direct(l) {
		return h, first[:at], nil
	}
	return h, first[headBytes:], nil
}

// Rest returns the command that reads what of the result is missing in its first part, the
// data of the OpRead that Finish appended; ok is false where nothing is.
func (g *Generated) Rest(q *Query, b *Buffers, first []byte) (c device.Command, ok bool) {
	l := g.layout(q)
	h, data, err := g.open(&l, first)
	if err != nil || h.fault || h.full || g.p.Sink.Kind != SinkGroups && l.wordsMax == 0 || g.direct(&l) {
		return c, false
	}
	have, need := int64(len(data)), int64(h.count)*int64(g.places.results)*8
	if l.wordsMax > 0 {
		if need = int64(h.count) * 16; int64(h.count) > l.wordsMax {
			return device.Command{Op: device.OpRead, Src: b.Scratch + device.Pointer(l.result), Bytes: uint64(l.resultBytes)}, true
		}
		return device.Command{Op: device.OpRead, Src: b.Scratch + device.Pointer(l.words+have), Bytes: uint64(max(need-have, 0))}, have < need
	}
	return device.Command{Op: device.OpRead, Src: b.Scratch + device.Pointer(l.result+have), Bytes: uint64(max(need-have, 0))}, have < need
}

// Parse makes a result of what was read; rest is nil where there was none.
func (g *Generated) Parse(q *Query, first, rest []byte) (*Result, error) {
	l := g.layout(q)
	h, data, err := g.open(&l, first)
	if err != nil {
		return nil, err
	}
	r := &Result{Fault: h.fault, Full: h.full}
	if r.Fault || r.Full {
		return r, nil
	}
	switch g.p.Sink.Kind {
	case SinkGroups:
		if g.direct(&l) {
			g.parseTable(r, &l, data)
			return Wanted(q, r), nil
		}
		if need := h.count * g.places.results * 8; len(data)+len(rest) < need {
			return nil, fmt.Errorf("a result of %d bytes instead of %d", len(data)+len(rest), need)
		}
		g.learn(int64(h.count) * int64(g.places.results) * 8)
		g.parseGroups(r, h.count, data, rest)
	case SinkBitmap:
		return r, g.parseBitmaps(r, q, &l, h.count, data, rest)
	}
	return r, nil
}

// parseTable makes a result of a table as the pipeline leaves it.
func (g *Generated) parseTable(r *Result, l *layout, data []byte) {
	word := func(k int, slot uint64) uint64 { return binary.LittleEndian.Uint64(data[8*(uint64(k)*l.slots+slot):]) }
	r.Accs = make([]Values, len(g.p.Sink.Accs))
	for slot := range l.slots {
		rows := word(0, slot)
		if rows == 0 {
			continue
		}
		r.Numbers, r.Rows = append(r.Numbers, slot), append(r.Rows, int64(rows))
		for i, a := range g.p.Sink.Accs {
			x, to := g.places.accs[i], &r.Accs[i]
			v := rows
			if !x.same {
				v = word(x.global, slot)
			}
			switch a.Kind {
			case AccMin:
				v = ^v ^ 1<<63
			case AccMax:
				v ^= 1 << 63
			case AccSum128:
				to.Hi = append(to.Hi, int64(word(x.global+1, slot)))
			}
			to.V = append(to.V, int64(v))
		}
	}
}

// groupsGrain is how many groups a goroutine takes from a result, at least.
const groupsGrain = 1 << 14

// parseGroups makes a result of what Collect has gathered.
func (g *Generated) parseGroups(r *Result, count int, first, rest []byte) {
	var columns [][]uint64 // in the order of a group's words
	unsigned := func() []uint64 {
		columns = append(columns, bulk.Unset[uint64](count))
		return columns[len(columns)-1]
	}
	signed := func() []int64 { return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(unsigned()))), count) }
	r.Numbers, r.Rows, r.Accs = unsigned(), signed(), make([]Values, len(g.p.Sink.Accs))
	if g.p.Sink.Prefix > 0 && !g.p.Sink.Counted {
		r.Prefix = unsigned()
	}
	for i, a := range g.p.Sink.Accs {
		if r.Accs[i].V = signed(); a.Kind == AccSum128 {
			r.Accs[i].Hi = signed()
		}
	}
	processors.ParallelFor(count, groupsGrain, func(from, to int) {
		// Groups may lie across the two reads: words do not.
		at := 8 * from * len(columns)
		for k := from; k < to; k++ {
			for _, c := range columns {
				if at < len(first) {
					c[k] = binary.LittleEndian.Uint64(first[at:])
				} else {
					c[k] = binary.LittleEndian.Uint64(rest[at-len(first):])
				}
				at += 8
			}
		}
	})
}
