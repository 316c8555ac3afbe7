package program

import (
	"math"
	"slices"

	"pgaccel/compress"
)

// lookup makes a lookup over some node, and nodes that read it.
func (m *maker) lookup() {
	key := m.leaf(true)
	for range 5 {
		if b := m.bounds[key]; b.lo >= math.MinInt64/4 && b.hi <= math.MaxInt64/4 && !truth(b) {
			break
		}
		key = m.leaf(true)
	}
	B := m.bounds[key]
	l := Lookup{Kind: LookupKind(m.IntN(5)), Key: key, Left: m.chance(4)}
	d := LookupData{}
	size := int64(1 + m.IntN(700))
	if span := uint64(B.hi) - uint64(B.lo); span < 5000 && !m.chance(4) {
		size = int64(span) + 1
	} else if B.hi == math.MaxInt64 {
		l.Kind = LookupHash
	}
	d.Lo, d.Size = m.within(B.lo, B.hi), size
	if !m.chance(4) {
		d.Lo = B.lo
	}
	if d.Lo > math.MaxInt64-size {
		d.Lo = B.lo
	}
	entries := uint32(1 + m.IntN(200))
	d.Null = uint32(m.IntN(int(entries)))
	if many, _ := m.p.many(); many < 0 && l.Kind != LookupBits && m.chance(3) {
		l.Many = true
		d.First, d.Partners = m.partners(entries)
	}
	full := m.chance(3)
	absent := func() bool { return !full && m.chance(4) }
	for i := range size {
		e := uint32(m.IntN(int(entries)))
		switch l.Kind {
		case LookupBits:
			if i%64 == 0 {
				d.Bits = append(d.Bits, 0)
			}
			if !absent() {
				d.Bits[i>>6] |= 1 << (i & 63)
			}
		case Lookup8:
			if absent() {
				e = math.MaxUint8
			}
			d.E8 = append(d.E8, uint8(e))
		case Lookup16:
			if absent() {
				e = math.MaxUint16
			}
			d.E16 = append(d.E16, uint16(e))
		case Lookup32:
			if absent() {
				e = math.MaxUint32
			}
			d.E32 = append(d.E32, e)
		}
	}
	if l.Kind == LookupHash && !l.Many && m.chance(2) { // the device makes the table
		d.Keys = []int64{B.lo, m.within(B.lo, B.hi), m.within(B.lo, B.hi)}
		slices.Sort(d.Keys)
		d.Keys = slices.Compact(d.Keys)
		for k := m.within(B.lo, B.hi); len(d.Keys) < int(size) && k < B.hi; k++ {
			if !slices.Contains(d.Keys, k) {
				d.Keys = append(d.Keys, k)
			}
		}
		for range d.Keys {
			d.Entries = append(d.Entries, uint32(m.IntN(int(entries))))
		}
		if len(d.Keys) <= int(entries) && m.chance(2) {
			d.Entries = nil
		}
	} else if l.Kind == LookupHash {
		d.Hash(int(size))
		for range size {
			d.Put(m.within(B.lo, B.hi), uint32(m.IntN(int(entries))))
		}
	}
	if l.Kind == LookupBits && l.Left {
		l.Left = false
	}
	at := len(m.p.Lookups)
	if l.Kind != LookupBits {
		for range m.IntN(3) {
			o, od := Out{Nullable: m.chance(3), Wide: m.chance(3)}, OutData{}
			for range entries {
				od.Values = append(od.Values, m.within(-50, 50))
				if o.Wide {
					od.Values[len(od.Values)-1] *= 1 << 35
				}
				od.Nulls = append(od.Nulls, uint8(m.IntN(4)/3))
			}
			if !o.Nullable {
				od.Nulls = nil
			}
			l.Outs, d.Outs = append(l.Outs, o), append(d.Outs, od)
		}
	}
	m.p.Lookups = append(m.p.Lookups, l)
	m.q.Lookups = append(m.q.Lookups, d)
	m.p.Steps = append(m.p.Steps, Step{Kind: StepProbe, Index: at, Permille: uint16(125 * m.IntN(9))})
	if l.Kind == LookupBits {
		return
	}
	m.add(Node{Op: OpEntry, Index: at}, interval{0, int64(entries) - 1})
	for i, o := range l.Outs {
		b := interval{-50, 50}
		if o.Wide {
			b = interval{-50 << 35, 50 << 35}
		}
		m.add(Node{Op: OpOut, Index: at, Out: i, Nullable: o.Nullable}, b)
	}
}

// partners are those of keys, as many as there are entries.
func (m *maker) partners(entries uint32) (first, partners []uint32) {
	first = []uint32{0}
	for range entries {
		n := m.IntN(4)
		switch m.IntN(16) {
		case 0:
			n = m.IntN(100)
		case 1:
			n = 31 + m.IntN(3)
		}
		for range n {
			partners = append(partners, uint32(m.IntN(int(entries))))
		}
		first = append(first, uint32(len(partners)))
	}
	return first, partners
}

// steps adds other steps around the probes.
func (m *maker) steps() {
	for range m.IntN(3) {
		var s Step
		s.Permille = uint16(125 * m.IntN(9))
		probes := true
		switch m.IntN(3) {
		case 0:
			s.Kind, s.Node, s.Index = StepRange, m.leaf(true), len(m.q.Ranges)
			b := m.bounds[s.Node]
			x, y := m.within(b.lo, b.hi), m.within(b.lo, b.hi)
			if m.chance(2) {
				x = b.lo
			}
			if m.chance(2) {
				y = b.hi
			}
			r := Range{min(x, y), max(x, y)}
			if m.chance(20) {
				r = Range{1, 0}
			} else if m.chance(6) {
				r = Range{math.MinInt64, math.MaxInt64}
			}
			m.q.Ranges = append(m.q.Ranges, r)
		case 1:
			s.Kind, s.Node, s.Index = StepBits, m.leaf(true), len(m.q.Bits)
			b := m.bounds[s.Node]
			set := Bits{Set: compress.Set{Lo: m.within(b.lo, b.hi), Size: int64(m.IntN(600))}}
			if !m.chance(3) {
				set.Lo = b.lo
			}
			if set.Lo > math.MaxInt64-1000 {
				set.Lo = b.lo
			}
			set.Bits = m.bitmap(int(set.Size), 2)
			m.q.Bits = append(m.q.Bits, set)
		case 2:
			risky := m.chance(2)
			probes = !risky
			s.Kind, s.Node, s.Risky = StepFilter, m.condition(!risky, 2), risky
		}
		// It may be anywhere behind the probes that it needs.
		at := 0
		for i, t := range m.p.Steps {
			if t.Kind == StepProbe && m.p.lookupsOf(s.Node)[t.Index] || t.Risky && !s.Risky {
				at = i + 1
			}
		}
		if probes {
			at += m.IntN(len(m.p.Steps) - at + 1)
		}
		m.p.Steps = slices.Insert(m.p.Steps, at, s)
	}
}
