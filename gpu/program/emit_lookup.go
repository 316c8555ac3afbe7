package program

import (
	"fmt"
	"math"

	"pgaccel/gpu/device"
)

// lookupNames are the parameters of a lookup.
type lookupNames struct {
	bits, entries string
}

func (g *generator) lookup(i int) (n lookupNames) {
	l := &g.p.Lookups[i]
	name := fmt.Sprintf("l%d", i)
	n.bits = g.pointer("uint32_t", name+"_bits", func(a *arguments) device.Pointer { return a.b.Lookups[i] })
	if g.staged(g.t.StageLookups, i) && l.Kind != LookupHash {
		n.bits = "s_" + name
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

// rows is how many gathered rows a lane has at a time.
func (t *Tuning) rows() int { return max(1, min(t.Rows, 2)) }

// testBit is the condition that a bit of a bitmap is set.
func (g *generator) testBit(staged bool, bits, at string) string {
	if staged {
		return fmt.Sprintf("shared_bit_of(%s, %s)", bits, at)
	}
	return fmt.Sprintf("bit_of(%s, %s)", bits, at)
}

// interval adds the bounds of values; as 32-bit ones where the values are.
func (g *generator) interval(name string, wide bool, of func(a *arguments) (lo, hi int64)) (first, last string) {
	clamped := func(a *arguments) (int64, int64) {
		lo, hi := of(a)
		if lo > math.MaxInt32 || hi < math.MinInt32 {
			return 1, 0
		}
		return max(lo, math.MinInt32), min(hi, math.MaxInt32)
	}
	if wide {
		clamped = of
	} else {
		name += "_narrow"
	}
	first = g.param("int64_t", name+"_first", func(a *arguments) uint64 { lo, _ := clamped(a); return uint64(lo) })
	last = g.param("int64_t", name+"_last", func(a *arguments) uint64 { _, hi := clamped(a); return uint64(hi) })
	return "(" + ctype(wide) + ")" + first, "(" + ctype(wide) + ")" + last
}

// position emits the distance of a value from the begin of an interval, and the condition
// that the value lies in it.
func (r *row) position(v value, name string, span func(a *arguments) (lo, size int64)) partner {
	g := r.g
	in, at := g.name("in"), g.name("at")
	first, last := g.interval(name, v.wide, func(a *arguments) (int64, int64) { return spanOf(span(a)) })
	lo := g.param("int64_t", name+"_lo", func(a *arguments) uint64 { lo, _ := span(a); return uint64(lo) })
	g.line("const bool %s = %s && %s && %s >= %s && %s <= %s;", in, r.alive, v.notNull(), v.v, first, v.v, last)
	g.line("const uint32_t %s = (uint32_t)%s - (uint32_t)%s;", at, v.v, lo)
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
			return a.b.Lookups[i] + device.Pointer(padded(8*a.q.Lookups[i].slots()))
		})
		mask := g.param("uint64_t", fmt.Sprintf("l%d_mask", i), func(a *arguments) uint64 { return uint64(a.q.Lookups[i].slots() - 1) })
		f.position = g.name("e")
		g.line("const uint32_t %s = %s && %s ? hash_find(%s, %s, %s, %s) : 0xffffffffu;", f.position, r.alive, key.notNull(), keys, entries, mask, key.as(true))
		f.in = f.position + " != 0xffffffffu"
	} else {
		f = r.position(key, fmt.Sprintf("l%d", i), func(a *arguments) (int64, int64) { return a.q.Lookups[i].Lo, a.q.Lookups[i].Size })
	}
	r.found[i] = f
	return f
}

// none is the entry of no partner.
var none = map[LookupKind]string{Lookup8: "0xffu", Lookup16: "0xffffu", Lookup32: "0xffffffffu"}

// passes emits a probe and returns the condition that there is a partner.
func (r *row) passes(i int) string {
	f := r.probe(i)
	if r.g.p.Lookups[i].Kind == LookupHash {
		return f.in
	}
	g := r.g
	if kind := g.p.Lookups[i].Kind; r.entries[i] && kind != LookupBits {
		// The entry is wanted anyway, and says it, too.
		e := g.name(fmt.Sprintf("e%d", i))
		g.line("const uint32_t %s = %s ? (uint32_t)__ldg(%s + %s) : %s;", e, f.in, g.lookup(i).entries, f.position, none[kind])
		r.memo[fmt.Sprint("entry", i)] = value{v: e}
		return fmt.Sprintf("%s != %s", e, none[kind])
	}
	return fmt.Sprintf("%s && %s", f.in, g.testBit(g.staged(g.t.StageLookups, i), g.lookup(i).bits, f.position))
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
		none := none[l.Kind]
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
