package olap

import "pgaccel/plan"

// arith computes a op b where the results are known to fit.
func arith(op plan.Op, out, a, b []int64) {
	a, b = a[:len(out)], b[:len(out)]
	switch op {
	case plan.OpAdd:
		for i := range out {
			out[i] = a[i] + b[i]
		}
	case plan.OpSub:
		for i := range out {
			out[i] = a[i] - b[i]
		}
	case plan.OpMul:
		for i := range out {
			out[i] = a[i] * b[i]
		}
	default:
		panic("BUG: no operator that cannot fail")
	}
}

func compareBoth(op plan.Op, out, a, b []int64) {
	a, b = a[:len(out)], b[:len(out)]
	switch op {
	case plan.OpEq:
		for i := range out {
			out[i] = b2i(a[i] == b[i])
		}
	case plan.OpNe:
		for i := range out {
			out[i] = b2i(a[i] != b[i])
		}
	case plan.OpLt:
		for i := range out {
			out[i] = b2i(a[i] < b[i])
		}
	case plan.OpLe:
		for i := range out {
			out[i] = b2i(a[i] <= b[i])
		}
	case plan.OpGt:
		for i := range out {
			out[i] = b2i(a[i] > b[i])
		}
	default:
		for i := range out {
			out[i] = b2i(a[i] >= b[i])
		}
	}
}

func compareConst(op plan.Op, out, a []int64, k int64) {
	a = a[:len(out)]
	switch op {
	case plan.OpEq:
		for i := range out {
			out[i] = b2i(a[i] == k)
		}
	case plan.OpNe:
		for i := range out {
			out[i] = b2i(a[i] != k)
		}
	case plan.OpLt:
		for i := range out {
			out[i] = b2i(a[i] < k)
		}
	case plan.OpLe:
		for i := range out {
			out[i] = b2i(a[i] <= k)
		}
	case plan.OpGt:
		for i := range out {
			out[i] = b2i(a[i] > k)
		}
	default:
		for i := range out {
			out[i] = b2i(a[i] >= k)
		}
	}
}
