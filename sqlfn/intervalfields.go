package sqlfn

import (
	bigendian "encoding/binary"
	"math"
	"slices"
	"strings"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Functions of intervals of any fields (src/backend/utils/adt/timestamp.c): of the opaque type, which columns have that hold others than
// days of 24 hours and a time of the same sign, and results that may be others. They are no entries of the table, where an
// interval is one of vector.Interval. Their OIDs tell them apart in plans: none is a function's in a server.
const (
	oidIntervalOf = math.MaxUint32 - iota
	oidIntervalKey
	oidIntervalWordKey
	oidIntervalMonths
	oidIntervalDays
	oidIntervalMicros
	oidIntervalWordDays
	oidIntervalWordMicros
	oidIntervalSum
	oidIntervalMean
	oidIntervalPlus
	oidIntervalMinus
	oidIntervalNegated
	oidIntervalTimesFloat
	oidIntervalOverFloat
	oidTimestampPlus
	oidTimestampTZPlus
	oidIntervalExtract
	oidIntervalPart
	oidMoneyCents
	oidMoneySum
	oidSizeOfInt4
	oidSizeOfInt8
	oidBitAsVarBit
	oidVarBitAsBit
)

var (
	// IntervalOf is an interval of vector.Interval as one of the opaque type.
	IntervalOf = &Function{Name: "interval", OID: oidIntervalOf, Result: vector.Opaque, Type: opaqueInterval, Total: true, Args: []Param{{Kind: vector.Interval}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			return newInterval(0, args[0].I/dayMicros, args[0].I%dayMicros)
		}}
	// IntervalKey and IntervalWordKey are bytes that sort as intervals do, and are equal where these are (interval_cmp_value).
	IntervalKey = &Function{Name: "interval", OID: oidIntervalKey, Result: vector.Bytea, Total: true, Args: []Param{{Kind: vector.Opaque}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			months, days, micros := sqltype.IntervalFields(args[0].Str)
			return spanKey(vector.Mul64(months*30+days, dayMicros).Add(vector.Int128Of(micros))), nil
		}}
	IntervalWordKey = &Function{Name: "interval", OID: oidIntervalWordKey, Result: vector.Bytea, Total: true, Args: []Param{{Kind: vector.Interval}},
		Eval: func(args []vector.Value) (vector.Value, error) { return spanKey(vector.Int128Of(args[0].I)), nil }}

	// The fields, of which sums are made.
	IntervalMonths = intervalFieldOf("months", oidIntervalMonths, vector.Int4, func(months, days, micros int64) int64 { return months })
	IntervalDays   = intervalFieldOf("days", oidIntervalDays, vector.Int4, func(months, days, micros int64) int64 { return days })
	IntervalMicros = intervalFieldOf("microseconds", oidIntervalMicros, vector.Int8, func(months, days, micros int64) int64 { return micros })

	IntervalWordDays   = intervalWordFieldOf("days", oidIntervalWordDays, vector.Int4, -math.MaxInt32, math.MaxInt32, true, func(v int64) int64 { return v / dayMicros })
	IntervalWordMicros = intervalWordFieldOf("microseconds", oidIntervalWordMicros, vector.Int8, 1-dayMicros, dayMicros-1, false, func(v int64) int64 { return v % dayMicros })

	// IntervalSum is sum() of the sums of the fields, each before that of its sizes (SizeOfInt8). IntervalMean is avg(), of the number of
	// values, too.
	IntervalSum = &Function{Name: "sum", OID: oidIntervalSum, Result: vector.Opaque, Type: opaqueInterval, Args: fieldSums,
		Eval: func(args []vector.Value) (vector.Value, error) {
			return newInterval(args[0].I, args[2].I, args[4].I)
		}}
	IntervalMean = &Function{Name: "avg", OID: oidIntervalMean, Result: vector.Opaque, Type: opaqueInterval, Args: append(fieldSums[:len(fieldSums):len(fieldSums)], Param{Kind: vector.Int8}),
		Eval: func(args []vector.Value) (vector.Value, error) {
			n := float64(args[len(fieldSums)].I)
			return scaled(args[0].I, args[2].I, args[4].I, func(v float64) float64 { return v / n })
		}}

	IntervalPlus  = ofIntervals("interval_pl", oidIntervalPlus, 1)
	IntervalMinus = ofIntervals("interval_mi", oidIntervalMinus, -1)

	IntervalNegated = &Function{Name: "interval_um", OID: oidIntervalNegated, Result: vector.Opaque, Type: opaqueInterval, Args: []Param{{Kind: vector.Opaque}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			months, days, micros := sqltype.IntervalFields(args[0].Str)
			if micros == math.MinInt64 {
				return vector.NullValue, failed("interval out of range")
			}
			return newInterval(-months, -days, -micros)
		}}

	IntervalTimesFloat = byFloat("interval_mul", oidIntervalTimesFloat, func(v, by float64) float64 { return v * by })
	IntervalOverFloat  = byFloat("interval_div", oidIntervalOverFloat, func(v, by float64) float64 { return v / by })

	// TimestampPlus and TimestampTZPlus add an interval to a moment.
	TimestampPlus   = momentPlus("timestamp_pl_interval", oidTimestampPlus, vector.Timestamp)
	TimestampTZPlus = momentPlus("timestamptz_pl_interval", oidTimestampTZPlus, vector.TimestampTZ)

	// IntervalExtract and IntervalPart are fields, extract()'s and date_part()'s.
	IntervalExtract = &Function{Name: "extract", OID: oidIntervalExtract, Result: vector.Numeric, Digits: 12, Args: []Param{{Kind: vector.Text, Constants: extractedParts, AnyCase: true}, {Kind: vector.Opaque}},
		Type: func(c Call) vector.Type {
			return vector.NumericType(extractScale(strings.ToLower(c.Args[0].Const.Str), vector.Interval))
		},
		Eval: func(args []vector.Value) (vector.Value, error) {
			field := strings.ToLower(args[0].Str)
			v, ok := fieldOfInterval(field, args[1].Str)
			if !ok {
				return vector.NullValue, failed("extract() of an interval of so many years")
			}
			return vector.Value{Num: vector.Decimal{Unscaled: vector.Int128Of(v), Scale: extractScale(field, vector.Interval)}}, nil
		}}
	IntervalPart = &Function{Name: "date_part", OID: oidIntervalPart, Result: vector.Float8, Args: []Param{{Kind: vector.Text, Constants: extractedParts, AnyCase: true}, {Kind: vector.Opaque}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			v, ok := partOfInterval(strings.ToLower(args[0].Str), args[1].Str)
			if !ok {
				return vector.NullValue, failed("date_part() of an interval of so many years")
			}
			return vector.Value{I: int64(math.Float64bits(v))}, nil
		}}
)

// extractedParts are those fields that mean the same in every release: quarters of negative months do not.
var extractedParts = []string{"year", "month", "day", "hour", "minute", "second", "milliseconds", "microseconds", "epoch"}

// fieldSums are the sums of months, days and microseconds, each before the sum of its sizes.
var fieldSums = slices.Repeat([]Param{{Kind: vector.Int8}}, 6)

func opaqueInterval(Call) vector.Type { return sqltype.OpaqueIntervalType }

func newInterval(months, days, micros int64) (vector.Value, error) {
	raw, ok := sqltype.OpaqueInterval(months, days, micros)
	if !ok {
		return vector.NullValue, failed("interval out of range")
	}
	return vector.Value{Str: raw}, nil
}

func spanKey(v vector.Int128) vector.Value {
	b := bigendian.BigEndian.AppendUint64(make([]byte, 0, 16), uint64(v.Hi)^1<<63)
	return vector.Value{Str: string(bigendian.BigEndian.AppendUint64(b, v.Lo))}
}

func intervalFieldOf(name string, oid uint32, k vector.Kind, f func(months, days, micros int64) int64) *Function {
	return &Function{Name: name, OID: oid, Result: k, Total: true, Args: []Param{{Kind: vector.Opaque}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.Value{I: f(sqltype.IntervalFields(args[0].Str))}, nil
		}}
}

func intervalWordFieldOf(name string, oid uint32, k vector.Kind, least, greatest int64, monotone bool, f func(v int64) int64) *Function {
	return &Function{Name: name, OID: oid, Result: k, Total: true, Args: []Param{{Kind: vector.Interval}},
		Eval: func(args []vector.Value) (vector.Value, error) { return vector.Value{I: f(args[0].I)}, nil },
		Kernel: func(Call, int) *Kernel {
			return &Kernel{F: func(v int64) (int64, error) { return f(v), nil }, First: math.MinInt64, Last: math.MaxInt64, Monotone: monotone, Min: least, Max: greatest}
		}}
}

func ofIntervals(name string, oid uint32, sign int64) *Function {
	return &Function{Name: name, OID: oid, Result: vector.Opaque, Type: opaqueInterval, Args: []Param{{Kind: vector.Opaque}, {Kind: vector.Opaque}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			months, days, micros := sqltype.IntervalFields(args[0].Str)
			m, d, t := sqltype.IntervalFields(args[1].Str)
			micros, ok := vector.Int128Of(micros).Add(vector.Mul64(t, sign)).Int64()
			if !ok {
				return vector.NullValue, failed("interval out of range")
			}
			return newInterval(months+sign*m, days+sign*d, micros)
		}}
}

func byFloat(name string, oid uint32, f func(v, by float64) float64) *Function {
	return &Function{Name: name, OID: oid, Result: vector.Opaque, Type: opaqueInterval, Args: []Param{{Kind: vector.Opaque}, {Kind: vector.Float8}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			by := floatOf(args[1].I)
			months, days, micros := sqltype.IntervalFields(args[0].Str)
			return scaled(months, days, micros, func(v float64) float64 { return f(v, by) })
		}}
}

// scaled is interval_mul and interval_div: what is left of months goes to the days, and what is left of these to the time. Results out of
// range are errors, or anything, by the server's version.
func scaled(months, days, micros int64, by func(v float64) float64) (vector.Value, error) {
	const most = math.MaxInt32 - 1
	m, d := by(float64(months)), by(float64(days))
	if !(math.Abs(m) < most && math.Abs(d) < most) {
		return vector.NullValue, failed("interval out of range")
	}
	wholeMonths, wholeDays := math.Trunc(m), math.Trunc(d)
	restDays := roundedMicros(float64((m - wholeMonths) * 30))
	restSeconds := roundedMicros(float64((d - wholeDays + restDays - math.Trunc(restDays)) * 86400))
	if math.Abs(restSeconds) >= 86400 {
		more := math.Trunc(restSeconds / 86400)
		wholeDays += more
		restSeconds -= float64(more * 86400)
	}
	wholeDays += math.Trunc(restDays)
	t := math.RoundToEven(by(float64(micros)) + float64(restSeconds*secondMicros))
	if !(math.Abs(wholeDays) < most && math.Abs(t) < 1<<63) {
		return vector.NullValue, failed("interval out of range")
	}
	return newInterval(int64(wholeMonths), int64(wholeDays), int64(t))
}

// roundedMicros is TSROUND of utils/timestamp.h.
func roundedMicros(v float64) float64 { return math.RoundToEven(v*secondMicros) / secondMicros }

// momentPlus adds the months to a local time, then the days, and then the time (timestamptz_pl_interval_internal).
func momentPlus(name string, oid uint32, k vector.Kind) *Function {
	f := &Function{Name: name, OID: oid, Result: k, Args: []Param{{Kind: k}, {Kind: vector.Opaque}}, Zone: zoneOf(k)}
	plus := func(add func(v, months, days, micros int64) (int64, error)) func(args []vector.Value) (vector.Value, error) {
		return func(args []vector.Value) (vector.Value, error) {
			months, days, micros := sqltype.IntervalFields(args[1].Str)
			if max(months, -months) > 100_000_000 || max(days, -days) > 200_000_000 {
				return vector.NullValue, failed("timestamp out of range")
			}
			v, err := add(args[0].I, months, days, micros)
			return vector.Value{I: v}, err
		}
	}
	f.Eval = plus(addInterval)
	f.in = func(f *Function, z *sqltype.Zone) {
		f.Eval = plus(func(v, months, days, micros int64) (int64, error) { return addIntervalIn(z, v, months, days, micros) })
	}
	return f
}

// mostYears bounds intervals of which fields are read: the epoch is in 64 bits then.
const mostYears = 10_000

func fieldOfInterval(field, raw string) (v int64, ok bool) {
	months, days, micros := sqltype.IntervalFields(raw)
	if max(months, -months) > 12*mostYears || max(days, -days) > 366*mostYears || micros < -mostYears*366*dayMicros || micros > mostYears*366*dayMicros {
		return 0, false
	}
	switch field {
	case "year":
		return months / 12, true
	case "month":
		return months % 12, true
	case "epoch": // of years of 365.25 days, and months of 30
		return (months/12*1461+months%12*120+days*4)*(dayMicros/4) + micros, true
	}
	return intervalField(field, days, micros), true
}

// partOfInterval is a field in double precision.
func partOfInterval(field, raw string) (v float64, ok bool) {
	n, ok := fieldOfInterval(field, raw)
	months, days, micros := sqltype.IntervalFields(raw)
	whole, rest := float64(micros%minuteMicros/secondMicros), float64(micros%secondMicros)
	switch {
	case !ok:
		return 0, false
	case field == "second":
		return whole + rest/secondMicros, true
	case field == "milliseconds":
		return float64(whole*1000) + rest/1000, true
	case field == "epoch":
		f := float64(micros) / secondMicros
		f += float64(365.25 * 86400 * float64(months/12))
		f += float64(30 * 86400 * float64(months%12))
		return f + float64(86400*float64(days)), true
	}
	return float64(n), true
}
