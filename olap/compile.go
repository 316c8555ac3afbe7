package olap

import (
	"math"

	"pgaccel/gpu/program"
	"pgaccel/internal/invariant"
	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// outRef is an expression whose value a lookup delivers: output out of probe. It
// takes the place of a subexpression over the joined tables.
type outRef struct {
	probe, out int
	t          vector.Type
}

// Type implements plan.Expr.
func (o outRef) Type() vector.Type { return o.t }

// tableMax is the largest domain over which an expression is written out.
const tableMax = 1 << 16

// compiler makes nodes of expressions over one pipeline's rows.
type compiler struct {
	p     *pipeline
	nodes int
	// Of text, and of numerics of varying scale, that is computed row by row; nil as long as there is
	// none.
	pool, decimals *pool
	decimalsUnlike bool       // no two of decimals may be equal
	facts          plan.Facts // where what is compiled is computed
	known          []step     // the scan's steps as far as they are known; nil before
	expected       float64    // as expectedRows; 0 until then
	selected       bool       // what is compiled is computed of rows that have passed the scan's conditions
	deviceTables   bool       // a device finds the values of some table
}

func (c *compiler) add(n *node) *node {
	n.id = c.nodes
	c.nodes++
	return n
}

func (c *compiler) compile(e plan.Expr) (*node, error) {
	switch e := e.(type) {
	case plan.Const:
		return c.constant(e.Datum.Value(), e.Datum.Type)
	case plan.Column:
		return c.column(e)
	case outRef:
		o := c.p.probes[e.probe].lut.outs[e.out]
		return c.add(&node{kind: nodeOut, t: e.t, probe: e.probe, out: e.out, lo: o.lo, hi: o.hi,
			nullable: o.Nulls != nil, dict: o.dict, risky: o.risky}), nil
	case *plan.Call:
		return c.call(e)
	}
	return nil, forward(plan.ReasonShape, "an expression that is not over rows")
}

func (c *compiler) constant(v vector.Value, t vector.Type) (*node, error) {
	n := &node{kind: nodeConst, t: t, nullable: v.Null}
	switch {
	case t.Kind.IsString():
		if v.Null {
			v.Str = filler(t)
		}
		n.dict = listDict([]string{v.Str}, t)
	case !v.Null:
		if t.Varying() {
			n.t.Scale = v.Num.Scale
		}
		b, ok := v.Word(n.t)
		switch {
		case !ok && t.Varying():
			n.t, n.dict, b = t, decimalDict([]vector.Decimal{v.Num}, t), 0
		case !ok:
			return nil, errNumeric
		}
		n.k, n.lo, n.hi = b, b, b
	}
	return c.add(n), nil
}

// number returns the node of a number that no expression has.
func (c *compiler) number(k int64) *node {
	return c.add(&node{kind: nodeConst, t: vector.TypeOf(vector.Int8), k: k, lo: k, hi: k})
}

// whole returns the sum, difference or product of two integers of which the bounds prove that it
// fits 64 bits.
func (c *compiler) whole(op plan.Op, a, b *node) *node {
	if b.kind == nodeConst && (b.k == 0 && op == plan.OpSub || b.k == 1 && op == plan.OpMul) {
		return a
	}
	n := &node{kind: nodeArith, op: op, t: vector.TypeOf(vector.Int8), args: []*node{a, b}, nullable: a.nullable || b.nullable}
	n.lo, n.hi, _ = arithBounds(op, a, b)
	return c.add(n)
}

func (c *compiler) column(e plan.Column) (*node, error) {
	if e.Table != c.p.table {
		panic("BUG: a column of another table was not lowered")
	}
	if invariant.Enabled {
		read := c.p.x.read[c.p.x.q.Tables[e.Table].Relation]
		invariant.Check(read == nil || read[e.Column], "column %d of what functions return was not computed", e.Column)
	}
	meta := c.p.tab.Meta.Columns[e.Column]
	if meta.Unsupported != "" || e.T.Kind == vector.Invalid {
		return nil, forward(plan.ReasonType, "column type")
	}
	c.p.reads(e.Column)
	n := &node{kind: nodeColumn, t: e.T, col: e.Column}
	n.lo, n.hi, n.nullable = c.p.columnBounds(e.Column)
	switch {
	case e.T.Kind.IsString():
		if e.T.Kind == vector.BPChar && e.T.Typmod < 0 {
			return nil, forward(plan.ReasonType, "char without a length")
		}
		n.dict = c.p.columnDict(e.Column, e.T)
		n.lo, n.hi = 0, int64(max(n.dict.n-1, 0))
	case e.T.Varying():
		var err error
		if n.dict, err = c.p.numericDict(e.Column, e.T); err != nil {
			return nil, err
		}
		n.lo, n.hi = 0, int64(max(n.dict.n-1, 0))
	case e.T.Kind.IsFloat():
		n.lo, n.hi = math.MinInt64, math.MaxInt64
	case c.selected:
		n.lo, n.hi = c.p.selectedBounds(e.Column, n.lo, n.hi)
	}
	return c.add(n), nil
}

// selectedBounds narrows a column's bounds to what the scan's conditions let pass: groups by days
// of a month need no array for years.
func (p *pipeline) selectedBounds(col int, lo, hi int64) (int64, int64) {
	for i := range p.steps {
		if s := &p.steps[i]; s.kind == program.StepRange && s.n != nil && s.n.col == col && !s.derived {
			if from, to := max(lo, s.lo), min(hi, s.hi); from <= to {
				lo, hi = from, to
			}
		}
	}
	return lo, hi
}

// columnBounds merges the zone maps of a column of the pipeline's table. Without values the bounds are 0, 0. They are those of
// all rows where a device has found some (restrict): all nodes over a column have the same, within which a worker puts nulls.
func (p *pipeline) columnBounds(col int) (lo, hi int64, nullable bool) {
	t := p.tab
	if p.unrestricted != nil {
		t = p.unrestricted
	}
	if lo, hi, nullable = t.Bounds(col); lo > hi {
		lo, hi = 0, 0
	}
	return lo, hi, nullable
}

func (c *compiler) list(es []plan.Expr) ([]*node, error) {
	out := make([]*node, len(es))
	for i, e := range es {
		var err error
		if out[i], err = c.compile(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// arguments compiles those of a call.
func (c *compiler) arguments(e *plan.Call) (args []*node, err error) {
	if e.Op != plan.OpCase {
		return c.list(e.Args)
	}
	around := c.facts
	defer func() { c.facts = around }()
	args = make([]*node, len(e.Args))
	around.Arms(e, func(i int, f plan.Facts) {
		if c.facts = f; i < 0 {
			i = -1 - i
		}
		if err == nil {
			args[i], err = c.compile(e.Args[i])
		}
	})
	return args, err
}

func (c *compiler) call(e *plan.Call) (*node, error) {
	if leaves(e) == 0 {
		v, err := (&env{orders: c.p.x.ordersOf()}).evalSettled(e)
		if err != nil {
			return nil, err
		}
		return c.constant(v, e.T)
	}
	if e.Op == plan.OpFunc && e.Func.IsImage() {
		if n, err := c.compile(e.Args[0]); err != nil {
			return nil, err
		} else if n.dict != nil {
			return retyped(n, e.T), nil
		}
	}
	if leaf, ok := singleLeaf(e); ok {
		if n, err := c.compile(leaf); err != nil {
			return nil, err
		} else if worthTable(e, n, c.p.tab.Rows) {
			return c.tabulate(e, leaf, n)
		}
	}
	if e.Op == plan.OpFunc {
		return c.function(e)
	}
	args, err := c.arguments(e)
	if err != nil {
		return nil, err
	}
	n := &node{op: e.Op, t: e.T, args: args}
	varying := e.T.Varying()
	for _, a := range args {
		n.risky = n.risky || a.risky
		n.nullable = n.nullable || a.nullable
		varying = varying || a.t.Varying()
	}
	switch e.Op {
	case plan.OpAnd, plan.OpOr, plan.OpNot:
		n.kind, n.hi = nodeAnd, 1
		if e.Op == plan.OpOr {
			n.kind = nodeOr
		} else if e.Op == plan.OpNot {
			n.kind = nodeNot
		}
		return c.add(n), nil
	case plan.OpIsNull, plan.OpIsNotNull, plan.OpIsTrue, plan.OpIsFalse:
		n.kind, n.hi, n.nullable = nodeTest, 1, false
		n.args[0] = c.presence(n.args[0])
		return c.add(n), nil
	case plan.OpEq, plan.OpNe, plan.OpLt, plan.OpLe, plan.OpGt, plan.OpGe, plan.OpDistinct:
		return c.comparison(n, e)
	case plan.OpIn:
		return c.membership(n, e)
	case plan.OpCase, plan.OpCoalesce:
		n.lazy = e.Op == plan.OpCase && plan.Guarded(e)
		return c.choice(n)
	case plan.OpLike, plan.OpSame:
		if m, ok := c.overText(n, e); ok {
			return m, nil
		}
		return c.treeCall(e, args)
	case plan.OpCast:
		return c.cast(n, e)
	}
	if varying {
		return c.treeCall(e, args)
	}
	return c.arithmetic(n, e)
}

// scalarNode computes a strict call value by value.
func (c *compiler) scalarNode(n *node, e *plan.Call) (*node, error) {
	for _, a := range n.args {
		if a.dict != nil {
			return nil, forward(plan.ReasonFunction, "text function over rows")
		}
	}
	if coded(n.t) {
		return nil, forward(plan.ReasonFunction, "only over groups")
	}
	n.kind, n.call = nodeScalar, e
	return c.byRow(n), nil
}

// byRow adds a node of which nothing is known but its type.
func (c *compiler) byRow(n *node) *node {
	n.risky = true
	n.lo, n.hi = math.MinInt64, math.MaxInt64
	if lo, hi, ok := kindRange(n.t.Kind); ok && n.t.Kind.IsInt() {
		n.lo, n.hi = lo, hi
	} else if n.t.Kind == vector.Bool {
		n.lo, n.hi = 0, 1
	} else if n.t.Kind == vector.Time {
		n.lo, n.hi = 0, sqltype.MicrosPerDay
	} else if n.t.Kind == vector.Date { // infinities included: they are what arithmetic looks for
		n.lo, n.hi = math.MinInt32, math.MaxInt32
	} else if precision := int(n.t.Typmod-4) >> 16; n.t.Kind == vector.Numeric && n.t.Typmod >= 4 && precision <= 18 {
		n.hi = vector.Pow10(precision) - 1
		n.lo = -n.hi
	}
	return c.add(n)
}

func (c *compiler) arithmetic(n *node, e *plan.Call) (*node, error) {
	k := e.T.Kind
	infinity := false
	for _, a := range n.args {
		infinity = infinity || a.t.Kind == vector.Date && (a.lo == math.MinInt32 || a.hi == math.MaxInt32) ||
			stamp(a.t.Kind) && (a.lo == math.MinInt64 || a.hi == math.MaxInt64)
	}
	lo, hi, ranged := kindRange(k)
	a := n.args[0]
	b := a
	if len(n.args) > 1 {
		b = n.args[1]
	}
	if k == vector.Numeric {
		switch e.Op {
		case plan.OpAdd, plan.OpSub, plan.OpMod:
			if a.t.Scale != b.t.Scale || a.t.Scale != e.T.Scale {
				return nil, forward(plan.ReasonType, "numerics of unequal scale")
			}
		case plan.OpMul:
			if a.t.Scale+b.t.Scale != e.T.Scale {
				return nil, forward(plan.ReasonType, "numerics of unequal scale")
			}
		}
	}
	switch e.Op {
	case plan.OpAdd, plan.OpSub, plan.OpMul:
		if !ranged || infinity {
			return c.scalarNode(n, e)
		}
		n.kind, n.within = nodeArith, k
		l, h, fits := arithBounds(e.Op, a, b)
		if n.checked = !fits || l < lo || h > hi; n.checked {
			n.risky = true
			l, h = lo, hi
		}
		n.lo, n.hi = l, h
		return c.add(n), nil
	case plan.OpNeg, plan.OpAbs:
		m := magnitude(a.lo, a.hi)
		if !k.IsInt() && k != vector.Numeric || m > hi || a.lo == math.MinInt64 {
			return c.scalarNode(n, e)
		}
		zero, err := c.constant(vector.WordValue(0, a.t), a.t)
		if err != nil {
			return nil, err
		}
		neg := c.add(&node{kind: nodeArith, op: plan.OpSub, t: e.T, args: []*node{zero, a}, lo: -a.hi, hi: -a.lo,
			nullable: a.nullable, risky: a.risky})
		if e.Op == plan.OpNeg {
			return neg, nil
		}
		n.kind, n.lo, n.hi = nodeMap, 0, m
		n.f = func(v int64) (int64, error) { return max(v, -v), nil }
		return c.add(n), nil
	case plan.OpDiv, plan.OpMod:
		if !k.IsInt() && !(k == vector.Numeric && e.Op == plan.OpMod) {
			return c.scalarNode(n, e)
		}
		n.kind, n.within, n.checked = nodeArith, k, true
		m := magnitude(a.lo, a.hi)
		if e.Op == plan.OpMod {
			m = min(m, magnitude(b.lo, b.hi))
		}
		n.lo, n.hi = max(lo, -m), min(hi, m)
		if e.Op == plan.OpDiv && a.lo == math.MinInt64 {
			n.lo = lo // divided by 1; magnitude ends before it
		}
		// b is not 0, and the one quotient that is too large cannot occur.
		if a.lo >= 0 {
			n.lo = min(0, n.lo)
			if b.lo >= 0 || e.Op == plan.OpMod {
				n.lo = 0
			}
		}
		n.risky = n.risky || b.lo <= 0 && b.hi >= 0 || e.Op == plan.OpDiv && a.lo <= lo
		return c.add(n), nil
	}
	return c.scalarNode(n, e)
}

// comparison compiles n, an operator of two operands of one kind, to one over
// integers in the same order.
func (c *compiler) comparison(n *node, e *plan.Call) (*node, error) {
	a, b := n.args[0], n.args[1]
	if a.t.Varying() || b.t.Varying() {
		return c.decimalComparison(n, e)
	}
	if a.dict != nil || b.dict != nil {
		if a.dict == nil || b.dict == nil || (a.t.Kind == vector.BPChar) != (b.t.Kind == vector.BPChar) {
			return nil, forward(plan.ReasonType, "comparison of unlike types")
		}
		if a.dict.grows() || b.dict.grows() {
			return c.treeCall(e, n.args)
		}
		if m, ok := c.overText(n, e); ok {
			return m, nil
		}
		var err error
		if a, b, err = c.sameCodes(a, b, e); err != nil {
			return nil, err
		}
	}
	if a.t.Kind.IsFloat() != b.t.Kind.IsFloat() || (a.t.Kind == vector.Numeric) != (b.t.Kind == vector.Numeric) {
		return nil, forward(plan.ReasonType, "comparison of unlike types")
	}
	switch {
	case a.t.Kind.IsFloat():
		a, b = c.floatKey(a), c.floatKey(b)
	case a.t.Kind == vector.Numeric:
		scale := max(a.t.Scale, b.t.Scale)
		var err error
		if a, err = c.rescale(a, scale); err != nil {
			return nil, err
		}
		if b, err = c.rescale(b, scale); err != nil {
			return nil, err
		}
	}
	return c.compared(n, e, a, b), nil
}

// compared makes n the comparison of two integers.
func (c *compiler) compared(n *node, e *plan.Call, a, b *node) *node {
	n.args = []*node{a, b}
	n.kind, n.lo, n.hi = nodeCompare, 0, 1
	n.risky = a.risky || b.risky
	if e.Op == plan.OpDistinct {
		n.kind, n.nullable = nodeDistinct, false
	}
	return c.add(n)
}

func (c *compiler) floatKey(a *node) *node {
	return c.add(&node{kind: nodeFloatKey, t: vector.TypeOf(vector.Int8), args: []*node{a},
		lo: -vector.NaNKey, hi: vector.NaNKey, nullable: a.nullable, risky: a.risky})
}

// rescale returns a numeric node with a larger scale.
func (c *compiler) rescale(a *node, scale int16) (*node, error) {
	if a.t.Scale == scale {
		return a, nil
	}
	if scale-a.t.Scale > 18 || scale < a.t.Scale {
		return nil, forward(plan.ReasonType, "numerics of unequal scale")
	}
	t := a.t
	t.Scale, t.Typmod = scale, -1
	return c.scaled(a, vector.Pow10(int(scale-a.t.Scale)), t)
}

// scaled returns a*factor as a value of type t.
func (c *compiler) scaled(a *node, factor int64, t vector.Type) (*node, error) {
	f := c.number(factor)
	n := &node{kind: nodeArith, op: plan.OpMul, t: t, within: t.Kind, args: []*node{a, f}, nullable: a.nullable, risky: a.risky}
	lo, hi, _ := kindRange(t.Kind)
	var fits bool
	n.lo, n.hi, fits = arithBounds(plan.OpMul, a, f)
	if n.checked = !fits || n.lo < lo || n.hi > hi; n.checked {
		n.risky, n.lo, n.hi = true, lo, hi
	}
	return c.add(n), nil
}

// choice compiles CASE and COALESCE.
func (c *compiler) choice(n *node) (*node, error) {
	var arms []int
	n.kind = nodeCoalesce
	if n.op == plan.OpCase {
		n.kind = nodeCase
		for i := 1; i < len(n.args); i += 2 {
			arms = append(arms, i)
		}
		arms = append(arms, len(n.args)-1)
	} else {
		for i := range n.args {
			arms = append(arms, i)
		}
	}
	n.lo, n.hi = math.MaxInt64, math.MinInt64
	if coded(n.t) {
		if err := c.unite(n, arms); err != nil {
			return nil, err
		}
	}
	// A null constant carries no value; its scale and bounds do not matter.
	isNull := func(a *node) bool { return a.kind == nodeConst && a.nullable }
	n.nullable = false
	all := true
	for _, i := range arms {
		a := n.args[i]
		if n.t.Kind == vector.Numeric && !n.t.Varying() && !isNull(a) {
			var err error
			if a, err = c.rescale(a, n.t.Scale); err != nil {
				return nil, err
			}
			n.args[i] = a
			n.risky = n.risky || a.risky
		}
		if !isNull(a) {
			n.lo, n.hi = min(n.lo, a.lo), max(n.hi, a.hi)
		}
		n.nullable = n.nullable || a.nullable
		all = all && a.nullable
	}
	if n.kind == nodeCoalesce {
		n.nullable = all
	}
	if n.lo > n.hi {
		n.lo, n.hi = 0, 0
	}
	return c.add(n), nil
}
