package olap

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"pgaccel/compress"
	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/vector"
)

// Where a join asks for existence only (plan.StarJoin.Exists) and its key is one integer, the scan marks
// keys in a bitmap instead of gathering them row by row: what is made of them then is as large as there
// are distinct keys. A customer has ten orders, an order four lines.

const (
	// existRows is the fewest rows of a table for which its keys are marked.
	existRows = 1 << 16
	// existSpread bounds the places of the bitmap for each row that is expected: 16 bytes, where a row that is
	// gathered, and brought to its place, takes more.
	existSpread = 128
	// existWords is how many words of the bitmap a goroutine makes keys of at a time: no more keys than are a chunk.
	existWords = buildChunk / 64
)

// keySet is the sink that marks keys. All workers write to one bitmap.
type keySet struct {
	p     *pipeline
	key   *node
	size  int64 // places, from key.lo on
	bits  []uint64
	count atomic.Int64 // rows
}

// tile implements sink.
func (s *keySet) tile(w *worker) {
	v := w.eval(s.key)
	s.count.Add(int64(len(v.v)))
	if v.nulls == nil && farApart(v.v) {
		s.random(v.v, w.next)
		return
	}
	at, marks := uint64(0), uint64(0) // what is to be marked of a word
	for i, k := range v.v {
		if v.nulls != nil && v.nulls[i] != 0 {
			continue // it has no partner
		}
		place := uint64(k - s.key.lo)
		if place>>6 != at {
			s.mark(at, marks)
			at, marks = place>>6, 0
		}
		marks |= 1 << (place & 63)
	}
	s.mark(at, marks)
}

// farApart reports whether neighbours among keys seem to be of different words: those of the lines of an order are not.
func farApart(keys []int64) bool {
	return uint64(max(keys[0], keys[len(keys)-1])-min(keys[0], keys[len(keys)-1])) > 64*uint64(len(keys))
}

// random is tile for keys in no order, most of which are there already: those that are not are found without a branch.
func (s *keySet) random(keys []int64, missing []uint16) {
	n, lo, bits := 0, s.key.lo, s.bits
	for i, k := range keys {
		place := uint64(k - lo)
		missing[n&(tileRows-1)] = uint16(i)
		n += int(^atomic.LoadUint64(&bits[place>>6]) >> (place & 63) & 1)
	}
	for _, i := range missing[:n] {
		place := uint64(keys[i] - lo)
		s.mark(place>>6, 1<<(place&63))
	}
}

// mark sets bits of a word, which are there already more often than not.
func (s *keySet) mark(at, marks uint64) {
	if atomic.LoadUint64(&s.bits[at])&marks != marks {
		atomic.OrUint64(&s.bits[at], marks)
	}
}

// collectKeys is collect of the one key of a join for existence, and of what is wanted of a partner:
// each key once, in their order. ok is false where that is not possible, or not worth while.
func (p *pipeline) collectKeys(b *probe, exprs []plan.Expr) (r *rows, ok bool, err error) {
	if !b.join.Exists || b.many || len(b.join.Key) != 1 || !p.x.opt.enough(int(p.tab.Rows), existRows) {
		return nil, false, nil
	}
	nodes, err := p.c.list(exprs)
	if err != nil {
		return nil, false, err
	}
	key := nodes[0]
	size, fits := width(key.lo, key.hi)
	if key.kind != nodeColumn || key.t.Kind.IsFloat() || key.dict != nil || !fits || size > lookupBitsMax ||
		!p.x.opt.Eager && float64(size) > existSpread*p.expectedRows() {
		return nil, false, nil
	}
	of := make([]func(key int64) int64, len(exprs))
	for i, e := range exprs {
		if of[i], ok = ofPartner(e, nodes[i]); !ok {
			return nil, false, nil
		}
	}
	p.collected = nodes
	defer p.complete()
	taken := (size + 63) / 64 * 8
	if err := p.x.take(taken); err != nil {
		return nil, false, err
	}
	s := &keySet{p: p, key: key, size: size, bits: makeSet(size)}
	err = p.run(func(*worker) sink { return s })
	if err == nil && len(b.wanted) == 0 && b.join.Kind == plan.Inner {
		b.taken += taken
		b.marked = s
		r, err = s.rows(nil)
		return r, err == nil, err
	}
	defer p.x.give(taken)
	if err != nil {
		return nil, false, err
	}
	r, err = s.rows(of)
	return r, err == nil, err
}

// lookup makes what is marked the lookup of b, as it is.
func (s *keySet) lookup(b *probe) error {
	l, outer := b.lut, b.outer[0]
	if _, err := keyMap(outer, s.key); err != nil {
		return err
	}
	l.kind, l.rows, l.keys = program.LookupBits, 1, b.rows.n
	l.Lo, l.Size, l.Bits = s.key.lo, s.size, s.bits
	l.wide = outer.lo < s.key.lo || outer.hi > s.key.hi
	l.set = compress.Set{Lo: l.Lo, Size: s.size, Bits: s.bits}
	l.bytes += s.size / 8
	if l.keys <= lookupFew {
		few, err := s.rows([]func(int64) int64{identity})
		if err != nil {
			return err
		}
		s.p.x.give(few.taken)
		l.few = few.cols[0].v
	}
	if l.keyLo, l.keyHi = l.Lo, l.Lo-1; l.keys > 0 {
		first, last := 0, len(s.bits)-1
		for s.bits[first] == 0 {
			first++
		}
		for s.bits[last] == 0 {
			last--
		}
		l.keyLo = l.Lo + int64(first)<<6 + int64(bits.TrailingZeros64(s.bits[first]))
		l.keyHi = l.Lo + int64(last)<<6 + int64(63-bits.LeadingZeros64(s.bits[last]))
	}
	return nil
}

func identity(key int64) int64 { return key }

// ofPartner returns an expression over the key of a join for existence as a function of a partner's key:
// the key itself, or what only asks whether it is null, which a partner's is not.
func ofPartner(e plan.Expr, n *node) (func(key int64) int64, bool) {
	if _, is := e.(plan.Column); is {
		return identity, true
	}
	if n.dict != nil || n.risky || !asksForNull(e) {
		return nil, false
	}
	v := &env{leaf: func(plan.Expr) (vector.Value, error) { return vector.Value{}, nil }} // any that is not null
	r, err := v.eval(e)
	if err != nil || r.Null {
		return nil, false
	}
	word, ok := r.Word(n.t)
	return func(int64) int64 { return word }, ok
}

// asksForNull reports whether an expression asks no more of its columns than whether they are null.
func asksForNull(e plan.Expr) bool {
	switch e := e.(type) {
	case plan.Const:
		return true
	case *plan.Call:
		if e.Op == plan.OpIsNull || e.Op == plan.OpIsNotNull {
			if _, is := e.Args[0].(plan.Column); is {
				return true
			}
		}
		return !slices.ContainsFunc(e.Args, func(a plan.Expr) bool { return !asksForNull(a) })
	}
	return false
}

// rows are the keys that are marked, and what is wanted of each.
func (s *keySet) rows(of []func(key int64) int64) (*rows, error) {
	x := s.p.x
	at := make([]int, (len(s.bits)+existWords-1)/existWords+1) // by span of words: where its keys begin
	if err := x.eachSpan(len(s.bits), existWords, func(c, from, to int) error {
		n := 0
		for _, word := range s.bits[from:to] {
			n += bits.OnesCount64(word)
		}
		at[c+1] = n
		return nil
	}); err != nil {
		return nil, err
	}
	prefixSums(at)
	r := &rows{n: at[len(at)-1], cols: make([]vec, len(of)), from: int(s.count.Load())}
	r.taken = int64(r.n) * int64(9*len(of))
	if err := x.take(r.taken); err != nil {
		return nil, err
	}
	for i := range of {
		r.cols[i].v = unset[int64](r.n)
	}
	if len(of) == 0 {
		return r, nil
	}
	return r, x.eachSpan(len(s.bits), existWords, func(c, from, to int) error {
		at := at[c]
		for w := from; w < to; w++ {
			for word := s.bits[w]; word != 0; word &= word - 1 {
				key := s.key.lo + int64(w)<<6 + int64(bits.TrailingZeros64(word))
				for i, f := range of {
					r.cols[i].v[at] = f(key)
				}
				at++
			}
		}
		return nil
	})
}
