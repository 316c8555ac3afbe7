package program

import "fmt"

// count emits the kernel that counts the groups of each number that is asked for.
func (g *generator) count() {
	if !g.p.Sink.Counted {
		return
	}
	number := "slot % p.numbers"
	switch {
	case g.p.Sink.Prefix > 0:
		number = "p.keys[slot] / p.slots"
	case g.p.Sink.Place == PlaceHash:
		number = "p.keys[slot] % p.numbers"
	}
	g.tally("p.table", "p.slots", "", number, "p.counts")
}

// tally emits that groups of so many slots, those that have rows and for which a condition holds, if there is one, are counted by a
// number that each has. Lanes of one number add up first.
func (g *generator) tally(rows, slots, condition, number, counts string) {
	g.line("const uint32_t lane = threadIdx.x & 31;")
	g.line("for (uint64_t first = blockIdx.x * (uint64_t)blockDim.x; first < %s; first += gridDim.x * (uint64_t)blockDim.x) {", slots)
	g.line("const uint64_t slot = first + threadIdx.x;")
	if condition != "" {
		condition = " && " + condition
	}
	g.line("const bool put = slot < %s && %s[slot] != 0%s;", slots, rows, condition)
	g.line("const uint64_t number = put ? %s : 0;", number)
	g.line("const uint32_t some = __ballot_sync(PGACCEL_WARP, put);")
	g.line("if (one_group(number, some, put)) {")
	g.line("const uint64_t of_all = first_of(number, some);")
	g.line("if (lane == 0)")
	g.line("\tglobal_add(%s + of_all, (uint64_t)__popc(some));", counts)
	g.line("} else if (put) {")
	g.line("global_add(%s + number, 1);", counts)
	g.line("}")
	g.line("}")
}

// collect emits the kernel that gathers the groups that some row came to.
func (g *generator) collect() {
	switch g.p.Sink.Kind {
	case SinkBitmap:
		g.gather()
		return
	case SinkBuild:
		return
	}
	l := g.p.places()
	rows, slots := g.groupTable()
	g.line("for (uint64_t slot = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; slot < %s; slot += gridDim.x * (uint64_t)blockDim.x) {", slots)
	g.line("const uint64_t rows = %s[slot];", rows)
	g.line("if (rows == 0)")
	g.line("\tcontinue;")
	if having := g.having(); having != "" {
		g.line("if (!(%s))", having)
		g.line("\tcontinue;")
	}
	if g.p.Sink.Top {
		g.line("const uint64_t code = %s;", g.topCode())
		g.line("if (p.head->bound != 0 && code >= p.head->bound)")
		g.line("\tcontinue;")
		if g.p.Sink.TopThen != TopAll {
			g.line("if (p.head->ties != 0 && code + 1 == p.head->bound && %s >= p.head->ties)", g.tieCode())
			g.line("\tcontinue;")
		}
	}
	g.line("uint64_t *const out = p.result + atomicAdd((unsigned long long *)&p.head->count, 1ull) * %d;", l.results)
	number := "slot"
	if g.p.Sink.Place == PlaceHash && !g.p.Sink.Counted {
		number = "p.keys[slot]"
	}
	to := 2
	if g.p.Sink.Prefix > 0 && !g.p.Sink.Counted {
		g.line("const uint64_t number = p.keys[slot];")
		g.line("out[2] = p.keys[p.slots + (number & (p.slots - 1))];")
		number = "number / p.slots"
		to = 3
	}
	g.line("out[0] = %s;", number)
	g.line("out[1] = rows;")
	for i, a := range g.p.Sink.Accs {
		x := l.accs[i]
		load := fmt.Sprintf("*(%s)", g.word(x.global, "slot"))
		switch {
		case x.same:
			g.line("out[%d] = rows;", to)
		case a.Kind == AccSum128:
			g.line("out[%d] = %s;", to, load)
			g.line("out[%d] = *(%s);", to+1, g.word(x.global+1, "slot"))
		case a.Kind == AccMin:
			g.line("out[%d] = ~%s ^ 1ull << 63;", to, load)
		case a.Kind == AccMax:
			g.line("out[%d] = %s ^ 1ull << 63;", to, load)
		default:
			g.line("out[%d] = %s;", to, load)
		}
		to += a.Kind.Words()
	}
	g.line("}")
}
