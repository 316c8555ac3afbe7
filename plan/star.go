package plan

import (
	"slices"

	"pgaccel/vector"
)

// MaxTables is the largest number of tables in a Star.
const MaxTables = 64

// StarJoin attaches one table to those before it: a lookup. Its key is unique, so that it
// never multiplies rows, unless Many is set.
type StarJoin struct {
	Table int // position in Star.Tables, not 0
	Kind  JoinKind
	// Outer are expressions over tables attached before (Tables[0] first), equal
	// one by one to the columns Key of Table. A null matches nothing.
	Outer []Expr
	Key   []int
	// On are further conditions over Table alone that decide whether a row of it
	// can be a partner. (For Inner joins they stand in Star.Filter instead.)
	On []Expr
	// Many is set where the key need not be unique (Inner only): a row meets every
	// partner, as in a many-to-many table of a hierarchy with weights. At most one join of
	// a query is such.
	Many bool
}

// Order is one ORDER BY key.
type Order struct {
	Expr       Expr // over groups where the query is grouped, else over rows
	Desc       bool
	NullsFirst bool
}

// Star is the form of statement that is executed: rows of one table, each joined by keys to
// rows of others, filtered, grouped at most once, sorted and cut. A tree of operators of that
// form becomes one.
type Star struct {
	// Deps.Tables[0] drives: each of its rows that passes meets at most one row of every
	// other table, unless a join is Many.
	Deps
	Joins []StarJoin
	// Filter are the conjuncts of WHERE and of the inner joins' ON that are not
	// join keys. Only rows for which each is true remain. They see a Left join's
	// nulls.
	Filter []Expr

	// Grouped is true for aggregation, with or without GROUP BY. Without, there is
	// one group, and one row even over no input.
	Grouped bool
	Group   []Expr
	// Sets are the grouping sets, nil for a plain GROUP BY of all of Group: bit i of a
	// set stands for Group[i], at most 64 of them. Each set gives groups of its own, in
	// which the keys that it lacks are null: whatever the column allows. The same set may
	// occur twice, as in SQL, and then gives its groups twice; an empty one gives one row
	// even over no input. Every key is in some set.
	Sets   []uint64
	Aggs   []AggregateCall
	Having []Expr // conjuncts over groups

	// Output are the result columns in order: over groups (Key, Agg) where Grouped,
	// else over rows (Column).
	Output []Expr
	// Order is the order of the result; where empty any order is right.
	Order []Order
	// Limit and Offset are nil, or Int8 constants or parameters.
	Limit, Offset Expr

	// Constants are the calls over constants and parameters alone that may fail. PostgreSQL
	// computes them when it plans, wherever they stand: it reports an error though no row
	// needs the value. They may occur in what was simplified away, too.
	Constants []Expr
}

// Tree returns the star as a tree of operators.
func (q *Star) Tree() *Project {
	var r Rel = &Scan{Table: 0}
	for _, j := range q.Joins {
		var on []Expr
		for i, c := range j.Key {
			key := Column{Table: j.Table, Column: c, T: q.Tables[j.Table].Meta.Columns[c].Type}
			on = append(on, &Call{Op: OpEq, Args: []Expr{j.Outer[i], key}, T: vector.TypeOf(vector.Bool)})
		}
		r = &Join{Kind: j.Kind, Left: r, Right: &Scan{Table: j.Table}, On: append(on, j.On...)}
	}
	filtered := func(conds []Expr) {
		if len(conds) > 0 {
			r = &Filter{Input: r, Conds: conds}
		}
	}
	filtered(q.Filter)
	if q.Grouped {
		r = &Aggregate{Input: r, Keys: q.Group, Sets: q.Sets, Aggs: q.Aggs}
		filtered(q.Having)
	}
	if len(q.Order) > 0 {
		r = &Sort{Input: r, By: q.Order}
	}
	if q.Limit != nil || q.Offset != nil {
		r = &Limit{Input: r, Count: q.Limit, Offset: q.Offset}
	}
	return &Project{Input: r, Exprs: q.Output}
}

// Bind returns q with parameters replaced by constants. len(params) must be
// len(q.Params). q itself is not changed; without parameters it is returned.
func (q *Star) Bind(params []vector.Datum) *Star {
	if len(q.Params) == 0 {
		return q
	}
	b := q.Map(func(e Expr) Expr {
		return Rewrite(e, func(x Expr) Expr {
			if p, ok := x.(Param); ok {
				return Const{params[p.Index]}
			}
			return x
		})
	})
	b.Params = nil
	return b
}

// Map returns q with each of its expressions replaced by what f returns for it. q itself is not
// changed.
func (q *Star) Map(f func(Expr) Expr) *Star {
	one := func(e Expr) Expr {
		if e == nil {
			return nil
		}
		return f(e)
	}
	all := func(es []Expr) []Expr {
		if es == nil {
			return nil
		}
		out := make([]Expr, len(es))
		for i, e := range es {
			out[i] = f(e)
		}
		return out
	}
	m := *q
	m.Joins = slices.Clone(q.Joins)
	for i := range m.Joins {
		j := &m.Joins[i]
		j.Outer, j.On = all(j.Outer), all(j.On)
	}
	m.Filter, m.Group, m.Having, m.Output = all(q.Filter), all(q.Group), all(q.Having), all(q.Output)
	m.Aggs = slices.Clone(q.Aggs)
	for i := range m.Aggs {
		a := &m.Aggs[i]
		a.Arg, a.Filter, a.Fraction = one(a.Arg), one(a.Filter), one(a.Fraction)
	}
	m.Order = slices.Clone(q.Order)
	for i := range m.Order {
		m.Order[i].Expr = f(m.Order[i].Expr)
	}
	m.Limit, m.Offset = one(q.Limit), one(q.Offset)
	m.Constants = all(q.Constants)
	return &m
}
