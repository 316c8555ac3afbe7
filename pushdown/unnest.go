package pushdown

import (
	"slices"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// A sub-select that reads rows around it is executed once, for all of them (Neumann and Kemper:
// Unnesting Arbitrary Queries, BTW 2015). It yields its rows with keys, which are equal to values
// of the rows around it:
//
//	equalities  WHERE b.k = a.k is taken out, and b.k is the key
//	domain      all else is computed for each of the distinct values that the rows around have:
//	            these are joined below what reads them, and are the keys
//
// On the way up groups, windows and cuts are those of each key, besides their own.

// lifted is a sub-select that reads nothing outside.
type lifted struct {
	rows plan.Rel
	// keys are over rows, equal one by one to values of the rows around: unnesting.outer. In those
	// of a domain nulls are equal to each other, too.
	keys []plan.Expr
	one  bool // there is at most a row for each value of the keys
	// empty is what a leaf is for a row around without partner, which has a row all the same: the
	// group of no rows. nil where it has none.
	empty func(plan.Expr) plan.Expr
	// rejects are places among the keys: there is no row where one of them is null.
	rejects map[int]bool
}

// unnesting is how one sub-select is unnested.
type unnesting struct {
	*star
	own    plan.Yields       // all that it yields itself, on any level
	domain *plan.Shared      // nil for equalities
	outer  []plan.Expr       // over the rows around
	to     map[int]plan.Expr // what stands for them, by interned number, and for values of groups that may be missing
	filled map[int]plan.Expr // the latter alone
}

// unnest makes of a sub-select one that reads nothing outside. around are the rows that it is over.
func (s *star) unnest(r, around plan.Rel) (u *unnesting, l lifted, ok bool) {
	u = &unnesting{star: s}
	plan.WalkRel(r, func(r plan.Rel) bool {
		u.own.Add(plan.OwnYields(r))
		return true
	})
	if l, ok = u.lift(r); ok {
		return u, l, true
	}
	u.outer, u.to, u.filled = nil, map[int]plan.Expr{}, map[int]plan.Expr{}
	if !u.overDomain(r, around) {
		return u, l, false
	}
	l, ok = u.lift(r)
	return u, l, ok
}

// outside reports whether a leaf is one of the rows around.
func (u *unnesting) outside(x plan.Expr) bool {
	switch x.(type) {
	case plan.Column, plan.Key, plan.Agg, *plan.Grouping, plan.Output:
		return !u.own.Has(x)
	}
	return false
}

func (u *unnesting) reads(es ...plan.Expr) (reads bool) {
	for _, e := range es {
		plan.Walk(e, func(x plan.Expr) bool {
			reads = reads || u.outside(x)
			return !reads
		})
	}
	return reads
}

func (u *unnesting) readsBelow(r plan.Rel) bool { return readsAny(r, u.outside) }

// exprsOf are an operator's own expressions.
func exprsOf(r plan.Rel) (es []plan.Expr) {
	plan.Exprs(r, func(e plan.Expr) { es = append(es, e) })
	return es
}

// over returns an expression with what stands for values of the rows around.
func (u *unnesting) over(e plan.Expr) plan.Expr {
	if e == nil || u.domain == nil {
		return e
	}
	return u.substitute(e)
}

func (u *unnesting) substitute(e plan.Expr) plan.Expr {
	if to := u.to[u.intern.id(e)]; to != nil {
		return to
	}
	c, ok := e.(*plan.Call)
	if !ok {
		return e
	}
	d := *c
	d.Args = slices.Clone(c.Args)
	same := true
	for i, x := range c.Args {
		d.Args[i] = u.substitute(x)
		same = same && d.Args[i] == x
	}
	if same {
		return c
	}
	return u.sized(&d)
}

func (u *unnesting) overAll(es []plan.Expr) []plan.Expr {
	out := make([]plan.Expr, len(es))
	for i, e := range es {
		out[i] = u.over(e)
	}
	return out
}

// set makes what stands for the values of the domain the keys of rows.
func (u *unnesting) set(l lifted) lifted {
	if u.domain != nil {
		for i, e := range u.outer {
			u.to[u.intern.id(e)] = l.keys[i]
		}
	}
	return l
}

// keysAt are outputs of a derived table behind the first n.
func keysAt(number, n int, keys []plan.Expr) (out []plan.Expr) {
	for i, k := range keys {
		out = append(out, plan.Output{Of: number, Index: n + i, T: k.Type()})
	}
	return out
}

// below lifts an operator's input, which the operator reads, or something below it.
func (u *unnesting) below(in plan.Rel) (l lifted, ok bool) {
	switch {
	case u.readsBelow(in):
		l, ok = u.lift(in)
	case u.domain != nil:
		l, ok = u.withDomain(in), true
	default:
		l, ok = lifted{rows: in}, true
	}
	if !ok {
		return l, false
	}
	return u.set(l), true
}

// present is below, with the rows of groups of no rows.
func (u *unnesting) present(in plan.Rel) (l lifted, ok bool) {
	l, ok = u.below(in)
	if !ok || l.empty == nil {
		return l, ok
	}
	if u.domain == nil {
		return l, false
	}
	all := u.set(u.domainRows())
	p := &plan.Project{Number: u.nextOutput(), Input: l.rows}
	output := func(e plan.Expr) plan.Expr {
		p.Exprs = append(p.Exprs, e)
		return plan.Output{Of: p.Number, Index: len(p.Exprs) - 1, T: e.Type()}
	}
	pairs := u.agreement(all.keys, &l)
	for i := range pairs {
		pairs[i][1] = output(pairs[i][1])
	}
	// What is read of the group, or is computed of it, is that of no rows where it is missing.
	fill := func(x plan.Expr) {
		id := u.intern.id(x)
		u.filled[id] = u.orEmpty(output(x), u.over(l.empty(x)), pairs[0][1])
		u.to[id] = u.filled[id]
	}
	switch x := l.rows.(type) {
	case *plan.Aggregate:
		for i, g := range x.Aggs {
			fill(plan.Agg{Of: x.Number, Index: i, T: g.T})
		}
	case *plan.Project:
		for i, e := range x.Exprs[:len(x.Exprs)-len(l.keys)] {
			fill(plan.Output{Of: x.Number, Index: i, T: e.Type()})
		}
	default:
		return l, false
	}
	l = lifted{rows: &plan.Join{Kind: plan.Left, Left: all.rows, Right: p, On: u.equal(pairs)}, keys: all.keys, one: true}
	return u.set(l), true
}

// orEmpty is a value of a group, or empty where the group, of which marker is not null, is missing.
func (s *star) orEmpty(value, empty, marker plan.Expr) plan.Expr {
	if s.alwaysNull(empty) {
		return value
	}
	return s.call(plan.OpCase, value.Type(), s.call(plan.OpIsNull, boolType, marker), empty, value)
}

// lift unnests an operator that reads something outside, or below which one does.
func (u *unnesting) lift(r plan.Rel) (l lifted, ok bool) {
	l, ok = u.lifted(r)
	if !ok {
		return l, false
	}
	u.copied(r, l.rows)
	return u.set(l), true
}

func (u *unnesting) lifted(r plan.Rel) (l lifted, ok bool) {
	switch x := r.(type) {
	case *plan.Filter:
		return u.filter(x)
	case *plan.Sort:
		return u.sort(x, false)
	case *plan.Limit:
		return u.limit(x)
	case *plan.Project:
		return u.project(x)
	case *plan.Aggregate:
		return u.aggregate(x)
	case *plan.Window:
		return u.window(x)
	case *plan.Join:
		if x.Kind == plan.Inner {
			return u.inner(x)
		}
		return u.join(x)
	case *plan.SetOp:
		return u.setOp(x)
	case *plan.Values:
		return u.values(x)
	case *plan.ProjectSet:
		return u.projectSet(x)
	}
	return l, false
}

func (u *unnesting) filter(x *plan.Filter) (l lifted, ok bool) {
	if l, ok = u.present(x.Input); !ok {
		return l, false
	}
	conds, ok := u.conditions(&l, x.Conds)
	if len(conds) > 0 {
		l.rows = &plan.Filter{Input: l.rows, Conds: conds}
	}
	return l, ok
}

// conditions returns those that stay, over what l yields. Equalities with values of rows around
// become keys where there is no domain.
func (u *unnesting) conditions(l *lifted, conds []plan.Expr) (stay []plan.Expr, ok bool) {
	y := plan.YieldsOf(l.rows)
	for _, e := range u.common(conds) {
		switch {
		case !u.reads(e):
			stay = append(stay, u.over(e)) // what was computed of a group may be missing
		case u.domain != nil:
			o := u.over(e)
			if mayFail(o) { // for which rows the server computes it, nobody knows
				return nil, false
			}
			stay = append(stay, o)
		default:
			inner, outer := equated(e, &y)
			if inner == nil || u.own.ReadBy(outer) {
				return nil, false
			}
			l.keys, u.outer = append(slices.Clip(l.keys), inner), append(u.outer, outer)
		}
	}
	return stay, true
}

func (u *unnesting) sort(x *plan.Sort, cut bool) (l lifted, ok bool) {
	if l, ok = u.present(x.Input); !ok || u.domain == nil && u.reads(exprsOf(x)...) {
		return l, false
	}
	by := slices.Clone(x.By)
	fails := false
	for i := range by {
		by[i].Expr = u.over(by[i].Expr)
		fails = fails || mayFail(by[i].Expr)
	}
	if cut || fails {
		l.rows = &plan.Sort{Input: l.rows, By: by}
	}
	return l, true
}

func (u *unnesting) limit(x *plan.Limit) (l lifted, ok bool) {
	count, isConst := x.Count.(plan.Const)
	if !isConst || count.Null {
		return l, false
	}
	if o, sorted := x.Input.(*plan.Sort); sorted {
		l, ok = u.sort(o, true)
		l = u.set(l)
	} else {
		l, ok = u.present(x.Input)
	}
	if !ok || u.domain == nil && u.reads(x.Per...) {
		return l, false
	}
	l.rows = &plan.Limit{Input: l.rows, Count: x.Count, Offset: x.Offset, Per: slices.Concat(u.overAll(x.Per), l.keys)}
	l.one = l.one || count.I <= 1 && x.Per == nil
	return l, true
}

func (u *unnesting) project(x *plan.Project) (l lifted, ok bool) {
	if x.Number == 0 {
		return l, false
	}
	if l, ok = u.below(x.Input); !ok || u.domain == nil && u.reads(x.Exprs...) {
		return l, false
	}
	n, keys := len(x.Exprs), l.keys
	if below := l.empty; below != nil {
		l.empty = func(e plan.Expr) plan.Expr {
			if o, ok := e.(plan.Output); ok && o.Of == x.Number {
				return plan.Rewrite(x.Exprs[o.Index], below)
			}
			return e
		}
	}
	l.rows = &plan.Project{Number: x.Number, Input: l.rows, Exprs: append(u.overAll(x.Exprs), keys...)}
	l.keys = keysAt(x.Number, n, keys)
	return l, true
}

func (u *unnesting) aggregate(x *plan.Aggregate) (l lifted, ok bool) {
	if l, ok = u.present(x.Input); !ok || len(x.Sets) > 0 || u.domain == nil && u.reads(exprsOf(x)...) {
		return l, false
	}
	n := len(x.Keys)
	a := &plan.Aggregate{Number: x.Number, Input: l.rows, Keys: slices.Concat(u.overAll(x.Keys), l.keys), Aggs: slices.Clone(x.Aggs)}
	for i := range a.Aggs {
		g := &a.Aggs[i]
		g.Arg, g.Filter, g.Fraction = u.over(g.Arg), u.over(g.Filter), u.over(g.Fraction)
	}
	keys := make([]plan.Expr, len(l.keys))
	for i, k := range l.keys {
		keys[i] = plan.Key{Of: x.Number, Index: n + i, T: k.Type()}
	}
	l = lifted{rows: a, keys: keys, one: n == 0}
	if n == 0 {
		l.empty = func(e plan.Expr) plan.Expr {
			g, ok := e.(plan.Agg)
			switch {
			case !ok || g.Of != x.Number:
				return e
			case x.Aggs[g.Index].Func.State == sqlfn.AggregateCount:
				return plan.Const{Datum: vector.Int(g.T.Kind, 0)}
			}
			return nullOf(g)
		}
	}
	return l, true
}

func (u *unnesting) window(x *plan.Window) (l lifted, ok bool) {
	if l, ok = u.present(x.Input); !ok || u.domain == nil && u.reads(exprsOf(x)...) {
		return l, false
	}
	w := *x
	w.Input = l.rows
	w.Agg.Arg, w.Agg.Filter, w.Arg, w.Default = u.over(x.Agg.Arg), u.over(x.Agg.Filter), u.over(x.Arg), u.over(x.Default)
	w.Partition = slices.Concat(u.overAll(x.Partition), l.keys)
	w.Order = slices.Clone(x.Order)
	for i := range w.Order {
		w.Order[i].Expr = u.over(w.Order[i].Expr)
	}
	l.rows = &w
	return l, true
}

// inner unnests an inner join. A right side that reads the domain reads what the left side has of it.
func (u *unnesting) inner(x *plan.Join) (l lifted, ok bool) {
	left, right := u.readsBelow(x.Left), u.readsBelow(x.Right)
	j := &plan.Join{Kind: plan.Inner, Lateral: x.Lateral, Left: x.Left, Right: x.Right}
	if u.domain != nil && (left || !right || x.Lateral) {
		return u.join(x)
	}
	r := lifted{one: true}
	if left {
		if l, ok = u.present(x.Left); !ok {
			return l, false
		}
		j.Left = l.rows
	}
	if right {
		if r, ok = u.present(x.Right); !ok {
			return l, false
		}
		j.Right = r.rows
	}
	l = lifted{rows: j, keys: slices.Concat(l.keys, r.keys), one: l.one && r.one && left && right}
	if !u.distinctOuter() { // one row around has one value
		return l, false
	}
	l = u.set(l)
	j.On, ok = u.conditions(&l, x.On)
	return l, ok
}

// distinctOuter reports whether no value of the rows around is a key twice.
func (u *unnesting) distinctOuter() bool {
	seen := map[int]bool{}
	for _, e := range u.outer {
		id := u.intern.id(e)
		if seen[id] {
			return false
		}
		seen[id] = true
	}
	return true
}

// join unnests a join by its left side: the right side reads what that has of the domain.
func (u *unnesting) join(x *plan.Join) (l lifted, ok bool) {
	if x.Kind == plan.Full {
		return l, false
	}
	if l, ok = u.present(x.Left); !ok {
		return l, false
	}
	j := *x
	j.Left = l.rows
	if u.readsBelow(x.Right) || u.reads(x.On...) {
		if u.domain == nil {
			return l, false
		}
		if u.readsBelow(x.Right) {
			j.Right, j.Lateral = u.mapped(x.Right), true
		}
		for _, e := range x.On {
			if o := u.over(e); u.reads(e) && mayFail(o) {
				return l, false
			}
		}
	}
	j.On = u.overAll(x.On)
	l.rows, l.one, l.empty = &j, l.one && x.Kind != plan.Inner && x.Kind != plan.Left, nil
	return l, true
}

// mapped returns an operator with what stands for values of the rows around, in all below it.
func (u *unnesting) mapped(r plan.Rel) plan.Rel {
	return plan.MapRel(r, u.over, u.copied)
}

// copied notes of an operator what is noted of that which it is a copy of.
func (a *analyzer) copied(from, to plan.Rel) {
	if p, ok := a.places[from]; ok {
		a.places[to] = p
	}
	if p, ok := from.(*plan.Project); ok && slices.Contains(a.sides, p) {
		a.sides = append(a.sides, to.(*plan.Project))
	}
}

func (u *unnesting) setOp(x *plan.SetOp) (l lifted, ok bool) {
	n := len(x.Left.Exprs)
	op := *x
	var keys []plan.Expr
	var outer [2][]plan.Expr // of the sides, without a domain
	before := u.outer
	for i, side := range []**plan.Project{&op.Left, &op.Right} {
		if u.domain == nil {
			u.outer = nil
		}
		l, ok := u.present((*side).Input)
		if !ok || u.domain == nil && u.reads((*side).Exprs...) {
			return l, false
		}
		keys, outer[i] = l.keys, u.outer
		*side = &plan.Project{Input: l.rows, Exprs: append(u.overAll((*side).Exprs), l.keys...)}
	}
	if u.domain == nil {
		if !slices.EqualFunc(outer[0], outer[1], u.intern.same) {
			return l, false
		}
		u.outer = slices.Concat(before, outer[0])
	}
	for i := range keys {
		a, b := op.Left.Exprs[n+i].Type(), op.Right.Exprs[n+i].Type()
		if a.Kind != b.Kind || a.Scale != b.Scale || a.Typmod != b.Typmod {
			return l, false
		}
	}
	return lifted{rows: &op, keys: keysAt(x.Number, n, keys)}, true
}

// values makes a query of each row.
func (u *unnesting) values(x *plan.Values) (l lifted, ok bool) {
	if u.domain == nil {
		return l, false
	}
	n := len(x.Rows[0])
	row := func(i int) (*plan.Project, []plan.Expr) {
		d := u.set(u.domainRows())
		return &plan.Project{Input: d.rows, Exprs: append(u.overAll(x.Rows[i]), d.keys...)}, d.keys
	}
	all, keys := row(0)
	for i := 1; i < len(x.Rows); i++ {
		next, _ := row(i)
		op := &plan.SetOp{Number: x.Number, Kind: plan.Union, All: true, Left: all, Right: next}
		if i < len(x.Rows)-1 {
			op.Number = u.nextOutput()
		}
		if all = (&plan.Project{Input: op}); i == len(x.Rows)-1 {
			return lifted{rows: op, keys: keysAt(x.Number, n, keys)}, true
		}
		for c, e := range op.Left.Exprs {
			all.Exprs = append(all.Exprs, plan.Output{Of: op.Number, Index: c, T: e.Type()})
		}
	}
	all.Number = x.Number
	return lifted{rows: all, keys: keysAt(x.Number, n, keys), one: true}, true
}
