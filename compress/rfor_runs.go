package compress

import (
	"math"
	"math/bits"

	"pgaccel/internal/simd"
)

// This file is GPU-RFOR with the kernels of internal/simd: what is known of runs
// becomes known of rows by way of a bitmap of where runs begin.

// starts unpacks the lengths of block b and sets a bit where a run begins. It fills s.b.
func (c *rforColumn) starts(b int, s *scratch, out *[runRows / 64]uint64) {
	count := c.lengths.unpack(s.b[:runRows], b)
	simd.RunStarts(out, s.b[:count])
}

// expandRuns is expand. It fills s.a, s.b.
func (c *rforColumn) expandRuns(dst []int64, b int, s *scratch) {
	var starts [runRows / 64]uint64
	c.starts(b, s, &starts)
	c.values.unpack(s.a[1:], b)
	simd.ExpandRuns(dst, s.a[:], &starts)
}

// gatherExpand is from how many rows of a block on all are written out.
const gatherExpand = 64

// gatherRuns writes the values of the rows of block b at positions sel, which count
// from row first. It fills s.
func (c *rforColumn) gatherRuns(dst []int64, b, first int, sel []uint16, s *scratch) {
	if len(sel) >= gatherExpand {
		rows := s.c[:c.rows(b)]
		c.expandRuns(rows, b, s)
		for i, p := range sel {
			dst[i] = rows[int(p)-first]
		}
		return
	}
	var starts [runRows / 64]uint64
	c.starts(b, s, &starts)
	var before [runRows / 64]int // runs that begin in the words before, less 1
	for w, n := 0, -1; w < len(starts); w++ {
		before[w] = n
		n += bits.OnesCount64(starts[w])
	}
	c.values.unpack(s.a[:runRows], b)
	for i, p := range sel {
		in := uint(int(p)-first) % runRows
		run := before[in/64] + bits.OnesCount64(starts[in/64]<<(63-in%64))
		dst[i] = s.a[run]
	}
}

// spread clears the bits of words, which begin with row into of block b, of the rows of
// runs without a bit in runs. It fills s.b.
func (c *rforColumn) spread(words []uint64, b, into int, runs *[runRows/64 + 1]uint64, s *scratch) {
	var starts, rows [runRows / 64]uint64
	c.starts(b, s, &starts)
	simd.SpreadRuns(&rows, runs, &starts)
	for i := range words {
		words[i] &= rows[into/64+i]
	}
}

// filterSet is SetFilter.Filter for RFOR and RFOR64: a set is asked once for each run.
func (c *rforColumn) filterSet(mask []uint64, start, n int, set *Set) {
	checkRange(start, n, c.n)
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for row := 0; row < n; {
		b := (start + row) / runRows
		into := start + row - b*runRows
		end := min((b+1)*runRows-start, n)
		words := mask[row/64 : (end+63)/64]
		row = end
		if !anySet(words) {
			continue
		}
		count, ref, widths, body := c.values.block(b)
		var in [runRows/64 + 1]uint64
		for i := range (count + 63) / 64 {
			in[i] = math.MaxUint64 >> max(0, (i+1)*64-count)
		}
		runs := in
		for k, w := range widths {
			filterSetBlock(in[2*k:2*k+2], body, w, ref, set)
			if k < len(widths)-1 {
				body = body[blockWords(w):]
			}
		}
		switch {
		case in == runs:
		case !anySet(in[:]):
			clear(words)
		default:
			c.spread(words, b, into, &in, s)
		}
	}
}
