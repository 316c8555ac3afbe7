package plan

import (
	"math"
	"slices"
	"testing"

	"pgaccel/vector"
)

// TestSeriesValues: generate_series at the ends of its types, and by intervals, as PostgreSQL 15
// computes it.
func TestSeriesValues(t *testing.T) {
	day := int64(microsPerDay)
	integers := &Series{Step: Const{vector.Int(vector.Int8, 0)}}
	by := func(v Interval) *Series { return &Series{By: v} }
	jan31 := 30 * day // 2000-01-31
	for _, c := range []struct {
		s              *Series
		from, to, step int64
		want           []int64
		ok             bool
	}{
		{integers, 1, 3, 1, []int64{1, 2, 3}, true},
		{integers, 3, 1, 1, nil, true},
		{integers, 3, -1, -2, []int64{3, 1, -1}, true},
		{integers, 5, 5, -1, []int64{5}, true},
		{integers, 1, 1, 0, nil, false},
		{integers, math.MaxInt64 - 1, math.MaxInt64, 1, []int64{math.MaxInt64 - 1, math.MaxInt64}, true},
		{integers, math.MinInt64 + 2, math.MinInt64, -2, []int64{math.MinInt64 + 2, math.MinInt64}, true},
		{integers, math.MinInt64, math.MaxInt64, math.MaxInt64, []int64{math.MinInt64, -1, math.MaxInt64 - 1}, true},
		{integers, 0, maxSeries, 1, nil, false},
		{by(Interval{Days: 1}), 0, 2 * day, 0, []int64{0, day, 2 * day}, true},
		{by(Interval{Months: 1}), jan31, 120 * day, 0, []int64{jan31, 59 * day, 88 * day, 119 * day}, true}, // the 31st, then the 29th
		{by(Interval{Months: -1, Days: 31}), 0, day, 0, nil, false},                                         // a step of nothing, without an end
		{by(Interval{Months: 1, Days: -30}), 0, day, 0, nil, false},
		{by(Interval{Micros: -day}), 0, -day, 0, []int64{0, -day}, true},
		{by(Interval{Days: 1}), 0, math.MaxInt64, 0, nil, false},
	} {
		got, ok := c.s.Values(c.from, c.to, c.step)
		if ok != c.ok || ok && !slices.Equal(got, c.want) {
			t.Errorf("%d to %d by %d %v: %v %v, want %v %v", c.from, c.to, c.step, c.s.By, got, ok, c.want, c.ok)
		}
	}
}
