package olap

import (
	"slices"

	"pgaccel/plan"
)

// Of keys that are another key and a constant apart, as x - 1 is beside x, only the other is a part of
// groups' numbers: equal values of it have equal values of these. What they are is computed once for
// each group.

// offsetOf returns what n, which never fails, is beyond another node; nil where it is no such sum.
func offsetOf(n *node) (base *node, offset int64) {
	if n.kind != nodeArith || n.risky || n.dict != nil || len(n.args) != 2 {
		return nil, 0
	}
	a, b := n.args[0], n.args[1]
	if n.op == plan.OpAdd && a.kind == nodeConst {
		a, b = b, a
	}
	if b.kind != nodeConst || b.nullable || a.dict != nil {
		return nil, 0
	}
	switch n.op {
	case plan.OpAdd:
		return a, b.k
	case plan.OpSub:
		return a, -b.k // of the least integer itself, which wraps around as the sum does
	}
	return nil, 0
}

// baseOf returns the position of the key that key i follows from, and how far it is from that. A grouping
// of a set has all of its keys for themselves: other sets are computed from it.
func (by *grouping) baseOf(i int) (base int, offset int64, ok bool) {
	n := by.g.keys[i].node
	if n == nil || !by.all {
		return 0, 0, false
	}
	from, offset := offsetOf(n)
	if from == nil || from.kind != nodeColumn {
		return 0, 0, false
	}
	base = slices.IndexFunc(by.g.keys, func(k groupKey) bool {
		return k.node != nil && k.node.kind == nodeColumn && k.node.col == from.col
	})
	return base, offset, base >= 0
}

// offsetKeys returns the values of key i, which follows from another key of the set.
func (s *groups) offsetKeys(i, base int, offset int64, numbers []uint32) rcol {
	c, from := s.g.keyColumn(i), s.keys(base, numbers)
	c.v, c.nulls = from.v, from.nulls
	for j := range c.v {
		c.v[j] += offset
	}
	return c
}
