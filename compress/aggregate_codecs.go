package compress

import (
	"math"
	"math/bits"
)

func (c *constColumn) Sum(start, n int) (hi int64, lo uint64) {
	checkRange(start, n, c.n)
	var sum sum128
	sum.addTimes(c.v, uint64(n))
	return sum.hi, sum.lo
}

func (c *constColumn) MinMax(start, n int) (lo, hi int64) { return c.Bounds(start, n) }

func (c *constColumn) SumSelected(selected []uint64, start, n int) (hi int64, lo uint64) {
	checkRange(start, n, c.n)
	var sum sum128
	sum.addTimes(c.v, uint64(selectedCount(selected, n)))
	return sum.hi, sum.lo
}

// Sum adds the reference of each block once for each of its rows, and the offsets,
// where there are any.
func (c *forColumn) Sum(start, n int) (hi int64, lo uint64) {
	checkRange(start, n, c.n)
	var sum sum128
	var block [blockRows]int64
	for end := start + n; start < end; start += blockRows {
		rows := min(blockRows, end-start)
		ref, widths, body := c.fromBlock(start / blockRows)
		sum.addTimes(ref, uint64(rows))
		if widths == 0 {
			continue
		}
		unpackBlock(&block, body, widths, 0)
		if top := span(widths); top <= math.MaxUint64/blockRows {
			sum.addValues(block[:rows], 0, int64(top))
			continue
		}
		for _, off := range block[:rows] {
			sum.add(0, uint64(off))
		}
	}
	return sum.hi, sum.lo
}

func (c *forColumn) MinMax(start, n int) (lo, hi int64) { return decoded{c}.MinMax(start, n) }

func (c *forColumn) SumSelected(selected []uint64, start, n int) (hi int64, lo uint64) {
	return decoded{c}.SumSelected(selected, start, n)
}

func (c *lookupColumn) Sum(start, n int) (hi int64, lo uint64) { return decoded{c}.Sum(start, n) }

// MinMax: codes order as their values do.
func (c *lookupColumn) MinMax(start, n int) (lo, hi int64) {
	from, to := c.codes.MinMax(start, n)
	return c.value(int(from)), c.value(int(to))
}

func (c *lookupColumn) SumSelected(selected []uint64, start, n int) (hi int64, lo uint64) {
	return decoded{c}.SumSelected(selected, start, n)
}

// Sum of a whole tile with one delta is that of an arithmetic series.
func (c *dforColumn) Sum(start, n int) (hi int64, lo uint64) {
	checkRange(start, n, c.n)
	var sum sum128
	for end := start + n; start < end; {
		t := start / tileRows
		rows := min((t+1)*tileRows, end) - start
		if delta, ok := c.series(t); ok && start%tileRows == 0 {
			// Zones are exact, so nothing of a tile overflows.
			sum.addTimes(c.first(t), uint64(rows))
			sum.addTimes(delta, uint64(rows*(rows-1)/2))
		} else {
			sum.add(decoded{c}.Sum(start, rows))
		}
		start += rows
	}
	return sum.hi, sum.lo
}

// series returns the delta of a tile whose deltas are all the same, and whether its
// last value can be had without overflow.
func (c *dforColumn) series(t int) (delta int64, ok bool) {
	from := t * tileBlocks
	to := min(from+tileBlocks, len(c.deltas.starts)-1)
	delta, _, _ = c.deltas.block(from)
	for b := from; b < to; b++ {
		if d, widths, _ := c.deltas.block(b); d != delta || widths != 0 {
			return 0, false
		}
	}
	return delta, delta > math.MinInt64/tileRows && delta < math.MaxInt64/tileRows
}

// MinMax of whole tiles is in their zones.
func (c *dforColumn) MinMax(start, n int) (lo, hi int64) {
	checkRange(start, n, c.n)
	lo, hi = math.MaxInt64, math.MinInt64
	for end := start + n; start < end; {
		t := start / tileRows
		rows := min((t+1)*tileRows, end) - start
		low, high := c.zone(t)
		if whole := min(tileRows, c.n-t*tileRows); rows < whole && (low < lo || high > hi) {
			low, high = decoded{c}.MinMax(start, rows)
		}
		lo, hi = min(lo, low), max(hi, high)
		start += rows
	}
	return lo, hi
}

func (c *dforColumn) SumSelected(selected []uint64, start, n int) (hi int64, lo uint64) {
	return decoded{c}.SumSelected(selected, start, n)
}

// eachRun calls f with the runs of rows [start, start+n): their values, and how many of
// the rows each has, from row on of those asked for.
func (c *rforColumn) eachRun(start, n int, f func(row int, values, lengths []int64, ref int64, top uint64)) {
	checkRange(start, n, c.n)
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for row := 0; row < n; {
		b := (start + row) / runRows
		into := start + row - b*runRows
		rows := min(c.rows(b)-into, n-row)
		values, lengths := s.a[:runRows], s.b[:runRows]
		count := c.values.unpack(values, b)
		c.lengths.unpack(lengths, b)
		values, lengths = values[:count], lengths[:count]
		for ; into > 0 && int(lengths[0]) <= into; values, lengths = values[1:], lengths[1:] {
			into -= int(lengths[0])
		}
		lengths[0] -= int64(into)
		left, last := rows, 0
		for ; int(lengths[last]) < left; last++ {
			left -= int(lengths[last])
		}
		lengths[last] = int64(left)
		ref, top := c.values.span(b)
		f(row, values[:last+1], lengths[:last+1], ref, top)
		row += rows
	}
}

// Sum multiplies each run's value by its length.
func (c *rforColumn) Sum(start, n int) (hi int64, lo uint64) {
	var sum sum128
	c.eachRun(start, n, func(_ int, values, lengths []int64, ref int64, top uint64) {
		if top > math.MaxUint64/runRows {
			for r, v := range values {
				sum.addTimes(v, uint64(lengths[r]))
			}
			return
		}
		var offsets, rows uint64
		for r, v := range values {
			offsets += uint64(v-ref) * uint64(lengths[r])
			rows += uint64(lengths[r])
		}
		sum.addTimes(ref, rows)
		sum.add(0, offsets)
	})
	return sum.hi, sum.lo
}

func (c *rforColumn) MinMax(start, n int) (lo, hi int64) {
	lo, hi = math.MaxInt64, math.MinInt64
	c.eachRun(start, n, func(_ int, values, _ []int64, _ int64, _ uint64) {
		for _, v := range values {
			lo, hi = min(lo, v), max(hi, v)
		}
	})
	return lo, hi
}

// SumSelected multiplies each run's value by how many of its rows are selected.
func (c *rforColumn) SumSelected(selected []uint64, start, n int) (hi int64, lo uint64) {
	var sum sum128
	c.eachRun(start, n, func(row int, values, lengths []int64, ref int64, top uint64) {
		words := selected[row/64:]
		if !anySet(words[:min(len(words), runRows/64)]) {
			return
		}
		end, before := 0, 0 // rows up to the run's end; selected ones before it
		var offsets, rows uint64
		rank, word := 0, 0 // selected rows before that word
		for r, v := range values {
			end += int(lengths[r])
			for ; word < end/64; word++ {
				rank += bits.OnesCount64(words[word])
			}
			upTo := rank
			if end%64 > 0 {
				upTo += bits.OnesCount64(words[word] & (1<<(end%64) - 1))
			}
			count := uint64(upTo - before)
			before = upTo
			if top > math.MaxUint64/runRows {
				sum.addTimes(v, count)
				continue
			}
			offsets += uint64(v-ref) * count
			rows += count
		}
		sum.addTimes(ref, rows)
		sum.add(0, offsets)
	})
	return sum.hi, sum.lo
}
