package simd

import (
	"math"
	"math/bits"
)

// smallSet is the size of sets that registers hold.
const smallSet = 1024

// FilterSet clears the bits of the rows of a FOR block whose offset plus add, modulo
// 2^32, is not a member of set: not below size or without its bit. set has a bit for
// each number below size, in whole words. src begins at the first miniblock; widths
// are at most 32. 16 words past the block speed it up, and so does room for 16 words
// in a set of up to 1,024 bits.
func FilterSet(mask *[2]uint64, src []uint32, widths, add, size uint32, set []uint64) {
	if uint64(size) > 64*uint64(len(set)) {
		panic("BUG: a set larger than its words")
	}
	if active != Plain && size > 0 && fits(src, widths, 16) {
		switch {
		case active == AVX2:
			filterSetAVX2(mask, &src[0], widths, add, size, &set[0])
		case size <= smallSet && cap(set) >= 16:
			filterSmallSetAVX512(mask, &src[0], widths, add, size, &set[0])
		default:
			filterSetAVX512(mask, &src[0], widths, add, size, &set[0])
		}
		return
	}
	filterSetPlain(mask, src, widths, add, size, set)
}

func filterSetPlain(mask *[2]uint64, src []uint32, widths, add, size uint32, set []uint64) {
	for i := range BlockRows {
		v, next := offset(src, widths, i)
		if v += add; v >= size || set[v>>6]>>(v&63)&1 == 0 {
			mask[i>>6] &^= 1 << (i & 63)
		}
		if i%32 == 31 {
			src, widths = src[next:], widths>>8
		}
	}
}

// FilterValues clears the bits of the rows whose value is not from lo to lo+span, modulo 2^64. mask
// has a word for each 64 values begun.
func FilterValues(mask []uint64, values []int64, lo int64, span uint64) {
	if words := len(values) / 64; active != Plain && words > 0 {
		_ = mask[words-1]
		if active == AVX512 {
			filterValuesAVX512(&mask[0], &values[0], words, lo, span)
		} else {
			filterValuesAVX2(&mask[0], &values[0], words, lo, span)
		}
		mask, values = mask[words:], values[words*64:]
	}
	filterValuesPlain(mask, values, lo, span)
}

func filterValuesPlain(mask []uint64, values []int64, lo int64, span uint64) {
	w := 0
	for ; len(values) >= 64; w++ {
		if mask[w] != 0 {
			mask[w] &^= outside((*[64]int64)(values), uint64(lo), span)
		}
		values = values[64:]
	}
	if len(values) > 0 && mask[w] != 0 {
		var word [64]int64
		copy(word[:], values)
		mask[w] &^= outside(&word, uint64(lo), span) &^ (math.MaxUint64 << len(values))
	}
}

// outside returns the mask of the values v with v-lo > span: the borrow of a subtraction becomes the
// carry of an addition.
func outside(values *[64]int64, lo, span uint64) (m uint64) {
	var out uint64
	for i := 63; i > 0; i -= 4 {
		_, out = bits.Sub64(span, uint64(values[i])-lo, 0)
		m, _ = bits.Add64(m, m, out)
		_, out = bits.Sub64(span, uint64(values[i-1])-lo, 0)
		m, _ = bits.Add64(m, m, out)
		_, out = bits.Sub64(span, uint64(values[i-2])-lo, 0)
		m, _ = bits.Add64(m, m, out)
		_, out = bits.Sub64(span, uint64(values[i-3])-lo, 0)
		m, _ = bits.Add64(m, m, out)
	}
	return m
}

// FilterSetValues clears the bits of the rows whose value minus lo is not a member of
// set. mask has a word for each 64 values begun.
func FilterSetValues(mask []uint64, values []int64, lo int64, size uint64, set []uint64) {
	if size > 64*uint64(len(set)) {
		panic("BUG: a set larger than its words")
	}
	if words := len(values) / 64; active == AVX512 && words > 0 && size > 0 {
		_ = mask[words-1]
		filterSetValuesAVX512(&mask[0], &values[0], words, lo, size, &set[0])
		mask, values = mask[words:], values[words*64:]
	}
	filterSetValuesPlain(mask, values, lo, size, set)
}

func filterSetValuesPlain(mask []uint64, values []int64, lo int64, size uint64, set []uint64) {
	for w := 0; len(values) > 0; w++ {
		part := values[:min(64, len(values))]
		values = values[len(part):]
		if mask[w] == 0 {
			continue
		}
		in := uint64(0)
		for i, v := range part {
			if k := uint64(v) - uint64(lo); k < size {
				in |= set[k>>6] >> (k & 63) & 1 << i
			}
		}
		if in &= mask[w]; len(part) == 64 {
			mask[w] = in
		} else {
			mask[w] = in | mask[w]&(math.MaxUint64<<len(part))
		}
	}
}
