package program

import (
	"fmt"
	"strings"
)

// dense emits the stage that reads consecutive rows.
type dense struct {
	g       *generator
	steps   []Step
	sink    bool // this stage is the last one
	risky   bool
	opened  map[int]bool   // columns
	windows map[int]string // of steps that compare offsets, by their place in steps
	read    bool           // the words of all columns are there
}

func (g *generator) newDense(steps []Step, sink bool) *dense {
	d := &dense{g: g, steps: steps, sink: sink, opened: map[int]bool{}, windows: map[int]string{}}
	for _, s := range steps {
		d.risky = d.risky || s.Risky
	}
	return d
}

// plain returns the column of a step that compares offsets: a range, probe or set of a
// column as it is.
func (d *dense) plain(s Step) (column int, ok bool) {
	if s.Kind == StepFilter || s.Kind == StepProbe && (d.g.p.Lookups[s.Index].Kind == LookupHash || d.g.p.Lookups[s.Index].Left) {
		return 0, false
	}
	n := &d.g.p.Nodes[d.g.stepNode(s)]
	return n.Index, n.Op == OpColumn
}

// enter emits what is the same for all of a unit's vectors: descriptors of all columns that
// the stage reads, loaded side by side, and the intervals of steps that compare offsets.
func (d *dense) enter(columns []int) {
	g := d.g
	for _, c := range columns {
		g.line("const ColumnSegment d%d = %s[segment];", c, g.columnParam(c))
	}
	for _, c := range columns {
		if w, ok := g.widthOf(c); ok {
			g.line("const uint32_t width%d = %d;", c, w)
		} else {
			g.line("const uint32_t width%d = d%d.width;", c, c)
		}
		g.line("const int64_t ref%d = d%d.reference;", c, c)
	}
	for k, s := range d.steps {
		if c, ok := d.plain(s); ok {
			d.windows[k] = d.window(k, c)
		}
	}
}

// open emits where columns of a vector are, for those that no step before has opened.
func (d *dense) open(columns []int) {
	g := d.g
	for _, c := range columns {
		if d.opened[c] {
			continue
		}
		d.opened[c] = true
		if w, ok := g.widthOf(c); !ok {
			g.line("const uint32_t *const w%d = lane_start(d%d, vector, lane, nowhere);", c, c)
		} else if w == 0 {
			g.line("const uint32_t *const w%d = nowhere + lane;", c)
		} else {
			g.line("const uint32_t *const w%d = d%d.words + vector * %d + lane;", c, c, w*laneCount)
		}
		if g.p.Columns[c].Nullable {
			g.line("const uint32_t nulls%d = lane_bitmap(d%d.nulls, vector, lane, rows);", c, c)
		}
	}
}

// columns returns all that the stage reads, in order.
func (d *dense) columns() []int {
	var roots []int
	for _, s := range d.steps {
		roots = append(roots, d.g.stepNode(s))
	}
	if d.sink && d.g.p.Sink.Kind != SinkBitmap {
		sink, _ := d.g.p.sinkNodes()
		roots = append(roots, sink...)
	}
	return d.g.columnsOf(roots)
}

// window emits the interval of step k in a column's offsets.
func (d *dense) window(k, column int) (name string) {
	g := d.g
	s := d.steps[k]
	lo, hi := d.bounds(s)
	name = fmt.Sprintf("win%d", k)
	if bit, ok := decidedBit(s.Kind, s.Index); ok && g.t.Indexed {
		g.line("const bool decided%d = head.decided >> %d & 1;", k, bit)
	}
	t := offsetType(g.p.Columns[column].Wide)
	g.line("const Window<%s> %s = window_of<%s>(ref%d, width%d, %s, %s);", t, name, t, column, column, lo, hi)
	return name
}

// bounds returns the interval of a step that compares offsets.
func (d *dense) bounds(s Step) (lo, hi string) {
	g, i := d.g, s.Index
	both := func(name string, span func(a *arguments) (int64, int64)) (string, string) {
		return g.param("int64_t", name+"_first", func(a *arguments) uint64 { lo, _ := span(a); return uint64(lo) }),
			g.param("int64_t", name+"_last", func(a *arguments) uint64 { _, hi := span(a); return uint64(hi) })
	}
	switch s.Kind {
	case StepRange:
		return both(fmt.Sprintf("r%d", i), func(a *arguments) (int64, int64) {
			return a.q.Ranges[i].Lo, a.q.Ranges[i].Hi
		})
	case StepBits:
		return both(fmt.Sprintf("b%d", i), func(a *arguments) (int64, int64) { return spanOf(a.q.Bits[i].Lo, a.q.Bits[i].Size) })
	}
	return both(fmt.Sprintf("l%d", i), func(a *arguments) (int64, int64) { return spanOf(a.q.Lookups[i].Lo, a.q.Lookups[i].Size) })
}

// loop emits the head of the loop over the positions in flight.
func (d *dense) loop() {
	d.g.line("#pragma unroll")
	d.g.line("for (uint32_t i = 0; i < %d; i++) {", d.g.t.Positions)
}

// wholeMax bounds the registers for words of a vector that is read at once, and wholeNodes
// the operations that are written out 32 times.
const (
	wholeMax   = 32
	wholeNodes = 16
)

// whole reports whether all words of some columns of a vector are to be read at once: then
// shifts are constants.
func (d *dense) whole(roots, columns []int) bool {
	words, nodes := 0, 0
	for _, c := range columns {
		w, known := d.g.widthOf(c)
		if !known || w > 32 || d.g.p.Columns[c].Wide {
			return false
		}
		words += w
	}
	d.g.p.walk(roots, func(int) { nodes++ })
	return words <= wholeMax && nodes <= wholeNodes
}

// rows emits a loop over a vector's positions that reads the columns of some nodes, several
// positions before any is used, and then what each calls for with a lane's row. mask names
// the rows that are left, position is the name of the row's. heavy says that it is much code.
func (d *dense) rows(roots []int, mask string, heavy bool, each func(r *row, position string)) {
	g := d.g
	columns := g.columnsOf(roots)
	d.open(columns)
	r := &row{g: g, memo: map[string]value{}, found: map[int]partner{}}
	position, offset := "(p0 + i)", func(c int) string { return fmt.Sprintf("c%d[i]", c) }
	whole := !heavy && d.whole(roots, columns)
	if whole {
		position, offset = "i", func(c int) string { return d.wordsBits(c) }
		g.line("{")
		for _, c := range columns {
			d.words(c, "")
		}
		g.line("#pragma unroll")
		g.line("for (uint32_t i = 0; i < 32; i++) {")
	} else {
		g.line("#pragma unroll 1")
		g.line("for (uint32_t p0 = 0; p0 < 32; p0 += %d) {", g.t.Positions)
		for _, c := range columns {
			g.line("%s c%d[%d];", offsetType(g.p.Columns[c].Wide), c, g.t.Positions)
		}
		if len(columns) > 0 {
			d.loop()
			for _, c := range columns {
				g.line("c%d[i] = %s >> (p0 + i) & 1 ? %s(w%d, p0 + i, width%d) : 0;", c, mask, g.laneCall("lane_bits", c), c, c)
			}
			g.line("}")
		}
		d.loop()
	}
	r.alive = g.name("alive")
	g.line("const bool %s = %s >> %s & 1;", r.alive, mask, position)
	nulls := map[int]string{}
	r.column = func(c int) (string, string, string) {
		if g.p.Columns[c].Nullable && nulls[c] == "" {
			nulls[c] = g.name("null")
			g.line("const bool %s = nulls%d >> %s & 1;", nulls[c], c, position)
		}
		return offset(c), fmt.Sprintf("ref%d", c), nulls[c]
	}
	each(r, position)
	g.line("}")
	g.line("}")
}

// words emits the reading of all of a lane's words of a column, but where unless holds, if it is not empty.
func (d *dense) words(column int, unless string) {
	g := d.g
	if width, _ := g.widthOf(column); width > 0 {
		g.line("uint32_t words%d[%d];", column, width)
		g.line("#pragma unroll")
		g.line("for (uint32_t i = 0; i < %d; i++)", width)
		word := fmt.Sprintf("__ldg(w%d + 32 * i)", column)
		if unless != "" {
			word = unless + " ? 0 : " + word
		}
		g.line("\twords%d[i] = %s;", column, word)
	}
}

// wordsBits is the offset at position i of words.
func (d *dense) wordsBits(column int) string {
	if width, _ := d.g.widthOf(column); width > 0 {
		return fmt.Sprintf("words_bits<%d>(words%d, i)", width, column)
	}
	return "0u"
}

// step emits a step, and returns how many: further ones over the same column are decided
// with it.
func (d *dense) step(k int) (steps int) {
	g, s := d.g, d.steps[k]
	if s.Kind == StepProbe && g.p.Lookups[s.Index].Left {
		return 1
	}
	column, windowed := d.plain(s)
	if !windowed {
		mask := "m"
		if s.Risky {
			mask = "all"
		}
		roots := []int{g.stepNode(s)}
		d.open(g.columnsOf(roots))
		g.line("{")
		g.line("uint32_t out = 0;")
		d.rows(roots, mask, false, func(r *row, position string) {
			pass := r.condition(s)
			g.line("out |= %s && %s ? 1u << %s : 0;", r.alive, pass, position)
		})
		g.line("m &= out;")
		g.line("}")
		return 1
	}
	d.open([]int{column})
	steps = d.same(k, column)
	block := d.windows[k] + ".any"
	if d.interval(k) && steps == 1 {
		block += " && !" + d.windows[k] + ".all"
	}
	all := make([]int, steps)
	for i := range all {
		all[i] = k + i
	}
	if decided := d.decided(all); decided != "" {
		block += " && !(" + decided + ")"
	}
	g.line("if (%s) {", block)
	whole := d.whole(nil, []int{column})
	if carries := d.carries(k, steps, column); whole && carries != nil {
		g.line("uint32_t out = m;")
		if !d.read {
			d.words(column, "")
		}
		for _, c := range carries {
			g.line("out &= %s;", c)
		}
	} else if g.line("uint32_t out = 0;"); whole {
		// The whole vector at once: all loads, then shifts by constants.
		d.words(column, "")
		g.line("#pragma unroll")
		g.line("for (uint32_t i = 0; i < 32; i++) {")
		g.line("const uint32_t x = %s;", d.wordsBits(column))
		g.line("out |= %s ? 1u << i : 0;", d.inside(k, steps, "i"))
		g.line("}")
	} else {
		t := offsetType(g.p.Columns[column].Wide)
		g.line("#pragma unroll 1")
		g.line("for (uint32_t p0 = 0; p0 < 32; p0 += %d) {", g.t.Positions)
		g.line("%s c[%d];", t, g.t.Positions)
		d.loop()
		g.line("c[i] = %s(w%d, p0 + i, width%d);", g.laneCall("lane_bits", column), column, column)
		g.line("}")
		d.loop()
		g.line("const %s x = c[i];", t)
		g.line("out |= %s ? 1u << (p0 + i) : 0;", d.inside(k, steps, "(p0 + i)"))
		g.line("}")
		g.line("}")
	}
	g.line("m &= out;")
	g.line("}")
	for j := k; j < k+steps; j++ {
		g.line("m = %s.any ? m : 0;", d.windows[j])
	}
	if g.p.Columns[column].Nullable {
		g.line("m &= ~nulls%d;", column)
	}
	return steps
}

// decided is the condition that bitmap indexes have decided steps, so that their column need not be read; empty
// where they cannot.
func (d *dense) decided(steps []int) string {
	all := make([]string, len(steps))
	for i, k := range steps {
		if _, ok := decidedBit(d.steps[k].Kind, d.steps[k].Index); !ok || !d.g.t.Indexed {
			return ""
		}
		all[i] = fmt.Sprintf("decided%d", k)
	}
	return strings.Join(all, " && ")
}

// same returns how many steps from the k'th on compare offsets of a column.
func (d *dense) same(k, column int) (steps int) {
	for steps = 1; k+steps < len(d.steps); steps++ {
		if c, ok := d.plain(d.steps[k+steps]); !ok || c != column {
			break
		}
	}
	return steps
}

// togetherMax bounds the registers for words of all columns.
const togetherMax = 40

// together reports whether the words of all columns are to be read at once.
func (d *dense) together() bool {
	if !d.g.t.Together || d.sink || len(d.steps) == 0 {
		return false
	}
	words := 0
	for k := 0; k < len(d.steps); {
		column, plain := d.plain(d.steps[k])
		if !plain || !d.whole(nil, []int{column}) {
			return false
		}
		width, _ := d.g.widthOf(column)
		words += width
		steps := d.same(k, column)
		for j := k; j < k+steps; j++ {
			if !d.interval(j) {
				return false
			}
		}
		if d.carries(k, steps, column) == nil {
			return false
		}
		k += steps
	}
	return words <= togetherMax
}

// interval reports whether a step is decided by its window alone.
func (d *dense) interval(k int) bool {
	return d.steps[k].Kind == StepRange || !d.sink && d.g.windowOnly(d.steps[k:])
}

// carries are the calls that decide steps over all of a lane's words of a column, nil where
// there are none for one.
func (d *dense) carries(k, steps, column int) (calls []string) {
	width, _ := d.g.widthOf(column)
	if !d.g.t.Carries || width == 0 || width > 31 {
		return nil
	}
	for j := k; j < k+steps; j++ {
		s, w := d.steps[j], d.windows[j]
		call := fmt.Sprintf("<%d>(words%d, %s.base, %s.span", width, column, w, w)
		if d.interval(j) {
			calls = append(calls, "words_inside"+call+")")
			continue
		}
		staged, bits := d.bitmap(s)
		if !staged {
			return nil
		}
		calls = append(calls, fmt.Sprintf("words_marked%s, %s, %s.shift, 0xffffffffu)", call, bits, w))
	}
	return calls
}

// inside is the condition that offset x, at a position, passes steps that compare offsets.
func (d *dense) inside(k, steps int, position string) string {
	var all []string
	for j := k; j < k+steps; j++ {
		s, w := d.steps[j], d.windows[j]
		pass := fmt.Sprintf("x - %s.base <= %s.span", w, w)
		if !d.interval(j) {
			staged, bits := d.bitmap(s)
			pass += " && " + d.g.testBit(staged, bits, fmt.Sprintf("(uint32_t)(x - %s.base + %s.shift)", w, w))
			if !staged {
				pass = "(m >> " + position + " & 1) && " + pass
			}
		}
		all = append(all, pass)
	}
	return strings.Join(all, " && ")
}

// bitmap returns a step's bitmap and whether it is in shared memory.
func (d *dense) bitmap(s Step) (staged bool, bits string) {
	if s.Kind == StepBits {
		return d.g.staged(d.g.t.StageBits, s.Index), d.g.bitsOf(s.Index)
	}
	return d.g.staged(d.g.t.StageLookups, s.Index), d.g.lookup(s.Index).bits
}

// positions emits the steps over a vector, and the sink where no other stage has it.
func (d *dense) positions() {
	g := d.g
	if d.risky {
		g.line("const uint32_t all = m;")
	}
	if d.read = d.together(); d.read {
		columns := d.columns()
		d.open(columns)
		for _, c := range columns {
			var of []int
			for k, s := range d.steps {
				if column, _ := d.plain(s); column == c {
					of = append(of, k)
				}
			}
			d.words(c, d.decided(of))
		}
	}
	for k := 0; k < len(d.steps); {
		if k > 0 && !d.steps[k].Risky && !d.read {
			g.line("if (__any_sync(PGACCEL_WARP, m != 0)) {")
			defer g.line("}")
		}
		k += d.step(k)
	}
	if d.sink && g.p.Sink.Kind != SinkBitmap {
		roots, _ := g.p.sinkNodes()
		d.rows(roots, "m", g.p.Sink.Place != PlaceSingle || g.p.Sink.Kind != SinkGroups, func(r *row, _ string) { g.sink(r) })
	}
}
