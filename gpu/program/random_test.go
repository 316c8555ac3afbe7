package program

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"pgaccel/compress"
	"pgaccel/plan"
)

// maker makes random queries. Bounds of every node are known, so that what must be proven
// (int32, no overflow, positions inside of tables) is.
type maker struct {
	*rand.Rand
	p      *Program
	q      *Query
	bounds []interval
	faulty bool // some rows may be faults
}

type interval struct{ lo, hi int64 }

var edgeLengths = []int{1, 31, 32, 33, 63, 64, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 2100, 0}

func (m *maker) chance(n int) bool { return m.IntN(n) == 0 }

// within is a random value of an interval, often one of its ends.
func (m *maker) within(lo, hi int64) int64 {
	switch m.IntN(8) {
	case 0:
		return lo
	case 1:
		return hi
	}
	span := uint64(hi) - uint64(lo)
	if span == math.MaxUint64 {
		return int64(m.Uint64())
	}
	return lo + int64(m.Uint64N(span+1))
}

// randomQuery makes a program and its data.
func randomQuery(seed uint64, lengths []int) *Query {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 1)), p: &Program{}}
	m.q = &Query{Program: m.p}
	m.faulty = m.chance(4)
	m.columns(lengths)
	for range m.IntN(3) + m.IntN(2)*m.IntN(3) {
		m.lookup()
	}
	m.steps()
	m.sink()
	return m.q
}

// columns makes the table's columns and data.
func (m *maker) columns(lengths []int) {
	m.q.Segments = make([]Segment, len(lengths))
	for i, n := range lengths {
		s := &m.q.Segments[i]
		s.Rows = n
		if m.chance(3) {
			s.Live = m.bitmap(n, 4)
		}
	}
	for range 2 + m.IntN(4) {
		width := []int{0, 1, 4, 7, 8, 16, 17, 31, 32, 33, 40, 63, 64}[m.IntN(13)]
		if !m.chance(3) {
			width = 1 + m.IntN(9)
		}
		lo := int64(m.IntN(2000) - 1000)
		switch {
		case width == 64:
			lo = math.MinInt64
		case m.chance(4):
			lo = int64(m.Uint64()) >> (1 + m.IntN(40))
			lo -= lo % 16
			if lo > 0 && width > 40 {
				lo = -lo
			}
			lo = max(lo, math.MinInt64/2)
		}
		hi := lo
		if width > 0 {
			hi = lo + int64(uint64(1)<<(width-1)-1) + int64(uint64(1)<<(width-1))
			if width == 64 {
				hi = math.MaxInt64
			} else if hi < lo {
				lo, hi = 0, int64(uint64(1)<<width-1)
				if width == 63 {
					hi = math.MaxInt64
				}
			}
		}
		nullable := m.chance(3)
		c := Column{Nullable: nullable}
		for i := range m.q.Segments {
			sc := m.segmentColumn(m.q.Segments[i].Rows, lo, hi, nullable)
			c.Wide = c.Wide || LaneFormatOf(&sc).Width > 32
			m.q.Segments[i].Columns = append(m.q.Segments[i].Columns, sc)
		}
		m.p.Columns = append(m.p.Columns, c)
		m.add(Node{Op: OpColumn, Index: len(m.p.Columns) - 1, Nullable: nullable}, interval{lo, hi})
	}
}

// segmentColumn makes values within an interval; null rows lie anywhere.
func (m *maker) segmentColumn(n int, lo, hi int64, nullable bool) SegmentColumn {
	sc := SegmentColumn{Min: math.MaxInt64, Max: math.MinInt64}
	if m.chance(8) { // a narrower segment
		a, b := m.within(lo, hi), m.within(lo, hi)
		lo, hi = min(a, b), max(a, b)
	}
	if nullable && !m.chance(3) {
		sc.Nulls = m.bitmap(n, 3)
	}
	values := make([]int64, n)
	for i := range values {
		values[i] = m.within(lo, hi)
		if sc.Nulls != nil && sc.Nulls[i>>6]>>(i&63)&1 != 0 {
			values[i] = m.within(math.MinInt64, math.MaxInt64)
			continue
		}
		sc.Min, sc.Max = min(sc.Min, values[i]), max(sc.Max, values[i])
	}
	sc.Words = compress.Words(compress.Encode(values, func(words int) []uint32 { return make([]uint32, words) }))
	return sc
}

// bitmap has one bit in about n set.
func (m *maker) bitmap(rows, n int) []uint64 {
	b := make([]uint64, (rows+63)/64)
	for i := range rows {
		if m.chance(n) {
			b[i>>6] |= 1 << (i & 63)
		}
	}
	return b
}

// add appends a node and says whether it is wide.
func (m *maker) add(n Node, b interval) int {
	n.Wide = b.lo < math.MinInt32 || b.hi > math.MaxInt32
	m.p.Nodes = append(m.p.Nodes, n)
	m.bounds = append(m.bounds, b)
	return len(m.p.Nodes) - 1
}

func (m *maker) constant(b interval) int {
	v := m.within(b.lo, b.hi)
	m.q.Constants = append(m.q.Constants, v)
	return m.add(Node{Op: OpConst, Index: len(m.q.Constants) - 1, Nullable: m.chance(12)}, interval{v, v})
}

// usable returns a node that there is: of those that may be read here.
func (m *maker) leaf(lookups bool) int {
	for {
		i := m.IntN(len(m.p.Nodes))
		if m.chance(6) {
			return m.constant(m.bounds[i])
		}
		if lookups || len(m.p.lookupsOf(i)) == 0 {
			return i
		}
	}
}

// small reports whether nothing near overflow can come of a few operations.
func (b interval) small() bool { return b.lo >= -1<<40 && b.hi <= 1<<40 }

func truth(b interval) bool { return b.lo >= 0 && b.hi <= 1 }

// condition makes a node that is 0 or 1.
func (m *maker) condition(lookups bool, depth int) int {
	if depth > 0 {
		switch m.IntN(9) {
		case 0, 1:
			n := Node{Op: plan.OpAnd + Op(m.IntN(2))}
			for range 1 + m.IntN(3) {
				a := m.condition(lookups, depth-1)
				n.Args = append(n.Args, a)
				n.Nullable = n.Nullable || m.p.Nodes[a].Nullable
			}
			return m.add(n, interval{0, 1})
		case 2:
			a := m.condition(lookups, depth-1)
			return m.add(Node{Op: plan.OpNot, Args: []int{a}, Nullable: m.p.Nodes[a].Nullable}, interval{0, 1})
		case 3:
			a := m.condition(lookups, depth-1)
			return m.add(Node{Op: plan.OpIsTrue + Op(m.IntN(2)), Args: []int{a}}, interval{0, 1})
		}
	}
	a := m.value(lookups, depth-1)
	an := m.p.Nodes[a].Nullable
	switch m.IntN(8) {
	case 0:
		return m.add(Node{Op: plan.OpIsNull + Op(m.IntN(2)), Args: []int{a}}, interval{0, 1})
	case 1:
		set := make([]int64, m.IntN(9))
		for i := range set {
			set[i] = m.within(m.bounds[a].lo, m.bounds[a].hi)
		}
		slices.Sort(set)
		m.q.Sets = append(m.q.Sets, slices.Compact(set))
		return m.add(Node{Op: plan.OpIn, Args: []int{a}, Index: len(m.q.Sets) - 1, Nullable: an}, interval{0, 1})
	}
	b := m.value(lookups, depth-1)
	if m.chance(2) {
		b = m.constant(m.bounds[a])
	}
	bn := m.p.Nodes[b].Nullable
	op := plan.OpEq + Op(m.IntN(7))
	return m.add(Node{Op: op, Args: []int{a, b}, Nullable: op != plan.OpDistinct && (an || bn)}, interval{0, 1})
}

// value makes a node of any value.
func (m *maker) value(lookups bool, depth int) int {
	if depth <= 0 || m.chance(4) {
		return m.leaf(lookups)
	}
	a := m.value(lookups, depth-1)
	A, an := m.bounds[a], m.p.Nodes[a].Nullable
	switch k := m.IntN(10); {
	case k < 4:
		b := m.value(lookups, depth-1)
		B, bn := m.bounds[b], m.p.Nodes[b].Nullable
		if !A.small() || !B.small() {
			return m.checkedNode(a, b)
		}
		n := Node{Op: plan.OpAdd + Op(m.IntN(3)), Args: []int{a, b}, Nullable: an || bn}
		out := interval{A.lo + B.lo, A.hi + B.hi}
		switch n.Op {
		case plan.OpSub:
			out = interval{A.lo - B.hi, A.hi - B.lo}
		case plan.OpMul:
			out = interval{math.MaxInt64, math.MinInt64}
			for _, x := range []int64{A.lo, A.hi} {
				for _, y := range []int64{B.lo, B.hi} {
					hi, lo := bits.Mul64(uint64(max(x, -x)), uint64(max(y, -y)))
					if hi != 0 || lo > 1<<62 {
						return m.checkedNode(a, b)
					}
					out = interval{min(out.lo, x*y), max(out.hi, x*y)}
				}
			}
		}
		return m.add(n, out)
	case k == 4:
		n := Node{Op: plan.OpCase}
		out := interval{math.MaxInt64, math.MinInt64}
		take := func(v int) {
			n.Args = append(n.Args, v)
			n.Nullable = n.Nullable || m.p.Nodes[v].Nullable
			out = interval{min(out.lo, m.bounds[v].lo), max(out.hi, m.bounds[v].hi)}
		}
		for range 1 + m.IntN(2) {
			n.Args = append(n.Args, m.condition(lookups, depth-1))
			take(m.value(lookups, depth-1))
		}
		take(a)
		return m.add(n, out)
	case k == 5:
		n := Node{Op: plan.OpCoalesce, Args: []int{a}, Nullable: an}
		out := A
		for range 1 + m.IntN(2) {
			v := m.value(lookups, depth-1)
			n.Args = append(n.Args, v)
			n.Nullable = n.Nullable && m.p.Nodes[v].Nullable
			out = interval{min(out.lo, m.bounds[v].lo), max(out.hi, m.bounds[v].hi)}
		}
		return m.add(n, out)
	case k == 6 && uint64(A.hi)-uint64(A.lo) < 300:
		return m.table(a)
	case k == 7 && m.chance(3):
		return m.fixed(a)
	case k == 7 && m.chance(3):
		return m.float(a, m.value(lookups, depth-1))
	case k == 7 && m.chance(3):
		s := int64(m.IntN(64))
		m.q.Constants = append(m.q.Constants, s)
		return m.add(Node{Op: OpShift, Args: []int{a}, Index: len(m.q.Constants) - 1, Nullable: an}, interval{A.lo >> s, A.hi >> s})
	case k == 7 && m.chance(2):
		set := make([]int64, m.IntN(9))
		for i := range set {
			set[i] = m.within(A.lo, A.hi)
		}
		slices.Sort(set)
		m.q.Sets = append(m.q.Sets, slices.Compact(set))
		return m.add(Node{Op: OpStep, Args: []int{a}, Index: len(m.q.Sets) - 1, Nullable: an}, interval{0, 9})
	case k == 7:
		return m.add(Node{Op: OpFloatKey, Args: []int{a}, Nullable: an}, interval{math.MinInt64, math.MaxInt64})
	case k == 8:
		return m.checkedNode(a, m.value(lookups, depth-1))
	}
	return a
}

// checkedNode makes an operation whose result may not fit, where faults are wanted; and
// divisions that never fail elsewhere.
func (m *maker) checkedNode(a, b int) int {
	A, B := m.bounds[a], m.bounds[b]
	null := m.p.Nodes[a].Nullable || m.p.Nodes[b].Nullable
	if !m.faulty {
		divisor := interval{1, 1000}
		if m.chance(2) {
			divisor = interval{-1000, -2}
		}
		b = m.constant(divisor)
		null = m.p.Nodes[a].Nullable || m.p.Nodes[b].Nullable
		limit := max(-(A.lo + 1), A.hi, 0) // at most a in magnitude
		return m.add(Node{Op: plan.OpDiv + Op(m.IntN(2)), Args: []int{a, b}, Nullable: null}, interval{-limit - 1, limit})
	}
	lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
	if m.chance(2) && A.small() && B.small() {
		lo, hi = math.MinInt32, math.MaxInt32
	}
	n := Node{Op: []Op{plan.OpAdd, plan.OpSub, plan.OpMul, plan.OpDiv, plan.OpMod, plan.OpAbs}[m.IntN(6)], Args: []int{a, b}, Nullable: null, Checked: true, Min: lo, Max: hi}
	if n.Op == plan.OpAbs {
		n.Args, n.Nullable = n.Args[:1], m.p.Nodes[a].Nullable
	}
	return m.add(n, interval{lo, hi})
}

// fixed makes a half of a double as a fixed-point number; most are faults, unless none may be.
func (m *maker) fixed(a int) int {
	n := Node{Op: OpFixedHigh + Op(m.IntN(2)), Args: []int{a}, Index: len(m.q.Constants), Nullable: m.p.Nodes[a].Nullable}
	if !m.faulty { // doubles of few exponents: the integer is the low bits of one
		if m.bounds[a].lo < 0 || m.bounds[a].hi >= 1<<52 {
			return a
		}
		one := m.add(Node{Op: OpConst, Index: len(m.q.Constants)}, interval{1023 << 52, 1023 << 52})
		m.q.Constants = append(m.q.Constants, 1023<<52)
		n.Args[0] = m.add(Node{Op: plan.OpAdd, Args: []int{a, one}, Nullable: n.Nullable}, interval{1023 << 52, 1024 << 52})
		n.Index++
	}
	m.q.Constants = append(m.q.Constants, int64(1023-m.IntN(64)))
	return m.add(n, interval{math.MinInt64, math.MaxInt64})
}

// float makes arithmetic of doubles: of any bits, which mostly are faults, or of integers.
func (m *maker) float(a, b int) int {
	n := Node{Op: OpFloatAdd + Op(m.IntN(4)), Nullable: m.p.Nodes[a].Nullable || m.p.Nodes[b].Nullable}
	if !m.faulty || !m.chance(4) {
		if n.Op == OpFloatDiv {
			b = m.constant(interval{3, 900})
			n.Nullable = m.p.Nodes[a].Nullable || m.p.Nodes[b].Nullable
		}
		a, b = m.floatOf(a), m.floatOf(b)
	}
	n.Args = []int{a, b}
	v := m.add(n, interval{math.MinInt64, math.MaxInt64})
	if m.chance(2) {
		return v
	}
	return m.add(Node{Op: OpFloatKey, Args: []int{v}, Nullable: n.Nullable, Checked: m.faulty && m.chance(2)}, interval{math.MinInt64, math.MaxInt64})
}

func (m *maker) floatOf(a int) int {
	return m.add(Node{Op: OpFloatOf, Args: []int{a}, Nullable: m.p.Nodes[a].Nullable}, interval{math.MinInt64, math.MaxInt64})
}

func (m *maker) table(a int) int {
	A := m.bounds[a]
	t, d := Table{Nulls: m.chance(2), Faults: m.faulty && m.chance(3), Wide: m.chance(2)}, TableData{Lo: A.lo - int64(m.IntN(3))}
	out := interval{-100, 100}
	if t.Wide {
		out = interval{-1 << 40, 1 << 40}
	}
	for range A.hi - d.Lo + 1 {
		d.Values = append(d.Values, m.within(out.lo, out.hi))
		d.Nulls = append(d.Nulls, uint8(m.IntN(8)/7))
		d.Faults = append(d.Faults, uint8(m.IntN(200)/199))
	}
	if !t.Nulls {
		d.Nulls = nil
	}
	if !t.Faults {
		d.Faults = nil
	}
	d.OnNull, d.OnNullNull, d.OnNullFault = m.within(out.lo, out.hi), m.chance(2), m.chance(9)
	m.p.Tables = append(m.p.Tables, t)
	m.q.Tables = append(m.q.Tables, d)
	null := t.Nulls || m.p.Nodes[a].Nullable && d.OnNullNull
	return m.add(Node{Op: OpTable, Args: []int{a}, Index: len(m.p.Tables) - 1, Nullable: null}, out)
}
