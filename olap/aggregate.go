package olap

import (
	"math"
	"math/bits"
	"slices"

	"pgaccel/plan"
	"pgaccel/vector"
)

type accKind uint8

const (
	accRows   accKind = iota // rows that pass the filter
	accCount                 // rows whose argument is not null
	accSum                   // sum in 64 bits, proven to fit
	accSum128                // sum in 128 bits
	accMin
	accMax
	accZeros // bit 0: +0 came, bit 1: -0, bit 2: a NaN that is not the usual one; of floats
)

// acc is one accumulator. Aggregates share them: avg is a sum and a count.
type acc struct {
	kind   accKind
	arg    *node
	filter *node
}

// aggRef says where an aggregate's parts are; -1 for count: the group's rows.
type aggRef struct {
	f            plan.AggFunc
	t            vector.Type
	arg          *node
	value, count int
	zeros        int
	ranks        []int64 // text: code by rank
	dict         *dict
}

// state is an accumulator's values by group; hi are the upper halves of accSum128.
type state struct {
	v, hi []int64
}

func (s *state) grow(a *acc, n int) {
	have := len(s.v)
	s.v = append(s.v, make([]int64, n-have)...)
	switch a.kind {
	case accSum128:
		s.hi = append(s.hi, make([]int64, n-have)...)
	case accMin:
		for i := have; i < n; i++ {
			s.v[i] = math.MaxInt64
		}
	case accMax:
		for i := have; i < n; i++ {
			s.v[i] = math.MinInt64
		}
	}
}

func (s *state) merge(a *acc, i uint32, from *state, j uint32) {
	switch a.kind {
	case accMin:
		s.v[i] = min(s.v[i], from.v[j])
	case accMax:
		s.v[i] = max(s.v[i], from.v[j])
	case accZeros:
		s.v[i] |= from.v[j]
	case accSum128:
		lo, carry := bits.Add64(uint64(s.v[i]), uint64(from.v[j]), 0)
		s.v[i] = int64(lo)
		s.hi[i] += from.hi[j] + int64(carry)
	default:
		s.v[i] += from.v[j]
	}
}

// mergeAll adds group of[k] of another state to group to[k], for every k; of all its
// first len(to) groups where of is nil. A group that nothing has come to changes nothing.
func (s *state) mergeAll(a *acc, from *state, of, to []uint32) {
	if of == nil {
		for j, i := range to {
			s.merge(a, i, from, uint32(j))
		}
		return
	}
	for k, i := range to {
		s.merge(a, i, from, of[k])
	}
}

// bytes returns the memory of the state.
func (s *state) bytes() int64 { return int64(len(s.v)+len(s.hi)) * 8 }

// addAggregates compiles the aggregates, whose expressions are lowered.
func (g *grouper) addAggregates(aggs []plan.Aggregate) error {
	type known struct {
		e plan.Expr
		n *node
	}
	var nodes []known
	compile := func(e plan.Expr) (*node, error) {
		for _, k := range nodes {
			if k.e == e {
				return k.n, nil
			}
		}
		n, err := g.p.c.compile(e)
		nodes = append(nodes, known{e, n})
		return n, err
	}
	use := func(a acc) int {
		if i := slices.Index(g.accs, a); i >= 0 {
			return i
		}
		g.accs = append(g.accs, a)
		return len(g.accs) - 1
	}
	for _, a := range aggs {
		r := aggRef{f: a.Func, t: a.T, count: -1, value: -1, zeros: -1}
		var filter *node
		if a.Filter != nil {
			var err error
			if filter, err = compile(a.Filter); err != nil {
				return err
			}
			r.count = use(acc{kind: accRows, filter: filter})
		}
		if a.Func == plan.CountStar {
			g.refs = append(g.refs, r)
			continue
		}
		arg, err := compile(a.Arg)
		if err != nil {
			return err
		}
		r.arg = arg
		if arg.nullable {
			r.count = use(acc{accCount, arg, filter})
		}
		switch a.Func {
		case plan.Count:
			if arg.risky { // its errors must come up
				r.count = use(acc{accCount, arg, filter})
			}
		case plan.Sum, plan.Avg:
			if !arg.t.Kind.IsInt() && arg.t.Kind != vector.Numeric {
				return forward(plan.ReasonFunction, "sum of floats")
			}
			kind := accSum128
			if m, ok := mulChecked(magnitude(arg.lo, arg.hi), g.p.rowsMax()); ok && m < math.MaxInt64 && arg.lo != math.MinInt64 {
				kind = accSum
			}
			r.value = use(acc{kind, arg, filter})
		case plan.Min, plan.Max, plan.BoolAnd, plan.BoolOr:
			kind := accMin
			if a.Func == plan.Max || a.Func == plan.BoolOr {
				kind = accMax
			}
			by := arg
			switch {
			case arg.t.Kind.IsFloat():
				by = g.p.c.floatKey(arg)
				r.zeros = use(acc{accZeros, arg, filter})
			case arg.dict != nil:
				ranks, err := arg.dict.rank(arg.t.Collation)
				if err != nil {
					return err
				}
				to := make([]int64, max(len(ranks), 1))
				for code, rank := range ranks {
					if to[code] = int64(rank); rank < 0 {
						return forward(plan.ReasonCollation, "a string without a rank")
					}
				}
				// Ranks have gaps where strings were ranked that came after this version.
				r.ranks = make([]int64, slices.Max(to)+1)
				for code, rank := range ranks {
					r.ranks[rank] = int64(code)
				}
				r.dict = arg.dict
				by = g.p.c.recode(arg, to)
			}
			r.value = use(acc{kind, by, filter})
		default:
			return forward(plan.ReasonFunction, "aggregate")
		}
		g.refs = append(g.refs, r)
	}
	return nil
}

// accumulate adds the selected rows; index is nil for a single group.
func (s *groups) accumulate(w *worker, index []uint32) {
	var filter *node
	var pos []uint16
	var arg *node
	var v vec
	for i := range s.g.accs {
		a := &s.g.accs[i]
		if a.filter == nil {
			if a.arg != arg || filter != nil {
				v = w.eval(a.arg)
			}
			arg, filter = a.arg, nil
			s.update(i, index, v, len(w.f.sel))
			continue
		}
		if a.filter != filter {
			f := w.eval(a.filter)
			pos = s.pos[:0]
			for k, x := range f.v {
				if x != 0 && (f.nulls == nil || f.nulls[k] == 0) {
					pos = append(pos, uint16(k))
				}
			}
			filter, arg = a.filter, nil
		}
		if len(pos) == 0 {
			continue
		}
		if a.arg != nil && a.arg != arg {
			v = w.on(a.arg, pos, 0)
		}
		arg = a.arg
		var sub []uint32
		if index != nil {
			sub = s.sub[:len(pos)]
			for k, p := range pos {
				sub[k] = index[p]
			}
		}
		s.update(i, sub, v, len(pos))
	}
}

// update adds n rows to accumulator i.
func (s *groups) update(i int, index []uint32, v vec, n int) {
	a, st := &s.g.accs[i], &s.states[i]
	if a.kind == accRows {
		if index == nil {
			st.v[0] += int64(n)
		}
		for _, g := range index {
			st.v[g]++
		}
		return
	}
	if v.nulls != nil {
		s.updateNulls(a, st, index, v)
		return
	}
	if index == nil {
		updateSingle(a.kind, st, v.v)
		return
	}
	out, vals := st.v, v.v[:len(index)]
	switch a.kind {
	case accCount:
		for _, g := range index {
			out[g]++
		}
	case accSum:
		for k, g := range index {
			out[g] += vals[k]
		}
	case accMin:
		for k, g := range index {
			out[g] = min(out[g], vals[k])
		}
	case accMax:
		for k, g := range index {
			out[g] = max(out[g], vals[k])
		}
	default:
		for k, g := range index {
			updateOne(a.kind, st, g, vals[k])
		}
	}
}

func updateSingle(kind accKind, st *state, vals []int64) {
	switch kind {
	case accCount:
		st.v[0] += int64(len(vals))
	case accSum:
		sum := int64(0)
		for _, x := range vals {
			sum += x
		}
		st.v[0] += sum
	case accMin:
		st.v[0] = min(st.v[0], slices.Min(vals))
	case accMax:
		st.v[0] = max(st.v[0], slices.Max(vals))
	default:
		for _, x := range vals {
			updateOne(kind, st, 0, x)
		}
	}
}

func (s *groups) updateNulls(a *acc, st *state, index []uint32, v vec) {
	for k, x := range v.v {
		if v.nulls[k] != 0 {
			continue
		}
		g := uint32(0)
		if index != nil {
			g = index[k]
		}
		updateOne(a.kind, st, g, x)
	}
}

// updateOne is the reference of the loops above.
func updateOne(kind accKind, st *state, g uint32, x int64) {
	switch kind {
	case accRows, accCount:
		st.v[g]++
	case accSum:
		st.v[g] += x
	case accMin:
		st.v[g] = min(st.v[g], x)
	case accMax:
		st.v[g] = max(st.v[g], x)
	case accSum128:
		lo, carry := bits.Add64(uint64(st.v[g]), uint64(x), 0)
		st.v[g] = int64(lo)
		st.hi[g] += x>>63 + int64(carry)
	case accZeros:
		if x == 0 {
			st.v[g] |= 1
		} else if x == math.MinInt64 {
			st.v[g] |= 2
		} else if x != usualNaN && floatKey(x) == math.MaxInt64 {
			st.v[g] |= 4
		}
	}
}

// aggregates returns the results of all aggregates for the groups.
func (s *groups) aggregates(numbers []uint32) ([]rcol, error) {
	cols := make([]rcol, len(s.g.refs))
	for i := range cols {
		var err error
		if cols[i], err = s.aggregate(i, numbers); err != nil {
			return nil, err
		}
	}
	return cols, nil
}

// harmless reports whether computing aggregate i cannot raise an error of Postgres', so
// that it need not be computed for groups that a LIMIT cuts off.
func (g *grouper) harmless(i int) bool {
	r := &g.refs[i]
	switch r.f {
	case plan.CountStar, plan.Count, plan.BoolAnd, plan.BoolOr:
		return true
	case plan.Min, plan.Max:
		return r.zeros < 0
	case plan.Sum, plan.Avg:
		return r.t.Kind == vector.Numeric || g.accs[r.value].kind == accSum
	}
	return false
}

// aggregate returns the results of aggregate i for the groups.
func (s *groups) aggregate(i int, numbers []uint32) (rcol, error) {
	r := &s.g.refs[i]
	c := rcol{t: r.t}
	count := func(g uint32) int64 {
		if r.count < 0 {
			return s.counts[g]
		}
		return s.states[r.count].v[g]
	}
	switch r.f {
	case plan.CountStar, plan.Count:
		c.v = make([]int64, len(numbers))
		for k, g := range numbers {
			c.v[k] = count(g)
		}
		return c, nil
	}
	c.nulls = make([]uint8, len(numbers))
	st := &s.states[r.value]
	if r.f == plan.Sum && st.hi == nil && (r.t.Kind != vector.Numeric || r.t.Scale == r.arg.t.Scale) {
		c.v = make([]int64, len(numbers))
		for k, g := range numbers {
			c.v[k] = st.v[g]
			c.nulls[k] = uint8(b2i(count(g) == 0))
		}
		return c, nil
	}
	for k, g := range numbers {
		n := count(g)
		if n == 0 {
			c.nulls[k] = 1
		}
		switch r.f {
		case plan.Sum, plan.Avg:
			sum := vector.Int128Of(st.v[g])
			if st.hi != nil {
				sum = vector.Int128{Hi: st.hi[g], Lo: uint64(st.v[g])}
			}
			if err := c.addSum(r, sum, n); err != nil {
				return c, err
			}
		default:
			v := st.v[g]
			if n == 0 {
				v = 0
			}
			if r.zeros >= 0 && n > 0 {
				zeros := s.states[r.zeros].v[g]
				switch {
				case v == 0 && zeros&3 == 3:
					return c, failed("minimum or maximum is both zeros")
				case v == math.MaxInt64 && zeros&4 != 0:
					return c, failed("minimum or maximum is a NaN with a sign or payload")
				}
				if v = floatOfKey(v); zeros&3 == 2 && v == 0 {
					v = math.MinInt64
				}
			}
			if r.dict != nil {
				v = r.ranks[v]
			}
			c.v = append(c.v, v)
		}
	}
	c.dict = r.dict
	return c, nil
}

// addSum appends the sum, or avg where r is one.
func (c *rcol) addSum(r *aggRef, sum vector.Int128, n int64) error {
	d := vector.Decimal{Unscaled: sum}
	if r.arg.t.Kind == vector.Numeric {
		d.Scale = r.arg.t.Scale
	}
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
	v, ok := sum.Int64()
	if !ok {
		return failed("bigint out of range")
	}
	c.v = append(c.v, v)
	return nil
}
