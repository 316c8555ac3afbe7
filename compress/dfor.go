package compress

import (
	"fmt"
	"slices"
)

// Shape of a tile, from the paper: D = 4 blocks, the unit that GPU-DFOR decodes.
const (
	tileBlocks = 4
	tileRows   = tileBlocks * blockRows
)

// dforColumn is GPU-DFOR: DFOR with 32-bit values, DFOR64 with 64-bit ones. Delta
// j of a tile is value j+1 less value j, so that a value is the tile's first plus
// the deltas before it.
type dforColumn struct {
	words []uint32 // everything
	// deltas are the blocks of deltas as GPU-FOR: their starts pass by the first
	// values, which lie between the blocks. Whole blocks, so it has more rows.
	deltas forColumn
	zones  []uint32 // of each tile: first - smallest, largest - first
	n      int
}

func (c *dforColumn) Codec() Codec {
	if c.deltas.wide {
		return CodecDFOR64
	}
	return CodecDFOR
}
func (c *dforColumn) Len() int          { return c.n }
func (c *dforColumn) Bytes() int        { return 4 * len(c.words) }
func (c *dforColumn) encoded() []uint32 { return c.words }

// first returns the first value of tile t, which ends where its first block begins.
func (c *dforColumn) first(t int) int64 {
	at := c.deltas.starts[t*tileBlocks]
	if c.deltas.wide {
		return pair(c.deltas.data[at-2:])
	}
	return int64(int32(c.deltas.data[at-1]))
}

// zone returns the smallest and the largest value of tile t.
func (c *dforColumn) zone(t int) (lo, hi int64) {
	first := c.first(t)
	if c.deltas.wide {
		z := c.zones[4*t : 4*t+4]
		return first - pair(z), first + pair(z[2:])
	}
	return first - int64(c.zones[2*t]), first + int64(c.zones[2*t+1])
}

// pair reads two words, low word first.
func pair(words []uint32) int64 { return int64(uint64(words[0]) | uint64(words[1])<<32) }

func (c *dforColumn) Decode(dst []int64, start int) {
	checkRange(start, len(dst), c.n)
	if len(dst) == 0 {
		return
	}
	c.deltas.Decode(dst, start)
	if into := start % tileRows; into > 0 {
		v := c.first(start / tileRows)
		var block [blockRows]int64
		for b := start/blockRows - into/blockRows; b < start/blockRows; b++ {
			c.deltas.Decode(block[:], b*blockRows)
			for _, d := range block {
				v += d
			}
		}
		rows := min(tileRows-into, len(dst))
		sumBefore(dst[:rows], v)
		dst, start = dst[rows:], start+rows
	}
	for t := start / tileRows; len(dst) > 0; t++ {
		rows := min(tileRows, len(dst))
		sumBefore(dst[:rows], c.first(t))
		dst = dst[rows:]
	}
}

// sumBefore replaces each delta by v plus the deltas before it. Sums of two keep
// the chain of additions short.
func sumBefore(dst []int64, v int64) {
	for ; len(dst) >= 8; dst = dst[8:] {
		p := (*[8]int64)(dst)
		d0, d1, d2, d3, d4, d5, d6 := p[0], p[1], p[2], p[3], p[4], p[5], p[6]
		all := (d0 + d1) + (d2 + d3) + ((d4 + d5) + (d6 + p[7]))
		p[0] = v
		v1 := v + (d0 + d1)
		p[1] = v + d0
		p[2] = v1
		p[3] = v1 + d2
		v2 := v1 + (d2 + d3)
		p[4] = v2
		p[5] = v2 + d4
		v3 := v2 + (d4 + d5)
		p[6] = v3
		p[7] = v3 + d6
		v += all
	}
	for i, d := range dst {
		dst[i] = v
		v += d
	}
}

func (c *dforColumn) Gather(dst []int64, start int, sel []uint16) {
	checkSel(start, sel, c.n)
	dst = dst[:len(sel)]
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for i := 0; i < len(sel); {
		t := (start + int(sel[i])) / tileRows
		first := t*tileRows - start // of the tile, relative to start; may be negative
		end := i + 1
		for end < len(sel) && int(sel[end]) < first+tileRows {
			end++
		}
		rows := s.a[:int(sel[end-1])-first+1]
		c.Decode(rows, t*tileRows)
		for ; i < end; i++ {
			dst[i] = rows[int(sel[i])-first]
		}
	}
}

func (c *dforColumn) Bounds(start, n int) (lo, hi int64) {
	checkRange(start, n, c.n)
	lo, hi = c.zone(start / tileRows)
	for t := start/tileRows + 1; t*tileRows < start+n; t++ {
		l, h := c.zone(t)
		lo, hi = min(lo, l), max(hi, h)
	}
	return lo, hi
}

func (c *dforColumn) FilterRange(mask []uint64, start, n int, lo, hi int64) {
	checkRange(start, n, c.n)
	if lo > hi {
		clear(mask[:(n+63)/64])
		return
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for row := 0; row < n; {
		t := (start + row) / tileRows
		end := min((t+1)*tileRows-start, n)
		words := mask[row/64 : (end+63)/64]
		low, high := c.zone(t)
		switch {
		case low > hi || high < lo:
			clear(words)
		case low >= lo && high <= hi:
		case anySet(words):
			values := s.a[:end-row]
			c.Decode(values, start+row)
			filterValues(words, values, lo, hi)
		}
		row = end
	}
}

func anySet(words []uint64) bool {
	for _, w := range words {
		if w != 0 {
			return true
		}
	}
	return false
}

// dforPlan is the analysis of a column for DFOR and DFOR64.
type dforPlan struct {
	deltas []int64
	zones  []int64 // smallest and largest value of each tile
	blocks forPlan // of deltas
	narrow bool    // DFOR can hold it
}

func (p *dforPlan) analyse(values []int64) {
	p.deltas = slices.Grow(p.deltas[:0], len(values))[:len(values)]
	p.zones = p.zones[:0]
	p.narrow = true
	for at := 0; at < len(values); at += tileRows {
		tile := values[at:min(at+tileRows, len(values))]
		deltas := p.deltas[at : at+len(tile)]
		lo, hi := tile[0], tile[0]
		for i := 1; i < len(tile); i++ {
			v := tile[i]
			lo, hi = min(lo, v), max(hi, v)
			deltas[i-1] = v - tile[i-1]
		}
		// Nobody reads the delta after the last value: what costs nothing. Alone in its
		// block it is 0.
		last := len(tile) - 1
		deltas[last] = 0
		if last%blockRows > 0 {
			deltas[last] = deltas[last-1]
		}
		p.zones = append(p.zones, lo, hi)
		p.narrow = p.narrow && lo == int64(int32(lo)) && hi == int64(int32(hi))
	}
	p.blocks.analyse(p.deltas)
	p.narrow = p.narrow && p.blocks.narrow
}

// words returns the size of the column in words.
func (p *dforPlan) words() int {
	return p.blocks.words(!p.narrow) + len(p.zones)/2*3*refWords(!p.narrow)
}

// refWords is the words of a reference, of a first value and of a zone's end.
func refWords(wide bool) int {
	if wide {
		return 2
	}
	return 1
}

// dforShape cuts the words of a DFOR column into its arrays.
func dforShape(words []uint32, n int, wide bool) *dforColumn {
	nb, nt := (n+blockRows-1)/blockRows, (n+tileRows-1)/tileRows
	zones := headerWords + nb + 1
	data := zones + 2*nt*refWords(wide)
	return &dforColumn{words: words, n: n, zones: words[zones:data],
		deltas: forColumn{words: words, n: nb * blockRows, wide: wide,
			starts: words[headerWords:zones], data: words[data:]}}
}

// encode writes the analysed values. dst has p.words() words.
func (p *dforPlan) encode(dst []uint32, values []int64) *dforColumn {
	wide := !p.narrow
	codec := CodecDFOR
	if wide {
		codec = CodecDFOR64
	}
	writeHeader(dst, codec, len(values))
	dst[3], dst[4], dst[5] = blockRows, miniCount, tileBlocks
	c := dforShape(dst, len(values), wide)
	per := refWords(wide)
	put := func(to []uint32, v int64) {
		to[0] = uint32(uint64(v))
		if wide {
			to[1] = uint32(uint64(v) >> 32)
		}
	}
	at := 0
	for b, ref := range p.blocks.refs {
		if b%tileBlocks == 0 {
			t := b / tileBlocks
			first := values[b*blockRows]
			put(c.zones[2*t*per:], first-p.zones[2*t])
			put(c.zones[(2*t+1)*per:], p.zones[2*t+1]-first)
			put(c.deltas.data[at:], first)
			at += per
		}
		c.deltas.starts[b] = uint32(at)
		put(c.deltas.data[at:], ref)
		at += per
		widths := p.blocks.widths[b]
		c.deltas.data[at] = widths
		at++
		block := p.deltas[b*blockRows : min((b+1)*blockRows, len(values))]
		for ; len(block) > 0; widths >>= 8 {
			mini := block[:min(miniRows, len(block))]
			block = block[len(mini):]
			w := int(widths & 255)
			pack(c.deltas.data[at:at+w], mini, ref, uint(w))
			at += w
		}
	}
	c.deltas.starts[len(p.blocks.refs)] = uint32(at)
	clear(c.deltas.data[at:])
	return c
}

// parseDFOR checks that every block lies in data and is as long as its widths say,
// and every tile's zone against its values.
func parseDFOR(words []uint32, n int, wide bool) (*dforColumn, error) {
	bad := func(format string, args ...any) (*dforColumn, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
	}
	if words[3] != blockRows || words[4] != miniCount || words[5] != tileBlocks {
		return bad("blocks of %d values in %d miniblocks, tiles of %d blocks", words[3], words[4], words[5])
	}
	nb, nt, per := (n+blockRows-1)/blockRows, (n+tileRows-1)/tileRows, refWords(wide)
	if len(words) < headerWords+nb+1+2*nt*per+tailWords {
		return bad("%d words for %d blocks", len(words), nb)
	}
	c := dforShape(words, n, wide)
	data := c.deltas.data
	at := 0
	for b := range nb {
		if b%tileBlocks == 0 {
			at += per
		}
		if int(c.deltas.starts[b]) != at || at+per+1 > len(data) {
			return bad("block %d begins at word %d", b, c.deltas.starts[b])
		}
		widths := data[at+per]
		at += per + 1
		for range miniCount {
			if widths&255 > 32*uint32(per) {
				return bad("block %d has width %d", b, widths&255)
			}
			at += int(widths & 255)
			widths >>= 8
		}
	}
	if int(c.deltas.starts[nb]) != at || at+tailWords != len(data) {
		return bad("blocks end at word %d of %d", at, len(data))
	}
	var rows [tileRows]int64
	for t := range nt {
		tile := rows[:min(tileRows, n-t*tileRows)]
		c.Decode(tile, t*tileRows)
		if lo, hi := c.zone(t); slices.Min(tile) != lo || slices.Max(tile) != hi {
			return bad("tile %d holds other values than its zone", t)
		}
	}
	return c, nil
}
