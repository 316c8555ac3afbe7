package simd

// GatherFORReady reports whether GatherFOR is faster than going through the values one
// by one.
func GatherFORReady() bool { return active == AVX512 }

// gatherWidth is the widest value that eight bytes hold wherever among them it begins.
const gatherWidth = 57

// GatherFOR writes the values of rows start+sel[i] of a FOR column to dst: starts has the
// word of each block in data; a block is its reference (32 bits with a sign, or where
// wide, 64), the widths, and the miniblocks. starts ends with where the last block ends, and
// two words follow it. dst is as long as sel, and the rows exist: only the last one is looked
// at. It returns false where it cannot, because a value is wider than 57 bits; dst may have
// been written.
func GatherFOR(dst []int64, starts, data []uint32, wide bool, start int, sel []uint16) bool {
	n := len(sel)
	if n == 0 {
		return true
	}
	_, _ = dst[n-1], starts[(start+int(sel[n-1]))/BlockRows]
	PrefetchFOR(starts, data, start, sel)
	switch {
	case active == AVX512 && wide:
		return gatherFOR64AVX512(&dst[0], &starts[0], &data[0], start, &sel[0], n) <= gatherWidth
	case active == AVX512:
		return gatherFORAVX512(&dst[0], &starts[0], &data[0], start, &sel[0], n) <= gatherWidth
	}
	return gatherFORPlain(dst, starts, data, wide, start, sel)
}

// PrefetchFOR asks for the memory that GatherFOR will read, all rows at once: one after the other,
// a row's header and then its value would each be waited for. For columns that are larger than the
// caches a gather takes a third of the time so.
func PrefetchFOR(starts, data []uint32, start int, sel []uint16) {
	n := len(sel)
	if n == 0 || active == Plain {
		return
	}
	_ = starts[(start+int(sel[n-1]))/BlockRows+1]
	prefetchFORAVX2(&starts[0], &data[0], start, &sel[0], n)
}

func gatherFORPlain(dst []int64, starts, data []uint32, wide bool, start int, sel []uint16) bool {
	for i, s := range sel {
		row := start + int(s)
		block := data[starts[row/BlockRows]:]
		ref := int64(int32(block[0]))
		if wide {
			ref = int64(uint64(block[0]) | uint64(block[1])<<32)
			block = block[1:]
		}
		widths, body := block[1], block[2:]
		for range row % BlockRows / 32 {
			body, widths = body[widths&255:], widths>>8
		}
		w := uint(widths & 255)
		if w > gatherWidth {
			return false
		}
		bit := uint(row) % 32 * w
		v := uint64(0)
		for b, at := uint(0), bit/32; b < w+bit%32; b, at = b+32, at+1 {
			if b == 0 {
				v = uint64(body[at]) >> (bit % 32)
			} else {
				v |= uint64(body[at]) << (b - bit%32)
			}
		}
		dst[i] = ref + int64(v&(1<<w-1))
	}
	return true
}
