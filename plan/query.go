package plan

import (
	"pgaccel/catalog"
	"pgaccel/vector"
)

// MaxTables is the largest number of tables in a Query.
const MaxTables = 64

// Table is one table reference. The same table may occur more than once.
type Table struct {
	Meta *catalog.Table
	// Ref is the name as the statement wrote it, quoted so that to_regclass in the
	// client's session resolves it as the statement would be: the gate compares.
	Ref string
	// Columns lists the positions of all columns that the statement mentions,
	// whether they are needed for the answer or not: SELECT on each is checked.
	// Empty where none is (count(*)): then SELECT on any column suffices.
	Columns []int
}

// JoinKind says what becomes of rows without a partner.
type JoinKind uint8

// The joins: rows of the driving side without a partner vanish (Inner) or stay
// with nulls (Left).
const (
	Inner JoinKind = iota
	Left
)

// Join attaches one table to those before it: a lookup. Its key is unique, so that it
// never multiplies rows, unless Many is set.
type Join struct {
	Table int // position in Query.Tables, not 0
	Kind  JoinKind
	// Outer are expressions over tables attached before (Tables[0] first), equal
	// one by one to the columns Key of Table. A null matches nothing.
	Outer []Expr
	Key   []int
	// On are further conditions over Table alone that decide whether a row of it
	// can be a partner. (For Inner joins they stand in Query.Filter instead.)
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

// The largest magnitudes of a finite float that are added up: below them neither a sum of
// up to 2^40 values nor Postgres' running sum of squares (float8_accum) overflows.
const (
	FloatSumMax    = 1e290
	FloatMomentMax = 1e140
)

// Aggregate is one aggregate call.
type Aggregate struct {
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

// Query is a statement that pgaccel can answer.
type Query struct {
	// Tables[0] drives: each of its rows that passes meets at most one row of every
	// other table, unless a join is Many.
	Tables []Table
	Joins  []Join
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
	Aggs   []Aggregate
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

	Params []vector.Type // types of $1, $2, ...
	// Functions are the names of functions that the query calls without a schema,
	// sorted: it is these that somebody's functions could take the place of.
	Functions []string
	// Calls are the OIDs of the built-in functions, sorted, that Postgres may call for the
	// statement, those of operators, casts and aggregates included: EXECUTE on each is
	// checked. What it calls for an index or a sort is not: it does not check that either.
	Calls []uint32
	// NeedsUTC is true where the meaning depends on the session's time zone: the
	// gate lets it pass only where that is UTC.
	NeedsUTC bool
}

// AddsFloats reports whether an aggregate adds up floats: the last digits of Postgres' own
// answer then depend on the order in which it meets the rows.
func (q *Query) AddsFloats() bool {
	for _, a := range q.Aggs {
		switch a.Func {
		case Sum, Avg, VarPop, VarSamp, StddevPop, StddevSamp:
			if a.Arg.Type().Kind.IsFloat() {
				return true
			}
		}
	}
	return false
}

// Bind returns q with parameters replaced by constants. len(params) must be
// len(q.Params). q itself is not changed; without parameters it is returned.
func (q *Query) Bind(params []vector.Datum) *Query {
	if len(q.Params) == 0 {
		return q
	}
	sub := func(e Expr) Expr {
		if e == nil {
			return nil
		}
		return Rewrite(e, func(x Expr) Expr {
			if p, ok := x.(Param); ok {
				return Const{params[p.Index]}
			}
			return x
		})
	}
	all := func(es []Expr) []Expr {
		out := make([]Expr, len(es))
		for i, e := range es {
			out[i] = sub(e)
		}
		return out
	}
	b := *q
	b.Params = nil
	b.Joins = append([]Join(nil), q.Joins...)
	for i := range b.Joins {
		b.Joins[i].Outer = all(b.Joins[i].Outer)
		b.Joins[i].On = all(b.Joins[i].On)
	}
	b.Filter, b.Group, b.Having, b.Output = all(q.Filter), all(q.Group), all(q.Having), all(q.Output)
	b.Aggs = append([]Aggregate(nil), q.Aggs...)
	for i := range b.Aggs {
		a := &b.Aggs[i]
		a.Arg, a.Filter, a.Fraction = sub(a.Arg), sub(a.Filter), sub(a.Fraction)
	}
	b.Order = append([]Order(nil), q.Order...)
	for i := range b.Order {
		b.Order[i].Expr = sub(b.Order[i].Expr)
	}
	b.Limit, b.Offset = sub(q.Limit), sub(q.Offset)
	b.Constants = all(q.Constants)
	return &b
}
