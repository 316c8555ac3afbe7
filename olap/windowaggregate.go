package olap

import (
	"math"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// windowAggregate is an aggregate over the frames of a partition's rows. While frames only grow, rows
// are added to the value of the last one. Else the value comes of an index of the partition: sums of
// all rows before each, or a segment tree. Sums of floats depend on where they begin: they are added
// up anew for each row whose frame begins elsewhere, in the order of the rows, as PostgreSQL does,
// which has no inverse transition for them.
type windowAggregate struct {
	w           *windower
	p           *plan.WindowColumn
	out         *relationColumn
	arg, filter *relationColumn // nil for none
	ranks       []int32         // of text, and of numerics of varying scale
	// ordered is true where the value depends on the order of the rows.
	ordered bool

	rows   []uint32
	sum    windowState // over the rows of last
	last   rowSpan
	stored int64 // the row that has their value; -1 for none
	added  int   // rows since the context was asked
	index  *frameIndex
	held   int64 // bytes of the index
}

func newWindowAggregate(w *windower, p *plan.WindowColumn, out *relationColumn) (*windowAggregate, error) {
	a := &windowAggregate{w: w, p: p, out: out}
	if p.Filter >= 0 {
		a.filter = &w.cols[p.Filter]
	}
	if p.Arg < 0 {
		return a, nil
	}
	a.arg = &w.cols[p.Arg]
	extreme := p.Agg.State == sqlfn.AggregateLeast || p.Agg.State == sqlfn.AggregateGreatest
	if a.arg.dict != nil && extreme {
		var err error
		if a.ranks, err = w.x.rankOf(a.arg.dict, a.arg.t.Collation); err != nil {
			return nil, err
		}
	}
	switch k := a.arg.t.Kind; {
	case p.Agg.OverSorted():
		a.ordered = true
	case k.IsFloat():
		a.ordered = p.Agg.State == sqlfn.AggregateSum || p.Agg.State == sqlfn.AggregateMoments || extreme && a.arg.equalUnlike()
	case a.arg.varying():
		a.ordered = extreme && a.arg.dict != nil && a.arg.dict.unlike() != nil
	case k.IsString():
		a.ordered = extreme && !a.arg.t.Collation.Deterministic && !a.arg.t.Collation.C
	}
	return a, nil
}

// equalUnlike reports whether floats of a column may be equal and print apart: both zeros, or NaNs of
// several bits.
func (c *relationColumn) equalUnlike() bool {
	var zeros [2]bool
	for i, v := range c.v {
		switch {
		case c.null(uint32(i)):
		case v == 0:
			zeros[0] = true
		case v == math.MinInt64:
			zeros[1] = true
		case v != vector.NaNBits && vector.FloatKey(v) == vector.NaNKey:
			return true
		}
	}
	return zeros[0] && zeros[1]
}

// allEqual reports whether rows give the aggregate the same.
func (a *windowAggregate) allEqual(rows []uint32) bool {
	if a.p.Agg.OverSorted() { // in whichever order those come that it counts
		first := -1
		for i, r := range rows {
			if !a.passes(r) || a.arg.null(r) && a.p.Agg.State != sqlfn.AggregateArray {
				continue
			}
			if first < 0 {
				first = i
			} else if !a.arg.allEqual([]uint32{rows[first], r}) {
				return false
			}
		}
		return true
	}
	return (a.filter == nil || a.filter.allEqual(rows)) && (a.arg == nil || a.arg.allEqual(rows))
}

// begin begins a partition.
func (a *windowAggregate) begin(rows []uint32) {
	a.rows, a.last, a.stored, a.sum, a.index = rows, rowSpan{}, -1, a.none(), nil
}

// close gives back the memory of the index.
func (a *windowAggregate) close() { a.w.x.give(a.held) }

// put gives a row the value of its frame.
func (a *windowAggregate) put(row uint32, frame []rowSpan) error {
	one := rowSpan{} // where the frame is one span, or none
	if len(frame) == 1 {
		one = frame[0]
	}
	switch {
	case len(frame) <= 1 && one == a.last && a.stored >= 0:
		a.out.v[row] = a.out.v[a.stored]
		if a.out.null(uint32(a.stored)) {
			a.out.setNull(row)
		}
		return nil
	case len(frame) <= 1 && one.from == a.last.from && one.to >= a.last.to:
		if err := a.add(rowSpan{a.last.to, one.to}); err != nil {
			return err
		}
		a.last = one
	case len(frame) == 0:
		a.sum, a.last = a.none(), one
	default:
		if err := a.anew(frame); err != nil {
			return err
		}
		if a.last = (rowSpan{-1, -1}); len(frame) == 1 {
			a.last = one
		}
	}
	a.stored = int64(row)
	return a.store(row)
}

// anew computes the value of a frame that the last one says nothing of.
func (a *windowAggregate) anew(frame []rowSpan) error {
	a.sum = a.none()
	if a.arg != nil && a.arg.t.Kind.IsFloat() && (a.p.Agg.State == sqlfn.AggregateSum || a.p.Agg.State == sqlfn.AggregateMoments) {
		for _, s := range frame {
			if err := a.add(s); err != nil {
				return err
			}
		}
		return nil
	}
	if a.index == nil {
		if err := a.makeIndex(); err != nil {
			return err
		}
	}
	for _, s := range frame {
		a.index.addTo(&a.sum, s)
	}
	return nil
}

// askEvery is the number of rows after which the context is asked: some milliseconds.
const askEvery = 1 << 20

// add adds rows of the partition.
func (a *windowAggregate) add(s rowSpan) error {
	for _, r := range a.rows[s.from:s.to] {
		a.addRow(&a.sum, r)
	}
	if a.added += s.to - s.from; a.added >= askEvery {
		a.added = 0
		return a.w.x.ctx.Err()
	}
	return nil
}

// windowState is an aggregate's state over some rows.
type windowState struct {
	n       int64 // values
	sum     vector.Int128
	total   decimalSum
	squares moment
	word    int64 // what is folded
	best    int32 // the row of the least or the greatest value, -1 for none
	float   floatState
}

// decimalSum is the sum of numerics of varying scale, whose scale is the largest of theirs.
type decimalSum struct {
	vector.Decimal
	wide bool // it has more than 127 bits
}

func (s decimalSum) plus(o decimalSum) decimalSum {
	sum, ok := s.Add(o.Decimal)
	return decimalSum{sum, s.wide || o.wide || !ok}
}

func (a *windowAggregate) none() windowState { return windowState{word: a.p.Agg.Start, best: -1} }

// counts reports whether a row has a value.
func (a *windowAggregate) counts(r uint32) bool {
	return a.passes(r) && (a.arg == nil || !a.arg.null(r))
}

// passes reports whether a row passes FILTER.
func (a *windowAggregate) passes(r uint32) bool {
	return a.filter == nil || !a.filter.null(r) && a.filter.v[r] != 0
}

// addRow adds a row.
func (a *windowAggregate) addRow(s *windowState, r uint32) {
	if !a.counts(r) {
		return
	}
	if s.n++; a.arg == nil {
		return
	}
	v := a.arg.v[r]
	switch a.p.Agg.State {
	case sqlfn.AggregateSum:
		switch {
		case a.arg.t.Kind.IsFloat():
			s.float.add(math.Float64frombits(uint64(v)), a.p.Agg == plan.Sum)
		case a.arg.varying():
			s.total = s.total.plus(decimalSum{Decimal: a.arg.decimals[v]})
		default:
			s.sum = s.sum.Add(vector.Int128Of(v))
		}
	case sqlfn.AggregateMoments:
		if a.arg.t.Kind.IsFloat() {
			s.float.add(math.Float64frombits(uint64(v)), false)
			return
		}
		s.squares.addInt(v)
	case sqlfn.AggregateLeast, sqlfn.AggregateGreatest:
		s.best = a.better(s.best, int32(r))
	case sqlfn.AggregateFold:
		s.word = a.p.Agg.Fold(s.word, v)
	}
}

// better returns which of two rows has the least value, or the greatest, the second where they are
// equal: numeric_larger and its likes keep the first only if it is greater. -1 is no row.
func (a *windowAggregate) better(x, y int32) int32 {
	if x < 0 || y < 0 {
		return max(x, y)
	}
	k, l := a.sortKey(x), a.sortKey(y)
	if k != l && k < l == (a.p.Agg.State == sqlfn.AggregateLeast) {
		return x
	}
	return y
}

// sortKey is an integer that orders as a row's value does.
func (a *windowAggregate) sortKey(r int32) int64 {
	switch v := a.arg.v[r]; {
	case a.ranks != nil:
		return int64(a.ranks[v])
	case a.arg.t.Kind.IsFloat():
		return vector.FloatKey(v)
	default:
		return v
	}
}

// store gives a row the aggregate's value.
func (a *windowAggregate) store(row uint32) error {
	s, out := &a.sum, a.out
	if a.p.Agg.State == sqlfn.AggregateCount {
		out.v[row] = s.n
		return nil
	}
	if s.n == 0 || a.p.Agg.Sample && s.n == 1 {
		out.setNull(row)
		return nil
	}
	switch a.p.Agg.State {
	case sqlfn.AggregateLeast, sqlfn.AggregateGreatest:
		out.copyValue(row, a.arg, uint32(s.best))
		return nil
	case sqlfn.AggregateFold:
		out.v[row] = s.word
		return nil
	}
	if a.arg.t.Kind.IsFloat() {
		f, ok := s.float.result(a.p.Agg)
		out.v[row] = f
		if !ok {
			return failed("a sum of floats that overflows, or is an unusual NaN")
		}
		return nil
	}
	scale := int16(0)
	if a.arg.t.Kind == vector.Numeric {
		scale = a.arg.t.Scale
	}
	if a.p.Agg.State == sqlfn.AggregateMoments {
		d, _, ok := s.squares.variance(s.n, scale, a.p.Agg)
		out.v[row] = out.decimalCode(d)
		return numericError(ok)
	}
	sum := vector.Decimal{Unscaled: s.sum, Scale: scale}
	if a.arg.varying() {
		sum = s.total.Decimal
	}
	if s.total.wide {
		return errNumeric
	}
	if a.p.Agg == plan.Avg {
		q, ok := vector.Div(sum, vector.Decimal{Unscaled: vector.Int128Of(s.n)})
		out.v[row] = out.decimalCode(q)
		return numericError(ok)
	}
	if a.arg.varying() {
		out.v[row] = out.decimalCode(sum)
		return nil
	}
	v, fits := s.sum.Int64()
	out.v[row] = v
	return numericError(fits)
}

func numericError(ok bool) error {
	if !ok {
		return errNumeric
	}
	return nil
}

// floatState is what float8pl and float8_accum (float.c) keep of the values so far. The conversions
// to float64 keep the compiler from fusing a multiplication with an addition.
type floatState struct {
	n, sum, sxx float64
	overflow    bool
}

// add adds a value: to a plain sum, or by Youngs and Cramer.
func (s *floatState) add(v float64, plain bool) {
	before := s.sum
	if s.n++; s.n == 1 && plain {
		s.sum = v
		return
	}
	s.sum += v
	if plain {
		s.overflow = s.overflow || math.IsInf(s.sum, 0) && !math.IsInf(before, 0) && !math.IsInf(v, 0)
		return
	}
	if s.n == 1 {
		if v-v != 0 {
			s.sxx = math.NaN()
		}
		return
	}
	tmp := float64(v*s.n) - s.sum
	s.sxx += float64(tmp*tmp) / float64(s.n*(s.n-1))
	if math.IsInf(s.sum, 0) || math.IsInf(s.sxx, 0) {
		s.overflow = s.overflow || !math.IsInf(before, 0) && !math.IsInf(v, 0)
		s.sxx = math.NaN()
	}
}

// result is the bits of the aggregate's value. ok is false where the server reports an error, or its
// NaN may be another one.
func (s *floatState) result(fn *sqlfn.Aggregate) (bits int64, ok bool) {
	f := s.sum
	switch {
	case fn == plan.Avg:
		f = s.sum / s.n
	case fn.State == sqlfn.AggregateMoments:
		if f = s.sxx / s.n; fn.Sample {
			f = s.sxx / (s.n - 1)
		}
		if fn.Root {
			f = math.Sqrt(f)
		}
	}
	bits = int64(math.Float64bits(f))
	if fn.State == sqlfn.AggregateMoments && math.IsNaN(f) {
		bits = vector.NaNBits // get_float8_nan
	}
	return bits, !s.overflow && (!math.IsNaN(f) || bits == vector.NaNBits)
}
