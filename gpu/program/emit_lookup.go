package program

import (
	"fmt"

	"pgaccel/gpu/device"
)

// lookupNames are the parameters of a lookup.
type lookupNames struct {
	bits, entries, lo, size, null string
}

func (g *generator) lookup(i int) (n lookupNames) {
	l := &g.p.Lookups[i]
	name := fmt.Sprintf("l%d", i)
	n.lo = g.param("int64_t", name+"_lo", func(a *arguments) uint64 { return uint64(a.q.Lookups[i].Lo) })
	n.size = g.param("uint32_t", name+"_size", func(a *arguments) uint64 { return uint64(max(a.q.Lookups[i].Size, 0)) })
	n.bits = g.pointer("uint32_t", name+"_bits", func(a *arguments) device.Pointer { return a.b.Lookups[i] })
	if g.staged(g.t.StageLookups, i) && l.Kind != LookupHash {
		n.bits = "s_" + name
	}
	if l.Left {
		n.null = g.param("uint32_t", name+"_null", func(a *arguments) uint64 { return uint64(a.q.Lookups[i].Null) })
	}
	entry := map[LookupKind]string{Lookup8: "uint8_t", Lookup16: "uint16_t", Lookup32: "uint32_t"}[l.Kind]
	if entry != "" {
		n.entries = g.pointer(entry, name+"_entries", func(a *arguments) device.Pointer {
			return a.b.Lookups[i] + device.Pointer(bitmapBytes(a.q.Lookups[i].Size))
		})
	}
	return n
}

// staged reports whether a bitmap is in shared memory.
func (g *generator) staged(list []bool, i int) bool { return i < len(list) && list[i] }

// testBit is the condition that a bit of a bitmap is set.
func (g *generator) testBit(staged bool, bits, at string) string {
	if staged {
		return fmt.Sprintf("shared_bit_of(%s, %s)", bits, at)
	}
	return fmt.Sprintf("bit_of(%s, %s)", bits, at)
}

// position emits the distance of a value from lo and the condition that it is below size.
func (r *row) position(v value, lo, size string) partner {
	g := r.g
	distance, in, at := g.name("d"), g.name("in"), g.name("at")
	g.line("const uint64_t %s = (uint64_t)%s - (uint64_t)%s;", distance, v.as(true), lo)
	g.line("const bool %s = %s && %s && %s < %s;", in, r.alive, v.notNull(), distance, size)
	g.line("const uint32_t %s = (uint32_t)%s;", at, distance)
	return partner{in, at}
}

// probe emits a lookup and returns where its key's partner may be: for LookupHash the
// entry itself.
func (r *row) probe(i int) partner {
	if f, ok := r.found[i]; ok {
		return f
	}
	g, l := r.g, &r.g.p.Lookups[i]
	key := r.node(l.Key, "")
	var f partner
	if l.Kind == LookupHash {
		keys := g.pointer("int64_t", fmt.Sprintf("l%d_keys", i), func(a *arguments) device.Pointer { return a.b.Lookups[i] })
		entries := g.pointer("uint32_t", fmt.Sprintf("l%d_slots", i), func(a *arguments) device.Pointer {
			return a.b.Lookups[i] + device.Pointer(padded(8*int64(len(a.q.Lookups[i].HashKeys))))
		})
		mask := g.param("uint64_t", fmt.Sprintf("l%d_mask", i), func(a *arguments) uint64 { return uint64(len(a.q.Lookups[i].HashKeys) - 1) })
		f.position = g.name("e")
		g.line("const uint32_t %s = %s && %s ? hash_find(%s, %s, %s, %s) : 0xffffffffu;", f.position, r.alive, key.notNull(), keys, entries, mask, key.as(true))
		f.in = f.position + " != 0xffffffffu"
	} else {
		n := g.lookup(i)
		f = r.position(key, n.lo, n.size)
	}
	r.found[i] = f
	return f
}

// passes emits a probe and returns the condition that there is a partner.
func (r *row) passes(i int) string {
	f := r.probe(i)
	if r.g.p.Lookups[i].Kind == LookupHash {
		return f.in
	}
	return fmt.Sprintf("%s && %s", f.in, r.g.testBit(r.g.staged(r.g.t.StageLookups, i), r.g.lookup(i).bits, f.position))
}

// entry emits the entry of a lookup that has been probed: it is valid where alive is.
func (r *row) entry(i int) string {
	key := fmt.Sprint("entry", i)
	if v, ok := r.memo[key]; ok {
		return v.v
	}
	g, l := r.g, &r.g.p.Lookups[i]
	f := r.probe(i)
	null := "0"
	if l.Left {
		null = g.param("uint32_t", fmt.Sprintf("l%d_null", i), func(a *arguments) uint64 { return uint64(a.q.Lookups[i].Null) })
	}
	e := g.name(fmt.Sprintf("e%d", i))
	if l.Kind == LookupHash {
		g.line("const uint32_t %s = %s ? %s : %s;", e, f.in, f.position, null)
	} else {
		none := map[LookupKind]string{Lookup8: "0xffu", Lookup16: "0xffffu", Lookup32: "0xffffffffu"}[l.Kind]
		n := g.lookup(i)
		if l.Left {
			raw := g.name("raw")
			g.line("const uint32_t %s = %s ? (uint32_t)__ldg(%s + %s) : %s;", raw, f.in, n.entries, f.position, none)
			g.line("const uint32_t %s = %s != %s ? %s : %s;", e, raw, none, raw, null)
		} else {
			// Whoever is alive has a partner.
			g.line("const uint32_t %s = %s && %s ? (uint32_t)__ldg(%s + %s) : 0;", e, r.alive, f.in, n.entries, f.position)
		}
	}
	r.memo[key] = value{v: e}
	return e
}

// out emits OpOut.
func (r *row) out(i int) value {
	g, n := r.g, &r.g.p.Nodes[i]
	l, out := n.Index, n.Out
	o := g.p.Lookups[l].Outs[out]
	e := r.entry(l)
	name := fmt.Sprintf("l%d_out%d", l, out)
	values := g.pointer(ctype(o.Wide), name, func(a *arguments) device.Pointer {
		at, _ := outOffsets(&a.q.Program.Lookups[l], &a.q.Lookups[l], out)
		return a.b.Outs[l] + device.Pointer(at)
	})
	v, null := value{v: g.name("out"), wide: o.Wide}, ""
	g.line("const %s %s = %s ? __ldg(%s + %s) : 0;", ctype(o.Wide), v.v, r.alive, values, e)
	if o.Nullable {
		nulls := g.pointer("uint8_t", name+"_nulls", func(a *arguments) device.Pointer {
			_, at := outOffsets(&a.q.Program.Lookups[l], &a.q.Lookups[l], out)
			return a.b.Outs[l] + device.Pointer(at)
		})
		null = fmt.Sprintf("%s && __ldg(%s + %s) != 0", r.alive, nulls, e)
	}
	return r.define(i, v.as(n.Wide), null)
}
