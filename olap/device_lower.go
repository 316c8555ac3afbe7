package olap

import (
	"math"
	"math/bits"
	"slices"

	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/vector"
)

// lowering makes a program.Program of a compiled pipeline, and a program.Query of its
// constants and lookups. What has no counterpart on a device ends it: the processor
// computes such a query whole.
type lowering struct {
	p       *pipeline
	prog    *program.Program
	q       *program.Query
	nodes   map[*node]int
	columns map[int]int // of the table, to Program.Columns
	reads   map[int]int // of the table, to the node that reads it
	entries map[int]int // by lookup: the node of its entry
	lookups map[int]int // by probe
	outs    map[outKey]int
	asked   map[int][]outKey // by probe: outputs, in order
	why     string           // what is not for a device; empty as long as all is
}

// outKey is output out of a probe, or where of is an axis, the codes that it has for the
// probe's entries.
type outKey struct {
	probe, out int
	of         *axis
}

func newLowering(p *pipeline) *lowering {
	l := &lowering{p: p, prog: &program.Program{}, nodes: map[*node]int{}, columns: map[int]int{}, reads: map[int]int{},
		entries: map[int]int{}, lookups: map[int]int{}, outs: map[outKey]int{}, asked: map[int][]outKey{}}
	l.q = &program.Query{Program: l.prog}
	return l
}

// no notes that the query is not for a device.
func (l *lowering) no(why string) int {
	if l.why == "" {
		l.why = why
	}
	return 0
}

// wide reports whether values need more than 32 bits.
func wide(lo, hi int64) bool { return lo < math.MinInt32 || hi > math.MaxInt32 }

func (l *lowering) add(n program.Node) int {
	l.prog.Nodes = append(l.prog.Nodes, n)
	return len(l.prog.Nodes) - 1
}

// constant adds a constant that is not null.
func (l *lowering) constant(v int64) int {
	l.q.Constants = append(l.q.Constants, v)
	return l.add(program.Node{Op: program.OpConst, Index: len(l.q.Constants) - 1, Wide: wide(v, v)})
}

// column returns the position of a column of the table among the program's.
func (l *lowering) column(col int) int {
	i, ok := l.columns[col]
	if !ok {
		i = len(l.prog.Columns)
		l.columns[col] = i
		c := columnOnDevice(l.p.tab, col)
		l.prog.Columns = append(l.prog.Columns, program.Column{Wide: c.width > 32, Nullable: c.nullable})
	}
	return i
}

var compareOps = map[plan.Op]program.Op{plan.OpEq: program.OpEq, plan.OpNe: program.OpNe, plan.OpLt: program.OpLt,
	plan.OpLe: program.OpLe, plan.OpGt: program.OpGt, plan.OpGe: program.OpGe}

var arithOps = map[plan.Op]program.Op{plan.OpAdd: program.OpAdd, plan.OpSub: program.OpSub, plan.OpMul: program.OpMul,
	plan.OpDiv: program.OpDiv, plan.OpMod: program.OpMod}

var testOps = map[plan.Op]program.Op{plan.OpIsNull: program.OpIsNull, plan.OpIsNotNull: program.OpIsNotNull,
	plan.OpIsTrue: program.OpIsTrue, plan.OpIsFalse: program.OpIsFalse}

// node returns the program's node for n.
func (l *lowering) node(n *node) int {
	if i, ok := l.nodes[n]; ok {
		return i
	}
	if l.why != "" {
		return 0
	}
	i := l.lower(n)
	l.nodes[n] = i
	return i
}

func (l *lowering) lower(n *node) int {
	to := program.Node{Nullable: n.nullable, Wide: wide(n.lo, n.hi)}
	switch n.kind {
	case nodeConst:
		l.q.Constants = append(l.q.Constants, n.k)
		to.Op, to.Index = program.OpConst, len(l.q.Constants)-1
		return l.add(to)
	case nodeColumn:
		i, ok := l.reads[n.col]
		if !ok {
			to.Op, to.Index = program.OpColumn, l.column(n.col)
			i = l.add(to)
			l.reads[n.col] = i
		}
		return i
	case nodeOut:
		return l.out(outKey{probe: n.probe, out: n.out})
	case nodeMap:
		return l.function(n, to)
	case nodeScalar:
		if len(n.args) != 1 {
			return l.no("function")
		}
		return l.written(n, to, func(v int64) (int64, error) {
			r, err := unaryScalar(n.call, scalarOfBits(v, n.args[0].t))
			if err != nil {
				return 0, err
			}
			b, ok := r.bits(n.t)
			if !ok {
				return 0, errNumeric
			}
			return b, nil
		})
	}
	known := true
	switch n.kind {
	case nodeTable:
		return l.table(n, to)
	case nodeArith:
		to.Op, known = arithOps[n.op]
		to.Checked = n.checked
		to.Min, to.Max, _ = kindRange(n.within)
		if !to.Checked {
			to.Min, to.Max = 0, 0
		}
	case nodeCompare:
		to.Op, known = compareOps[n.op]
	case nodeDistinct:
		to.Op = program.OpDistinct
	case nodeAnd:
		to.Op = program.OpAnd
	case nodeOr:
		to.Op = program.OpOr
	case nodeNot:
		to.Op = program.OpNot
	case nodeTest:
		to.Op, known = testOps[n.op]
	case nodeCase:
		to.Op = program.OpCase
	case nodeCoalesce:
		to.Op = program.OpCoalesce
	case nodeFloatKey:
		to.Op = program.OpFloatKey
	default:
		known = false
	}
	if !known {
		return l.no("function")
	}
	for _, a := range n.args {
		to.Args = append(to.Args, l.node(a))
	}
	return l.add(to)
}

// table lowers a function that is written out.
func (l *lowering) table(n *node, to program.Node) int {
	t, arg := n.tab, n.args[0]
	to.Op, to.Args, to.Index = program.OpTable, []int{l.node(arg)}, len(l.prog.Tables)
	l.prog.Tables = append(l.prog.Tables, program.Table{Nulls: t.nulls != nil, Faults: t.errs != nil || t.onNullErr, Wide: to.Wide})
	l.q.Tables = append(l.q.Tables, program.TableData{Lo: arg.lo, Values: t.vals, Nulls: t.nulls, Faults: t.errs,
		OnNull: t.onNull, OnNullNull: t.onNullNull, OnNullFault: t.onNullErr})
	return l.add(to)
}

// deviceTable bounds the domain of a function that is written out for a device.
const deviceTable = 1 << 16

// function lowers a nodeMap: what a device has an operation for, what stays the same
// throughout a unit of time, and what has few arguments.
func (l *lowering) function(n *node, to program.Node) int {
	a := n.args[0]
	switch {
	case n.op == plan.OpAbs:
		to.Op, to.Args = program.OpAbs, []int{l.node(a)}
		return l.add(to)
	case n.set != nil:
		to.Op, to.Args, to.Index = program.OpIn, []int{l.node(a)}, len(l.q.Sets)
		l.q.Sets = append(l.q.Sets, n.set)
		return l.add(to)
	case n.unit != "":
		if every := unitMicros(n.unit); every > 0 {
			return l.units(n, to, every, n.f)
		}
	case n.op == plan.OpCast && n.t.Kind == vector.Date && a.t.Kind != vector.Date:
		return l.units(n, to, dayMicros, n.f)
	}
	return l.written(n, to, n.f)
}

// unitMicros returns a time of fixed length of which the unit is a multiple; 0 for none.
func unitMicros(unit string) int64 {
	switch unit {
	case "second":
		return secondMicros
	case "minute":
		return minuteMicros
	case "hour":
		return hourMicros
	case "day", "week", "month", "quarter", "year":
		return dayMicros
	}
	return 0
}

// units lowers a function of time that is the same throughout every so many microseconds
// to a table by the number of that time.
func (l *lowering) units(n *node, to program.Node, every int64, f func(int64) (int64, error)) int {
	a := n.args[0]
	if infinite(vector.Timestamp, a.lo) || infinite(vector.Timestamp, a.hi) {
		return l.no("function")
	}
	first, last := floorDiv(a.lo, every), floorDiv(a.hi, every)
	if last-first >= deviceTable {
		return l.no("function")
	}
	base := first * every // after the first timestamp that there is, less a unit
	from := program.Node{Op: program.OpSub, Args: []int{l.node(a), l.constant(base)}, Nullable: a.nullable, Wide: true}
	part := program.Node{Op: program.OpDiv, Args: []int{l.add(from), l.constant(every)}, Nullable: a.nullable}
	number := l.add(part)
	return l.writtenOver(number, n, to, 0, last-first+1, func(i int64) (int64, error) { return f(base + i*every) })
}

// written lowers a strict function to a table over its argument's values.
func (l *lowering) written(n *node, to program.Node, f func(int64) (int64, error)) int {
	a := n.args[0]
	size, ok := width(a.lo, a.hi)
	if !ok || size > deviceTable || a.dict != nil {
		return l.no("function")
	}
	return l.writtenOver(l.node(a), n, to, a.lo, size, f)
}

func (l *lowering) writtenOver(arg int, n *node, to program.Node, lo, size int64, f func(int64) (int64, error)) int {
	d := program.TableData{Lo: lo, Values: make([]int64, size), OnNull: n.lo, OnNullNull: true}
	for i := range size {
		v, err := f(lo + i)
		if err != nil {
			if d.Faults == nil {
				d.Faults = make([]uint8, size)
			}
			d.Faults[i], v = 1, n.lo
		}
		d.Values[i] = v
	}
	to.Op, to.Args, to.Index = program.OpTable, []int{arg}, len(l.prog.Tables)
	l.prog.Tables = append(l.prog.Tables, program.Table{Faults: d.Faults != nil, Wide: to.Wide})
	l.q.Tables = append(l.q.Tables, d)
	return l.add(to)
}

// entry returns the node of the entry that a probe has found.
func (l *lowering) entry(probe int) int {
	i := l.lookup(probe)
	n, ok := l.entries[i]
	if !ok {
		n = l.add(program.Node{Op: program.OpEntry, Index: i})
		l.entries[i] = n
	}
	return n
}

// out returns the node of what a lookup delivers.
func (l *lowering) out(k outKey) int {
	if n, ok := l.outs[k]; ok {
		return n
	}
	i := l.lookup(k.probe)
	if l.why != "" {
		return 0
	}
	o, d := program.Out{}, program.OutData{}
	if k.of != nil {
		d.Values = make([]int64, len(k.of.codeOf))
		for e, c := range k.of.codeOf {
			d.Values[e] = int64(c)
		}
		o.Wide = len(k.of.codeOf) > math.MaxInt32
	} else {
		from := &l.p.probes[k.probe].lut.outs[k.out]
		o, d = program.Out{Nullable: from.nulls != nil, Wide: wide(from.lo, from.hi)}, program.OutData{Values: from.v, Nulls: from.nulls}
	}
	lookup := &l.prog.Lookups[i]
	n := l.add(program.Node{Op: program.OpOut, Index: i, Out: len(lookup.Outs), Nullable: o.Nullable, Wide: o.Wide})
	lookup.Outs = append(lookup.Outs, o)
	l.q.Lookups[i].Outs = append(l.q.Lookups[i].Outs, d)
	l.outs[k] = n
	l.asked[k.probe] = append(l.asked[k.probe], k)
	return n
}

// lookup returns the position of a probe's lookup among the program's.
func (l *lowering) lookup(probe int) int {
	if i, ok := l.lookups[probe]; ok {
		return i
	}
	b := l.p.probes[probe]
	if b.lut.many != nil {
		return l.no("join")
	}
	key := l.lookupKey(b)
	if l.why != "" {
		return 0
	}
	i := len(l.prog.Lookups)
	l.lookups[probe] = i
	lookup, data := b.onDevice()
	lookup.Key = key
	l.prog.Lookups = append(l.prog.Lookups, lookup)
	l.q.Lookups = append(l.q.Lookups, data)
	return i
}

// lookupKey returns the node of the key that is looked up: of several parts the number
// that they make.
func (l *lowering) lookupKey(b *probe) int {
	if len(b.outer) == 1 {
		return l.node(b.outer[0])
	}
	sum := -1
	lo, hi, nullable := int64(0), int64(0), false
	for i, o := range b.outer {
		digit := l.node(o)
		span := o.hi - o.lo // of all parts they fit 64 bits, as makeLookup has checked
		nullable = nullable || o.nullable
		if o.lo != 0 {
			digit = l.add(program.Node{Op: program.OpSub, Args: []int{digit, l.constant(o.lo)}, Nullable: o.nullable, Wide: wide(0, span)})
		}
		if s := b.strides[i]; s != 1 {
			digit = l.add(program.Node{Op: program.OpMul, Args: []int{digit, l.constant(s)}, Nullable: o.nullable, Wide: wide(0, span*s)})
		}
		hi += span * b.strides[i]
		if sum < 0 {
			sum = digit
			continue
		}
		sum = l.add(program.Node{Op: program.OpAdd, Args: []int{sum, digit}, Nullable: nullable, Wide: wide(lo, hi)})
	}
	return sum
}

var kindsOnDevice = map[lookupKind]program.LookupKind{lookupBits: program.LookupBits, lookup8: program.Lookup8,
	lookup16: program.Lookup16, lookup32: program.Lookup32, lookupHash: program.LookupHash}

// onDevice returns the lookup as a device has it, without the key and outputs. Where only
// some of the keys occur it has no others, so that zone maps exclude segments.
func (b *probe) onDevice() (program.Lookup, program.LookupData) {
	l := b.lut
	to, d := program.Lookup{Kind: kindsOnDevice[l.kind], Left: l.left}, program.LookupData{Lo: l.lo, Size: l.size, Null: l.none}
	if b.build != nil {
		d.Build = b.build
		if !l.left {
			d.Null = 0
		}
		return to, d
	}
	from := int64(0)
	if !l.left && l.keyLo <= l.keyHi && l.kind != lookupHash {
		from = l.keyLo - l.lo
		if l.kind == lookupBits {
			from &^= 63
		}
		d.Lo, d.Size = l.lo+from, l.keyHi-l.lo-from+1
	}
	if !l.left {
		d.Null = 0
	}
	switch l.kind {
	case lookupBits:
		d.Bits = l.bits[from/64 : (from+d.Size+63)/64]
	case lookup8:
		d.E8 = l.e8[from : from+d.Size]
	case lookup16:
		d.E16 = l.e16[from : from+d.Size]
	case lookup32:
		d.E32 = l.e32[from : from+d.Size]
	default:
		d.HashKeys, d.HashEntries = l.hashed()
		d.Lo, d.Size = 0, 0
	}
	return to, d
}

// hashed returns the slots of a hash table as a device has it: half of them are free.
func (l *lookup) hashed() (keys []int64, entries []uint32) {
	size := 1 << bits.Len(uint(max(2*l.hash.n, 2)-1))
	keys, entries = make([]int64, size), make([]uint32, size)
	for i := range entries {
		entries[i] = math.MaxUint32
	}
	for i := range l.hash.n {
		key := l.hash.key(i)[0]
		at := program.HashOf(key) & uint64(size-1)
		for entries[at] != math.MaxUint32 {
			at = (at + 1) & uint64(size-1)
		}
		keys[at], entries[at] = int64(key), l.hashE[i]
	}
	return keys, entries
}

// steps lowers the pipeline's steps, in the order that suits a device: there a column
// costs what its words do, whatever is asked of it.
func (l *lowering) steps() {
	todo := make([]int, 0, len(l.p.steps))
	var done uint64
	for i := range l.p.steps {
		s := &l.p.steps[i]
		switch {
		case s.kind == stepRange && s.n == nil:
			l.no(fallbackEmpty)
		case s.kind == stepRange && s.derived:
			// The lookup that it follows from says more.
		case s.kind == stepProbe && l.p.probes[s.probe].lut.left:
			done |= 1 << uint(s.probe) // all pass; who needs the entry looks it up
		default:
			todo = append(todo, i)
		}
	}
	read := map[int]bool{}
	for len(todo) > 0 && l.why == "" {
		best, least := -1, 0.0
		for k, i := range todo {
			s := &l.p.steps[i]
			if s.needs&^done != 0 {
				continue
			}
			cost := l.stepCost(s, read) / max(1-s.share, 0.01)
			if s.risky {
				cost = 0
			}
			if best < 0 || cost < least {
				best, least = k, cost
			}
		}
		s := &l.p.steps[todo[best]]
		todo = slices.Delete(todo, best, best+1)
		if s.kind == stepProbe {
			done |= 1 << uint(s.probe)
		}
		l.p.stepColumns(s, func(col int) { read[col] = true })
		l.step(s)
	}
}

// stepColumns calls f with the columns of the table that a step reads.
func (p *pipeline) stepColumns(s *step, f func(col int)) {
	var visit func(n *node)
	visit = func(n *node) {
		if n.kind == nodeColumn {
			f(n.col)
		}
		for _, a := range n.args {
			visit(a)
		}
	}
	if s.kind == stepProbe {
		for _, o := range p.probes[s.probe].outer {
			visit(o)
		}
		return
	}
	visit(s.n)
}

// stepCost estimates what a step costs a row on a device, in bits of columns: those that
// have been read by other steps come again for little.
func (l *lowering) stepCost(s *step, read map[int]bool) float64 {
	cost := 1.0
	l.p.stepColumns(s, func(col int) {
		if !read[col] {
			cost += float64(columnOnDevice(l.p.tab, col).width)
		} else {
			cost++
		}
	})
	switch s.kind {
	case stepProbe:
		b := l.p.probes[s.probe].lut
		switch {
		case b.kind == lookupHash:
			cost += 64
		case b.size > deviceStaged:
			cost += 16 // the bitmap does not fit a block's shared memory
		default:
			cost += 2
		}
	case stepFilter:
		cost += 2
	}
	return cost
}

// deviceStaged is about the number of keys of which a bitmap fits a block's shared memory
// beside others.
const deviceStaged = 1 << 20

// shares returns a share in eighths, and in thousandths of few values: an execution with
// other constants had better be the same program.
func shares(share float64) (eighths uint8, permille uint16) {
	share = min(max(share, 0), 1)
	eighths = uint8(math.Round(8 * share))
	if share >= 0.1 {
		return eighths, 125 * uint16(max(eighths, 1))
	}
	least := 1.0 / 256
	for least*math.Sqrt2 < share {
		least *= 2
	}
	return eighths, uint16(math.Round(1000 * least))
}

func (l *lowering) step(s *step) {
	to := program.Step{Risky: s.risky}
	to.Share, to.Permille = shares(s.share)
	switch s.kind {
	case stepRange:
		to.Kind, to.Node, to.Index = program.StepRange, l.node(s.n), len(l.q.Ranges)
		l.q.Ranges = append(l.q.Ranges, program.Range{Lo: s.lo, Hi: s.hi})
	case stepTable:
		if s.onNull {
			to.Kind, to.Node = program.StepFilter, l.passing(s)
			break
		}
		to.Kind, to.Node, to.Index = program.StepBits, l.node(s.n), len(l.q.Bits)
		set := s.set
		if set.Size == 0 {
			set = setOfTable(s.n.lo, s.table)
		}
		l.q.Bits = append(l.q.Bits, program.Bits{Lo: set.Lo, Size: set.Size, Words: set.Bits})
	case stepProbe:
		to.Kind, to.Index = program.StepProbe, l.lookup(s.probe)
	case stepFilter:
		to.Kind, to.Node = program.StepFilter, l.node(s.n)
	}
	l.prog.Steps = append(l.prog.Steps, to)
}

// passing returns a node that is true for the values that pass a stepTable, and for null.
func (l *lowering) passing(s *step) int {
	d := program.TableData{Lo: s.n.lo, Values: make([]int64, len(s.table)), OnNull: 1}
	for i, v := range s.table {
		d.Values[i] = int64(v)
	}
	n := program.Node{Op: program.OpTable, Args: []int{l.node(s.n)}, Index: len(l.prog.Tables)}
	l.prog.Tables = append(l.prog.Tables, program.Table{})
	l.q.Tables = append(l.q.Tables, d)
	return l.add(n)
}

var accsOnDevice = map[accKind]program.AccKind{accRows: program.AccRows, accCount: program.AccCount, accSum: program.AccSum,
	accSum128: program.AccSum128, accMin: program.AccMin, accMax: program.AccMax}

// groups lowers a grouping: its digits and accumulators. accOf says which of the program's
// accumulators is each of the grouper's; -1 for those that stay as they are.
func (l *lowering) groups(by *grouping) (accOf []int) {
	sink := &l.prog.Sink
	sink.Kind = program.SinkGroups
	for i := range by.axes {
		a, part := &by.axes[i], &by.pack.parts[i]
		d := program.Digit{Nullable: part.nullable}
		switch {
		case a.node != nil:
			d.Node = l.node(a.node)
		case a.codeOf != nil:
			d.Node = l.out(outKey{probe: a.probe, of: a})
		default:
			d.Node = l.entry(a.probe)
		}
		sink.Digits = append(sink.Digits, d)
		l.q.Digits = append(l.q.Digits, program.DigitData{Lo: part.lo, Stride: part.stride})
	}
	l.q.Groups = by.pack.card
	for i := range by.g.accs {
		a := &by.g.accs[i]
		if a.kind == accZeros && l.noZeros(a.arg) {
			accOf = append(accOf, -1)
			continue
		}
		kind, ok := accsOnDevice[a.kind]
		if !ok {
			l.no("aggregate")
			return nil
		}
		to := program.Acc{Kind: kind, Arg: -1, Filter: -1}
		if a.filter != nil {
			to.Filter = l.node(a.filter)
		}
		if a.kind != accRows {
			to.Arg = l.node(a.arg)
		}
		accOf = append(accOf, len(sink.Accs))
		sink.Accs = append(sink.Accs, to)
	}
	return accOf
}

// noZeros reports whether zone maps prove that there is nothing for accZeros to remember:
// no zero and no NaN.
func (l *lowering) noZeros(n *node) bool {
	if n.kind != nodeColumn {
		return false
	}
	for _, seg := range l.p.tab.Segments {
		c := &seg.Columns[n.col]
		if c.Min <= c.Max && (c.Min <= 0 && c.Max >= 0 || c.Max >= nanKey) {
			return false
		}
	}
	return true
}

// place decides where groups are kept.
func (l *lowering) place(by *grouping, shared int, memory int64, rows float64) {
	words := 1
	for _, a := range l.prog.Sink.Accs {
		words += a.Kind.Words()
	}
	bytes := float64(8 * words)
	card := float64(by.pack.card)
	sink := &l.prog.Sink
	l.q.Expect = uint64(max(min(by.expect, rows, card), 1))
	switch {
	case by.pack.card == 0:
		l.no("groups")
	case len(by.axes) == 0:
		sink.Place = program.PlaceSingle
	case card*bytes <= float64(shared):
		sink.Place = program.PlaceShared
	case card*bytes <= float64(memory)/8 && (card <= deviceDense || card <= 8*float64(l.q.Expect)):
		sink.Place = program.PlaceGlobal
	default:
		sink.Place = program.PlaceHash
		if most := float64(memory) / 4 / (2 * (bytes + 8)); float64(l.q.Expect) > most {
			l.q.Expect = uint64(max(most, 1))
		}
	}
}

// deviceDense is the number of groups up to which an array in device memory costs less to
// be cleared and gathered than a hash table costs to be filled.
const deviceDense = 1 << 22
