package compress

import (
	"fmt"
	"math"
)

// alpColumn is ALP: a float that is a decimal of few digits is kept as an integer,
// value times 10^(e-f), with e and f chosen for each vector of 1024 rows. What does
// not come back bit for bit is an exception, kept apart. The idea is that of "ALP:
// Adaptive Lossless floating-Point Compression" (Afroozeh, Kuffo, Boncz; SIGMOD 2024).
type alpColumn struct {
	words     []uint32 // everything
	heads     []uint32 // of each vector, and one more: its first exception, f<<8 | e
	positions []uint32 // 16 bits each: an exception's row in its vector
	values    []int64  // of the exceptions
	integers  *forColumn
}

// alpPowerMax bounds the powers of ten: 10^18 is the largest in 63 bits.
const alpPowerMax = 18

// powersUp and powersDown are 10^i and 10^-i, each the float64 nearest to it.
var powersUp, powersDown = func() (up, down [alpPowerMax + 1]float64) {
	for i := range up {
		up[i], down[i] = math.Pow10(i), math.Pow10(-i)
	}
	return up, down
}()

func (c *alpColumn) Codec() Codec      { return CodecALP }
func (c *alpColumn) Len() int          { return c.integers.n }
func (c *alpColumn) Bytes() int        { return 4 * len(c.words) }
func (c *alpColumn) encoded() []uint32 { return c.words }

// factors returns what an integer of vector v is multiplied by, one after the other.
func (c *alpColumn) factors(v int) (up, down float64) {
	powers := c.heads[2*v+1]
	return powersUp[powers>>8&31], powersDown[powers&31]
}

// exceptions returns the range of vector v's exceptions.
func (c *alpColumn) exceptions(v int) (from, to int) { return int(c.heads[2*v]), int(c.heads[2*v+2]) }

// position returns the row in its vector of exception e.
func (c *alpColumn) position(e int) int { return int(c.positions[e/2] >> (e % 2 * 16) & 0xffff) }

// floats replaces integers by the bits of the floats that they stand for.
func floats(dst []int64, up, down float64) {
	for i, v := range dst {
		dst[i] = int64(math.Float64bits(float64(v) * up * down))
	}
}

func (c *alpColumn) Decode(dst []int64, start int) {
	checkRange(start, len(dst), c.integers.n)
	c.integers.Decode(dst, start)
	for len(dst) > 0 {
		v, into := start/vectorRows, start%vectorRows
		take := min(vectorRows-into, len(dst))
		up, down := c.factors(v)
		floats(dst[:take], up, down)
		for e, to := c.exceptions(v); e < to; e++ {
			if at := c.position(e) - into; at >= 0 && at < take {
				dst[at] = c.values[e]
			}
		}
		dst, start = dst[take:], start+take
	}
}

func (c *alpColumn) Gather(dst []int64, start int, sel []uint16) {
	c.integers.Gather(dst, start, sel)
	dst = dst[:len(sel)]
	for i := 0; i < len(sel); {
		v := (start + int(sel[i])) / vectorRows
		first := v*vectorRows - start // of the vector, relative to start; may be negative
		end := i
		for end < len(sel) && int(sel[end]) < first+vectorRows {
			end++
		}
		up, down := c.factors(v)
		floats(dst[i:end], up, down)
		e, to := c.exceptions(v)
		for ; i < end; i++ {
			in := int(sel[i]) - first
			for e < to && c.position(e) < in {
				e++
			}
			if e < to && c.position(e) == in {
				dst[i] = c.values[e]
			}
		}
	}
}

// Bounds: multiplying by a power of ten keeps the order of floats, rounding included,
// but the bits of negative ones order the other way round.
func (c *alpColumn) Bounds(start, n int) (lo, hi int64) {
	checkRange(start, n, c.integers.n)
	lo, hi = math.MaxInt64, math.MinInt64
	for row := start; row < start+n; {
		v := row / vectorRows
		end := min((v+1)*vectorRows, start+n)
		from, to := c.integers.Bounds(row, end-row)
		up, down := c.factors(v)
		low, high := math.Float64bits(float64(from)*up*down), math.Float64bits(float64(to)*up*down)
		switch {
		case from >= 0:
			lo, hi = min(lo, int64(low)), max(hi, int64(high))
		case to < 0:
			lo, hi = min(lo, int64(high)), max(hi, int64(low))
		default:
			lo, hi = math.MinInt64, max(hi, int64(high))
		}
		for e, to := c.exceptions(v); e < to; e++ {
			lo, hi = min(lo, c.values[e]), max(hi, c.values[e])
		}
		row = end
	}
	return lo, hi
}

func (c *alpColumn) FilterRange(mask []uint64, start, n int, lo, hi int64) {
	checkRange(start, n, c.integers.n)
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for row := 0; row < n; row += vectorRows {
		rows := min(vectorRows, n-row)
		words := mask[row/64 : (row+rows+63)/64]
		if !anySet(words) {
			continue
		}
		low, high := c.Bounds(start+row, rows)
		switch {
		case lo > hi || low > hi || high < lo:
			clear(words)
		case low < lo || high > hi:
			c.Decode(s.a[:rows], start+row)
			filterValues(words, s.a[:rows], lo, hi)
		}
	}
}

// alpShape cuts the words of an ALP column into its arrays, up to where the integers
// begin.
func alpShape(words []uint32, n, exceptions int) (c *alpColumn, integers int) {
	heads := headerWords + 2*((n+vectorRows-1)/vectorRows+1)
	positions := heads + (exceptions+3)/4*2 // the values are 8-byte aligned
	values := positions + 2*exceptions
	integers = (values + headerWords - 1) / headerWords * headerWords
	if integers > len(words) {
		return nil, integers
	}
	return &alpColumn{words: words, heads: words[headerWords:heads], positions: words[heads:positions],
		values: int64s(words[positions:values])}, integers
}

// parseALP checks that the exceptions of every vector are rows of it, ascending, and
// then the integers.
func parseALP(words []uint32, n int) (*alpColumn, error) {
	bad := func(format string, args ...any) (*alpColumn, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
	}
	exceptions := int(words[5])
	if exceptions > n || words[4] != vectorRows {
		return bad("%d exceptions in vectors of %d rows", exceptions, words[4])
	}
	c, at := alpShape(words, n, exceptions)
	if c == nil || int(words[3]) != at || len(words) < at+headerWords {
		return bad("integers at word %d of %d", words[3], len(words))
	}
	nv := len(c.heads)/2 - 1
	if c.heads[0] != 0 || int(c.heads[2*nv]) != exceptions {
		return bad("exceptions %d to %d of %d", c.heads[0], c.heads[2*nv], exceptions)
	}
	for v := range nv {
		if powers := c.heads[2*v+1]; powers>>8 > alpPowerMax || powers&255 > alpPowerMax {
			return bad("vector %d has powers %#x", v, powers)
		}
		from, to := c.exceptions(v)
		if from > to || to > exceptions {
			return bad("vector %d has exceptions %d to %d", v, from, to)
		}
		last := -1
		for e := from; e < to; e++ {
			p := c.position(e)
			if p <= last || p >= min(vectorRows, n-v*vectorRows) {
				return bad("exception %d is row %d of vector %d", e, p, v)
			}
			last = p
		}
	}
	inner := words[at:]
	codec := Codec(inner[0] & 255)
	if inner[0]>>8 != words[0]>>8 || codec != CodecFOR && codec != CodecFOR64 || int(inner[1]) != n || int(inner[2]) != len(inner) {
		return bad("integers begin with %#x", inner[:3])
	}
	integers, err := parseFOR(inner, n, codec == CodecFOR64)
	if err != nil {
		return nil, err
	}
	c.integers = integers
	return c, nil
}
