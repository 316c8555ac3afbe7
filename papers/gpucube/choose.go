package gpucube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pgaccel/gpu/device"
)

// Sample is what is known of an area's cells before any variant runs: Choose and Tune take it.
type Sample struct {
	Vectors  int     // that were looked at
	Relevant float64 // share of their cells
	Targets  float64 // of a relevant cell, on average
	Idle     float64 // share of steps that lanes of a warp wait for the lane with most targets
	Repeats  float64 // share of relevant cells whose first target is that of the one before
}

// sampleVectors are looked at, spread over the cube.
const sampleVectors = 64

// sample fills in q.Sample.
func (q *Query[N]) sample() {
	paths := q.c.host.Cells().Paths
	s := &q.Sample
	s.Vectors = min(sampleVectors, q.c.vectors)
	cells, relevant, repeats := 0, 0, 0
	targets, steps := 0.0, 0.0
	for i := range s.Vectors {
		from := q.c.vectors * i / s.Vectors * vectorCells
		to := min(from+vectorCells, q.c.cells)
		last, has := uint64(0), false
		for ; from < to; from += lanes {
			most := 0.0
			for cell := from; cell < min(from+lanes, to); cell++ {
				cells++
				n, number := 1.0, uint64(0)
				for d := range q.dims {
					t := &q.dims[d]
					e := q.c.dims[d].codes[paths[d][cell]]
					if t.start[e] == t.start[e+1] {
						n = 0
						break
					}
					n *= float64(t.start[e+1] - t.start[e])
					number += uint64(t.digit[t.start[e]]) * t.stride
				}
				if n == 0 {
					continue
				}
				relevant++
				targets += n
				most = max(most, n)
				if has && last == number {
					repeats++
				}
				last, has = number, true
			}
			steps += most * float64(min(lanes, to-from))
		}
	}
	s.Relevant = float64(relevant) / float64(max(cells, 1))
	s.Targets = targets / float64(max(relevant, 1))
	s.Repeats = float64(repeats) / float64(max(relevant, 1))
	if steps > 0 {
		s.Idle = 1 - targets/steps
	}
}

// costs are what the cost model goes by. Times are microseconds; rates are for each
// microsecond of one multiprocessor, or of the whole device where that is said.
type costs struct {
	launch float64 // time of a launch in a row of them
	bytes  float64 // read from memory
	steps  float64 // instructions of lanes: four warps a cycle, less what waits
	hashes float64 // additions to a hash table in the second-level cache
	hot    float64 // additions to one address, of the whole device
	shared float64 // atomic additions to shared memory that meet no other
	clear  float64 // bytes of the whole device

	decode float64 // instructions to decode a column's value and look it up
	random float64 // the same for one cell at a time, with its list
}

// hopper are orders of magnitude of an H200: to calibrate, compare Query.Tune's times with
// the model's. A factor between two methods matters, not the unit.
var hopper = costs{
	launch: 3,
	bytes:  30e3,
	steps:  5e4,
	hashes: 150,
	hot:    4e3,
	shared: 1.5e4,
	clear:  4e6,
	decode: 6,
	random: 25,
}

// Choose returns the variant that is expected to take the least time on the device: what
// Tune found for a query of this shape, or else what the cost model says. It is one that
// the query can run.
func (q *Query[N]) Choose() Variant {
	q.mu.Lock()
	defer q.mu.Unlock()
	if v, found := q.tuned(); found {
		return v
	}
	return q.candidates()[0].Variant
}

// candidate is a variant and what it is expected to take.
type candidate struct {
	Variant
	us float64
}

// candidates returns our variants that the query can run by their expected times. Where
// there is none it is one of the thesis.
func (q *Query[N]) candidates() (all []candidate) {
	if q.empty {
		return []candidate{{Variant: Variant{Method: Source}}}
	}
	q.sampled.Do(q.sample)
	for m := Queue; m <= ClassesHash; m++ {
		v := Variant{Method: m, Prefilter: m <= QueueDense && q.Sample.Relevant < 0.5}
		if us, ok := q.cost(v); ok {
			all = append(all, candidate{v, us})
		}
	}
	if len(all) == 0 {
		return []candidate{{Variant: Variant{Method: Source, Prefilter: q.Sample.Relevant < 0.5, Saving: SaveShuffle, Functions: 4}}}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.us, b.us) })
	return all
}

// Limits of Tune.
const (
	tuneVariants = 3       // that are tried,
	tuneWithin   = 12      // if they are expected to take less than so many times the least
	tuneShare    = 64      // 1/tuneShare of the vectors are looked at,
	tuneCells    = 1 << 24 // but at least so many cells
	tuneRuns     = 3
)

// Tune measures the variants that the cost model has closest to the best one on a part of
// the cells, and returns the fastest. What it finds is kept with the cube for all queries of
// the same shape. Most of its time is the compilation of scans.
func (q *Query[N]) Tune(ctx context.Context) (Variant, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if v, found := q.tuned(); found {
		return v, nil
	}
	all := q.candidates()
	n := 1
	for n < min(len(all), tuneVariants) && all[n].us < all[0].us*tuneWithin {
		n++
	}
	best, least := all[0].Variant, math.Inf(1)
	if n > 1 {
		for _, c := range all[:n] {
			ms, err := q.probe(ctx, c.Variant)
			var fault *device.Fault
			if errors.Is(err, errUnavailable) || errors.As(err, &fault) && fault.Kind != device.FaultLost {
				continue // another one may do
			}
			if err != nil {
				return best, fmt.Errorf("%v on a part of the cells: %w", c.Variant, err)
			}
			if ms < least {
				best, least = c.Variant, ms
			}
		}
	}
	q.c.choices.Store(q.shape(), best)
	return best, nil
}

// probe estimates the milliseconds of a variant from two parts of the cells: what a run
// costs anyway, and what each vector costs.
func (q *Query[N]) probe(ctx context.Context, v Variant) (float64, error) {
	whole, head := q.c, q.grown
	defer func() { q.c, q.grown = whole, head }()
	large := min(max(whole.vectors/tuneShare, tuneCells/vectorCells), whole.vectors)
	parts := []int{large}
	if large < whole.vectors {
		parts = []int{large, max(large/8, 1)}
	}
	var times []float64
	q.grown = maps.Clone(head)
	for _, n := range parts {
		q.c = whole.part((whole.vectors-n)/2, n)
		best := math.Inf(1)
		for run := range tuneRuns + 1 {
			_, s, err := q.runLocked(ctx, v)
			if err != nil {
				return 0, err
			}
			if run > 0 { // the first one warms up
				best = min(best, s.DeviceMillis)
			}
		}
		times = append(times, best)
	}
	if len(parts) == 1 {
		return times[0], nil
	}
	each := max(times[0]-times[1], 0) / float64(parts[0]-parts[1])
	return times[0] + each*float64(whole.vectors-large), nil
}

// tuned returns what Tune found for queries of this shape.
func (q *Query[N]) tuned() (v Variant, found bool) {
	if q.empty {
		return v, false
	}
	if c, ok := q.c.choices.Load(q.shape()); ok {
		return c.(Variant), true
	}
	return v, false
}

// shape is what queries have in common that run alike: their dimensions' classes and targets.
func (q *Query[N]) shape() string {
	var b strings.Builder
	for d := range q.dims {
		k := &q.classes.dims[d]
		fmt.Fprintf(&b, "%d/%d/%d/%t/%t ", k.count(), q.dims[d].radix, len(k.lists.digit), k.factors, k.all)
	}
	return b.String()
}

// cost estimates the microseconds of one of our variants; false where there is none.
func (q *Query[N]) cost(v Variant) (us float64, ok bool) {
	c := &hopper
	sms := float64(max(q.c.info.SMs, 1))
	cells, dims := float64(q.c.cells), float64(len(q.dims))
	relevant := cells * q.Sample.Relevant
	additions := relevant * q.Sample.Targets
	decoded := 0.0
	for _, d := range q.c.dims {
		decoded += float64(d.width)
	}
	decoded *= cells / 8
	switch v.Method {
	case Queue, QueueDense:
		if q.countable() != nil {
			return 0, false
		}
		us = 3*c.launch + decoded/c.bytes/sms + cells*dims*c.random/c.steps/sms + additions*dims*c.random/c.steps/sms
		if v.Prefilter {
			us += c.launch + decoded/c.bytes/sms
		}
		if v.Method == Queue {
			return us + max(additions/c.hashes/sms, additions/float64(q.targets)/c.hot) + q.clearing(q.targets), true
		}
		if mulSaturated(q.targets, 9) > uint64(max(q.c.info.SharedPerBlock-queueShared, 0)) {
			return 0, false
		}
		return us + additions/c.shared/sms + float64(q.targets)*9/1e3, true
	case ClassesHash:
		if q.classes.places > math.MaxInt64 || q.targets > math.MaxInt64 {
			return 0, false
		}
		combinations := min(float64(q.classes.places), relevant)
		us = 6*c.launch + decoded/c.bytes/sms + cells*dims*c.random*2/c.steps/sms
		us += max(relevant/c.hashes/sms, relevant/float64(q.classes.places)/c.hot)
		return us + combinations*q.Sample.Targets/c.hashes/sms + q.clearing(q.targets) + q.clearing(q.classes.places), true
	}
	s, err := q.prepared(v.Method)
	if err != nil {
		return 0, false
	}
	steps, err := q.steps()
	if err != nil {
		return 0, false
	}
	read := float64(q.c.low.width + q.c.high.width)
	for _, d := range s.columns {
		if q.c.dims[d].steady < steadyShare {
			read += float64(q.c.dims[d].width)
		}
	}
	us = 3*c.launch + read*cells/8/c.bytes/sms + cells*c.decode*float64(len(s.columns)+2)/c.steps/sms
	switch v.Method {
	case ClassesShared:
		// Lanes that meet in a place wait for each other, unless they have copies.
		us += relevant*(1+float64(lanes)/float64(s.places)/float64(s.copies))/c.shared/sms + float64(s.places*uint64(s.copies))/c.steps*40
	case ClassesGlobal:
		us += max(relevant/c.hashes/sms, relevant/float64(s.places)/c.hot) + float64(s.places)*9/c.clear
	}
	if !s.inGlobal {
		us += float64(s.places) * 9 * 2 / c.bytes
	}
	places := float64(s.places)
	for _, step := range steps {
		k := &q.classes.dims[step.dim]
		work := float64(step.places) / float64(k.lists.radix) * float64(len(k.lists.digit))
		us += c.launch + work*20/c.steps/sms + 9*(places+float64(step.places))/c.bytes/sms
		places = float64(step.places)
	}
	if q.targets > directRead {
		us += 2*c.launch + float64(q.targets)*10/c.bytes/sms
	}
	return us, true
}

// clearing is the time to clear a hash table for so many numbers, and to list it.
func (q *Query[N]) clearing(numbers uint64) float64 {
	return float64(min(slotsFor(numbers), firstSlots)) * 16 * 2 / hopper.clear
}
