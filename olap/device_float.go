package olap

import (
	"math"

	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/vector"
)

// Doubles on a device are computed by their bits, an operation at a time. What is an error, an infinity or a NaN
// there is a fault, and the processor's.

var floatOps = map[plan.Op]program.Op{plan.OpAdd: program.OpFloatAdd, plan.OpSub: program.OpFloatSub, plan.OpMul: program.OpFloatMul, plan.OpDiv: program.OpFloatDiv}

const (
	// exactInteger is the largest magnitude up to which doubles are all integers.
	exactInteger = 1 << 53
	// exactPower is the largest power of ten that is a double.
	exactPower = 22
)

// computesFloat reports whether a device computes the double that a node is.
func computesFloat(n *node) bool {
	if n.kind != nodeScalar || n.t.Kind != vector.Float8 {
		return false
	}
	if n.op != plan.OpCast {
		return floatOps[n.op] != 0
	}
	// The quotient of two doubles that are exact is rounded once, as what strtod makes of the text is
	// (numeric_float8).
	a := n.args[0]
	return a.t.Kind.IsInt() || a.t.Kind == vector.Numeric && !a.t.Varying() && a.t.Scale >= 0 && a.t.Scale <= exactPower && magnitude(a.lo, a.hi) <= exactInteger
}

// float lowers a node that computesFloat.
func (l *lowering) float(n *node) int {
	to := program.Node{Op: floatOps[n.op], Nullable: n.nullable, Wide: true}
	for _, a := range n.args {
		to.Args = append(to.Args, l.node(a))
	}
	if n.op != plan.OpCast {
		return l.add(to)
	}
	to.Op = program.OpFloatOf
	at, scale := l.add(to), n.args[0].t.Scale
	if n.args[0].t.Kind != vector.Numeric || scale == 0 {
		return at
	}
	power := l.add(program.Node{Op: program.OpConst, Index: len(l.q.Constants), Wide: true})
	l.q.Constants = append(l.q.Constants, int64(math.Float64bits(math.Pow10(int(scale)))))
	return l.add(program.Node{Op: program.OpFloatDiv, Args: []int{at, power}, Nullable: n.nullable, Wide: true})
}

// mostComputed bounds the magnitude of a double that a device computes. Rounding is monotonic: what is computed of
// bounds is one.
func (l *lowering) mostComputed(n *node) (most uint64, ok bool) {
	if n.op == plan.OpCast {
		a := n.args[0]
		m := float64(magnitude(a.lo, a.hi))
		if a.t.Kind == vector.Numeric {
			m /= math.Pow10(int(a.t.Scale))
		}
		return math.Float64bits(m), true
	}
	of := func(n *node) float64 {
		m, known := l.mostOf(n)
		ok = known
		return math.Float64frombits(m)
	}
	a := of(n.args[0])
	if !ok {
		return 0, false
	}
	if b := n.args[1]; n.op == plan.OpDiv {
		if b.kind != nodeConst || b.nullable {
			return 0, false // by how little is not known
		}
		return math.Float64bits(a / math.Abs(math.Float64frombits(uint64(b.k)))), true
	}
	b := of(n.args[1])
	if n.op == plan.OpMul {
		return math.Float64bits(a * b), ok
	}
	return math.Float64bits(a + b), ok
}
