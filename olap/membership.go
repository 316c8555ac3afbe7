package olap

import (
	"maps"
	"slices"

	"pgaccel/plan"
	"pgaccel/vector"
)

// membership compiles IN of a list.
func (c *compiler) membership(n *node, e *plan.Call) (*node, error) {
	if m, ok := c.overText(n, e); ok {
		return m, nil
	}
	if n.args[0].dict.grows() {
		return c.treeCall(e, n.args)
	}
	if set := intSet(n.args); set != nil {
		n.kind, n.lo, n.hi, n.nullable = nodeMap, 0, 1, n.args[0].nullable
		n.args = n.args[:1]
		n.set = slices.Sorted(maps.Keys(set))
		n.f = func(v int64) (int64, error) {
			_, in := set[v]
			return b2i(in), nil
		}
		return c.add(n), nil
	}
	// a IN (x, y): a = x OR a = y.
	or := &node{kind: nodeOr, op: plan.OpOr, t: e.T, hi: 1}
	for i := range n.args[1:] {
		eq := &plan.Call{Op: plan.OpEq, Args: []plan.Expr{e.Args[0], e.Args[i+1]}, T: e.T}
		m, err := c.comparison(&node{op: plan.OpEq, t: e.T, args: []*node{n.args[0], n.args[i+1]},
			nullable: n.args[0].nullable || n.args[i+1].nullable}, eq)
		if err != nil {
			return nil, err
		}
		or.args = append(or.args, m)
		or.nullable = or.nullable || m.nullable
		or.risky = or.risky || m.risky
	}
	return c.add(or), nil
}

// inSetMin is the number of members from which on IN looks them up in a map.
const inSetMin = 6

// intSet returns the constants args[1:] as a set; nil where they are few, one is
// null, or equality is not that of the 64 bits.
func intSet(args []*node) map[int64]struct{} {
	a := args[0]
	if len(args) <= inSetMin || a.dict != nil || a.t.Kind.IsFloat() {
		return nil
	}
	set := make(map[int64]struct{}, len(args)-1)
	for _, m := range args[1:] {
		if m.kind != nodeConst || m.nullable || a.t.Kind == vector.Numeric && m.t.Scale != a.t.Scale {
			return nil
		}
		set[m.k] = struct{}{}
	}
	return set
}
