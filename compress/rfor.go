package compress

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"pgaccel/internal/simd"
)

// Shape of GPU-RFOR, from the paper: runs end where blocks of 512 rows do.
const (
	runRows = 512
	// runTailWords end the column: the last miniblock is as short as its values
	// allow, and is read as if it were whole.
	runTailWords = 64
)

// rforColumn is GPU-RFOR: RFOR with 32-bit values, RFOR64 with 64-bit ones. Run r of
// a block is entry r of its values and of its lengths.
type rforColumn struct {
	words           []uint32 // everything
	values, lengths runStream
	n               int
}

// runStream is the values or the lengths of all blocks' runs, packed by block as
// GPU-FOR, in as many miniblocks as there are runs for.
type runStream struct {
	starts []uint32 // of each block, in data; one more for the end
	data   []uint32
	wide   bool // references of two words
}

func (c *rforColumn) Codec() Codec {
	if c.values.wide {
		return CodecRFOR64
	}
	return CodecRFOR
}
func (c *rforColumn) Len() int          { return c.n }
func (c *rforColumn) Bytes() int        { return 4 * len(c.words) }
func (c *rforColumn) encoded() []uint32 { return c.words }

// block returns the number of runs of block b, the reference, the miniblocks'
// widths, four to a word, and the miniblocks and what follows them.
func (s *runStream) block(b int) (count int, ref int64, widths, body []uint32) {
	d := s.data[s.starts[b]:]
	count = int(d[0])
	if s.wide {
		ref, d = pair(d[1:]), d[3:]
	} else {
		ref, d = int64(int32(d[1])), d[2:]
	}
	n := widthWords(count)
	return count, ref, d[:n], d[n:]
}

// widthWords returns the words of the widths of count runs.
func widthWords(count int) int { return (count + blockRows - 1) / blockRows }

// width returns the width of miniblock m.
func width(widths []uint32, m int) uint {
	return uint(widths[m/miniCount] >> (m % miniCount * 8) & 255)
}

// unpack writes the entries of block b to dst, which has room for whole blocks of
// 128, and returns their number.
func (s *runStream) unpack(dst []int64, b int) int {
	count, ref, widths, body := s.block(b)
	for k, w := range widths {
		unpackBlock((*[blockRows]int64)(dst[k*blockRows:]), body, w, ref)
		body = body[blockWords(w):]
	}
	return count
}

// blockWords returns the words of four whole miniblocks.
func blockWords(widths uint32) int {
	return int(widths&255 + widths>>8&255 + widths>>16&255 + widths>>24)
}

// span returns the largest offset that the widths of block b can express, and its
// reference.
func (s *runStream) span(b int) (ref int64, top uint64) {
	count, ref, widths, _ := s.block(b)
	var w uint
	for m := 0; m*miniRows < count; m++ {
		w = max(w, width(widths, m))
	}
	return ref, 1<<w - 1
}

// rows returns how many rows block b has.
func (c *rforColumn) rows(b int) int { return min(runRows, c.n-b*runRows) }

func (c *rforColumn) Decode(dst []int64, start int) {
	checkRange(start, len(dst), c.n)
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for len(dst) > 0 {
		b, into := start/runRows, start%runRows
		rows := c.rows(b)
		take := min(rows-into, len(dst))
		if take == rows {
			c.expand(dst[:rows], b, s)
		} else {
			c.expand(s.c[:rows], b, s)
			copy(dst[:take], s.c[into:])
		}
		dst, start = dst[take:], start+take
	}
}

// expand writes the rows of block b to dst, as long as the block. It fills a, b.
func (c *rforColumn) expand(dst []int64, b int, s *scratch) {
	if simd.Active() == simd.AVX512 {
		c.expandRuns(dst, b, s)
		return
	}
	values, lengths := s.a[:runRows], s.b[:runRows]
	count := c.values.unpack(values, b)
	c.lengths.unpack(lengths, b)
	expandRuns(dst, values[:count], lengths)
}

// expandRuns is simd.ExpandRuns where there is no assembly for it.
func expandRuns(dst, values, lengths []int64) {
	at := 0
	for r, v := range values {
		length := int(lengths[r])
		// Short runs are the rule: eight values at once, whatever the length, and the
		// next run overwrites what is too much.
		if end := at + length; end+8 <= len(dst) {
			fill8((*[8]int64)(dst[at:]), v)
			for k := at + 8; k < end; k += 8 {
				fill8((*[8]int64)(dst[k:]), v)
			}
		} else {
			for k := range dst[at:end] {
				dst[at+k] = v
			}
		}
		at += length
	}
}

// fill8 is eight stores: of an array literal the compiler makes a copy first.
func fill8(p *[8]int64, v int64) {
	p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7] = v, v, v, v, v, v, v, v
}

func (c *rforColumn) Gather(dst []int64, start int, sel []uint16) {
	checkSel(start, sel, c.n)
	dst = dst[:len(sel)]
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for i := 0; i < len(sel); {
		b := (start + int(sel[i])) / runRows
		first := b*runRows - start // of the block, relative to start; may be negative
		if simd.Active() != simd.Plain {
			end := i + 1
			for end < len(sel) && int(sel[end]) < first+runRows {
				end++
			}
			c.gatherRuns(dst[i:end], b, first, sel[i:end], s)
			i = end
			continue
		}
		if k := i + gatherDense - 1; k < len(sel) && int(sel[k]) < first+runRows {
			rows := s.c[:c.rows(b)]
			c.expand(rows, b, s)
			for ; i < len(sel) && int(sel[i]) < first+runRows; i++ {
				dst[i] = rows[int(sel[i])-first]
			}
			continue
		}
		// Few rows: of the values only the miniblocks that they are in.
		lengths := s.b[:runRows]
		c.lengths.unpack(lengths, b)
		_, ref, widths, body := c.values.block(b)
		r, end := 0, int(lengths[0])
		mini, known := 0, false // miniblock that body begins with; whether it is unpacked
		for ; i < len(sel) && int(sel[i]) < first+runRows; i++ {
			for in := int(sel[i]) - first; in >= end; {
				r++
				end += int(lengths[r])
			}
			for ; mini < r/miniRows; mini++ {
				body, known = body[width(widths, mini):], false
			}
			if !known {
				unpack(width(widths, mini), (*[miniRows]int64)(s.a[:]), body, ref)
				known = true
			}
			dst[i] = s.a[r%miniRows]
		}
	}
}

func (c *rforColumn) Bounds(start, n int) (lo, hi int64) {
	checkRange(start, n, c.n)
	lo, hi = math.MaxInt64, math.MinInt64
	for b := start / runRows; b*runRows < start+n; b++ {
		ref, top := c.values.span(b)
		lo, hi = min(lo, ref), max(hi, above(ref, top))
	}
	return lo, hi
}

func (c *rforColumn) FilterRange(mask []uint64, start, n int, lo, hi int64) {
	checkRange(start, n, c.n)
	for row := 0; row < n; {
		b := (start + row) / runRows
		into := start + row - b*runRows
		end := min((b+1)*runRows-start, n)
		words := mask[row/64 : (end+63)/64]
		row = end
		ref, top := c.values.span(b)
		if lo > hi || hi < ref {
			clear(words)
			continue
		}
		from, to := uint64(0), uint64(hi)-uint64(ref)
		if lo > ref {
			from = uint64(lo) - uint64(ref)
		}
		switch {
		case from > top:
			clear(words)
		case from == 0 && to >= top:
		case anySet(words):
			c.filterBlock(words, b, into, from, to)
		}
	}
}

// filterBlock evaluates each run of block b once, on the packed values, and clears
// the bits of words, which begin with row into of the block, of runs outside.
func (c *rforColumn) filterBlock(words []uint64, b, into int, from, to uint64) {
	count, _, widths, body := c.values.block(b)
	var in [runRows/64 + 1]uint64 // bit r%64 of word r/64: run r is inside
	for i := range (count + 63) / 64 {
		in[i] = math.MaxUint64 >> max(0, (i+1)*64-count)
	}
	runs := in
	for k, w := range widths {
		filterMinis(in[2*k:2*k+2], body, w, from, to)
		if k < len(widths)-1 {
			body = body[blockWords(w):]
		}
	}
	if in == runs {
		return
	}
	if !anySet(in[:]) {
		clear(words)
		return
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	if simd.Active() != simd.Plain {
		c.spread(words, b, into, &in, s)
		return
	}
	lengths := s.b[:runRows]
	c.lengths.unpack(lengths, b)
	var rows [runRows / 64]uint64
	spreadRuns(&rows, &in, lengths[:count])
	for i := range words {
		words[i] &= rows[into/64+i]
	}
}

// spreadRuns is simd.SpreadRuns where there is no assembly for it.
func spreadRuns(rows *[runRows / 64]uint64, in *[runRows/64 + 1]uint64, lengths []int64) {
	// A bit where inside begins or ends; then the parity of the bits up to each row.
	var turns [runRows/64 + 1]uint64
	at, was := uint(0), uint64(0)
	for r, length := range lengths {
		is := in[r/64] >> (r % 64) & 1
		turns[at/64] |= (is ^ was) << (at % 64)
		was = is
		at += uint(length)
	}
	before := uint64(0) // all ones where the word before ended inside
	for i := range rows {
		x := turns[i]
		x ^= x << 1
		x ^= x << 2
		x ^= x << 4
		x ^= x << 8
		x ^= x << 16
		x ^= x << 32
		x ^= before
		before = uint64(int64(x) >> 63)
		rows[i] = x
	}
}

// filterMinis clears the bits of two words whose entries of four miniblocks are not
// within [from, to].
func filterMinis(words []uint64, body []uint32, widths uint32, from, to uint64) {
	if simd.Active() != simd.Plain && simd.Narrow(widths) {
		if from > math.MaxUint32 {
			clear(words)
			return
		}
		filterBlock(words, body, widths, uint32(from), uint32(min(to, math.MaxUint32)-from))
		return
	}
	for m := range miniCount {
		w := uint(widths & 255)
		src := body
		body, widths = body[w:], widths>>8
		top := uint64(1)<<w - 1
		word, half := &words[m/2], m%2*32
		switch {
		case from > top:
			*word &^= math.MaxUint32 << half
		case from == 0 && to >= top:
		case uint32(*word>>half) != 0:
			*word &^= uint64(^inside(w, src, from, min(to, top))) << half
		}
	}
}

// rforPlan is the analysis of a column for RFOR and RFOR64.
type rforPlan struct {
	runValues, runLengths []int64
	counts                []int // runs of each block
	values, lengths       runPlan
	narrow                bool // RFOR can hold it
}

// runPlan is per block the reference, and per miniblock the width.
type runPlan struct {
	refs   []int64
	widths []uint8
	packed int // words of all miniblocks
	narrow bool
}

func (p *runPlan) reset() { p.refs, p.widths, p.packed, p.narrow = p.refs[:0], p.widths[:0], 0, true }

func (p *runPlan) add(runs []int64) {
	lo, hi := simd.Bounds(runs)
	if lo != int64(int32(lo)) || uint64(hi)-uint64(lo) > math.MaxUint32 {
		p.narrow = false
	}
	p.refs = append(p.refs, lo)
	for len(runs) > 0 {
		mini := runs[:min(miniRows, len(runs))]
		runs = runs[len(mini):]
		_, top := simd.Bounds(mini)
		w := bits.Len64(uint64(top) - uint64(lo))
		p.widths = append(p.widths, uint8(w))
		p.packed += packedWords(len(mini), w)
	}
}

// packedWords returns the words of a miniblock that ends with its last value.
func packedWords(count, width int) int { return (count*width + 31) / 32 }

// analyse reports whether the column has few enough runs for it to be worth a
// look: at most limit.
func (p *rforPlan) analyse(values []int64, limit int) bool {
	p.runValues, p.runLengths, p.counts = p.runValues[:0], p.runLengths[:0], p.counts[:0]
	p.values.reset()
	p.lengths.reset()
	for len(values) > 0 {
		block := values[:min(runRows, len(values))]
		values = values[len(block):]
		first := len(p.runValues)
		at := 0
		for i := 1; i < len(block); i++ {
			if block[i] != block[i-1] {
				p.runValues = append(p.runValues, block[at])
				p.runLengths = append(p.runLengths, int64(i-at))
				at = i
			}
		}
		p.runValues = append(p.runValues, block[at])
		p.runLengths = append(p.runLengths, int64(len(block)-at))
		if len(p.runValues) > limit {
			return false
		}
		p.counts = append(p.counts, len(p.runValues)-first)
		p.values.add(p.runValues[first:])
		p.lengths.add(p.runLengths[first:])
	}
	p.narrow = p.values.narrow
	return true
}

// words returns the size of the column in words.
func (p *rforPlan) words() int {
	n := headerWords + 2*(len(p.counts)+1) + p.values.packed + p.lengths.packed + runTailWords
	for _, count := range p.counts {
		n += 1 + refWords(!p.narrow) + 1 + 1 + 2*widthWords(count)
	}
	return n
}

// rforShape cuts the words of an RFOR column into its arrays.
func rforShape(words []uint32, n int, wide bool) *rforColumn {
	starts := (n+runRows-1)/runRows + 1
	data := words[headerWords+2*starts:]
	return &rforColumn{words: words, n: n,
		values:  runStream{starts: words[headerWords : headerWords+starts], data: data, wide: wide},
		lengths: runStream{starts: words[headerWords+starts : headerWords+2*starts], data: data}}
}

// encode writes the analysed column of n rows. dst has p.words() words.
func (p *rforPlan) encode(dst []uint32, n int) *rforColumn {
	codec := CodecRFOR
	if !p.narrow {
		codec = CodecRFOR64
	}
	writeHeader(dst, codec, n)
	dst[3], dst[4] = runRows, runRows/miniRows
	c := rforShape(dst, n, !p.narrow)
	at := p.values.encode(&c.values, 0, p.runValues, p.counts)
	at = p.lengths.encode(&c.lengths, at, p.runLengths, p.counts)
	clear(c.values.data[at:])
	return c
}

// encode writes the runs of all blocks from word at of data on.
func (p *runPlan) encode(s *runStream, at int, runs []int64, counts []int) (end int) {
	widths := p.widths
	for b, count := range counts {
		s.starts[b] = uint32(at)
		ref := p.refs[b]
		s.data[at], s.data[at+1] = uint32(count), uint32(uint64(ref))
		at += 2
		if s.wide {
			s.data[at] = uint32(uint64(ref) >> 32)
			at++
		}
		head := s.data[at : at+widthWords(count)]
		clear(head)
		at += len(head)
		block := runs[:count]
		runs = runs[count:]
		for m := 0; len(block) > 0; m++ {
			mini := block[:min(miniRows, len(block))]
			block = block[len(mini):]
			w := uint(widths[0])
			widths = widths[1:]
			head[m/miniCount] |= uint32(w) << (m % miniCount * 8)
			size := packedWords(len(mini), int(w))
			pack(s.data[at:at+size], mini, ref, w)
			at += size
		}
	}
	s.starts[len(counts)] = uint32(at)
	return at
}

// parseRFOR checks that every block lies in data and is as long as its widths say,
// and that its runs are its rows.
func parseRFOR(words []uint32, n int, wide bool) (*rforColumn, error) {
	bad := func(format string, args ...any) (*rforColumn, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
	}
	if words[3] != runRows || words[4] != runRows/miniRows {
		return bad("blocks of %d values in %d miniblocks", words[3], words[4])
	}
	nb := (n + runRows - 1) / runRows
	if len(words) < headerWords+2*(nb+1)+runTailWords {
		return bad("%d words for %d blocks", len(words), nb)
	}
	c := rforShape(words, n, wide)
	at := 0
	for _, s := range []*runStream{&c.values, &c.lengths} {
		widest := uint(32)
		if s.wide {
			widest = 64
		}
		for b := range nb {
			head := 1 + refWords(s.wide)
			if int(s.starts[b]) != at || at+head > len(s.data) {
				return bad("block %d begins at word %d", b, s.starts[b])
			}
			count := int(s.data[at])
			if count < 1 || count > c.rows(b) || at+head+widthWords(count) > len(s.data) {
				return bad("block %d has %d runs", b, count)
			}
			_, _, widths, _ := s.block(b)
			at += head + len(widths)
			for m := range len(widths) * miniCount {
				w := width(widths, m)
				mini := min(miniRows, count-m*miniRows)
				if w > widest || mini <= 0 && w > 0 {
					return bad("block %d has width %d", b, w)
				}
				at += packedWords(max(mini, 0), int(w))
			}
		}
		if int(s.starts[nb]) != at || at > len(s.data) {
			return bad("blocks end at word %d of %d", at, len(s.data))
		}
	}
	if at+runTailWords != len(c.values.data) {
		return bad("runs end at word %d of %d", at, len(c.values.data))
	}
	var runs [runRows]int64
	for b := range nb {
		count := c.lengths.unpack(runs[:], b)
		sum := int64(0)
		for _, length := range runs[:count] {
			if length < 1 || length > runRows {
				return bad("block %d has a run of %d", b, length)
			}
			sum += length
		}
		if valueCount, _, _, _ := c.values.block(b); valueCount != count || sum != int64(c.rows(b)) {
			return bad("block %d has %d values for %d runs of %d rows", b, valueCount, count, sum)
		}
		if ref, top := c.values.span(b); wide && above(ref, top) == math.MaxInt64 {
			c.values.unpack(runs[:], b)
			if slices.Min(runs[:count]) < ref {
				return bad("block %d overflows", b)
			}
		}
	}
	return c, nil
}
