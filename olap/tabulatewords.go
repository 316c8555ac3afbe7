package olap

import (
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

// tabulateWords returns what e, whose only leaf is n, is for all values of n in their order; nil where one goroutine had better
// compute it, because they are few, or texts of an order that the server has yet to tell.
func (c *compiler) tabulateWords(e *plan.Call, n *node) []outcome {
	size, ok := width(n.lo, n.hi)
	x := c.p.x
	if n.dict != nil || !ok || size > mostWords || !x.opt.enough(int(size), 2*wordPiece) || x.opt.Workers == 1 || e.T.Kind.IsString() {
		return nil
	}
	all := make([]outcome, size)
	var unranked atomic.Bool
	x.sideBySide(int(size+wordPiece-1)/wordPiece, func(piece int) {
		var now vector.Value
		v := &env{leaf: func(plan.Expr) (vector.Value, error) { return now, nil }, orders: x.ordersOf()}
		for i := int64(piece) * wordPiece; i < min(int64(piece+1)*wordPiece, size); i++ {
			now = vector.WordValue(n.lo+i, n.t)
			all[i].value, all[i].err = v.eval(e)
		}
		if v.unranked {
			unranked.Store(true)
		}
	})
	if unranked.Load() {
		return nil
	}
	return all
}
