package olap

import (
	"math"

	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/vector"
)

// nodeKind says how a node computes its values for the rows of a tile.
type nodeKind uint8

const (
	nodeConst    nodeKind = iota
	nodeColumn            // column col of the pipeline's own table
	nodeOut               // output out of lookup probe
	nodeTable             // tab, by args[0]
	nodeArith             // op over 64-bit integers; proven to fit, or checked
	nodeCompare           // op over 64-bit integers
	nodeAnd               // three-valued
	nodeOr                // three-valued
	nodeNot               // 1 - args[0]
	nodeTest              // IS [NOT] NULL, IS TRUE, IS FALSE
	nodeDistinct          // IS DISTINCT FROM over 64-bit integers
	nodeCase              // as plan.OpCase
	nodeCoalesce          // as plan.OpCoalesce
	nodeFloatKey          // vector.FloatKey(args[0])
	nodeNumber            // the number of args[0] among numbers; null where it is none of them
	nodeMap               // f(args[0]), a value at a time
	nodeScalar            // a strict call of an operator, a value at a time
	nodeFunction          // a call of a function, a row at a time
	nodeTree              // an expression over args, a row at a time
)

// node is a compiled expression. It yields one int64 a row: the 64-bit form of
// its type, or for text a code in dict. The value of a null row lies within
// [lo, hi] too, so that it can be used as an index unseen.
type node struct {
	kind     nodeKind
	op       plan.Op
	t        vector.Type
	args     []*node
	lo, hi   int64 // bounds of all values
	nullable bool
	risky    bool  // may raise an error
	checked  bool  // nodeArith: results may leave the range of kind within
	lazy     bool  // nodeCase: an arm would fail for rows that do not take it
	dict     *dict // text, and numerics of varying scale: the values of the codes
	id       int   // of its buffers

	within     vector.Kind // nodeArith: t's, unless a cast that changes no bits has made t another
	col        int         // nodeColumn
	probe, out int         // nodeOut
	k          int64       // nodeConst; it is null where nullable
	tab        *table
	f          func(int64) (int64, error)   // nodeMap
	set        []int64                      // nodeMap of IN: the members, ascending
	around     func(v int64) (lo, hi int64) // nodeMap: sqlfn.Kernel.Around of f, and Every
	every      func(lo, hi int64) int64
	shift      func(v int64) (lo, hi int64) // nodeMap: sqlfn.Kernel.Shift
	starts     []int64                      // a group's key: the values that 0, 1, ... stand for; nil: themselves
	call       *plan.Call                   // nodeScalar, nodeFunction
	given      []vector.Value               // nodeFunction: the arguments that are constant
	places     []int                        // nodeFunction: where args stand among the call's arguments
	numbers    *wordTable                   // nodeNumber
	tree       plan.Expr                    // nodeTree: its leaves are inputs, by number of args
	known      bool                         // nodeTree: what is not in the pool is -1, and stays out of it
}

// vec holds the values of a node for the selected rows of a tile, in order. It
// belongs to the worker and is valid until the node is evaluated again or the
// selection changes. nulls is nil, or 1 for each null.
type vec struct {
	v     []int64
	nulls []uint8
}

// table is a function of one 64-bit value with a small domain, written out: faults are the
// values for which it fails.
type table struct {
	program.TableData
	err  error // the first error met
	runs runStarts
}

// value returns the value that a word of the node stands for.
func (n *node) value(word int64) vector.Value {
	if n.dict != nil {
		return n.dict.value(word)
	}
	return vector.WordValue(word, n.t)
}

// width returns hi-lo+1 and whether that fits an int64.
func width(lo, hi int64) (int64, bool) {
	n, ok := plan.OpSub.Integer(hi, lo)
	return n + 1, ok && n < math.MaxInt64
}

// arithBounds returns those of a sum, a difference or a product. fits is false where 64 bits do
// not hold them.
func arithBounds(op plan.Op, a, b *node) (lo, hi int64, fits bool) {
	lo, hi, fits = math.MaxInt64, math.MinInt64, true
	for _, x := range [2]int64{a.lo, a.hi} {
		for _, y := range [2]int64{b.lo, b.hi} {
			r, ok := op.Integer(x, y)
			fits = fits && ok
			lo, hi = min(lo, r), max(hi, r)
		}
	}
	return lo, hi, fits
}

// magnitude returns the largest absolute value in [lo, hi], at most MaxInt64.
func magnitude(lo, hi int64) int64 {
	if lo == math.MinInt64 {
		return math.MaxInt64
	}
	return max(hi, -lo, 0)
}
