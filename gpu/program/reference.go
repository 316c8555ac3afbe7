package program

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"pgaccel/compress"
	"pgaccel/plan"
	"pgaccel/vector"
)

// Reference computes a query a row at a time. Lookups that are to be built are built first.
func Reference(q *Query) (*Result, error) {
	if err := validate(q.Program); err != nil {
		return nil, err
	}
	r := &reference{q: q, groups: map[[2]uint64]int{}, result: &Result{}}
	for i := range q.Lookups {
		d := q.Lookups[i]
		if d.Build != nil {
			built, err := Reference(d.Build)
			if err != nil || built.Fault {
				return built, err
			}
			d.Bits, d.E8, d.E16, d.E32 = built.Lookup.Bits, built.Lookup.E8, built.Lookup.E16, built.Lookup.E32
		}
		if d.Keys != nil {
			d.buildHash()
		}
		r.lookups = append(r.lookups, d)
	}
	for i := range q.Bits {
		d := &q.Bits[i]
		r.sets = append(r.sets, compress.Set{Lo: d.Lo, Size: d.Size, Bits: d.words()})
	}
	for i := range q.Tables {
		d := &q.Tables[i]
		if r.tables = append(r.tables, d.Values); d.Lengths != nil {
			r.tables[i] = d.Lengths.Host()
		}
	}
	r.result.Accs = make([]Values, len(q.Sink.Accs))
	if q.Sink.Kind == SinkBuild {
		r.openBuild()
	}
	for i := range q.Segments {
		if err := r.segment(i, &q.Segments[i]); err != nil {
			return nil, fmt.Errorf("segment %d: %w", i, err)
		}
	}
	if r.result.Fault {
		return &Result{Fault: true}, nil
	}
	return Wanted(q, Count(q, r.result)), nil
}

// Count returns the numbers that q asks for with Sink.Counted, of a result that has the groups; any
// other result as it is.
func Count(q *Query, groups *Result) *Result {
	if !q.Sink.Counted || groups.Fault || groups.Full {
		return groups
	}
	out, at := &Result{Accs: groups.Accs}, map[uint64]int{}
	for _, n := range groups.Numbers {
		if q.Sink.Prefix == 0 {
			n %= q.Counted
		}
		g, ok := at[n]
		if !ok {
			g = len(out.Numbers)
			at[n] = g
			out.Numbers, out.Rows = append(out.Numbers, n), append(out.Rows, 0)
		}
		out.Rows[g]++
	}
	return out
}

// reference is one run of Reference.
type reference struct {
	q       *Query
	lookups []LookupData
	sets    []compress.Set    // of StepBits
	tables  [][]int64         // values of tables
	groups  map[[2]uint64]int // a prefix's and a number's position in result
	result  *Result

	columns [][]int64 // of the segment
	seg     *Segment
	decided uint32 // by bitmap indexes, of the segment
	row     int
	partner uint32 // of a lookup that is Many
}

func (r *reference) segment(at int, s *Segment) error {
	r.seg, r.columns = s, nil
	for i := range s.Columns {
		column, err := compress.Parse(aligned(s.Columns[i].Words))
		if err != nil {
			return fmt.Errorf("column %d: %w", i, err)
		}
		values := make([]int64, s.Rows)
		column.Decode(values, 0)
		r.columns = append(r.columns, values)
	}
	var bitmap []uint64
	if r.q.Sink.Kind == SinkBitmap {
		bitmap = make([]uint64, (s.Rows+63)/64)
	}
	left, decided := r.q.Indexed.narrow(r.q, at, s.Rows, func(bits int, v int64) bool { return r.sets[bits].Has(v) })
	r.decided = decided
	for r.row = range s.Rows {
		if s.Live != nil && s.Live[r.row>>6]>>(r.row&63)&1 == 0 {
			continue
		}
		r.pass(r.q.Steps, left == nil || left[r.row], bitmap)
	}
	if r.q.Sink.Kind == SinkBitmap {
		if !slices.ContainsFunc(bitmap, func(w uint64) bool { return w != 0 }) {
			bitmap = nil
		}
		r.result.Bitmaps = append(r.result.Bitmaps, bitmap)
	}
	return nil
}

// pass applies steps to the row, and gives it to the sink where it passes: once with each of its
// partners where there are many.
func (r *reference) pass(steps []Step, pass bool, bitmap []uint64) {
	for i, s := range steps {
		if !pass && !s.Risky {
			continue
		}
		if s.Kind == StepProbe && r.q.Program.Lookups[s.Index].Many {
			number, ok := r.find(s.Index)
			if !ok && !r.q.Program.Lookups[s.Index].Left {
				return
			}
			d := &r.lookups[s.Index]
			if !ok {
				number = d.Null
			}
			for _, r.partner = range d.Partners[d.First[number]:d.First[number+1]] {
				r.pass(steps[i+1:], true, bitmap)
			}
			return
		}
		pass = r.step(s) && pass
	}
	if !pass {
		return
	}
	switch r.q.Sink.Kind {
	case SinkBitmap:
		bitmap[r.row>>6] |= 1 << (r.row & 63)
	case SinkBuild:
		r.build()
	case SinkGroups:
		r.group()
	}
}

// aligned returns words at an address that compress.Parse takes.
func aligned(words []uint32) []uint32 {
	if len(words) == 0 || uintptr(unsafe.Pointer(&words[0]))%8 == 0 {
		return words
	}
	room := make([]uint64, (len(words)+1)/2)
	copied := unsafe.Slice((*uint32)(unsafe.Pointer(&room[0])), len(words))
	copy(copied, words)
	return copied
}

func (r *reference) step(s Step) bool {
	if s.Kind == StepProbe {
		_, ok := r.find(s.Index)
		return ok || r.q.Program.Lookups[s.Index].Left
	}
	v, null := r.eval(s.Node)
	if null {
		return false
	}
	if bit, ok := decidedBit(s.Kind, s.Index); ok && r.decided>>bit&1 != 0 && r.q.Nodes[s.Node].Op == OpColumn {
		return true
	}
	switch s.Kind {
	case StepRange:
		return r.q.Ranges[s.Index].Lo <= v && v <= r.q.Ranges[s.Index].Hi
	case StepBits:
		return r.sets[s.Index].Has(v)
	}
	return v != 0
}

// find probes a lookup.
func (r *reference) find(i int) (entry uint32, ok bool) {
	l, d := &r.q.Program.Lookups[i], &r.lookups[i]
	key, null := r.eval(l.Key)
	if null {
		return 0, false
	}
	return d.Find(l.Kind, key)
}

// entry is find for nodes: Null where a left join has no partner.
func (r *reference) entry(i int) uint32 {
	if r.q.Program.Lookups[i].Many {
		return r.partner
	}
	if e, ok := r.find(i); ok {
		return e
	}
	return r.lookups[i].Null
}

func isTrue(v int64, null bool) bool { return !null && v != 0 }

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// eval computes a node for the row. Arms of OpCase and OpCoalesce that the row does not
// take are not computed, so that they are no faults.
func (r *reference) eval(i int) (v int64, null bool) {
	n := &r.q.Nodes[i]
	switch n.Op {
	case OpConst:
		return r.q.Constants[n.Index], n.Nullable
	case OpColumn:
		nulls := r.seg.Columns[n.Index].Nulls
		return r.columns[n.Index][r.row], nulls != nil && nulls[r.row>>6]>>(r.row&63)&1 != 0
	case OpEntry:
		return int64(r.entry(n.Index)), false
	case OpOut:
		o := &r.lookups[n.Index].Outs[n.Out]
		e := r.entry(n.Index)
		return o.Values[e], r.q.Program.Lookups[n.Index].Outs[n.Out].Nullable && o.Nulls != nil && o.Nulls[e] != 0
	case plan.OpAnd, plan.OpOr:
		stop := number(n.Op == plan.OpOr)
		v = 1 - stop
		for _, a := range n.Args {
			x, xnull := r.eval(a)
			if xnull {
				null = true
			} else if x == stop {
				v = stop
			}
		}
		return v, null && v != stop
	case plan.OpCase:
		last := len(n.Args) - 1
		for k := 0; k < last; k += 2 {
			if isTrue(r.eval(n.Args[k])) {
				return r.eval(n.Args[k+1])
			}
		}
		return r.eval(n.Args[last])
	case plan.OpCoalesce:
		for _, a := range n.Args {
			if x, xnull := r.eval(a); !xnull {
				return x, false
			}
		}
		return 0, true
	}
	a, anull := r.eval(n.Args[0])
	switch n.Op {
	case plan.OpNot:
		return 1 - a, anull
	case plan.OpIsNull:
		return number(anull), false
	case plan.OpIsNotNull:
		return number(!anull), false
	case plan.OpIsTrue:
		return number(isTrue(a, anull)), false
	case plan.OpIsFalse:
		return number(!anull && a == 0), false
	case OpTable:
		t, d := &r.q.Program.Tables[n.Index], &r.q.Tables[n.Index]
		if anull {
			r.fault(t.Faults && d.OnNullFault)
			return d.OnNull, d.OnNullNull
		}
		at, values := uint64(a)-uint64(d.Lo), r.tables[n.Index]
		if at >= uint64(len(values)) { // what an argument that is a fault gives can be any
			return 0, false
		}
		r.fault(t.Faults && d.Faults != nil && d.Faults[at] != 0)
		return values[at], t.Nulls && d.Nulls != nil && d.Nulls[at] != 0
	case OpFloatKey:
		key := vector.FloatKey(a)
		r.fault(n.Checked && !anull && (a == math.MinInt64 || key == vector.NaNKey && a != vector.NaNBits))
		return key, anull
	case OpShift:
		return a >> uint(r.q.Constants[n.Index]), anull
	case OpFloatOf:
		return int64(math.Float64bits(float64(a))), anull
	case OpFixedHigh, OpFixedLow:
		if anull {
			return 0, true
		}
		high, low, ok := fixedPoint(a, r.q.Constants[n.Index])
		if r.fault(!ok) || n.Op == OpFixedLow {
			return low, false
		}
		return high, false
	case OpStep:
		at, exact := slices.BinarySearch(r.q.Sets[n.Index], a)
		if !exact {
			at--
		}
		return int64(max(at, 0)), anull
	case plan.OpIn:
		_, found := slices.BinarySearch(r.q.Sets[n.Index], a)
		return number(found), anull
	case plan.OpAbs:
		if anull {
			return 0, true
		}
		return r.checked(n, max(a, -a), a != math.MinInt64), false
	}
	b, bnull := r.eval(n.Args[1])
	if n.Op == plan.OpDistinct {
		return number(anull != bnull || !anull && a != b), false
	}
	if anull || bnull {
		return 0, true
	}
	switch n.Op {
	case OpFloatAdd, OpFloatSub, OpFloatMul, OpFloatDiv:
		v, ok := floatArithmetic(n.Op, math.Float64frombits(uint64(a)), math.Float64frombits(uint64(b)))
		r.fault(!ok)
		return int64(math.Float64bits(v)), false
	case plan.OpAdd, plan.OpSub, plan.OpMul, plan.OpDiv, plan.OpMod:
		if (n.Op == plan.OpDiv || n.Op == plan.OpMod) && r.fault(b == 0) {
			return 0, false
		}
		v, fits := n.Op.Integer(a, b)
		r.fault(n.Op == plan.OpDiv && !fits)
		return r.checked(n, v, fits), false
	}
	return number(n.Op.Holds(cmp.Compare(a, b))), false
}

// fixedPoint returns the halves of OpFixedHigh and OpFixedLow.
func fixedPoint(bits, base int64) (high, low int64, ok bool) {
	exponent, m := bits>>52&0x7ff, bits&(1<<52-1)|1<<52
	shift := exponent - base
	switch {
	case bits == 0:
		return 0, 0, true
	case exponent == 0 || exponent == 0x7ff || shift < 0 || shift > 63:
		return 0, 0, false
	}
	high, low = m>>(63-shift), m<<shift&math.MaxInt64
	if bits < 0 {
		return -high, -low, true
	}
	return high, low, true
}

// floatArithmetic computes OpFloatAdd to OpFloatDiv; ok is false for faults.
func floatArithmetic(op Op, a, b float64) (v float64, ok bool) {
	switch op {
	case OpFloatAdd:
		v = a + b
	case OpFloatSub:
		v = a - b
	case OpFloatMul:
		v = a * b
		ok = v != 0 || a == 0 || b == 0
	case OpFloatDiv:
		v = a / b
		ok = v != 0 || a == 0
	}
	return v, (ok || op <= OpFloatSub) && !math.IsInf(v, 0) && !math.IsNaN(v)
}

// fault notes a fault and returns whether there is one.
func (r *reference) fault(is bool) bool {
	r.result.Fault = r.result.Fault || is
	return is
}

// checked notes a fault where n is Checked and its result does not fit.
func (r *reference) checked(n *Node, v int64, fits bool) int64 {
	r.fault(n.Checked && (!fits || v < n.Min || v > n.Max))
	return v
}

// number returns the number that the sink's digits from, ..., to-1 make.
func (r *reference) number(from, to int) (number uint64) {
	for i := from; i < to; i++ {
		d := r.q.Sink.Digits[i]
		v, null := r.eval(d.Node)
		digit := uint64(v) - uint64(r.q.Digits[i].Lo)
		if d.Nullable {
			if digit++; null {
				digit = 0
			}
		}
		number += digit * r.q.Digits[i].Stride
	}
	return number
}

func (r *reference) group() {
	out, sink := r.result, &r.q.Sink
	prefix, n := r.number(0, sink.Prefix), r.number(sink.Prefix, len(sink.Digits))
	g, ok := r.groups[[2]uint64{prefix, n}]
	if !ok {
		g = len(out.Numbers)
		r.groups[[2]uint64{prefix, n}] = g
		out.Numbers = append(out.Numbers, n)
		if sink.Prefix > 0 {
			out.Prefix = append(out.Prefix, prefix)
		}
		out.Rows = append(out.Rows, 0)
		for i, a := range sink.Accs {
			out.Accs[i].Grow(a.Kind, g+1)
		}
	}
	if out.Rows[g]++; sink.Distinct {
		out.Rows[g] = 1
	}
	for i, a := range sink.Accs {
		if a.Filter >= 0 && !isTrue(r.eval(a.Filter)) {
			continue
		}
		v, null := int64(0), false
		if a.Kind != AccRows {
			v, null = r.eval(a.Arg)
		}
		if null {
			continue
		}
		switch acc := &out.Accs[i]; a.Kind {
		case AccRows, AccCount:
			acc.V[g]++
		case AccSum:
			acc.V[g] += v
		case AccSum128:
			acc.add128(g, v, v>>63)
		case AccMin:
			acc.V[g] = min(acc.V[g], v)
		case AccMax:
			acc.V[g] = max(acc.V[g], v)
		}
	}
}

func (r *reference) openBuild() {
	n := max(r.q.BuildSize, 0)
	d := &LookupData{Lo: r.q.BuildLo, Size: n}
	switch r.q.Sink.Build {
	case LookupBits:
		d.Bits = make([]uint64, (n+63)/64)
	case Lookup8:
		d.E8 = slices.Repeat([]uint8{math.MaxUint8}, int(n))
	case Lookup16:
		d.E16 = slices.Repeat([]uint16{math.MaxUint16}, int(n))
	case Lookup32:
		d.E32 = slices.Repeat([]uint32{math.MaxUint32}, int(n))
	}
	r.result.Lookup = d
}

// build adds the row to the lookup. A key outside of it is a fault, as is one that comes
// twice.
func (r *reference) build() {
	key, null := r.eval(r.q.Sink.Key)
	if null {
		return
	}
	d, kind := r.result.Lookup, r.q.Sink.Build
	at := key - d.Lo
	if r.fault(key < d.Lo || uint64(at) >= uint64(d.Size)) {
		return
	}
	if _, taken := d.entry(kind, at); r.fault(taken && !r.q.Sink.Repeats) {
		return
	}
	switch e := r.number(0, len(r.q.Sink.Digits)); kind {
	case LookupBits:
		d.Bits[at>>6] |= 1 << (at & 63)
	case Lookup8:
		d.E8[at] = uint8(e)
	case Lookup16:
		d.E16[at] = uint16(e)
	case Lookup32:
		d.E32[at] = uint32(e)
	}
}
