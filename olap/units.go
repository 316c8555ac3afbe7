package olap

import (
	"slices"

	"pgaccel/internal/simd"
	"pgaccel/vector"
)

// Functions of time such as date_trunc and extract stay the same throughout a unit of
// time, and rows often come in about the order in which they happened. So a worker keeps
// the unit that it met last: as long as values lie in it, nothing is computed.

// span is a unit of time and the function's value there.
type span struct {
	lo    int64
	width uint64 // the last value is lo+width
	r     int64
	known bool
}

func (s *span) has(v int64) bool { return uint64(v)-uint64(s.lo) <= s.width }

// unitShare: where more than 1/unitShare of a tile's values leave the last unit, units
// are not looked for in the rest of it.
const unitShare = 16

// mapUnits writes x.f of a's values to out.
func (w *worker) mapUnits(x *node, a vec, out []int64) {
	s := &w.bufs[x.id].span
	if s.known {
		if lo, hi := simd.Bounds(a.v); len(a.v) > 0 && s.has(lo) && s.has(hi) && lo <= hi {
			fill(out, s.r)
			return
		}
	}
	left := len(a.v) / unitShare
	for i, v := range a.v {
		if s.has(v) && s.known {
			out[i] = s.r
			continue
		}
		r, err := x.f(v)
		if err != nil {
			if a.nulls == nil || a.nulls[i] == 0 {
				w.fail(err)
			}
			out[i] = x.lo
			continue
		}
		out[i] = r
		if left > 0 {
			left--
			lo, hi := x.around(v)
			*s = span{lo, uint64(hi) - uint64(lo), r, true}
		}
	}
}

// fill writes v to all of out, at the speed of copies.
func fill[T any](out []T, v T) {
	if len(out) == 0 {
		return
	}
	out[0] = v
	for n := 1; n < len(out); n *= 2 {
		copy(out[n:], out[:n])
	}
}

// maxUnits is the largest number of units for which the starts are written out.
const maxUnits = 1 << 14

// unitNumbers returns the node that numbers the units of a date_trunc from 0 on, in their
// order: groups of time are neighbours then, and index arrays. Nil where n is another
// function, may fail, or has too many units.
func (c *compiler) unitNumbers(n *node) *node {
	if n.kind != nodeMap || n.around == nil || n.risky || n.t.Kind != vector.Timestamp && n.t.Kind != vector.TimestampTZ {
		return nil
	}
	starts := stepsOf(n.around, n.args[0].lo, n.args[0].hi)
	if starts == nil {
		return nil
	}
	for i, v := range starts {
		start, err := n.f(v)
		if err != nil {
			return nil
		}
		starts[i] = start
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	m := *n
	m.starts, m.lo, m.hi = starts, 0, int64(len(starts)-1)
	m.f = func(v int64) (int64, error) {
		start, err := n.f(v)
		if err != nil {
			return 0, err
		}
		i, _ := slices.BinarySearch(starts, start)
		return int64(i), nil
	}
	return c.add(&m)
}

// tabulateSteps writes a call of one argument, the same for all arguments that around returns, out over these steps;
// nil where there are too many of them.
func (c *compiler) tabulateSteps(n *node, around func(v int64) (lo, hi int64)) (*node, error) {
	a := n.args[0]
	if infinite(a.t.Kind, a.lo) || infinite(a.t.Kind, a.hi) {
		return nil, nil
	}
	starts := stepsOf(around, a.lo, a.hi)
	if starts == nil {
		return nil, nil
	}
	number := c.add(&node{kind: nodeMap, t: vector.TypeOf(vector.Int8), args: []*node{a}, nullable: a.nullable, risky: a.risky, around: around,
		hi: int64(len(starts) - 1), f: func(v int64) (int64, error) {
			i, exact := slices.BinarySearch(starts, v)
			if !exact {
				i--
			}
			return int64(max(i, 0)), nil
		}})
	of := n.unary()
	return c.tabulateOver(number, n.t, func(x vector.Value) (vector.Value, error) {
		if !x.Null {
			x.I = starts[x.I]
		}
		return of(x)
	})
}

// stepsOf returns the first arguments of the steps from lo to hi; nil where there are more than maxUnits.
func stepsOf(around func(v int64) (lo, hi int64), lo, hi int64) []int64 {
	first, last := around(lo) // months, quarters and years differ by less than a quarter of their length
	if span, ok := width(lo, hi); !ok || uint64(span/maxUnits) >= uint64(last)-uint64(first) {
		return nil
	}
	var starts []int64
	for len(starts) <= 2*maxUnits {
		starts = append(starts, lo)
		_, last := around(lo)
		if last >= hi {
			return starts
		}
		lo = last + 1
	}
	return nil
}
