package cube

import "math"

// Sample is what is known of an area's cells before any variant runs.
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

// What the cost model goes by: orders of magnitude of a Hopper device, per microsecond of
// one multiprocessor where not said otherwise.
const (
	launchCost  = 3.0  // microseconds of a launch in a row of them
	bytesPerUs  = 30e3 // read from memory
	stepsPerUs  = 5e4  // instructions of lanes
	hashesPerUs = 150  // additions to a hash table in the second-level cache
	hotPerUs    = 4e3  // additions to one address, of the whole device
	sharedPerUs = 1.5e4
	decodeSteps = 6   // instructions to decode a column's value and look it up
	randomSteps = 25  // the same for one cell at a time, with its list
	clearPerUs  = 4e6 // bytes, of the whole device
)

// Choose returns the variant that is expected to take the least time on the device. It is
// one that the query can run.
func (q *Query[N]) Choose() Variant {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.empty {
		return Variant{Method: Source}
	}
	best, least := Variant{Method: Source, Prefilter: q.Sample.Relevant < 0.5, Saving: SaveShuffle, Functions: 4}, math.Inf(1)
	for m := Queue; m <= ClassesHash; m++ {
		v := Variant{Method: m, Prefilter: m <= QueueDense && q.Sample.Relevant < 0.5}
		if us, ok := q.cost(v); ok && us < least {
			best, least = v, us
		}
	}
	return best
}

// cost estimates the microseconds of one of our variants; false where there is none.
func (q *Query[N]) cost(v Variant) (us float64, ok bool) {
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
		us = 3*launchCost + decoded/bytesPerUs/sms + cells*dims*randomSteps/stepsPerUs/sms + additions*dims*randomSteps/stepsPerUs/sms
		if v.Prefilter {
			us += launchCost + decoded/bytesPerUs/sms
		}
		if v.Method == Queue {
			return us + max(additions/hashesPerUs/sms, additions/float64(q.targets)/hotPerUs) + q.clearing(q.targets), true
		}
		if mulSaturated(q.targets, 9) > uint64(max(q.c.info.SharedPerBlock-queueShared, 0)) {
			return 0, false
		}
		return us + additions/sharedPerUs/sms + float64(q.targets)*9/1e3, true
	case ClassesHash:
		if q.classes.places > math.MaxInt64 || q.targets > math.MaxInt64 {
			return 0, false
		}
		combinations := min(float64(q.classes.places), relevant)
		us = 6*launchCost + decoded/bytesPerUs/sms + cells*dims*randomSteps*2/stepsPerUs/sms
		us += max(relevant/hashesPerUs/sms, relevant/float64(q.classes.places)/hotPerUs)
		return us + combinations*q.Sample.Targets/hashesPerUs/sms + q.clearing(q.targets) + q.clearing(q.classes.places), true
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
	us = 3*launchCost + read*cells/8/bytesPerUs/sms + cells*decodeSteps*float64(len(s.columns)+2)/stepsPerUs/sms
	switch v.Method {
	case ClassesShared:
		// Lanes that meet in a place wait for each other, unless they have copies.
		us += relevant*(1+float64(lanes)/float64(s.places)/float64(s.copies))/sharedPerUs/sms + float64(s.places*uint64(s.copies))/stepsPerUs*40
	case ClassesGlobal:
		us += max(relevant/hashesPerUs/sms, relevant/float64(s.places)/hotPerUs) + float64(s.places)*9/clearPerUs
	}
	if !s.inGlobal {
		us += float64(s.places) * 9 * 2 / bytesPerUs
	}
	places := float64(s.places)
	for _, step := range steps {
		k := &q.classes.dims[step.dim]
		work := float64(step.places) / float64(k.lists.radix) * float64(len(k.lists.digit))
		us += launchCost + work*20/stepsPerUs/sms + 9*(places+float64(step.places))/bytesPerUs/sms
		places = float64(step.places)
	}
	if q.targets > directRead {
		us += 2*launchCost + float64(q.targets)*10/bytesPerUs/sms
	}
	return us, true
}

// clearing is the time to clear a hash table for so many numbers, and to list it.
func (q *Query[N]) clearing(numbers uint64) float64 {
	return float64(min(slotsFor(numbers), firstSlots)) * 16 * 2 / clearPerUs
}
