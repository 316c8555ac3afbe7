package olap

import (
	"math"
	"math/bits"
	"strings"

	"pgaccel/gpu/program"
	"pgaccel/internal/simd"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// accKind is an accumulator: one that devices have, too, or another.
type accKind = program.AccKind

const (
	accZeros = program.AccMax + 1 + iota // bit 0: +0 came, bit 1: -0, bit 2: a NaN that is not the usual one; of floats
	accFold                              // one word, by a function of two
	// The code of the least or greatest value of a pool, strings in memcmp's order; -1: none came.
	accLeastText
	accGreatestText
	// Those of an extra: moments.go, floatsum.go (with squares or without), distinct.go,
	// percentile.go, decimalsum.go.
	accMoments
	accFloatMoments
	accFloatSum
	accDistinct
	accRanked
	accDecimalSum
)

var accNames = [...]string{"rows", "count", "sum", "sum128", "min", "max", "zeros", "fold", "least text", "greatest text", "moments", "float moments", "float sum", "distinct", "ranked", "decimal sum"}

// acc is one accumulator. Aggregates share them: avg is a sum and a count.
type acc struct {
	kind   accKind
	arg    *node
	filter *node
	fold   *sqlfn.Aggregate // of accFold
	window *floatWindow     // of the sums of floats: all workers' states share it
}

// state is an accumulator's values by group.
type state struct {
	program.Values
	extra extra // instead of values
	index []uint32
	vals  []int64
}

// extent is what is known of a table of groups before its first row.
type extent struct {
	groups uint64 // 0: nobody knows how many there will be
	rows   uint64 // about the most that come
}

// open makes what a state of a keeps beside v.
func (s *state) open(a *acc, x extent) {
	switch a.kind {
	case accMoments:
		s.extra = newIntMoments(a)
	case accFloatMoments, accFloatSum:
		s.extra = newFloatMoments(a.window)
	case accDistinct:
		s.extra = newDistinct(a, x)
	case accRanked:
		s.extra = newRanked(a, x)
	case accDecimalSum:
		s.extra = &decimalSums{dict: a.arg.dict}
	}
}

// grow makes room for n groups in accumulator i.
func (s *groups) grow(i, n int) {
	a, st := &s.g.accs[i], &s.states[i]
	if a.kind >= accMoments && st.extra == nil {
		x := extent{rows: uint64(min(s.g.p.rowsMax(), 1<<40))}
		if s.table == nil {
			x.groups = uint64(n)
			if card := s.by.pack.card; uint64(n) < card { // a partition
				x.rows = uint64(float64(x.rows) * float64(n) / float64(card))
			}
		}
		st.open(a, x)
	}
	st.grow(a, n)
}

func (s *state) grow(a *acc, n int) {
	if s.extra != nil {
		s.extra.grow(n)
		return
	}
	have := len(s.V)
	s.Grow(a.kind, n)
	switch a.kind {
	case accFold:
		fill(s.V[have:], a.fold.Start)
	case accLeastText, accGreatestText:
		fill(s.V[have:], -1)
	}
}

// merge adds group j of another state to group i.
func (s *state) merge(a *acc, i uint32, from *state, j uint32) {
	switch a.kind {
	case accZeros:
		s.V[i] |= from.V[j]
	case accFold:
		s.V[i] = a.fold.Fold(s.V[i], from.V[j])
	case accLeastText, accGreatestText:
		s.V[i] = a.firstText(s.V[i], from.V[j])
	default:
		panic("BUG: values that are merged otherwise")
	}
}

// mergeAll adds group of[k] of another state to group to[k], for every k; of all its
// first len(to) groups where of is nil. A group that nothing has come to changes nothing.
func (s *state) mergeAll(a *acc, from *state, of, to []uint32) {
	if a.kind >= accMoments {
		if len(to) > 0 { // without groups there may be no extra
			s.extra.mergeAll(from.extra, of, to)
		}
		return
	}
	eachPair(of, to, func(j, i uint32) {
		if a.kind <= program.AccMax {
			s.Merge(a.kind, int(i), &from.Values, int(j))
		} else {
			s.merge(a, i, from, j)
		}
	})
}

// bytes returns the memory of the state.
func (s *state) bytes() int64 {
	if s.extra != nil {
		return s.extra.bytes()
	}
	return int64(len(s.V)+len(s.Hi)) * 8
}

// accumulate adds the selected rows; index is nil for a single group.
func (s *groups) accumulate(w *worker, index []uint32) {
	var filter *node
	var pos []uint16
	var arg *node
	var v vec
	both := false
	for i := range s.g.accs {
		a := &s.g.accs[i]
		if both {
			both = false // with the one before
			continue
		}
		if s.encodedIn == w.seg && s.encoded[i] {
			continue
		}
		if a.kind == accZeros && w.ownKeys(a.arg) {
			continue // there are neither zeros nor NaNs
		}
		if a.computed() {
			s.states[i].extra.(*decimalSums).addComputed(w, a.arg, index)
			continue
		}
		if a.filter == nil {
			if a.arg != arg || filter != nil {
				v = w.eval(a.arg)
			}
			arg, filter = a.arg, nil
			if both = index != nil && v.nulls != nil && s.g.countsAndSums(i); both {
				addCountSum(s.states[i].V, s.states[i+1].V, index, v)
				continue
			}
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

// countsAndSums reports whether accumulators i and i+1 are the count and the sum of the
// same values of all rows.
func (g *grouper) countsAndSums(i int) bool {
	if i+1 == len(g.accs) {
		return false
	}
	a, b := &g.accs[i], &g.accs[i+1]
	return a.kind == program.AccCount && b.kind == program.AccSum && a.arg == b.arg && a.filter == nil && b.filter == nil
}

// addCountSum is addMasked of program.AccCount and of program.AccSum at once.
func addCountSum(count, sum []int64, index []uint32, v vec) {
	vals, nulls := v.v[:len(index)], v.nulls[:len(index)]
	sum = sum[:len(count)]
	for k, g := range index {
		keep := 1 - int64(nulls[k])
		count[g] += keep
		sum[g] += vals[k] & -keep
	}
}

// update adds n rows to accumulator i; index is nil where all are of group 0.
func (s *groups) update(i int, index []uint32, v vec, n int) {
	s.states[i].add(&s.g.accs[i], index, v, n)
}

// add is groups.update of one state.
func (s *state) add(a *acc, index []uint32, v vec, n int) {
	if a.kind == program.AccRows {
		if index == nil {
			s.V[0] += int64(n)
		}
		for _, g := range index {
			s.V[g]++
		}
		return
	}
	if v.nulls != nil {
		if addMasked(a.kind, s, index, v) {
			return
		}
		index, v = s.withoutNulls(index, v)
	}
	switch {
	case len(v.v) == 0:
	case s.extra != nil:
		s.extra.add(index, v.v)
	case index == nil:
		addSingle(a, s, v.v)
	default:
		addGrouped(a, s, index, v.v)
	}
}

// addMasked adds what nulls leave without moving values; false where it cannot.
func addMasked(kind accKind, s *state, index []uint32, v vec) bool {
	vals, nulls := v.v, v.nulls[:len(v.v)]
	if index == nil {
		n, sum := int64(0), int64(0)
		switch kind {
		case program.AccCount:
			for _, null := range nulls {
				n += int64(null)
			}
			s.V[0] += int64(len(nulls)) - n
		case program.AccSum:
			for k, x := range vals {
				sum += x & (int64(nulls[k]) - 1)
			}
			s.V[0] += sum
		default:
			return false
		}
		return true
	}
	out := s.V
	vals, nulls = vals[:len(index)], nulls[:len(index)]
	switch kind {
	case program.AccCount:
		for k, g := range index {
			out[g] += 1 - int64(nulls[k])
		}
	case program.AccSum:
		for k, g := range index {
			out[g] += vals[k] & (int64(nulls[k]) - 1)
		}
	default:
		return false
	}
	return true
}

// withoutNulls returns the rows that are not null.
func (s *state) withoutNulls(index []uint32, v vec) ([]uint32, vec) {
	if s.vals == nil {
		s.vals, s.index = make([]int64, tileRows), make([]uint32, tileRows)
	}
	vals, to := s.vals[:tileRows], s.index[:tileRows]
	nulls := v.nulls[:len(v.v)]
	n := 0
	if index == nil {
		for k, x := range v.v {
			vals[n&(tileRows-1)] = x
			n += 1 - int(nulls[k])
		}
		return nil, vec{v: vals[:n]}
	}
	index = index[:len(v.v)]
	for k, x := range v.v {
		vals[n&(tileRows-1)], to[n&(tileRows-1)] = x, index[k]
		n += 1 - int(nulls[k])
	}
	return to[:n], vec{v: vals[:n]}
}

func addGrouped(a *acc, s *state, index []uint32, vals []int64) {
	out := s.V
	vals = vals[:len(index)]
	switch a.kind {
	case program.AccCount:
		for _, g := range index {
			out[g]++
		}
	case program.AccSum:
		for k, g := range index {
			out[g] += vals[k]
		}
	case program.AccSum128:
		hi := s.Hi[:len(out)]
		for k, g := range index {
			lo, carry := bits.Add64(uint64(out[g]), uint64(vals[k]), 0)
			out[g] = int64(lo)
			hi[g] += vals[k]>>63 + int64(carry)
		}
	case program.AccMin:
		for k, g := range index {
			out[g] = min(out[g], vals[k])
		}
	case program.AccMax:
		for k, g := range index {
			out[g] = max(out[g], vals[k])
		}
	case accFold:
		fold := a.fold.Fold
		for k, g := range index {
			out[g] = fold(out[g], vals[k])
		}
	default:
		for k, g := range index {
			addOne(a, s, g, vals[k])
		}
	}
}

func addSingle(a *acc, s *state, vals []int64) {
	switch a.kind {
	case program.AccCount:
		s.V[0] += int64(len(vals))
	case program.AccSum:
		s.V[0] += simd.Sum(vals)
	case program.AccSum128:
		// In halves of 32 bits, whose sums over a tile fit 64.
		var low, high int64
		for _, x := range vals {
			low += x & math.MaxUint32
			high += x >> 32
		}
		sum := vector.Mul64(high, 1<<32).Add(vector.Int128Of(low)).Add(vector.Int128{Hi: s.Hi[0], Lo: uint64(s.V[0])})
		s.V[0], s.Hi[0] = int64(sum.Lo), sum.Hi
	case program.AccMin:
		lo, _ := simd.Bounds(vals)
		s.V[0] = min(s.V[0], lo)
	case program.AccMax:
		_, hi := simd.Bounds(vals)
		s.V[0] = max(s.V[0], hi)
	case accFold:
		fold, folded := a.fold.Fold, s.V[0]
		for _, x := range vals {
			folded = fold(folded, x)
		}
		s.V[0] = folded
	default:
		for _, x := range vals {
			addOne(a, s, 0, x)
		}
	}
}

// addOne is the reference of the loops above.
func addOne(a *acc, st *state, g uint32, x int64) {
	switch a.kind {
	case program.AccRows, program.AccCount:
		st.V[g]++
	case program.AccSum:
		st.V[g] += x
	case program.AccMin:
		st.V[g] = min(st.V[g], x)
	case program.AccMax:
		st.V[g] = max(st.V[g], x)
	case program.AccSum128:
		lo, carry := bits.Add64(uint64(st.V[g]), uint64(x), 0)
		st.V[g] = int64(lo)
		st.Hi[g] += x>>63 + int64(carry)
	case accFold:
		st.V[g] = a.fold.Fold(st.V[g], x)
	case accLeastText, accGreatestText:
		st.V[g] = a.firstText(st.V[g], x)
	case accZeros:
		if x == 0 {
			st.V[g] |= 1
		} else if x == math.MinInt64 {
			st.V[g] |= 2
		} else if x != vector.NaNBits && vector.FloatKey(x) == vector.NaNKey {
			st.V[g] |= 4
		}
	}
}

// firstText returns which of two codes' values is the least, or the greatest; -1 stands for none.
func (a *acc) firstText(x, y int64) int64 {
	if x < 0 || x == y {
		return y
	} else if y < 0 {
		return x
	}
	d := a.arg.dict
	var r int
	if d.t.Varying() {
		r = compareDecimals(d.value(x).Num, d.value(y).Num)
	} else {
		r = strings.Compare(canonical(d.t.Kind, d.at(x)), canonical(d.t.Kind, d.at(y)))
	}
	if (r < 0) == (a.kind == accLeastText) {
		return x
	}
	return y
}
