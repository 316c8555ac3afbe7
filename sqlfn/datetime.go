package sqlfn

import (
	"math"
	"slices"
	"strings"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

var (
	dateFields = []string{"year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "isoyear"}
	timeFields = []string{"hour", "minute", "second", "epoch"}
	truncUnits = []string{"second", "minute", "hour", "day", "week", "month", "quarter", "year"}
)

// datetime are the functions of dates and times (PostgreSQL's timestamp.c and date.c).
var datetime = []Function{
	extractOf(6199, vector.Date, slices.Concat(dateFields, []string{"epoch"})),
	extractOf(6200, vector.Time, timeFields),
	extractOf(6202, vector.Timestamp, slices.Concat(dateFields, timeFields)),
	extractOf(6203, vector.TimestampTZ, slices.Concat(dateFields, timeFields)),
	extractOf(6204, vector.Interval, intervalParts),
	datePartOf(1385, vector.Time, timeFields),
	datePartOf(2021, vector.Timestamp, slices.Concat(dateFields, timeFields)),
	datePartOf(1171, vector.TimestampTZ, slices.Concat(dateFields, timeFields)),
	datePartOf(1172, vector.Interval, intervalParts),
	dateTruncOf(2020, vector.Timestamp),
	dateTruncOf(1217, vector.TimestampTZ),
	truncNamed(),
	truncIntervalOf(),
	dateBinOf(6177, vector.Timestamp),
	dateBinOf(6178, vector.TimestampTZ),
	timezoneOf(1159, vector.TimestampTZ, vector.Timestamp),
	timezoneOf(2069, vector.Timestamp, vector.TimestampTZ),
	plusIntervalOf(OIDTimestampPlusInterval, vector.Timestamp),
	plusIntervalOf(OIDTimestampTZPlusInterval, vector.TimestampTZ),
	toCharOf(2049, vector.Timestamp),
	toCharOf(1770, vector.TimestampTZ),
	{
		Name: "to_date", OID: 1780, Result: vector.Date, Partial: true,
		Args:    []Param{{Kind: vector.Text, Usual: patternSamples[:1]}, {Kind: vector.Text, Constants: momentPatterns, Also: takesMomentPattern}},
		Eval:    toMoment(vector.Date),
		Samples: [][]string{patternSamples, nil},
	},
	{
		Name: "to_timestamp", OID: 1778, Result: vector.TimestampTZ, Zone: SessionZone, in: momentIn, Partial: true,
		Args:    []Param{{Kind: vector.Text, Usual: patternSamples[:1]}, {Kind: vector.Text, Constants: momentPatterns, Also: takesMomentPattern}},
		Eval:    toMoment(vector.TimestampTZ),
		Samples: [][]string{patternSamples, nil},
	},
}

// Samples at the changes of week, year, leap year, century and era.
var (
	dateSamples = []string{"2000-01-01", "1999-12-31", "2024-02-29", "2026-12-28", "1900-03-01", "0001-01-01", "0044-03-15 BC",
		"4713-01-01 BC", "9999-12-31", "999999-12-31", "infinity", "-infinity"}
	timestampSamples = []string{"2000-01-01 00:00:00", "1999-12-31 23:59:59.999999", "2024-02-29 12:34:56.789012", "2021-01-03 23:00:00",
		"1582-10-15 01:00:00", "0001-12-31 00:00:00 BC", "4713-12-31 00:00:00.5 BC", "294276-12-28 23:59:59", "infinity", "-infinity"}
	timeSamples = []string{"00:00:00", "23:59:59.999999", "24:00:00", "12:34:56.789012", "01:00:00"}
)

func zoneOf(k vector.Kind) ZoneUse {
	if k == vector.TimestampTZ {
		return SessionZone
	}
	return NoZone
}

func samplesOf(k vector.Kind) [][]string {
	switch k {
	case vector.Date:
		return [][]string{nil, dateSamples}
	case vector.Time:
		return [][]string{nil, timeSamples}
	case vector.Interval:
		return [][]string{nil, intervalSpans}
	}
	return [][]string{nil, timestampSamples}
}

// finite are the least and the greatest finite value of a kind.
func finite(k vector.Kind) (first, last int64) {
	switch k {
	case vector.Date:
		return math.MinInt32 + 1, math.MaxInt32 - 1
	case vector.Timestamp, vector.TimestampTZ:
		return math.MinInt64 + 1, math.MaxInt64 - 1
	}
	return math.MinInt64, math.MaxInt64
}

// extractOf is extract(field FROM x): a numeric, of a scale that the field decides.
func extractOf(oid uint32, k vector.Kind, fields []string) Function {
	return Function{
		in:   ofField,
		Name: "extract", OID: oid, Result: vector.Numeric, Zone: zoneOf(k), Digits: 12, Total: k == vector.Interval,
		Args:    []Param{{Kind: vector.Text, Constants: fields, AnyCase: true}, {Kind: k}},
		Samples: samplesOf(k),
		Type: func(c Call) vector.Type {
			return vector.NumericType(extractScale(strings.ToLower(c.Args[0].Const.Str), k))
		},
		Eval: func(args []vector.Value) (vector.Value, error) {
			field := strings.ToLower(args[0].Str)
			v, err := extract(field, k, args[1].I)
			return vector.Value{Num: vector.Decimal{Unscaled: vector.Int128Of(v), Scale: extractScale(field, k)}}, err
		},
		Kernel: func(c Call, i int) *Kernel {
			if i != 1 {
				return nil
			}
			field := strings.ToLower(c.Args[0].Const.Str)
			x := Kernel{F: func(v int64) (int64, error) { return extract(field, k, v) }}
			x.First, x.Last = finite(k)
			x.Min, x.Max, x.Monotone = fieldBounds(field, k)
			if k == vector.Timestamp || k == vector.TimestampTZ {
				if unit := unitOf(field); unit != "" {
					x.Around, x.Every = func(v int64) (int64, int64) { return unitAround(unit, v) }, everyUnit(unit)
				}
			}
			return &x
		},
	}
}

// datePartOf is date_part, which computes in double precision (timestamp_part_common).
func datePartOf(oid uint32, k vector.Kind, fields []string) Function {
	return Function{
		in:   ofField,
		Name: "date_part", OID: oid, Result: vector.Float8, Zone: zoneOf(k), Total: k == vector.Interval,
		Args:    []Param{{Kind: vector.Text, Constants: fields, AnyCase: true}, {Kind: k}},
		Samples: samplesOf(k),
		Eval: func(args []vector.Value) (vector.Value, error) {
			field := strings.ToLower(args[0].Str)
			v, err := extract(field, k, args[1].I)
			f := float64(v)
			switch {
			case k == vector.Interval:
				f = intervalPart(field, args[1].I)
			case field == "second":
				f = float64(v/secondMicros) + float64(v%secondMicros)/secondMicros
			case extractScale(field, k) == 6:
				f /= secondMicros
			}
			return vector.Value{I: int64(math.Float64bits(f))}, err
		},
	}
}

func dateTruncOf(oid uint32, k vector.Kind) Function {
	return Function{
		in:   truncIn,
		Name: "date_trunc", OID: oid, Result: k, Zone: zoneOf(k),
		Args:    []Param{{Kind: vector.Text, Constants: truncUnits, AnyCase: true}, {Kind: k}},
		Samples: samplesOf(k),
		Eval: func(args []vector.Value) (vector.Value, error) {
			v, err := dateTrunc(strings.ToLower(args[0].Str), args[1].I)
			return vector.Value{I: v}, err
		},
		Kernel: truncKernel(k),
	}
}

func truncKernel(k vector.Kind) func(c Call, i int) *Kernel {
	return func(c Call, i int) *Kernel {
		if i != 1 {
			return nil
		}
		unit := strings.ToLower(c.Args[0].Const.Str)
		x := &Kernel{F: func(v int64) (int64, error) { return dateTrunc(unit, v) }, Last: sqltype.TimestampLast, Monotone: true,
			Around: func(v int64) (int64, int64) { return unitAround(unit, v) }, Every: everyUnit(unit)}
		x.First, _ = finite(k)
		return x
	}
}
