package program

import (
	"fmt"

	"pgaccel/gpu/device"
)

// buildPositions is how many times 32 rows of a vector a warp has of a SinkBuild. Tables that
// lookups are built of are small: what counts is that all of the device is at work, and how
// often a warp waits for memory, not how little is read.
const buildPositions = 4

// buildTuning is how a SinkBuild runs, whatever scans of large tables do: small blocks, as many
// as there are rows for, which keep nothing.
func buildTuning(t Tuning) Tuning {
	t.Threads, t.BlocksPerSM = min(t.Threads, 256), 1
	t.Queue, t.TableBytes = false, 0
	t.StageLookups, t.StageBits, t.WindowLookups = nil, nil, nil
	return t
}

// scanBuild emits the kernel's body of SinkBuild: a warp has some rows, reads what the steps
// need of all of them, and then what the lookup needs of those that pass.
func (g *generator) scanBuild() {
	var steps []Step
	for _, s := range g.stages() {
		steps = append(steps, s...)
	}
	units := g.param("uint32_t", "build_units", func(a *arguments) uint64 { return buildUnits(a.segments, a.l.shift) })
	g.line("const uint32_t lane = threadIdx.x & 31;")
	g.line("const uint32_t *const nowhere = (const uint32_t *)p.head;")
	g.line("(void)nowhere;")
	g.line("bool fault = false;")
	g.line("const uint32_t unit = blockIdx.x * %d + (threadIdx.x >> 5);", g.t.Threads/32)
	g.line("if (unit < %s) {", units)
	g.line("const uint32_t from = unit / %d, p0 = unit %% %d * %d;", laneRows/buildPositions, laneRows/buildPositions, buildPositions)
	g.line("const uint32_t place = from >> p.shift, vector = from & ((1u << p.shift) - 1);")
	g.line("const uint32_t segment = p.list != nullptr ? __ldg(p.list + place) : place;")
	g.line("const SegmentHead head = p.heads[segment];")
	g.line("const uint32_t rows = head.rows;")
	g.line("if (vector * %d + p0 * %d < rows) {", VectorRows, laneCount)
	g.line("uint32_t m = lane_rows(vector, lane, rows);")
	g.line("if (head.live != nullptr)")
	g.line("\tm &= lane_bitmap(head.live, vector, lane, rows);")
	g.line("m = m >> p0 & %d; // bit i is row (p0 + i)*32 + lane of the vector", 1<<buildPositions-1)
	b := builder{g: g, opened: map[int]bool{}}
	if len(steps) > 0 {
		var roots []int
		for _, s := range steps {
			roots = append(roots, g.stepNode(s))
		}
		b.open(g.columnsOf(roots))
		g.line("uint32_t passed = 0;")
		b.rows(roots, func(r *row) {
			all := r.alive
			for _, s := range steps {
				if s.Kind == StepProbe && g.p.Lookups[s.Index].Left {
					continue
				}
				before := r.alive
				if s.Risky {
					r.alive = all // it looks at rows that do not pass, too
				}
				pass := r.condition(s)
				r.alive = g.name("alive")
				g.line("const bool %s = %s && %s;", r.alive, before, pass)
			}
			g.line("passed |= %s ? 1u << i : 0;", r.alive)
		})
		g.line("m = passed;")
		g.line("if (__any_sync(PGACCEL_WARP, m != 0)) {")
	}
	roots, _ := g.p.sinkNodes()
	b.open(g.columnsOf(roots))
	b.rows(roots, g.build)
	if len(steps) > 0 {
		g.line("}")
	}
	g.line("}")
	g.line("}")
	g.line("if (fault)")
	g.line("\tp.head->fault = 1;")
}

// buildUnits is the number of warps that segments take.
func buildUnits(segments int, shift uint) uint64 {
	return uint64(segments) << shift * (laneRows / buildPositions)
}

// builder emits the reading of rows.
type builder struct {
	g      *generator
	opened map[int]bool
}

// open emits where columns lie. All lanes come.
func (b *builder) open(columns []int) {
	g := b.g
	for _, c := range columns {
		if b.opened[c] {
			continue
		}
		b.opened[c] = true
		g.line("const ColumnSegment s%d = %s[segment];", c, g.columnParam(c))
		g.line("const uint32_t *const w%d = lane_start(s%d, vector, lane, nowhere);", c, c)
		if g.p.Columns[c].Nullable {
			g.line("const uint32_t nulls%d = lane_bitmap(s%d.nulls, vector, lane, rows) >> p0;", c, c)
		}
	}
}

// rows emits a loop over the warp's rows: first what nodes need is read of all of them that
// m has.
func (b *builder) rows(roots []int, each func(r *row)) {
	g := b.g
	g.line("{")
	columns := g.columnsOf(roots)
	for _, c := range columns {
		g.line("%s c%d[%d];", offsetType(g.p.Columns[c].Wide), c, buildPositions)
	}
	loop := func() {
		g.line("#pragma unroll")
		g.line("for (uint32_t i = 0; i < %d; i++) {", buildPositions)
	}
	if len(columns) > 0 {
		loop()
		for _, c := range columns {
			width := fmt.Sprintf("s%d.width", c)
			if w, ok := g.widthOf(c); ok {
				width = fmt.Sprint(w)
			}
			g.line("c%d[i] = m >> i & 1 ? %s(w%d, p0 + i, %s) : 0;", c, g.laneCall("lane_bits", c), c, width)
		}
		g.line("}")
	}
	loop()
	r := &row{g: g, memo: map[string]value{}, found: map[int]partner{}}
	r.alive = g.name("alive")
	g.line("const bool %s = m >> i & 1;", r.alive)
	nulls := map[int]string{}
	r.column = func(c int) (string, string, string) {
		if g.p.Columns[c].Nullable && nulls[c] == "" {
			nulls[c] = g.name("null")
			g.line("const bool %s = nulls%d >> i & 1;", nulls[c], c)
		}
		return fmt.Sprintf("c%d[i]", c), fmt.Sprintf("s%d.reference", c), nulls[c]
	}
	each(r)
	g.line("}")
	g.line("}")
}

// build emits what becomes of a row that has passed. All lanes come. A key's bit says whether
// it came before, whatever the layout.
func (g *generator) build(r *row) {
	kind := g.p.Sink.Build
	key := r.node(g.p.Sink.Key, "")
	lo := g.param("int64_t", "build_lo", func(a *arguments) uint64 { return uint64(a.q.BuildLo) })
	size := g.param("uint32_t", "build_size", func(a *arguments) uint64 { return uint64(max(a.q.BuildSize, 0)) })
	bits := g.param("uint32_t *", "build_bits", func(a *arguments) uint64 { return uint64(a.b.Built) })
	number := ""
	if kind != LookupBits {
		number = g.number(r, 0, len(g.p.Sink.Digits), false)
	}
	g.line("const bool keyed = %s && %s && !fault;", r.alive, key.notNull()) // an entry that is a fault's is none
	g.line("const uint64_t distance = (uint64_t)%s - (uint64_t)%s;", key.as(true), lo)
	g.line("const bool within = keyed && distance < %s;", size)
	g.line("const uint32_t to = (uint32_t)distance;")
	g.line("fault |= keyed && !within;")
	if g.p.Sink.Repeats {
		g.line("build_bits(%s, to, within, lane);", bits)
	} else {
		g.line("fault |= build_bits(%s, to, within, lane);", bits)
	}
	if entry := map[LookupKind]string{Lookup8: "uint8_t", Lookup16: "uint16_t", Lookup32: "uint32_t"}[kind]; entry != "" {
		entries := g.param(entry+" *", "build_entries", func(a *arguments) uint64 { return uint64(a.b.Built) + uint64(bitmapBytes(a.q.BuildSize)) })
		g.line("if (within)")
		g.line("\t%s[to] = (%s)%s;", entries, entry, number)
	}
}

// buildLaunch returns the command that builds from n segments of the list in a.
func (g *Generated) buildLaunch(m device.Module, a *arguments) device.Command {
	warps := uint64(g.t.Threads / 32)
	grid := (buildUnits(a.segments, a.l.shift) + warps - 1) / warps
	return device.Command{Op: device.OpLaunch, Module: m, Function: g.Scan,
		Grid: [3]uint32{uint32(grid), 1, 1}, Block: [3]uint32{uint32(g.t.Threads), 1, 1}, Params: packParams(g.params, a)}
}
