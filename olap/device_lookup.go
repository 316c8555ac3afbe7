package olap

import (
	"math"

	"pgaccel/gpu/program"
)

// manyMost bounds the partners of a key, so that a warp numbers those of its rows with 32 bits.
const manyMost = math.MaxUint32 / 32

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
		o, d = program.Out{Nullable: from.Nulls != nil, Wide: wide(from.lo, from.hi)}, from.OutData
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
	key := l.node(b.key)
	if l.why != "" {
		return 0
	}
	i := len(l.prog.Lookups)
	l.lookups[probe] = i
	lookup, data := b.lut.onDevice()
	lookup.Key = key
	if many := b.lut.many; many != nil && l.prog.Sink.Kind == program.SinkGroups {
		lookup.Many, data.First, data.Partners = true, many.first, many.entry
		if many.most > manyMost {
			return l.no("join")
		}
	}
	l.prog.Lookups = append(l.prog.Lookups, lookup)
	l.q.Lookups = append(l.q.Lookups, data)
	return i
}

// onDevice returns the lookup as a device has it, without the key and outputs. Where only
// some of the keys occur it has no others, so that zone maps exclude segments.
func (l *lookup) onDevice() (program.Lookup, program.LookupData) {
	to, d := program.Lookup{Kind: l.kind, Left: l.left}, l.LookupData
	if l.left || l.Build != nil || l.keyLo > l.keyHi || l.kind == program.LookupHash {
		return to, d
	}
	from := l.keyLo - l.Lo
	if l.kind == program.LookupBits {
		from &^= 63
	}
	d.Lo, d.Size = l.Lo+from, l.keyHi-l.Lo-from+1
	switch l.kind {
	case program.LookupBits:
		d.Bits = l.Bits[from/64 : (from+d.Size+63)/64]
	case program.Lookup8:
		d.E8 = l.E8[from : from+d.Size]
	case program.Lookup16:
		d.E16 = l.E16[from : from+d.Size]
	case program.Lookup32:
		d.E32 = l.E32[from : from+d.Size]
	}
	return to, d
}

// builds reports whether a device is to make the probe's lookup.
func (b *probe) builds() bool { return b.lut != nil && b.lut.Build != nil }
