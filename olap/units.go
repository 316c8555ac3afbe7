package olap

import "pgaccel/internal/simd"

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
			lo, hi := unitAround(x.unit, v)
			*s = span{lo, uint64(hi) - uint64(lo), r, true}
		}
	}
}

func fill(out []int64, v int64) {
	for i := range out {
		out[i] = v
	}
}
