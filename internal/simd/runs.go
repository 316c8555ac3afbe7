package simd

import "math/bits"

// RunRows is the number of rows of a block of runs.
const RunRows = 512

// RunStarts sets the bits of the rows that runs of the given lengths begin with, the
// first with row 0. Lengths are at least 1, and their sum is at most 512.
func RunStarts(starts *[RunRows / 64]uint64, lengths []int64) {
	if active == AVX512 && len(lengths) > 0 {
		runStartsAVX512(starts, &lengths[0], len(lengths))
		return
	}
	*starts = [RunRows / 64]uint64{}
	at := 0
	for _, n := range lengths {
		at &= RunRows - 1
		starts[at/64] |= 1 << (at % 64)
		at += int(n)
	}
}

// ExpandRuns writes each row's value to dst, at most 512 rows: value r of those from
// values[1] on is that of run r, and starts has a bit where a run begins, row 0
// included. values has one element before the runs' and at least seven after them, with
// any content, and runs for all rows.
func ExpandRuns(dst []int64, values []int64, starts *[RunRows / 64]uint64) {
	if len(dst) == 0 {
		return
	}
	if len(dst) > RunRows {
		panic("BUG: more than a block of rows")
	}
	if runs := rank(starts, len(dst)-1); active == AVX512 {
		_ = values[runs+7]
		expandRunsAVX512(&dst[0], len(dst), &values[1], starts)
		return
	}
	r := 0
	for i := range dst {
		r += int(starts[i/64] >> (i % 64) & 1)
		dst[i] = values[r]
	}
}

// rank returns how many bits of starts are set up to bit i.
func rank(starts *[RunRows / 64]uint64, i int) (n int) {
	for w := range i / 64 {
		n += bits.OnesCount64(starts[w])
	}
	return n + bits.OnesCount64(starts[i/64]<<(63-i%64))
}

// SpreadRuns makes a mask of rows of one of runs: bit r of runs says whether the rows of
// run r are in. starts has a bit where a run begins. The rows after the last run are
// as it is; the last word of runs is only room.
func SpreadRuns(rows *[RunRows / 64]uint64, runs *[RunRows/64 + 1]uint64, starts *[RunRows / 64]uint64) {
	if active != Plain {
		spreadRunsAVX2(rows, runs, starts)
		return
	}
	r := -1
	for i := range RunRows {
		if r += int(starts[i/64] >> (i % 64) & 1); i%64 == 0 {
			rows[i/64] = 0
		}
		if r >= 0 {
			rows[i/64] |= runs[r/64] >> (r % 64) & 1 << (i % 64)
		}
	}
}
