package pushdown

import (
	"slices"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/vector"
)

// leaf is an operator of a star that is neither a table nor a join of those: it is computed first.
type leaf struct {
	rel    plan.Rel
	yields plan.Yields
	table  int // its number among the sources
	read   []plan.Expr
	index  map[int]int // interned expression -> column
	// scalar is its place among the star's scalars, -1 where it is a relation.
	scalar int
	unique []int // columns of which no two rows have the same values, if any are known to be so
	// empty is what a leaf of an expression over it is where it has no partner; nil for null. marker is
	// a column of it that is never null.
	empty  func(plan.Expr) plan.Expr
	marker plan.Expr
	filled map[int]plan.Expr // what stands for a leaf of an expression over it, by interned number
}

// readsOnly reports whether all that an expression reads is of y.
func readsOnly(e plan.Expr, y *plan.Yields) bool {
	only := true
	plan.Walk(e, func(x plan.Expr) bool {
		switch x.(type) {
		case plan.Column, plan.Key, plan.Agg, *plan.Grouping, plan.Output:
			only = only && y.Has(x)
		}
		return only
	})
	return only
}

// reads reports whether an operator reads anything of another, which is beside it.
func (s *star) reads(r, of plan.Rel) bool {
	y := plan.YieldsOf(of)
	return readsAny(r, y.Has)
}

// leaf notes an operator that is computed first.
func (s *star) leaf(r plan.Rel) *leaf {
	l := &leaf{rel: r, yields: plan.YieldsOf(r), table: s.newRelation(), index: map[int]int{}, scalar: -1}
	s.leaves = append(s.leaves, l)
	s.scans = append(s.scans, l.table)
	return l
}

// newRelation numbers a relation: behind the statement's tables.
func (a *analyzer) newRelation() int {
	if len(a.tables)+len(a.relations) == plan.MaxTables {
		a.tooLarge("more tables and subqueries than a plan holds")
	}
	a.relations = append(a.relations, plan.Source{})
	return len(a.tables) + len(a.relations) - 1
}

// sourceOf returns what a number stands for.
func (a *analyzer) sourceOf(t int) plan.Source {
	if t < len(a.tables) {
		return plan.Source{Meta: a.tables[t].Meta, Table: t}
	}
	return a.relations[t-len(a.tables)]
}

// column returns the column that holds an expression over the leaf.
func (l *leaf) column(a *analyzer, e plan.Expr) plan.Expr {
	at := func(c int) plan.Expr {
		if l.scalar >= 0 {
			return plan.Scalar{Of: l.scalar, Index: c, T: e.Type()}
		}
		return plan.Column{Table: l.table, Column: c, T: e.Type()}
	}
	switch l.rel.(type) {
	case *plan.Shared, *plan.SetOp, *plan.Values, *plan.Series, *plan.ProjectSet: // which have all of their columns
		return at(e.(plan.Output).Index)
	}
	id := a.intern.id(e)
	c, ok := l.index[id]
	if !ok {
		c = len(l.read)
		l.read = append(l.read, e)
		l.index[id] = c
	}
	return at(c)
}

// fill returns what stands for a leaf of an expression over the leaf.
func (l *leaf) fill(a *analyzer, x plan.Expr) plan.Expr {
	if _, call := x.(*plan.Call); !call && l.filled != nil {
		if to := l.filled[a.intern.id(x)]; to != nil {
			return to
		}
	}
	return x
}

// oneRow reports whether an operator yields exactly one row.
func oneRow(r plan.Rel) bool {
	switch x := r.(type) {
	case *plan.Project:
		return oneRow(x.Input)
	case *plan.Shared:
		return oneRow(x.Plan.Input)
	case *plan.Aggregate:
		return len(x.Keys) == 0 && len(x.Sets) == 0
	case *plan.Values:
		return len(x.Rows) == 1
	}
	return false
}

// scalars makes scalars of the leaves of one row that are joined to something: there is nothing to
// look up.
func (s *star) scalars() {
	for _, l := range s.leaves {
		if s.drivers() > 1 && oneRow(l.rel) && !s.optionalLeaf(l) {
			l.scalar = len(s.q.Scalars)
			s.q.Scalars = append(s.q.Scalars, nil) // once it is known what is read of it
			s.scans = slices.DeleteFunc(slices.Clone(s.scans), func(t int) bool { return t == l.table })
		}
	}
}

// drivers counts the sources that are there whatever others are.
func (s *star) drivers() int { return len(s.scans) - len(s.lefts) - len(s.exists) }

// optionalLeaf reports whether rows are kept, or removed, for having no partner in a leaf.
func (s *star) optionalLeaf(l *leaf) bool {
	return slices.ContainsFunc(s.lefts, func(j leftJoin) bool { return j.table == l.table }) ||
		slices.ContainsFunc(s.exists, func(x existence) bool { return x.table == l.table })
}

// resolve makes the relations of the leaves, and puts their columns in place of what is read of
// them.
func (s *star) resolve() {
	s.scalars()
	for _, l := range s.leaves {
		s.transfer(l)
		s.sink(l)
	}
	var over func(e plan.Expr) plan.Expr
	over = func(e plan.Expr) plan.Expr {
		return plan.Rewrite(e, func(x plan.Expr) plan.Expr {
			if o, ok := x.(plan.Output); ok && s.stands[o.Of] != nil {
				return over(s.stands[o.Of])
			}
			for _, l := range s.leaves {
				if !l.yields.Has(x) {
					continue
				}
				c := l.column(s.analyzer, l.fill(s.analyzer, x))
				if l.empty == nil {
					return c
				}
				return s.orEmpty(c, over(l.empty(x)), l.marker)
			}
			return x
		})
	}
	s.mapExprs(over)
	for _, l := range s.leaves {
		s.at = s.places[l.rel].at
		source := s.relation(l)
		if l.unique != nil {
			source.Meta.Indexes = append(source.Meta.Indexes, catalog.Index{Unique: true, Columns: l.unique})
		}
		if s.relations[l.table-len(s.tables)] = source; l.scalar >= 0 {
			s.q.Scalars[l.scalar] = source.Relation.Blocks[0]
		}
		s.at = nil
	}
}

// mapExprs replaces each expression of the star by what f returns for it.
func (s *star) mapExprs(f func(plan.Expr) plan.Expr) {
	all := func(es []plan.Expr) []plan.Expr {
		out := slices.Clone(es)
		for i := range out {
			out[i] = f(out[i])
		}
		return out
	}
	s.q = s.q.Map(f)
	s.conds, s.sunk = all(s.conds), all(s.sunk)
	for i := range s.lefts {
		s.lefts[i].on = all(s.lefts[i].on)
	}
	for i := range s.exists {
		s.exists[i].outer, s.exists[i].on = all(s.exists[i].outer), all(s.exists[i].on)
	}
}

// relation makes the relation of a leaf.
func (a *analyzer) relation(l *leaf) plan.Source {
	switch x := l.rel.(type) {
	case *plan.Shared:
		return a.sharedRelation(x)
	case *plan.SetOp:
		return a.setRelation(x)
	case *plan.Window:
		return a.windowRelation(x, l)
	case *plan.Series:
		return a.seriesRelation(x)
	case *plan.ProjectSet:
		return a.setFunctionRelation(x)
	case *plan.Limit:
		if x.Per != nil {
			return a.cutRelation(x, l)
		}
	case *plan.Join:
		if x.Kind == plan.Full {
			return a.fullJoin(x, l)
		}
	case *plan.Values:
		rows := make([]*plan.Star, len(x.Rows))
		for i, row := range x.Rows {
			rows[i] = a.star(withColumns(&plan.Project{Input: &plan.Values{Rows: [][]plan.Expr{nil}}, Exprs: row}))
		}
		return newSource("values", rows)
	case *plan.Project:
		return newSource("subquery", []*plan.Star{a.star(&plan.Project{Input: x.Input, Exprs: l.of(x.Exprs)})})
	}
	return newSource("subquery", []*plan.Star{a.star(withColumns(&plan.Project{Input: l.rel, Exprs: l.read}))})
}

// of returns what is read of an operator whose outputs have the values of exprs.
func (l *leaf) of(exprs []plan.Expr) []plan.Expr {
	if len(l.read) == 0 {
		return []plan.Expr{one}
	}
	out := make([]plan.Expr, len(l.read))
	for i, e := range l.read {
		out[i] = plan.Rewrite(e, func(x plan.Expr) plan.Expr {
			if o, ok := x.(plan.Output); ok {
				return exprs[o.Index]
			}
			return x
		})
	}
	return out
}

// sharedRelation makes the relation of what several sources read, once.
func (a *analyzer) sharedRelation(x *plan.Shared) plan.Source {
	whole, ok := a.computed[x.Plan]
	if !ok {
		whole = newSource(x.Name, []*plan.Star{a.star(withColumns(x.Plan))})
		a.computed[x.Plan] = whole
	}
	return whole
}

// withColumns is a query with a column at least.
func withColumns(p *plan.Project) *plan.Project {
	if len(p.Exprs) > 0 {
		return p
	}
	return &plan.Project{Input: p.Input, Exprs: []plan.Expr{one}}
}

// one is the value of a relation of which nothing is read but how many rows it has.
var one plan.Expr = plan.Const{Datum: vector.Int(vector.Int4, 1)}

// newSource is the source of a relation, with what is known of its rows.
func newSource(name string, blocks []*plan.Star) plan.Source {
	s := plan.NewSource(name, blocks...)
	for _, b := range blocks {
		s.Meta.Rows += expectedRows(b)
	}
	if len(blocks) == 1 {
		s.Meta.Indexes = uniqueKeys(blocks[0])
	}
	return s
}

// expectedRows is a guess at the rows of a star.
func expectedRows(q *plan.Star) int64 {
	n := int64(1)
	if len(q.Tables) > 0 {
		n = q.Tables[0].Meta.Rows
	}
	if q.Grouped {
		n = n/8 + 1
		if len(q.Group) == 0 {
			n = 1
		}
	}
	if c, ok := q.Limit.(plan.Const); ok && !c.Null {
		n = min(n, max(c.I, 0))
	}
	return n
}

// uniqueKeys finds columns of a star of which no two rows have the same values: those of its
// groups, or the driving table's where no join multiplies rows.
func uniqueKeys(q *plan.Star) (keys []catalog.Index) {
	if !q.Grouped && len(q.Tables) > 0 && !slices.ContainsFunc(q.Joins, func(j plan.StarJoin) bool { return j.Many }) {
		for _, ix := range q.Tables[0].Meta.Indexes {
			if columns, ok := outputsOf(q, ix.Columns); ok && ix.Unique {
				keys = append(keys, catalog.Index{Unique: true, Columns: columns})
			}
		}
		return keys
	}
	if !q.Grouped || len(q.Sets) > 0 || len(q.Group) == 0 {
		return nil
	}
	ix := catalog.Index{Unique: true}
	for i := range q.Group {
		c := slices.IndexFunc(q.Output, func(e plan.Expr) bool { k, ok := e.(plan.Key); return ok && k.Index == i })
		if c < 0 {
			return nil
		}
		ix.Columns = append(ix.Columns, c)
	}
	return []catalog.Index{ix}
}

// outputsOf returns where columns of the driving table stand in a star's output.
func outputsOf(q *plan.Star, columns []int) (out []int, all bool) {
	for _, c := range columns {
		i := slices.IndexFunc(q.Output, func(e plan.Expr) bool { x, ok := e.(plan.Column); return ok && x.Table == 0 && x.Column == c })
		if i < 0 {
			return nil, false
		}
		out = append(out, i)
	}
	return out, len(out) > 0
}
