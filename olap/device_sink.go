package olap

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/vector"
)

// deviceAcc says which accumulators of a program give one of the grouper's: of moments the sums and
// those of squares, of sums of doubles the halves, of zeros whether +0 came and -0. -1: none, it stays as it is.
type deviceAcc struct{ acc, more int }

// groups lowers a grouping: its digits and accumulators. Sets of distinct values are programs of their
// own (distinct).
func (l *lowering) groups(by *grouping) (digits []deviceDigit, accs []deviceAcc) {
	sink := &l.prog.Sink
	sink.Kind = program.SinkGroups
	digits = l.axes(by, nil)
	for i := range by.g.accs {
		accs = append(accs, l.acc(&by.g.accs[i]))
	}
	return digits, accs
}

// acc lowers an accumulator.
func (l *lowering) acc(a *acc) deviceAcc {
	none := deviceAcc{-1, -1}
	kind := a.kind
	switch {
	case a.kind == accDistinct, a.kind == accRanked:
		return none
	case a.kind == accZeros:
		zeros, nans := l.zeros(a.arg)
		if nans {
			l.no("aggregate")
		}
		if !zeros || nans {
			return none
		}
		return deviceAcc{l.came(a, 0), l.came(a, math.MinInt64)}
	case a.kind == accMoments && magnitude(a.arg.lo, a.arg.hi) <= squareRoot:
		n := l.node(a.arg)
		square := l.add(program.Node{Op: plan.OpMul, Args: []int{n, n}, Nullable: a.arg.nullable, Wide: true})
		return deviceAcc{l.accOf(a, program.AccSum128, n), l.accOf(a, program.AccSum128, square)}
	case a.kind == accFloatSum && l.fixes(a):
		n := l.node(a.arg)
		base := len(l.q.Constants)
		l.q.Constants = append(l.q.Constants, int64(a.window.base.Load()))
		half := program.Node{Op: program.OpFixedHigh, Args: []int{n}, Index: base, Nullable: a.arg.nullable, Wide: true}
		high := l.accOf(a, program.AccSum128, l.add(half))
		half.Op = program.OpFixedLow
		return deviceAcc{high, l.accOf(a, program.AccSum128, l.add(half))}
	case a.kind == accFold && a.arg.t.Kind == vector.Bool: // and is the least, or the greatest
		if kind = program.AccMin; a.fold.Start == 0 {
			kind = program.AccMax
		}
	case a.kind > program.AccMax:
		l.no("aggregate")
		return none
	}
	arg := -1
	if kind != program.AccRows {
		arg = l.node(a.arg)
	}
	return deviceAcc{l.accOf(a, kind, arg), -1}
}

// squareRoot is the largest integer whose square fits 63 bits.
const squareRoot = 3037000499

func (l *lowering) accOf(a *acc, kind program.AccKind, arg int) int {
	to := program.Acc{Kind: kind, Arg: arg, Filter: -1}
	if a.filter != nil {
		to.Filter = l.node(a.filter)
	}
	sink := &l.prog.Sink
	sink.Accs = append(sink.Accs, to)
	return len(sink.Accs) - 1
}

// fixes reports whether doubles are added up as fixed-point numbers: of which it is known that there is no
// infinity, no NaN and no sum that is out of range. What is too small for the window is a fault then.
func (l *lowering) fixes(a *acc) bool {
	most, ok := l.mostOf(a.arg)
	top := int32(most >> 52)
	switch {
	case !ok || most > math.Float64bits(plan.FloatMomentMax):
		return false
	case top == 0: // zeros, in any window; others are too small
		return most == 0
	}
	w := a.window
	w.base.CompareAndSwap(0, max(top-w.width, 1))
	base := w.base.Load()
	return base <= top && top <= base+w.width
}

// mostOf bounds the magnitude of a node's doubles, as bits: of a column by zone maps, of what is written out
// by its values.
func (l *lowering) mostOf(n *node) (most uint64, ok bool) {
	written := func(values []int64) {
		for _, v := range values {
			most = max(most, uint64(v)&math.MaxInt64)
		}
	}
	switch n.kind {
	case nodeColumn:
		lo, hi, _ := l.p.columnBounds(n.col) // keys: the bits of a magnitude, with a sign
		return uint64(magnitude(lo, hi)), true
	case nodeConst:
		written([]int64{n.k})
	case nodeTable:
		written(n.tab.Values)
		written([]int64{n.tab.OnNull})
	case nodeOut:
		written(l.p.probes[n.probe].lut.outs[n.out].Values)
	case nodeCase, nodeCoalesce:
		for i, a := range n.args {
			if n.kind == nodeCase && i%2 == 0 && i < len(n.args)-1 {
				continue // a condition
			}
			m, known := l.mostOf(a)
			if most = max(most, m); !known {
				return 0, false
			}
		}
	default:
		if computesFloat(n) {
			return l.mostComputed(n)
		}
		return 0, false
	}
	return most, true
}

// deviceDigit is where a digit of a group's number is.
type deviceDigit struct {
	prefix       bool
	stride, card uint64
}

// of returns the digit of group g of a result.
func (d *deviceDigit) of(r *program.Result, g int) uint64 {
	number := r.Numbers[g]
	if d.prefix {
		number = r.Prefix[g]
	}
	return number / d.stride % d.card
}

// digitValue is a node of the program's and the bounds of its values.
type digitValue struct {
	node   int
	lo, hi int64
}

// keys lowers what a grouping is by.
func (l *lowering) keys(by *grouping) []int {
	nodes := make([]int, 0, len(by.axes)+1)
	for i := range by.axes {
		switch a := &by.axes[i]; {
		case a.node != nil:
			nodes = append(nodes, l.node(a.node))
		case a.codeOf != nil:
			nodes = append(nodes, l.out(outKey{probe: a.probe, of: a}))
		default:
			nodes = append(nodes, l.entry(a.probe))
		}
	}
	return nodes
}

// axes lowers the digits of a grouping, and of a value behind them where there is one.
func (l *lowering) axes(by *grouping, value *digitValue) []deviceDigit {
	pack := by.pack
	nodes := l.keys(by)
	if value != nil {
		pack = newPacker()
		pack.parts, pack.card = slices.Clone(by.pack.parts), by.pack.card
		pack.add(&node{lo: value.lo, hi: value.hi}, 0)
		nodes = append(nodes, value.node)
	}
	digits := make([]deviceDigit, len(nodes))
	order := make([]int, len(nodes))
	for i := range nodes {
		part := &pack.parts[i]
		order[i], digits[i] = i, deviceDigit{stride: part.stride, card: part.card}
		if part.card == 0 {
			l.no("groups")
			return digits
		}
	}
	if l.q.Groups = pack.card; pack.card == 0 {
		order = l.prefix(digits, order)
	}
	for _, i := range order {
		part := &pack.parts[i]
		l.prog.Sink.Digits = append(l.prog.Sink.Digits, program.Digit{Node: nodes[i], Nullable: part.nullable})
		l.q.Digits = append(l.q.Digits, program.DigitData{Lo: part.lo, Stride: digits[i].stride})
	}
	return digits
}

// prefix makes a prefix of digits of which 64 bits do not hold the number: the one of the most values,
// and others as long as the rest is too large. It returns the order of the digits.
func (l *lowering) prefix(digits []deviceDigit, order []int) []int {
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(digits[b].card, digits[a].card) })
	rest := 1.0
	for _, i := range order {
		rest *= float64(digits[i].card)
	}
	strides := map[bool]uint64{true: 1, false: 1}
	for _, i := range order {
		d := &digits[i]
		d.prefix = rest > program.SuffixMax/2
		if d.prefix {
			rest /= float64(d.card)
			l.prog.Sink.Prefix++
		}
		d.stride = strides[d.prefix]
		high, low := bits.Mul64(d.stride, d.card)
		if strides[d.prefix] = low; high != 0 {
			l.no("groups")
		}
	}
	if strides[false] > program.SuffixMax {
		l.no("groups")
	}
	return order
}

// values lowers what an accumulator collects of each group: groups that are pairs of one and a value.
func (l *lowering) values(by *grouping, a *acc) []deviceDigit {
	l.collected(a)
	return l.axes(by, &digitValue{l.node(a.arg), a.arg.lo, a.arg.hi})
}

// collected leaves the rows that have a value for an accumulator.
func (l *lowering) collected(a *acc) {
	l.prog.Sink.Kind = program.SinkGroups
	const all = 1000 // Permille
	if a.filter != nil {
		l.prog.Steps = append(l.prog.Steps, program.Step{Kind: program.StepFilter, Node: l.node(a.filter), Permille: all})
	}
	if a.arg.nullable {
		some := l.add(program.Node{Op: plan.OpIsNotNull, Args: []int{l.node(a.arg)}})
		l.prog.Steps = append(l.prog.Steps, program.Step{Kind: program.StepFilter, Node: some, Permille: all})
	}
}

// distinct has a set collected: how often a value comes is not asked for. Where all that is asked for is how
// many there are, the device counts them if the groups' numbers are an array's.
func (l *lowering) distinct(digits []deviceDigit, only bool) {
	sink := &l.prog.Sink
	sink.Distinct = true
	switch last := len(digits) - 1; {
	case !only || l.why != "":
	case sink.Prefix == 0:
		l.q.Counted = digits[last].stride
		sink.Counted = l.q.Counted <= deviceDense
	case sink.Prefix == 1 && digits[last].prefix:
		l.q.Counted = 1
		for _, d := range digits[:last] {
			l.q.Counted *= d.card
		}
		sink.Counted = l.q.Counted <= deviceDense
	}
}

// zeros reports whether zone maps leave it open that there is a zero, and a NaN.
func (l *lowering) zeros(n *node) (zeros, nans bool) {
	if computesFloat(n) {
		return true, false // a NaN is a fault
	}
	if n.kind != nodeColumn {
		return true, true
	}
	for _, seg := range l.p.tab.Segments {
		if c := &seg.Columns[n.col]; c.Min <= c.Max {
			zeros = zeros || c.Min <= 0 && c.Max >= 0
			nans = nans || c.Max >= vector.NaNKey
		}
	}
	return zeros, nans
}

// came adds an accumulator that is 1 where a value of these bits came.
func (l *lowering) came(a *acc, bits int64) int {
	k := l.add(program.Node{Op: program.OpConst, Index: len(l.q.Constants), Wide: true})
	l.q.Constants = append(l.q.Constants, bits)
	return l.accOf(a, program.AccMax, l.add(program.Node{Op: plan.OpEq, Args: []int{l.node(a.arg), k}, Nullable: a.arg.nullable}))
}

// place decides where groups are kept, of which so many are expected.
func (l *lowering) place(expect float64, shared int, memory int64, rows float64) {
	words := 1
	for _, a := range l.prog.Sink.Accs {
		words += a.Kind.Words()
	}
	bytes := float64(8 * words)
	sink := &l.prog.Sink
	card := float64(l.q.Groups)
	if sink.Prefix > 0 {
		card = math.Inf(1)
	}
	l.q.Expect = uint64(max(min(expect, rows, card), 1))
	switch {
	case len(sink.Digits) == 0:
		sink.Place = program.PlaceSingle
	case card*bytes <= l.sharedLeft(float64(shared)) && !sink.Distinct && l.p.rowsMax() <= math.MaxUint32: // its counts are of 32 bits
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

// sharedLeft returns what is left for groups of a block's shared memory: lookups that most
// rows are probed with had better be there, too, and what the kernel needs itself. Most of
// the bitmaps are small; they do not take more than half of it.
func (l *lowering) sharedLeft(shared float64) float64 {
	staged, share := 0.0, 1.0
	for _, s := range l.prog.Steps {
		if s.Kind == program.StepProbe && share > 1.0/8 && l.prog.Lookups[s.Index].Kind != program.LookupHash {
			staged += float64(l.q.Lookups[s.Index].Size) / 8
		}
		share *= float64(s.Permille) / 1000
	}
	return shared - shared/8 - min(staged, shared/2)
}

// deviceDense is the number of groups up to which an array in device memory costs less to
// be cleared and gathered than a hash table costs to be filled.
const deviceDense = 1 << 22

// pairsExpected is how many different values of groups are expected at first, where there may be more: a
// table that is too small is made larger, and that is remembered (gpu.Manager).
const pairsExpected = 1 << 22
