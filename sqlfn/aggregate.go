package sqlfn

import (
	"slices"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Aggregate is an aggregate function of the server's. Nulls are ignored by all of them but array_agg;
// over no values all but the counts are null.
type Aggregate struct {
	// Names are its names in pg_proc, the one that plans are written with first.
	Names []string
	// Star is count(*), which has no argument.
	Star bool
	// Result returns the type of the result for a type of the argument, an Invalid one where
	// it is not known how to compute it.
	Result func(vector.Type) vector.Type
	State  AggregateState
	// Idempotent says that a value which comes again changes nothing, so that DISTINCT does
	// not either.
	Idempotent bool

	// Sample and Root belong to AggregateMoments: division by n-1 in place of n, and the
	// square root of that.
	Sample, Root bool

	// Fold and Start belong to AggregateFold, whose values are neither texts nor numerics: a
	// function of the 64-bit words by which package vector holds two of them, in any order
	// and grouping, and the word that it returns the other one for.
	Fold  func(a, b int64) int64
	Start int64
}

// AggregateState says what of a group's values has to be kept for the result.
type AggregateState uint8

// The states. All aggregates need the number of values, too: whether there are any.
const (
	AggregateCount    AggregateState = iota // nothing else
	AggregateSum                            // the sum
	AggregateMoments                        // the sum, and that of the squares
	AggregateLeast                          // the least of their order, in which false is less than true
	AggregateGreatest                       // the greatest
	AggregateSorted                         // all values: the ordered-set aggregates
	AggregateFold                           // one word
	AggregateConcat                         // all values, in the order of the rows
	AggregateArray                          // all values and nulls, in the order of the rows
	AggregateMode                           // the most frequent value, of those the first one in the order of the rows
)

// Aggregates are all that are known. One with AggregateFold needs nothing but its line here.
var Aggregates = []*Aggregate{
	{Names: []string{"count"}, Star: true, State: AggregateCount, Result: countType},
	{Names: []string{"count"}, State: AggregateCount, Result: countType},
	{Names: []string{"sum"}, State: AggregateSum, Result: sumType},
	{Names: []string{"avg"}, State: AggregateSum, Result: meanType},
	{Names: []string{"min"}, State: AggregateLeast, Idempotent: true, Result: extremeType},
	{Names: []string{"max"}, State: AggregateGreatest, Idempotent: true, Result: extremeType},
	{Names: []string{"bool_and", "every"}, State: AggregateLeast, Idempotent: true, Result: boolType},
	{Names: []string{"bool_or"}, State: AggregateGreatest, Idempotent: true, Result: boolType},
	{Names: []string{"var_pop"}, State: AggregateMoments, Result: meanType},
	{Names: []string{"var_samp", "variance"}, State: AggregateMoments, Sample: true, Result: meanType},
	{Names: []string{"stddev_pop"}, State: AggregateMoments, Root: true, Result: meanType},
	{Names: []string{"stddev_samp", "stddev"}, State: AggregateMoments, Sample: true, Root: true, Result: meanType},
	{Names: []string{"percentile_cont"}, State: AggregateSorted, Result: percentileType},
	{Names: []string{"percentile_disc"}, State: AggregateSorted, Result: SameType},
	{Names: []string{"bit_and"}, State: AggregateFold, Idempotent: true, Result: integerType, Start: -1, Fold: func(a, b int64) int64 { return a & b }},
	{Names: []string{"bit_or"}, State: AggregateFold, Idempotent: true, Result: integerType, Fold: func(a, b int64) int64 { return a | b }},
	{Names: []string{"bit_xor"}, State: AggregateFold, Result: integerType, Fold: func(a, b int64) int64 { return a ^ b }},
}

// AggregateNamed returns the aggregate of one argument that has a name in SQL, nil where none
// is known. The argument of an ordered-set aggregate is what it is ordered by.
func AggregateNamed(name string) *Aggregate {
	for _, a := range Aggregates {
		if !a.Star && slices.Contains(a.Names, name) {
			return a
		}
	}
	return nil
}

// The aggregates over sorted rows are not among Aggregates: they are computed as window functions are.
var (
	StringAgg = &Aggregate{Names: []string{"string_agg"}, State: AggregateConcat, Result: concatType} // of texts
	ArrayAgg  = &Aggregate{Names: []string{"array_agg"}, State: AggregateArray, Result: arrayType}    // of what is no array
	Mode      = &Aggregate{Names: []string{"mode"}, State: AggregateMode, Result: SameType}
)

// FieldSum is a sum of bigint, or of one field of values that have several, that is bigint again: what leaves 64 bits is an error, also
// of groups that are not shown. It is no aggregate of the server's.
var FieldSum = &Aggregate{Names: []string{"sum"}, State: AggregateSum, Result: fieldSumType}

// LeastBytes and GreatestBytes are min() and max() of bytea, which servers have from 18 on, and others of what is held so.
var (
	LeastBytes    = &Aggregate{Names: []string{"min"}, State: AggregateLeast, Idempotent: true, Result: bytesType}
	GreatestBytes = &Aggregate{Names: []string{"max"}, State: AggregateGreatest, Idempotent: true, Result: bytesType}
)

// Their OIDs in pg_proc.
const (
	OIDStringAgg = 3538 // of texts
	OIDArrayAgg  = 2335 // of what is no array
	OIDMode      = 3984
)

// OverSorted reports whether an aggregate is over sorted rows.
func (a *Aggregate) OverSorted() bool { return a == StringAgg || a == ArrayAgg || a == Mode }

// IsAggregate reports whether a name is an aggregate's that is known.
func IsAggregate(name string) bool {
	return AggregateNamed(name) != nil || slices.Contains(StringAgg.Names, name) || slices.Contains(ArrayAgg.Names, name) || slices.Contains(Mode.Names, name)
}

// String returns the name by which plans are written.
func (a *Aggregate) String() string {
	if a.Star {
		return a.Names[0] + "(*)"
	}
	return a.Names[0]
}

// OrderedSet reports whether an aggregate is called with WITHIN GROUP.
func (a *Aggregate) OrderedSet() bool { return a.State == AggregateSorted }

func countType(vector.Type) vector.Type { return vector.TypeOf(vector.Int8) }

// sumType leaves out real: its sum is one, rounded at every row.
func sumType(t vector.Type) vector.Type {
	switch t.Kind {
	case vector.Int2, vector.Int4:
		return vector.TypeOf(vector.Int8)
	case vector.Int8:
		return vector.NumericType(0)
	case vector.Numeric, vector.Float8:
		return SameType(t)
	}
	return vector.Type{}
}

// meanType is that of averages and variances.
func meanType(t vector.Type) vector.Type {
	switch {
	case t.Kind.IsInt(), t.Kind == vector.Numeric:
		return vector.NumericType(vector.VaryingScale)
	case t.Kind.IsFloat():
		return vector.TypeOf(vector.Float8)
	}
	return vector.Type{}
}

func extremeType(t vector.Type) vector.Type {
	if !t.Kind.Valid() || sqltype.Of(t.Kind).NoExtremes {
		return vector.Type{}
	}
	if t.Kind == vector.Varchar {
		t.Kind = vector.Text
	}
	return SameType(t)
}

// SameType is the argument's, without its modifier. A char's stays, to which values are padded.
func SameType(t vector.Type) vector.Type {
	if t.Kind != vector.BPChar {
		t.Typmod = -1
	}
	return t
}

func fieldSumType(t vector.Type) vector.Type {
	if t.Kind == vector.Int4 || t.Kind == vector.Int8 {
		return vector.TypeOf(vector.Int8)
	}
	return vector.Type{}
}

func bytesType(t vector.Type) vector.Type {
	if t.Kind == vector.Bytea {
		return SameType(t)
	}
	return vector.Type{}
}

func concatType(t vector.Type) vector.Type {
	if t.Kind == vector.Text {
		return t
	}
	return vector.Type{}
}

func arrayType(t vector.Type) vector.Type { return vector.TypeOf(vector.ArrayOf(t.Kind)) }

func integerType(t vector.Type) vector.Type {
	if t.Kind.IsInt() {
		return t
	}
	return vector.Type{}
}

func boolType(t vector.Type) vector.Type {
	if t.Kind == vector.Bool {
		return t
	}
	return vector.Type{}
}

// percentileType is that of percentile_cont, to whose argument other numbers are cast.
func percentileType(t vector.Type) vector.Type {
	if t.Kind == vector.Float8 {
		return t
	}
	return vector.Type{}
}
