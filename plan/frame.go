package plan

import (
	"errors"
	"math"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Frame says which rows of a partition, in the window's order, a value of a row is computed of: those
// from Start to End, but for Exclude. Peers are rows that the order does not tell apart.
type Frame struct {
	Mode       FrameMode
	Start, End Bound
	Exclude    Exclusion
}

// defaultFrame is RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW: up to the last peer.
var defaultFrame = Frame{End: Bound{Kind: CurrentRow}}

// WholeFrame is all rows of the partition.
var WholeFrame = Frame{End: Bound{Kind: UnboundedFollowing}}

// FrameMode says what the offsets of a frame count, and what CURRENT ROW is.
type FrameMode uint8

// The modes.
const (
	Range  FrameMode = iota // values of the one key of the order; the current row's peers
	Rows                    // rows; the row
	Groups                  // groups of peers; the peers
)

// Bound is where a frame begins, or ends. An offset that is negative or null is an error, whether
// there are rows or not.
type Bound struct {
	Kind BoundKind
	// Offset, of Preceding and Following, is the same for all rows: an integer of Rows and Groups; of
	// Range what the key's in_range function takes (nil where that is an interval): an integer of
	// integers, a number of numerics, Float8 of floats.
	Offset Expr
	// By is the offset of dates, times and timestamps. TimestampTZ counts days in UTC.
	By Interval
}

// BoundKind is a kind of Bound.
type BoundKind uint8

// The bounds, in their order.
const (
	UnboundedPreceding BoundKind = iota
	Preceding
	CurrentRow
	Following
	UnboundedFollowing
)

// Exclusion says which rows are left out of a frame.
type Exclusion uint8

// The exclusions.
const (
	ExcludeNothing Exclusion = iota
	ExcludeCurrentRow
	ExcludeGroup // the current row and its peers
	ExcludeTies  // its peers alone
)

func (b Bound) offset() bool { return b.Kind == Preceding || b.Kind == Following }

// Cuts reports whether a frame may end between peers: then their order matters.
func (f Frame) Cuts() bool {
	return f.Mode == Rows && (f.Start.Kind != UnboundedPreceding || f.End.Kind != UnboundedFollowing)
}

// check says what is wrong with a frame of rows in an order, nil where nothing is.
func (f Frame) check(order []Order) error {
	for _, b := range []Bound{f.Start, f.End} {
		switch {
		case !b.offset():
			if b.Offset != nil || b.By != (Interval{}) {
				return errors.New("an offset of a bound that has none")
			}
		case f.Mode != Range:
			if b.Offset == nil || !b.Offset.Type().Kind.IsInt() {
				return errors.New("an offset that counts no rows")
			}
		case len(order) != 1:
			return errors.New("a range of other than one key")
		default:
			k := order[0].Expr.Type().Kind
			if moments := k == vector.Date || k == vector.Time || k == vector.Timestamp || k == vector.TimestampTZ; moments != (b.Offset == nil) {
				return errors.New("an offset of another type than the key's")
			}
		}
	}
	return nil
}

// Moment is a date, time or timestamp in microseconds, as in_range compares them; infinite ones are
// the least and the greatest integer.
func Moment(k vector.Kind, v int64) int64 {
	if k != vector.Date {
		return v
	}
	switch v {
	case sqltype.DateNegInfinity:
		return math.MinInt64
	case sqltype.DateInfinity:
		return math.MaxInt64
	}
	return v * microsPerDay
}

// From returns what a frame's bound is compared with: the current row's Moment and the offset behind,
// or before. ok is false where the server reports an error, and beyond the years 1 to 9999. An
// infinite one stays; of an offset to times the time alone counts (in_range_time_interval).
func (b Bound) From(k vector.Kind, moment int64, before bool) (sum int64, ok bool) {
	by := b.By
	if before {
		by = Interval{-by.Months, -by.Days, -by.Micros}
	}
	switch {
	case k == vector.Time:
		return moment + by.Micros, b.By.Micros >= 0
	case b.By.Sign() < 0:
		return 0, false
	case moment == math.MinInt64 || moment == math.MaxInt64:
		return moment, true
	}
	return by.AddTo(moment, true)
}
