package compress

import (
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"pgaccel/vector"
)

// WideColumn is Column for 128-bit values, such as numerics of more than 18 digits.
// The methods are Column's in every respect but the type of a value.
type WideColumn interface {
	Codec() Codec
	Len() int   // rows
	Bytes() int // encoded size, header included
	Words() []uint32
	Decode(dst []vector.Int128, start int)
	Gather(dst []vector.Int128, start int, sel []uint16)
	Bounds(start, n int) (lo, hi vector.Int128)
	FilterRange(bits []uint64, start, n int, lo, hi vector.Int128)
}

// EncodeWide encodes values as FOR128: GPU-FOR's layout with references of four words
// and widths to 128. alloc is as Encode's.
func EncodeWide(values []vector.Int128, alloc func(words int) []uint32) WideColumn {
	if len(values) > rowsMax {
		panic(fmt.Sprintf("BUG: column of %d values", len(values)))
	}
	nb := (len(values) + blockRows - 1) / blockRows
	refs, widths := make([]vector.Int128, nb), make([]uint32, nb)
	size := headerWords + nb + 1 + tailWords
	for b := range nb {
		block := values[b*blockRows : min((b+1)*blockRows, len(values))]
		refs[b], widths[b] = wideBlock(block)
		size += wideHeadWords + blockWords(widths[b])
	}
	dst := alloc(size)
	if dst == nil {
		return nil
	}
	dst = dst[:size]
	writeHeader(dst, CodecFOR128, len(values))
	dst[3], dst[4] = blockRows, miniCount
	c := wideShape(dst, len(values))
	clear(c.data)
	at := 0
	for b, ref := range refs {
		c.starts[b] = uint32(at)
		putPair(c.data[at:], int64(ref.Lo))
		putPair(c.data[at+2:], ref.Hi)
		c.data[at+4] = widths[b]
		at += wideHeadWords
		block := values[b*blockRows : min((b+1)*blockRows, len(values))]
		for m := 0; m*miniRows < len(block); m++ {
			w := int(widths[b] >> (8 * m) & 255)
			for i, v := range block[m*miniRows : min((m+1)*miniRows, len(block))] {
				off := subWide(v, ref)
				putBits(c.data[at:], i*w, min(w, 64), off.lo)
				putBits(c.data[at:], i*w+64, max(w-64, 0), off.hi)
			}
			at += w
		}
	}
	c.starts[nb] = uint32(at)
	return c
}

// wideHeadWords are a block's reference and widths.
const wideHeadWords = 5

// offset128 is an unsigned distance between values.
type offset128 struct{ hi, lo uint64 }

func subWide(a, b vector.Int128) offset128 {
	lo, borrow := bits.Sub64(a.Lo, b.Lo, 0)
	hi, _ := bits.Sub64(uint64(a.Hi), uint64(b.Hi), borrow)
	return offset128{hi, lo}
}

func (o offset128) less(p offset128) bool { return o.hi < p.hi || o.hi == p.hi && o.lo < p.lo }

func (o offset128) bitLen() int {
	if o.hi != 0 {
		return 64 + bits.Len64(o.hi)
	}
	return bits.Len64(o.lo)
}

// wideBlock returns the smallest value and the widths of the miniblocks.
func wideBlock(block []vector.Int128) (ref vector.Int128, widths uint32) {
	ref = block[0]
	for _, v := range block {
		if v.Cmp(ref) < 0 {
			ref = v
		}
	}
	for m := 0; len(block) > 0; m += 8 {
		mini := block[:min(miniRows, len(block))]
		block = block[len(mini):]
		var or offset128
		for _, v := range mini {
			off := subWide(v, ref)
			or.hi, or.lo = or.hi|off.hi, or.lo|off.lo
		}
		widths |= uint32(or.bitLen()) << m
	}
	return ref, widths
}

// putBits writes width bits of v, up to 64, from bit at of words on, which are 0 there.
func putBits(words []uint32, at, width int, v uint64) {
	for width > 0 {
		take := min(32-at%32, width)
		words[at/32] |= uint32(v&(1<<take-1)) << (at % 32)
		v >>= take
		at, width = at+take, width-take
	}
}

// getBits reads width bits, up to 64, from bit at of words on, where three words are.
func getBits(words []uint32, at, width int) uint64 {
	w := words[at/32 : at/32+3]
	s := uint(at % 32)
	v := (uint64(w[0])|uint64(w[1])<<32)>>s | uint64(w[2])<<(64-s)
	return v & (1<<width - 1)
}

type wideColumn struct {
	words  []uint32 // everything
	starts []uint32 // of each block, in data; one more for the end
	data   []uint32
	n      int
}

func wideShape(words []uint32, n int) *wideColumn {
	nb := (n + blockRows - 1) / blockRows
	return &wideColumn{words: words, n: n, starts: words[headerWords : headerWords+nb+1], data: words[headerWords+nb+1:]}
}

func (c *wideColumn) Codec() Codec    { return CodecFOR128 }
func (c *wideColumn) Len() int        { return c.n }
func (c *wideColumn) Bytes() int      { return 4 * len(c.words) }
func (c *wideColumn) Words() []uint32 { return c.words }

// block returns reference and widths of block b, and its miniblocks and what follows.
func (c *wideColumn) block(b int) (ref vector.Int128, widths uint32, body []uint32) {
	d := c.data[c.starts[b]:]
	return vector.Int128{Hi: pair(d[2:]), Lo: uint64(pair(d))}, d[4], d[wideHeadWords:]
}

// wideOffset returns the offset of value i of the block whose miniblocks body begins with.
func wideOffset(widths uint32, body []uint32, i int) (off offset128) {
	m := i / miniRows * 8
	at := blockWords(widths & (1<<m - 1))
	w := int(widths >> m & 255)
	body = body[at:]
	off.lo = getBits(body, i%miniRows*w, min(w, 64))
	if w > 64 {
		off.hi = getBits(body, i%miniRows*w+64, w-64)
	}
	return off
}

func addWide(ref vector.Int128, off offset128) vector.Int128 {
	return ref.Add(vector.Int128{Hi: int64(off.hi), Lo: off.lo})
}

func (c *wideColumn) Decode(dst []vector.Int128, start int) {
	checkRange(start, len(dst), c.n)
	for len(dst) > 0 {
		ref, widths, body := c.block(start / blockRows)
		rows := min(blockRows, len(dst))
		for i := range dst[:rows] {
			dst[i] = addWide(ref, wideOffset(widths, body, i))
		}
		dst, start = dst[rows:], start+rows
	}
}

func (c *wideColumn) Gather(dst []vector.Int128, start int, sel []uint16) {
	checkSel(start, sel, c.n)
	dst = dst[:len(sel)]
	for i, s := range sel {
		row := start + int(s)
		ref, widths, body := c.block(row / blockRows)
		dst[i] = addWide(ref, wideOffset(widths, body, row%blockRows))
	}
}

// wideSpan returns the largest offset that a block's widths can express.
func wideSpan(widths uint32) offset128 {
	w := max(widths&255, widths>>8&255, widths>>16&255, widths>>24)
	return offset128{hi: 1<<(max(w, 64)-64) - 1, lo: 1<<min(w, 64) - 1}
}

var wideMax = vector.Int128{Hi: math.MaxInt64, Lo: math.MaxUint64}

// aboveWide returns ref+off, or the largest value where that overflows.
func aboveWide(ref vector.Int128, off offset128) vector.Int128 {
	if subWide(wideMax, ref).less(off) {
		return wideMax
	}
	return addWide(ref, off)
}

func (c *wideColumn) Bounds(start, n int) (lo, hi vector.Int128) {
	checkRange(start, n, c.n)
	for b := start / blockRows; b*blockRows < start+n; b++ {
		ref, widths, _ := c.block(b)
		top := aboveWide(ref, wideSpan(widths))
		if b*blockRows == start || ref.Cmp(lo) < 0 {
			lo = ref
		}
		if b*blockRows == start || top.Cmp(hi) > 0 {
			hi = top
		}
	}
	return lo, hi
}

func (c *wideColumn) FilterRange(mask []uint64, start, n int, lo, hi vector.Int128) {
	checkRange(start, n, c.n)
	for row := 0; row < n; row += blockRows {
		rows := min(blockRows, n-row)
		words := mask[row/64 : (row+rows+63)/64]
		ref, widths, body := c.block((start + row) / blockRows)
		if hi.Cmp(ref) < 0 || lo.Cmp(hi) > 0 {
			clear(words)
			continue
		}
		var from offset128
		to, top := subWide(hi, ref), wideSpan(widths)
		if lo.Cmp(ref) > 0 {
			from = subWide(lo, ref)
		}
		if top.less(from) {
			clear(words)
			continue
		}
		if from == (offset128{}) && !to.less(top) {
			continue
		}
		for i := range rows {
			if words[i/64]>>(i%64)&1 == 0 {
				continue
			}
			if off := wideOffset(widths, body, i); off.less(from) || to.less(off) {
				words[i/64] &^= 1 << (i % 64)
			}
		}
	}
}

// ParseWide is Parse for what EncodeWide makes.
func ParseWide(words []uint32) (WideColumn, error) {
	bad := func(format string, args ...any) (WideColumn, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
	}
	if len(words) < headerWords || uintptr(unsafe.Pointer(&words[0]))%8 != 0 {
		return bad("%d words, or not 8-byte aligned", len(words))
	}
	n := int(words[1])
	nb := (n + blockRows - 1) / blockRows
	if words[0] != mark<<16|version<<8|uint32(CodecFOR128) || n > rowsMax || int(words[2]) != len(words) ||
		words[3] != blockRows || words[4] != miniCount || len(words) < headerWords+nb+1+tailWords {
		return bad("begins with %#x", words[:headerWords])
	}
	c := wideShape(words, n)
	at := 0
	for b := range nb {
		if int(c.starts[b]) != at || at+wideHeadWords+tailWords > len(c.data) {
			return bad("block %d begins at word %d", b, c.starts[b])
		}
		ref, widths, _ := c.block(b)
		for m := 0; m < 32; m += 8 {
			if widths>>m&255 > 128 {
				return bad("block %d has width %d", b, widths>>m&255)
			}
		}
		at += wideHeadWords + blockWords(widths)
		if at+tailWords > len(c.data) {
			return bad("block %d ends at word %d", b, at)
		}
		if aboveWide(ref, wideSpan(widths)) == wideMax {
			var block [blockRows]vector.Int128
			rows := block[:min(blockRows, n-b*blockRows)]
			c.Decode(rows, b*blockRows)
			for _, v := range rows {
				if v.Cmp(ref) < 0 {
					return bad("block %d overflows", b)
				}
			}
		}
	}
	if int(c.starts[nb]) != at || at+tailWords != len(c.data) {
		return bad("blocks end at word %d of %d", at, len(c.data))
	}
	return c, nil
}
