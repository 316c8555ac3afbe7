package olap

import (
	"math"
	"math/bits"
	"slices"

	"pgaccel/gpu/program"
	"pgaccel/plan"
)

// Percentiles of many values on a device are a radix selection (Alabi and others, Fast k-selection algorithms for
// graphics processing units, 2012). A pass counts the rows of each group by the leading bits of their values. The
// places that are wanted lie in few of these buckets; the next pass counts the rows of those by further bits, until
// all bits are known. Only counters come back, and a pass waits for the columns that it reads, or for the atomics
// that count: there are so many counters that warps seldom meet.

// radixCounters is about how many a pass has. Tests make it small.
var radixCounters int64 = 1 << 18

const (
	// radixStep is how many bits a pass decides at most, cutStep where a few thousand values are as good as the one that is
	// wanted: the processor has less to take.
	radixStep, cutStep = 16, 10
	// radixAlone is up to how many groups a pass may count rows of other groups' buckets, too.
	radixAlone = 16
)

// radixSelect finds the values at the places that percentiles want, or the cut of an order (device_cut.go). Of
// percentiles it is the collection of their accumulator in the end, of which nothing but these is known.
type radixSelect struct {
	selection
	g      *grouper
	by     *grouping
	acc    int
	wants  func(n int64) []int64 // the places in a group of n values, ascending
	places [][]int64             // by group
	found  [][]uint64
	sizes  []int64
	number []uint64 // by group: what its digits make

	step          uint // bits that a pass decides at most
	before, shift uint // bits that are not known before the pass, and after it
	open          map[radixBucket][]radixPlace
	rows          int64 // in buckets that are open
}

// radixBucket is the values of a group that have some leading bits.
type radixBucket struct {
	group  uint32
	prefix int64
}

// radixPlace is a place that lies in a bucket: found[group][at], with so many values of the bucket before it.
type radixPlace struct {
	at   int
	rank int64
}

// newRadixSelect returns the selection for an accumulator of a grouping, before its first pass.
func (g *grouper) newRadixSelect(by *grouping, acc int) *radixSelect {
	a := g.accs[acc].arg
	s := &radixSelect{g: g, by: by, acc: acc, step: radixStep, before: uint(bits.Len64(uint64(a.hi) - uint64(a.lo)))}
	s.wants = func(n int64) []int64 { return g.placesOf(acc, n) }
	s.next(by.expect)
	return s
}

// next sets how many bits a pass leaves, for so many buckets.
func (s *radixSelect) next(buckets float64) {
	step := min(max(math.Log2(float64(radixCounters)/max(buckets, 1)), 4), float64(s.step))
	s.shift = s.before - min(uint(step), s.before)
}

// expect is about how many counters the pass needs.
func (s *radixSelect) expect() float64 {
	if s.open != nil {
		return min(float64(len(s.open))*math.Exp2(float64(s.before-s.shift)), float64(s.rows))
	}
	return s.by.expect * math.Exp2(float64(s.before-s.shift))
}

// pass lowers a pass.
func (s *radixSelect) pass() (*lowering, []deviceDigit) {
	l := newLowering(s.g.p)
	l.steps()
	a := &s.g.accs[s.acc]
	l.collected(a)
	if len(s.g.bases) != len(s.g.sets) {
		l.no("aggregate") // groups are made of others, whose places are not known
	}
	if s.open != nil {
		s.filter(l, a)
	}
	value := l.shifted(a.arg, s.shift)
	return l, l.axes(s.by, &value)
}

// shifted lowers the leading bits of a node's values.
func (l *lowering) shifted(n *node, by uint) digitValue {
	to := digitValue{l.node(n), n.lo >> by, n.hi >> by}
	if by == 0 {
		return to
	}
	to.node = l.add(program.Node{Op: program.OpShift, Args: []int{to.node}, Index: len(l.q.Constants), Nullable: n.nullable, Wide: wide(to.lo, to.hi)})
	l.q.Constants = append(l.q.Constants, int64(by))
	return to
}

// filter leaves the rows of open buckets: by the number that group and prefix make, or where 64 bits do not hold it
// by the prefix.
func (s *radixSelect) filter(l *lowering, a *acc) {
	prefix := l.shifted(a.arg, s.before)
	key := prefix.node
	grouped := s.byGroup(prefix)
	if grouped {
		constant := func(v int64) int {
			l.q.Constants = append(l.q.Constants, v)
			return l.add(program.Node{Op: program.OpConst, Index: len(l.q.Constants) - 1, Wide: true})
		}
		binary := func(op plan.Op, a, b int) int {
			return l.add(program.Node{Op: op, Args: []int{a, b}, Nullable: l.prog.Nodes[a].Nullable, Wide: true})
		}
		key = binary(plan.OpMul, binary(plan.OpSub, key, constant(prefix.lo)), constant(int64(s.by.pack.card)))
		for i, n := range l.keys(s.by) {
			part := &s.by.pack.parts[i]
			digit := binary(plan.OpSub, n, constant(part.lo-b2i(part.nullable)))
			if part.nullable {
				digit = l.add(program.Node{Op: plan.OpCoalesce, Args: []int{digit, constant(0)}, Wide: true})
			}
			key = binary(plan.OpAdd, key, binary(plan.OpMul, digit, constant(int64(part.stride))))
		}
	} else if len(s.sizes) > radixAlone {
		l.no("aggregate")
	}
	set := make([]int64, 0, len(s.open))
	for b := range s.open {
		if grouped {
			set = append(set, (b.prefix-prefix.lo)*int64(s.by.pack.card)+int64(s.number[b.group]))
		} else {
			set = append(set, b.prefix)
		}
	}
	slices.Sort(set)
	in := l.add(program.Node{Op: plan.OpIn, Args: []int{key}, Index: len(l.q.Sets), Nullable: l.prog.Nodes[key].Nullable})
	l.q.Sets = append(l.q.Sets, slices.Compact(set))
	l.prog.Steps = append(l.prog.Steps, program.Step{Kind: program.StepFilter, Node: in})
}

// byGroup reports whether 63 bits hold the number that a group and a prefix make.
func (s *radixSelect) byGroup(prefix digitValue) bool {
	card := s.by.pack.card
	span, ok := width(prefix.lo, prefix.hi)
	high, low := bits.Mul64(card, uint64(span))
	return len(s.by.axes) > 0 && card != 0 && ok && high == 0 && low <= math.MaxInt64
}

// take takes the counters of a pass, and opens the buckets that places are in.
func (s *radixSelect) take(groups *groups, r *program.Result, digits []deviceDigit) {
	type counter struct {
		prefix, n int64
	}
	value := &digits[len(digits)-1]
	lo := s.g.accs[s.acc].arg.lo >> s.shift
	find := groups.finder()
	children := map[radixBucket][]counter{} // by what was open; of the first pass, of all values of a group
	first := s.open == nil
	if first {
		n := len(groups.counts)
		s.sizes, s.number, s.places, s.found = make([]int64, n), make([]uint64, n), make([][]int64, n), make([][]uint64, n)
	}
	for i := range r.Numbers {
		g := find(func(part int) uint64 { return digits[part].of(r, i) })
		c := counter{lo + int64(value.of(r, i)), r.Rows[i]}
		parent := radixBucket{group: g}
		if first {
			s.sizes[g] += c.n
			s.number[g] = 0
			for part := range s.by.pack.parts {
				s.number[g] += digits[part].of(r, i) * s.by.pack.parts[part].stride
			}
		} else {
			parent.prefix = c.prefix >> (s.before - s.shift)
		}
		children[parent] = append(children[parent], c)
	}
	was := s.open
	if first {
		was = map[radixBucket][]radixPlace{}
		for g, n := range s.sizes {
			s.places[g] = s.wants(n)
			s.found[g] = make([]uint64, len(s.places[g]))
			for i, place := range s.places[g] {
				b := radixBucket{group: uint32(g)}
				was[b] = append(was[b], radixPlace{i, place})
			}
		}
	}
	s.open, s.rows = map[radixBucket][]radixPlace{}, 0
	for b, places := range was {
		list := children[b]
		slices.SortFunc(list, func(x, y counter) int { return int(b2i(x.prefix > y.prefix) - b2i(x.prefix < y.prefix)) })
		before := int64(0)
		for _, p := range places { // ascending
			for before+list[0].n <= p.rank {
				before, list = before+list[0].n, list[1:]
			}
			if s.shift == 0 {
				s.found[b.group][p.at] = uint64(list[0].prefix) - uint64(s.g.accs[s.acc].arg.lo)
				continue
			}
			in := radixBucket{b.group, list[0].prefix}
			if s.open[in] == nil {
				s.rows += list[0].n
			}
			s.open[in] = append(s.open[in], radixPlace{p.at, p.rank - before})
		}
	}
	if s.before = s.shift; s.rows <= radixCounters && s.step == radixStep {
		s.shift = 0
	} else {
		s.next(float64(len(s.open)))
	}
}

// selects takes the first pass of a selection, and runs the others. ok is false where the processor has to.
func (a *accelerator) selects(s *radixSelect, groups *groups, r *program.Result, digits []deviceDigit) (ok bool, err error) {
	for s.take(groups, r, digits); len(s.open) > 0; s.take(groups, r, digits) {
		var l *lowering
		l, digits = s.pass()
		l.place(s.expect(), a.limits.SharedBytes, a.limits.Memory, float64(s.rows))
		if l.why != "" {
			return a.leave(l.why), nil
		}
		if r, err = a.run(l); r == nil || err != nil {
			return false, err
		}
	}
	groups.states[s.acc].extra = s
	return true, groups.account()
}

// values implements ranked: of places that percentiles want.
func (s *radixSelect) values(groups []uint32, places [][]int64, _ func(n int, f func(i int))) [][]uint64 {
	out := make([][]uint64, len(groups))
	for k, g := range groups {
		for _, place := range places[k] {
			i, _ := slices.BinarySearch(s.places[g], place)
			out[k] = append(out[k], s.found[g][i])
		}
	}
	return out
}

func (s *radixSelect) size(g uint32) int64 { return s.sizes[g] }

func (s *radixSelect) groupCount() int { return len(s.sizes) }

func (s *radixSelect) bytes() int64 { return int64(len(s.sizes)) * 96 }

func (s *radixSelect) grow(int) {} // it has all groups

// each, add and mergeAll are of values, which nobody has.
func (s *radixSelect) each(func(g uint32, x int64, n int64)) {
	panic("BUG: the values of a radix selection")
}

func (s *radixSelect) add([]uint32, []int64) { panic("BUG: the values of a radix selection") }

func (s *radixSelect) mergeAll(extra, []uint32, []uint32) {
	panic("BUG: the values of a radix selection")
}
