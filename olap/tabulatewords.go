package olap

import (
	"math"
	"slices"
	"sync/atomic"

	"pgaccel/plan"
	"pgaccel/vector"
)

// A table over many words is computed in pieces of wordPiece, by several goroutines; one over more than mostWords is not.
const (
	wordPiece = 1 << 9
	mostWords = 1 << 18
)

type outcome struct {
	value vector.Value
	err   error
}

// tabulateWords returns what tells, one call after the other, what e, whose only leaf is n, is for the values of n in their order;
// nil where one goroutine had better compute each, because they are few, or texts of an order that the server has yet to tell.
func (c *compiler) tabulateWords(e *plan.Call, n *node) (next func() outcome) {
	size, ok := width(n.lo, n.hi)
	x := c.p.x
	if n.dict != nil || !ok || e.T.Kind.IsString() {
		return nil
	}
	if at, ok := changes(e, n); ok && len(at) < int(size) {
		v, now, word := newWordEnv(n), outcome{}, n.lo
		return func() outcome {
			if len(at) > 0 && at[0] == word {
				now, at = v.of(e, word), at[1:]
			}
			word++
			return now
		}
	}
	if size > mostWords || !x.opt.enough(int(size), 2*wordPiece) || x.opt.Workers == 1 {
		return nil
	}
	all := make([]outcome, size)
	var unranked atomic.Bool
	x.sideBySide(int(size+wordPiece-1)/wordPiece, func(piece int) {
		v := newWordEnv(n)
		v.orders = x.ordersOf()
		for i := int64(piece) * wordPiece; i < min(int64(piece+1)*wordPiece, size); i++ {
			all[i] = v.of(e, n.lo+i)
		}
		if v.unranked {
			unranked.Store(true)
		}
	})
	if unranked.Load() {
		return nil
	}
	return func() (o outcome) {
		o, all = all[0], all[1:]
		return o
	}
}

// wordEnv computes expressions whose only leaf is a node's value.
type wordEnv struct {
	env
	n   *node
	now vector.Value
}

func newWordEnv(n *node) *wordEnv {
	v := &wordEnv{n: n}
	v.leaf = func(plan.Expr) (vector.Value, error) { return v.now, nil }
	return v
}

func (v *wordEnv) of(e plan.Expr, word int64) (o outcome) {
	v.now = vector.WordValue(word, v.n.t)
	o.value, o.err = v.eval(e)
	return o
}

// changes returns the words of n from which on e, whose only leaf n is, may be something else than for the word before,
// n.lo first: those that constants are compared with. ok is false where e is more than comparisons, and what combines them.
func changes(e plan.Expr, n *node) (at []int64, ok bool) {
	at = []int64{n.lo}
	note := func(k plan.Const) bool {
		if k.Null {
			return true
		}
		s := k.Datum.Value()
		w, ok := s.Word(n.t)
		for _, w := range []int64{w, w + 1} {
			if n.lo < w && w <= n.hi {
				at = append(at, w)
			}
		}
		return ok && w < math.MaxInt64
	}
	var walk func(e plan.Expr) bool
	walk = func(e plan.Expr) bool {
		c, is := e.(*plan.Call)
		if !is {
			_, is = e.(plan.Const)
			return is
		}
		leaf := func(e plan.Expr) bool {
			switch e.(type) {
			case plan.Column, outRef:
				return true
			}
			return false
		}
		switch c.Op {
		case plan.OpAnd, plan.OpOr, plan.OpNot:
			return !slices.ContainsFunc(c.Args, func(a plan.Expr) bool { return !walk(a) })
		case plan.OpIsNull, plan.OpIsNotNull:
			return leaf(c.Args[0])
		case plan.OpIn:
			return leaf(c.Args[0]) && !slices.ContainsFunc(c.Args[1:], func(a plan.Expr) bool {
				k, is := a.(plan.Const)
				return !is || !sameWords(n.t, k.Type()) || !note(k)
			})
		}
		of, k, _, ok := constantComparison(c)
		return ok && leaf(of) && note(k)
	}
	if !walk(e) {
		return nil, false
	}
	slices.Sort(at)
	return slices.Compact(at), true
}
