package program

import (
	"fmt"
	"slices"

	"pgaccel/gpu/device"
)

// queueRows is the room of a warp's queue: at least for 63 rows that are left over, and 32
// that come.
const queueRows = 128

// stages splits the steps: the first part sees all rows of a vector, the other rows that were
// gathered. The last stage has the sink, and the steps after a lookup of many partners (fan).
func (g *generator) stages() [][]Step {
	_, single := g.p.many()
	steps := g.p.Steps[:single]
	if len(g.t.Order) > 0 {
		steps = make([]Step, 0, len(g.t.Order))
		for _, i := range g.t.Order {
			if i < single {
				steps = append(steps, g.p.Steps[i])
			}
		}
	}
	// Bits of all rows of a vector are written together.
	if g.p.Sink.Kind == SinkBitmap || !g.t.Queue {
		return [][]Step{steps}
	}
	// Live rows that are in no queue are to be seen by risky steps.
	dense := min(g.t.Dense, len(steps))
	for i, s := range steps {
		if s.Risky {
			dense = max(dense, i+1)
		}
	}
	var later []Step
	for k, s := range steps[:dense] {
		if g.windowOnly(steps[k:dense]) {
			later = append(later, s)
		}
	}
	return [][]Step{steps[:dense], slices.Concat(later, steps[dense:])}
}

// windowOnly reports whether the first of some steps, those that see all rows from it on, is
// only compared with an interval there: no step that follows may mind rows that are not to be.
func (g *generator) windowOnly(steps []Step) bool {
	d := dense{g: g}
	for _, s := range steps {
		if _, plain := d.plain(s); !plain {
			return false
		}
	}
	return g.t.Queue && g.p.Sink.Kind != SinkBitmap && steps[0].Kind == StepProbe && g.staged(g.t.WindowLookups, steps[0].Index)
}

// stepNode is the node that a step decides by.
func (g *generator) stepNode(s Step) int {
	if s.Kind == StepProbe {
		return g.p.Lookups[s.Index].Key
	}
	return s.Node
}

// columnsOf returns the columns that nodes are computed from, in order.
func (g *generator) columnsOf(roots []int) (columns []int) {
	seen := map[int]bool{}
	g.p.walk(roots, func(n int) {
		if x := &g.p.Nodes[n]; x.Op == OpColumn && !seen[x.Index] {
			seen[x.Index] = true
			columns = append(columns, x.Index)
		}
	})
	return columns
}

// widthOf is how the kernel names a column's width, and whether it is a constant.
func (g *generator) widthOf(column int) (width int, known bool) {
	if column < len(g.t.Widths) && g.t.Widths[column] >= 0 {
		return int(g.t.Widths[column]), true
	}
	return 0, false
}

func offsetType(wide bool) string {
	if wide {
		return "uint64_t"
	}
	return "uint32_t"
}

// laneCall is the function that reads offsets of a column.
func (g *generator) laneCall(name string, column int) string {
	if g.p.Columns[column].Wide {
		return name + "64"
	}
	return name
}

func (g *generator) columnParam(column int) string {
	return g.pointer("ColumnSegment", fmt.Sprintf("c%d", column), func(a *arguments) device.Pointer { return a.b.Columns[column] + a.first*ColumnSegmentBytes })
}

// bitsOf returns the name of a StepBits' bitmap.
func (g *generator) bitsOf(i int) string {
	name := fmt.Sprintf("b%d", i)
	bits := g.pointer("uint32_t", name+"_bits", func(a *arguments) device.Pointer { return a.b.Bits[i] })
	if g.staged(g.t.StageBits, i) {
		return "s_" + name
	}
	return bits
}

// condition emits a step for one row and returns the condition that the row passes.
func (r *row) condition(s Step) string {
	g := r.g
	if s.Kind == StepProbe {
		return r.passes(s.Index)
	}
	v := r.node(s.Node, "")
	switch s.Kind {
	case StepRange:
		i := s.Index
		lo, hi := g.interval(fmt.Sprintf("r%d", i), v.wide, func(a *arguments) (int64, int64) { return a.q.Ranges[i].Lo, a.q.Ranges[i].Hi })
		return fmt.Sprintf("%s && %s >= %s && %s <= %s", v.notNull(), v.v, lo, v.v, hi)
	case StepBits:
		bits := g.bitsOf(s.Index)
		f := r.position(v, fmt.Sprintf("b%d", s.Index), func(a *arguments) (int64, int64) { return a.q.Bits[s.Index].Lo, a.q.Bits[s.Index].Size })
		return fmt.Sprintf("%s && %s", f.in, g.testBit(g.staged(g.t.StageBits, s.Index), bits, f.position))
	}
	return v.isTrue()
}

// gathered emits the stage over rows from the queue: each lane has its own, or some. What of
// all of them can be read at once is.
func (g *generator) gathered(steps []Step) {
	lanes := 32 * g.t.rows()
	g.line("const uint32_t n = queued < %d ? queued : %d;", lanes, lanes)
	g.line("queued -= n;")
	rows := make([]*row, g.t.rows())
	at := make([]string, len(rows))
	from := make([]string, len(rows))
	for k := range rows {
		r := &row{g: g, memo: map[string]value{}, found: map[int]partner{}, entries: g.entriesOf()}
		r.alive = g.name("alive")
		id := g.name("id")
		from[k], at[k] = g.name("from"), g.name("at")
		g.line("const bool %s = lane + %d < n;", r.alive, 32*k)
		g.line("const uint32_t %s = queue[warp][queued + (%s ? lane + %d : 0)];", id, r.alive, 32*k)
		g.line("const uint32_t %s = %s >> 16, %s = %s & 0xffff;", from[k], id, at[k], id)
		rows[k] = r
	}
	g.line("__syncwarp();")
	// All that is read by the segment, before any of it is used.
	roots, _ := g.p.sinkNodes()
	many, _ := g.p.many()
	if many >= 0 {
		roots = []int{g.p.Lookups[many].Key}
	}
	all := slices.Clone(roots)
	for _, s := range steps {
		all = append(all, g.stepNode(s))
	}
	for k, r := range rows {
		described := map[int]string{}
		for _, c := range g.columnsOf(all) {
			described[c] = g.name("s")
			g.line("const RowColumn %s = row_column(%s + %s);", described[c], g.columnParam(c), from[k])
		}
		r.column = g.rowColumn(r, described, from[k], at[k])
	}
	for _, s := range steps {
		if s.Kind == StepProbe && g.p.Lookups[s.Index].Left {
			continue
		}
		for _, r := range rows {
			pass := r.condition(s)
			next := g.name("alive")
			g.line("const bool %s = %s && %s;", next, r.alive, pass)
			r.alive = next
		}
	}
	// All columns that are still to be read, before any is used.
	for _, r := range rows {
		for _, c := range g.columnsOf(roots) {
			r.column(c)
		}
	}
	if many >= 0 {
		g.fan(rows[0], many, from[0], at[0])
		return
	}
	if len(rows) == 1 {
		g.sink(rows[0])
		return
	}
	for _, r := range rows {
		for _, n := range roots {
			if !g.p.risky(n) {
				r.node(n, "")
			}
		}
	}
	for _, r := range rows {
		g.line("{")
		g.sink(r)
		g.line("}")
	}
}

// rowColumn returns what reads a column of a gathered row, once.
func (g *generator) rowColumn(r *row, described map[int]string, from, at string) func(c int) (offset, reference, null string) {
	type decoded struct{ offset, reference, null string }
	columns := map[int]decoded{}
	return func(c int) (string, string, string) {
		if d, ok := columns[c]; ok {
			return d.offset, d.reference, d.null
		}
		s, o := described[c], g.name(fmt.Sprintf("c%d", c))
		width := fmt.Sprintf("%s[%s].width", g.columnParam(c), from)
		if w, ok := g.widthOf(c); ok {
			width = fmt.Sprint(w)
		}
		g.line("const %s %s = %s ? %s(%s.words, %s, %s) : 0;", offsetType(g.p.Columns[c].Wide), o, r.alive, g.laneCall("row_bits", c), s, width, at)
		d := decoded{offset: o, reference: s + ".reference"}
		if g.p.Columns[c].Nullable {
			nulls := g.name("nulls")
			g.line("const uint32_t *const %s = %s[%s].nulls;", nulls, g.columnParam(c), from)
			d.null = g.name("null")
			g.line("const bool %s = %s != nullptr && bit_of(%s, %s);", d.null, nulls, nulls, at)
		}
		columns[c] = d
		return d.offset, d.reference, d.null
	}
}

// entriesOf returns the lookups whose entries the sink needs.
func (g *generator) entriesOf() map[int]bool {
	set := map[int]bool{}
	if many, _ := g.p.many(); many >= 0 {
		set[many] = true
		return set
	}
	roots, _ := g.p.sinkNodes()
	for _, n := range roots {
		for l := range g.p.lookupsOf(n) {
			set[l] = true
		}
	}
	return set
}

// scan emits the kernel's body.
func (g *generator) scan() {
	stages := g.stages()
	queue := len(stages) > 1
	d := g.newDense(stages[0], !queue)
	if queue {
		g.line("__shared__ uint32_t queue[%d][%d];", g.t.Threads/32, queueRows)
		g.line("uint32_t queued = 0;")
	}
	g.line("const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;")
	g.line("const uint32_t *const nowhere = (const uint32_t *)p.head;")
	g.line("(void)nowhere;")
	g.line("bool fault = false;")
	g.openSink()
	// Warps of a block take neighbours, or where there are few vectors, blocks do. A unit is a
	// few vectors of a segment: what is known of the segment is read once for them.
	ofBlock := g.param("uint32_t", "of_block", func(a *arguments) uint64 { return uint64(a.ofBlock) })
	ofWarp := g.param("uint32_t", "of_warp", func(a *arguments) uint64 { return uint64(a.ofWarp) })
	ofUnit := g.param("uint32_t", "of_unit", func(a *arguments) uint64 { return uint64(a.ofUnit) })
	if g.t.Indexed { // of vectors that are left there is a list: each is a unit
		g.line("const uint32_t units = p.alive != nullptr ? __ldg(p.alive) : p.units;")
	} else {
		g.line("const uint32_t units = p.units;")
	}
	g.line("for (uint32_t unit = blockIdx.x * %s + warp * %s;; unit += gridDim.x * %d) {", ofBlock, ofWarp, g.t.Threads/32)
	g.line("const bool last = unit >= units;")
	if !queue {
		g.line("if (last)")
		g.line("\tbreak;")
	}
	g.line("const uint32_t start = unit << %s, place = last ? 0 : start >> p.shift;", ofUnit)
	g.line("uint32_t segment = p.list != nullptr ? __ldg(p.list + place) : place;")
	g.line("uint32_t vector = start & ((1u << p.shift) - 1);")
	if g.t.Indexed {
		g.line("if (p.alive != nullptr && !last) {")
		g.line("const uint32_t at = __ldg(p.alive + 1 + unit);")
		g.line("segment = at >> 6;")
		g.line("vector = at & 63;")
		g.line("}")
	}
	g.line("const SegmentHead head = p.heads[segment];")
	g.line("const uint32_t rows = head.rows;")
	d.enter(d.columns())
	g.line("for (const uint32_t end = last ? vector + 1 : vector + (1u << %s); vector < end; vector++) {", ofUnit)
	g.line("uint32_t m = 0; // bit i is row i*32 + lane of the vector")
	if queue {
		g.line("const uint32_t base = segment << 16 | vector << 10 | lane;")
		g.line("if (!last) {")
	}
	g.line("m = lane_rows(vector, lane, rows);")
	g.line("if (head.live != nullptr)")
	g.line("\tm &= lane_bitmap(head.live, vector, lane, rows);")
	g.line("if (__any_sync(PGACCEL_WARP, m != 0)) {")
	d.positions()
	g.line("}")
	if g.p.Sink.Kind == SinkBitmap {
		g.line("p.bitmap[(segment << p.shift | vector) * 32 + lane] = transpose_bits(m, lane);")
	}
	if queue {
		g.line("}")
		g.queue(stages[1])
	}
	g.line("}")
	if queue {
		g.line("if (last)")
		g.line("\tbreak;")
	}
	g.line("}")
	g.closeSink()
	g.line("if (fault)")
	g.line("\tp.head->fault = 1;")
}

// queue emits the loop that moves rows on: the later stage runs as soon as it has a full
// warp, and with what is left once there are no more rows.
func (g *generator) queue(steps []Step) {
	g.line("for (;;) {")
	g.line("const bool more = __any_sync(PGACCEL_WARP, m != 0);")
	g.line("if (queued >= %d || (last && queued > 0)) {", 32*g.t.rows())
	g.gathered(steps)
	g.line("continue;")
	g.line("}")
	g.line("if (!more)")
	g.line("\tbreak;")
	g.line("const uint32_t own = __popc(m), upto = warp_scan(own, lane), total = __shfl_sync(PGACCEL_WARP, upto, 31);")
	g.line("if (queued + total <= %d) {", queueRows)
	g.line("for (uint32_t to = queued + upto - own; m != 0; m &= m - 1)")
	g.line("\tqueue[warp][to++] = base + (uint32_t)(__ffs(m) - 1) * 32;")
	g.line("queued += total;")
	g.line("} else {")
	g.line("// Each lane gives one.")
	g.line("const uint32_t coming = __ballot_sync(PGACCEL_WARP, m != 0);")
	g.line("if (m != 0)")
	g.line("\tqueue[warp][queued + __popc(coming & ((1u << lane) - 1))] = base + (uint32_t)(__ffs(m) - 1) * 32;")
	g.line("queued += __popc(coming);")
	g.line("m &= m - 1;")
	g.line("}")
	g.line("__syncwarp();")
	g.line("}")
}
