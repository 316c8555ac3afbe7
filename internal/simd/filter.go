package simd

// FilterBlock clears the bits of the rows of a FOR block whose offset is not within
// [from, from+span], modulo 2^32. src begins at the first miniblock; widths are at most
// 32. 16 words past the block speed it up. Miniblocks without a bit set are skipped.
func FilterBlock(mask *[2]uint64, src []uint32, widths, from, span uint32) {
	if active != Plain && fits(src, widths, 16) {
		if active == AVX512 {
			filterBlockAVX512(mask, &src[0], widths, from, span)
		} else {
			filterBlockAVX2(mask, &src[0], widths, from, span)
		}
		return
	}
	filterBlockPlain(mask, src, widths, from, span)
}

func filterBlockPlain(mask *[2]uint64, src []uint32, widths, from, span uint32) {
	for i := range BlockRows {
		v, next := offset(src, widths, i)
		if v-from > span {
			mask[i>>6] &^= 1 << (i & 63)
		}
		if i%32 == 31 {
			src, widths = src[next:], widths>>8
		}
	}
}
