package tile

import (
	"fmt"
	"math/bits"
	"slices"
	"unsafe"
)

// Lanes is a column on the CPU as FastLanes has it (Afroozeh, Boncz; VLDB 2023), which the
// comparison sets beside GPU-FOR: vectors of 1024 values, each with a reference and a width
// of its own, packed as device lanes are. Word k of all lanes lie side by side, so that the
// same constant shift serves them all. GPU-FOR takes as many bytes and is decoded faster,
// so no column of the store is stored so.
type Lanes struct {
	n       int
	vectors []lanesVector
}

type lanesVector struct {
	reference int64
	width     uint
	words     []uint32
}

// lanesHeadBytes are what a vector takes besides its words: reference, width and start.
const lanesHeadBytes = 16

// EncodeLanes encodes values. It fails where those of a vector lie further apart than 32
// bits can say.
func EncodeLanes(values []int64) (*Lanes, error) {
	c := &Lanes{n: len(values)}
	for part := range slices.Chunk(values, vectorRows) {
		lo, hi := slices.Min(part), slices.Max(part)
		v := lanesVector{lo, uint(bits.Len64(uint64(hi) - uint64(lo))), nil}
		if v.width > 32 {
			return nil, fmt.Errorf("tile: lanes of %d bits", v.width)
		}
		v.words = make([]uint32, laneCount*v.width)
		for i, value := range part {
			packLane(v.words, i, int(v.width), uint64(value)-uint64(lo))
		}
		c.vectors = append(c.vectors, v)
	}
	return c, nil
}

// Len is the number of values.
func (c *Lanes) Len() int { return c.n }

// Bytes is the size of all.
func (c *Lanes) Bytes() (bytes int) {
	for _, v := range c.vectors {
		bytes += lanesHeadBytes + 4*len(v.words)
	}
	return bytes
}

// Decode writes values [start, start+len(dst)), start a multiple of 1024, to dst.
func (c *Lanes) Decode(dst []int64, start int) {
	for part := range slices.Chunk(dst, vectorRows) {
		v := &c.vectors[start/vectorRows]
		start += vectorRows
		for pos := uint(0); len(part) > 0; pos++ {
			if len(part) >= laneCount {
				v.row((*[laneCount]int64)(part), pos)
				part = part[laneCount:]
				continue
			}
			var row [laneCount]int64
			v.row(&row, pos)
			part = part[copy(part, row[:]):]
		}
	}
}

// row writes the values of all lanes at one position.
func (v *lanesVector) row(dst *[laneCount]int64, pos uint) {
	width, ref := v.width, v.reference
	if width == 0 {
		for i := range dst {
			dst[i] = ref
		}
		return
	}
	at, shift := pos*width/32*laneCount, pos*width%32
	// Two lanes at a time, which lie in one 64-bit word.
	lo := pairs(v.words[at:])
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
	hi := pairs(v.words[at+laneCount:])
	low := 32 - shift // bits of the value in the first word
	lowMask := (uint64(1)<<low - 1) * both
	highMask := (uint64(1)<<width - uint64(1)<<low) * both
	for i := 0; i < laneCount; i += 2 {
		x := lo[i/2]>>(shift&31)&lowMask | hi[i/2]<<(low&31)&highMask
		dst[i] = int64(uint32(x)) + ref
		dst[i+1] = int64(x>>32) + ref
	}
}

func pairs(words []uint32) *[laneCount / 2]uint64 {
	return (*[laneCount / 2]uint64)(unsafe.Pointer((*[laneCount]uint32)(words)))
}

// FilterRange clears every bit i of mask, i < n, whose value start+i is outside [lo, hi].
// start is a multiple of 1024, n at most 1024.
func (c *Lanes) FilterRange(mask []uint64, start, n int, lo, hi int64) {
	v := &c.vectors[start/vectorRows]
	top := v.reference + int64(uint64(1)<<v.width-1)
	if lo, hi = max(lo, v.reference), min(hi, top); lo > hi {
		clear(mask[:(n+63)/64])
		return
	}
	if lo == v.reference && hi == top {
		return
	}
	from, to := uint64(lo-v.reference), uint64(hi-v.reference)
	for pos := range uint(n+laneCount-1) / laneCount {
		half := pos % 2 * 32
		w := &mask[pos/2]
		switch {
		case uint32(*w>>half) == 0:
		case v.width < 32:
			*w &^= uint64(^v.insidePairs(pos, from, to)) << half
		default:
			*w &^= uint64(^v.inside(pos, from, to-from+1)) << half
		}
	}
}

// insidePairs returns the mask of the lanes whose offsets at a position are within [lo, hi],
// of up to 31 bits, two lanes at a time: the top bit of each half of a word catches the
// borrow.
func (v *lanesVector) insidePairs(pos uint, lo, hi uint64) uint32 {
	const both, tops = 1<<32 + 1, 1<<63 + 1<<31
	at, shift := pos*v.width/32*laneCount, pos*v.width%32
	first := pairs(v.words[at:])
	lo, hi = lo*both, hi*both|tops
	var m uint64 // even lanes from bit 16 on, odd ones from bit 48 on
	if shift+v.width <= 32 {
		mask := (uint64(1)<<v.width - 1) * both
		for _, x := range first {
			x = x >> (shift & 31) & mask
			m = m>>1 | ((x|tops)-lo)&(hi-x)&tops
		}
	} else {
		second := pairs(v.words[at+laneCount:])
		low := 32 - shift // bits of the value in the first word
		lowMask := (uint64(1)<<low - 1) * both
		highMask := (uint64(1)<<v.width - uint64(1)<<low) * both
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

// inside returns the mask of the lanes whose offsets, of 32 bits, are less than count above lo.
func (v *lanesVector) inside(pos uint, lo, count uint64) uint32 {
	var m, in uint64
	for _, x := range slices.Backward(v.words[pos*laneCount : (pos+1)*laneCount]) {
		_, in = bits.Sub64(uint64(x)-lo, count, 0) // the borrow becomes the carry of an addition
		m, _ = bits.Add64(m, m, in)
	}
	return uint32(m)
}
