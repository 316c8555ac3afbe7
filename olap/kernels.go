package olap

import (
	"math"

	"pgaccel/internal/simd"
	"pgaccel/plan"
)

// arith computes a op b where the results are known to fit.
func arith(op plan.Op, out, a, b []int64) {
	switch op {
	case plan.OpAdd:
		simd.Add(out, a, b)
	case plan.OpSub:
		simd.Sub(out, a, b)
	case plan.OpMul:
		simd.Mul(out, a, b)
	default:
		panic("BUG: no operator that cannot fail")
	}
}

func compareBoth(op plan.Op, out, a, b []int64) {
	switch op {
	case plan.OpEq:
		simd.Eq(out, a, b)
	case plan.OpNe:
		simd.Ne(out, a, b)
	case plan.OpLt:
		simd.Lt(out, a, b)
	case plan.OpLe:
		simd.Le(out, a, b)
	case plan.OpGt:
		simd.Lt(out, b, a)
	default:
		simd.Le(out, b, a)
	}
}

// compareConst compares with k: what passes is a range, or what lies outside of one.
func compareConst(op plan.Op, out, a []int64, k int64) {
	lo, in := int64(math.MinInt64), int64(1)
	var span uint64
	switch op {
	case plan.OpEq:
		lo = k
	case plan.OpNe:
		lo, in = k, 0
	case plan.OpLe, plan.OpGt:
		span = uint64(k) - uint64(lo)
	default: // below k, which is not at or above it
		lo, span = k, uint64(math.MaxInt64)-uint64(k)
	}
	if op == plan.OpGt || op == plan.OpLt {
		in = 0
	}
	simd.Inside(out, a, lo, span, in)
}
