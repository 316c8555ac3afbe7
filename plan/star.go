package plan

import (
	"slices"

	"pgaccel/vector"
)

// MaxTables is the largest number of tables in a Star.
const MaxTables = 64

// JoinKind says what becomes of rows without a partner.
type JoinKind uint8

// The joins: rows of the driving side without a partner vanish (Inner) or stay
// with nulls (Left).
const (
	Inner JoinKind = iota
	Left
)

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

// AggFunc is an aggregate function.
type AggFunc uint8

// The aggregates. Nulls are ignored; over no rows all but the counts are null.
//
// Of floats (Avg and the variances of real and double precision, Sum of double precision)
// the result is Float8: the exact sum, rounded once, so that no order of rows changes it
// (Postgres' own depends on that order in its last digits); Avg is that divided by the
// count. The variances are Sxx / n or Sxx / (n-1) and their square roots, Sxx being the
// sum of squared differences from the mean. An infinity or NaN gives NaN, except that
// infinities of one sign alone give Sum and Avg that infinity. Sum is -0 only if all
// values are. Where Postgres might report an overflow, that is where some finite value's
// magnitude exceeds FloatSumMax (Sum) or FloatMomentMax (Avg, variances), execution ends
// with a Forward.
const (
	CountStar AggFunc = iota // Int8
	Count                    // Int8
	Sum                      // Int8 of smallint and integer; Numeric scale 0 of bigint; Numeric of the same scale
	Avg                      // Numeric, VaryingScale: vector.Div(sum, count)
	Min                      // the argument's kind; Text for varchar
	Max                      // likewise
	BoolAnd
	BoolOr
	// The variances: Numeric, VaryingScale, of integers and numerics (vector.Variance);
	// Float8 of floats.
	VarPop
	VarSamp // variance
	StddevPop
	StddevSamp // stddev
	// The percentiles, over the n values that are not null, in order (or, with Desc, in
	// reverse; NaN is the greatest float). Between 0 and -0 the order of rows decides: where
	// the value taken is a zero and both occur, execution ends with a Forward.
	//
	// With p = Fraction * (n-1) in double precision, PercentileCont is the value at place
	// floor(p), counted from 0, where p is whole, else lo + (p-floor(p)) * (hi-lo) of the
	// values at floor(p) and ceil(p), every operation rounded by itself.
	PercentileCont // Float8, and so is Arg
	// PercentileDisc is the value at place ceil(Fraction * n), counted from 1 and at least 1.
	PercentileDisc // the argument's type
)

// IsVariance reports whether an aggregate is a variance or a standard deviation.
func (f AggFunc) IsVariance() bool {
	switch f {
	case VarPop, VarSamp, StddevPop, StddevSamp:
		return true
	}
	return false
}

// IsPercentile reports whether an aggregate takes an order and a fraction.
func (f AggFunc) IsPercentile() bool { return f == PercentileCont || f == PercentileDisc }

// The largest magnitudes of a finite float that are added up: below them neither a sum of
// up to 2^40 values nor Postgres' running sum of squares (float8_accum) overflows.
const (
	FloatSumMax    = 1e290
	FloatMomentMax = 1e140
)

// AggregateCall is one aggregate call.
type AggregateCall struct {
	Func   AggFunc
	Arg    Expr // nil for CountStar
	Filter Expr // FILTER (WHERE ...), nil for none
	T      vector.Type
	// Distinct takes each value of Arg once in a group, after Filter; equal is what = says:
	// NaN equals NaN, 0 equals -0 (unless Func is Count, both in one group end in a Forward).
	// Never set for CountStar, Min, Max, BoolAnd, BoolOr, which it would not change, and the
	// percentiles.
	Distinct bool
	// Fraction (Float8, a Const from 0 to 1) and Desc belong to the percentiles: Arg is what
	// WITHIN GROUP orders by.
	Fraction Expr
	Desc     bool
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

// AddsFloats reports whether an aggregate adds up floats: the last digits of Postgres' own
// answer then depend on the order in which it meets the rows.
func (q *Star) AddsFloats() bool {
	for _, a := range q.Aggs {
		if (a.Func == Sum || a.Func == Avg || a.Func.IsVariance()) && a.Arg.Type().Kind.IsFloat() {
			return true
		}
	}
	return false
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
