package gpucube

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/papers/cube"
)

// Query is an area of a cube, prepared: its aggregation map, and what variants keep between
// runs. Runs of one Query wait for each other.
type Query[N cube.Number] struct {
	c       *Cube[N]
	area    cube.Area
	dims    []targetLists // by the cube's dimensions
	targets uint64        // target cells whose elements are reached, by number of reached ones
	reached []reachedList // by the cube's dimensions; nil where all of them are
	shift   int           // results are integers times 2^-shift
	fan     uint64        // the most targets that a cell could have
	empty   bool          // no cell reaches a target
	classes *classes
	Sample  Sample // what Choose goes by, once it has
	sampled sync.Once

	mu      sync.Mutex
	compile time.Duration // of a run's modules
	mem     memory
	maps    []mapPointers       // by the cube's dimensions
	classAt []mapPointers       // the same for classes
	order   []int               // of the dimensions in kernels
	grown   map[tableKey]uint64 // slots that were enough

	firstSlots uint64 // of hash tables that have not grown yet
	head       device.Pointer
	buffers    map[string]block
	scans      map[Method]*scan
	matrices   map[int][3]device.Pointer // by dimension: starts, classes, weights of its targets
}

// targetLists are one dimension's part of the aggregation map, by code.
type targetLists struct {
	start  []uint32
	digit  []uint32
	weight []int64
	stride uint64
	radix  uint64
}

// mapPointers are where a dimension's lists are.
type mapPointers struct{ start, number, weight, before device.Pointer }

// Prepare makes the aggregation map of an area; the first run copies it to the device. Errors are
// those of papers/cube's executors for the same area, errInexact, and the executor's.
func (u *Cube[N]) Prepare(ctx context.Context, area cube.Area) (*Query[N], error) {
	lists, _, err := u.host.TargetLists(area)
	if err != nil {
		return nil, err
	}
	q := &Query[N]{c: u, area: area, shift: u.shift, fan: 1, mem: memory{pool: u.pool},
		empty: u.cells == 0, grown: map[tableKey]uint64{}, firstSlots: firstSlots, buffers: map[string]block{}, scans: map[Method]*scan{}, matrices: map[int][3]device.Pointer{}}
	bound := max(u.absSum, 1)
	for d, l := range lists {
		weights, shift, err := fixed(l.Weight)
		if err != nil {
			return nil, err
		}
		q.shift += shift
		t := targetLists{start: make([]uint32, 1, len(u.dims[d].elements)+1), stride: l.Stride, radix: l.Radix}
		most, fan := uint64(1), uint32(0)
		for _, e := range u.dims[d].elements {
			from, to := l.Start[e], l.Start[e+1]
			t.digit = append(t.digit, l.Digit[from:to]...)
			t.weight = append(t.weight, weights[from:to]...)
			t.start = append(t.start, uint32(len(t.digit)))
			fan = max(fan, to-from)
			for _, w := range weights[from:to] {
				most = max(most, magnitude(w))
			}
		}
		bound = mulSaturated(bound, most)
		q.fan = mulSaturated(q.fan, uint64(fan))
		q.empty = q.empty || fan == 0
		q.dims = append(q.dims, t)
	}
	if bound > math.MaxInt64 || isFloat[N]() && bound > 1<<exactBits {
		return nil, errInexact
	}
	if q.empty {
		return q, nil
	}
	q.compress()
	for d := range q.dims {
		q.order = append(q.order, d)
	}
	slices.SortStableFunc(q.order, func(a, b int) int { return cmp.Compare(q.dims[a].radix, q.dims[b].radix) })
	q.classes = classify(q.dims)
	if q.maps, err = q.putMaps(q.dims); err == nil {
		q.head, err = q.mem.alloc(headBytes)
	}
	if err != nil {
		_ = q.mem.free()
		return nil, err
	}
	return q, nil
}

// reachedList are the positions in an area's list of target elements that any cell reaches in
// this dimension, and the stride of the position in a target's number.
type reachedList struct {
	positions []uint32
	stride    uint64
}

// compress numbers the target elements that cells reach: the others have no filled target
// cells. Numbers stay in order.
func (q *Query[N]) compress() {
	q.targets = 1
	all := true
	q.reached = make([]reachedList, len(q.dims))
	for d := len(q.dims) - 1; d >= 0; d-- {
		t := &q.dims[d]
		digits := make([]uint32, t.radix)
		for _, digit := range t.digit {
			digits[digit] = 1
		}
		r := reachedList{stride: t.stride}
		for digit, is := range digits {
			if is != 0 {
				digits[digit] = uint32(len(r.positions))
				r.positions = append(r.positions, uint32(digit))
			}
		}
		all = all && uint64(len(r.positions)) == t.radix
		for i, digit := range t.digit {
			t.digit[i] = digits[digit]
		}
		t.radix, t.stride = uint64(len(r.positions)), q.targets
		q.targets *= t.radix
		q.reached[d] = r
	}
	if all {
		q.reached = nil
	}
}

// number returns a target's number in the area.
func (q *Query[N]) number(target uint64) (number uint64) {
	if q.reached == nil {
		return target
	}
	for d := range q.dims {
		t := &q.dims[d]
		digit := target / t.stride
		target -= digit * t.stride
		number += uint64(q.reached[d].positions[digit]) * q.reached[d].stride
	}
	return number
}

// putMaps has the next batch copy lists of targets to the device.
func (q *Query[N]) putMaps(dims []targetLists) ([]mapPointers, error) {
	var m image
	at := make([][4]int64, len(dims))
	for d, t := range dims {
		numbers := make([]uint64, len(t.digit))
		for i, digit := range t.digit {
			numbers[i] = uint64(digit) * t.stride
		}
		before := make([]uint32, len(t.start))
		for e := range len(t.start) - 1 {
			before[e+1] = before[e]
			if t.start[e+1] > t.start[e] {
				before[e+1]++
			}
		}
		at[d] = [4]int64{m.u32(t.start), m.u64(numbers), m.i64(t.weight), m.u32(before)}
	}
	base, err := q.mem.write(m.b)
	out := make([]mapPointers, len(dims))
	for d, a := range at {
		out[d] = mapPointers{base + device.Pointer(a[0]), base + device.Pointer(a[1]), base + device.Pointer(a[2]), base + device.Pointer(a[3])}
	}
	return out, err
}

// Close gives the query's device memory back to the cube, for other queries.
func (q *Query[N]) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mem.free()
}

// reserve returns memory that is kept under a name from run to run.
func (q *Query[N]) reserve(name string, bytes int64) (device.Pointer, error) {
	b := q.buffers[name]
	if b.bytes >= bytes && b.at != 0 {
		return b.at, nil
	}
	if b.at != 0 {
		delete(q.buffers, name)
		if err := q.mem.release(b.at); err != nil {
			return 0, err
		}
	}
	p, err := q.mem.alloc(bytes)
	if err == nil {
		q.buffers[name] = block{p, bytes}
	}
	return p, err
}

// classes are the base elements of each dimension that reach the same targets with
// proportional weights, together.
type classes struct {
	dims   []classDim
	places uint64 // combinations, saturated
}

// classDim is a dimension's classes.
type classDim struct {
	of      []int32 // by code; -1: outside the source area
	factor  []int64 // by code: the weights are those of the class times this
	lists   targetLists
	all     bool // no code is outside
	factors bool // not all factors are 1
}

// count returns the number of classes.
func (k *classDim) count() int { return len(k.lists.start) - 1 }

// classify finds the classes of each dimension.
func classify(dims []targetLists) *classes {
	out := &classes{places: 1}
	for _, t := range dims {
		n := len(t.start) - 1
		k := classDim{of: make([]int32, n), factor: make([]int64, n), all: true,
			lists: targetLists{start: []uint32{0}, stride: t.stride, radix: t.radix}}
		known := map[string]int32{}
		var key []byte
		for e := range n {
			from, to := t.start[e], t.start[e+1]
			k.of[e], k.factor[e] = -1, 1
			if from == to {
				k.all = false
				continue
			}
			f := commonFactor(t.weight[from:to])
			key = key[:0]
			for i := from; i < to; i++ {
				key = appendKey(key, uint64(t.digit[i]), uint64(t.weight[i]/f))
			}
			class, found := known[string(key)]
			if !found {
				class = int32(len(known))
				known[string(key)] = class
				k.lists.digit = append(k.lists.digit, t.digit[from:to]...)
				for _, w := range t.weight[from:to] {
					k.lists.weight = append(k.lists.weight, w/f)
				}
				k.lists.start = append(k.lists.start, uint32(len(k.lists.digit)))
			}
			k.of[e], k.factor[e] = class, f
			k.factors = k.factors || f != 1
		}
		if k.factors {
			k.hoist()
		}
		out.places = mulSaturated(out.places, uint64(k.count()))
		out.dims = append(out.dims, k)
	}
	return out
}

// hoist moves a factor that all codes have in common into the classes' weights.
func (k *classDim) hoist() {
	common := int64(0)
	for e, c := range k.of {
		switch {
		case c < 0:
		case common == 0:
			common = k.factor[e]
		case common != k.factor[e]:
			return
		}
	}
	for i := range k.lists.weight {
		k.lists.weight[i] *= common
	}
	for e := range k.factor {
		k.factor[e] = 1
	}
	k.factors = false
}

// commonFactor returns what all weights can be divided by: their greatest common divisor,
// with the sign of the first that is not 0. Where all are 0 it is 1.
func commonFactor(weights []int64) int64 {
	g, sign := uint64(0), int64(0)
	for _, w := range weights {
		if w != 0 && sign == 0 {
			sign = 1
			if w < 0 {
				sign = -1
			}
		}
		for a, b := g, magnitude(w); ; a, b = b, a%b {
			if b == 0 {
				g = a
				break
			}
		}
	}
	if g == 0 {
		return 1
	}
	return sign * int64(g)
}

// appendKey appends a target and its weight to a class's key.
func appendKey(key []byte, digit, weight uint64) []byte {
	for _, v := range [2]uint64{digit, weight} {
		for ; v >= 0x80; v >>= 7 {
			key = append(key, byte(v)|0x80)
		}
		key = append(key, byte(v))
	}
	return key
}
