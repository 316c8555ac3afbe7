package olap

import (
	"math/bits"

	"pgaccel/colstore"
	"pgaccel/compress"
	"pgaccel/gpu/program"
)

// countsRows implements counter.
func (s *groups) countsRows() bool { return s.by.how == groupSingle }

// countRows implements counter. Where all of a segment's rows that count are of the one
// group, many accumulators need no values: zone maps have the minimum, the maximum and
// the number of nulls, and the encoded column adds up its values by itself
// (compress.Aggregator). It reports whether that did for all of them; the others take
// the segment's tiles.
func (s *groups) countRows(w *worker, n int64) bool {
	if s.index == nil {
		s.open()
	}
	if s.encoded == nil {
		s.encoded = make([]bool, len(s.g.accs))
	}
	s.encodedIn = w.seg
	all := true
	var sel rowBits
	for i := range s.g.accs {
		s.encoded[i] = s.addEncoded(w, i, &sel)
		all = all && s.encoded[i]
	}
	if all {
		s.counts[0] += n
	}
	return all
}

// rowBits are the rows of one column that count and are not null.
type rowBits struct {
	col  *colstore.Column
	bits []uint64
}

// of returns the bits of a column's rows in w's segment, with nothing past the last.
func (b *rowBits) of(w *worker, c *colstore.Column) []uint64 {
	if b.col == c {
		return b.bits
	}
	b.col = c
	b.bits = append(b.bits[:0], make([]uint64, (w.seg.Rows+63)/64)...)
	for i := range b.bits {
		b.bits[i] = ^uint64(0)
		if w.counts != nil {
			b.bits[i] = w.counts[i]
		}
		if c.NullCount > 0 {
			b.bits[i] &^= c.Nulls[i]
		}
	}
	if r := uint(w.seg.Rows) & 63; r != 0 {
		b.bits[len(b.bits)-1] &= 1<<r - 1
	}
	return b.bits
}

// addEncoded adds the rows of w's segment that count to accumulator i of group 0; false
// where that needs their values.
func (s *groups) addEncoded(w *worker, i int, sel *rowBits) bool {
	a, st := &s.g.accs[i], &s.states[i]
	if a.filter != nil {
		return false
	}
	n := a.arg
	if n.kind == nodeFloatKey {
		n = n.args[0] // zone maps of floats are of keys
	}
	if n.kind != nodeColumn {
		return false
	}
	float := n.t.Kind.IsFloat()
	c := &w.seg.Columns[n.col]
	all := w.counts == nil
	switch a.kind {
	case program.AccCount:
		if all {
			st.V[0] += int64(w.seg.Rows - c.NullCount)
			return true
		}
		for _, b := range sel.of(w, c) {
			st.V[0] += int64(bits.OnesCount64(b))
		}
		return true
	case program.AccMin, program.AccMax:
		if !all || float != (a.arg.kind == nodeFloatKey) {
			return false
		}
		if c.Min <= c.Max {
			if a.kind == program.AccMin {
				st.V[0] = min(st.V[0], c.Min)
			} else {
				st.V[0] = max(st.V[0], c.Max)
			}
		}
		return true
	case accZeros:
		// Without zeros and NaNs there is nothing to remember.
		return c.Min > c.Max || (c.Min > 0 || c.Max < 0) && c.Max < 1<<63-1
	case program.AccSum, program.AccSum128:
		if c.Min > c.Max {
			return true
		}
		column := compress.AggregatorOf(c.Data)
		var hi int64
		var lo uint64
		if all && c.NullCount == 0 {
			hi, lo = column.Sum(0, w.seg.Rows)
		} else {
			hi, lo = column.SumSelected(sel.of(w, c), 0, w.seg.Rows)
		}
		sum, carry := bits.Add64(uint64(st.V[0]), lo, 0)
		st.V[0] = int64(sum)
		if a.kind == program.AccSum128 {
			st.Hi[0] += hi + int64(carry)
		}
		return true
	}
	return false
}
