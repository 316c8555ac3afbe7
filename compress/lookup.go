package compress

import "slices"

// lookupValuesMax bounds the distinct values of a Lookup column, so that its
// table stays in the first-level cache (16 KB as 32-bit offsets).
const lookupValuesMax = 4096

// lookupColumn holds the sorted distinct values of the segment and GPU-FOR codes
// into them: for columns of few distinct but far apart values, such as dates
// written as yyyymmdd. Codes order as the values do, so ranges stay ranges.
type lookupColumn struct {
	words []uint32
	codes *forColumn
	base  int64
	near  []uint32 // value - base of each code; nil where far is used
	far   []int64  // value of each code
}

func (c *lookupColumn) Codec() Codec { return CodecLookup }
func (c *lookupColumn) Len() int     { return c.codes.n }
func (c *lookupColumn) Bytes() int   { return 4 * len(c.words) }

func (c *lookupColumn) Decode(dst []int64, start int) {
	c.codes.Decode(dst, start)
	c.values(dst)
}

// values replaces codes by their values. Parse and encode see to it that every
// code has one.
func (c *lookupColumn) values(dst []int64) {
	if near := c.near; near != nil {
		base := c.base
		for i, code := range dst {
			dst[i] = base + int64(near[code])
		}
		return
	}
	far := c.far
	for i, code := range dst {
		dst[i] = far[code]
	}
}

func (c *lookupColumn) Gather(dst []int64, start int, sel []uint16) {
	c.codes.Gather(dst, start, sel)
	c.values(dst[:len(sel)])
}

func (c *lookupColumn) size() int { return max(len(c.near), len(c.far)) }

func (c *lookupColumn) value(code int) int64 {
	if c.near != nil {
		return c.base + int64(c.near[code])
	}
	return c.far[code]
}

func (c *lookupColumn) Bounds(start, n int) (lo, hi int64) {
	from, to := c.codes.Bounds(start, n)
	last := int64(c.size() - 1)
	return c.value(int(max(from, 0))), c.value(int(min(to, last)))
}

func (c *lookupColumn) FilterRange(mask []uint64, start, n int, lo, hi int64) {
	from, to := int64(c.search(lo)), int64(c.search(hi))
	if to == int64(c.size()) || c.value(int(to)) > hi {
		to--
	}
	c.codes.FilterRange(mask, start, n, from, to)
}

// search returns the first code whose value is v or more.
func (c *lookupColumn) search(v int64) int {
	lo, hi := 0, c.size()
	for lo < hi {
		if mid := (lo + hi) / 2; c.value(mid) < v {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// lookupPlan finds the distinct values of a column: a hash table of twice their
// largest number, and what it found.
type lookupPlan struct {
	slots   [2 * lookupValuesMax]int32 // code+1, 0 for free
	values  []int64
	codes   []int64 // of the rows
	codeOf  []int32
	far     bool // offsets from the smallest exceed 32 bits
	forPlan      // of codes
}

// analyse reports whether values has few enough distinct ones, and encodes them.
func (p *lookupPlan) analyse(values []int64) bool {
	if len(values) == 0 {
		return false
	}
	clear(p.slots[:])
	p.values = p.values[:0]
	p.codes = slices.Grow(p.codes[:0], len(values))[:len(values)]
	last, code := int64(0), int32(-1)
	for i, v := range values {
		if v != last || code < 0 {
			if code = p.code(v); code < 0 {
				return false
			}
			last = v
		}
		p.codes[i] = int64(code)
	}
	// Codes in order of appearance become codes in order of value.
	n := len(p.values)
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		if p.values[a] < p.values[b] {
			return -1
		}
		return 1
	})
	p.codeOf = slices.Grow(p.codeOf[:0], n)[:n]
	sorted := make([]int64, n)
	for code, was := range order {
		p.codeOf[was] = int32(code)
		sorted[code] = p.values[was]
	}
	p.values = sorted
	for i, was := range p.codes {
		p.codes[i] = int64(p.codeOf[was])
	}
	p.far = uint64(sorted[n-1])-uint64(sorted[0]) > 1<<32-1
	p.forPlan.analyse(p.codes)
	return true
}

// code returns the code of v in order of appearance, -1 where there are too many.
func (p *lookupPlan) code(v int64) int32 {
	h := uint64(v) * 0x9e3779b97f4a7c15 >> 51 // 13 bits: 2*lookupValuesMax slots
	for ; ; h = (h + 1) % uint64(len(p.slots)) {
		slot := p.slots[h]
		if slot == 0 {
			break
		}
		if p.values[slot-1] == v {
			return slot - 1
		}
	}
	if len(p.values) == lookupValuesMax {
		return -1
	}
	p.values = append(p.values, v)
	p.slots[h] = int32(len(p.values))
	return int32(len(p.values) - 1)
}

// tableWords returns the words of the table of n values, padded so that the codes
// begin 32-byte aligned as every column does.
func tableWords(n int, far bool) int {
	if far {
		n *= 2
	}
	return (n + headerWords - 1) / headerWords * headerWords
}

func (p *lookupPlan) words() int {
	return headerWords + tableWords(len(p.values), p.far) + p.forPlan.words(false)
}

// encode writes the analysed column. dst has p.words() words.
func (p *lookupPlan) encode(dst []uint32) *lookupColumn {
	writeHeader(dst, CodecLookup, len(p.codes))
	table := tableWords(len(p.values), p.far)
	base := p.values[0]
	dst[3], dst[5] = uint32(headerWords+table), uint32(len(p.values))
	dst[6], dst[7] = uint32(uint64(base)), uint32(uint64(base)>>32)
	c := &lookupColumn{words: dst, base: base}
	body := dst[headerWords : headerWords+table]
	clear(body)
	if p.far {
		dst[4] = 2
		c.far = int64s(body)[:len(p.values)]
		copy(c.far, p.values)
	} else {
		dst[4] = 1
		c.near = body[:len(p.values)]
		for i, v := range p.values {
			c.near[i] = uint32(uint64(v) - uint64(base))
		}
	}
	c.codes = p.forPlan.encode(dst[headerWords+table:], p.codes, false)
	return c
}
