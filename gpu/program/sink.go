package program

import "fmt"

// number emits the number that some digits, those from, ..., to-1, make of a row: of 64 bits where
// wide, else of 32.
func (g *generator) number(r *row, from, to int, wide bool) string {
	t := "uint32_t"
	if wide {
		t = "uint64_t"
	}
	name := g.name("group")
	terms := ""
	for i := from; i < to; i++ {
		d := g.p.Sink.Digits[i]
		v := r.node(d.Node, "")
		lo := g.param("int64_t", fmt.Sprintf("d%d_lo", i), func(a *arguments) uint64 { return uint64(a.q.Digits[i].Lo) })
		stride := g.param("uint64_t", fmt.Sprintf("d%d_stride", i), func(a *arguments) uint64 { return a.q.Digits[i].Stride })
		digit := fmt.Sprintf("((%s)%s - (%s)%s)", t, v.as(wide), t, lo)
		if d.Nullable {
			digit = fmt.Sprintf("(%s + 1)", digit)
			if v.null != "" {
				digit = fmt.Sprintf("(%s ? 0 : %s)", v.null, digit)
			}
		}
		if terms != "" {
			terms += " + "
		}
		terms += fmt.Sprintf("%s * (%s)%s", digit, t, stride)
	}
	if terms == "" {
		terms = "0"
	}
	g.line("const %s %s = %s;", t, name, terms)
	return name
}

// openSink emits what comes before the first row.
func (g *generator) openSink() {
	g.stageBitmaps()
	switch {
	case g.p.Sink.Kind != SinkGroups:
	case g.p.Sink.Place == PlaceShared:
		words := g.param("uint32_t", "table_words", func(a *arguments) uint64 { return uint64(a.l.replicas * a.l.tableWords) })
		at := g.param("uint32_t", "shared_table", func(a *arguments) uint64 { return uint64(a.l.sharedTable) })
		g.line("uint32_t *const tables = (uint32_t *)(dynamic + %s);", at)
		g.line("for (uint32_t i = threadIdx.x; i < %s; i += %d)", words, g.t.Threads)
		g.line("\ttables[i] = 0;")
		// Copies of a word are neighbours, and lanes have different ones: then they meet neither
		// each other nor each other's banks.
		g.line("const uint32_t replica = lane & (%s - 1);", g.replicas())
		g.line("uint64_t *const keys64 = (uint64_t *)tables + replica;")
		g.line("uint32_t *const words32 = tables + %d * %s + replica;", 2*g.p.places().keys, g.stride())
		g.line("(void)keys64;")
	case g.p.Sink.Place == PlaceSingle:
		g.line("uint64_t total_rows = 0;")
		for i, a := range g.p.Sink.Accs {
			if !g.p.places().accs[i].same {
				g.line("uint64_t total%d = 0;", i)
				if a.Kind == AccSum128 {
					g.line("uint64_t total%d_high = 0;", i)
				}
			}
		}
	}
	g.line("__syncthreads();")
}

// replicas is the number of a block's tables, a power of two of at most a warp.
func (g *generator) replicas() string {
	return g.param("uint32_t", "replicas", func(a *arguments) uint64 { return uint64(a.l.replicas) })
}

// stride is how far apart arrays of a block's tables lie: the slots of all of them.
func (g *generator) stride() string {
	return g.param("uint32_t", "stride", func(a *arguments) uint64 { return uint64(a.l.replicas) * a.l.slots })
}

// stageBitmaps emits the copies to shared memory.
func (g *generator) stageBitmaps() {
	g.line("PGACCEL_DYNAMIC_SHARED(dynamic);")
	g.line("(void)dynamic;")
	one := func(name, bits string, at, bytes func(a *arguments) int64) {
		offset := g.param("uint32_t", name+"_shared", func(a *arguments) uint64 { return uint64(at(a)) })
		words := g.param("uint32_t", name+"_words", func(a *arguments) uint64 { return uint64(bytes(a) / 8) })
		g.line("uint32_t *const s_%s = (uint32_t *)(dynamic + %s);", name, offset)
		g.line("stage((uint64_t *)s_%s, (const uint64_t *)%s, %s);", name, bits, words)
	}
	for i := range g.p.Lookups {
		if g.staged(g.t.StageLookups, i) {
			g.lookup(i)
			one(fmt.Sprintf("l%d", i), fmt.Sprintf("p.l%d_bits", i),
				func(a *arguments) int64 { return a.l.stagedLookups[i] },
				func(a *arguments) int64 { return bitmapBytes(a.q.Lookups[i].Size) })
		}
	}
	for i, staged := range g.t.StageBits {
		if staged {
			g.bitsOf(i)
			one(fmt.Sprintf("b%d", i), fmt.Sprintf("p.b%d_bits", i),
				func(a *arguments) int64 { return a.l.stagedBits[i] },
				func(a *arguments) int64 { return bitmapBytes(a.q.Bits[i].Size) })
		}
	}
}

// sink emits what becomes of a row that has passed.
func (g *generator) sink(r *row) {
	if g.p.Sink.Kind == SinkBitmap {
		return
	}
	l := g.p.places()
	where := g.p.Sink.Place
	group := "0"
	if where != PlaceSingle {
		group = g.number(r, g.p.Sink.Prefix, len(g.p.Sink.Digits), where == PlaceHash)
	}
	// Values first, by all lanes; then what is added, by those that have something.
	type added struct{ when, v string }
	var list []added
	for i, a := range g.p.Sink.Accs {
		if l.accs[i].same {
			list = append(list, added{})
			continue
		}
		when := r.alive
		if a.Filter >= 0 {
			f := r.node(a.Filter, "")
			when = g.name("when")
			g.line("const bool %s = %s && %s;", when, r.alive, f.isTrue())
		}
		x := added{when, "1"}
		if a.Kind != AccRows {
			v := r.node(a.Arg, when)
			if v.null != "" {
				x.when = g.name("when")
				g.line("const bool %s = %s && %s;", x.when, when, v.notNull())
			}
			if x.v = v.as(true); l.accs[i].key32 {
				x.v = v.v
			}
		}
		list = append(list, x)
	}
	if where == PlaceSingle {
		g.line("total_rows += %s;", r.alive)
		for i, a := range g.p.Sink.Accs {
			if !l.accs[i].same {
				g.addSingle(i, a.Kind, list[i].when, list[i].v)
			}
		}
		return
	}
	// A row that is a fault has no group: its digits may be anything, and what they say may lie
	// beside the table.
	put := g.name("put")
	g.line("const bool %s = %s && !fault;", put, r.alive)
	when := func(i int) string { // a row adds to an accumulator
		if list[i].when == r.alive {
			return put
		}
		return put + " && " + list[i].when
	}
	if g.p.Sink.Prefix > 0 {
		group, put = g.prefixed(r, group, put)
	}
	if where == PlaceShared {
		g.line("if (%s) {", put)
		g.line("const uint32_t mine = %s * %s;", group, g.replicas())
		g.line("atomicAdd(words32 + mine, 1u);")
		for i, a := range g.p.Sink.Accs {
			if !l.accs[i].same {
				g.line("if (%s) {", when(i))
				g.addShared(l.accs[i], a.Kind, "mine", list[i].v)
				g.line("}")
			}
		}
		g.line("}")
		return
	}
	// slot emits the place of a group, for rows that have one, and what becomes of them.
	slot := func(number string, body func(at string)) {
		if where != PlaceHash {
			body(number)
			return
		}
		g.line("const uint64_t slot = group_slot(p.keys, p.slots, %s, hash_of(%s));", number, number)
		g.line("if (slot == p.slots) {")
		g.line("p.head->full = 1;")
		g.line("} else {")
		body("slot")
		g.line("}")
	}
	if g.p.Sink.Distinct {
		g.line("if (%s) {", put)
		slot(group, func(at string) {
			g.line("if (__ldcg(p.table + %s) == 0)", at)
			g.line("\tp.table[%s] = 1;", at)
		})
		g.line("}")
		return
	}
	// Rows that lie together may be of one group, as those of a time are: then the warp adds up
	// first, since atomics on one word wait for each other.
	g.line("const uint32_t some = __ballot_sync(PGACCEL_WARP, %s);", put)
	g.line("if (one_group(%s, some, %s)) {", group, put)
	for i, a := range g.p.Sink.Accs {
		if l.accs[i].same {
			continue
		}
		name, v := fmt.Sprintf("sum%d", i), list[i].v
		switch a.Kind {
		case AccRows, AccCount:
			g.line("const uint64_t %s = (uint64_t)__popc(__ballot_sync(PGACCEL_WARP, %s));", name, when(i))
		case AccSum:
			g.line("const uint64_t %s = warp_sum(%s ? (uint64_t)%s : 0);", name, when(i), v)
		case AccSum128:
			g.line("uint64_t %s = %s ? (uint64_t)%s : 0, %s_high = %s ? (uint64_t)(%s >> 63) : 0;", name, when(i), v, name, when(i), v)
			g.line("warp_sum128(%s, %s_high);", name, name)
		default:
			g.line("const uint64_t %s = warp_max(%s ? %s(%s) : 0);", name, when(i), a.Kind.key(), v)
		}
	}
	g.line("const %s of_all = first_of(%s, some);", map[bool]string{true: "uint64_t", false: "uint32_t"}[where == PlaceHash], group)
	g.line("if (lane == 0) {")
	slot("of_all", func(at string) {
		g.line("global_add(p.table + %s, (uint64_t)__popc(some));", at)
		for i, a := range g.p.Sink.Accs {
			x, name := l.accs[i], fmt.Sprintf("sum%d", i)
			switch {
			case x.same:
			case a.Kind == AccSum128:
				g.line("global_add128(%s, %s, %s, %s_high);", g.word(x.global, at), g.word(x.global+1, at), name, name)
			case a.Kind == AccMin || a.Kind == AccMax:
				g.line("global_max(%s, %s);", g.word(x.global, at), name)
			default:
				g.line("global_add(%s, %s);", g.word(x.global, at), name)
			}
		}
	})
	g.line("}")
	g.line("} else if (%s) {", put)
	slot(group, func(at string) {
		g.line("global_add(p.table + %s, 1);", at)
		for i, a := range g.p.Sink.Accs {
			if !l.accs[i].same {
				g.line("if (%s) {", when(i))
				g.addGlobal(l.accs[i], a.Kind, at, list[i].v)
				g.line("}")
			}
		}
	})
	g.line("}")
}

// prefixed emits the number of a row's group that has a prefix: of the slot of that among prefixes and
// of the number that the other digits make. A row whose prefix finds no slot is not put.
func (g *generator) prefixed(r *row, number, put string) (group, puts string) {
	prefix := g.number(r, 0, g.p.Sink.Prefix, true)
	first := g.name("first")
	g.line("const uint64_t %s = %s ? group_slot(p.keys + p.slots, p.slots, %s, hash_of(%s)) : 0;", first, put, prefix, prefix)
	puts = g.name("put")
	g.line("const bool %s = %s && %s != p.slots;", puts, put, first)
	g.line("if (%s != %s)", puts, put)
	g.line("\tp.head->full = 1;")
	group = g.name("group")
	g.line("const uint64_t %s = %s * p.slots + %s;", group, number, first)
	return group, puts
}

// key is the call that makes a key of a minimum's or maximum's argument.
func (k AccKind) key() string {
	if k == AccMin {
		return "key_of_min"
	}
	return "key_of_max"
}

func (g *generator) addSingle(i int, kind AccKind, when, v string) {
	switch kind {
	case AccRows, AccCount:
		g.line("total%d += %s;", i, when)
	case AccSum:
		g.line("total%d += %s ? (uint64_t)%s : 0;", i, when, v)
	case AccSum128:
		x := g.name("x")
		g.line("const int64_t %s = %s ? %s : 0;", x, when, v)
		g.line("total%d += (uint64_t)%s;", i, x)
		g.line("total%d_high += (uint64_t)(%s >> 63) + (total%d < (uint64_t)%s ? 1 : 0);", i, x, i, x)
	default:
		x := g.name("key")
		g.line("const uint64_t %s = %s ? %s(%s) : 0;", x, when, kind.key(), v)
		g.line("total%d = %s > total%d ? %s : total%d;", i, x, i, x, i)
	}
}

func (g *generator) addShared(x place, kind AccKind, group, v string) {
	stride := g.stride()
	word := func(k int) string { return fmt.Sprintf("words32 + %d * %s + %s", k, stride, group) }
	switch {
	case kind == AccRows || kind == AccCount:
		g.line("atomicAdd(%s, 1u);", word(x.shared))
	case kind == AccSum:
		g.line("shared_add64(%s, %s, %s);", word(x.shared), word(x.shared+1), v)
	case kind == AccSum128:
		g.line("shared_add128(%s, %s, %s);", word(x.shared), stride, v)
	case x.key32:
		invert := ""
		if kind == AccMin {
			invert = "~"
		}
		g.line("shared_max32(%s, %s((uint32_t)%s ^ 0x80000000u));", word(x.shared), invert, v)
	default:
		g.line("shared_max(keys64 + %d * %s + %s, %s(%s));", x.shared, stride, group, kind.key(), v)
	}
}

// word is a word of a group in the table in global memory.
func (g *generator) word(k int, group string) string {
	return fmt.Sprintf("p.table + %d * (uint64_t)p.slots + %s", k, group)
}

func (g *generator) addGlobal(x place, kind AccKind, group, v string) {
	switch kind {
	case AccRows, AccCount:
		g.line("global_add(%s, 1);", g.word(x.global, group))
	case AccSum:
		g.line("global_add(%s, (uint64_t)%s);", g.word(x.global, group), v)
	case AccSum128:
		g.line("global_add128(%s, %s, (uint64_t)%s, (uint64_t)(%s >> 63));", g.word(x.global, group), g.word(x.global+1, group), v, v)
	default:
		g.line("global_max(%s, %s(%s));", g.word(x.global, group), kind.key(), v)
	}
}

// closeSink emits what comes after the last row: what a block has is added to the table in
// global memory.
func (g *generator) closeSink() {
	if g.p.Sink.Kind != SinkGroups {
		return
	}
	switch g.p.Sink.Place {
	case PlaceShared:
		g.flushShared()
	case PlaceSingle:
		g.flushSingle()
	}
}

// flushShared adds up a group's copies, which neighbouring lanes have, and then one atomic
// each.
func (g *generator) flushShared() {
	l := g.p.places()
	stride, replicas := g.stride(), g.replicas()
	g.line("__syncthreads();")
	g.line("for (uint32_t first = 0; first < %s; first += %d) {", stride, g.t.Threads)
	g.line("const uint32_t i = first + threadIdx.x, group = i / %s;", replicas)
	g.line("const bool there = i < %s;", stride)
	g.line("const uint64_t *const keys = (const uint64_t *)tables + (there ? i : 0);")
	g.line("const uint32_t *const words = tables + %d * %s + (there ? i : 0);", 2*l.keys, stride)
	g.line("(void)keys;")
	word := func(k int) string { return fmt.Sprintf("words[%d * %s]", k, stride) }
	pair := func(k int) string { return fmt.Sprintf("((uint64_t)%s << 32 | %s)", word(k+1), word(k)) }
	// All lanes come to a reduction; lane 0 of a group's has what it makes.
	reduced := func(name, call, v string) {
		g.line("const uint64_t %s = %s(there ? %s : 0, %s);", name, call, v, replicas)
	}
	reduced("all_rows", "replica_sum", "(uint64_t)words[0]")
	for i, a := range g.p.Sink.Accs {
		x, name := l.accs[i], fmt.Sprintf("all%d", i)
		switch {
		case x.same:
		case a.Kind == AccRows || a.Kind == AccCount:
			reduced(name, "replica_sum", "(uint64_t)"+word(x.shared))
		case a.Kind == AccSum:
			reduced(name, "replica_sum", pair(x.shared))
		case a.Kind == AccSum128:
			g.line("uint64_t %s = there ? %s : 0, %s_high = there ? %s : 0;", name, pair(x.shared), name, pair(x.shared+2))
			g.line("replica_sum128(%s, %s_high, %s);", name, name, replicas)
		case x.key32: // 0 is a copy that had no row, or the least of keys
			reduced(name, "replica_max", "(uint64_t)"+word(x.shared))
		default:
			reduced(name, "replica_max", fmt.Sprintf("keys[%d * %s]", x.shared, stride))
		}
	}
	g.line("if (all_rows == 0 || (lane & (%s - 1)) != 0)", replicas)
	g.line("\tcontinue;")
	g.line("global_add(p.table + group, all_rows);")
	for i, a := range g.p.Sink.Accs {
		x, name := l.accs[i], fmt.Sprintf("all%d", i)
		switch {
		case x.same:
		case a.Kind == AccSum128:
			g.line("global_add128(%s, %s, %s, %s_high);", g.word(x.global, "group"), g.word(x.global+1, "group"), name, name)
		case x.key32:
			invert := ""
			if a.Kind == AccMin {
				invert = "~"
			}
			g.line("global_max(%s, %s((int32_t)(%s(uint32_t)%s ^ 0x80000000u)));", g.word(x.global, "group"), a.Kind.key(), invert, name)
		case a.Kind == AccMin || a.Kind == AccMax:
			g.line("global_max(%s, %s);", g.word(x.global, "group"), name)
		default:
			g.line("global_add(%s, %s);", g.word(x.global, "group"), name)
		}
	}
	g.line("}")
}

// flushSingle reduces registers: over warps, over the block, and then one atomic each.
func (g *generator) flushSingle() {
	l := g.p.places()
	g.line("__shared__ uint64_t partial[%d][32];", l.global)
	reduce := func(name, call string) { g.line("%s = %s(%s);", name, call, name) }
	all := func(f func(name string, global int, kind AccKind)) {
		f("total_rows", 0, AccSum)
		for i, a := range g.p.Sink.Accs {
			if x := l.accs[i]; !x.same {
				f(fmt.Sprintf("total%d", i), x.global, a.Kind)
			}
		}
	}
	one := func(name string, global int, kind AccKind) {
		switch kind {
		case AccSum128:
			g.line("warp_sum128(%s, %s_high);", name, name)
		case AccMin, AccMax:
			reduce(name, "warp_max")
		default:
			reduce(name, "warp_sum")
		}
	}
	all(one)
	g.line("if (lane == 0) {")
	all(func(name string, global int, kind AccKind) {
		g.line("partial[%d][warp] = %s;", global, name)
		if kind == AccSum128 {
			g.line("partial[%d][warp] = %s_high;", global+1, name)
		}
	})
	g.line("}")
	g.line("__syncthreads();")
	g.line("if (warp == 0) {")
	all(func(name string, global int, kind AccKind) {
		g.line("%s = lane < %d ? partial[%d][lane] : 0;", name, g.t.Threads/32, global)
		if kind == AccSum128 {
			g.line("%s_high = lane < %d ? partial[%d][lane] : 0;", name, g.t.Threads/32, global+1)
		}
		one(name, global, kind)
	})
	g.line("if (lane == 0 && total_rows != 0) {")
	all(func(name string, global int, kind AccKind) {
		switch kind {
		case AccSum128:
			g.line("global_add128(p.table + %d, p.table + %d, %s, %s_high);", global, global+1, name, name)
		case AccMin, AccMax:
			g.line("global_max(p.table + %d, %s);", global, name)
		default:
			g.line("global_add(p.table + %d, %s);", global, name)
		}
	})
	g.line("}")
	g.line("}")
}
