package plan

import (
	"maps"

	"pgaccel/vector"
)

// Tree returns the star as a tree of operators over the statement's table references, as the
// slow reference executes it.
func (q *Star) Tree() *Project { return (&treeMaker{}).tree(q) }

type treeMaker struct {
	outputs int                    // numbers of Outputs given
	shared  map[*Relation]*Project // by relation, once it is made
}

// starTree makes the tree of one star.
type starTree struct {
	*treeMaker
	q *Star
	// to is what stands for the columns of a source that is a relation, by source: the number
	// of its Outputs.
	to      map[int]int
	keys    map[int]map[int]int // where only keys of a source are seen: its columns' Outputs
	scalars map[int]int         // likewise of Scalars that are joined to the rows so far
	agg     int                 // Aggregate.Number
}

func (m *treeMaker) number() int {
	m.outputs++
	return m.outputs
}

func (m *treeMaker) tree(q *Star) *Project {
	t := &starTree{treeMaker: m, q: q, to: map[int]int{}, keys: map[int]map[int]int{}, scalars: map[int]int{}}
	var r Rel = &Values{Rows: [][]Expr{nil}}
	if len(q.Tables) > 0 {
		r = t.source(0)
	}
	for _, j := range q.Joins {
		r = t.join(r, j)
	}
	filtered := func(conds []Expr) {
		if len(conds) > 0 {
			r = t.withScalars(r, conds)
			r = &Filter{Input: r, Conds: t.exprs(conds)}
		}
	}
	filtered(q.Filter)
	if q.Grouped {
		r = t.grouped(r)
		filtered(q.Having)
	}
	var over []Expr
	for _, o := range q.Order {
		over = append(over, o.Expr)
	}
	r = t.withScalars(r, append(over, q.Output...))
	if len(q.Order) > 0 {
		by := make([]Order, len(q.Order))
		for i, o := range q.Order {
			by[i] = o
			by[i].Expr = t.expr(o.Expr)
		}
		r = &Sort{Input: r, By: by}
	}
	if q.Limit != nil || q.Offset != nil {
		r = &Limit{Input: r, Count: q.Limit, Offset: q.Offset}
	}
	return &Project{Input: r, Exprs: t.exprs(q.Output)}
}

// join makes one join.
func (t *starTree) join(r Rel, j StarJoin) Rel {
	var on []Expr
	for i, c := range j.Key {
		key := Column{Table: j.Table, Column: c, T: t.q.Tables[j.Table].Meta.Columns[c].Type}
		on = append(on, &Call{Op: OpEq, Args: []Expr{j.Outer[i], key}, T: vector.TypeOf(vector.Bool)})
	}
	right := t.source(j.Table)
	if j.Exists {
		right = t.distinct(right, j)
	} else {
		on = append(on, j.On...)
	}
	r = t.withScalars(r, on)
	return &Join{Kind: j.Kind, Left: r, Right: right, On: t.exprs(on)}
}

// distinct makes the keys of a join for which a partner need only exist: of those that On lets
// pass each once.
func (t *starTree) distinct(r Rel, j StarJoin) Rel {
	if len(j.On) > 0 {
		r = t.withScalars(r, j.On)
		r = &Filter{Input: r, Conds: t.exprs(j.On)}
	}
	n := t.number()
	a := &Aggregate{Number: n, Input: r}
	p := &Project{Input: a, Number: t.number()}
	seen := map[int]int{}
	for i, c := range j.Key {
		k := Column{Table: j.Table, Column: c, T: t.q.Tables[j.Table].Meta.Columns[c].Type}
		a.Keys = append(a.Keys, t.expr(k))
		p.Exprs = append(p.Exprs, Key{Of: n, Index: i, T: k.T})
		seen[c] = i
	}
	t.to[j.Table], t.keys[j.Table] = p.Number, seen
	return p
}

// grouped makes the aggregation. Scalars that are joined below it are not seen above.
func (t *starTree) grouped(r Rel) Rel {
	q := t.q
	var below []Expr
	below = append(below, q.Group...)
	aggs := make([]AggregateCall, len(q.Aggs))
	for _, a := range q.Aggs {
		for _, e := range []Expr{a.Arg, a.Filter} {
			if e != nil {
				below = append(below, e)
			}
		}
	}
	r = t.withScalars(r, below)
	for i, a := range q.Aggs {
		aggs[i] = a
		aggs[i].Arg, aggs[i].Filter = t.expr(a.Arg), t.expr(a.Filter)
	}
	a := &Aggregate{Number: t.number(), Input: r, Keys: t.exprs(q.Group), Sets: q.Sets, Aggs: aggs}
	t.scalars, t.agg = map[int]int{}, a.Number
	return a
}

// source makes a source's operator.
func (t *starTree) source(i int) Rel {
	s := &t.q.Tables[i]
	if s.Relation == nil {
		return &Scan{Table: s.Table}
	}
	p := t.shared[s.Relation]
	if p == nil {
		p = t.relation(s.Relation)
		if t.shared == nil {
			t.shared = map[*Relation]*Project{}
		}
		t.shared[s.Relation] = p
	}
	t.to[i] = t.number()
	return &Shared{Number: t.to[i], Name: s.Meta.Name, Plan: p}
}

// relation makes the tree of a relation.
func (m *treeMaker) relation(r *Relation) *Project {
	p := m.tree(r.Blocks[0])
	if r.Series != nil {
		return m.series(r, p)
	}
	if r.ProjectSet != nil {
		return m.projectSet(r, p)
	}
	for _, b := range r.Blocks[1:] {
		u := &SetOp{Number: m.number(), Kind: Union, All: true, Left: p, Right: m.tree(b)}
		p = &Project{Input: u}
		for i, e := range r.Blocks[0].Output {
			p.Exprs = append(p.Exprs, Output{Of: u.Number, Index: i, T: e.Type()})
		}
	}
	if len(r.Windows) > 0 {
		p = m.windows(r, p)
	}
	if r.Cut != nil {
		p = m.cut(r, p)
	}
	return p
}

// series makes the series of a relation over the row of its block.
func (m *treeMaker) series(r *Relation, p *Project) *Project {
	p.Number = m.number()
	s := *r.Series
	s.Number, s.Input = m.number(), p
	for i, e := range []*Expr{&s.From, &s.To, &s.Step} {
		if *e != nil {
			*e = Output{Of: p.Number, Index: i, T: (*e).Type()}
		}
	}
	out := &Project{Input: &s}
	for i, t := range s.Types() {
		out.Exprs = append(out.Exprs, Output{Of: s.Number, Index: i, T: t})
	}
	return out
}

// projectSet makes the rows of a function over those of a relation's block.
func (m *treeMaker) projectSet(r *Relation, p *Project) *Project {
	p.Number = m.number()
	var args []Expr
	for i, e := range p.Exprs {
		args = append(args, Output{Of: p.Number, Index: i, T: e.Type()})
	}
	s := r.ProjectSet.WithArgs(args)
	s.Number, s.Input = m.number(), p
	out := &Project{Input: s}
	for i, t := range s.Types() {
		out.Exprs = append(out.Exprs, Output{Of: s.Number, Index: i, T: t})
	}
	return out
}

// cut cuts the rows of a relation.
func (m *treeMaker) cut(r *Relation, p *Project) *Project {
	p.Number = m.number()
	column := func(c int) Expr { return Output{Of: p.Number, Index: c, T: r.Meta.Columns[c].Type} }
	l := &Limit{Input: p, Count: Const{vector.Int(vector.Int8, r.Cut.Count)}}
	if r.Cut.Offset > 0 {
		l.Offset = Const{vector.Int(vector.Int8, r.Cut.Offset)}
	}
	for _, c := range r.Cut.Partition {
		l.Per = append(l.Per, column(c))
	}
	var by []Order
	for _, o := range r.Cut.Order {
		by = append(by, Order{Expr: column(o.Column), Desc: o.Desc, NullsFirst: o.NullsFirst})
	}
	if len(by) > 0 {
		l.Input = &Sort{Input: p, By: by}
	}
	out := &Project{Input: l}
	for i := range r.Meta.Columns {
		out.Exprs = append(out.Exprs, column(i))
	}
	return out
}

// windows makes the windows of a relation over the rows of its blocks.
func (m *treeMaker) windows(r *Relation, p *Project) *Project {
	p.Number = m.number()
	columns := make([]Expr, len(r.Meta.Columns))
	var rel Rel = p
	window := map[int]*WindowColumn{}
	for i := range r.Windows {
		window[r.Windows[i].To] = &r.Windows[i]
	}
	n := 0
	for c := range columns {
		if window[c] == nil {
			columns[c] = Output{Of: p.Number, Index: n, T: r.Meta.Columns[c].Type}
			n++
		}
	}
	for i := range r.Windows {
		w := &r.Windows[i]
		x := &Window{Number: m.number(), Input: rel, Func: w.Func, Frame: w.Frame}
		t := r.Meta.Columns[w.To].Type
		arg := &x.Arg
		if w.Func == WindowAggregate {
			x.Agg = AggregateCall{Func: w.Agg, T: t, Distinct: w.Distinct, Delimiter: w.Delimiter}
			arg = &x.Agg.Arg
		}
		for _, e := range []struct {
			of     *Expr
			column int
		}{{arg, w.Arg}, {&x.Agg.Filter, w.Filter}, {&x.Default, w.Default}, {&x.Offset, w.Offset}} {
			if e.column >= 0 {
				*e.of = columns[e.column]
			}
		}
		for _, c := range w.Partition {
			x.Partition = append(x.Partition, columns[c])
		}
		for _, o := range w.Order {
			x.Order = append(x.Order, Order{Expr: columns[o.Column], Desc: o.Desc, NullsFirst: o.NullsFirst})
		}
		rel = x
		columns[w.To] = Output{Of: x.Number, T: t}
	}
	return &Project{Input: rel, Exprs: columns}
}

// withScalars joins the scalars that expressions read, unless they are joined already.
func (t *starTree) withScalars(r Rel, es []Expr) Rel {
	t.scalars = maps.Clone(t.scalars)
	for _, e := range es {
		Walk(e, func(x Expr) bool {
			s, ok := x.(Scalar)
			if !ok || t.scalars[s.Of] != 0 {
				return true
			}
			p := t.tree(t.q.Scalars[s.Of])
			p.Number = t.number()
			t.scalars[s.Of] = p.Number
			r = &Join{Kind: Single, Left: r, Right: p}
			return true
		})
	}
	return r
}

func (t *starTree) exprs(es []Expr) []Expr {
	if es == nil {
		return nil
	}
	out := make([]Expr, len(es))
	for i, e := range es {
		out[i] = t.expr(e)
	}
	return out
}

// expr is an expression of the star as one of the tree.
func (t *starTree) expr(e Expr) Expr {
	if e == nil {
		return nil
	}
	return Rewrite(e, func(x Expr) Expr {
		switch x := x.(type) {
		case Column:
			if n := t.to[x.Table]; n != 0 {
				if k, only := t.keys[x.Table]; only {
					x.Column = k[x.Column]
				}
				return Output{Of: n, Index: x.Column, T: x.T}
			}
			x.Table = t.q.Tables[x.Table].Table
			return x
		case Key:
			x.Of = t.agg
			return x
		case Agg:
			x.Of = t.agg
			return x
		case *Grouping:
			g := *x
			g.Of = t.agg
			return &g
		case Scalar:
			return Output{Of: t.scalars[x.Of], Index: x.Index, T: x.T}
		}
		return x
	})
}
