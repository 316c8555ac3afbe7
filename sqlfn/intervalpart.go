package sqlfn

import (
	"math"
	"strings"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

var (
	intervalParts = []string{"year", "quarter", "month", "day", "hour", "minute", "second", "milliseconds", "microseconds", "epoch"}
	intervalUnits = []string{"second", "minute", "hour", "day", "month", "quarter", "year"}
	intervalSpans = []string{"00:00:00", "00:00:00.000001", "-00:00:00.000001", "12:34:56.789012", "-23:59:59.999999", "1 day", "-1 days", "-1 days -00:00:01",
		"59 days 23:59:59.5", "-365 days -12:00:00", "106751991 days", "-106751991 days"}
)

// intervalField is a field of an interval without months, unscaled at extractScale (interval_part_common in timestamp.c).
func intervalField(field string, days, micros int64) int64 {
	switch field {
	case "year", "month":
		return 0
	case "quarter":
		return 1
	case "day":
		return days
	case "hour":
		return micros / hourMicros
	case "minute":
		return micros / minuteMicros % 60
	case "second", "milliseconds", "microseconds":
		return micros % minuteMicros
	case "epoch":
		return days*dayMicros + micros
	}
	panic("BUG: extract of field " + field)
}

func intervalBounds(field string) (lo, hi int64, monotone bool) {
	switch field {
	case "quarter":
		return 1, 1, false
	case "hour":
		return -23, 23, false
	case "minute":
		return -59, 59, false
	case "second", "milliseconds", "microseconds":
		return 1 - minuteMicros, minuteMicros - 1, false
	}
	return 0, 0, true
}

// intervalPart is a field in double precision.
func intervalPart(field string, v int64) float64 {
	days, micros := v/dayMicros, v%dayMicros
	whole, rest := float64(micros%minuteMicros/secondMicros), float64(micros%secondMicros)
	switch field {
	case "second":
		return whole + rest/secondMicros
	case "milliseconds":
		return float64(whole*1000) + rest/1000
	case "epoch":
		return float64(micros)/secondMicros + float64(86400*float64(days))
	}
	return float64(intervalField(field, days, micros))
}

// truncIntervalOf is date_trunc of an interval: what is cut off has the sign of the rest.
func truncIntervalOf() Function {
	cut := func(unit string, v int64) int64 {
		switch unit {
		case "second", "minute", "hour", "day":
			return v - v%unitMicros(unit)
		}
		return 0
	}
	return Function{
		Name: "date_trunc", OID: 1218, Result: vector.Interval, Total: true,
		Args:    []Param{{Kind: vector.Text, Constants: intervalUnits, AnyCase: true}, {Kind: vector.Interval}},
		Samples: samplesOf(vector.Interval),
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.Value{I: cut(strings.ToLower(args[0].Str), args[1].I)}, nil
		},
		Kernel: func(c Call, i int) *Kernel {
			if i != 1 {
				return nil
			}
			unit := strings.ToLower(c.Args[0].Const.Str)
			return &Kernel{F: func(v int64) (int64, error) { return cut(unit, v), nil }, First: math.MinInt64, Last: math.MaxInt64, Monotone: true}
		},
	}
}

// IntervalTimes is a constant interval without months times a number (interval_mul). It is no entry of the table: the result prints
// otherwise than the server's, whose time may be of more than a day, and is only added.
var IntervalTimes = &Function{
	Name: "interval_mul", OID: 1618, Result: vector.Interval,
	Args: []Param{{Kind: vector.Text, Interval: true, Constants: intervalSamples, Also: withoutMonths}, {Kind: vector.Float8}},
	Eval: func(args []vector.Value) (vector.Value, error) {
		_, days, micros, _ := intervalOf(args[0].Str)
		v, err := intervalTimes(days, micros, math.Float64frombits(uint64(args[1].I)))
		return vector.Value{I: v}, err
	},
	Kernel: func(c Call, i int) *Kernel {
		if i != 1 {
			return nil
		}
		_, days, micros := intervalFields(c.Args[0].Const.Str)
		return &Kernel{First: math.MinInt64, Last: math.MaxInt64, Fails: true, Min: math.MinInt64, Max: math.MaxInt64,
			F: func(v int64) (int64, error) { return intervalTimes(days, micros, math.Float64frombits(uint64(v))) }}
	},
}

func withoutMonths(s string) bool {
	months, _, _, ok := intervalOf(s)
	return ok && months == 0
}

// intervalTimes refuses parts of days, whose seconds the server rounds twice.
func intervalTimes(days, micros int64, by float64) (int64, error) {
	d, t := float64(days)*by, math.RoundToEven(float64(micros)*by)
	if !(math.Abs(d) <= math.MaxInt32) || !(math.Abs(t) < 1<<62) {
		return 0, failed("interval out of range")
	}
	if d != math.Trunc(d) {
		return 0, failed("a part of an interval's days")
	}
	return int64(d)*dayMicros + int64(t), nil
}

// dateBinOf is date_bin(stride, source, origin). Of a time before the origin at which a bin begins it has no result: releases differ
// in which bin that is.
func dateBinOf(oid uint32, k vector.Kind) Function {
	strides := []string{IntervalText(0, 0, 900e6), IntervalText(0, 1, 0), IntervalText(0, 7, -1), IntervalText(0, 0, 1)}
	stride := func(s string) (int64, bool) {
		months, days, micros, ok := intervalOf(s)
		return days*dayMicros + micros, ok && months == 0 && days*dayMicros+micros > 0
	}
	return Function{
		Name: "date_bin", OID: oid, Result: k,
		Args: []Param{{Kind: vector.Text, Interval: true, Constants: strides, Also: func(s string) bool {
			_, ok := stride(s)
			return ok
		}}, {Kind: k}, {Kind: k}},
		Samples: [][]string{nil, timestampSamples, {"2001-01-01 00:00:00", "2024-03-31 12:34:56.789012", "infinity"}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			by, _ := stride(args[0].Str)
			v, err := dateBin(by, args[1].I, args[2].I)
			return vector.Value{I: v}, err
		},
		Kernel: func(c Call, i int) *Kernel {
			if i != 1 {
				return nil
			}
			by, _ := stride(c.Args[0].Const.Str)
			origin := c.Args[2].Const.I
			return &Kernel{F: func(v int64) (int64, error) { return dateBin(by, v, origin) }, First: math.MinInt64 + 1, Last: math.MaxInt64 - 1,
				Range: func(lo, hi int64) (int64, int64, error) {
					if _, err := dateBin(by, hi, origin); err != nil || lo < origin {
						return 0, 0, failed("date_bin() before the origin")
					}
					return max(origin, lo-by), hi, nil
				}}
		},
	}
}

func dateBin(by, v, origin int64) (int64, error) {
	const first, last = sqltype.TimestampFirst, sqltype.TimestampLast
	if v < first || v > last || origin < first || origin > last || origin < 0 && v > math.MaxInt64+origin || origin > 0 && v < math.MinInt64+origin {
		return 0, failed("date_bin() of infinite or distant timestamps")
	}
	since := v - origin
	rest := since % by
	if since < 0 && by > 1 {
		if rest == 0 {
			return 0, failed("date_bin() of the beginning of a bin before the origin")
		}
		rest += by
	}
	if v-rest < first {
		return 0, failed("timestamp out of range")
	}
	return v - rest, nil
}
