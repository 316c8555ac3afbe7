package compress

import (
	"math"
	"math/bits"
	"slices"
)

// EncodeFloats is Encode for the bits of float64 values: it takes ALP where that is
// smallest. Every bit comes back, of NaNs, infinities, zeros and subnormals too.
func EncodeFloats(values []int64, alloc func(words int) []uint32) Column {
	return encodeWith(alloc, func(p *plan) encoding {
		best := p.auto(values)
		if best.words > headerWords && p.decimals.analyse(values, best.words) {
			best = p.decimal()
		}
		return best
	}, len(values))
}

// alpPowers is one choice of e and f: an integer is value * 10^e * 10^-f, rounded.
type alpPowers struct{ e, f uint8 }

// alpPlan is the analysis of a column for ALP.
type alpPlan struct {
	integers  []int64 // of the rows
	powers    []alpPowers
	first     []int    // of each vector, the number of exceptions before it
	positions []uint16 // of exceptions
	values    []int64  // of exceptions
	blocks    forPlan  // of integers
	choices   []alpPowers
}

const (
	// Sampling, as the paper: the powers that suit some values of some vectors best,
	// and of these, for each vector, those that suit some of its values best.
	alpSampleVectors = 8
	alpSampleValues  = 32
	alpChoicesMax    = 5
	// exceptionBits is what an exception costs: its value and position.
	exceptionBits = 64 + 16
	// alpIntegerMax bounds the integers: rounding by adding alpRounder works below it.
	alpIntegerMax = 1 << 51
	alpRounder    = 3 << 51
)

// integer returns the integer of a value, and whether it stands for exactly that.
func (p alpPowers) integer(v int64) (d int64, ok bool) {
	x := math.Float64frombits(uint64(v)) * powersUp[p.e] * powersDown[p.f]
	if !(x > -alpIntegerMax && x < alpIntegerMax) { // NaN is not
		return 0, false
	}
	// Between 2^52 and 2^53 floats are integers: adding rounds, to even.
	d = int64(float64(x+alpRounder) - alpRounder)
	return d, int64(math.Float64bits(float64(d)*powersUp[p.f]*powersDown[p.e])) == v
}

// cost returns the bits that the values would take.
func (p alpPowers) cost(values []int64) int {
	var lo, hi int64 = math.MaxInt64, math.MinInt64
	kept := 0
	for _, v := range values {
		if d, ok := p.integer(v); ok {
			lo, hi = min(lo, d), max(hi, d)
			kept++
		}
	}
	if kept == 0 {
		return exceptionBits * len(values)
	}
	return len(values)*bits.Len64(uint64(hi)-uint64(lo)) + exceptionBits*(len(values)-kept)
}

// best returns which of the choices suits the values best, the first of equals.
func best(choices []alpPowers, values []int64) (p alpPowers, cost int) {
	cost = math.MaxInt
	for _, c := range choices {
		if n := c.cost(values); n < cost {
			p, cost = c, n
		}
	}
	return p, cost
}

// allPowers are all choices, those with the smallest integers for the same accuracy
// first.
var allPowers = func() (all []alpPowers) {
	for e := alpPowerMax; e >= 0; e-- {
		for f := e; f >= 0; f-- {
			all = append(all, alpPowers{uint8(e), uint8(f)})
		}
	}
	return all
}()

// spreadOver appends about count of the values, evenly spread.
func spreadOver(dst, values []int64, count int) []int64 {
	step := max(1, len(values)/count)
	for i := 0; i < len(values) && len(dst) < count; i += step {
		dst = append(dst, values[i])
	}
	return dst
}

// choose fills choices, and reports whether the sample takes less than limit bits a
// value.
func (p *alpPlan) choose(values []int64, limit int) bool {
	vectors := (len(values) + vectorRows - 1) / vectorRows
	step := max(1, vectors/alpSampleVectors)
	counts := map[alpPowers]int{}
	total, rows := 0, 0
	sample := make([]int64, 0, alpSampleValues)
	for v := 0; v < vectors; v += step {
		vector := values[v*vectorRows : min((v+1)*vectorRows, len(values))]
		sample = spreadOver(sample[:0], vector, alpSampleValues)
		powers, cost := best(allPowers, sample)
		counts[powers]++
		total, rows = total+cost, rows+len(sample)
	}
	if total >= limit*rows {
		return false
	}
	p.choices = p.choices[:0]
	for powers := range counts {
		p.choices = append(p.choices, powers)
	}
	slices.SortFunc(p.choices, func(a, b alpPowers) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return int(b.e)<<8 + int(b.f) - int(a.e)<<8 - int(a.f) // the same bytes each time
	})
	p.choices = p.choices[:min(len(p.choices), alpChoicesMax)]
	return true
}

// analyse reports whether ALP takes fewer than limit words.
func (p *alpPlan) analyse(values []int64, limit int) bool {
	if len(values) == 0 || !p.choose(values, 32*limit/len(values)) {
		return false
	}
	p.integers = slices.Grow(p.integers[:0], len(values))[:len(values)]
	p.powers, p.first, p.positions, p.values = p.powers[:0], p.first[:0], p.positions[:0], p.values[:0]
	sample := make([]int64, 0, alpSampleValues)
	for at := 0; at < len(values); at += vectorRows {
		vector := values[at:min(at+vectorRows, len(values))]
		powers := p.choices[0]
		if len(p.choices) > 1 {
			sample = spreadOver(sample[:0], vector, alpSampleValues)
			powers, _ = best(p.choices, sample)
		}
		p.powers = append(p.powers, powers)
		p.first = append(p.first, len(p.values))
		p.vector(p.integers[at:at+len(vector)], vector, powers)
		if 2*len(p.values) > limit {
			return false
		}
	}
	p.first = append(p.first, len(p.values))
	p.blocks.analyse(p.integers)
	return p.words() < limit
}

// vector turns the values of a vector into integers and exceptions.
func (p *alpPlan) vector(integers, values []int64, powers alpPowers) {
	// An exception's integer is the one before, which costs nothing; the first ones'
	// that of the first value that has one.
	before, begun := int64(0), false
	for i, v := range values {
		d, ok := powers.integer(v)
		if !ok {
			p.positions = append(p.positions, uint16(i))
			p.values = append(p.values, v)
			d = before
		} else if !begun {
			begun = true
			for k := range integers[:i] {
				integers[k] = d
			}
		}
		integers[i], before = d, d
	}
}

// words returns the size of the column in words.
func (p *alpPlan) words() int {
	_, integers := alpShape(nil, len(p.integers), len(p.values))
	return integers + p.blocks.words(!p.blocks.narrow)
}

// encode writes the analysed column. dst has p.words() words.
func (p *alpPlan) encode(dst []uint32) *alpColumn {
	writeHeader(dst, CodecALP, len(p.integers))
	c, at := alpShape(dst, len(p.integers), len(p.values))
	dst[3], dst[4], dst[5] = uint32(at), vectorRows, uint32(len(p.values))
	clear(dst[headerWords:at])
	for v, first := range p.first {
		c.heads[2*v] = uint32(first)
		if v < len(p.powers) {
			c.heads[2*v+1] = uint32(p.powers[v].f)<<8 | uint32(p.powers[v].e)
		}
	}
	for e, position := range p.positions {
		c.positions[e/2] |= uint32(position) << (e % 2 * 16)
	}
	copy(c.values, p.values)
	c.integers = p.blocks.encode(dst[at:], p.integers, !p.blocks.narrow)
	return c
}
