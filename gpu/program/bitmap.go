package program

import (
	"encoding/binary"
	"fmt"
)

// Bitmaps of rows. Few words of a large one are not 0, mostly: these leave the device, with their numbers, each of
// rows of one segment. Where they are more than a quarter of all, the bitmap does.

// gather emits the kernel that gathers the words of bitmaps that are not 0.
func (g *generator) gather() {
	g.line("const uint32_t lane = threadIdx.x & 31;")
	g.line("const uint64_t *const bitmap = (const uint64_t *)p.bitmap;")
	g.line("for (uint64_t first = blockIdx.x * (uint64_t)blockDim.x; first < p.bitmap_words; first += gridDim.x * (uint64_t)blockDim.x) {")
	g.line("const uint64_t at = first + threadIdx.x;")
	g.line("const uint64_t word = at < p.bitmap_words ? bitmap[at] : 0;")
	g.line("const uint32_t some = __ballot_sync(PGACCEL_WARP, word != 0);")
	g.line("if (some == 0)")
	g.line("\tcontinue;")
	g.line("uint64_t to = 0;")
	g.line("if (lane == 0)")
	g.line("\tto = atomicAdd((unsigned long long *)&p.head->count, (unsigned long long)__popc(some));")
	g.line("to = __shfl_sync(PGACCEL_WARP, (unsigned long long)to, 0) + (uint64_t)__popc(some & ((1u << lane) - 1));")
	g.line("if (word != 0 && to < p.words_max) {")
	g.line("p.words[2 * to] = at;")
	g.line("p.words[2 * to + 1] = word;")
	g.line("}")
	g.line("}")
}

// parseBitmaps makes bitmaps of what was read: all of them, or count words that are not 0.
func (g *Generated) parseBitmaps(r *Result, q *Query, l *layout, count int, first, rest []byte) error {
	r.Bitmaps = make([][]uint64, len(q.Segments))
	ofSegment := VectorRows / 64 << l.shift // words
	set := func(at int, word uint64) error {
		i := at / ofSegment
		if word == 0 {
			return nil
		}
		if i >= len(q.Segments) || at%ofSegment >= (q.Segments[i].Rows+63)/64 {
			return fmt.Errorf("word %d of bitmaps", at)
		}
		if r.Bitmaps[i] == nil {
			r.Bitmaps[i] = make([]uint64, (q.Segments[i].Rows+63)/64)
		}
		r.Bitmaps[i][at%ofSegment] = word
		return nil
	}
	word := func(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	if whole := int64(count) > l.wordsMax; whole || l.wordsMax == 0 {
		if whole {
			first = rest
			g.learn(0)
		}
		if int64(len(first)) < l.resultBytes {
			return fmt.Errorf("bitmaps of %d bytes instead of %d", len(first), l.resultBytes)
		}
		for at := range int(l.resultBytes / 8) {
			if err := set(at, word(first, at)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(first)+len(rest) < 16*count {
		return fmt.Errorf("%d words of bitmaps in %d bytes", count, len(first)+len(rest))
	}
	g.learn(16 * int64(count))
	for i := range count {
		b, k := first, i
		if 16*i >= len(first) { // both reads have whole pairs
			b, k = rest, i-len(first)/16
		}
		if err := set(int(word(b, 2*k)), word(b, 2*k+1)); err != nil {
			return err
		}
	}
	return nil
}
