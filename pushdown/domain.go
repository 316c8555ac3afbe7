package pushdown

import (
	"slices"

	"pgaccel/plan"
	"pgaccel/vector"
)

// The domain of a sub-select that reads rows around it (unnest.go): the distinct values that these
// rows have of all that it reads.

// overDomain makes the domain of all values that a sub-select reads of the rows around: columns, and,
// in conditions, whole what may fail, which the server computes for each of these rows. It returns false
// where equal values are not held alike.
func (u *unnesting) overDomain(r, around plan.Rel) bool {
	var reads []plan.Expr
	seen := map[int]bool{}
	ok, condition, whole := true, false, false
	var note func(e plan.Expr)
	note = func(e plan.Expr) {
		if _, call := e.(*plan.Call); !call && u.outside(e) || condition && u.failsOutside(e) || whole && u.reads(e) && !u.own.ReadBy(e) {
			if id := u.intern.id(e); !seen[id] {
				seen[id] = true
				reads = append(reads, e)
				ok = ok && lookupPossible(e.Type(), e.Type())
			}
			return
		}
		if c, is := e.(*plan.Call); is {
			for _, x := range c.Args {
				note(x)
			}
		}
	}
	plan.WalkRel(r, func(r plan.Rel) bool {
		whole, condition = false, false
		switch r.(type) {
		case *plan.Filter, *plan.Join:
			condition = true
		case *plan.ProjectSet:
			whole = true
		}
		plan.Exprs(r, note)
		_, shared := r.(*plan.Shared)
		return !shared
	})
	from := u.around(around, reads)
	if !ok || len(reads) == 0 || from == nil {
		return false
	}
	u.aggregations++
	groups := &plan.Aggregate{Number: u.aggregations - 1, Input: from, Keys: reads}
	p := &plan.Project{Input: groups}
	for i, e := range reads {
		p.Exprs = append(p.Exprs, plan.Key{Of: groups.Number, Index: i, T: e.Type()})
	}
	u.places[groups] = place{at: u.at}
	u.domain, u.outer = u.share(0, "domain", p), reads
	return true
}

// failsOutside reports whether an expression over the rows around alone may fail.
func (u *unnesting) failsOutside(e plan.Expr) bool {
	return u.reads(e) && !u.own.ReadBy(e) && mayFail(e)
}

// around returns rows that have at least all values of what is read of those around, and nothing that
// one execution may choose otherwise than another; nil where there are none.
func (s *star) around(r plan.Rel, reads []plan.Expr) plan.Rel {
	in := func(r plan.Rel) bool {
		y := plan.YieldsOf(r)
		return !slices.ContainsFunc(reads, func(e plan.Expr) bool { return !readsOnly(e, &y) })
	}
	switch x := r.(type) {
	case nil:
		return nil
	case *plan.Filter:
		below := s.around(x.Input, reads)
		if below == nil {
			return nil
		}
		y := plan.YieldsOf(below)
		conds := slices.DeleteFunc(slices.Clone(x.Conds), func(e plan.Expr) bool { return !readsOnly(e, &y) || readsAggregates(e) || mayFail(e) })
		if len(conds) == 0 {
			return below
		}
		return &plan.Filter{Input: below, Conds: conds}
	case *plan.Sort:
		return s.around(x.Input, reads)
	case *plan.Limit:
		return s.around(x.Input, reads)
	case *plan.Project:
		if x.Number == 0 || !in(x) {
			return nil
		}
		var used []plan.Expr
		for _, e := range x.Exprs {
			plan.Walk(e, func(x plan.Expr) bool {
				if readsRows(x) {
					used = append(used, x)
				}
				return true
			})
		}
		below := s.around(x.Input, used)
		if below == nil {
			return nil
		}
		return &plan.Project{Number: x.Number, Input: below, Exprs: x.Exprs}
	case *plan.Window:
		if below := plan.YieldsOf(x.Input); slices.ContainsFunc(reads, func(e plan.Expr) bool { return !readsOnly(e, &below) }) {
			return nil // rows that tie have either number
		}
		return s.around(x.Input, reads)
	case *plan.Aggregate:
		if keys := (&plan.Aggregate{Number: x.Number, Input: x.Input, Keys: x.Keys}); len(x.Keys) > 0 && len(x.Sets) == 0 &&
			!slices.ContainsFunc(reads, func(e plan.Expr) bool { return readsAggregates(e) }) {
			r = keys
		}
	case *plan.Join:
		switch {
		case x.Kind != plan.Full && in(x.Left):
			return s.around(x.Left, reads)
		case x.Kind == plan.Inner && !s.reads(x.Right, x.Left) && in(x.Right):
			return s.around(x.Right, reads)
		}
	}
	if !in(r) || s.readsOutside(r) {
		return nil
	}
	chosen := false
	plan.WalkRel(r, func(r plan.Rel) bool {
		switch r.(type) {
		case *plan.Limit, *plan.Window:
			chosen = true
		}
		_, shared := r.(*plan.Shared)
		return !chosen && !shared
	})
	if chosen {
		return nil
	}
	return r
}

// readsAggregates reports whether an expression reads a value of a group that is no key.
func readsAggregates(e plan.Expr) (reads bool) {
	plan.Walk(e, func(x plan.Expr) bool {
		switch x.(type) {
		case plan.Agg, *plan.Grouping:
			reads = true
		}
		return !reads
	})
	return reads
}

// domainRows reads the domain.
func (u *unnesting) domainRows() lifted {
	d := *u.domain
	d.Number = u.nextOutput()
	return lifted{rows: &d, keys: keysAt(d.Number, 0, u.outer), one: true}
}

// withDomain joins the domain to rows that read nothing outside.
func (u *unnesting) withDomain(r plan.Rel) lifted {
	l := u.domainRows()
	if v, ok := r.(*plan.Values); ok && v.Number == 0 {
		return l
	}
	l.one = oneRow(r)
	l.rows = &plan.Join{Kind: plan.Inner, Left: r, Right: l.rows}
	return l
}

// agreement returns the equalities that say that keys are those of a row around, of which outer are the
// values. In a domain nulls agree, too.
func (u *unnesting) agreement(outer []plan.Expr, l *lifted) (pairs [][2]plan.Expr) {
	for _, i := range u.keysOf() {
		o, k := outer[i], l.keys[i]
		if u.domain == nil || l.rejects[i] || u.neverNull(u.outer[i]) {
			pairs = append(pairs, [2]plan.Expr{o, k})
			continue
		}
		zero := plan.Const{Datum: vector.Datum{Type: o.Type()}}
		value := func(e plan.Expr) plan.Expr { return u.call(plan.OpCoalesce, e.Type(), e, zero) }
		null := func(e plan.Expr) plan.Expr { return u.call(plan.OpIsNull, boolType, e) }
		pairs = append(pairs, [2]plan.Expr{value(o), value(k)}, [2]plan.Expr{null(o), null(k)})
	}
	return pairs
}

// neverNull reports whether an expression is a column without nulls.
func (s *star) neverNull(e plan.Expr) bool {
	c, ok := e.(plan.Column)
	return ok && c.Table < len(s.tables) && !s.optional[c.Table] && s.tables[c.Table].Meta.Columns[c.Column].NotNull
}

// keysOf returns the positions of keys that decide all others: those of a unique key of the one table
// that is read.
func (u *unnesting) keysOf() (at []int) {
	for i := range u.outer {
		at = append(at, i)
	}
	first, ok := u.outer[0].(plan.Column)
	if u.domain == nil || !ok || first.Table >= len(u.tables) {
		return at
	}
	position := map[int]int{}
	for i, e := range u.outer {
		c, ok := e.(plan.Column)
		if !ok || c.Table != first.Table {
			return at
		}
		if u.neverNull(e) {
			position[c.Column] = i
		}
	}
	for _, ix := range u.tables[first.Table].Meta.Indexes {
		var some []int
		for _, c := range ix.Columns {
			if i, ok := position[c]; ok {
				some = append(some, i)
			}
		}
		if ix.Unique && len(some) == len(ix.Columns) && len(some) > 0 && len(some) < len(at) {
			at = some
		}
	}
	return at
}
