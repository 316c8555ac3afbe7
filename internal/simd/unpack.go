package simd

// BlockRows is the number of values of a FOR block.
const BlockRows = 128

// blockWords returns the words of a block's miniblocks and whether all widths are at
// most 32. Widths are at most 64.
func blockWords(widths uint32) (words int, narrow bool) {
	sum := widths & 255
	sum += widths >> 8 & 255
	sum += widths >> 16 & 255
	sum += widths >> 24
	// Byte by byte: 32+0x5f is the largest sum without the top bit.
	return int(sum), (widths+0x5f5f5f5f)&0x80808080 == 0
}

// fits reports whether a block of these widths, at most 32 each, can be read from src
// by whole vectors.
func fits(src []uint32, widths uint32, past int) bool {
	words, narrow := blockWords(widths)
	return narrow && len(src) >= words+past
}

// UnpackBlock writes the 128 values of a FOR block plus ref to dst. src begins at the
// first miniblock; widths are at most 32. Words past the block speed it up: 8 at
// least.
func UnpackBlock(dst *[BlockRows]int64, src []uint32, widths uint32, ref int64) {
	if active != Plain && fits(src, widths, 8) {
		if active == AVX512 {
			unpackBlockAVX512(dst, &src[0], widths, ref)
		} else {
			unpackBlockAVX2(dst, &src[0], widths, ref)
		}
		return
	}
	unpackBlockPlain(dst, src, widths, ref)
}

func unpackBlockPlain(dst *[BlockRows]int64, src []uint32, widths uint32, ref int64) {
	for i := range dst {
		v, next := offset(src, widths, i)
		dst[i] = ref + int64(v)
		if i%32 == 31 {
			src, widths = src[next:], widths>>8
		}
	}
}

// offset returns value i%32 of the miniblock that src begins with, and the words of
// that miniblock.
func offset(src []uint32, widths uint32, i int) (v uint32, words int) {
	w := uint(widths & 255)
	if w == 0 {
		return 0, 0
	}
	bit := uint(i) % 32 * w
	at, shift := bit/32, bit%32
	x := uint64(src[at])
	if shift+w > 32 {
		x |= uint64(src[at+1]) << 32
	}
	return uint32(x>>shift) & uint32(1<<w-1), int(w)
}

// Narrow reports whether the four widths of a block are at most 32, which the kernels
// for blocks require. Widths are at most 64.
func Narrow(widths uint32) bool {
	_, narrow := blockWords(widths)
	return narrow
}
