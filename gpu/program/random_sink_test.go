package program

import (
	"math"
	"math/bits"

	"pgaccel/compress"
	"pgaccel/plan"
)

// digits makes a group's number of nodes of few values.
func (m *maker) digits(most uint64) uint64 {
	groups := uint64(1)
	for range m.IntN(4) {
		n := m.value(true, 1)
		span := uint64(m.bounds[n].hi) - uint64(m.bounds[n].lo)
		if span > most || (span+2)*groups > most {
			continue
		}
		d := Digit{Node: n, Nullable: m.p.Nodes[n].Nullable}
		m.p.Sink.Digits = append(m.p.Sink.Digits, d)
		m.q.Digits = append(m.q.Digits, DigitData{Lo: m.bounds[n].lo, Stride: groups})
		groups *= span + 1 + uint64(number(d.Nullable))
	}
	return groups
}

func (m *maker) sink() {
	s := &m.p.Sink
	many, _ := m.p.many()
	switch m.IntN(8) {
	case 0:
		if many < 0 {
			s.Kind = SinkBitmap
			return
		}
	case 1:
		if many < 0 {
			m.build()
			return
		}
	}
	s.Place = Place(m.IntN(4))
	m.q.Groups = 1
	switch s.Place {
	case PlaceShared, PlaceGlobal:
		m.q.Groups = m.digits(3000)
	case PlaceHash:
		m.q.Groups = m.digits(1 << 50)
		m.q.Expect = min(m.q.Groups, m.pairs())
	}
	if s.Place == PlaceHash && m.chance(2) {
		m.prefix()
	}
	if s.Place >= PlaceGlobal && m.chance(4) {
		s.Distinct = true
		if m.chance(2) {
			m.counted()
		}
		if s.Counted && m.chance(2) {
			s.Top, s.TopDesc, s.TopBy = true, m.chance(2), -1
			m.q.Top = uint64(m.IntN(50))
			if from, to := s.Prefix, len(s.Digits); m.chance(2) {
				if s.Prefix == 0 {
					to--
				}
				if from < to {
					m.topThen(from + m.IntN(to-from))
				}
			}
		}
		return
	}
	for range m.IntN(6) {
		a := Acc{Kind: AccKind(m.IntN(6)), Arg: -1, Filter: -1}
		if a.Kind != AccRows {
			a.Arg = m.value(true, 2)
		}
		if a.Kind == AccSum && !m.bounds[a.Arg].small() {
			a.Kind = AccSum128
		}
		if m.chance(4) {
			a.Filter = m.condition(true, 1)
		}
		s.Accs = append(s.Accs, a)
	}
	if s.Place != PlaceSingle && m.chance(3) {
		s.Top, s.TopDesc, s.TopBy = true, m.chance(2), m.IntN(len(s.Accs)+1)-1
		m.q.Top = uint64(m.IntN(50)) * uint64(m.IntN(2)+m.IntN(100))
		if k := m.IntN(2*len(s.Digits) + 1); k < len(s.Digits) {
			if m.topThen(k); m.chance(4) {
				s.TopBy = TopTied
			}
		}
	}
	for m.chance(3) {
		s.Having = append(s.Having, m.IntN(len(s.Accs)+1)-1)
		r := Range{math.MinInt64, math.MaxInt64}
		if m.chance(2) {
			r.Lo = m.Int64N(60) - 20
		}
		if m.chance(2) {
			r.Hi = m.Int64N(1000)
		}
		m.q.Having = append(m.q.Having, r)
	}
	if m.faulty {
		v := m.checkedNode(m.value(true, 1), m.value(true, 1))
		s.Accs = append(s.Accs, Acc{Kind: AccSum128, Arg: v, Filter: -1})
	}
}

// topThen has groups that tie be in the order of a digit.
func (m *maker) topThen(k int) {
	s := &m.p.Sink
	s.TopThen, s.TopThenDesc = TopNumber, m.chance(2)
	if k < s.Prefix {
		s.TopThen = TopPrefix
	}
	b := m.bounds[s.Digits[k].Node]
	m.q.TopDigit = DigitPlace{m.q.Digits[k].Stride, uint64(b.hi) - uint64(b.lo) + 1 + uint64(number(s.Digits[k].Nullable))}
}

// pairs bounds about how many rows come to the sink.
func (m *maker) pairs() uint64 {
	if many, _ := m.p.many(); many >= 0 {
		return 1 << 20
	}
	return 20000
}

// counted has groups counted by the number of some digits, where that can be.
func (m *maker) counted() {
	s := &m.p.Sink
	last := len(s.Digits) - 1
	switch {
	case last < 0 || s.Prefix > 1:
		return
	case s.Prefix == 0:
		m.q.Counted = m.q.Digits[last].Stride
	default:
		m.q.Counted = 1
		for i, d := range s.Digits[1:] {
			b := m.bounds[d.Node]
			m.q.Counted = m.q.Digits[i+1].Stride * (uint64(b.hi) - uint64(b.lo) + 1 + uint64(number(d.Nullable)))
		}
	}
	s.Counted = m.q.Counted <= 1<<20
}

// prefix puts a digit of many values before the others, or two.
func (m *maker) prefix() {
	s := &m.p.Sink
	if m.q.Groups > SuffixMax {
		return
	}
	product := uint64(1)
	var digits []Digit
	var data []DigitData
	for range 1 + m.IntN(2) {
		n := m.leaf(true)
		d := Digit{Node: n, Nullable: m.p.Nodes[n].Nullable}
		values := uint64(m.bounds[n].hi) - uint64(m.bounds[n].lo) + 1 + uint64(number(d.Nullable))
		hi, lo := bits.Mul64(product, values)
		if hi != 0 || values < 2 {
			continue
		}
		digits, data = append(digits, d), append(data, DigitData{Lo: m.bounds[n].lo, Stride: product})
		product = lo
	}
	if s.Prefix = len(digits); s.Prefix > 0 {
		s.Digits, m.q.Digits, m.q.Groups = append(digits, s.Digits...), append(data, m.q.Digits...), 0
		m.q.Expect = m.pairs()
	}
}

func (m *maker) build() {
	s := &m.p.Sink
	s.Kind, s.Build = SinkBuild, LookupKind(m.IntN(4))
	// A column of different values, behind the others.
	column := len(m.p.Columns)
	m.p.Columns = append(m.p.Columns, Column{Nullable: true})
	next := int64(-7)
	for i := range m.q.Segments {
		seg := &m.q.Segments[i]
		sc := SegmentColumn{Nulls: m.bitmap(seg.Rows, 5), Min: math.MaxInt64, Max: math.MinInt64}
		values := make([]int64, seg.Rows)
		for j := range values {
			values[j] = next
			next += int64(1 + m.IntN(2))
			if sc.Nulls[j>>6]>>(j&63)&1 == 0 {
				sc.Min, sc.Max = min(sc.Min, values[j]), max(sc.Max, values[j])
			}
		}
		if m.chance(30) && seg.Rows > 40 {
			values[3] = values[33]
		}
		sc.Words = compress.Words(compress.Encode(values, func(words int) []uint32 { return make([]uint32, words) }))
		seg.Columns = append(seg.Columns, sc)
	}
	s.Key = m.add(Node{Op: OpColumn, Index: column, Nullable: true}, interval{-7, next})
	m.q.BuildLo, m.q.BuildSize = -9, next+20
	groups := uint64(200)
	if s.Build == Lookup32 {
		groups = 1 << 20
	}
	if s.Build != LookupBits {
		m.digits(groups)
	} else if s.Repeats = m.chance(2); s.Repeats {
		s.Key = m.add(Node{Op: plan.OpDiv, Args: []int{s.Key, m.constant(interval{1, 5})}, Nullable: true}, interval{-7, next})
	}
}
