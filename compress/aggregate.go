package compress

import (
	"math"
	"math/bits"

	"pgaccel/internal/simd"
)

// Aggregator is what a column implements that aggregates its encoded form faster than
// its decoded values. Rows are [start, start+n), start a multiple of 128. Sums are
// exact, as two's-complement 128-bit integers: hi*2^64 + lo.
type Aggregator interface {
	Sum(start, n int) (hi int64, lo uint64)
	// MinMax returns the smallest and the largest value, both reached. n > 0.
	MinMax(start, n int) (lo, hi int64)
	// SumSelected is Sum of the rows whose bits are set, bit i&63 of selected[i>>6]
	// for row start+i. Bits past n are ignored.
	SumSelected(selected []uint64, start, n int) (hi int64, lo uint64)
}

// AggregatorOf returns c where it aggregates by itself, else what decodes it in pieces.
func AggregatorOf(c Column) Aggregator {
	if a, ok := c.(Aggregator); ok {
		return a
	}
	return decoded{c}
}

var (
	_ Aggregator = (*constColumn)(nil)
	_ Aggregator = (*forColumn)(nil)
	_ Aggregator = (*lookupColumn)(nil)
	_ Aggregator = (*dforColumn)(nil)
	_ Aggregator = (*rforColumn)(nil)
)

// sum128 is a sum on its way.
type sum128 struct {
	hi int64
	lo uint64
}

func (s *sum128) add(hi int64, lo uint64) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, lo, 0)
	s.hi += hi + int64(carry)
}

func (s *sum128) addValue(v int64) { s.add(v>>63, uint64(v)) }

// addTimes adds v*n. n is not negative.
func (s *sum128) addTimes(v int64, n uint64) {
	hi, lo := bits.Mul64(uint64(v), n)
	if v < 0 {
		hi -= n
	}
	s.add(int64(hi), lo)
}

// addValues adds values that lie within [low, high]. Their offsets from low have a sum
// that fits 64 bits, mostly, and is then exact modulo 2^64.
func (s *sum128) addValues(values []int64, low, high int64) {
	n := uint64(len(values))
	if over, _ := bits.Mul64(uint64(high)-uint64(low), n); over != 0 {
		for _, v := range values {
			s.addValue(v)
		}
		return
	}
	s.addTimes(low, n)
	s.add(0, uint64(simd.Sum(values))-uint64(low)*n)
}

// selectedWord returns word w of a selection of n rows, without bits past n.
func selectedWord(selected []uint64, w, n int) uint64 {
	x := selected[w]
	if past := (w+1)*64 - n; past > 0 {
		x &= math.MaxUint64 >> past
	}
	return x
}

// selectedCount returns how many rows are selected.
func selectedCount(selected []uint64, n int) (count int) {
	for w := range (n + 63) / 64 {
		count += bits.OnesCount64(selectedWord(selected, w, n))
	}
	return count
}

// keepSelected moves the selected ones of the values to their front.
func keepSelected(values []int64, selected []uint64) []int64 {
	at := 0
	for w := range (len(values) + 63) / 64 {
		for x := selectedWord(selected, w, len(values)); x != 0; x &= x - 1 {
			values[at] = values[w*64+bits.TrailingZeros64(x)]
			at++
		}
	}
	return values[:at]
}

// decoded aggregates any column by decoding it.
type decoded struct{ Column }

func (d decoded) Sum(start, n int) (hi int64, lo uint64) {
	checkRange(start, n, d.Len())
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	var sum sum128
	for end := start + n; start < end; start += vectorRows {
		values := s.a[:min(vectorRows, end-start)]
		d.Decode(values, start)
		low, high := d.Bounds(start, len(values))
		sum.addValues(values, low, high)
	}
	return sum.hi, sum.lo
}

func (d decoded) MinMax(start, n int) (lo, hi int64) {
	checkRange(start, n, d.Len())
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	lo, hi = math.MaxInt64, math.MinInt64
	for end := start + n; start < end; {
		// Blocks whose bounds lie inside what is found already cannot change it.
		rows := min(blockRows, end-start)
		if low, high := d.Bounds(start, rows); low < lo || high > hi {
			values := s.a[:rows]
			d.Decode(values, start)
			for _, v := range values {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
		start += rows
	}
	return lo, hi
}

// selectedDense: from this part of the rows on all of them are decoded.
const selectedDense = 8

func (d decoded) SumSelected(selected []uint64, start, n int) (hi int64, lo uint64) {
	checkRange(start, n, d.Len())
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	var sum sum128
	for end := start + n; start < end; {
		rows := min(vectorRows, end-start)
		count := selectedCount(selected, rows)
		low, high := int64(0), int64(0)
		if count > 0 {
			low, high = d.Bounds(start, rows)
		}
		switch {
		case count == 0:
		case low == high:
			sum.addTimes(low, uint64(count))
		case count*selectedDense < rows:
			var sel [vectorRows / selectedDense]uint16
			at := 0
			for w := range (rows + 63) / 64 {
				for x := selectedWord(selected, w, rows); x != 0; x &= x - 1 {
					sel[at] = uint16(w*64 + bits.TrailingZeros64(x))
					at++
				}
			}
			d.Gather(s.a[:at], start, sel[:at])
			sum.addValues(s.a[:at], low, high)
		default:
			d.Decode(s.a[:rows], start)
			values := s.a[:rows]
			if count < rows {
				values = keepSelected(values, selected)
			}
			sum.addValues(values, low, high)
		}
		if start += rows; start < end {
			selected = selected[vectorRows/64:]
		}
	}
	return sum.hi, sum.lo
}
