package olap

import (
	"cmp"
	"math"

	"pgaccel/plan"
	"pgaccel/vector"
)

// windowPart is a partition: its rows in order, and where each group of peers begins among them, and
// where the last one ends.
type windowPart struct {
	rows   []uint32
	starts []int32
}

// rowSpan is some neighbouring rows of a partition.
type rowSpan struct{ from, to int }

// frames are the frames of a window's rows, one after the other: both ends only move on, as those of
// nodeWindowAgg.c do.
type frames struct {
	plan.Frame
	start, end int64 // offsets of ROWS and GROUPS, negative for PRECEDING
	// startIn and endIn say whether a row is behind the start and before the end of another one's
	// frame, for offsets of RANGE; key is the column of the order.
	startIn, endIn func(row, current uint32) (bool, error)
	key            *relationColumn
	nullsFirst     bool

	part   *windowPart
	i, g   int // the current row, and its group
	lo, hi int // its frame without the exclusion; hi may be less
	buf    [3]rowSpan
}

// maxFrameOffset bounds offsets of rows and groups, so that no sum overflows.
const maxFrameOffset = 1 << 40

// frames makes the frames of a window. An offset that is an error is one without rows, too.
func (w *windower) frames(p *plan.WindowColumn) (*frames, error) {
	f := &frames{Frame: p.Frame}
	if f.Mode == plan.Range && len(p.Order) == 1 {
		f.key, f.nullsFirst = &w.cols[p.Order[0].Column], p.Order[0].NullsFirst
	}
	for i, b := range []plan.Bound{p.Frame.Start, p.Frame.End} {
		if b.Kind != plan.Preceding && b.Kind != plan.Following {
			continue
		}
		var v vector.Value
		if b.Offset != nil {
			var err error
			if v, err = (&env{}).eval(b.Offset); err != nil {
				return nil, err
			}
			if v.Null {
				return nil, failed("frame offset must not be null")
			}
		}
		if f.Mode != plan.Range {
			if v.I < 0 {
				return nil, failed("frame offset must not be negative")
			}
			n := min(v.I, maxFrameOffset)
			if b.Kind == plan.Preceding {
				n = -n
			}
			*[]*int64{&f.start, &f.end}[i] = n
			continue
		}
		in, err := inRange(f.key, b, v, b.Kind == plan.Preceding != p.Order[0].Desc, i == 1 != p.Order[0].Desc)
		if err != nil {
			return nil, err
		}
		*[]*func(uint32, uint32) (bool, error){&f.startIn, &f.endIn}[i] = in
	}
	return f, nil
}

// inRange is the in_range function of a key's type and an offset v: whether a row's value is at most,
// or with less false at least, that of the current row and the offset before or behind. Neither is
// null.
func inRange(key *relationColumn, b plan.Bound, v vector.Value, before, less bool) (func(row, current uint32) (bool, error), error) {
	negative := failed("invalid preceding or following size in window function")
	within := func(c int) bool { return c == 0 || c < 0 == less }
	switch k := key.t.Kind; {
	case k.IsFloat():
		offset := math.Float64frombits(uint64(v.I))
		if math.IsNaN(offset) || offset < 0 {
			return nil, negative
		}
		return func(row, current uint32) (bool, error) {
			val, base := math.Float64frombits(uint64(key.v[row])), math.Float64frombits(uint64(key.v[current]))
			return floatInRange(val, base, offset, before, less), nil
		}, nil
	case key.varying():
		offset := numericOf(b, v)
		if offset.Unscaled.Sign() < 0 {
			return nil, negative
		}
		if before {
			offset.Unscaled = offset.Unscaled.Neg()
		}
		return func(row, current uint32) (bool, error) {
			sum, ok := key.decimals[key.v[current]].Add(offset)
			if !ok {
				return false, errNumeric
			}
			return within(compareDecimals(key.decimals[key.v[row]], sum)), nil
		}, nil
	case k.IsInt(), k == vector.Numeric:
		// The distance is compared with the offset: nothing overflows.
		offset, scale := numericOf(b, v), int16(0)
		if offset.Unscaled.Sign() < 0 {
			return nil, negative
		}
		if k == vector.Numeric {
			scale = key.t.Scale
		}
		n, exact := plan.FloorTo(offset, scale)
		size, huge := n.Uint64(), !n.IsUint64()
		distance := func(from, to int64) int { // less than the offset, as large, or greater
			if to < from || huge {
				return -1
			}
			c := cmp.Compare(uint64(to)-uint64(from), size)
			if c == 0 && !exact {
				return -1
			}
			return c
		}
		return func(row, current uint32) (bool, error) {
			if before {
				return within(-distance(key.v[row], key.v[current])), nil
			}
			return within(distance(key.v[current], key.v[row])), nil
		}, nil
	default:
		return func(row, current uint32) (bool, error) {
			sum, ok := b.From(k, plan.Moment(k, key.v[current]), before)
			if !ok {
				return false, failed("a window frame beyond the years 1 to 9999, or by a negative interval")
			}
			return within(cmp.Compare(plan.Moment(k, key.v[row]), sum)), nil
		}, nil
	}
}

// numericOf is an offset as a numeric.
func numericOf(b plan.Bound, v vector.Value) vector.Decimal {
	if b.Offset.Type().Kind == vector.Numeric {
		return v.Num
	}
	return vector.Decimal{Unscaled: vector.Int128Of(v.I)}
}

// floatInRange is in_range_float8_float8 (float.c): all NaNs are equal, and above all.
func floatInRange(val, base, offset float64, before, less bool) bool {
	switch {
	case math.IsNaN(val):
		return math.IsNaN(base) || !less
	case math.IsNaN(base):
		return less
	case math.IsInf(offset, 0) && math.IsInf(base, 0) && (base > 0) == before:
		return true // the sum would be NaN
	}
	sum := base + offset
	if before {
		sum = base - offset
	}
	if less {
		return val <= sum
	}
	return val >= sum
}

// begin goes to the place before a partition's first row.
func (f *frames) begin(p *windowPart) { f.part, f.i, f.g, f.lo, f.hi = p, -1, 0, 0, 0 }

// next goes to the next row; false behind the last one.
func (f *frames) next() (bool, error) {
	n := len(f.part.rows)
	if f.i++; f.i == n {
		return false, nil
	}
	if f.i == int(f.part.starts[f.g+1]) {
		f.g++
	}
	var err error
	switch s := f.Start; {
	case s.Kind == plan.UnboundedPreceding:
	case f.Mode == plan.Rows:
		f.lo = clamp(int64(f.i)+f.start, n)
	case f.startIn == nil:
		f.lo = f.groupStart(f.start)
	default:
		for f.lo < n && err == nil {
			var in bool
			if in, err = f.in(f.startIn, f.lo, !f.nullsFirst); in {
				break
			}
			f.lo++
		}
	}
	switch e := f.End; {
	case e.Kind == plan.UnboundedFollowing:
		f.hi = n
	case f.Mode == plan.Rows:
		f.hi = clamp(int64(f.i)+f.end+1, n)
	case f.endIn == nil:
		f.hi = f.groupStart(f.end + 1)
	default:
		for f.hi < n && err == nil {
			var in bool
			if in, err = f.in(f.endIn, f.hi, f.nullsFirst); !in {
				break
			}
			f.hi++
		}
	}
	return true, err
}

func clamp(i int64, n int) int { return int(max(min(i, int64(n)), 0)) }

// groupStart is where the group begins that is so many behind the current one.
func (f *frames) groupStart(by int64) int {
	return int(f.part.starts[clamp(int64(f.g)+by, len(f.part.starts)-1)])
}

// in asks whether row i of the partition is on the frame's side of a bound. Nulls are peers of each
// other, and behind, or before, all values: null is what a null says of the frame of a value.
func (f *frames) in(test func(row, current uint32) (bool, error), i int, null bool) (bool, error) {
	row, current := f.part.rows[i], f.part.rows[f.i]
	switch a, b := f.key.null(row), f.key.null(current); {
	case a && b:
		return true, nil
	case a:
		return null, nil
	case b:
		return !null, nil
	}
	return test(row, current)
}

// spans are the rows of the current frame.
func (f *frames) spans() []rowSpan {
	from, to := f.lo, max(f.lo, f.hi)
	cutFrom, cutTo := to, to
	switch f.Exclude {
	case plan.ExcludeCurrentRow:
		cutFrom, cutTo = f.i, f.i+1
	case plan.ExcludeGroup, plan.ExcludeTies:
		cutFrom, cutTo = int(f.part.starts[f.g]), int(f.part.starts[f.g+1])
	}
	out := f.buf[:0]
	if a := (rowSpan{from, min(to, cutFrom)}); a.from < a.to {
		out = append(out, a)
	}
	if f.Exclude == plan.ExcludeTies && f.i >= from && f.i < to {
		out = append(out, rowSpan{f.i, f.i + 1})
	}
	if b := (rowSpan{max(from, cutTo), to}); b.from < b.to {
		out = append(out, b)
	}
	return out
}
