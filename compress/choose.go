package compress

import (
	"fmt"
	"sync"
)

// Encode encodes values with the codec that takes the fewest bytes, or one that
// decodes faster where the gain would be small. alloc returns memory of the given
// number of 32-bit words, 8-byte aligned, zeroed or not, or nil where there is none
// left: then Encode returns nil. values is not kept. It panics beyond 2^24 values.
func Encode(values []int64, alloc func(words int) []uint32) Column {
	return EncodeAs(CodecAuto, values, alloc)
}

// EncodeAs encodes with the given codec, or as Encode where that codec cannot
// hold the values: FOR where a block's reference exceeds int32 or its range 32
// bits, Constant where there are several values, Lookup where there are more
// than 4096 or none, ALP where that is not smaller than Plain. DFOR and
// RFOR take 64-bit values where they must, as DFOR64 and RFOR64 do in any case.
func EncodeAs(codec Codec, values []int64, alloc func(words int) []uint32) Column {
	return encodeWith(alloc, func(p *plan) encoding { return p.choose(codec, values) }, len(values))
}

// encodeWith encodes n values as choose says.
func encodeWith(alloc func(words int) []uint32, choose func(*plan) encoding, n int) Column {
	if n > rowsMax {
		panic(fmt.Sprintf("BUG: column of %d values", n))
	}
	p := plans.Get().(*plan)
	defer plans.Put(p)
	e := choose(p)
	dst := alloc(e.words)
	if dst == nil {
		return nil
	}
	return e.encode(dst[:e.words])
}

// encoding is a way to encode the values at hand: its size, and how.
type encoding struct {
	words  int
	encode func(dst []uint32) Column
}

// plan is what choosing a codec needs: large enough to be worth keeping.
type plan struct {
	blocks   forPlan
	lookup   lookupPlan
	deltas   dforPlan
	runs     rforPlan
	decimals alpPlan
	sample   []int64
}

var plans = sync.Pool{New: func() any { return new(plan) }}

func (p *plan) choose(codec Codec, values []int64) encoding {
	switch codec {
	case CodecAuto:
		return p.auto(values)
	case CodecPlain:
		return p.plain(values)
	case CodecConstant:
		if v, ok := constant(values); ok {
			return p.constant(values, v)
		}
	case CodecFOR, CodecFOR64:
		p.blocks.analyse(values)
		if wide := codec == CodecFOR64; wide || p.blocks.narrow {
			return p.packed(values, wide)
		}
	case CodecLookup:
		if p.lookup.analyse(values) {
			return p.table()
		}
	case CodecDFOR, CodecDFOR64:
		p.deltas.analyse(values)
		p.deltas.narrow = p.deltas.narrow && codec == CodecDFOR
		return p.delta(values)
	case CodecRFOR, CodecRFOR64:
		p.runs.analyse(values, len(values))
		p.runs.narrow = p.runs.narrow && codec == CodecRFOR
		return p.run(values)
	case CodecALP:
		if p.decimals.analyse(values, p.plain(values).words) {
			return p.decimal()
		}
	default:
		panic(fmt.Sprintf("BUG: no encoder for codec %v", codec))
	}
	return p.auto(values)
}

func (p *plan) plain(values []int64) encoding {
	return encoding{headerWords + 2*len(values), func(dst []uint32) Column { return encodePlain(dst, values) }}
}

func (p *plan) constant(values []int64, v int64) encoding {
	return encoding{headerWords, func(dst []uint32) Column { return encodeConst(dst, len(values), v) }}
}

func (p *plan) packed(values []int64, wide bool) encoding {
	return encoding{p.blocks.words(wide), func(dst []uint32) Column { return p.blocks.encode(dst, values, wide) }}
}

func (p *plan) table() encoding {
	return encoding{p.lookup.words(), func(dst []uint32) Column { return p.lookup.encode(dst) }}
}

func (p *plan) delta(values []int64) encoding {
	return encoding{p.deltas.words(), func(dst []uint32) Column { return p.deltas.encode(dst, values) }}
}

func (p *plan) run(values []int64) encoding {
	return encoding{p.runs.words(), func(dst []uint32) Column { return p.runs.encode(dst, len(values)) }}
}

// What a value costs to decode beyond GPU-FOR, in bits by which its column must be
// smaller: a bit for each fifth of a nanosecond, rounded up. BenchmarkTileDecode has, on
// a Xeon of 2023, in Go (with AVX-512): FOR 0.44 (0.18) ns, DFOR 0.77 (0.49), RFOR of
// orders of one to seven lines 0.95 (0.44).
const (
	deltaCostBits = 2
	runCostBits   = 3
)

// A sample decides which analyses are worth a pass over all values: sampleTiles
// tiles, evenly spread.
const sampleTiles = 8

func (p *plan) decimal() encoding {
	return encoding{p.decimals.words(), func(dst []uint32) Column { return p.decimals.encode(dst) }}
}

// auto chooses as Encode says.
func (p *plan) auto(values []int64) encoding {
	if v, ok := constant(values); ok {
		return p.constant(values, v)
	}
	best := p.sampled(values)
	// A table pays where codes are clearly shorter than offsets; it costs one more
	// load for each value.
	if 32*best.words > lookupBitsMin*len(values) && p.lookup.analyse(values) {
		if e := p.table(); e.words < best.words*9/10 {
			best = e
		}
	}
	// Copying beats unpacking where there is nothing to unpack.
	if e := p.plain(values); best.words >= e.words*15/16 {
		best = e
	}
	return best
}

// sampled returns FOR, or DFOR or RFOR where the sample says that they pay and it
// comes true.
func (p *plan) sampled(values []int64) encoding {
	sample := p.takeSample(values)
	// Of what grows with the rows only: the sample is short, the column may not be.
	scale := func(words, fixed int) int { return (words-fixed)*len(values)/len(sample) + fixed }
	p.blocks.analyse(sample)
	packed := scale(p.packed(sample, !p.blocks.narrow).words, headerWords+tailWords)
	p.deltas.analyse(sample)
	delta := scale(p.delta(sample).words, headerWords+tailWords) + deltaCostBits*len(values)/32
	run := packed
	if p.runs.analyse(sample, len(sample)*3/4) {
		run = scale(p.run(sample).words, headerWords+runTailWords) + runCostBits*len(values)/32
	}
	switch {
	case run < packed && run <= delta:
		if p.runs.analyse(values, len(values)) {
			if e := p.run(values); e.words+runCostBits*len(values)/32 < packed {
				return e
			}
		}
	case delta < packed:
		p.deltas.analyse(values)
		if e := p.delta(values); e.words+deltaCostBits*len(values)/32 < packed {
			return e
		}
	}
	p.blocks.analyse(values)
	return p.packed(values, !p.blocks.narrow)
}

// takeSample returns the sample, all values where they are few.
func (p *plan) takeSample(values []int64) []int64 {
	if len(values) <= sampleTiles*tileRows {
		return values
	}
	p.sample = p.sample[:0]
	for i := range sampleTiles {
		// Whole tiles, because all formats begin anew with them.
		at := i * (len(values)/tileRows - 1) / (sampleTiles - 1) * tileRows
		p.sample = append(p.sample, values[at:at+tileRows]...)
	}
	return p.sample
}

// lookupBitsMin is the bits per value below which a table is not tried.
const lookupBitsMin = 8

// constant reports whether all values are equal, and which one; 0 for none.
func constant(values []int64) (v int64, ok bool) {
	if len(values) == 0 {
		return 0, true
	}
	v = values[0]
	for _, u := range values {
		if u != v {
			return 0, false
		}
	}
	return v, true
}
