package olap

import (
	"math"
	"math/bits"

	"pgaccel/gpu/program"
)

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
	key := l.node(b.key)
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
