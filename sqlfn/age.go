package sqlfn

import (
	"math"
	"strings"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// An age has months, days and a time, all of one sign. It is in a word that is seen nowhere: the months times ageMonth, and the
// microseconds of the rest, which are of no more than 31 days.
const ageMonth = 1 << 42

var ageParts = []string{"year", "month", "day", "hour", "minute", "second", "milliseconds", "microseconds", "epoch"}

// AgeOf is age(timestamp, timestamp), AgeExtract and AgePart the fields of its word. They are no entries of the table: with the server
// an age is an interval.
var (
	AgeOf = &Function{
		Name: "age", OID: 2058, Result: vector.Int8,
		Args: []Param{{Kind: vector.Timestamp}, {Kind: vector.Timestamp}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			v, err := age(args[0].I, args[1].I)
			return vector.Value{I: v}, err
		},
		Kernel: func(c Call, i int) *Kernel {
			k := &Kernel{First: math.MinInt64 + 1, Last: math.MaxInt64 - 1, Fails: true, Min: math.MinInt64, Max: math.MaxInt64}
			if by := c.Args[1-i].Const.I; i == 0 {
				k.F = func(v int64) (int64, error) { return age(v, by) }
			} else {
				k.F = func(v int64) (int64, error) { return age(by, v) }
			}
			return k
		},
	}
	AgeExtract = &Function{
		Name: "extract", OID: 6204, Result: vector.Numeric, Digits: 12, Total: true,
		Args: []Param{{Kind: vector.Text, Constants: ageParts, AnyCase: true}, {Kind: vector.Int8}},
		Type: func(c Call) vector.Type {
			return vector.NumericType(extractScale(strings.ToLower(c.Args[0].Const.Str), vector.Interval))
		},
		Eval: func(args []vector.Value) (vector.Value, error) {
			field := strings.ToLower(args[0].Str)
			return vector.Value{Num: vector.Decimal{Unscaled: vector.Int128Of(ageField(field, args[1].I)), Scale: extractScale(field, vector.Interval)}}, nil
		},
		Kernel: func(c Call, i int) *Kernel {
			if i != 1 {
				return nil
			}
			field := strings.ToLower(c.Args[0].Const.Str)
			k := &Kernel{F: func(v int64) (int64, error) { return ageField(field, v), nil }, First: math.MinInt64, Last: math.MaxInt64}
			k.Min, k.Max = ageBounds(field)
			return k
		},
	}
	AgePart = &Function{
		Name: "date_part", OID: 1172, Result: vector.Float8, Total: true,
		Args: []Param{{Kind: vector.Text, Constants: ageParts, AnyCase: true}, {Kind: vector.Int8}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.Value{I: int64(math.Float64bits(agePart(strings.ToLower(args[0].Str), args[1].I)))}, nil
		},
	}
)

// age is timestamp_age (timestamp.c): the difference of the fields, where a day that is borrowed is of the month of the earlier
// moment.
func age(a, b int64) (int64, error) {
	const first, last = sqltype.TimestampFirst, sqltype.TimestampLast
	if a < first || a > last || b < first || b > last {
		return 0, failed("age() of infinite timestamps")
	}
	early, late, sign := b, a, int64(1)
	if a < b {
		early, late, sign = a, b, -1
	}
	d1, d2 := sqltype.FloorDiv(early, dayMicros), sqltype.FloorDiv(late, dayMicros)
	y1, m1, dom1 := sqltype.Civil(d1)
	y2, m2, dom2 := sqltype.Civil(d2)
	months := (y2-y1)*12 + int64(m2-m1)
	days, micros := int64(dom2-dom1), late-d2*dayMicros-(early-d1*dayMicros)
	if micros < 0 {
		days, micros = days-1, micros+dayMicros
	}
	for ; days < 0; months-- {
		next := sqltype.DayOf(y1+int64(m1/12), m1%12+1, 1)
		days += next - sqltype.DayOf(y1, m1, 1)
	}
	if months >= 1<<20 {
		return 0, failed("age() of so many years")
	}
	return sign * (months*ageMonth + days*dayMicros + micros), nil
}

// ageField is a field of an age, unscaled at extractScale.
func ageField(field string, v int64) int64 {
	months, rest := v/ageMonth, v%ageMonth
	switch field {
	case "year":
		return months / 12
	case "month":
		return months % 12
	case "epoch": // of years of 365.25 days, and months of 30
		return (months/12*1461+months%12*120)*(dayMicros/4) + rest
	}
	return intervalField(field, rest/dayMicros, rest%dayMicros)
}

func agePart(field string, v int64) float64 {
	months, rest := v/ageMonth, v%ageMonth
	switch field {
	case "year", "month":
		return float64(ageField(field, v))
	case "epoch":
		f := float64(rest%dayMicros) / secondMicros
		f += float64(365.25 * 86400 * float64(months/12))
		f += float64(30 * 86400 * float64(months%12))
		return f + float64(86400*float64(rest/dayMicros))
	}
	return intervalPart(field, rest)
}

func ageBounds(field string) (lo, hi int64) {
	switch field {
	case "year":
		return -1 << 20, 1 << 20
	case "month":
		return -11, 11
	case "day":
		return -31, 31
	case "epoch":
		return -math.MaxInt64, math.MaxInt64
	}
	lo, hi, _ = intervalBounds(field)
	return lo, hi
}
