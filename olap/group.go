package olap

import (
	"math"

	"pgaccel/plan"
)

// denseGroups bounds the arrays that are indexed by the group keys' combined
// codes; beyond it a hash table numbers the groups.
const denseGroups = 1 << 17

// axis is one digit of a group's number: an expression, or what a lookup says of
// all keys that come from it.
type axis struct {
	node   *node    // nil for a lookup
	probe  int      // of a lookup
	codeOf []uint32 // by entry; nil: the entry itself
	rep    []uint32 // an entry for each code
	keys   []int    // positions in Query.Group
	outs   []int    // lookup: outputs, beside keys
}

// grouper is a sink that aggregates by groups. Its workers have tables of their
// own, which merge adds up.
type grouper struct {
	p       *pipeline
	axes    []axis
	pack    *packer
	dense   bool // groups are numbered by their digits
	single  bool // there is one group
	accs    []acc
	refs    []aggRef
	workers []*groups
}

// groups is one worker's table.
type groups struct {
	g      *grouper
	table  *wordTable
	counts []int64 // rows by group
	states []state // by acc
	index  []uint32
	sub    []uint32
	vals   []int64
	pos    []uint16
	key    []uint64
	taken  int64
}

func newGrouper(p *pipeline, group []plan.Expr) (*grouper, error) {
	g := &grouper{p: p, pack: newPacker(), single: len(group) == 0}
	at := map[int]int{} // axis by probe
	for i, e := range group {
		if o, ok := e.(outRef); ok && !o.t.Kind.IsFloat() {
			a, known := at[o.probe]
			if !known {
				a = len(g.axes)
				at[o.probe] = a
				g.axes = append(g.axes, axis{probe: o.probe})
			}
			g.axes[a].keys = append(g.axes[a].keys, i)
			g.axes[a].outs = append(g.axes[a].outs, o.out)
			continue
		}
		n, err := p.c.compile(e)
		if err != nil {
			return nil, err
		}
		if n.t.Kind.IsFloat() {
			key := p.c.floatKey(n)
			key.kind, key.t, key.f = nodeMap, n.t, groupFloat
			key.risky = true
			n = key
		}
		g.axes = append(g.axes, axis{node: n, keys: []int{i}})
	}
	for i := range g.axes {
		a := &g.axes[i]
		if a.node != nil {
			g.pack.add(a.node, 0)
			continue
		}
		b := p.probes[a.probe]
		n := b.lut.rows
		if !b.dedupe {
			// Entries are rows: number their distinct keys.
			d := newPacker()
			cols := make([]vec, len(a.outs))
			for k, o := range a.outs {
				out := &b.lut.outs[o]
				cols[k] = vec{out.v, out.nulls}
				d.add(&node{lo: out.lo, hi: out.hi, nullable: out.nulls != nil}, 0)
			}
			all := make([]uint32, n)
			for k := range all {
				all[k] = uint32(k)
			}
			a.codeOf, a.rep = d.distinct(cols, all)
			n = len(a.rep)
		}
		g.pack.add(nil, uint64(max(n, 1)))
	}
	g.dense = g.pack.card != 0 && g.pack.card <= denseGroups
	return g, nil
}

// groupFloat maps a double that is grouped by to its key. Postgres shows for a
// group of both zeros, or of several NaNs, whichever came first.
func groupFloat(v int64) (int64, error) {
	if v == math.MinInt64 {
		return 0, failed("grouping by negative zero")
	}
	k := floatKey(v)
	if k == math.MaxInt64 && v != usualNaN {
		return 0, failed("grouping by a NaN with a sign or payload")
	}
	return k, nil
}

func (g *grouper) worker(w *worker) *groups {
	s := &groups{g: g, index: make([]uint32, tileRows), sub: make([]uint32, tileRows), vals: make([]int64, tileRows),
		pos: make([]uint16, tileRows), states: make([]state, len(g.accs))}
	switch {
	case g.single:
		s.resize(1)
	case g.dense:
		s.resize(int(g.pack.card))
	default:
		s.table = newWordTable(g.pack.words, 0)
		s.key = make([]uint64, g.pack.words)
	}
	g.workers = append(g.workers, s)
	return s
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
		s.states[i].grow(&s.g.accs[i], grown)
	}
}

// bytes returns the memory of the table.
func (s *groups) bytes() int64 {
	n := int64(len(s.counts)) * 8
	for i := range s.states {
		n += s.states[i].bytes()
	}
	if s.table != nil {
		n += s.table.bytes()
	}
	return n
}

// tile implements sink.
func (s *groups) tile(w *worker) {
	var index []uint32
	switch {
	case s.g.single:
		s.counts[0] += int64(len(w.f.sel))
	case s.g.dense:
		index = s.denseIndex(w)
		counts := s.counts
		for _, i := range index {
			counts[i]++
		}
	default:
		index = s.hashIndex(w)
		for _, i := range index {
			s.counts[i]++
		}
	}
	if w.err != nil {
		return
	}
	s.accumulate(w, index)
	if b := s.bytes(); b > s.taken {
		if err := w.p.x.take(b - s.taken); err != nil {
			w.fail(err)
		}
		s.taken = b
	}
}

// countRows implements counter: for count(*) alone the rows need not be looked at.
func (s *groups) countRows(n int64) bool {
	if !s.g.single || len(s.g.accs) > 0 {
		return false
	}
	s.counts[0] += n
	return true
}

// denseIndex returns the number of each selected row's group.
func (s *groups) denseIndex(w *worker) []uint32 {
	index := s.index[:len(w.f.sel)]
	for i := range s.g.axes {
		a := &s.g.axes[i]
		part := &s.g.pack.parts[i]
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
		if first {
			clear(index)
		}
		switch {
		case !part.nullable:
			lo := part.lo
			for j, x := range v.v {
				index[j] += uint32(x-lo) * stride
			}
		default:
			for j := range v.v {
				index[j] += uint32(part.digit(v, j)) * stride
			}
		}
		if w.err != nil {
			return index
		}
	}
	return index
}

// hashIndex returns the number of each selected row's group, adding new ones.
func (s *groups) hashIndex(w *worker) []uint32 {
	sel := w.f.sel
	words := s.g.pack.words
	if need := words * tileRows; cap(s.key) < need {
		s.key = make([]uint64, need)
	}
	keys := s.key[:words*len(sel)]
	clear(keys)
	for i := range s.g.axes {
		a := &s.g.axes[i]
		part := &s.g.pack.parts[i]
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
		if v.nulls == nil {
			lo := uint64(part.lo)
			for j, x := range v.v {
				keys[j*words+part.word] |= (uint64(x) - lo) << part.shift
			}
			continue
		}
		for j := range sel {
			part.pack(keys[j*words:(j+1)*words], v, j)
		}
	}
	index := s.index[:len(sel)]
	if w.err != nil {
		return index[:0]
	}
	for j := range sel {
		index[j], _ = s.table.insert(keys[j*words : (j+1)*words])
	}
	s.resize(s.table.n)
	return index
}

// merge adds all workers' tables into one.
func (g *grouper) merge() *groups {
	if len(g.workers) == 0 {
		return g.worker(nil)
	}
	to := g.workers[0]
	for _, from := range g.workers[1:] {
		to.add(from)
	}
	return to
}

// add adds the groups of a table of the same grouping.
func (s *groups) add(from *groups) {
	n := len(from.counts)
	if from.table != nil {
		n = from.table.n
	}
	index := make([]uint32, n)
	for j := range index {
		index[j] = uint32(j)
		if from.table != nil {
			index[j], _ = s.table.insert(from.table.keys[j*from.table.w : (j+1)*from.table.w])
		}
	}
	if s.table != nil {
		s.resize(s.table.n)
	}
	for j, i := range index {
		s.counts[i] += from.counts[j]
	}
	for k := range s.states {
		s.states[k].mergeAll(&s.g.accs[k], &from.states[k], nil, index)
	}
}

// numbers returns the groups that exist.
func (s *groups) numbers() []uint32 {
	if s.g.single {
		return []uint32{0}
	}
	var out []uint32
	n := len(s.counts)
	if s.table != nil {
		n = s.table.n
	}
	for i := range n {
		if s.counts[i] > 0 {
			out = append(out, uint32(i))
		}
	}
	return out
}

// key returns the values of Query.Group[i] for the groups.
func (s *groups) keys(numbers []uint32, count int) []rcol {
	cols := make([]rcol, count)
	for ai := range s.g.axes {
		a := &s.g.axes[ai]
		part := &s.g.pack.parts[ai]
		v := make([]int64, len(numbers))
		nulls := make([]uint8, len(numbers))
		for j, n := range numbers {
			var null bool
			if s.table != nil {
				v[j], null = part.unpack(s.table.keys[int(n)*s.table.w : (int(n)+1)*s.table.w])
			} else {
				v[j], null = part.undigit(uint64(n) / part.stride % part.card)
			}
			nulls[j] = uint8(b2i(null))
		}
		if a.node != nil {
			if a.node.t.Kind.IsFloat() {
				for j := range v {
					v[j] = floatOfKey(v[j])
				}
			}
			cols[a.keys[0]] = rcol{t: a.node.t, v: v, nulls: nulls, dict: a.node.dict}
			continue
		}
		lut := s.g.p.probes[a.probe].lut
		for k, key := range a.keys {
			out := &lut.outs[a.outs[k]]
			col := rcol{t: out.t, v: make([]int64, len(numbers)), nulls: make([]uint8, len(numbers)), dict: out.dict}
			for j, code := range v {
				e := uint32(code)
				if a.rep != nil {
					e = a.rep[code]
				}
				col.v[j] = out.v[e]
				if out.nulls != nil {
					col.nulls[j] = out.nulls[e]
				}
			}
			cols[key] = col
		}
	}
	return cols
}
