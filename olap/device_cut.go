package olap

import (
	"math"

	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/vector"
)

// ORDER BY with LIMIT on a device. A row has a number, its code, by which rows are in the order of the first
// keys: smaller ones come first. The device selects the code of the last row that the LIMIT leaves, or a bound a
// little above it, as it selects a percentile (device_percentile.go), and then finds the rows whose codes are not
// above: those that tie with the last one are among them. The processor orders these few by all keys.

// cutCandidates is how many rows the processor may get to order where fewer are wanted: a pass that leaves fewer
// takes longer than to read some thousand rows. Tests make it small.
var cutCandidates int64 = 1 << 14

// orderCode is a row's code.
type orderCode struct {
	n    *node
	desc bool // the first key is in descending order
	// first is the first key where it is a column without nulls, whose zone maps exclude segments; else nil.
	first  *node
	stride int64 // of the first key's digit
	lo     int64 // what digit 0 stands for: of a descending key v, ^v
	exact  bool  // the code is the first key alone
}

// orderCode returns the code of rows in the order of a cut, of which exprs are what is collected; nil where there is none.
func (p *pipeline) orderCode(exprs []plan.Expr, at cut) *orderCode {
	if at.rows == 0 || len(at.order) == 0 {
		return nil
	}
	nodes, err := p.c.list(exprs)
	if err != nil || p.seesAll(nodes) {
		return nil
	}
	var digits []*node // of as many keys as 63 bits hold; at least of the first
	for i, o := range at.order {
		d := p.orderDigit(nodes[at.keys+i], o)
		if d == nil {
			break
		}
		if _, fits := strides(append(digits, d)); !fits && i > 0 {
			break
		}
		digits = append(digits, d)
	}
	if len(digits) == 0 {
		return nil
	}
	key, o := nodes[at.keys], at.order[0]
	code := &orderCode{n: digits[0], desc: o.Desc, stride: 1, lo: digits[0].lo, exact: len(digits) == 1}
	if key.kind == nodeColumn && (key.dict == nil || key.dict.inOrder(key.t.Collation)) && !key.t.Kind.IsFloat() && !key.nullable {
		code.first = key
	}
	if !code.exact {
		code.n = nil
		for i, d := range digits {
			radix := int64(1) // of the digits behind it
			for _, r := range digits[i+1:] {
				radix *= r.hi - r.lo + 1
			}
			if i == 0 {
				code.stride = radix
			}
			part := p.c.whole(plan.OpMul, p.c.whole(plan.OpSub, d, p.c.number(d.lo)), p.c.number(radix))
			if code.n == nil {
				code.n = part
			} else {
				code.n = p.c.whole(plan.OpAdd, code.n, part)
			}
		}
	}
	return code
}

// orderDigit returns the node by which rows are in the order of one key, ascending, and which is never null; nil where
// there is none.
func (p *pipeline) orderDigit(key *node, o plan.Order) *node {
	if p.many >= 0 && probesOf(key) != 0 {
		return nil
	}
	c := o.Expr.Type().Collation
	if d := key.dict; d != nil && d.n > tableMax && key.t.Kind.IsString() && d.ranked(c) == nil {
		return nil // of so many texts the processor compares those that are left
	}
	if !key.ranked(c) {
		return nil
	}
	d, err := p.normalized(key)
	if err != nil {
		return nil
	}
	l := newLowering(p)
	if l.node(d); l.why != "" {
		return nil
	}
	if d.kind == nodeFloatKey && key.kind == nodeColumn { // whose zone maps are of these
		d.lo, d.hi, _ = p.columnBounds(key.col)
	}
	if o.Desc {
		d = p.c.whole(plan.OpSub, p.c.number(-1), d) // ^d
	}
	if !d.nullable {
		return d
	}
	n := &node{kind: nodeCoalesce, op: plan.OpCoalesce, t: vector.TypeOf(vector.Int8), lo: d.lo, hi: d.hi}
	var null int64
	switch {
	case o.NullsFirst && d.lo > math.MinInt64:
		null = d.lo - 1
		n.lo = null
	case !o.NullsFirst && d.hi < math.MaxInt64:
		null = d.hi + 1
		n.hi = null
	default:
		return nil
	}
	n.args = []*node{d, p.c.number(null)}
	return p.c.add(n)
}

// selectCut returns the selection of the code of the last of so many rows.
func (p *pipeline) selectCut(code *orderCode, rows int64) *radixSelect {
	g := &grouper{p: p, device: true, accs: []acc{{kind: accRanked, arg: code.n}}}
	by := &grouping{g: g, all: true, pack: newPacker(), how: groupSingle, expect: 1}
	g.bases, g.sets = []*grouping{by}, []*grouping{by}
	s := g.newRadixSelect(by, 0)
	s.step = cutStep
	s.next(by.expect)
	s.wants = func(n int64) []int64 {
		if n < rows {
			return nil
		}
		return []int64{rows - 1}
	}
	return s
}

// cut has rows left out of l whose codes say that a cut of so many does. ok is false where the processor has to.
func (a *accelerator) cut(l *lowering, code *orderCode, rows int64) (ok bool, err error) {
	bound, ok, err := a.bound(l.p.selectCut(code, rows), rows)
	if l.notAbove(code, bound); !ok {
		a.prepare([]deviceBase{{l: l}})
	}
	return ok, err
}

// bound has a selection run until few rows more than are wanted have codes that are not above the bound that it
// returns. ok is false where the processor has to.
func (a *accelerator) bound(s *radixSelect, rows int64) (bound int64, ok bool, err error) {
	groups := s.by.newGroups()
	groups.open()
	code := s.g.accs[0].arg
	for {
		l, digits := s.pass()
		if l.why != "" {
			return 0, a.leave(l.why), nil
		}
		l.place(s.expect(), a.limits.SharedBytes, a.limits.Memory, s.g.p.expectedRows())
		r, err := a.run(l)
		if r == nil || err != nil {
			return 0, false, err
		}
		s.take(groups, r, digits)
		for b, places := range s.open { // one, or none
			if before := rows - 1 - places[0].rank; before+s.rows <= max(2*rows, cutCandidates) {
				return min(b.prefix<<s.before+(int64(1)<<s.before-1), code.hi), true, nil
			}
		}
		switch {
		case len(s.open) > 0:
		case len(s.places[0]) == 0: // all rows are wanted
			return code.hi, true, nil
		default:
			return code.lo + int64(s.found[0][0]), true, nil
		}
	}
}

// notAbove leaves the rows whose codes are not above a bound.
func (l *lowering) notAbove(code *orderCode, bound int64) {
	within := func(n *node, lo, hi int64) {
		l.prog.Steps = append(l.prog.Steps, program.Step{Kind: program.StepRange, Node: l.node(n), Index: len(l.q.Ranges)})
		l.q.Ranges = append(l.q.Ranges, program.Range{Lo: lo, Hi: hi})
	}
	if code.first != nil {
		last := bound // of the first key's digits
		if !code.exact {
			last = code.lo + bound/code.stride
		}
		if code.desc {
			within(code.first, ^last, math.MaxInt64)
		} else {
			within(code.first, math.MinInt64, last)
		}
		if code.exact {
			return
		}
	}
	within(code.n, math.MinInt64, bound)
}
