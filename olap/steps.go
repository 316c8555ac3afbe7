package olap

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"pgaccel/compress"
	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/vector"
)

// step reduces the selection of a tile.
type step struct {
	kind   program.StepKind
	n      *node // StepRange: the column; StepBits: what table is of; StepFilter: the condition
	lo, hi int64
	table  []uint8        // StepBits: 1 for what passes, by value - n.lo
	onNull bool           // StepBits: null passes
	set    compress.Set   // StepBits: of the column's values that pass, where null does not
	match  *program.Match // StepBits of a device, in place of table: it finds the set
	probe  int
	share  float64 // estimated share of rows that pass
	cost   float64 // estimated nanoseconds a row
	needs  uint64  // lookups that must come before
	risky  bool    // it must see every row, lest an error be missed
	// derived marks a range that follows from a lookup: it only saves work.
	derived bool
}

// crossPairs bounds the pairs of a join without equality, for which PostgreSQL may have an index: those
// of a tenth of a second. Tests make it small.
var crossPairs float64 = 1 << 25

// plan turns the lowered conditions and the lookups into steps.
func (p *pipeline) plan(conds []plan.Expr) error {
	ranges := map[int]*step{} // by column
	sets := map[int]bool{}    // columns that a set decides, whole
	p.steps = make([]step, 0, len(conds)+2*len(p.probes)+1)
	narrow := func(n *node, lo, hi int64, derived bool) {
		r := ranges[n.col]
		if r == nil {
			r = &step{kind: program.StepRange, n: n, lo: math.MinInt64, hi: math.MaxInt64, cost: 0.7, derived: true}
			ranges[n.col] = r
		}
		r.lo, r.hi = max(r.lo, lo), min(r.hi, hi)
		r.derived = r.derived && derived
	}
	var tables []step
	var others []plan.Expr
	for _, e := range flatten(conds) {
		if _, ok := e.(plan.Const); ok || leaves(e) == 0 {
			r, err := (&env{orders: p.x.ordersOf()}).evalSettled(e)
			if err != nil {
				return err
			}
			if r.Null || r.I == 0 {
				p.never = true
			}
			continue
		}
		if n, lo, hi, ok, err := p.rangeOf(e); err != nil {
			return err
		} else if ok {
			narrow(n, lo, hi, false)
			continue
		}
		others = append(others, e)
	}
	for _, r := range ranges {
		r.share = p.rangeShare(r)
		p.steps = append(p.steps, *r)
	}
	p.c.known = slices.Clone(p.steps)
	p.steps = p.steps[:0]
	for _, e := range others {
		if s, ok, err := p.matchOnDevice(e); err != nil {
			return err
		} else if ok {
			p.steps = append(p.steps, s)
			continue
		}
		n, err := p.c.compile(e)
		if err != nil {
			return err
		}
		s := step{kind: program.StepFilter, n: n, share: 0.4, cost: 4, risky: n.risky, needs: probesOf(n)}
		if n.risky && s.needs != 0 {
			if !p.lastOf(e, conds, s.needs) {
				return failed("a condition over several tables that may fail")
			}
			s.risky, s.cost = false, math.MaxFloat64
		}
		if n.kind == nodeTable && !n.risky {
			s.kind, s.n, s.cost = program.StepBits, n.args[0], 1.5
			s.onNull = n.args[0].nullable && !n.tab.OnNullNull && n.tab.OnNull != 0
			s.table = p.x.truths(n.tab)
			tables = append(tables, s)
			continue
		}
		p.steps = append(p.steps, s)
	}
	pairs := float64(p.tab.Rows)
	for i, b := range p.probes {
		l := b.lut
		if l.left && l.rows == 0 {
			continue
		}
		s := step{kind: program.StepProbe, probe: i, share: l.share, cost: l.cost()}
		if l.many != nil {
			s.share *= l.many.fan()
			if b.key.lo == b.key.hi && b.key.kind != nodeColumn { // a constant, or null
				if pairs *= float64(l.keys); pairs > crossPairs {
					return forward(plan.ReasonShape, "a join of too many rows, each with each")
				}
			}
		}
		s.needs = probesOf(b.key)
		if !l.left {
			if o := b.key; o.kind == nodeColumn {
				narrow(o, l.keyLo, l.keyHi, true)
			}
			if p.encoded(&s) {
				sets[b.key.col] = true
				s.cost = p.setCost(b.key.col, l.set)
			}
			if l.keys == 0 {
				p.never = true
			}
		}
		p.steps = append(p.steps, s)
	}
	for _, s := range p.tableSteps(tables, narrow) {
		if p.encoded(&s) {
			sets[s.n.col] = true
			s.cost = p.setCost(s.n.col, s.set)
		}
		p.steps = append(p.steps, s)
	}
	risky := slices.ContainsFunc(p.steps, func(s step) bool { return s.risky })
	for _, r := range ranges {
		all := r.lo <= r.n.lo && r.n.hi <= r.hi
		if all && (r.derived || !r.n.nullable) {
			continue // it holds for all rows, or those of the lookup
		}
		r.share = p.rangeShare(r)
		if r.derived && (r.share > 0.7 || sets[r.n.col]) {
			r.cost = 1e9 // for zones only
		}
		p.steps = append(p.steps, *r)
	}
	p.measure()
	p.order()
	if p.never && risky {
		// The rows must be seen all the same.
		p.never = false
		p.steps = append(p.steps, step{kind: program.StepRange, n: nil})
	}
	p.noteUses()
	p.fanPlan()
	p.noteStrict()
	p.c.selected = !p.device // whose programs compute of all rows
	p.c.known, p.c.expected = p.steps, 0
	if t := p.x.trace; t != nil {
		p.describe(t)
	}
	return nil
}

// rangeShare estimates the share of the rows that a range leaves.
func (p *pipeline) rangeShare(r *step) float64 {
	w, ok := width(r.n.lo, r.n.hi)
	in, ok2 := width(max(r.lo, r.n.lo), min(r.hi, r.n.hi))
	switch {
	case r.lo == math.MinInt64 && r.hi == math.MaxInt64:
		return p.notNull(r.n.col)
	case ok2 && in <= 0 || r.lo > r.hi:
		return 0
	case ok && ok2:
		return float64(in) / float64(w)
	}
	return 0.5
}

// lastOf reports whether PostgreSQL computes a condition over the joined tables needs, one that may
// fail, for no rows but those that all else lets pass, whatever its plan: it reads every table, the
// joins are by equality, which is one operator, where this is several, and comes first
// (order_qual_clauses), and the other conditions are over one table each, and filter its scan.
func (p *pipeline) lastOf(cond plan.Expr, conds []plan.Expr, needs uint64) bool {
	if len(p.x.q.Tables) != 1+len(p.probes) || needs != 1<<uint(len(p.probes))-1 || operators(cond) < 2 {
		return false
	}
	for _, b := range p.probes {
		if b.join.Exists || b.join.Kind != plan.Inner {
			return false
		}
	}
	several := 0
	for _, e := range flatten(conds) {
		joined := false
		plan.Walk(e, func(x plan.Expr) bool {
			_, out := x.(outRef)
			joined = joined || out
			return !joined
		})
		several += int(b2i(joined))
	}
	return several <= 1
}

// operators counts the calls for which PostgreSQL's planner charges, at least.
func operators(e plan.Expr) (n int) {
	plan.Walk(e, func(x plan.Expr) bool {
		if c, ok := x.(*plan.Call); ok && (c.Op.IsComparison() || plan.Facts{}.Fails(c)) {
			n++
		}
		return true
	})
	return n
}

// noteStrict notes the columns of which a step lets no null pass.
func (p *pipeline) noteStrict() {
	for _, s := range p.steps[:p.fanned] {
		if s.kind == program.StepRange && s.n != nil && !s.derived || s.kind == program.StepBits && s.n.kind == nodeColumn && !s.onNull {
			if p.strict == nil {
				p.strict = make([]bool, len(p.tab.Meta.Columns))
			}
			p.strict[s.n.col] = true
		}
	}
}

// notNull returns the share of a column's values that are not null.
func (p *pipeline) notNull(col int) float64 {
	rows, nulls := 1, 0
	for _, s := range p.tab.Segments {
		rows += s.Rows
		nulls += s.Columns[col].NullCount
	}
	return 1 - float64(nulls)/float64(rows)
}

// setCost estimates nanoseconds a row of a filter of a column by a set, beside 0.7 of a range.
func (p *pipeline) setCost(col int, set compress.Set) float64 {
	switch {
	case len(p.tab.Segments) > 0 && runs(p.tab.Segments[len(p.tab.Segments)/2].Columns[col].Data.Codec()):
		return 1.2 // it is asked once for each run, and runs of keys mostly ascend
	case set.Size <= 1024:
		return 0.8 // it is held in registers
	case set.Size <= 1<<18:
		return 0.9 // it stays in the first-level cache
	}
	return 2
}

// tableSteps joins the tables over one column into one, and makes ranges of those
// whose values lie side by side.
func (p *pipeline) tableSteps(tables []step, narrow func(n *node, lo, hi int64, derived bool)) (out []step) {
	for _, s := range tables {
		i := slices.IndexFunc(out, func(o step) bool {
			return s.n.kind == nodeColumn && o.n.kind == nodeColumn && o.n.col == s.n.col
		})
		if i < 0 {
			out = append(out, s)
			continue
		}
		p.x.chunksSideBySide(len(s.table), func(_, from, to int) {
			for k := from; k < to; k++ {
				out[i].table[k] &= s.table[k]
			}
		})
		out[i].onNull = out[i].onNull && s.onNull
	}
	kept := out[:0]
	for _, s := range out {
		if !p.simplify(&s, narrow) {
			if s.n.kind == nodeColumn && !s.onNull {
				s.set = p.x.setOfTable(s.n.lo, s.table)
			}
			kept = append(kept, s)
		}
	}
	return kept
}

// truths returns a byte for each value of a table: 1 where that is true, 0 where it is false or null.
func (x *execution) truths(t *table) []uint8 {
	truths := unset[uint8](len(t.Values))
	x.chunksSideBySide(len(truths), func(_, from, to int) {
		for i, v := range t.Values[from:to] {
			truths[from+i] = uint8(b2i(v != 0))
		}
		if t.Nulls != nil {
			for i, null := range t.Nulls[from:to] {
				truths[from+i] &^= null
			}
		}
	})
	return truths
}

// setOfTable returns the values that pass a table, which begins with lo.
func (x *execution) setOfTable(lo int64, table []uint8) compress.Set {
	bits := unsetBits(int64(len(table)))
	x.chunksSideBySide(len(table), func(_, from, to int) { // a chunk begins with a word
		for at := from; at < to; at += 64 {
			bits[at>>6] = bitsOf(table[at:min(at+64, to)])
		}
	})
	return compress.Set{Lo: lo, Size: int64(len(table)), Bits: bits}
}

// bitsOf makes a word of up to 64 bytes of 0 and 1.
func bitsOf(truths []uint8) (word uint64) {
	i := 0
	for ; i+8 <= len(truths); i += 8 {
		// The product has the bits of all eight in its highest byte.
		word |= binary.LittleEndian.Uint64(truths[i:]) * 0x0102040810204080 >> 56 << i
	}
	for ; i < len(truths); i++ {
		word |= uint64(truths[i]) << i
	}
	return word
}

// makeSet returns the words of an empty set, with the room that small sets need to be
// held in registers.
func makeSet(size int64) []uint64 {
	words := (size + 63) / 64
	return make([]uint64, words, max(words, 16))
}

// unsetBits is makeSet of a set whose words are anything.
func unsetBits(size int64) []uint64 {
	words := int(size+63) / 64
	return unset[uint64](max(words, 16))[:words]
}

// simplify estimates a table step; true where a range says the same.
func (p *pipeline) simplify(s *step, narrow func(n *node, lo, hi int64, derived bool)) bool {
	passes := []byte{1}
	first, last, count := bytes.IndexByte(s.table, 1), bytes.LastIndexByte(s.table, 1), bytes.Count(s.table, passes)
	s.share = float64(count) / float64(len(s.table))
	if s.onNull {
		return false
	}
	if count == 0 {
		p.never = true
		return true
	}
	if s.n.kind != nodeColumn {
		return false
	}
	together := count == last-first+1
	narrow(s.n, s.n.lo+int64(first), s.n.lo+int64(last), !together)
	return together
}

// flatten splits nested ANDs.
func flatten(conds []plan.Expr) (out []plan.Expr) {
	for _, e := range conds {
		if c, ok := e.(*plan.Call); ok && c.Op == plan.OpAnd {
			out = append(out, flatten(c.Args)...)
		} else {
			out = append(out, e)
		}
	}
	return out
}

func leaves(e plan.Expr) (n int) {
	plan.Walk(e, func(x plan.Expr) bool {
		switch x.(type) {
		case plan.Column, outRef:
			n++
		}
		return true
	})
	return n
}

// probesOf returns the lookups whose outputs n reads.
func probesOf(n *node) (set uint64) {
	if n.kind == nodeOut {
		return 1 << uint(n.probe)
	}
	for _, a := range n.args {
		set |= probesOf(a)
	}
	return set
}

// rangeOf recognises a comparison of a column of the own table with a constant: <> is a range where
// the constant is the least or the greatest value, or none.
func (p *pipeline) rangeOf(e plan.Expr) (n *node, lo, hi int64, ok bool, err error) {
	c, is := e.(*plan.Call)
	if is && c.Op == plan.OpIsNotNull {
		// A range without ends: what passes is not null.
		if col, ok := c.Args[0].(plan.Column); ok {
			n, err = p.c.column(col)
			return n, math.MinInt64, math.MaxInt64, err == nil, err
		}
	}
	if !is {
		return nil, 0, 0, false, nil
	}
	of, k, op, ok := constantComparison(c)
	col, isCol := of.(plan.Column)
	if !ok || !isCol || k.Null {
		return nil, 0, 0, false, nil
	}
	if n, err = p.c.column(col); err != nil {
		return nil, 0, 0, false, err
	}
	var v int64
	if n.dict != nil {
		if op != plan.OpEq && op != plan.OpNe || n.t.Kind == vector.Numeric { // whose equal values have several codes
			return nil, 0, 0, false, nil
		}
		var found bool
		if v, found = n.dict.find(k.Str); !found && op == plan.OpNe {
			return n, math.MinInt64, math.MaxInt64, true, nil
		} else if !found {
			p.never = true
			return n, 0, 0, true, nil
		}
	} else {
		s := k.Datum.Value()
		if v, ok = s.Word(col.T); !ok {
			return nil, 0, 0, false, nil
		}
	}
	lo, hi = math.MinInt64, math.MaxInt64
	switch op {
	case plan.OpEq:
		lo, hi = v, v
	case plan.OpNe:
		switch {
		case v == n.lo && v < math.MaxInt64:
			lo = v + 1
		case v == n.hi && v > math.MinInt64:
			hi = v - 1
		case n.lo <= v && v <= n.hi:
			return nil, 0, 0, false, nil
		}
	case plan.OpLe:
		hi = v
	case plan.OpGe:
		lo = v
	case plan.OpLt:
		if hi = v - 1; v == math.MinInt64 {
			lo, hi = 1, 0
		}
	case plan.OpGt:
		if lo = v + 1; v == math.MaxInt64 {
			lo, hi = 1, 0
		}
	}
	return n, lo, hi, true, nil
}

// constantComparison recognises a comparison with a constant whose words are in the order of the
// values, and stand for values of the other side's kind: what is compared, with what, and how.
func constantComparison(c *plan.Call) (of plan.Expr, k plan.Const, op plan.Op, ok bool) {
	of, k, op, ok = comparisonWithConstant(c)
	return of, k, op, ok && sameWords(of.Type(), k.Type())
}

// comparisonWithConstant recognises a comparison with a constant of any type.
func comparisonWithConstant(c *plan.Call) (of plan.Expr, k plan.Const, op plan.Op, ok bool) {
	if !c.Op.IsComparison() || len(c.Args) != 2 {
		return nil, k, 0, false
	}
	of, op = c.Args[0], c.Op
	if k, ok = c.Args[1].(plan.Const); !ok {
		if k, ok = c.Args[0].(plan.Const); !ok {
			return nil, k, 0, false
		}
		of, op = c.Args[1], plan.Flipped[op]
	}
	return of, k, op, true
}

// sameWords reports whether values of two types that are compared are so by their words.
func sameWords(a, b vector.Type) bool {
	return !a.Kind.IsFloat() && !b.Kind.IsFloat() && a.Kind.IsString() == b.Kind.IsString() &&
		(a.Kind == vector.Numeric) == (b.Kind == vector.Numeric)
}

// order puts the steps in the order of their work: conditions that may fail, then
// ranges and sets on encoded data, then what removes most rows for its cost.
func (p *pipeline) order() {
	slices.SortStableFunc(p.steps, func(a, b step) int {
		if a.risky != b.risky {
			return cmp.Compare(b2i(b.risky), b2i(a.risky))
		}
		if x, y := p.encoded(&a) && a.cost < 100, p.encoded(&b) && b.cost < 100; x != y {
			return cmp.Compare(b2i(y), b2i(x))
		}
		return cmp.Compare((1-b.share)/b.cost, (1-a.share)/a.cost)
	})
	// Lookups come before those that need them.
	var done uint64
	sorted := make([]step, 0, len(p.steps))
	for len(p.steps) > 0 {
		i := slices.IndexFunc(p.steps, func(s step) bool { return s.needs&^done == 0 })
		if i < 0 {
			// Only lookups that are never made (left joins without outputs) are missing.
			panic("BUG: lookups that need each other")
		}
		s := p.steps[i]
		p.steps = slices.Delete(p.steps, i, i+1)
		if s.kind == program.StepProbe {
			done |= 1 << uint(s.probe)
		}
		sorted = append(sorted, s)
	}
	p.steps = sorted
	p.orderEncoded()
}

// runs reports whether a codec stores equal values that follow each other once.
func runs(c compress.Codec) bool { return c == compress.CodecRFOR || c == compress.CodecRFOR64 }

const (
	// orderedEncoded bounds the steps over encoded columns of which the best order is sought.
	orderedEncoded = 5
	// gatherCost estimates nanoseconds for each row that is left of a step that gathers its values.
	gatherCost = 4.0
)

// orderEncoded orders the steps over encoded columns that come first: each of them costs all of the rows, until so few
// are left that their values are gathered.
func (p *pipeline) orderEncoded() {
	first := 0
	for first < len(p.steps) && p.steps[first].risky {
		first++
	}
	last := first
	for last < len(p.steps) && p.encoded(&p.steps[last]) && p.steps[last].cost < 100 {
		last++
	}
	steps := p.steps[first:last]
	if len(steps) < 2 || len(steps) > orderedEncoded {
		return
	}
	best, least := slices.Clone(steps), encodedCost(steps)
	var permute func(n int)
	permute = func(n int) {
		if n == len(steps) {
			if c := encodedCost(steps); c < least {
				least = c
				copy(best, steps)
			}
			return
		}
		for i := n; i < len(steps); i++ {
			steps[n], steps[i] = steps[i], steps[n]
			permute(n + 1)
			steps[n], steps[i] = steps[i], steps[n]
		}
	}
	permute(0)
	copy(steps, best)
}

// encodedCost estimates nanoseconds for each row of steps over encoded columns, in this order.
func encodedCost(steps []step) float64 {
	cost, left := 0.0, 1.0
	for i := range steps {
		if left*wholeShare >= 1 {
			cost += steps[i].cost
		} else {
			cost += left * gatherCost
		}
		left *= steps[i].share
	}
	return cost
}
