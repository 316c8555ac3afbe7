package olap

import (
	"math"
	"math/bits"
	"slices"

	"pgaccel/gpu/program"
)

// take makes the result of what a device computed: a list of groups, or where these are not
// much fewer than there can be, an array. Few groups are in the order of their numbers, as
// those that the processor finds. Where 64 bits do not hold a group's number the groups have packed
// keys, as in the processor's hash tables.
func (by *grouping) take(r *program.Result, digits []deviceDigit, accs []deviceAcc) (*groups, error) {
	s := by.newGroups()
	by.done = []*groups{s}
	n := len(r.Numbers)
	if n == 0 {
		by.how = groupHash
		if len(by.axes) == 0 {
			by.how = groupSingle
		}
		s.open()
		return s, s.account()
	}
	card := by.pack.card
	sorted := slices.IsSorted(r.Numbers)
	var order []uint64 // of the groups: their numbers, which are below 1<<32, and places in r
	switch {
	case len(by.axes) == 0:
		by.how = groupSingle
		s.open()
	case r.Prefix != nil:
		s.openDigits(r, digits)
	case !sorted && card <= uint64(8*n):
		by.how = groupDense
		s.open()
	default:
		by.how = groupListed
		if s.listed = r.Numbers; !sorted && card <= denseSmall {
			order, s.listed = make([]uint64, n), make([]uint64, n)
			for i, number := range r.Numbers {
				order[i] = number<<32 | uint64(i)
			}
			slices.Sort(order)
			for i, o := range order {
				s.listed[i] = o >> 32
			}
		}
	}
	s.fill(r, accs, order)
	return s, s.account()
}

// openDigits opens a table with the groups of a result, by their digits.
func (s *groups) openDigits(r *program.Result, digits []deviceDigit) {
	s.by.how = groupHash
	s.openTable(len(r.Numbers))
	key := make([]uint64, s.by.pack.words)
	for g := range r.Numbers {
		s.by.pack.packDigits(key, func(i int) uint64 { return digits[i].of(r, g) })
		s.table.insert(key)
	}
	s.resize(len(r.Numbers))
}

// takeCounts makes groups of numbers that were counted, the first ones in their order, which are the groups that are asked for
// where there are as many as were wanted: a group without a value, which has no number, comes behind these. ok is false where
// there are fewer.
func (b *deviceBase) takeCounts(r *program.Result) (ok bool, err error) {
	if uint64(len(r.Numbers)) < b.l.q.Top {
		return false, nil
	}
	s := b.by.newGroups()
	b.by.done = []*groups{s}
	s.openDigits(r, b.digits)
	for i := range s.counts {
		s.counts[i] = 1 // some row came
	}
	return true, s.takeValues(b.set, r, b.digits, true)
}

// packDigits packs the digits of a group's number as values are.
func (p *packer) packDigits(key []uint64, digit func(part int) uint64) {
	clear(key)
	for i := range p.parts {
		a, d := &p.parts[i], digit(i)
		if a.nullable {
			if d == 0 {
				key[a.nullWord] |= 1 << a.nullAt
				continue
			}
			d--
		}
		key[a.word] |= d << a.shift
	}
}

// fill takes what a device computed: with groupDense each group to the place that its number
// says, else in an order, or as they come.
func (s *groups) fill(r *program.Result, accs []deviceAcc, order []uint64) {
	place := func(to *[]int64, from []int64) {
		switch {
		case s.by.how == groupDense:
			s.g.p.x.chunksSideBySide(len(from), func(_, first, end int) { // no two groups have one place
				for i := first; i < end; i++ {
					(*to)[r.Numbers[i]] = from[i]
				}
			})
		case order != nil && from != nil:
			*to = make([]int64, len(from))
			for i, o := range order {
				(*to)[i] = from[uint32(o)]
			}
		case s.table != nil && from != nil: // there may be room for more
			copy(*to, from)
		default:
			*to = from
		}
	}
	place(&s.counts, r.Rows)
	at := func(i int) int { // the group of place i of the result
		if s.by.how == groupDense {
			return int(r.Numbers[i])
		}
		return i
	}
	for k, to := range accs {
		st, a := &s.states[k], &s.g.accs[k]
		if to.acc < 0 || to.more >= 0 {
			s.grow(k, len(s.counts))
		}
		if to.acc < 0 {
			continue
		}
		v := &r.Accs[to.acc]
		if to.more < 0 {
			place(&st.V, v.V)
			place(&st.Hi, v.Hi)
			if a.kind == accFold {
				a.started(st.V)
			}
			continue
		}
		more := &r.Accs[to.more]
		for i := range r.Numbers {
			from := i
			if order != nil {
				from = int(uint32(order[i]))
			}
			switch e := st.extra.(type) {
			case nil: // accZeros
				st.V[at(i)] = b2i(v.V[from] == 1) | b2i(more.V[from] == 1)<<1
			case *intMoments:
				e.m[at(i)] = moment{s0: uint64(v.V[from]), s1: uint64(v.Hi[from]), q0: uint64(more.V[from]), q1: uint64(more.Hi[from])}
			case *floatMoments:
				e.m[at(i)] = fixedMoment([2]uint64{uint64(v.V[from]), uint64(v.Hi[from])}, [2]uint64{uint64(more.V[from]), uint64(more.Hi[from])})
			}
		}
	}
}

// started puts what a fold begins with where no value came: the device has a minimum or maximum there.
func (a *acc) started(v []int64) {
	for i, x := range v {
		if x == math.MinInt64 || x == math.MaxInt64 {
			v[i] = a.fold.Start
		}
	}
}

// fixedMoment is the sum of doubles whose halves, at bit 63, have been added up.
func fixedMoment(high, low [2]uint64) (m moment) {
	var c uint64
	m.s0, c = bits.Add64(high[0]<<63, low[0], 0)
	m.s1, _ = bits.Add64(high[1]<<63|high[0]>>1, low[1], c)
	return m
}

// onlyCounts reports whether all that is asked of the values that accumulator k collects is how many there
// are, of the groups as they are.
func (g *grouper) onlyCounts(k int) bool {
	return len(g.bases) == len(g.sets) && !slices.ContainsFunc(g.refs, func(a aggRef) bool { return a.distinct == k && a.over != nil })
}

// takeValues takes the values of the groups that accumulator k collects: of each pair of a group and a
// value one digit more, or if the device has counted them, their number.
func (s *groups) takeValues(k int, r *program.Result, digits []deviceDigit, counted bool) error {
	value := &digits[len(digits)-1]
	find := s.finder()
	lo := uint64(s.g.accs[k].arg.lo)
	if e, ok := s.states[k].extra.(ranked); ok {
		for i := range r.Numbers {
			g := find(func(part int) uint64 { return digits[part].of(r, i) })
			addOften(e, g, int64(value.of(r, i)+lo), r.Rows[i])
		}
		return s.account()
	}
	e := s.states[k].extra.(*distinct)
	only := s.g.onlyCounts(k)
	counts := make([]int64, len(s.counts))
	for i := range r.Numbers {
		g := find(func(part int) uint64 { return digits[part].of(r, i) })
		if counts[g]++; counted {
			counts[g] = r.Rows[i]
		} else if !only {
			e.addOne(g, int64(value.of(r, i)+lo))
		}
		if i%tileRows == 0 {
			if err := s.account(); err != nil {
				return err
			}
		}
	}
	if only {
		e.counts = counts
	}
	return s.account()
}

// addOften adds a value of a group n times.
func addOften(e ranked, g uint32, x, n int64) {
	if h, ok := e.(*histogram); ok {
		h.addOften(g, x, n)
		return
	}
	index, vals := slices.Repeat([]uint32{g}, tileRows), slices.Repeat([]int64{x}, tileRows)
	for ; n > 0; n -= min(n, tileRows) {
		e.add(index[:min(n, tileRows)], vals[:min(n, tileRows)])
	}
}

// finder returns a function that says which group has these digits.
func (s *groups) finder() func(digit func(part int) uint64) uint32 {
	by := s.by
	number := func(digit func(part int) uint64) (n uint64) {
		for i := range by.pack.parts {
			n += digit(i) * by.pack.parts[i].stride
		}
		return n
	}
	switch {
	case by.how == groupSingle:
		return func(func(int) uint64) uint32 { return 0 }
	case by.how == groupDense:
		return func(digit func(int) uint64) uint32 { return uint32(number(digit)) }
	case s.table != nil:
		key := make([]uint64, by.pack.words)
		return func(digit func(int) uint64) uint32 {
			by.pack.packDigits(key, digit)
			g, _ := s.table.find(key)
			return g
		}
	}
	listed := newWordTable(1, len(s.listed))
	for _, n := range s.listed {
		listed.insert([]uint64{n})
	}
	key := make([]uint64, 1)
	return func(digit func(int) uint64) uint32 {
		key[0] = number(digit)
		g, _ := listed.find(key)
		return g
	}
}
