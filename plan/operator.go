package plan

import (
	"math"

	"pgaccel/vector"
)

// Holds reports whether a comparison is true of two values; order is the sign of the first less
// the second.
func (op Op) Holds(order int) bool {
	switch op {
	case OpEq:
		return order == 0
	case OpNe:
		return order != 0
	case OpLt:
		return order < 0
	case OpLe:
		return order <= 0
	case OpGt:
		return order > 0
	}
	return order >= 0
}

// Integer computes OpAdd, OpSub, OpMul, OpDiv and OpMod of integers; fits is false where 64 bits do
// not hold the result. The divisor is not 0.
func (op Op) Integer(a, b int64) (r int64, fits bool) {
	switch op {
	case OpAdd:
		r = a + b
		return r, (a^r)&(b^r) >= 0
	case OpSub:
		r = a - b
		return r, (a^b)&(a^r) >= 0
	case OpMul:
		return vector.Mul64(a, b).Int64()
	case OpDiv:
		return a / b, a != math.MinInt64 || b != -1
	case OpMod:
		return a % b, true
	}
	panic("BUG: no integer operator")
}
