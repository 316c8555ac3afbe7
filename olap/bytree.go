package olap

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"pgaccel/plan"
	"pgaccel/vector"
)

// What has no form of its own over words is computed a row at a time by the evaluator that is
// used over groups (env): a nodeTree, whose tree is an expression over the values of other
// nodes. It yields text or numerics of varying scale, which are interned, or whatever is computed
// of such, for which they need not be interned at all: the tree of upper(a || b) = c is all of it,
// and so is that of a / b > 0.5. Only what
// PostgreSQL computes for every row becomes part of one tree; arms of CASE and COALESCE are
// nodes of their own, lest they fail for rows that do not take them.
//
// Rows often repeat: each worker remembers what it computed of which values last.

// input is the value of argument i in the tree of a nodeTree.
type input struct {
	i int
	t vector.Type
}

// Type implements plan.Expr.
func (x input) Type() vector.Type { return x.t }

// treeCall returns a node that computes a call whose arguments are compiled, a row at a time.
func (c *compiler) treeCall(e *plan.Call, args []*node) (*node, error) {
	n := &node{kind: nodeTree, op: e.Op, t: e.T}
	call := *e
	call.Args = make([]plan.Expr, len(args))
	for i, a := range args {
		call.Args[i] = n.take(a, e.Args[i])
	}
	if err := c.checkTree(n, &call); err != nil {
		return nil, err
	}
	n.tree = &call
	n.risky = n.risky || c.mayFail(e)
	return c.treeBounds(n), nil
}

// byTree returns a node whose values are those of tree.
func (c *compiler) byTree(tree plan.Expr, args []*node) *node {
	n := &node{kind: nodeTree, t: tree.Type(), args: args, tree: tree}
	for _, a := range args {
		n.risky = n.risky || a.risky
	}
	return c.treeBounds(n)
}

func (c *compiler) treeBounds(n *node) *node {
	n.nullable = n.op != plan.OpDistinct
	switch {
	case coded(n.t):
		n.dict = c.growing(n.t)
		n.hi = maxPool
		return c.add(n)
	}
	risky := n.risky
	c.byRow(n)
	n.risky = risky
	return n
}

// presence returns a node that is null where a is; what is computed by a tree is not interned
// for that.
func (c *compiler) presence(a *node) *node {
	if a.kind != nodeTree || !a.dict.grows() {
		return a
	}
	m := *a
	m.dict, m.lo, m.hi = nil, 0, 0
	return c.add(&m)
}

// lookedUp returns a node that is looked up among strings that are interned before the rows are
// read: others need not be.
func (c *compiler) lookedUp(a *node) *node {
	if a.kind != nodeTree || !a.dict.grows() {
		return a
	}
	m := *a
	m.known, m.lo = true, -1
	return c.add(&m)
}

// take makes an argument of a call part of n, and returns what stands for it in the tree. What
// would be interned is not, and becomes part of this tree.
func (n *node) take(a *node, e plan.Expr) plan.Expr {
	if k, ok := e.(plan.Const); ok {
		return k
	}
	n.risky = n.risky || a.risky
	if a.kind != nodeTree || !coded(a.t) {
		return input{n.input(a), e.Type()}
	}
	places := make([]int, len(a.args))
	for i, x := range a.args {
		places[i] = n.input(x)
	}
	tree := plan.Rewrite(a.tree, func(x plan.Expr) plan.Expr {
		if in, ok := x.(input); ok {
			return input{places[in.i], in.t}
		}
		return x
	})
	if tree.Type() != a.t { // a cast that changes no bytes has been left out
		tree = &plan.Call{Op: plan.OpCast, Args: []plan.Expr{tree}, T: a.t}
	}
	return tree
}

// input returns the number of an argument, a new one unless it is there.
func (n *node) input(a *node) int {
	i := slices.IndexFunc(n.args, func(b *node) bool {
		return b == a || b.kind == a.kind && b.t == a.t && (a.kind == nodeColumn && b.col == a.col ||
			a.kind == nodeOut && b.probe == a.probe && b.out == a.out)
	})
	if i < 0 {
		i = len(n.args)
		n.args = append(n.args, a)
	}
	return i
}

// checkTree forwards the calls of which it is known that no row has a result.
func (c *compiler) checkTree(n *node, e *plan.Call) error {
	if e.T.Kind == vector.BPChar {
		return forward(plan.ReasonType, "computed char(n)")
	}
	switch e.Op {
	case plan.OpLt, plan.OpLe, plan.OpGt, plan.OpGe:
	default:
		return nil
	}
	coll := collation(e.Args)
	if coll.C || !e.Args[0].Type().Kind.IsString() || c.p.x.opt.Rank != nil {
		return nil
	}
	for _, a := range n.args {
		if a.dict != nil && a.dict.src != nil && a.dict.own == coll.OID {
			return nil // it may hold both strings
		}
	}
	return forward(plan.ReasonCollation, "order between two columns' strings")
}

// mayFail reports whether a call may be an error, whatever its arguments are.
func (c *compiler) mayFail(e *plan.Call) bool {
	switch e.Op {
	case plan.OpLt, plan.OpLe, plan.OpGt, plan.OpGe:
		return e.Args[0].Type().Kind.IsString() && !collation(e.Args).C
	case plan.OpLike:
		p, ok := e.Args[1].(plan.Const)
		return !ok || e.Insensitive && (e.Func == nil || !e.Func.Total) || strings.Contains(p.Str, `\`)
	}
	return c.facts.Fails(e)
}

// rowTree is what a worker keeps of a nodeTree.
type rowTree struct {
	x     *node
	env   env
	vecs  []vec // the arguments' values for the selected rows
	row   int
	key   []uint64 // of the row: the arguments' words, then their nulls
	cache rowCache
}

func newRowTree(x *node, rows int64, orders *textOrders) *rowTree {
	r := &rowTree{x: x, vecs: make([]vec, len(x.args)), key: make([]uint64, len(x.args)+1)}
	r.env.orders = orders
	r.env.leaf = func(e plan.Expr) (vector.Value, error) { return r.value(e.(input).i), nil }
	for _, a := range x.args {
		if a.dict != nil && a.dict.src != nil {
			d := *a.dict // what it computes when it is needed is each worker's own
			r.env.dicts = append(r.env.dicts, &d)
		}
	}
	r.cache.open(len(r.key), rows)
	return r
}

// value returns argument i of the row.
func (r *rowTree) value(i int) vector.Value {
	v, a := &r.vecs[i], r.x.args[i]
	switch {
	case v.nulls != nil && v.nulls[r.row] != 0:
		return vector.NullValue
	}
	return a.value(v.v[r.row])
}

// load makes row the one that is computed.
func (r *rowTree) load(row int) {
	r.row = row
	nulls := uint64(0)
	for i := range r.vecs {
		v := &r.vecs[i]
		r.key[i] = uint64(v.v[row])
		if v.nulls != nil && v.nulls[row] != 0 {
			r.key[i] = 0
			nulls |= 1 << (uint(i) & 63)
		}
	}
	r.key[len(r.vecs)] = nulls
}

// rows returns what the worker keeps of a nodeTree, with its arguments' values for the selected rows.
func (w *worker) rows(x *node, depth int) *rowTree {
	b := &w.bufs[x.id]
	if b.rows == nil {
		b.rows = newRowTree(x, w.p.tab.Rows, w.p.x.ordersOf())
	}
	for i, a := range x.args {
		b.rows.vecs[i] = w.evalAt(a, depth)
	}
	return b.rows
}

// tree computes a nodeTree.
func (w *worker) tree(x *node, depth int) vec {
	r := w.rows(x, depth)
	n := len(w.f.sel)
	out, nulls := w.buffer(x, n), w.nullBuffer(x, n)
	// What the server has to rank first is computed again: the rows before are in the cache, mostly.
	var failed error
	if err := r.env.settle(func() error {
		failed = nil
		for i := range out {
			if err := r.put(i, &out[i], &nulls[i]); err != nil {
				failed = cmp.Or(failed, err)
				out[i], nulls[i] = x.lo, 1
			}
		}
		return nil
	}); err != nil {
		failed = err
	}
	if failed != nil {
		w.fail(failed)
	}
	return vec{out, nulls}
}

// put computes a row, unless the cache has its value.
func (r *rowTree) put(row int, v *int64, null *uint8) (err error) {
	r.load(row)
	at := r.cache.slot(r.key)
	if at >= 0 && r.cache.has(at, r.key) {
		*v, *null = r.cache.vals[at], r.cache.nulls[at]
		return nil
	}
	if *v, *null, err = r.compute(); err == nil && at >= 0 {
		r.cache.put(at, r.key, *v, *null)
	}
	return err
}

// compute returns the value of the row.
func (r *rowTree) compute() (v int64, null uint8, err error) {
	x := r.x
	s, err := r.env.eval(x.tree)
	switch {
	case err != nil:
		return 0, 0, err
	case s.Null:
		return x.lo, 1, nil
	case !coded(x.t):
		v, ok := s.Word(x.t)
		if !ok {
			return 0, 0, errNumeric
		}
		return v, 0, nil
	case x.dict == nil: // only whether it is null matters
		return 0, 0, nil
	case x.known: // text: numerics are not looked up
		if v, ok := x.dict.pool.find(s.Str); ok {
			return v, 0, nil
		}
		return x.lo, 0, nil
	}
	v, err = x.dict.interned(s)
	return v, 0, err
}

// rowCache has the values of some keys, each at the one place that its hash says.
type rowCache struct {
	w     int // words of a key
	keys  []uint64
	vals  []int64
	nulls []uint8
	taken []bool
}

const (
	// cachedRows bounds a cache, which is to stay in the second-level cache of a core;
	// cachedWords the keys for which there is one.
	cachedRows  = 1 << 12
	cachedWords = 8
)

func (c *rowCache) open(words int, rows int64) {
	if c.w = words; words > cachedWords {
		return
	}
	n := 1 << bits.Len(uint(min(rows, cachedRows-1)))
	c.keys, c.vals = make([]uint64, n*words), make([]int64, n)
	c.nulls, c.taken = make([]uint8, n), make([]bool, n)
}

// slot returns the place of a key; -1 where there is no cache.
func (c *rowCache) slot(key []uint64) int {
	if len(c.vals) == 0 {
		return -1
	}
	return int(hashWords(key)) & (len(c.vals) - 1)
}

func (c *rowCache) has(at int, key []uint64) bool {
	return c.taken[at] && slices.Equal(c.keys[at*c.w:(at+1)*c.w], key)
}

func (c *rowCache) put(at int, key []uint64, v int64, null uint8) {
	copy(c.keys[at*c.w:], key)
	c.vals[at], c.nulls[at], c.taken[at] = v, null, true
}

var errPadding = forward(plan.ReasonType, "computed char(n)")

// padded reports whether s is a char(n) of a type as columns hold it: of n characters, so that
// equal ones are equal bytes.
func padded(s string, t vector.Type) bool {
	return t.Typmod >= 4 && utf8.RuneCountInString(s) == int(t.Typmod-4)
}

// sameLength reports whether all values of a are char(n) of type t as columns hold them.
func sameLength(a *node, t vector.Type) bool {
	return t.Typmod >= 4 && a.t.Typmod == t.Typmod && (a.kind != nodeConst || padded(a.dict.at(a.k), t))
}
