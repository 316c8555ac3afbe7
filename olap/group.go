package olap

import (
	"math"

	"pgaccel/colstore"
	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/vector"
)

// grouper aggregates by groups: by all keys of a query, or by several sets of them.
type grouper struct {
	p     *pipeline
	keys  []groupKey
	bases []*grouping // computed from rows
	sets  []*grouping // by position in Star.Sets; one without
	accs  []acc
	refs  []aggRef
	// device is set where a device computes the bases: nothing is sampled for it, and it
	// does not scatter rows to partitions.
	device bool
}

// groupKey is where a key of Star.Group comes from: a node, or output out of a lookup.
type groupKey struct {
	node       *node
	probe, out int
}

// grouping numbers rows by some of the keys.
type grouping struct {
	g         *grouper
	set       uint64 // the keys, by position
	all       bool   // all keys, of which there may be more than set has bits
	axes      []axis
	pack      *packer
	how       strategy
	expect    float64 // estimated groups
	clustered bool    // a tile has half as many groups as rows, or fewer: those of a group are neighbours, by a sample
	// sparse is set where few of the digits' numbers are groups.
	sparse  bool
	workers []*groups // the workers' tables
	radix   *radix    // with groupPartitioned
	done    []*groups // the result: tables that have no group in common; nil until then
}

// axis is one digit of a group's number: an expression, or what a lookup says of
// all keys that come from it.
type axis struct {
	node   *node    // nil for a lookup
	probe  int      // of a lookup
	codeOf []uint32 // by entry; nil: the entry itself
	rep    []uint32 // an entry for each code
	keys   []int    // positions in Star.Group
	outs   []int    // lookup: outputs, beside keys
}

// groups is one table of groups: a worker's, a partition's, or the result of others.
type groups struct {
	g      *grouper
	by     *grouping
	first  uint64     // the number of group 0, where numbers are digits
	table  *wordTable // nil where they are
	listed []uint64   // with groupListed: the digits' number of each group
	counts []int64    // rows by group
	states []state    // by acc
	index  []uint32
	sub    []uint32
	pos    []uint16
	key    []uint64
	taken  int64
	// Accumulators that had all rows of a segment at once (aggregate_encoded.go).
	encoded   []bool
	encodedIn *colstore.Segment
}

func newGrouper(p *pipeline, group []plan.Expr) (*grouper, error) {
	g := &grouper{p: p}
	for _, e := range group {
		if o, ok := e.(outRef); ok && !o.t.Kind.IsFloat() {
			if err := p.c.unlike(o.t, p.probes[o.probe].lut.outs[o.out].dict); err != nil {
				return nil, err
			}
			g.keys = append(g.keys, groupKey{probe: o.probe, out: o.out})
			continue
		}
		n, err := p.c.compile(e)
		if err != nil {
			return nil, err
		}
		if n.t.Kind.IsFloat() {
			key := p.c.floatKey(n)
			key.kind, key.op, key.t, key.f = nodeMap, opGroupFloat, n.t, groupFloat
			key.risky = true
			n = key
		} else if units := p.c.unitNumbers(n); units != nil {
			n = units
		}
		if err := p.c.unlike(n.t, n.dict); err != nil {
			return nil, err
		}
		if err := g.ordersUnknown(n); err != nil {
			return nil, err
		}
		g.keys = append(g.keys, groupKey{node: n})
	}
	return g, nil
}

// opGroupFloat is the op of a nodeMap whose f is groupFloat.
const opGroupFloat = program.OpFloatKey

// groupFloat maps a double that is grouped by to its key. Postgres shows for a
// group of both zeros, or of several NaNs, whichever came first.
func groupFloat(v int64) (int64, error) {
	if v == math.MinInt64 {
		return 0, failed("grouping by negative zero")
	}
	k := vector.FloatKey(v)
	if k == vector.NaNKey && v != vector.NaNBits {
		return 0, failed("grouping by a NaN with a sign or payload")
	}
	return k, nil
}

func (by *grouping) has(key int) bool { return by.all || by.set>>uint(key)&1 != 0 }

// newGrouping returns the grouping by a set of the keys, or by all.
func (g *grouper) newGrouping(set uint64, all bool) *grouping {
	by := &grouping{g: g, set: set, all: all, pack: newPacker()}
	at := map[int]int{} // axis by probe
	for i, k := range g.keys {
		if !by.has(i) {
			continue
		}
		if _, _, ok := by.baseOf(i); ok {
			continue
		}
		if k.node != nil {
			by.axes = append(by.axes, axis{node: k.node, keys: []int{i}})
			continue
		}
		a, known := at[k.probe]
		if !known {
			a = len(by.axes)
			at[k.probe] = a
			by.axes = append(by.axes, axis{probe: k.probe})
		}
		by.axes[a].keys = append(by.axes[a].keys, i)
		by.axes[a].outs = append(by.axes[a].outs, k.out)
	}
	for i := range by.axes {
		a := &by.axes[i]
		if a.node != nil {
			by.pack.add(a.node, 0)
			continue
		}
		b := g.p.probes[a.probe]
		n := b.lut.rows
		if !b.dedupe || b.lut.left || a.distinctOuts() < len(b.wanted) {
			// Entries are rows, or number more than these keys, or one of nulls, whose keys another
			// may have: number theirs.
			d := newPacker()
			cols := make([]vec, len(a.outs))
			for k, o := range a.outs {
				out := &b.lut.outs[o]
				cols[k] = vec{out.Values, out.Nulls}
				d.add(&node{lo: out.lo, hi: out.hi, nullable: out.Nulls != nil}, 0)
			}
			a.codeOf, a.rep = d.distinctOf(g.p.x, cols, nil, n)
			n = len(a.rep)
		}
		by.pack.add(nil, uint64(max(n, 1)))
	}
	return by
}

func (a *axis) distinctOuts() int {
	seen := map[int]bool{}
	for _, o := range a.outs {
		seen[o] = true
	}
	return len(seen)
}

// newGroups returns a table without groups.
func (by *grouping) newGroups() *groups {
	return &groups{g: by.g, by: by, states: make([]state, len(by.g.accs))}
}

// sink returns a worker's table, or with groupPartitioned what fills those of all.
func (by *grouping) sink() sink {
	if by.how == groupPartitioned {
		return by.radix.sink()
	}
	s := by.newGroups()
	by.workers = append(by.workers, s)
	return s
}

// sinks feeds several groupings from one scan.
type sinks []sink

// tile implements sink.
func (s sinks) tile(w *worker) {
	for _, t := range s {
		if t.tile(w); w.err != nil {
			return
		}
	}
}

// open makes room for the first groups. A worker does it when it meets the first row.
func (s *groups) open() {
	switch s.by.how {
	case groupSingle:
		s.resize(1)
	case groupDense:
		s.resize(int(s.by.pack.card))
	default:
		s.openTable(int(min(s.by.expect/float64(s.g.p.x.opt.Workers), openGroups)))
	}
}

// openGroups bounds the groups that a table begins with room for: a megabyte, with their states.
const openGroups = 1 << 14

func (s *groups) openTable(capacity int) {
	s.table = newWordTable(s.by.pack.words, capacity)
	s.resize(1) // states exist even where no row comes
}

// openTile makes the buffers for a tile's rows.
func (s *groups) openTile() {
	s.index = make([]uint32, tileRows)
	if s.table != nil {
		s.key = make([]uint64, tileRows*s.table.w)
	}
	for i := range s.g.accs {
		if s.g.accs[i].filter != nil {
			s.pos, s.sub = make([]uint16, tileRows), make([]uint32, tileRows)
			break
		}
	}
}

// resize makes room for n groups.
func (s *groups) resize(n int) {
	have := len(s.counts)
	if n <= have {
		return
	}
	grown := n
	if s.table != nil {
		grown = max(n, 2*have, 256)
	}
	s.counts = append(s.counts, make([]int64, grown-have)...)
	for i := range s.states {
		s.grow(i, grown)
	}
}

// account takes the memory by which the table has grown.
func (s *groups) account() error {
	b := int64(len(s.counts)) * 8
	for i := range s.states {
		b += s.states[i].bytes()
	}
	if s.table != nil {
		b += s.table.bytes()
	}
	b += int64(len(s.listed)) * 8
	if b <= s.taken {
		return nil
	}
	if err := s.g.p.x.take(b - s.taken); err != nil {
		return err
	}
	s.taken = b
	return nil
}

// tile implements sink.
func (s *groups) tile(w *worker) {
	if s.counts == nil {
		s.open()
	}
	if s.index == nil {
		s.openTile()
	}
	n := len(w.f.sel)
	var index []uint32
	if s.by.how == groupSingle {
		s.counts[0] += int64(n)
	} else {
		index = s.index[:n]
		if s.table == nil {
			s.by.number(w, index)
		} else {
			keys := s.key[:n*s.table.w]
			if s.by.packKeys(w, keys); w.err == nil {
				s.table.insertAll(keys, index)
				s.resize(s.table.n)
			}
		}
		if w.err != nil {
			return
		}
		counts := s.counts
		for _, i := range index {
			counts[i]++
		}
	}
	if s.accumulate(w, index); w.err != nil {
		return
	}
	if err := s.account(); err != nil {
		w.fail(err)
	}
}

// number writes the number of each selected row's group, made of its digits, to index.
func (by *grouping) number(w *worker, index []uint32) {
	for i := range by.axes {
		a := &by.axes[i]
		part := &by.pack.parts[i]
		stride := uint32(part.stride)
		first := i == 0
		if a.node == nil {
			entries := w.entries[a.probe]
			switch {
			case a.codeOf != nil && first:
				for j, r := range w.f.sel {
					index[j] = a.codeOf[entries[r]] * stride
				}
			case a.codeOf != nil:
				for j, r := range w.f.sel {
					index[j] += a.codeOf[entries[r]] * stride
				}
			case first:
				for j, r := range w.f.sel {
					index[j] = entries[r] * stride
				}
			default:
				for j, r := range w.f.sel {
					index[j] += entries[r] * stride
				}
			}
			continue
		}
		v := w.eval(a.node)
		zero := part.lo // the value of digit 0
		if part.nullable {
			zero--
		}
		if part.nullable && v.nulls != nil {
			if first {
				clear(index)
			}
			for j, x := range v.v { // null is digit 0, whatever its value
				index[j] += uint32(x-zero) * stride & (uint32(v.nulls[j]) - 1)
			}
		} else if first {
			for j, x := range v.v {
				index[j] = uint32(x-zero) * stride
			}
		} else {
			for j, x := range v.v {
				index[j] += uint32(x-zero) * stride
			}
		}
		if w.err != nil {
			return
		}
	}
}

// packKeys writes the packed keys of the selected rows, pack.words each, to keys.
func (by *grouping) packKeys(w *worker, keys []uint64) {
	sel := w.f.sel
	words := by.pack.words
	clear(keys)
	for i := range by.axes {
		a := &by.axes[i]
		part := &by.pack.parts[i]
		if a.node == nil {
			entries := w.entries[a.probe]
			for j, r := range sel {
				e := entries[r]
				if a.codeOf != nil {
					e = a.codeOf[e]
				}
				keys[j*words+part.word] |= uint64(e) << part.shift
			}
			continue
		}
		v := w.eval(a.node)
		switch lo := uint64(part.lo); {
		case v.nulls == nil && words == 1:
			for j, x := range v.v {
				keys[j] |= (uint64(x) - lo) << part.shift
			}
		case v.nulls == nil:
			for j, x := range v.v {
				keys[j*words+part.word] |= (uint64(x) - lo) << part.shift
			}
		default:
			for j := range sel {
				part.pack(keys[j*words:(j+1)*words], v, j)
			}
		}
	}
}

// size is the number of groups, with those that do not exist.
func (s *groups) size() int {
	switch {
	case s.by.how == groupSingle:
		return 1
	case s.table != nil:
		return s.table.n
	}
	return len(s.counts)
}

// numbers returns the groups from, ..., to-1 that exist.
func (s *groups) numbers(from, to int) []uint32 {
	if s.by.how == groupSingle {
		return []uint32{0}
	}
	out := make([]uint32, to-from+1)
	k := 0
	for i, c := range s.counts[from:to] {
		out[k] = uint32(from + i)
		k += int(b2i(c > 0))
	}
	return out[:k]
}

// digits returns the values or codes of an axis for the groups.
func (s *groups) digits(axis int, numbers []uint32) (v []int64, nulls []uint8) {
	part := &s.by.pack.parts[axis]
	v = make([]int64, len(numbers))
	if part.nullable {
		nulls = make([]uint8, len(numbers))
	}
	if s.table != nil {
		for j, n := range numbers {
			var null bool
			if v[j], null = part.unpack(s.table.key(int(n))); null {
				nulls[j] = 1
			}
		}
		return v, nulls
	}
	small := s.by.pack.card-1 < math.MaxUint32 // divisions of 64 bits take several times longer
	for j, n := range numbers {
		number := s.first + uint64(n)
		if s.listed != nil {
			number = s.listed[n]
		}
		if small {
			number = uint64(uint32(number) / uint32(part.stride) % uint32(part.card))
		} else {
			number = number / part.stride % part.card
		}
		var null bool
		if v[j], null = part.undigit(number); null {
			nulls[j] = 1
		}
	}
	return v, nulls
}

// keyColumn returns a column without rows for the values of Star.Group[i].
func (g *grouper) keyColumn(i int) rcol {
	k := &g.keys[i]
	if k.node != nil {
		return rcol{t: k.node.t, dict: k.node.dict}
	}
	out := &g.p.probes[k.probe].lut.outs[k.out]
	return rcol{t: out.t, dict: out.dict}
}

// keys returns the values of Star.Group[i] for the groups: nulls where the set lacks
// the key.
func (s *groups) keys(i int, numbers []uint32) rcol {
	c := s.g.keyColumn(i)
	k := &s.g.keys[i]
	if !s.by.has(i) {
		c.v, c.nulls = make([]int64, len(numbers)), make([]uint8, len(numbers))
		for j := range c.nulls {
			c.nulls[j] = 1
		}
		return c
	}
	if base, offset, ok := s.by.baseOf(i); ok {
		return s.offsetKeys(i, base, offset, numbers)
	}
	for ai := range s.by.axes {
		a := &s.by.axes[ai]
		switch {
		case k.node != nil && a.node != nil && a.keys[0] == i:
			c.v, c.nulls = s.digits(ai, numbers)
			if c.t.Kind.IsFloat() {
				for j := range c.v {
					c.v[j] = vector.FloatOfKey(c.v[j])
				}
			}
			if starts := k.node.starts; starts != nil {
				for j, unit := range c.v {
					c.v[j] = starts[unit]
				}
			}
			return c
		case k.node == nil && a.node == nil && a.probe == k.probe:
			out := &s.g.p.probes[k.probe].lut.outs[k.out]
			c.v, _ = s.digits(ai, numbers)
			if out.Nulls != nil {
				c.nulls = make([]uint8, len(numbers))
			}
			for j, code := range c.v {
				e := uint32(code)
				if a.rep != nil {
					e = a.rep[code]
				}
				c.v[j] = out.Values[e]
				if out.Nulls != nil {
					c.nulls[j] = out.Nulls[e]
				}
			}
			return c
		}
	}
	panic("BUG: a key that no axis has")
}
