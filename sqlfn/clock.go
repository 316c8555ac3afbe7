package sqlfn

import (
	"math"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// clocks are functions that make and take apart dates, times and timestamps (PostgreSQL's date.c and timestamp.c), those of
// operators and casts among them.
var clocks = []Function{
	isFinite(1373, vector.Date, dateSamples),
	isFinite(2048, vector.Timestamp, timestampSamples),
	isFinite(1389, vector.TimestampTZ, timestampSamples),
	isFinite(1390, vector.Interval, intervalSpans),
	{
		Name: "make_date", OID: 3846, Result: vector.Date, Args: yearMonthDay, Samples: [][]string{yearSamples, monthSamples, daySamples}, Partial: true,
		Eval: func(args []vector.Value) (vector.Value, error) {
			v, err := dayOf(args[0].I, args[1].I, args[2].I)
			return vector.Value{I: v}, err
		},
	},
	{
		Name: "make_time", OID: 3847, Result: vector.Time, Args: hourMinuteSecond, Samples: [][]string{{"12", "0", "23", "24", "25", "-1"}, {"30", "0", "59", "60", "-1"}, secondSamples}, Partial: true,
		Eval: func(args []vector.Value) (vector.Value, error) {
			v, err := timeOf(args[0].I, args[1].I, args[2].I)
			return vector.Value{I: v}, err
		},
	},
	{
		Name: "make_timestamp", OID: 3461, Result: vector.Timestamp, Args: append(yearMonthDay[:3:3], hourMinuteSecond...), Partial: true,
		Samples: [][]string{{"2024", "-44", "0", "9999", "294277"}, {"2", "12", "13"}, {"29", "31"}, {"12", "24"}, {"0", "59"}, {"0", "59.9999996", "30.5"}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			day, err := dayOf(args[0].I, args[1].I, args[2].I)
			if err != nil {
				return vector.NullValue, err
			}
			time, err := timeOf(args[3].I, args[4].I, args[5].I)
			if err != nil {
				return vector.NullValue, err
			}
			return dateAndTime(day, time)
		},
	},
	{
		Name: "to_timestamp", OID: 1158, Result: vector.TimestampTZ, Args: []Param{{Kind: vector.Float8}},
		Samples: [][]string{append([]string{"1700000000", "1700000000.123456", "-12345678.9", "0.0000005", "0.0000015", "1e10", "9224318016000", "-210866803200"}, floatSamples...)},
		Eval: func(args []vector.Value) (vector.Value, error) {
			s := math.Float64frombits(uint64(args[0].I))
			if !(math.Abs(s) < 1e11) { // well within the range of timestamps, but for those before Christ
				return vector.NullValue, failed("timestamp of seconds that are many, infinite or NaN")
			}
			return vector.Value{I: int64(math.RoundToEven((s - 946684800) * secondMicros))}, nil // of 2000-01-01
		},
	},
	{
		Name: "datetime_pl", OID: 1272, Result: vector.Timestamp, Args: []Param{{Kind: vector.Date}, {Kind: vector.Time}}, Samples: [][]string{dateSamples, timeSamples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			d := sqltype.Of(vector.Date)
			switch args[0].I {
			case d.Infinity:
				return vector.Value{I: sqltype.Of(vector.Timestamp).Infinity}, nil
			case d.NegInfinity:
				return vector.Value{I: sqltype.Of(vector.Timestamp).NegInfinity}, nil
			}
			return dateAndTime(args[0].I, args[1].I)
		},
	},
	timeOfOf(1316, vector.Timestamp, timestampSamples),
	timeOfOf(2019, vector.TimestampTZ, timestampSamples),
	{
		Name: "time", OID: 1419, Result: vector.Time, Args: []Param{{Kind: vector.Interval}}, Total: true, Samples: [][]string{intervalSpans},
		Eval: func(args []vector.Value) (vector.Value, error) { return vector.Value{I: timeOfDay(args[0].I)}, nil },
	},
	{
		Name: "interval", OID: 1370, Result: vector.Interval, Args: []Param{{Kind: vector.Time}}, Samples: [][]string{timeSamples},
		Eval: func(args []vector.Value) (vector.Value, error) { return wholeInterval(0, args[0].I) },
	},
	{
		Name: "time_mi_time", OID: 1690, Result: vector.Interval, Args: []Param{{Kind: vector.Time}, {Kind: vector.Time}}, Samples: [][]string{timeSamples, timeSamples},
		Eval: func(args []vector.Value) (vector.Value, error) { return wholeInterval(0, args[0].I-args[1].I) },
	},
	timeAndInterval("time_pl_interval", 1747, 1),
	timeAndInterval("time_mi_interval", 1748, -1),
	overlapsOf(1308, vector.Time, timeSamples),
	overlapsOf(2041, vector.Timestamp, []string{"2024-01-01 00:00:00", "2024-01-01 00:00:00.000001", "2024-02-01 00:00:00", "infinity", "-infinity"}),
	overlapsOf(1304, vector.TimestampTZ, []string{"2024-01-01 00:00:00", "2024-01-01 00:00:00.000001", "2024-02-01 00:00:00", "infinity", "-infinity"}),
}

var (
	yearMonthDay     = []Param{{Kind: vector.Int4, Usual: []string{"2024", "1999", "2000"}}, {Kind: vector.Int4, Usual: []string{"1", "2", "12"}}, {Kind: vector.Int4, Usual: []string{"1", "15", "28"}}}
	hourMinuteSecond = []Param{{Kind: vector.Int4, Usual: []string{"0", "12", "23"}}, {Kind: vector.Int4, Usual: []string{"0", "30", "59"}}, {Kind: vector.Float8}}
	yearSamples      = []string{"2024", "1900", "1", "0", "-1", "-4713", "-4714", "9999", "5874898"}
	monthSamples     = []string{"2", "1", "12", "6", "11", "0", "13", "-1"}
	daySamples       = []string{"29", "1", "30", "31", "24", "0", "32", "-1"}
	secondSamples    = []string{"0", "59.9999999", "60", "30.0000005", "30.0000015", "-0.0000001", "-1", "NaN", "Infinity", "60.0000004"}
)

// isFinite is isfinite(x).
func isFinite(oid uint32, k vector.Kind, samples []string) Function {
	t := sqltype.Of(k)
	infinities := k != vector.Interval // of which none is held that is infinite
	return Function{Name: "isfinite", OID: oid, Result: vector.Bool, Args: []Param{{Kind: k}}, Total: true, Samples: [][]string{samples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.BoolValue(!infinities || args[0].I != t.Infinity && args[0].I != t.NegInfinity), nil
		},
	}
}

// dayOf is a date of its parts: years before Christ are negative, and there is none of 0.
func dayOf(year, month, day int64) (int64, error) {
	if year == 0 || month < 1 || month > 12 || day < 1 || day > 31 {
		return 0, failed("date field value out of range")
	}
	if year < 0 {
		year++
	}
	v := sqltype.DayOf(year, int(month), int(day))
	_, m, d := sqltype.Civil(v)
	if t := sqltype.Of(vector.Date); m != int(month) || d != int(day) || v < t.Least || v > t.Greatest {
		return 0, failed("date field value out of range")
	}
	return v, nil
}

// timeOf is a time of its parts, the seconds in double precision (float_time_overflows).
func timeOf(hour, minute, seconds int64) (int64, error) {
	s := math.RoundToEven(math.Float64frombits(uint64(seconds)) * secondMicros)
	if hour < 0 || hour > 24 || minute < 0 || minute > 59 || !(s >= 0 && s <= 60*secondMicros) {
		return 0, failed("time field value out of range")
	}
	v := (hour*60+minute)*60*secondMicros + int64(s)
	if v > sqltype.MicrosPerDay {
		return 0, failed("time field value out of range")
	}
	return v, nil
}

// dateAndTime is a timestamp.
func dateAndTime(day, time int64) (vector.Value, error) {
	t := sqltype.Of(vector.Timestamp)
	v, ok := vector.Mul64(day, sqltype.MicrosPerDay).Add(vector.Int128Of(time)).Int64()
	if !ok || v < t.Least || v > t.Greatest {
		return vector.NullValue, failed("timestamp out of range")
	}
	return vector.Value{I: v}, nil
}

// timeOfDay is the time of the day of a count of microseconds.
func timeOfDay(micros int64) int64 {
	if micros %= sqltype.MicrosPerDay; micros < 0 {
		micros += sqltype.MicrosPerDay
	}
	return micros
}

// timeOfOf casts a timestamp to the time of its day; that of an infinite one is null.
func timeOfOf(oid uint32, k vector.Kind, samples []string) Function {
	t := sqltype.Of(k)
	return Function{Name: "time", OID: oid, Result: vector.Time, Zone: zoneOf(k), in: inLocalTime, Args: []Param{{Kind: k}}, Samples: [][]string{samples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			if args[0].I == t.Infinity || args[0].I == t.NegInfinity {
				return vector.NullValue, nil
			}
			return vector.Value{I: timeOfDay(args[0].I)}, nil
		},
	}
}

// inLocalTime makes a function of one timestamp that of the local time.
func inLocalTime(f *Function, z *sqltype.Zone) {
	eval := f.Eval
	f.Eval = func(args []vector.Value) (vector.Value, error) {
		t := sqltype.Of(vector.TimestampTZ)
		if args[0].I == t.Infinity || args[0].I == t.NegInfinity {
			return eval(args)
		}
		local, err := localTime(z, args[0].I)
		if err != nil {
			return vector.NullValue, err
		}
		return eval([]vector.Value{{I: local}})
	}
}

// wholeInterval is an interval of days and a time, where it is one that is held.
func wholeInterval(days, micros int64) (vector.Value, error) {
	v, ok := sqltype.WholeInterval(0, days, micros)
	if !ok {
		return vector.NullValue, failed("an interval whose days and time are not of one sign, or whose time has 24 hours")
	}
	return vector.Value{I: v}, nil
}

// timeAndInterval adds an interval's time to one of the day, or subtracts it.
func timeAndInterval(name string, oid uint32, sign int64) Function {
	return Function{Name: name, OID: oid, Result: vector.Time, Args: []Param{{Kind: vector.Time}, {Kind: vector.Interval}}, Total: true, Samples: [][]string{timeSamples, intervalSpans},
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.Value{I: timeOfDay(args[0].I + sign*(args[1].I%sqltype.MicrosPerDay))}, nil
		},
	}
}

// overlapsOf is (a, b) OVERLAPS (c, d): an end that is null is not known, and where that matters the result is not.
func overlapsOf(oid uint32, k vector.Kind, samples []string) Function {
	return Function{Name: "overlaps", OID: oid, Result: vector.Bool, Args: []Param{{Kind: k}, {Kind: k}, {Kind: k}, {Kind: k}}, CalledOnNull: true, Total: true,
		Samples: [][]string{samples, samples, samples, samples},
		Eval: func(args []vector.Value) (vector.Value, error) {
			a, b, c, d := args[0], args[1], args[2], args[3]
			if a.Null && b.Null || c.Null && d.Null {
				return vector.NullValue, nil
			}
			a, b = inOrder(a, b)
			c, d = inOrder(c, d)
			if a.I > c.I {
				a, b, c, d = c, d, a, b
			}
			switch {
			case a.I == c.I:
				return vector.Value{I: 1, Null: b.Null || d.Null}, nil
			case b.Null:
				return vector.NullValue, nil
			case c.I < b.I:
				return vector.BoolValue(true), nil
			}
			return vector.Value{Null: d.Null}, nil
		},
	}
}

// inOrder returns the ends of a span, the lesser first and one that is null last.
func inOrder(a, b vector.Value) (vector.Value, vector.Value) {
	if a.Null || !b.Null && a.I > b.I {
		return b, a
	}
	return a, b
}
