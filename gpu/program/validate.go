package program

import (
	"fmt"

	"pgaccel/plan"
)

// validate reports what is wrong with a program: indexes that lead nowhere, nodes before
// their arguments, lookups used where their rows may have no partner.
func validate(p *Program) error {
	for i := range p.Nodes {
		if err := p.checkNode(i); err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
	}
	for i := range p.Lookups {
		l := &p.Lookups[i]
		if !within(l.Key, p.Nodes) {
			return fmt.Errorf("lookup %d: key %d", i, l.Key)
		}
		if l.Kind > LookupHash || l.Kind == LookupBits && len(l.Outs) > 0 {
			return fmt.Errorf("lookup %d: kind %d with %d outputs", i, l.Kind, len(l.Outs))
		}
		if first, _ := p.many(); l.Many && (l.Kind == LookupBits || first != i || p.Sink.Kind != SinkGroups) {
			return fmt.Errorf("lookup %d: kind %d with many partners", i, l.Kind)
		}
	}
	probed := make([]bool, len(p.Lookups))
	for i := range probed {
		probed[i] = p.Lookups[i].Left && !p.Lookups[i].Many
	}
	usable := func(n int) error {
		for l := range p.lookupsOf(n) {
			if !probed[l] {
				return fmt.Errorf("node %d reads lookup %d before it is probed", n, l)
			}
		}
		return nil
	}
	for i, s := range p.Steps {
		node := s.Node
		switch s.Kind {
		case StepRange, StepFilter, StepBits:
		case StepProbe:
			if !within(s.Index, p.Lookups) {
				return fmt.Errorf("step %d: lookup %d", i, s.Index)
			}
			if node = p.Lookups[s.Index].Key; p.Lookups[s.Index].Many && probed[s.Index] {
				return fmt.Errorf("step %d: lookup %d is probed again", i, s.Index)
			}
		default:
			return fmt.Errorf("step %d: kind %d", i, s.Kind)
		}
		if !within(node, p.Nodes) {
			return fmt.Errorf("step %d: node %d", i, node)
		}
		if s.Risky && (s.Kind != StepFilter || len(p.lookupsOf(node)) > 0) {
			return fmt.Errorf("step %d: a risky step over lookups, or that is not a filter", i)
		}
		if s.Risky && i > 0 && !p.Steps[i-1].Risky {
			return fmt.Errorf("step %d: a risky step after one that is not", i)
		}
		if err := usable(node); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		if s.Kind == StepProbe {
			probed[s.Index] = true
		}
	}
	roots, err := p.sinkNodes()
	if err != nil {
		return err
	}
	for _, n := range roots {
		if !within(n, p.Nodes) {
			return fmt.Errorf("sink: node %d", n)
		}
		if err := usable(n); err != nil {
			return fmt.Errorf("sink: %w", err)
		}
	}
	return nil
}

func within[T any](i int, list []T) bool { return i >= 0 && i < len(list) }

// arity returns the least and the most arguments of an operation.
func arity(op Op) (least, most int) {
	switch op {
	case OpConst, OpColumn, OpEntry, OpOut:
		return 0, 0
	case plan.OpNot, plan.OpIsNull, plan.OpIsNotNull, plan.OpIsTrue, plan.OpIsFalse, OpTable, OpFloatKey, OpFixedHigh, OpFixedLow, OpFloatOf, OpShift, OpStep, plan.OpIn, plan.OpAbs:
		return 1, 1
	case plan.OpAnd, plan.OpOr, plan.OpCase, plan.OpCoalesce:
		return 1, 1 << 20
	case plan.OpAdd, plan.OpSub, plan.OpMul, plan.OpDiv, plan.OpMod, plan.OpEq, plan.OpNe, plan.OpLt, plan.OpLe, plan.OpGt, plan.OpGe, plan.OpDistinct,
		OpFloatAdd, OpFloatSub, OpFloatMul, OpFloatDiv:
		return 2, 2
	}
	return 1, 0 // no operation: no count fits
}

func (p *Program) checkNode(i int) error {
	n := &p.Nodes[i]
	least, most := arity(n.Op)
	if len(n.Args) < least || len(n.Args) > most || n.Op == plan.OpCase && len(n.Args)%2 == 0 {
		return fmt.Errorf("operation %d with %d arguments", n.Op, len(n.Args))
	}
	for _, a := range n.Args {
		if a < 0 || a >= i {
			return fmt.Errorf("argument %d", a)
		}
	}
	ok := true
	switch n.Op {
	case OpColumn:
		ok = within(n.Index, p.Columns)
	case OpEntry:
		ok = within(n.Index, p.Lookups) && p.Lookups[n.Index].Kind != LookupBits
	case OpOut:
		ok = within(n.Index, p.Lookups) && within(n.Out, p.Lookups[n.Index].Outs)
	case OpTable:
		ok = within(n.Index, p.Tables)
	case OpConst, plan.OpIn:
		ok = n.Index >= 0
	}
	if !ok {
		return fmt.Errorf("operation %d of %d", n.Op, n.Index)
	}
	// The key of a lookup whose entry a node reads must not depend on that node.
	if n.Op == OpEntry || n.Op == OpOut {
		if k := p.Lookups[n.Index].Key; k < 0 || k >= i {
			return fmt.Errorf("key %d of lookup %d comes after it", k, n.Index)
		}
	}
	return nil
}

// children returns the nodes that a node is computed from, keys of lookups included.
func (p *Program) children(n int) []int {
	switch x := &p.Nodes[n]; x.Op {
	case OpEntry, OpOut:
		return []int{p.Lookups[x.Index].Key}
	default:
		return x.Args
	}
}

// walk calls f for the nodes that the given ones are computed from, each once, and for
// themselves.
func (p *Program) walk(roots []int, f func(n int)) {
	seen := make([]bool, len(p.Nodes))
	var visit func(n int)
	visit = func(n int) {
		if seen[n] {
			return
		}
		seen[n] = true
		for _, c := range p.children(n) {
			visit(c)
		}
		f(n)
	}
	for _, n := range roots {
		visit(n)
	}
}

// lookupsOf returns the lookups whose entries a node needs.
func (p *Program) lookupsOf(n int) map[int]bool {
	set := map[int]bool{}
	p.walk([]int{n}, func(n int) {
		if x := &p.Nodes[n]; x.Op == OpEntry || x.Op == OpOut {
			set[x.Index] = true
		}
	})
	return set
}

// sinkNodes returns the nodes that the sink reads.
func (p *Program) sinkNodes() (roots []int, err error) {
	s := &p.Sink
	for _, d := range s.Digits {
		roots = append(roots, d.Node)
	}
	switch s.Kind {
	case SinkGroups:
		if s.Place > PlaceHash || s.Place == PlaceSingle && len(s.Digits) > 0 {
			return nil, fmt.Errorf("sink: place %d with %d digits", s.Place, len(s.Digits))
		}
		if s.Prefix < 0 || s.Prefix > len(s.Digits) || s.Prefix > 0 && s.Place != PlaceHash {
			return nil, fmt.Errorf("sink: place %d with a prefix of %d digits", s.Place, s.Prefix)
		}
		if s.Distinct && (s.Place < PlaceGlobal || len(s.Accs) > 0) {
			return nil, fmt.Errorf("sink: place %d with %d accumulators, of distinct groups", s.Place, len(s.Accs))
		}
		if s.Counted && (!s.Distinct || len(s.Digits) == 0 || s.Prefix > 1) {
			return nil, fmt.Errorf("sink: numbers of groups are counted, of which there are %d digits, distinct %v, %d of them a prefix", len(s.Digits), s.Distinct, s.Prefix)
		}
		if s.Top && (s.Place == PlaceSingle || s.Distinct && !s.Counted || s.Counted && (s.TopBy != -1 || s.TopThen == TopPrefix) || s.TopBy < TopTied || s.TopBy >= len(s.Accs) || s.TopBy == TopTied && s.TopThen == TopAll) {
			return nil, fmt.Errorf("sink: the first groups by accumulator %d of %d in place %d, distinct %v", s.TopBy, len(s.Accs), s.Place, s.Distinct)
		}
		if s.TopThen > TopPrefix || s.TopThen != TopAll && !s.Top || s.TopThen == TopPrefix && s.Prefix == 0 {
			return nil, fmt.Errorf("sink: the first groups %v, then by digit %d, prefix %d", s.Top, s.TopThen, s.Prefix)
		}
		for _, by := range s.Having {
			if s.Distinct || by < -1 || by >= len(s.Accs) {
				return nil, fmt.Errorf("sink: groups having accumulator %d of %d, distinct %v", by, len(s.Accs), s.Distinct)
			}
		}
		for i, a := range s.Accs {
			if a.Kind > AccMax {
				return nil, fmt.Errorf("sink: accumulator %d of kind %d", i, a.Kind)
			}
			if a.Kind != AccRows {
				roots = append(roots, a.Arg)
			}
			if a.Filter >= 0 {
				roots = append(roots, a.Filter)
			}
		}
	case SinkBuild:
		if s.Build >= LookupHash {
			return nil, fmt.Errorf("sink: a lookup of kind %d cannot be built", s.Build)
		}
		if s.Repeats && s.Build != LookupBits {
			return nil, fmt.Errorf("sink: keys that come again have one entry each in a lookup of kind %d", s.Build)
		}
		roots = append(roots, s.Key)
	case SinkBitmap:
		roots = nil
	default:
		return nil, fmt.Errorf("sink of kind %d", s.Kind)
	}
	return roots, nil
}

// risky reports whether a node, or one that it is computed from, can be a fault.
func (p *Program) risky(n int) bool {
	risky := false
	p.walk([]int{n}, func(n int) {
		switch x := &p.Nodes[n]; x.Op {
		case plan.OpDiv, plan.OpMod, OpFixedHigh, OpFixedLow, OpFloatAdd, OpFloatSub, OpFloatMul, OpFloatDiv:
			risky = true
		case OpTable:
			risky = risky || p.Tables[x.Index].Faults
		case plan.OpAdd, plan.OpSub, plan.OpMul, plan.OpAbs, OpFloatKey:
			risky = risky || x.Checked
		}
	})
	return risky
}

// checkOrder reports what is wrong with an order of the steps: each comes once, and in an order
// that the program could have.
func (p *Program) checkOrder(order []int) error {
	if len(order) == 0 {
		return nil
	}
	q := *p
	q.Steps = nil
	seen := make([]bool, len(p.Steps))
	for _, i := range order {
		if !within(i, p.Steps) || seen[i] {
			return fmt.Errorf("steps in the order %v", order)
		}
		seen[i] = true
		q.Steps = append(q.Steps, p.Steps[i])
	}
	if len(order) != len(p.Steps) {
		return fmt.Errorf("%d of %d steps in an order", len(order), len(p.Steps))
	}
	return validate(&q)
}
