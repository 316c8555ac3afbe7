package compress

import (
	"math"
	"math/bits"

	"pgaccel/internal/simd"
)

// Shape of a block, from the paper: 128 values in four miniblocks of 32.
const (
	blockRows = 128
	miniRows  = 32
	miniCount = blockRows / miniRows
)

// forColumn is GPU-FOR: FOR with 32-bit references, FOR64 with 64-bit ones. Its
// slices lie in one run of words, drawn in the package comment.
type forColumn struct {
	words  []uint32 // everything
	starts []uint32 // of each block, in data; one more for the end
	data   []uint32
	n      int
	wide   bool // FOR64
}

func (c *forColumn) Codec() Codec {
	if c.wide {
		return CodecFOR64
	}
	return CodecFOR
}
func (c *forColumn) Len() int   { return c.n }
func (c *forColumn) Bytes() int { return 4 * len(c.words) }

// block returns the reference and the four widths of block b, and the words of
// its miniblocks.
func (c *forColumn) block(b int) (ref int64, widths uint32, body []uint32) {
	d := c.data[c.starts[b]:c.starts[b+1]]
	if c.wide {
		return int64(uint64(d[0]) | uint64(d[1])<<32), d[2], d[3:]
	}
	return int64(int32(d[0])), d[1], d[2:]
}

// fromBlock is block, but the words go on to the end of data: at least three
// from any value's first word on exist, because of the tail.
func (c *forColumn) fromBlock(b int) (ref int64, widths uint32, body []uint32) {
	d := c.data[c.starts[b]:]
	if c.wide {
		return int64(uint64(d[0]) | uint64(d[1])<<32), d[2], d[3:]
	}
	return int64(int32(d[0])), d[1], d[2:]
}

func (c *forColumn) Decode(dst []int64, start int) {
	checkRange(start, len(dst), c.n)
	b := start / blockRows
	for ; len(dst) >= blockRows; b++ {
		c.decodeBlock((*[blockRows]int64)(dst), b)
		dst = dst[blockRows:]
	}
	if len(dst) == 0 {
		return
	}
	if simd.Active() != simd.Plain {
		var block [blockRows]int64
		c.decodeBlock(&block, b)
		copy(dst, block[:])
		return
	}
	ref, widths, body := c.block(b)
	for ; len(dst) >= miniRows; widths >>= 8 {
		unpack(uint(widths&255), (*[miniRows]int64)(dst), body, ref)
		body = body[widths&255:]
		dst = dst[miniRows:]
	}
	if len(dst) > 0 {
		var mini [miniRows]int64
		unpack(uint(widths&255), &mini, body, ref)
		copy(dst, mini[:])
	}
}

// decodeBlock writes the 128 values of block b, those that pad the last one included.
func (c *forColumn) decodeBlock(dst *[blockRows]int64, b int) {
	ref, widths, body := c.fromBlock(b)
	unpackBlock(dst, body, widths, ref)
}

// unpackBlock writes the 128 values of four miniblocks plus ref to dst. body begins at
// the first one; words past the last, as every column's tail has, make it faster.
func unpackBlock(dst *[blockRows]int64, body []uint32, widths uint32, ref int64) {
	if simd.Active() != simd.Plain && simd.Narrow(widths) {
		simd.UnpackBlock(dst, body, widths, ref)
		return
	}
	for m := 0; m < blockRows; m += miniRows {
		w := widths & 255
		unpack(uint(w), (*[miniRows]int64)(dst[m:]), body, ref)
		body, widths = body[w:], widths>>8
	}
}

// Gather decodes a whole block where at least this many of its rows are wanted.
const gatherDense = 32

// gatherSparse: with fewer than 1/gatherSparse of the rows wanted they are read one by
// one, several at a time.
const gatherSparse = 4

// prefetchSparse: with fewer than 1/prefetchSparse of the rows wanted the processor does not see
// by itself which memory comes next.
const prefetchSparse = 32

func (c *forColumn) Gather(dst []int64, start int, sel []uint16) {
	checkSel(start, sel, c.n)
	dst = dst[:len(sel)]
	if len(sel) == 0 {
		return
	}
	rows := max(int(sel[len(sel)-1]-sel[0])+1, blockRows)
	if len(sel)*gatherSparse < rows && simd.GatherFORReady() &&
		simd.GatherFOR(dst, c.starts, c.data, c.wide, start, sel) {
		return
	}
	if len(sel)*prefetchSparse < rows {
		simd.PrefetchFOR(c.starts, c.data, start, sel)
	}
	for i := 0; i < len(sel); {
		b := (start + int(sel[i])) / blockRows
		first := b*blockRows - start // of the block, relative to start; may be negative
		if k := i + gatherDense - 1; k < len(sel) && int(sel[k]) < first+blockRows {
			var block [blockRows]int64
			c.Decode(block[:min(blockRows, c.n-b*blockRows)], b*blockRows)
			for ; i < len(sel) && int(sel[i]) < first+blockRows; i++ {
				dst[i] = block[(int(sel[i])-first)%blockRows]
			}
			continue
		}
		ref, widths, body := c.fromBlock(b)
		// Byte m of before is the sum of the widths of the miniblocks ahead of
		// miniblock m: at most 3*64, so no byte carries into the next.
		before := widths * 0x01010100
		for ; i < len(sel) && int(sel[i]) < first+blockRows; i++ {
			in := uint(int(sel[i]) - first)
			mini := in / miniRows * 8 & 31
			w := uint(widths >> mini & 255)
			bit := in % miniRows * w
			at := uint(before>>mini&255) + bit/32
			word := body[at : at+3]
			v := (uint64(word[0]) | uint64(word[1])<<32) >> (bit & 31)
			if c.wide {
				// The third word matters where the value does not end in the second. A
				// shift by 64 gives 0.
				v |= uint64(word[2]) << (64 - bit&31)
			}
			dst[i] = int64(v&(1<<w-1)) + ref
		}
	}
}

// span returns the largest offset that a block's widths can express.
func span(widths uint32) uint64 {
	w := max(widths&255, widths>>8&255, widths>>16&255, widths>>24)
	return 1<<w - 1 // all ones for 64
}

// above returns ref+off, or the largest integer where that overflows.
func above(ref int64, off uint64) int64 {
	if off > uint64(math.MaxInt64)-uint64(ref) {
		return math.MaxInt64
	}
	return ref + int64(off)
}

func (c *forColumn) Bounds(start, n int) (lo, hi int64) {
	checkRange(start, n, c.n)
	lo, hi = math.MaxInt64, math.MinInt64
	for b := start / blockRows; b*blockRows < start+n; b++ {
		ref, widths, _ := c.block(b)
		lo, hi = min(lo, ref), max(hi, above(ref, span(widths)))
	}
	return lo, hi
}

func (c *forColumn) FilterRange(mask []uint64, start, n int, lo, hi int64) {
	checkRange(start, n, c.n)
	for row := 0; row < n; row += blockRows {
		words := mask[row/64 : min((row+blockRows)/64, (n+63)/64)]
		ref, widths, body := c.fromBlock((start + row) / blockRows)
		if hi < ref || lo > hi {
			clear(words)
			continue
		}
		// Offsets within [from, to] are inside: all unsigned, so nothing overflows.
		from, to := uint64(0), uint64(hi)-uint64(ref)
		if lo > ref {
			from = uint64(lo) - uint64(ref)
		}
		top := span(widths)
		if from > top {
			clear(words)
			continue
		}
		if from == 0 && to >= top {
			continue
		}
		if simd.Active() != simd.Plain && simd.Narrow(widths) {
			filterBlock(words, body, widths, uint32(from), uint32(min(to, top)-from))
			continue
		}
		for i := range words {
			for half := 0; half < 64; half += 32 {
				w := uint(widths & 255)
				src := body
				body, widths = body[w:], widths>>8
				if uint32(words[i]>>half) == 0 {
					continue
				}
				top := uint64(1)<<w - 1
				switch {
				case from > top:
					words[i] &^= 0xffffffff << half
				case from == 0 && to >= top:
				default:
					words[i] &^= uint64(^inside(w, src, from, min(to, top))) << half
				}
			}
		}
	}
}

// filterBlock clears the bits of words, one or two, whose rows' offsets are not within
// [from, from+span]. Widths are at most 32; it is as fast as body has words past the
// miniblocks.
func filterBlock(words []uint64, body []uint32, widths, from, span uint32) {
	if len(words) == 2 {
		simd.FilterBlock((*[2]uint64)(words), body, widths, from, span)
		return
	}
	mask := [2]uint64{words[0]}
	simd.FilterBlock(&mask, body, widths, from, span)
	words[0] = mask[0]
}

// Analysis of a column for FOR and FOR64: per block the reference and widths.
type forPlan struct {
	refs   []int64
	widths []uint32
	packed int  // words of all miniblocks
	narrow bool // FOR can hold it
}

func (p *forPlan) analyse(values []int64) {
	p.refs, p.widths, p.packed, p.narrow = p.refs[:0], p.widths[:0], 0, true
	for len(values) > 0 {
		block := values[:min(blockRows, len(values))]
		values = values[len(block):]
		lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
		var tops [miniCount]int64
		minis := 0
		for ; len(block) > 0; minis++ {
			mini := block[:min(miniRows, len(block))]
			block = block[len(mini):]
			bottom, top := simd.Bounds(mini)
			tops[minis] = top
			lo, hi = min(lo, bottom), max(hi, top)
		}
		if lo != int64(int32(lo)) || uint64(hi)-uint64(lo) > math.MaxUint32 {
			p.narrow = false
		}
		var widths uint32
		for m, top := range tops[:minis] {
			w := bits.Len64(uint64(top) - uint64(lo))
			widths |= uint32(w) << (8 * m)
			p.packed += w
		}
		p.refs = append(p.refs, lo)
		p.widths = append(p.widths, widths)
	}
}

// words returns the size of the column in words.
func (p *forPlan) words(wide bool) int {
	header := 2
	if wide {
		header = 3
	}
	return headerWords + len(p.refs) + 1 + header*len(p.refs) + p.packed + tailWords
}

// encode writes the analysed values. dst has p.words(wide) words.
func (p *forPlan) encode(dst []uint32, values []int64, wide bool) *forColumn {
	codec := CodecFOR
	if wide {
		codec = CodecFOR64
	}
	writeHeader(dst, codec, len(values))
	dst[3], dst[4] = blockRows, miniCount
	nb := len(p.refs)
	c := &forColumn{words: dst, n: len(values), wide: wide,
		starts: dst[headerWords : headerWords+nb+1], data: dst[headerWords+nb+1:]}
	at := 0
	for b, ref := range p.refs {
		c.starts[b] = uint32(at)
		c.data[at] = uint32(uint64(ref))
		at++
		if wide {
			c.data[at] = uint32(uint64(ref) >> 32)
			at++
		}
		widths := p.widths[b]
		c.data[at] = widths
		at++
		block := values[b*blockRows : min((b+1)*blockRows, len(values))]
		for ; len(block) > 0; widths >>= 8 {
			mini := block[:min(miniRows, len(block))]
			block = block[len(mini):]
			w := int(widths & 255)
			pack(c.data[at:at+w], mini, ref, uint(w))
			at += w
		}
	}
	c.starts[nb] = uint32(at)
	clear(c.data[at:])
	return c
}

// pack writes the offsets of up to 32 values in width bits each, LSB first, and
// zeros for those that a full miniblock would have more. len(dst) is width, or what
// the values fill where they are fewer.
func pack(dst []uint32, values []int64, ref int64, width uint) {
	switch {
	case width == 0:
	case len(values) != miniRows || width > 32:
		packPlain(dst, values, ref, width)
	case width <= 16:
		packFours(dst, (*[miniRows]int64)(values), ref, width)
	default:
		packTwos(dst, (*[miniRows]int64)(values), ref, width)
	}
}

// packFours is packPlain of a whole miniblock of at most 16 bits a value: four of them
// fit a word of 64 bits, and do not wait for the ones before.
func packFours(dst []uint32, values *[miniRows]int64, ref int64, width uint) {
	var acc uint64 // bits not yet written, fewer than 64 between steps
	used, n := uint(0), 4*width
	for i := 0; i < miniRows; i += 4 {
		v := (*[4]int64)(values[i:])
		x := uint64(v[0]-ref) | uint64(v[1]-ref)<<(width&63) | uint64(v[2]-ref)<<(2*width&63) | uint64(v[3]-ref)<<(3*width&63)
		acc |= x << (used & 63)
		if used += n; used < 64 {
			continue
		}
		dst[0], dst[1] = uint32(acc), uint32(acc>>32)
		dst = dst[2:]
		used -= 64
		acc = x >> (n - used) // 64 where all is written
	}
	if used > 0 {
		dst[0] = uint32(acc) // of an odd width
	}
}

// packTwos is packFours for 17 to 32 bits a value.
func packTwos(dst []uint32, values *[miniRows]int64, ref int64, width uint) {
	var acc uint64
	used, n := uint(0), 2*width
	for i := 0; i < miniRows; i += 2 {
		v := (*[2]int64)(values[i:])
		x := uint64(v[0]-ref) | uint64(v[1]-ref)<<(width&63)
		acc |= x << (used & 63)
		if used += n; used < 64 {
			continue
		}
		dst[0], dst[1] = uint32(acc), uint32(acc>>32)
		dst = dst[2:]
		used -= 64
		acc = x >> (n - used)
	}
	if used > 0 {
		dst[0] = uint32(acc)
	}
}

// packPlain is pack for any number of values and any width.
func packPlain(dst []uint32, values []int64, ref int64, width uint) {
	if width == 0 {
		return
	}
	var acc uint64 // bits not yet written, fewer than 32 between values
	used, at := uint(0), 0
	for _, v := range values {
		off := uint64(v) - uint64(ref)
		acc |= off << used
		if used += width; used < 32 {
			continue
		}
		dst[at] = uint32(acc)
		at++
		// What of off did not fit the word: from bit 32-(used before) on.
		rest := 32 - (used - width)
		acc = off >> rest
		if used -= 32; used >= 32 {
			dst[at] = uint32(acc)
			at++
			acc >>= 32
			used -= 32
		}
	}
	for ; at < len(dst); at++ {
		dst[at] = uint32(acc)
		acc >>= 32
	}
}
