package olap

import (
	"math/bits"
	"slices"
)

// key is how values are kept that are to be ranked: their distance from a lower bound.
type key interface{ uint32 | uint64 }

const (
	// selectSmall is the number of values up to which they are sorted.
	selectSmall = 512
	// radixBits is the largest number of leading bits by which selectRanks splits values:
	// its counters stay in the first-level cache, or near it.
	radixBits = 14
)

// selectRanks returns the values of the given ranks (0 for the least), which ascend,
// among the values of all blocks. Blocks are not changed. each runs a function for every
// number below n, side by side where it can.
//
// The values are counted by their leading bits below their common ones; then those that
// share the leading bits of a wanted one are gathered, and searched in the same way. A
// value is read twice, and moved seldom.
func selectRanks[T key](blocks [][]T, ranks []int64, each func(n int, f func(i int))) []T {
	n := 0
	for _, b := range blocks {
		n += len(b)
	}
	out := make([]T, len(ranks))
	if n <= selectSmall {
		var all []T
		for _, b := range blocks {
			all = append(all, b...)
		}
		slices.Sort(all)
		for i, r := range ranks {
			out[i] = all[r]
		}
		return out
	}
	runs := runsOf(blocks, max(runValues, n/16))
	lows, highs := make([]T, len(runs)), make([]T, len(runs))
	each(len(runs), func(i int) { lows[i], highs[i] = extremes(runs[i]) })
	low, high := slices.Min(lows), slices.Max(highs)
	if low == high {
		for i := range out {
			out[i] = low
		}
		return out
	}
	radix := min(radixBits, bits.Len(uint(n))-2)
	shift := uint(max(bits.Len64(uint64(high-low))-radix, 0))
	counts := make([][]uint32, len(runs))
	each(len(runs), func(i int) {
		counts[i] = make([]uint32, 1<<radix)
		countLeading(counts[i], runs[i], low, shift)
	})
	total := counts[0]
	for _, c := range counts[1:] {
		for i, v := range c {
			total[i] += v
		}
	}
	// The buckets of the ranks.
	wanted := make([]uint8, 1<<radix)
	type found struct {
		bucket int
		before int64 // values in buckets below
	}
	at := make([]found, len(ranks))
	bucket, before := 0, int64(0)
	for i, r := range ranks {
		for before+int64(total[bucket]) <= r {
			before += int64(total[bucket])
			bucket++
		}
		at[i] = found{bucket, before}
		wanted[bucket] = 1
	}
	if shift == 0 { // a bucket is a value
		for i := range out {
			out[i] = low + T(at[i].bucket)
		}
		return out
	}
	gathered := make([][]T, len(runs))
	each(len(runs), func(i int) { gathered[i] = gather(runs[i], wanted, low, shift) })
	for i := 0; i < len(ranks); {
		// All ranks in one bucket.
		j := i
		var inner []int64
		for ; j < len(ranks) && at[j].bucket == at[i].bucket; j++ {
			inner = append(inner, ranks[j]-at[j].before)
		}
		part := make([]T, 0, total[at[i].bucket])
		for _, g := range gathered {
			for _, v := range g {
				if int((v-low)>>shift) == at[i].bucket {
					part = append(part, v)
				}
			}
		}
		copy(out[i:], selectRanks([][]T{part}, inner, oneByOne))
		i = j
	}
	return out
}

func oneByOne(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}

// runValues is about the number of values that are worth a task of their own.
const runValues = 1 << 17

// runsOf groups blocks into runs of so many values or more.
func runsOf[T key](blocks [][]T, values int) (runs [][][]T) {
	from, have := 0, 0
	for i, b := range blocks {
		if have += len(b); have >= values {
			runs = append(runs, blocks[from:i+1])
			from, have = i+1, 0
		}
	}
	if from < len(blocks) {
		runs = append(runs, blocks[from:])
	}
	return runs
}

func extremes[T key](blocks [][]T) (low, high T) {
	low = ^T(0)
	for _, b := range blocks {
		for _, v := range b {
			low, high = min(low, v), max(high, v)
		}
	}
	return low, high
}

// countLeading counts the values by their bits from shift on; there are as many counters
// as a power of two that they need.
func countLeading[T key](counts []uint32, blocks [][]T, low T, shift uint) {
	mask := T(len(counts) - 1)
	for _, b := range blocks {
		for _, v := range b {
			counts[(v-low)>>(shift&63)&mask]++
		}
	}
}

// gather returns the values in wanted buckets.
func gather[T key](blocks [][]T, wanted []uint8, low T, shift uint) (out []T) {
	mask := T(len(wanted) - 1)
	var room [1024]T
	for _, b := range blocks {
		for len(b) > 0 {
			part := b[:min(len(b), len(room))]
			b = b[len(part):]
			k := 0
			for _, v := range part {
				room[k&1023] = v
				k += int(wanted[(v-low)>>(shift&63)&mask])
			}
			out = append(out, room[:k]...)
		}
	}
	return out
}
