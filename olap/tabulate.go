package olap

import (
	"math"
	"slices"

	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// singleLeaf returns the one column or lookup output that e reads, if it is one.
func singleLeaf(e plan.Expr) (leaf plan.Expr, ok bool) {
	ok = true
	plan.Walk(e, func(x plan.Expr) bool {
		switch x.(type) {
		case plan.Column, outRef:
			if leaf != nil && leaf != x {
				ok = false
			}
			leaf = x
		}
		return true
	})
	return leaf, ok && leaf != nil
}

// worthTable reports whether e, which reads leaf only, is better computed once
// for each value that leaf can have than once a row. Text always is: its
// functions are defined on strings.
func worthTable(e *plan.Call, leaf *node, rows int64) bool {
	if leaf.dict != nil {
		switch e.Op {
		case plan.OpIsNull, plan.OpIsNotNull:
			return false
		case plan.OpCast, plan.OpCase, plan.OpCoalesce:
			// Text results keep their dictionaries where they can.
			return !e.T.Kind.IsString()
		}
		return true
	}
	n, ok := width(leaf.lo, leaf.hi)
	if !ok || n > tableMax || n > max(256, rows/32) || leaf.t.Kind.IsFloat() {
		return false
	}
	costly := e.T.Kind.IsString()
	plan.Walk(e, func(x plan.Expr) bool {
		if c, is := x.(*plan.Call); is {
			switch c.Op {
			case plan.OpFunc, plan.OpCase, plan.OpCoalesce, plan.OpDiv, plan.OpMod, plan.OpIn, plan.OpOr:
				costly = true
			}
		}
		return true
	})
	return costly
}

// fewValues reports whether text of a node's values is better written out once than made a
// row at a time.
func (c *compiler) fewValues(a *node) bool {
	n, ok := width(a.lo, a.hi)
	return ok && !a.t.Kind.IsFloat() && n <= max(fewText, min(tableMax, c.p.tab.Rows/32))
}

// fewText is so few values that text of them is always written out. Tests make it small.
var fewText int64 = 256

// tabulate writes e out over the values of its only leaf, which n computes.
func (c *compiler) tabulate(e *plan.Call, leaf plan.Expr, n *node) (*node, error) {
	if c.manyDecimals(n, e.T) {
		return c.rowByRow(e, leaf, n), nil
	}
	if c.largeDict(n, e.T) {
		if c.fewOf(n, e.T) {
			return c.rowByRow(e, leaf, n), nil
		}
		if of := c.lengthOnDevice(e, leaf, n); of != nil {
			return of, nil
		}
		if of, err := c.overDerived(e, leaf, n); of != nil || err != nil {
			return of, err
		}
		return c.derived(n, leaf, e)
	}
	var now vector.Value
	v := &env{leaf: func(plan.Expr) (vector.Value, error) { return now, nil }, orders: c.p.x.ordersOf()}
	if n.dict != nil {
		v.dicts = []*dict{n.dict}
	}
	f := func(x vector.Value) (vector.Value, error) {
		now = x
		return v.eval(e)
	}
	if next := c.tabulateWords(e, n); next != nil {
		return c.tabulateOver(n, e.T, func(x vector.Value) (vector.Value, error) {
			if x.Null {
				return f(x)
			}
			r := next()
			return r.value, r.err
		})
	}
	return c.tabulateBy(v, n, e.T, f)
}

// tabulateBy is tabulateOver of what v computes.
func (c *compiler) tabulateBy(v *env, arg *node, t vector.Type, f func(vector.Value) (vector.Value, error)) (n *node, err error) {
	err = v.settle(func() (err error) {
		n, err = c.tabulateOver(arg, t, f)
		return err
	})
	return n, err
}

// overText writes a call out over the strings of its one argument that is not
// constant; ok is false where that is not text or not the only one.
func (c *compiler) overText(n *node, e *plan.Call) (*node, bool) {
	at := -1
	for i, a := range n.args {
		if a.kind == nodeConst {
			continue
		}
		if at >= 0 || a.dict == nil || a.dict.grows() {
			return nil, false
		}
		at = i
	}
	if at < 0 {
		return nil, false
	}
	a := n.args[at]
	call := *e
	call.Args = slices.Clone(e.Args)
	call.Args[at] = typed{e.Args[at].Type()}
	var now vector.Value
	v := &env{leaf: func(plan.Expr) (vector.Value, error) { return now, nil }, dicts: []*dict{a.dict}, orders: c.p.x.ordersOf()}
	m, err := c.tabulateBy(v, a, e.T, func(x vector.Value) (vector.Value, error) {
		now = x
		return v.eval(&call)
	})
	return m, err == nil
}

// tabulateOver returns a node of type t that is f of arg's values.
func (c *compiler) tabulateOver(arg *node, t vector.Type, f func(vector.Value) (vector.Value, error)) (*node, error) {
	size, ok := width(arg.lo, arg.hi)
	if !ok || size > 1<<28 {
		panic("BUG: a table over too large a domain")
	}
	if t.Kind == vector.BPChar && t.Typmod < 0 {
		return nil, errPadding
	}
	memory := textMemory{x: c.p.x}
	if memory.add(8 * size); memory.err != nil {
		return nil, memory.err
	}
	tab := &table{TableData: program.TableData{Lo: arg.lo, Values: make([]int64, size)}}
	n := &node{kind: nodeTable, t: t, args: []*node{arg}, tab: tab, risky: arg.risky}
	var list []string
	index := map[string]int64{}
	var numerics relationColumn
	lo, hi, first := int64(0), int64(0), true
	put := func(x vector.Value) (v int64, null bool, err error) {
		r, err := f(x)
		if err != nil || r.Null {
			return 0, r.Null, err
		}
		if t.Kind.IsString() {
			if t.Kind == vector.BPChar && !padded(r.Str, t) {
				return 0, false, errPadding
			}
			code, ok := index[r.Str]
			if !ok {
				code = int64(len(list))
				index[r.Str] = code
				list = append(list, r.Str)
				memory.add(int64(len(r.Str)) + textBeside)
			}
			v = code
		} else if t.Varying() {
			v = numerics.decimalCode(r.Num)
		} else if v, ok = r.Word(t); !ok {
			return 0, false, errNumeric
		}
		if first || v < lo {
			lo = v
		}
		if first || v > hi {
			hi = v
		}
		first = false
		return v, false, nil
	}
	var missing []int // no value: filled in below, within the bounds
	for i := range size {
		x := vector.WordValue(arg.lo+i, arg.t)
		if arg.dict != nil {
			if i >= int64(arg.dict.n) {
				missing = append(missing, int(i))
				continue // the one entry of an empty dictionary
			}
			x = arg.dict.value(arg.lo + i)
		}
		v, null, err := put(x)
		if memory.err != nil {
			return nil, memory.err
		}
		tab.Values[i] = v
		if null || err != nil {
			missing = append(missing, int(i))
		}
		if null {
			if tab.Nulls == nil {
				tab.Nulls = make([]uint8, size)
			}
			tab.Nulls[i] = 1
			n.nullable = true
		}
		if err != nil {
			if tab.Faults == nil {
				tab.Faults = make([]uint8, size)
				tab.err = err
			}
			tab.Faults[i] = 1
			n.risky = true
		}
	}
	if arg.nullable {
		v, null, err := put(vector.NullValue)
		tab.OnNull, tab.OnNullNull, tab.OnNullFault = v, null, err != nil
		n.nullable = n.nullable || null
		if err != nil {
			n.risky = true
			if tab.err == nil {
				tab.err = err
			}
		}
	}
	for _, i := range missing {
		tab.Values[i] = lo
	}
	if tab.OnNullNull || tab.OnNullFault {
		tab.OnNull = lo
	}
	n.lo, n.hi = lo, hi
	n.anyFloat()
	if t.Kind.IsString() {
		if len(list) == 0 {
			list = []string{filler(t)}
		}
		n.dict = listDict(list, t)
	} else if t.Varying() {
		if len(numerics.decimals) == 0 {
			numerics.decimalCode(vector.Decimal{})
		}
		n.dict = decimalDict(numerics.decimals, t)
	}
	return c.add(n), nil
}

// filler is the one string of a dictionary of a type that would have none: a value, because what reads dictionaries
// reads it, too.
func filler(t vector.Type) string {
	switch {
	case t.Kind == vector.JSONB, t.Kind == vector.JSON:
		return "null"
	case t.Kind.IsBytes():
		of := sqltype.Of(t.Kind)
		d, _ := of.Parse(of.Samples[0])
		return d.Str
	case t.Kind.IsArray():
		return sqltype.NewArray(vector.TypeOf(t.Kind.Element())).String()
	}
	return ""
}

// anyFloat says of a node of floats that nothing is known of its words.
func (n *node) anyFloat() {
	if n.t.Kind.IsFloat() {
		n.lo, n.hi = math.MinInt64, math.MaxInt64
	}
}

// written returns a node of one argument that is computed a value at a time as a table; nil
// where that would be too large. A function of time that is the same throughout every so many
// microseconds is one of their number.
func (c *compiler) written(n *node) *node {
	if len(n.args) != 1 || n.f == nil && n.call == nil {
		return nil
	}
	a, f, words := n.args[0], n.unary(), n.words()
	every := int64(0)
	if n.every != nil {
		every = n.every(a.lo, a.hi)
	}
	if n.op == plan.OpCast && n.t.Kind == vector.Date && a.t.Kind != vector.Date {
		every = sqltype.MicrosPerDay
	}
	if every > 0 {
		first, last := sqltype.FloorDiv(a.lo, every), sqltype.FloorDiv(a.hi, every)
		if infinite(vector.Timestamp, a.lo) || infinite(vector.Timestamp, a.hi) || last-first >= tableMax {
			return nil
		}
		base := first * every // after the first timestamp that there is, less a unit
		at := c.whole(plan.OpSub, a, c.number(base))
		a = c.add(&node{kind: nodeArith, op: plan.OpDiv, t: at.t, args: []*node{at, c.number(every)}, nullable: a.nullable,
			hi: last - first})
		of := f
		f = func(v vector.Value) (vector.Value, error) {
			v.I = base + v.I*every
			return of(v)
		}
		if of := words; of != nil {
			words = func(w int64) (int64, error) { return of(base + w*every) }
		}
	}
	if size, ok := width(a.lo, a.hi); !ok || size > tableMax || a.dict != nil {
		return nil
	}
	var m *node
	var err error
	if words != nil {
		m, err = c.tabulateMap(a, n.t, words)
	} else {
		m, err = c.tabulateOver(a, n.t, f)
	}
	if err != nil {
		return nil
	}
	return m
}

// words returns unary of words, nil where it is not a function of these, or makes text.
func (n *node) words() func(int64) (int64, error) {
	if n.kind != nodeMap || n.f == nil || coded(n.t) || n.args[0].dict != nil {
		return nil
	}
	return n.f
}

// tabulateMap is tabulateOver of a function of words, null of null, whose results are not coded: without what values
// of any type take.
func (c *compiler) tabulateMap(arg *node, t vector.Type, f func(int64) (int64, error)) (*node, error) {
	size, _ := width(arg.lo, arg.hi)
	memory := textMemory{x: c.p.x}
	if memory.add(8 * size); memory.err != nil {
		return nil, memory.err
	}
	tab := &table{TableData: program.TableData{Lo: arg.lo, Values: make([]int64, size), OnNullNull: arg.nullable}}
	n := &node{kind: nodeTable, t: t, args: []*node{arg}, tab: tab, risky: arg.risky, nullable: arg.nullable, lo: math.MaxInt64, hi: math.MinInt64}
	for i := range tab.Values {
		v, err := f(arg.lo + int64(i))
		if err == nil {
			tab.Values[i], n.lo, n.hi = v, min(n.lo, v), max(n.hi, v)
			continue
		}
		if tab.Faults == nil {
			tab.Faults, tab.err, n.risky = make([]uint8, size), err, true
		}
		tab.Faults[i] = 1
	}
	if n.lo > n.hi {
		n.lo, n.hi = 0, 0
	}
	for i, fault := range tab.Faults {
		if fault != 0 {
			tab.Values[i] = n.lo
		}
	}
	if tab.OnNullNull {
		tab.OnNull = n.lo
	}
	n.anyFloat()
	return c.add(n), nil
}

// unary returns what a node of one argument that is computed a value at a time makes of a value.
func (n *node) unary() func(vector.Value) (vector.Value, error) {
	if n.kind == nodeFunction {
		return func(v vector.Value) (vector.Value, error) {
			args := slices.Clone(n.given)
			args[n.places[0]] = v
			return callFunction(n.call.Func, args)
		}
	}
	return func(v vector.Value) (vector.Value, error) {
		switch {
		case v.Null:
			return v, nil
		case n.kind == nodeScalar:
			return unaryScalar(n.call, v)
		}
		w, _ := v.Word(n.args[0].t)
		r, err := n.f(w)
		return vector.WordValue(r, n.t), err
	}
}

// derive returns text with f applied to each string.
func (c *compiler) derive(a *node, t vector.Type, f func(string) string) *node {
	n, err := c.tabulateOver(a, t, func(x vector.Value) (vector.Value, error) {
		if x.Null {
			return x, nil
		}
		return vector.Value{Str: f(x.Str)}, nil
	})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return n
}

// recode returns text node a with its codes replaced by to[code]; -1 may stand
// for none.
func (c *compiler) recode(a *node, to []int64) *node {
	n := &node{kind: nodeTable, t: a.t, args: []*node{a}, nullable: a.nullable, risky: a.risky,
		tab: &table{TableData: program.TableData{Lo: a.lo, Values: to, OnNullNull: true}}}
	n.lo, n.hi = to[0], to[0]
	for _, v := range to {
		n.lo, n.hi = min(n.lo, v), max(n.hi, v)
	}
	n.tab.OnNull = n.lo
	return c.add(n)
}

// translation returns for each code of from the code of the equal string in to,
// -1 for none.
func translation(from, to *dict) []int64 {
	out := make([]int64, max(from.n, 1))
	out[0] = -1
	for i := range int64(from.n) {
		code, ok := to.find(from.at(i))
		if !ok {
			code = -1
		}
		out[i] = code
	}
	return out
}

// sameDict reports whether equal codes of a and b are equal strings.
func sameDict(a, b *dict) bool { return a == b || a.src != nil && a.src == b.src }

// sameCodes returns integer nodes that compare as the two text nodes do.
func (c *compiler) sameCodes(a, b *node, e *plan.Call) (*node, *node, error) {
	asInt := func(n *node) *node {
		m := *n
		m.t, m.dict = vector.TypeOf(vector.Int4), nil
		return &m
	}
	switch e.Op {
	case plan.OpEq, plan.OpNe, plan.OpDistinct:
		if !sameDict(a.dict, b.dict) {
			a = c.recode(a, translation(a.dict, b.dict))
		}
		return asInt(a), asInt(b), nil
	}
	ranked := func(n *node, ranks []int32) *node {
		to := make([]int64, max(len(ranks), 1))
		for i, r := range ranks {
			to[i] = int64(r)
		}
		return asInt(c.recode(n, to))
	}
	coll := collation(e.Args)
	if sameDict(a.dict, b.dict) {
		ranks, err := c.p.x.rankOf(a.dict, coll)
		if err != nil {
			return nil, nil, err
		}
		return ranked(a, ranks), ranked(b, ranks), nil
	}
	if !coll.C && c.p.x.opt.Rank == nil {
		return nil, nil, forward(plan.ReasonCollation, "order between two columns' strings")
	}
	if !coll.C && a.dict.n+b.dict.n > serverTexts {
		return nil, nil, errManyTexts
	}
	var all []string
	for _, d := range []*dict{a.dict, b.dict} {
		for i := range int64(d.n) {
			all = append(all, canonical(d.t.Kind, d.at(i)))
		}
	}
	if !coll.C {
		ranks, err := c.p.x.opt.orders.rank(coll, all)
		if err != nil {
			return nil, nil, err
		}
		return ranked(a, ranks[:a.dict.n]), ranked(b, ranks[a.dict.n:]), nil
	}
	sorted := slices.Sorted(slices.Values(all))
	ranks := make([]int32, len(all))
	for i, s := range all {
		r, _ := slices.BinarySearch(sorted, s)
		ranks[i] = int32(r)
	}
	return ranked(a, ranks[:a.dict.n]), ranked(b, ranks[a.dict.n:]), nil
}

// unite gives the arms of n, text or numerics of varying scale, one dictionary.
func (c *compiler) unite(n *node, arms []int) error {
	isNull := func(a *node) bool { return a.kind == nodeConst && a.nullable }
	var one *dict
	same, grows := true, false
	for _, i := range arms {
		a := n.args[i]
		if isNull(a) {
			continue
		}
		if n.t.Varying() {
			grows = true // one by one, as they come
			continue
		}
		if char := n.t.Kind == vector.BPChar; a.dict == nil || char != (a.t.Kind == vector.BPChar) || char && !sameLength(a, n.t) {
			return errPadding
		}
		grows = grows || a.dict.grows()
		same = same && (one == nil || sameDict(one, a.dict))
		if one == nil || a.dict.n > one.n {
			one = a.dict // whose codes stay
		}
	}
	if grows {
		n.dict = c.growing(n.t)
		for _, i := range arms {
			if isNull(n.args[i]) {
				continue
			}
			var err error
			if n.args[i], err = c.interned(n.args[i], n.t); err != nil {
				return err
			}
		}
		return nil
	}
	if one == nil {
		one = listDict([]string{filler(n.t)}, n.t)
	}
	if !same {
		var more []string // that one has not
		index := map[string]int64{}
		for _, i := range arms {
			a := n.args[i]
			if isNull(a) || sameDict(one, a.dict) {
				continue
			}
			to := make([]int64, max(a.dict.n, 1))
			for k := range int64(a.dict.n) {
				s := a.dict.at(k)
				code, ok := one.find(s)
				if !ok {
					if code, ok = index[s]; !ok {
						code = int64(one.n + len(more))
						index[s] = code
						more = append(more, s)
					}
				}
				to[k] = code
			}
			n.args[i] = c.recode(a, to)
		}
		if len(more) > 0 || one.t.Kind == vector.BPChar {
			one = one.with(n.t, more)
		} else { // it has all strings: its codes, and their ranks, are those of the union
			own := *one
			own.t, one = n.t, &own
		}
	}
	n.dict = one
	return nil
}
