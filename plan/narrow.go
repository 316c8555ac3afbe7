package plan

import (
	"math"
	"math/big"

	"pgaccel/vector"
)

// Narrow turns a comparison of integers of a kind, the unscaled values of numerics among them, with
// a constant that is n where exact, else some value strictly between n and n+1, into one with an
// integer: to and bound. Where the constant is beyond all values decided is true, and outcome is that
// of each comparison with what is not null.
func Narrow(op Op, k vector.Kind, n *big.Int, exact bool) (to Op, bound int64, outcome, decided bool) {
	lowest, highest := int64(math.MinInt64), int64(math.MaxInt64)
	if k == vector.Date {
		// The first and last value of a date are its infinities.
		lowest, highest = math.MinInt32, math.MaxInt32
	}
	switch {
	case n.Cmp(big.NewInt(highest)) > 0: // above everything
		return op, 0, op == OpNe || op == OpLt || op == OpLe, true
	case n.Cmp(big.NewInt(lowest)) < 0: // below everything
		return op, 0, op == OpNe || op == OpGt || op == OpGe, true
	}
	if !exact {
		switch op {
		case OpEq, OpNe:
			return op, 0, op == OpNe, true
		case OpLt:
			op = OpLe
		case OpGe:
			op = OpGt
		}
	}
	return op, n.Int64(), false, false
}

// FloorTo returns d as an integer multiple of 10^-scale, rounded down, and whether it is exact.
func FloorTo(d vector.Decimal, scale int16) (n *big.Int, exact bool) {
	n = d.Unscaled.Big()
	if e := int(scale) - int(d.Scale); e >= 0 {
		return n.Mul(n, vector.BigPow10(e)), true
	} else {
		var r big.Int
		n.DivMod(n, vector.BigPow10(-e), &r) // Euclidean: the remainder is never negative
		return n, r.Sign() == 0
	}
}

// Flipped are the comparisons with their operands in the other order.
var Flipped = map[Op]Op{OpEq: OpEq, OpNe: OpNe, OpLt: OpGt, OpLe: OpGe, OpGt: OpLt, OpGe: OpLe}
