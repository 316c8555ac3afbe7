package plan

import (
	"errors"
	"fmt"

	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// The aggregates that are asked for by name; sqlfn.Aggregates are all of them.
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
//
// The percentiles are over the n values that are not null, in order (or, with Desc, in
// reverse; NaN is the greatest float). Between 0 and -0 the order of rows decides: where
// the value taken is a zero and both occur, execution ends with a Forward.
//
// With p = Fraction * (n-1) in double precision, PercentileCont is the value at place
// floor(p), counted from 0, where p is whole, else lo + (p-floor(p)) * (hi-lo) of the
// values at floor(p) and ceil(p), every operation rounded by itself. PercentileDisc is the
// value at place ceil(Fraction * n), counted from 1 and at least 1.
var (
	CountStar      = sqlfn.Aggregates[0]
	Count          = sqlfn.AggregateNamed("count")
	Sum            = sqlfn.AggregateNamed("sum")
	Avg            = sqlfn.AggregateNamed("avg") // of integers and numerics vector.Div(sum, count)
	Min            = sqlfn.AggregateNamed("min")
	Max            = sqlfn.AggregateNamed("max")
	BoolAnd        = sqlfn.AggregateNamed("bool_and")
	BoolOr         = sqlfn.AggregateNamed("bool_or")
	VarPop         = sqlfn.AggregateNamed("var_pop") // of integers and numerics vector.Variance
	PercentileCont = sqlfn.AggregateNamed("percentile_cont")
	PercentileDisc = sqlfn.AggregateNamed("percentile_disc")
	StringAgg      = sqlfn.StringAgg
	ArrayAgg       = sqlfn.ArrayAgg
	Mode           = sqlfn.Mode
)

// The largest magnitudes of a finite float that are added up: below them neither a sum of
// up to 2^40 values nor Postgres' running sum of squares (float8_accum) overflows.
const (
	FloatSumMax    = 1e290
	FloatMomentMax = 1e140
)

// AggregateCall is one aggregate call.
type AggregateCall struct {
	Func   *sqlfn.Aggregate // one of sqlfn.Aggregates
	Arg    Expr             // nil for CountStar
	Filter Expr             // FILTER (WHERE ...), nil for none
	T      vector.Type
	// Distinct takes each value of Arg once in a group, after Filter; equal is what = says:
	// NaN equals NaN, 0 equals -0 (unless Func is Count, both in one group end in a Forward).
	// Never set for CountStar, those that it would not change (sqlfn.Aggregate.Idempotent),
	// and the percentiles.
	Distinct bool
	// Fraction (Float8, a Const from 0 to 1) and Desc belong to the percentiles: Arg is what
	// WITHIN GROUP orders by.
	Fraction Expr
	Desc     bool
	// Delimiter stands between the texts of a StringAgg, of a Window alone.
	Delimiter string
}

// AddsFloats reports whether an aggregate adds up floats: the last digits of Postgres' own
// answer then depend on the order in which it meets the rows.
func (g *AggregateCall) AddsFloats() bool {
	adds := g.Func.State == sqlfn.AggregateSum || g.Func.State == sqlfn.AggregateMoments
	return adds && g.Arg.Type().Kind.IsFloat()
}

// AddsFloats reports whether some aggregate adds up floats, of the star or of those that it reads.
func (q *Star) AddsFloats() (adds bool) {
	q.Walk(func(q *Star) {
		for i := range q.Aggs {
			adds = adds || q.Aggs[i].AddsFloats()
		}
	})
	return adds
}

// check says what is wrong with a call, nil where nothing is.
func (g *AggregateCall) check() error {
	if (g.Arg == nil) != g.Func.Star {
		return errors.New("argument")
	}
	if g.Filter != nil {
		if err := conditions("FILTER", []Expr{g.Filter}); err != nil {
			return err
		}
	}
	if g.Arg != nil && g.Func.Result(g.Arg.Type()).Kind != g.T.Kind {
		return fmt.Errorf("of type %v for an argument of type %v", g.T.Kind, g.Arg.Type().Kind)
	}
	if g.Delimiter != "" && g.Func != StringAgg {
		return errors.New("a delimiter")
	}
	if g.Distinct && (g.Func.Star || g.Func.Idempotent || g.Func.OrderedSet()) {
		return errors.New("DISTINCT, which does not change it or is not computed")
	}
	if !g.Func.OrderedSet() {
		if g.Fraction != nil || g.Desc {
			return errors.New("a fraction or DESC")
		}
		return nil
	}
	c, fixed := g.Fraction.(Const)
	if !fixed || c.Null || c.Datum.Type.Kind != vector.Float8 || !(c.Float64() >= 0 && c.Float64() <= 1) {
		return errors.New("a fraction that is no constant from 0 to 1")
	}
	return nil
}
