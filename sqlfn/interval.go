package sqlfn

import (
	"fmt"
	"slices"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// IntervalText writes an interval as functions here take it, and the server, whatever IntervalStyle is.
func IntervalText(months, days, micros int64) string {
	return fmt.Sprintf("%+d mons %+d days %+d microseconds", months, days, micros)
}

// intervalOf reads what IntervalText writes, of fields that are not beyond maxInterval.
func intervalOf(s string) (months, days, micros int64, ok bool) {
	if _, err := fmt.Sscanf(s, "%d mons %d days %d microseconds", &months, &days, &micros); err != nil || s != IntervalText(months, days, micros) {
		return 0, 0, 0, false
	}
	within := func(v, most int64) bool { return -most <= v && v <= most }
	return months, days, micros, within(months, 100_000_000) && within(days, 10_000_000) && within(micros, 1e16)
}

var intervalSamples = []string{IntervalText(0, 1, 0), IntervalText(0, -1, 0), IntervalText(1, 0, 0), IntervalText(-1, 0, 0), IntervalText(0, 0, 5400e6), IntervalText(0, 0, -1),
	IntervalText(13, -2, 3), IntervalText(-12, 1, -1), IntervalText(0, 400, -86400e6), IntervalText(0, 0, 0), IntervalText(1200, 0, 0)}

// plusIntervalOf is timestamp + interval of PostgreSQL's timestamp.c (timestamp_pl_interval): first the months, cut to the
// last day of the month, then the days, then the time, each within the range of the type.
func plusIntervalOf(oid uint32, of vector.Kind) Function {
	name := "timestamp_pl_interval"
	if of == vector.TimestampTZ {
		name = "timestamptz_pl_interval"
	}
	return Function{
		Name: name, OID: oid, Result: of, Zone: zoneOf(of), in: plusIntervalIn,
		Args: []Param{{Kind: of}, {Kind: vector.Text, Interval: true, Constants: intervalSamples, Also: func(s string) bool {
			_, _, _, ok := intervalOf(s)
			return ok
		}}},
		Samples: [][]string{slices.Concat(timestampSamples, []string{"2024-01-31 01:00:00", "2023-01-30 23:00:00", "4713-01-01 00:00:00 BC"}), nil},
		Eval: func(args []vector.Value) (vector.Value, error) {
			months, days, micros, _ := intervalOf(args[1].Str)
			v, err := addInterval(args[0].I, months, days, micros)
			return vector.Value{I: v}, err
		},
		Kernel: func(c Call, i int) *Kernel {
			if i != 0 {
				return nil
			}
			return plusKernel(intervalFields(c.Args[1].Const.Str))
		},
	}
}

func intervalFields(s string) (months, days, micros int64) {
	months, days, micros, _ = intervalOf(s)
	return months, days, micros
}

func plusKernel(months, days, micros int64) *Kernel {
	k := &Kernel{F: func(v int64) (int64, error) { return addInterval(v, months, days, micros) },
		First: sqltype.TimestampFirst, Last: sqltype.TimestampLast}
	if months != 0 {
		k.Range = plusRange(months, days, micros, 0)
		k.Shift = func(v int64) (int64, int64) { return unitAround("day", v) }
	} else {
		k.Shift = func(int64) (int64, int64) { return sqltype.TimestampFirst, sqltype.TimestampLast }
		all := days*dayMicros + micros
		k.Monotone = true
		k.First -= min(0, days*dayMicros, all)
		k.Last -= max(0, days*dayMicros, all)
	}
	return k
}

// plusRange bounds the sums of times and an interval, and has an error where one may be out of range, also by the steps between
// or as far as margin.
func plusRange(months, days, micros, margin int64) func(lo, hi int64) (int64, int64, error) {
	const most = 12 * 250_000 // of months, whose days 64 bits hold
	months = max(-most, min(months, most))
	up := max(0, months)*31*dayMicros + max(0, days*dayMicros) + max(0, micros) + margin
	down := max(0, -months)*31*dayMicros + max(0, -days*dayMicros) + max(0, -micros) + margin
	return func(lo, hi int64) (int64, int64, error) {
		if lo < sqltype.TimestampFirst+down || hi > sqltype.TimestampLast-up {
			return 0, 0, failed("timestamp out of range")
		}
		return lo - down, hi + up, nil
	}
}

// The OIDs of timestamp + interval and timestamptz + interval.
const (
	OIDTimestampPlusInterval   = 2032
	OIDTimestampTZPlusInterval = 1189
)

func addInterval(v, months, days, micros int64) (int64, error) {
	const first, last = sqltype.TimestampFirst, sqltype.TimestampLast
	if v < first || v > last {
		return 0, failed("an interval added to an infinite date")
	}
	out := failed("timestamp out of range")
	day := sqltype.FloorDiv(v, dayMicros)
	rest := v - day*dayMicros
	if months != 0 {
		y, m, d := sqltype.Civil(day)
		month := y*12 + int64(m) - 1 + months
		year := sqltype.FloorDiv(month, 12)
		if year < -4713 || year > 294276 {
			return 0, out
		}
		number := int(month-year*12) + 1
		end := sqltype.DayOf(year+int64(number/12), number%12+1, 1) // of the next month
		start := sqltype.DayOf(year, number, 1)
		day = start + min(int64(d)-1, end-start-1)
	}
	for _, step := range [2]int64{0, days} {
		if day += step; day < sqltype.FloorDiv(first, dayMicros) || day > sqltype.FloorDiv(last, dayMicros) {
			return 0, out
		}
	}
	v = day*dayMicros + rest
	if v < first || micros > 0 && v > last-micros || micros < 0 && v < first-micros {
		return 0, out
	}
	return v + micros, nil
}
