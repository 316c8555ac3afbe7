package olap

import (
	"hash/maphash"
	"math"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"

	"pgaccel/plan"
	"pgaccel/vector"
)

// Text that is computed row by row has no dictionary before the rows are read. Its strings
// are interned while they are: a pool gives each distinct string a code, the next free one,
// in whatever order they come. All such text of a pipeline has one pool, so that equal codes
// are equal strings there. Nobody may ask for the number of the strings, or for their order,
// before the scan has ended; then the pool is a dictionary as others are (dict.complete).

// pool is a set of strings that grows. All workers share it.
type pool struct {
	take func(bytes int64) error
	held int64        // bytes of a value beside its string
	n    atomic.Int64 // codes given
	// chunks[i] has poolFirst<<i strings: they stay where they are while others come.
	chunks [poolChunks]atomic.Pointer[[]string]
	grow   sync.Mutex // of whoever adds a chunk
	shards [poolShards]poolShard
}

// poolShard has the strings whose hashes begin with its number.
type poolShard struct {
	mu    sync.Mutex
	slots []poolSlot // open addressing; a power of two
	n     int
	room  *strings.Builder // the strings' bytes, one after the other
	owed  int64            // bytes that are not accounted for yet
	_     [64]byte         // the neighbour's lock is in another cache line
}

type poolSlot struct {
	hash uint32
	code uint32 // +1; 0: free
}

const (
	poolShards = 64
	poolFirst  = 1 << 10
	poolChunks = 22
	// maxPool is the highest code that there can be.
	maxPool = math.MaxInt32
	// A block of strings is as large as those before it together, within these bounds.
	poolBlockMin = 1 << 8
	poolBlockMax = 1 << 16
	// poolOwed bounds what a shard does not account for at once.
	poolOwed = 1 << 12
)

var poolSeed = maphash.MakeSeed()

func newPool(take func(bytes int64) error) *pool { return &pool{take: take} }

// place returns where the string of a code is.
func (p *pool) place(code int64) (chunk int, at int64) {
	code += poolFirst
	chunk = bits.Len64(uint64(code)) - bits.Len64(poolFirst)
	return chunk, code - poolFirst<<chunk
}

// at returns the string of a code that intern has returned: to the goroutine that asks, or
// to one that has passed it on.
func (p *pool) at(code int64) string {
	chunk, at := p.place(code)
	return (*p.chunks[chunk].Load())[at]
}

// size returns the number of strings.
func (p *pool) size() int { return int(p.n.Load()) }

// find returns the code of a string, if it has one by now.
func (p *pool) find(s string) (code int64, ok bool) {
	hash := maphash.String(poolSeed, s)
	sh := &p.shards[hash>>58]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	_, code, ok = p.probe(sh, s, hash)
	return code, ok
}

// probe looks for a string; where it is missing, slot is free for it. sh is locked.
func (p *pool) probe(sh *poolShard, s string, hash uint64) (slot uint32, code int64, ok bool) {
	if len(sh.slots) == 0 {
		return 0, 0, false
	}
	mask := uint32(len(sh.slots) - 1)
	for slot = uint32(hash) & mask; ; slot = (slot + 1) & mask {
		e := sh.slots[slot]
		if e.code == 0 {
			return slot, 0, false
		}
		if e.hash == uint32(hash) && p.at(int64(e.code-1)) == s {
			return slot, int64(e.code - 1), true
		}
	}
}

// intern returns the code of a string, a new one where the string is new. The pool has a
// copy of it then. The error says that there is no room.
func (p *pool) intern(s string) (code int64, err error) {
	hash := maphash.String(poolSeed, s)
	sh := &p.shards[hash>>58]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	slot, code, ok := p.probe(sh, s, hash)
	if ok {
		return code, nil
	}
	if 2*(sh.n+1) > len(sh.slots) {
		sh.owed -= int64(8 * len(sh.slots))
		sh.slots = rehashed(sh.slots)
		sh.owed += int64(8 * len(sh.slots))
		slot, _, _ = p.probe(sh, s, hash)
	}
	if code = p.n.Add(1) - 1; code > maxPool {
		p.n.Add(-1)
		return 0, forward(plan.ReasonMemory, "computed strings")
	}
	chunk, at := p.place(code)
	list := p.chunks[chunk].Load()
	if list == nil {
		if list, err = p.newChunk(chunk); err != nil {
			return 0, err
		}
	}
	(*list)[at] = sh.keep(s)
	sh.slots[slot] = poolSlot{uint32(hash), uint32(code + 1)}
	sh.n++
	if sh.owed < poolOwed {
		return code, nil
	}
	owed := sh.owed
	sh.owed = 0
	return code, p.take(owed)
}

// newChunk makes a chunk, unless another goroutine has.
func (p *pool) newChunk(chunk int) (*[]string, error) {
	p.grow.Lock()
	defer p.grow.Unlock()
	if list := p.chunks[chunk].Load(); list != nil {
		return list, nil
	}
	if err := p.take((16 + p.held) * poolFirst << chunk); err != nil {
		return nil, err
	}
	list := make([]string, poolFirst<<chunk)
	p.chunks[chunk].Store(&list)
	return &list, nil
}

// rehashed returns twice as many slots.
func rehashed(was []poolSlot) []poolSlot {
	slots := make([]poolSlot, max(2*len(was), 8))
	mask := uint32(len(slots) - 1)
	for _, e := range was {
		if e.code == 0 {
			continue
		}
		slot := e.hash & mask
		for slots[slot].code != 0 {
			slot = (slot + 1) & mask
		}
		slots[slot] = e
	}
	return slots
}

// keep returns a copy of s in the shard's memory.
func (sh *poolShard) keep(s string) string {
	if sh.room == nil || sh.room.Cap()-sh.room.Len() < len(s) {
		size := poolBlockMin
		if sh.room != nil {
			size = min(2*sh.room.Cap(), poolBlockMax)
		}
		sh.room = new(strings.Builder)
		sh.room.Grow(max(size, len(s)))
		sh.owed += int64(sh.room.Cap())
	}
	at := sh.room.Len()
	sh.room.WriteString(s)
	return sh.room.String()[at:]
}

// grows reports whether the dictionary is that of strings which come while rows are read:
// then neither how many there are is known, nor their order. False for nil.
func (d *dict) grows() bool { return d != nil && d.pool != nil }

// complete returns the dictionary of a pool once the rows have been read; others as they
// are.
func (d *dict) complete() *dict {
	if !d.grows() {
		return d
	}
	n := d.pool.size()
	if d.t.Varying() {
		list := make([]vector.Decimal, n)
		for i := range list {
			list[i] = decimalOf(d.pool.at(int64(i)))
		}
		return decimalDict(list, d.t)
	}
	return &dict{t: d.t, n: n, at: d.pool.at}
}

// completed returns a node whose values have been read with the dictionary that they have.
func (n *node) completed() *node {
	if !n.dict.grows() {
		return n
	}
	m := *n
	m.dict = n.dict.complete()
	m.lo, m.hi = 0, int64(max(m.dict.n-1, 0))
	return &m
}

// growing returns the dictionary of text, or of numerics, that is computed row by row.
func (c *compiler) growing(t vector.Type) *dict {
	pool := &c.pool
	if t.Varying() {
		pool = &c.decimals
	}
	if *pool == nil {
		*pool = newPool(c.p.x.take)
		if t.Varying() {
			(*pool).held = 32 // once they are a list
		}
	}
	return &dict{t: t, at: (*pool).at, pool: *pool}
}

// internedMax is the size up to which a dictionary's strings are interned at once. Tests make
// it small.
var internedMax = 1 << 12

// interned returns a node of text or numerics with its values in the pool: those of a small
// dictionary now, others as rows have them.
func (c *compiler) interned(a *node, t vector.Type) (*node, error) {
	switch {
	case a.dict.grows():
		return a, nil
	case a.kind != nodeConst && a.dict == nil:
		return c.byTree(&plan.Call{Op: plan.OpCast, Args: []plan.Expr{input{0, a.t}}, T: t}, []*node{a}), nil
	case a.kind == nodeConst:
		m := *a
		m.dict = c.growing(t)
		m.t = t
		var err error
		m.k, err = m.dict.interned(a.value(a.k))
		m.lo, m.hi = m.k, m.k
		return c.add(&m), err
	case a.dict.n > internedMax:
		return c.byTree(input{0, t}, []*node{a}), nil
	}
	d := c.growing(t)
	to := make([]int64, max(a.dict.n, 1))
	for code := range int64(a.dict.n) {
		var err error
		if to[code], err = d.interned(a.dict.value(code)); err != nil {
			return nil, err
		}
	}
	m := c.recode(a, to)
	m.dict = d
	return m, nil
}

// internedKey returns what makes of a joined table's strings, whose dictionary is complete,
// the codes that they have among those looked up.
func internedKey(o, in *node) (func(vec) (vec, error), error) {
	if o.t.Kind == vector.BPChar && o.t.Typmod != in.t.Typmod {
		return nil, forward(plan.ReasonType, "join of char(n) of two lengths")
	}
	return func(a vec) (vec, error) {
		known := make([]uint32, in.dict.n) // code+1
		r := vec{v: make([]int64, len(a.v)), nulls: a.nulls}
		for i, v := range a.v {
			if a.nulls != nil && a.nulls[i] != 0 {
				continue
			}
			if known[v] == 0 {
				code, err := o.dict.pool.intern(in.dict.at(v))
				if err != nil {
					return r, err
				}
				known[v] = uint32(code + 1)
			}
			r.v[i] = int64(known[v]) - 1
		}
		return r, nil
	}, nil
}

// ranked reports whether the order of a node's values is known before the rows are read.
func (n *node) ranked(c vector.Collation) bool {
	switch {
	case n.dict.grows():
		return false
	case n.t.Kind.IsString():
		_, err := n.dict.rank(c)
		return err == nil
	}
	return true
}

// ordersUnknown forwards where an ORDER BY asks for the order of such text, and no server ranks it.
func (x *execution) ordersUnknown(n *node, c vector.Collation) error {
	if x.opt.Rank != nil {
		return nil
	}
	return ordersUnknown(n, c)
}

// ordersUnknown forwards where the order is asked for of text that is computed row by row, in a
// collation other than C.
func ordersUnknown(n *node, c vector.Collation) error {
	if n.dict.grows() && n.t.Kind.IsString() && !c.C {
		return forward(plan.ReasonCollation, "order of computed text")
	}
	return nil
}

// ordersUnknown is the execution's, of the next key, by what the query orders by it.
func (g *grouper) ordersUnknown(n *node) error {
	for _, o := range g.p.x.q.Order {
		if k, ok := o.Expr.(plan.Key); ok && k.Index == len(g.keys) {
			if err := g.p.x.ordersUnknown(n, o.Expr.Type().Collation); err != nil {
				return err
			}
		}
	}
	return nil
}

// complete gives keys and aggregates the dictionaries that they have once the rows have been
// read.
func (g *grouper) complete() error {
	for i := range g.keys {
		if n := g.keys[i].node; n != nil {
			n.dict = n.dict.complete()
		}
	}
	for i := range g.refs {
		g.refs[i].dict = g.refs[i].dict.complete()
	}
	if g.p.c.decimalsUnlike {
		if err := g.p.c.growing(vector.NumericType(vector.VaryingScale)).complete().unlike(); err != nil {
			return err
		}
	}
	return g.rankText()
}

// complete gives what has been collected the dictionaries that it has now.
func (p *pipeline) complete() {
	nodes := make([]*node, len(p.collected))
	for i, n := range p.collected {
		nodes[i] = n.completed()
	}
	p.collected = nodes
}
