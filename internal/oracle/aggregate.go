package oracle

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// acc is one aggregate over one group: simply everything that it was given.
type acc struct {
	rows   int64 // that pass FILTER
	values []value
	all    []value // and nulls
}

// argument is what one row gives an aggregate.
type argument struct {
	skip bool // by FILTER
	v    value
}

func (r *run) argumentOf(a plan.AggregateCall) (arg argument, err error) {
	if a.Filter != nil {
		if ok, err := r.isTrue(a.Filter); err != nil || !ok {
			return argument{skip: true}, err
		}
	}
	arg.v = null
	if a.Func != plan.CountStar {
		arg.v, err = r.eval(a.Arg)
	}
	return arg, err
}

func (c *acc) add(a argument) {
	if a.skip {
		return
	}
	c.rows++
	if c.all = append(c.all, a.v); !a.v.null {
		c.values = append(c.values, a.v)
	}
}

func (r *run) finalise(a plan.AggregateCall, c acc) (value, error) {
	if a.Func == plan.CountStar {
		return value{i: c.rows}, nil
	}
	values := c.values
	t := a.Arg.Type()
	if a.Func == plan.ArrayAgg {
		return array(a, c.all), nil
	}
	if a.Distinct {
		var err error
		if values, err = distinct(t, a.Func, values); err != nil {
			return null, err
		}
	}
	if a.Func == plan.Count {
		return value{i: int64(len(values))}, nil
	}
	if len(values) == 0 {
		return null, nil
	}
	switch a.Func.State {
	case sqlfn.AggregateSum:
		if t.Kind.IsFloat() {
			return floatSum(a, values)
		}
		return exactSum(a, t, oneScale(values))
	case sqlfn.AggregateLeast, sqlfn.AggregateGreatest:
		switch a.Func {
		case plan.BoolAnd:
			return ofBool(!slices.ContainsFunc(values, func(v value) bool { return v.i == 0 })), nil
		case plan.BoolOr:
			return ofBool(slices.ContainsFunc(values, func(v value) bool { return v.i != 0 })), nil
		}
		return r.extreme(a, t, values)
	case sqlfn.AggregateMoments:
		if t.Kind.IsFloat() {
			return floatVariance(a.Func, values)
		}
		return exactVariance(a.Func, t, oneScale(values))
	case sqlfn.AggregateConcat:
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = v.s
		}
		return value{s: strings.Join(texts, a.Delimiter)}, nil
	case sqlfn.AggregateMode:
		most, best := 0, null
		for from := 0; from < len(values); {
			to := from
			for to < len(values) && equalName(t, values[to]) == equalName(t, values[from]) {
				to++
			}
			if to-from > most {
				most, best = to-from, values[from]
			}
			from = to
		}
		return best, nil
	case sqlfn.AggregateSorted:
		return r.percentile(a, t, values)
	case sqlfn.AggregateFold:
		folded := values[0].i
		for _, v := range values[1:] {
			folded = a.Func.Fold(folded, v.i)
		}
		return value{i: folded}, nil
	}
	panic("BUG: an aggregate that no case knows")
}

// array is array_agg's result.
func array(a plan.AggregateCall, values []value) value {
	t := a.Arg.Type()
	list := sqltype.NewArray(t)
	for i, v := range values {
		if a.Distinct && i > 0 && v.null == values[i-1].null && (v.null || equalName(t, v) == equalName(t, values[i-1])) {
			continue
		}
		d, err := toDatum(v, t)
		if err != nil {
			panic("BUG: a value that is held is not held")
		}
		list.Add(d.Value())
	}
	if list.Len() == 0 {
		return null
	}
	return value{s: list.String()}
}

// distinct keeps the first of each set of equal values.
func distinct(t vector.Type, fn *sqlfn.Aggregate, values []value) ([]value, error) {
	var kept []value
	first := map[string]value{}
	for _, v := range values {
		name := equalName(t, v)
		k, seen := first[name]
		if !seen {
			first[name] = v
			kept = append(kept, v)
		} else if fn != plan.Count && lookApart(t, k, v) {
			return nil, failed("DISTINCT of both zeros")
		}
	}
	return kept, nil
}

// equalName returns a string that is the same for equal values of a type.
func equalName(t vector.Type, v value) string {
	switch {
	case t.Kind == vector.BPChar:
		return strings.TrimRight(v.s, " ")
	case t.Kind.IsString():
		return v.s
	case t.Kind == vector.Numeric:
		return exact(v)
	case t.Kind.IsFloat() && v.float() == 0:
		return "0"
	case t.Kind.IsFloat():
		return strconv.FormatFloat(v.float(), 'g', -1, 64)
	}
	return strconv.FormatInt(v.i, 10)
}

// oppositeZeros reports whether two values are equal and yet print apart: 0 and -0.
func lookApart(t vector.Type, a, b value) bool {
	return t.Kind.IsFloat() && a.float() == 0 && b.float() == 0 && math.Signbit(a.float()) != math.Signbit(b.float())
}

// oneScale brings numerics to the largest of their scales, as PostgreSQL's sums do.
func oneScale(values []value) []value {
	scale := values[0].scale
	for _, v := range values {
		scale = max(scale, v.scale)
	}
	out := slices.Clone(values)
	for i, v := range out {
		if v.num != nil {
			out[i] = value{num: v.rescale(scale), scale: scale}
		}
	}
	return out
}

func exactOf(t vector.Type, v value) *big.Int {
	if t.Kind.IsInt() {
		return big.NewInt(v.i)
	}
	return v.num
}

func exactSum(a plan.AggregateCall, t vector.Type, values []value) (value, error) {
	sum := value{num: new(big.Int), scale: values[0].scale}
	for _, v := range values {
		sum.num.Add(sum.num, exactOf(t, v))
	}
	if a.Func != plan.Avg {
		if a.T.Kind == vector.Numeric {
			_, err := toDatum(sum, a.T)
			return sum, err
		}
		return bounded(sum.num, a.T.Kind)
	}
	n, ok := vector.Int128FromBig(sum.num)
	q, good := vector.Div(vector.Decimal{Unscaled: n, Scale: sum.scale}, vector.Decimal{Unscaled: vector.Int128Of(int64(len(values)))})
	if !ok || !good {
		return null, failed("numeric beyond 128 bits")
	}
	return value{num: q.Unscaled.Big(), scale: q.Scale}, nil
}

func exactVariance(fn *sqlfn.Aggregate, t vector.Type, values []value) (value, error) {
	x, x2 := new(big.Int), new(big.Int)
	for _, v := range values {
		n := exactOf(t, v)
		x.Add(x, n)
		x2.Add(x2, new(big.Int).Mul(n, n))
	}
	d, none, ok := vector.Variance(int64(len(values)), x, x2, values[0].scale, fn.Sample, fn.Root)
	switch {
	case !ok:
		return null, failed("numeric beyond 128 bits")
	case none:
		return null, nil
	}
	return value{num: d.Unscaled.Big(), scale: d.Scale}, nil
}

func (r *run) extreme(a plan.AggregateCall, t vector.Type, values []value) (value, error) {
	best, both := values[0], false
	for _, v := range values[1:] {
		cmp, err := compare(t, t.Collation, v, best, r.less)
		if err != nil {
			return null, err
		}
		both = both || cmp == 0 && lookApart(t, v, best)
		if cmp < 0 && a.Func.State == sqlfn.AggregateLeast || cmp > 0 && a.Func.State == sqlfn.AggregateGreatest {
			best, both = v, false
		}
	}
	if both {
		return null, failed("minimum or maximum is both zeros")
	}
	return best, nil
}

// exactly is a precision in bits at which sums of doubles and of their squares are exact:
// from 2^-2148, the square of the least, to 2^2048, with room for a sum of 2^60 and for
// the product of a sum of squares with a count.
const exactly = 2*2148 + 256

// floatSum is sum and avg of floats: the exact sum rounded once, which no order of rows
// changes. plan.Sum says what is forwarded.
func floatSum(a plan.AggregateCall, values []value) (value, error) {
	sum := new(big.Float).SetPrec(exactly)
	special := 0.0
	negativeZero := true
	limit := plan.FloatSumMax
	if a.Func == plan.Avg {
		limit = plan.FloatMomentMax
	}
	for _, v := range values {
		f := v.float()
		negativeZero = negativeZero && f == 0 && math.Signbit(f)
		switch {
		case math.IsNaN(f) || math.IsInf(f, 0):
			special += f // two infinities give NaN
		case math.Abs(f) > limit:
			return null, failed("value out of range: overflow")
		default:
			sum.Add(sum, new(big.Float).SetFloat64(f))
		}
	}
	f, _ := sum.Float64()
	switch {
	case special != 0:
		f = special
	case f == 0:
		if negativeZero && a.Func == plan.Sum { // avg adds to an initial zero
			f = math.Copysign(0, -1)
		}
	}
	if a.Func == plan.Avg {
		f /= float64(len(values))
	}
	return ofFloat(f), nil
}

// floatVariance is the variance family of floats: the exact sum of squared differences
// from the mean, rounded, then divided and rooted as Postgres' float8_var_pop and its
// likes do.
func floatVariance(fn *sqlfn.Aggregate, values []value) (value, error) {
	sum, squares := new(big.Float).SetPrec(exactly), new(big.Float).SetPrec(exactly)
	special := false
	n := float64(len(values))
	for _, v := range values {
		f := v.float()
		switch {
		case math.IsNaN(f) || math.IsInf(f, 0):
			special = true
		case math.Abs(f) > plan.FloatMomentMax:
			return null, failed("value out of range: overflow")
		default:
			b := new(big.Float).SetPrec(exactly).SetFloat64(f)
			sum.Add(sum, b)
			squares.Add(squares, b.Mul(b, b))
		}
	}
	if fn.Sample && n == 1 {
		return null, nil
	}
	// Sxx = sum(x^2) - sum(x)^2 / n
	count := new(big.Float).SetPrec(exactly).SetFloat64(n)
	squares.Mul(squares, count)
	squares.Sub(squares, sum.Mul(sum, sum))
	sxx, _ := squares.Quo(squares, count).Float64()
	if special {
		sxx = math.NaN()
	}
	f := sxx / n
	if fn.Sample {
		f = sxx / (n - 1)
	}
	if fn.Root {
		f = math.Sqrt(f)
	}
	return ofFloat(f), nil
}

// percentile is percentile_cont and percentile_disc as orderedsetaggs.c computes them.
func (r *run) percentile(a plan.AggregateCall, t vector.Type, values []value) (value, error) {
	c, ok := a.Fraction.(plan.Const)
	if !ok {
		panic("BUG: a fraction that is not bound")
	}
	fraction := c.Float64()
	if c.Null || !(fraction >= 0 && fraction <= 1) {
		return null, failed("percentile value is not between 0 and 1")
	}
	sorted := slices.Clone(values)
	var failure error
	slices.SortStableFunc(sorted, func(x, y value) int {
		n, err := compare(t, t.Collation, x, y, r.less)
		if err != nil {
			failure = err
		}
		if a.Desc {
			return -n
		}
		return n
	})
	if failure != nil {
		return null, failure
	}
	// Between equal values the order of rows decides.
	at := func(i int) (value, error) {
		v := sorted[i]
		if slices.ContainsFunc(sorted, func(o value) bool { return lookApart(t, v, o) }) {
			return null, failed("percentile is both zeros")
		}
		return v, nil
	}
	if a.Func == plan.PercentileDisc {
		row := int(math.Ceil(fraction * float64(len(sorted))))
		return at(max(row, 1) - 1)
	}
	position := float64(fraction * float64(len(sorted)-1)) // rounded, as step is
	first, second := math.Floor(position), math.Ceil(position)
	lo, err := at(int(first))
	if err != nil || first == second {
		return lo, err
	}
	hi, err := at(int(second))
	if err != nil {
		return null, err
	}
	proportion := position - first
	step := float64(proportion * (hi.float() - lo.float())) // rounded: no fused multiply-add
	return ofFloat(lo.float() + step), nil
}
