package compress

import "pgaccel/internal/simd"

// Set is a set of integers: Lo+i for every bit i, below Size, that is set in Bits (bit
// i&63 of word i>>6). Bits has whole words for Size bits. Lo+Size-1 fits 64 bits.
type Set struct {
	Lo   int64
	Size int64
	Bits []uint64
}

// Has reports whether v is a member.
func (s *Set) Has(v int64) bool {
	i := uint64(v) - uint64(s.Lo)
	return i < uint64(s.Size) && s.Bits[i>>6]>>(i&63)&1 != 0
}

// SetFilter keeps the rows of a column whose values are members of a set, without
// decoding what can be decided encoded. It belongs to one goroutine; its memory is
// used again by the next Reset.
type SetFilter struct {
	column Column // where the values or codes are
	set    Set    // of values, or of codes
	codes  []uint64
	values []int64
}

// Reset prepares the filter for a column. Neither column nor set may change before the
// next Reset.
func (f *SetFilter) Reset(c Column, set Set) {
	f.column, f.set = c, set
	l, ok := c.(*lookupColumn)
	if !ok {
		return
	}
	// Each distinct value is looked at once.
	n := l.size()
	if words := (n + 63) / 64; cap(f.codes) < words {
		f.codes = make([]uint64, words, max(words, 16))
	} else {
		f.codes = f.codes[:words]
		clear(f.codes)
	}
	for code := range n {
		if set.Has(l.value(code)) {
			f.codes[code>>6] |= 1 << (code & 63)
		}
	}
	f.column, f.set = l.codes, Set{0, int64(n), f.codes}
}

// Filter clears every bit i of mask, i < n, whose row start+i holds a value that is not
// a member. Set bits of members stay; bits past n are left alone or cleared. start is
// a multiple of 128.
func (f *SetFilter) Filter(mask []uint64, start, n int) {
	switch c := f.column.(type) {
	case *forColumn:
		c.filterSet(mask, start, n, &f.set)
	case *rforColumn:
		c.filterSet(mask, start, n, &f.set)
	case *constColumn:
		checkRange(start, n, c.n)
		if !f.set.Has(c.v) {
			clear(mask[:(n+63)/64])
		}
	case *plainColumn:
		checkRange(start, n, len(c.values))
		simd.FilterSetValues(mask, c.values[start:start+n], f.set.Lo, uint64(f.set.Size), f.set.Bits)
	default:
		f.decoded(mask, start, n)
	}
}

// decoded is Filter by way of the values.
func (f *SetFilter) decoded(mask []uint64, start, n int) {
	if f.values == nil {
		f.values = make([]int64, vectorRows)
	}
	for n > 0 {
		rows := min(n, vectorRows)
		words := mask[:(rows+63)/64]
		if anySet(words) {
			f.column.Decode(f.values[:rows], start)
			simd.FilterSetValues(words, f.values[:rows], f.set.Lo, uint64(f.set.Size), f.set.Bits)
		}
		mask, start, n = mask[len(words):], start+rows, n-rows
	}
}

// filterSet is SetFilter.Filter for FOR and FOR64.
func (c *forColumn) filterSet(mask []uint64, start, n int, set *Set) {
	checkRange(start, n, c.n)
	for row := 0; row < n; row += blockRows {
		words := mask[row/64 : min((row+blockRows)/64, (n+63)/64)]
		if anySet(words) {
			ref, widths, body := c.fromBlock((start + row) / blockRows)
			filterSetBlock(words, body, widths, ref, set)
		}
	}
}

// filterSetBlock clears the bits of words, one or two, whose rows' values are not
// members. body begins at the block's first miniblock.
func filterSetBlock(words []uint64, body []uint32, widths uint32, ref int64, set *Set) {
	last := set.Lo + (set.Size - 1) // below Lo where the set has no size
	top := span(widths)
	if ref > last || above(ref, top) < set.Lo {
		clear(words)
		return
	}
	if top == 0 {
		if !set.Has(ref) {
			clear(words)
		}
		return
	}
	// Offsets become positions in the set modulo 2^32: none that is before the set, or
	// past 2^32, may come out as one of its own.
	if add := ref - set.Lo; simd.Active() != simd.Plain && simd.Narrow(widths) && add > -1<<31 && add < 1<<31 && (add >= 0) == (ref >= set.Lo) &&
		add+int64(top) < 1<<32 && set.Size <= 1<<31 {
		pair := [2]uint64{words[0]}
		if len(words) == 2 {
			pair[1] = words[1]
		}
		simd.FilterSet(&pair, body, widths, uint32(add), uint32(set.Size), set.Bits)
		copy(words, pair[:])
		return
	}
	var values [blockRows]int64
	unpackBlock(&values, body, widths, ref)
	simd.FilterSetValues(words, values[:64*len(words)], set.Lo, uint64(set.Size), set.Bits)
}
