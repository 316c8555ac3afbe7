package olap

import (
	"math"

	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// harmless reports whether computing aggregate i cannot raise an error of Postgres', so
// that it need not be computed for groups that a LIMIT cuts off.
func (g *grouper) harmless(i int) bool {
	r := &g.refs[i]
	switch r.f.State {
	case sqlfn.AggregateCount, sqlfn.AggregateFold:
		return true
	case sqlfn.AggregateLeast, sqlfn.AggregateGreatest:
		return r.zeros < 0
	case sqlfn.AggregateSum:
		return r.distinct < 0 && (r.t.Kind == vector.Numeric || g.accs[r.value].kind == program.AccSum)
	}
	return false
}

// aggregate returns the results of aggregate i for the groups.
func (s *groups) aggregate(i int, numbers []uint32) (rcol, error) {
	r := &s.g.refs[i]
	c := rcol{t: r.t, dict: r.dict}
	switch {
	case len(numbers) == 0:
		return c, nil
	case r.ordered:
		return s.percentile(r, numbers)
	}
	st, count := s.parts(r)
	if r.f.State == sqlfn.AggregateCount {
		c.v = make([]int64, len(numbers))
		for k, g := range numbers {
			c.v[k] = count(g)
		}
		return c, nil
	}
	if st.extra != nil || !s.allValued(r) {
		c.nulls = make([]uint8, len(numbers))
		for k, g := range numbers {
			c.nulls[k] = uint8(b2i(count(g) == 0))
		}
	}
	var err error
	switch e := st.extra.(type) {
	case *floatMoments:
		err = s.floatResults(&c, r, e, numbers, count)
	case *intMoments:
		err = c.variances(r, e, numbers, count)
	case *decimalSums:
		err = c.decimalSums(r, e, numbers, count)
	default:
		if r.f.State == sqlfn.AggregateSum {
			err = c.sums(r, st, numbers, count)
		} else {
			err = s.words(&c, r, st, numbers)
		}
	}
	return c, err
}

// allValued reports whether every group of numbers has a value of the aggregate, so that no result is null: all its rows have
// one, and only the group of no keys is there without rows.
func (s *groups) allValued(r *aggRef) bool {
	return r.count < 0 && r.distinct < 0 && s.by.how != groupSingle
}

// parts returns the state with the values of an aggregate, and their number by group.
func (s *groups) parts(r *aggRef) (*state, func(g uint32) int64) {
	if r.distinct >= 0 {
		set := s.states[r.distinct].extra.(*distinct)
		numbers := set.numbers()
		count := func(g uint32) int64 { return numbers[g] }
		if r.over == nil {
			return nil, count
		}
		return set.stateOver(r.over), count
	}
	count := func(g uint32) int64 { return s.counts[g] }
	if r.count >= 0 {
		v := s.states[r.count].V
		count = func(g uint32) int64 { return v[g] }
	}
	if r.value < 0 {
		return nil, count
	}
	if e, ok := s.states[r.value].extra.(*decimalSums); ok {
		count = func(g uint32) int64 { return e.n[g] }
	}
	return &s.states[r.value], count
}

// sums computes sums and averages of integers and numerics.
func (c *rcol) sums(r *aggRef, st *state, numbers []uint32, count func(g uint32) int64) error {
	if r.f == plan.Sum && r.offset == 0 && st.Hi == nil && (r.t.Kind != vector.Numeric || r.t.Scale == r.arg.t.Scale) {
		c.v = make([]int64, len(numbers))
		for k, g := range numbers {
			c.v[k] = st.V[g]
		}
		return nil
	}
	for _, g := range numbers {
		sum := vector.Int128Of(st.V[g])
		if st.Hi != nil {
			sum = vector.Int128{Hi: st.Hi[g], Lo: uint64(st.V[g])}
		}
		n := count(g)
		if r.offset != 0 {
			sum = sum.Add(vector.Mul64(r.offset, n))
		}
		if err := c.addSum(r, sum, n); err != nil {
			return err
		}
	}
	return nil
}

// variances computes the variance family of integers and numerics.
func (c *rcol) variances(r *aggRef, e *intMoments, numbers []uint32, count func(g uint32) int64) error {
	scale := int16(0)
	if r.arg.t.Kind == vector.Numeric {
		scale = r.arg.t.Scale
	}
	c.dec = make([]vector.Decimal, len(numbers))
	for k, g := range numbers {
		d, null, ok := e.m[g].variance(count(g), scale, r.f)
		if !ok {
			return errNumeric
		}
		c.dec[k] = d
		if null {
			c.nulls[k] = 1
		}
	}
	return nil
}

// words takes minima and maxima, also of booleans, and what was folded.
func (s *groups) words(c *rcol, r *aggRef, st *state, numbers []uint32) error {
	c.v = make([]int64, len(numbers))
	for k, g := range numbers {
		if c.null(uint32(k)) {
			if r.ranks != nil {
				c.v[k] = max(r.ranks[0], 0)
			}
			continue
		}
		v := st.V[g]
		var err error
		if r.zeros >= 0 {
			if v, err = s.float(r, g, v); err != nil {
				return err
			}
		}
		if r.ranks != nil {
			if v, err = r.ranked(v); err != nil {
				return err
			}
		}
		c.v[k] = v
	}
	return nil
}

// float returns the bits of the one double with that key that came to group g.
func (s *groups) float(r *aggRef, g uint32, key int64) (int64, error) {
	zeros := s.states[r.zeros].V[g]
	switch {
	case key == 0 && zeros&3 == 3:
		return 0, failed("a value that is both zeros")
	case key == vector.NaNKey && zeros&4 != 0:
		return 0, failed("a value that is a NaN with a sign or payload")
	case key == 0 && zeros&3 == 2:
		return math.MinInt64, nil
	}
	return vector.FloatOfKey(key), nil
}

// floatResults computes sums, averages and variances of floats.
func (s *groups) floatResults(c *rcol, r *aggRef, e *floatMoments, numbers []uint32, count func(g uint32) int64) error {
	limit := plan.FloatMomentMax
	if r.f == plan.Sum {
		limit = plan.FloatSumMax
	}
	if e.most>>1 > math.Float64bits(limit) {
		return failed("value out of range: overflow")
	}
	c.v = make([]int64, len(numbers))
	for k, g := range numbers {
		n := count(g)
		if n == 0 {
			continue
		}
		zeros := int64(0)
		if r.zeros >= 0 {
			zeros = s.states[r.zeros].V[g]
		}
		odd := e.oddOf(g)
		switch {
		case zeros&3 == 3:
			return failed("DISTINCT of both zeros")
		case zeros&4 != 0, odd&floatOddNaN != 0, odd&(floatInf|floatNegInf) == floatInf|floatNegInf:
			return failed("a NaN with a sign or payload")
		}
		v := 0.0
		if r.f.State == sqlfn.AggregateSum {
			v = e.total(g, odd)
			if r.f == plan.Avg {
				v /= float64(n)
			} else if v == 0 && (e.minusOf(g) == n || zeros == 2 && n == 1) {
				v = math.Copysign(0, -1)
			}
		} else {
			d := n
			if r.f.Sample {
				d--
			}
			if d == 0 {
				c.nulls[k] = 1
				continue
			}
			if v = math.NaN(); odd == 0 {
				v = e.deviations(g, n) / float64(d)
			}
			if r.f.Root {
				v = math.Sqrt(v)
			}
		}
		if c.v[k] = int64(math.Float64bits(v)); v != v {
			c.v[k] = vector.NaNBits
		}
	}
	return nil
}

// addSum appends the sum, or avg where r is one.
func (c *rcol) addSum(r *aggRef, sum vector.Int128, n int64) error {
	d := vector.Decimal{Unscaled: sum}
	if r.arg.t.Kind == vector.Numeric {
		d.Scale = r.arg.t.Scale
	}
	return c.addDecimalSum(r, d, n)
}

// addDecimalSum is addSum of a sum with its scale.
func (c *rcol) addDecimalSum(r *aggRef, d vector.Decimal, n int64) error {
	if r.f == plan.Avg {
		q := vector.Decimal{}
		if n > 0 {
			var ok bool
			if q, ok = vector.Div(d, vector.Decimal{Unscaled: vector.Int128Of(n)}); !ok {
				return errNumeric
			}
		}
		c.dec = append(c.dec, q)
		return nil
	}
	if r.t.Kind == vector.Numeric {
		c.dec = append(c.dec, d)
		return nil
	}
	v, ok := d.Unscaled.Int64()
	if !ok {
		return failed("bigint out of range")
	}
	c.v = append(c.v, v)
	return nil
}
