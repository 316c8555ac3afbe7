package simd

// GatherFORReady reports whether GatherFOR is faster than going through the values one
// by one.
func GatherFORReady() bool { return active == AVX512 }

// GatherFOR writes the values of rows start+sel[i] of a FOR column to dst: starts has the
// word of each block in data, a block is a reference of 32 bits with a sign, the
// widths, and the miniblocks. Two words follow the last block. dst is as long as sel,
// and the rows exist: only the last one is looked at.
func GatherFOR(dst []int64, starts, data []uint32, start int, sel []uint16) {
	n := len(sel)
	if n == 0 {
		return
	}
	_, _ = dst[n-1], starts[(start+int(sel[n-1]))/BlockRows]
	if active == AVX512 {
		gatherFORAVX512(&dst[0], &starts[0], &data[0], start, &sel[0], n)
		return
	}
	gatherFORPlain(dst, starts, data, start, sel)
}

func gatherFORPlain(dst []int64, starts, data []uint32, start int, sel []uint16) {
	for i, s := range sel {
		row := start + int(s)
		block := data[starts[row/BlockRows]:]
		ref, widths, body := int64(int32(block[0])), block[1], block[2:]
		for range row % BlockRows / 32 {
			body, widths = body[widths&255:], widths>>8
		}
		v, _ := offset(body, widths, row)
		dst[i] = ref + int64(v)
	}
}
