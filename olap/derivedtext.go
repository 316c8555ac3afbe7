package olap

import (
	"reflect"
	"sync"

	"pgaccel/colstore"
	"pgaccel/plan"
	"pgaccel/vector"
)

// A function of a large dictionary that has few results (the first digits of a phone, the host of a
// URL) is computed once for all that a statement computes of it: conditions, keys and other stars
// (TPC-H Q22 has one three times). What is above it is then computed of its results. So is a condition, which a
// core (reduce) and what it is a core of may both have, or two tables that are joined to the same column (transfer).

// derivedSample is how many strings tell whether a function has few results, derivedFew how many of
// them few are.
const derivedSample, derivedFew = 256, 32

// derivedMax is how many such functions a statement keeps: each has a word a string.
const derivedMax = 16

// derivedTexts are the functions that stars of one statement have computed of large dictionaries.
type derivedTexts struct {
	mu   sync.Mutex
	list []derivedText
}

type derivedText struct {
	src      *colstore.Dict
	call     plan.Expr // its leaf is a typed
	lo       int64
	nullable bool
	n        node
}

// derived is tabulateDict of a condition, or of a call whose result is text, unless the statement has it already.
func (c *compiler) derived(arg *node, leaf plan.Expr, e *plan.Call) (*node, error) {
	all := c.p.x.opt.derived
	if all == nil || arg.dict.src == nil || e.T.Kind != vector.Bool && (!e.T.Kind.IsString() || e.Op != plan.OpFunc) {
		return c.tabulateDict(arg, e)
	}
	key := derivedText{src: arg.dict.src, call: without(e, leaf, leaf.Type()), lo: arg.lo, nullable: arg.nullable}
	if n := all.find(&key); n != nil {
		return c.overArgument(n, arg), nil
	}
	n, err := c.tabulateDict(arg, e)
	if err != nil {
		return nil, err
	}
	key.n = *n
	key.n.args = nil
	all.add(key)
	return c.overArgument(n, arg), nil
}

// find returns a copy of what was computed; nil if it was not.
func (all *derivedTexts) find(key *derivedText) *node {
	all.mu.Lock()
	defer all.mu.Unlock()
	for i := range all.list {
		d := &all.list[i]
		if d.src == key.src && d.lo == key.lo && d.nullable == key.nullable && reflect.DeepEqual(d.call, key.call) {
			n := d.n
			return &n
		}
	}
	return nil
}

func (all *derivedTexts) add(d derivedText) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.list) < derivedMax {
		all.list = append(all.list, d)
	}
}

// overArgument returns n over arg, with a dictionary that is the star's own: what it finds out of its
// order is not shared.
func (c *compiler) overArgument(n *node, arg *node) *node {
	if n.dict != nil {
		d := *n.dict
		n.dict = &d
	}
	n.args, n.risky = []*node{arg}, arg.risky || n.tab.Faults != nil || n.tab.OnNullFault
	return c.add(n)
}

// overDerived computes e, which reads only leaf, of the results of a function of it, where that has few;
// nil where it does not, or e reads the leaf besides.
func (c *compiler) overDerived(e *plan.Call, leaf plan.Expr, arg *node) (*node, error) {
	if arg.dict.src == nil {
		return nil, nil
	}
	inner := innerText(e, leaf)
	if inner == nil || !fewResults(inner, arg.dict, c.p.x.ordersOf()) {
		return nil, nil
	}
	n, err := c.derived(arg, leaf, inner)
	if err != nil || n.risky && !arg.risky {
		return nil, err // e may not compute what fails
	}
	return c.tabulate(without(e, inner, inner.T).(*plan.Call), typed{inner.T}, n)
}

// without returns e with what equals part replaced by a leaf of its type.
func without(e, part plan.Expr, t vector.Type) plan.Expr {
	return plan.Rewrite(e, func(x plan.Expr) plan.Expr {
		if reflect.DeepEqual(x, part) {
			return typed{t}
		}
		return x
	})
}

// innerText returns the call of a function that e, which is another, has wherever it has the leaf, and
// whose result is text; nil if there is none.
func innerText(e *plan.Call, leaf plan.Expr) (inner *plan.Call) {
	one := true
	plan.Walk(e, func(x plan.Expr) bool {
		c, ok := x.(*plan.Call)
		if !ok || !one {
			one = one && x != leaf
			return one
		}
		for _, a := range c.Args {
			if !isLeaf(a, leaf) {
				continue
			}
			one = c != e && c.Op == plan.OpFunc && c.T.Kind.IsString() && c.T.Kind != vector.BPChar && (inner == nil || reflect.DeepEqual(inner, c))
			inner = c
			return false
		}
		return true
	})
	if !one {
		return nil
	}
	return inner
}

// isLeaf reports whether e is the leaf, or the leaf cast, as functions have char(n).
func isLeaf(e, leaf plan.Expr) bool {
	c, ok := e.(*plan.Call)
	return e == leaf || ok && c.Op == plan.OpCast && c.Args[0] == leaf
}

// fewResults reports whether a function of text has few results, by some strings of the
// dictionary.
func fewResults(e *plan.Call, d *dict, orders *textOrders) bool {
	f := newEntryForm(e, d, orders)
	results := map[string]struct{}{}
	for i := range derivedSample {
		v, err := f.value(d.at(int64(i * d.n / derivedSample)))
		if err != nil {
			return false
		}
		results[v.Str] = struct{}{}
	}
	return len(results) <= derivedFew
}
