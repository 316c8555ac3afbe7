package compress

import (
	"fmt"
	"math"
	"math/bits"
	"unsafe"
)

// Shape of a lane vector: 1024 values in 32 lanes of 32. Value i is in lane i%32, at
// position i/32.
const (
	vectorRows = 1024
	laneCount  = 32
	laneRows   = vectorRows / laneCount
	// laneHeadWords are the words of a vector's header: reference (low, high), start
	// of its words in data, width.
	laneHeadWords = 4
)

// lanesColumn is the lane format, after FastLanes. Word k of all lanes lie side by
// side, so that one load of any number of words is that many lanes, and the same
// constant shift serves them all.
type lanesColumn struct {
	words []uint32 // everything
	heads []uint32 // laneHeadWords of each vector
	data  []uint32
	n     int
}

func (c *lanesColumn) Codec() Codec      { return CodecLanes }
func (c *lanesColumn) Len() int          { return c.n }
func (c *lanesColumn) Bytes() int        { return 4 * len(c.words) }
func (c *lanesColumn) encoded() []uint32 { return c.words }

// vector returns reference and width of vector v, and its words.
func (c *lanesColumn) vector(v int) (ref int64, width uint, body []uint32) {
	head := c.heads[v*laneHeadWords : (v+1)*laneHeadWords]
	width = uint(head[3])
	return pair(head), width, c.data[head[2] : head[2]+uint32(width)*laneCount]
}

// laneSplit is where the words of the offsets' bits from 32 on begin: wider offsets
// are two packings, of their low and of their high halves.
const laneSplit = 32 * laneCount

// lanesUnpack32 writes the values of a vector of up to 32 bits, plus ref, to dst.
func lanesUnpack32(dst *[vectorRows]int64, words []uint32, width uint, ref int64) {
	for pos := range uint(laneRows) {
		lanesRow((*[laneCount]int64)(dst[pos*laneCount:]), words, width, pos, ref)
	}
}

// lanesRow writes the values of all lanes at one position, plus ref.
func lanesRow(dst *[laneCount]int64, words []uint32, width, pos uint, ref int64) {
	if width == 0 {
		for i := range dst {
			dst[i] = ref
		}
		return
	}
	at, shift := pos*width/32*laneCount, pos*width%32
	// Two lanes at a time, which lie in one 64-bit word.
	lo := (*[laneCount / 2]uint64)(unsafe.Pointer((*[laneCount]uint32)(words[at:])))
	const both = 1<<32 + 1
	if shift+width <= 32 {
		mask := (uint64(1)<<width - 1) * both
		for i := 0; i < laneCount; i += 2 {
			x := lo[i/2] >> (shift & 31) & mask
			dst[i] = int64(uint32(x)) + ref
			dst[i+1] = int64(x>>32) + ref
		}
		return
	}
	hi := (*[laneCount / 2]uint64)(unsafe.Pointer((*[laneCount]uint32)(words[at+laneCount:])))
	low := 32 - shift // bits of the value in the first word
	lowMask := (uint64(1)<<low - 1) * both
	highMask := (uint64(1)<<width - uint64(1)<<low) * both
	for i := 0; i < laneCount; i += 2 {
		x := lo[i/2]>>(shift&31)&lowMask | hi[i/2]<<(low&31)&highMask
		dst[i] = int64(uint32(x)) + ref
		dst[i+1] = int64(x>>32) + ref
	}
}

// lanesFilter32 clears bit i of mask where value i of a vector, as packed, is below
// lo or above hi. width is 1 to 32, lo <= hi.
func lanesFilter32(mask *[vectorRows / 64]uint64, words []uint32, width uint, lo, hi uint32) {
	for pos := range uint(laneRows) {
		half := pos % 2 * 32
		w := &mask[pos/2]
		switch {
		case uint32(*w>>half) == 0:
		case width < 32:
			*w &^= uint64(^lanesInsidePairs(words, width, pos, uint64(lo), uint64(hi))) << half
		default:
			*w &^= uint64(^lanesInside(words, width, pos, uint64(lo), uint64(hi)-uint64(lo)+1)) << half
		}
	}
}

// lanesInsidePairs is lanesInside for up to 31 bits, lo <= v <= hi, two lanes at a time:
// the top bit of each half of a word catches the borrow.
func lanesInsidePairs(words []uint32, width, pos uint, lo, hi uint64) uint32 {
	const both, tops = 1<<32 + 1, 1<<63 + 1<<31
	at, shift := pos*width/32*laneCount, pos*width%32
	first := (*[laneCount / 2]uint64)(unsafe.Pointer((*[laneCount]uint32)(words[at:])))
	lo, hi = lo*both, hi*both|tops
	var m uint64 // even lanes from bit 16 on, odd ones from bit 48 on
	if shift+width <= 32 {
		mask := (uint64(1)<<width - 1) * both
		for _, x := range first {
			x = x >> (shift & 31) & mask
			m = m>>1 | ((x|tops)-lo)&(hi-x)&tops
		}
	} else {
		second := (*[laneCount / 2]uint64)(unsafe.Pointer((*[laneCount]uint32)(words[at+laneCount:])))
		low := 32 - shift // bits of the value in the first word
		lowMask := (uint64(1)<<low - 1) * both
		highMask := (uint64(1)<<width - uint64(1)<<low) * both
		for i, x := range first {
			x = x>>(shift&31)&lowMask | second[i]<<(low&31)&highMask
			m = m>>1 | ((x|tops)-lo)&(hi-x)&tops
		}
	}
	// Even and odd bits take turns.
	m = m >> 16 & 0x0000ffff0000ffff
	m = (m | m<<8) & 0x00ff00ff00ff00ff
	m = (m | m<<4) & 0x0f0f0f0f0f0f0f0f
	m = (m | m<<2) & 0x3333333333333333
	m = (m | m<<1) & 0x5555555555555555
	return uint32(m) | uint32(m>>32)<<1
}

// lanesInside returns the mask of the lanes' values v at a position with v-lo <
// count. As in the generated filters the borrow of a subtraction becomes the carry
// of an addition.
func lanesInside(words []uint32, width, pos uint, lo, count uint64) uint32 {
	at, shift := pos*width/32*laneCount, pos*width%32
	first := (*[laneCount]uint32)(words[at:])
	second := first
	if shift+width > 32 {
		second = (*[laneCount]uint32)(words[at+laneCount:])
	}
	mask := uint64(1)<<width - 1
	var m, in uint64
	for i := laneCount - 1; i >= 0; i-- {
		v := (uint64(first[i]) | uint64(second[i])<<32) >> (shift & 63) & mask
		_, in = bits.Sub64(v-lo, count, 0)
		m, _ = bits.Add64(m, m, in)
	}
	return uint32(m)
}

func (c *lanesColumn) Decode(dst []int64, start int) {
	checkRange(start, len(dst), c.n)
	for len(dst) > 0 {
		v, into := start/vectorRows, start%vectorRows
		ref, width, body := c.vector(v)
		take := min(vectorRows-into, len(dst))
		if take == vectorRows && width <= 32 {
			lanesUnpack32((*[vectorRows]int64)(dst), body, width, ref)
		} else {
			lanesPart(dst[:take], body, width, uint(into/laneCount), ref)
		}
		dst, start = dst[take:], start+take
	}
}

// lanesPart is lanesUnpack32 for any width, from a position on, to any length.
func lanesPart(dst []int64, words []uint32, width, pos uint, ref int64) {
	var row, high [laneCount]int64
	for ; len(dst) > 0; pos++ {
		if width > 32 {
			lanesRow(&row, words, 32, pos, 0)
			lanesRow(&high, words[laneSplit:], width-32, pos, 0)
			for i := range row {
				row[i] = row[i] + high[i]<<32 + ref
			}
		} else {
			lanesRow(&row, words, width, pos, ref)
		}
		dst = dst[copy(dst, row[:]):]
	}
}

func (c *lanesColumn) Gather(dst []int64, start int, sel []uint16) {
	checkSel(start, sel, c.n)
	dst = dst[:len(sel)]
	vector := -1
	var ref int64
	var width uint
	var body []uint32
	for i, s := range sel {
		row := start + int(s)
		if row/vectorRows != vector {
			vector = row / vectorRows
			ref, width, body = c.vector(vector)
		}
		in := uint(row % vectorRows)
		if width > 32 {
			dst[i] = ref + int64(lanesValue(body, 32, in)|lanesValue(body[laneSplit:], width-32, in)<<32)
		} else {
			dst[i] = ref + int64(lanesValue(body, width, in))
		}
	}
}

// lanesValue returns value i of a vector of up to 32 bits, as packed.
func lanesValue(words []uint32, width, i uint) uint64 {
	if width == 0 {
		return 0
	}
	bit := i / laneCount * width
	at, shift := bit/32*laneCount+i%laneCount, bit%32
	v := uint64(words[at]) >> shift
	if shift+width > 32 {
		v |= uint64(words[at+laneCount]) << (32 - shift)
	}
	return v & (1<<width - 1)
}

func (c *lanesColumn) Bounds(start, n int) (lo, hi int64) {
	checkRange(start, n, c.n)
	lo, hi = math.MaxInt64, math.MinInt64
	for v := start / vectorRows; v*vectorRows < start+n; v++ {
		ref, width, _ := c.vector(v)
		lo, hi = min(lo, ref), max(hi, above(ref, 1<<width-1))
	}
	return lo, hi
}

func (c *lanesColumn) FilterRange(mask []uint64, start, n int, lo, hi int64) {
	checkRange(start, n, c.n)
	for row := 0; row < n; {
		v := (start + row) / vectorRows
		into := start + row - v*vectorRows
		end := min((v+1)*vectorRows-start, n)
		words := mask[row/64 : (end+63)/64]
		rows := end - row
		row = end
		ref, width, body := c.vector(v)
		if lo > hi || hi < ref {
			clear(words)
			continue
		}
		from, to, top := uint64(0), uint64(hi)-uint64(ref), uint64(1)<<width-1
		if lo > ref {
			from = uint64(lo) - uint64(ref)
		}
		switch {
		case from > top:
			clear(words)
		case from == 0 && to >= top || !anySet(words):
		case width > 32:
			s := scratches.Get().(*scratch)
			lanesPart(s.a[:rows], body, width, uint(into/laneCount), ref)
			filterValues(words, s.a[:rows], lo, hi)
			scratches.Put(s)
		default:
			var part [vectorRows / 64]uint64
			copy(part[into/64:], words)
			lanesFilter32(&part, body, width, uint32(from), uint32(min(to, top)))
			copy(words, part[into/64:])
		}
	}
}

// lanesPlan is the analysis of a column for Lanes.
type lanesPlan struct {
	refs   []int64
	widths []uint8
	packed int // words of all vectors
}

func (p *lanesPlan) analyse(values []int64) {
	p.refs, p.widths, p.packed = p.refs[:0], p.widths[:0], 0
	for len(values) > 0 {
		vector := values[:min(vectorRows, len(values))]
		values = values[len(vector):]
		lo, hi := vector[0], vector[0]
		for _, v := range vector {
			lo, hi = min(lo, v), max(hi, v)
		}
		w := bits.Len64(uint64(hi) - uint64(lo))
		p.refs, p.widths = append(p.refs, lo), append(p.widths, uint8(w))
		p.packed += w * laneCount
	}
}

// laneHeads returns the words of the headers of nv vectors, padded so that the data
// begins 32-byte aligned as every column does.
func laneHeads(nv int) int { return (nv*laneHeadWords + headerWords - 1) / headerWords * headerWords }

// words returns the size of the column in words.
func (p *lanesPlan) words() int { return headerWords + laneHeads(len(p.refs)) + p.packed }

// encode writes the analysed values. dst has p.words() words.
func (p *lanesPlan) encode(dst []uint32, values []int64) *lanesColumn {
	writeHeader(dst, CodecLanes, len(values))
	heads := laneHeads(len(p.refs))
	dst[3], dst[4], dst[5] = vectorRows, laneCount, uint32(headerWords+heads)
	clear(dst[headerWords:])
	c := &lanesColumn{words: dst, n: len(values), heads: dst[headerWords : headerWords+heads], data: dst[headerWords+heads:]}
	at := 0
	for v, ref := range p.refs {
		w := uint(p.widths[v])
		head := c.heads[v*laneHeadWords:]
		putPair(head, ref)
		head[2], head[3] = uint32(at), uint32(w)
		body := c.data[at : at+int(w)*laneCount]
		at += len(body)
		vector := values[v*vectorRows : min((v+1)*vectorRows, len(values))]
		lanesPack(body, vector, ref, min(w, 32), 0)
		if w > 32 {
			lanesPack(body[laneSplit:], vector, ref, w-32, 32)
		}
	}
	return c
}

// lanesPack writes width bits of each value less ref, from bit skip on. What is not
// written is 0 already.
func lanesPack(dst []uint32, values []int64, ref int64, width, skip uint) {
	if width == 0 {
		return
	}
	for i, v := range values {
		off := (uint64(v) - uint64(ref)) >> skip & (1<<width - 1)
		bit := uint(i) / laneCount * width
		at, shift := bit/32*laneCount+uint(i)%laneCount, bit%32
		dst[at] |= uint32(off << shift)
		if shift+width > 32 {
			dst[at+laneCount] |= uint32(off >> (32 - shift))
		}
	}
}

// parseLanes checks that the vectors lie one after the other in data.
func parseLanes(words []uint32, n int) (*lanesColumn, error) {
	bad := func(format string, args ...any) (*lanesColumn, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
	}
	nv := (n + vectorRows - 1) / vectorRows
	data := headerWords + laneHeads(nv)
	if words[3] != vectorRows || words[4] != laneCount || int(words[5]) != data || len(words) < data {
		return bad("vectors of %d values in %d lanes from word %d on", words[3], words[4], words[5])
	}
	c := &lanesColumn{words: words, n: n, heads: words[headerWords:data], data: words[data:]}
	at := 0
	for v := range nv {
		head := c.heads[v*laneHeadWords:]
		if int(head[2]) != at || head[3] > 64 || at+int(head[3])*laneCount > len(c.data) {
			return bad("vector %d of width %d begins at word %d", v, head[3], head[2])
		}
		at += int(head[3]) * laneCount
		if ref, width, body := c.vector(v); above(ref, 1<<width-1) == math.MaxInt64 {
			rows := make([]int64, min(vectorRows, n-v*vectorRows))
			lanesPart(rows, body, width, 0, ref)
			for _, value := range rows {
				if value < ref {
					return bad("vector %d overflows", v)
				}
			}
		}
	}
	if at != len(c.data) {
		return bad("vectors end at word %d of %d", at, len(c.data))
	}
	return c, nil
}
